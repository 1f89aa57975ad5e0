//! Mean importances and how much they vary from block to block of trees.

use crate::contribution::Part;

/// Means over all trees, and their variances from those of the means of blocks.
#[derive(Debug)]
pub(super) struct Means {
    /// n_features
    pub(super) mean: Vec<f64>,
    /// n_features
    pub(super) variance_of_mean: Vec<f64>,
}

impl Means {
    /// Of vector `number` of the trees of `blocks`, at least two and all of the same size.
    pub(super) fn new(blocks: &[&[Part<'_>]], number: usize, n_features: usize) -> Self {
        let (n_blocks, n_trees) = (blocks.len() as f64, blocks[0].len() as f64);
        let block_mean = |block: &[Part<'_>]| {
            let mut mean = vec![0.0; n_features];
            let entries = block.iter().flat_map(|part| part.sums[number].entries());
            entries.for_each(|(feature, value)| mean[feature] += value / n_trees);
            mean
        };
        let mut mean = vec![0.0; n_features];
        for block in blocks {
            mean.iter_mut().zip(block_mean(block)).for_each(|(sum, value)| *sum += value / n_blocks);
        }
        let mut variance = vec![0.0; n_features];
        for block in blocks {
            let squares = block_mean(block).into_iter().zip(&mean).map(|(value, mean)| (value - mean).powi(2));
            variance.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square / (n_blocks - 1.0) / n_blocks);
        }
        Means { mean, variance_of_mean: variance }
    }
}
