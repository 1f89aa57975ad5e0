//! The law of shadows from blocks of trees: with few features, many permutations are needed to know it.
//!
//! A *shadow* of a feature has its values in other rows, so that it says nothing about the targets. Trees are grown in
//! *blocks*; the trees of a block see the same shadow, those of another block another one. Importances of shadows over
//! blocks are draws from the law of what chance alone gives to a feature with these values. To the importance of the
//! feature itself, which is one draw if the feature is irrelevant, this law is compared: the mean of its shadows says
//! nothing, since half of all irrelevant features are above it (Altmann et al. 2010 and Janitza, Celik and Boulesteix
//! 2018 have laws of permuted targets and of mirrored importances for the same purpose).
//!
//! The trees of a block add noise, which the average over all trees hardly has. The second and third cumulant of the
//! law without this noise follow without bias from products over distinct trees (Hoeffding 1948):
//!
//! ```text
//! κ₂ = mean over blocks of (S₁² − S₂) / t(t − 1)                    S_p = Σ (x − mean of the shadow)^p
//! κ₃ = mean over blocks of (S₁³ − 3 S₁ S₂ + 2 S₃) / t(t − 1)(t − 2)        over the t trees of a block
//! ```
//!
//! They are averaged over features whose values have about the same entropy, with Gaussian weights, because a feature
//! with many categories has a wider law than one with two. κ₂ is raised by two of its standard errors over blocks, and
//! κ₃ is at least that of a χ² law with one degree of freedom, √8 κ₂^1.5: importances of irrelevant features are about
//! squares of chance correlations. To κ₂ the variance of the mean of the feature over blocks is added. The p-value is
//! the upper tail of the Pearson type III law with these cumulants.
//!
//! For tables with many features this law is too light: there, only the greatest of many chance correlations at a node
//! counts for anything.

use super::Relevance;
use super::classes::Classes;
use super::means::Means;
use super::tails::{IMPOSSIBLE, ln_upper_tail};
use crate::contribution::Part;
use crate::data::RunData;

/// The least number of blocks that p-values are computed from.
const LEAST_BLOCKS: usize = 10;
/// The greatest skewness of a law.
const MOST_SKEWED: f64 = 6.0;

/// The p-values of one score: vector number `own` of each part has the importances of the features, number `shadow` those
/// of their shadows. Parts with the same `block` are trees that see the same shadows. `None` with fewer than ten complete
/// blocks.
pub fn from_blocks(
    data: &RunData,
    parts: &[Part<'_>],
    [own, shadow]: [usize; 2],
    block: impl Fn(u64) -> u64,
) -> Option<Relevance> {
    let n_features = data.features.len();
    let blocks: Vec<&[Part<'_>]> = parts.chunk_by(|a, b| block(a.key) == block(b.key)).collect();
    let n_trees = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
    let blocks: Vec<&[Part<'_>]> = blocks.into_iter().filter(|block| block.len() == n_trees).collect();
    if blocks.len() < LEAST_BLOCKS || n_trees < 3 {
        return None;
    }
    let (n_blocks, t) = (blocks.len() as f64, n_trees as f64);
    let own = Means::new(&blocks, own, n_features);
    let classes = Classes::new(data);
    let shadows = Means::new(&blocks, shadow, n_features);
    let mut law = Law::new(&classes);
    for block in &blocks {
        let mut powers = vec![[0.0; 3]; n_features];
        let mut present = vec![0.0; n_features];
        for (feature, value) in block.iter().flat_map(|part| part.sums[shadow].entries()) {
            let x = value - shadows.mean[feature];
            present[feature] += 1.0;
            powers[feature].iter_mut().zip([x, x * x, x * x * x]).for_each(|(sum, power)| *sum += power);
        }
        for (feature, powers) in powers.iter_mut().enumerate() {
            // Trees that do not use the shadow have an importance of 0.
            let (x, absent) = (-shadows.mean[feature], t - present[feature]);
            powers.iter_mut().zip([x, x * x, x * x * x]).for_each(|(sum, power)| *sum += absent * power);
        }
        law.add(&classes, &powers, t);
    }
    let law = law.finish(&classes, n_blocks);
    let p_values = |raised: f64| {
        let (law, own, shadows, classes) = (&law, &own, &shadows, &classes);
        let p_value = move |feature: usize| {
            let Cumulants { second, third, of_mean } = law[classes.of_feature[feature]];
            let monte_carlo = own.variance_of_mean[feature];
            let variance = second + monte_carlo + of_mean;
            let above = own.mean[feature] + raised * monte_carlo.sqrt() - shadows.mean[feature];
            if variance <= 0.0 {
                // Neither the feature nor a shadow like it is ever used.
                return if above > 0.0 { IMPOSSIBLE } else { 0.0 };
            }
            let skewness = third.max(8f64.sqrt() * second.powf(1.5)) / variance.powf(1.5);
            ln_upper_tail(above / variance.sqrt(), skewness.min(MOST_SKEWED))
        };
        (0..n_features).map(p_value)
    };
    Some(Relevance::from_ln(p_values(0.0), p_values(2.0)))
}

/// The cumulants of the law of the shadows, block by block.
struct Law {
    /// blocks x classes
    seconds: Vec<Vec<f64>>,
    /// n_classes
    third: Vec<f64>,
    /// n_classes; of the means of blocks.
    variance: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Cumulants {
    second: f64,
    third: f64,
    /// The variance of the mean of a shadow.
    of_mean: f64,
}

impl Law {
    fn new(classes: &Classes) -> Self {
        let n_classes = classes.len();
        Law { seconds: Vec::new(), third: vec![0.0; n_classes], variance: vec![0.0; n_classes] }
    }

    /// Adds a block, with the sums of powers of each feature over its `t` trees.
    fn add(&mut self, classes: &Classes, powers: &[[f64; 3]], t: f64) {
        let second = classes.means(powers.iter().map(|[s1, s2, _]| (s1 * s1 - s2) / (t * (t - 1.0))));
        let third = |[s1, s2, s3]: &[f64; 3]| (s1.powi(3) - 3.0 * s1 * s2 + 2.0 * s3) / (t * (t - 1.0) * (t - 2.0));
        let third = classes.pooled(&classes.means(powers.iter().map(third)));
        let variance = classes.pooled(&classes.means(powers.iter().map(|[s1, ..]| (s1 / t).powi(2))));
        self.seconds.push(classes.pooled(&second));
        self.third.iter_mut().zip(third).for_each(|(sum, value)| *sum += value);
        self.variance.iter_mut().zip(variance).for_each(|(sum, value)| *sum += value);
    }

    /// The cumulants of each class.
    fn finish(self, classes: &Classes, n_blocks: f64) -> Vec<Cumulants> {
        // The means of shadows are those of the same blocks.
        let correction = n_blocks / (n_blocks - 1.0);
        let cumulants = |class: usize| {
            let values = || self.seconds.iter().map(|block| correction * block[class]);
            let mean = values().sum::<f64>() / n_blocks;
            let spread = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (n_blocks - 1.0);
            Cumulants {
                second: (mean + 2.0 * (spread / n_blocks).sqrt()).max(0.0),
                third: self.third[class] / n_blocks * correction * n_blocks / (n_blocks - 2.0),
                of_mean: self.variance[class] / (n_blocks - 1.0) / n_blocks,
            }
        };
        (0..classes.len()).map(cumulants).collect()
    }
}
