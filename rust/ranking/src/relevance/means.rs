//! Mean importances and how much they vary from block to block of trees.

use crate::contribution::Part;

/// Means over all trees, and their variances from those of the means of blocks.
#[derive(Debug)]
pub(super) struct Means {
    /// n_features
    pub(super) mean: Vec<f64>,
    /// n_features
    pub(super) variance_of_mean: Vec<f64>,
    /// n_features; the number of blocks that use the feature.
    used: Vec<f64>,
    n_blocks: f64,
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
        let (mut variance, mut used) = (vec![0.0; n_features], vec![0.0; n_features]);
        for block in blocks {
            let means = block_mean(block);
            used.iter_mut().zip(&means).for_each(|(used, &mean)| *used += f64::from(mean != 0.0));
            let squares = means.into_iter().zip(&mean).map(|(value, mean)| (value - mean).powi(2));
            variance.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square / (n_blocks - 1.0) / n_blocks);
        }
        Means { mean, variance_of_mean: variance, used, n_blocks }
    }

    /// The natural logarithm of the variance of the mean of a block, n_features; `None` where fewer than half of the blocks
    /// use the feature.
    pub(super) fn ln_variances(&self) -> Vec<Option<f64>> {
        let known = |(&variance, &used): (&f64, &f64)| {
            (2.0 * used >= self.n_blocks && variance > 0.0).then(|| (variance * self.n_blocks).ln())
        };
        self.variance_of_mean.iter().zip(&self.used).map(known).collect()
    }
}
