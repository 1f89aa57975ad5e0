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
//! As shares of the variance and its power 3/2 of the means of blocks they are about the same for all features of a table,
//! while those of a single feature are known badly from a few dozen blocks, and one that comes out near 0 would make its
//! p-value absurd. So the share of κ₂ of features that are about alike (`classes`, with Gaussian weights: a feature with
//! many categories has another law than one with two) is drawn towards that of all features, the more so
//! the less shares differ beyond chance (empirical Bayes; the variance between classes of features by DerSimonian and
//! Laird 1986), and raised by two of its standard errors. The share of κ₃ is that of all features, and κ₃ at least that of
//! a χ² law with one degree of freedom, √8 κ₂^1.5: importances of irrelevant features are about squares of chance
//! correlations. To κ₂ the variance of the mean of the feature over blocks is added. The p-value is the upper tail of the
//! Pearson type III law with these cumulants.
//!
//! Far out that tail is too light. On tables without an effect, 13 kinds of 60 to 100 tables each, p-values below 0.01
//! came up as often as they should, those below 0.001 up to 5 times and those below 1e-4 up to 29 times as often. With a
//! target of two degrees of freedom 25 % of the tables had a discovery at a rate of 0.1. So p-values below 0.01 are raised
//! to the power 0.5 in relation to it, at most thirtyfold: 12 % then, while power on 20 kinds of data falls by 0.003.
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
/// The least share of κ₂ in the variance of the mean of a block. With 16,000 trees it is 0.03 to 0.5 on tables of 25 kinds;
/// from 30 blocks a share near 0 is mostly an accident, which would make p-values of 1e-16 of features that have 0.01.
const LEAST_SHARE: f64 = 0.1;
/// The greatest skewness of a law.
const MOST_SKEWED: f64 = 6.0;
/// The p-value below which the tail is made heavier, how fast p-values fall from there on, as a power, and how many times
/// as high they become at most.
const FAR_OUT: (f64, f64, f64) = (0.01, 0.5, 30.0);

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
    let shadows = Means::new(&blocks, shadow, n_features);
    // A feature has the wider of two laws: the variance of its own shadow may be low by accident.
    let kinds = [Classes::new(data, None), Classes::new(data, Some(&shadows.ln_variances()))];
    let mut sums = kinds.each_ref().map(|classes| Sums::new(classes.len()));
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
        sums.iter_mut().zip(&kinds).for_each(|(sums, classes)| sums.add(classes, &powers, t));
    }
    let laws: Vec<(Law, &Classes)> =
        sums.into_iter().zip(&kinds).map(|(sums, classes)| (sums.law(classes), classes)).collect();
    let p_values = |raised: f64| {
        let (laws, own, shadows) = (&laws, &own, &shadows);
        let p_value = move |feature: usize| {
            let monte_carlo = own.variance_of_mean[feature];
            let above = own.mean[feature] + raised * monte_carlo.sqrt() - shadows.mean[feature];
            let of_laws = laws
                .iter()
                .map(|(law, classes)| law.ln_p_value(classes.of_feature[feature], above, monte_carlo, n_blocks));
            of_laws.fold(f64::NEG_INFINITY, f64::max)
        };
        (0..n_features).map(p_value)
    };
    Some(Relevance::from_ln(p_values(0.0), p_values(2.0)))
}

/// The sums of which the law of the shadows is made, block by block.
struct Sums {
    /// blocks x classes; the second cumulant.
    seconds: Vec<Vec<f64>>,
    /// n_classes; the third cumulant, over all blocks.
    third: Vec<f64>,
    /// n_classes; the squares of the means of blocks.
    squares: Vec<f64>,
}

/// The law of the shadows.
struct Law {
    /// n_classes; the variance of the mean of a block.
    of_block: Vec<f64>,
    /// n_classes; the second cumulant as a share of it.
    second: Vec<f64>,
    /// The third cumulant as a share of its power 3/2.
    third: f64,
}

impl Law {
    /// The natural logarithm of the p-value of a feature of `class` whose importance is `above` that of its shadow, with the
    /// Monte Carlo variance `monte_carlo`.
    fn ln_p_value(&self, class: usize, above: f64, monte_carlo: f64, n_blocks: f64) -> f64 {
        let of_block = match self.of_block[class] {
            // No shadow like this feature is ever used: it would vary as the feature does.
            0.0 => n_blocks * monte_carlo,
            of_block => of_block,
        };
        let second = self.second[class] * of_block;
        let variance = second + monte_carlo + of_block / n_blocks;
        if variance <= 0.0 {
            // Neither the feature nor a shadow like it is ever used.
            return if above > 0.0 { IMPOSSIBLE } else { 0.0 };
        }
        let third = (self.third * of_block.powf(1.5)).max(8f64.sqrt() * second.powf(1.5));
        let skewness = third / variance.powf(1.5);
        with_heavy_tail(ln_upper_tail(above / variance.sqrt(), skewness.min(MOST_SKEWED)))
    }
}

/// The logarithm of a p-value with a heavier tail, see the [module](self).
fn with_heavy_tail(ln_p: f64) -> f64 {
    let (start, power, most) = FAR_OUT;
    ln_p + ((1.0 - power) * (start.ln() - ln_p)).clamp(0.0, most.ln())
}

impl Sums {
    fn new(n_classes: usize) -> Self {
        Sums { seconds: Vec::new(), third: vec![0.0; n_classes], squares: vec![0.0; n_classes] }
    }

    /// Adds a block, with the sums of powers of each feature over its `t` trees.
    fn add(&mut self, classes: &Classes, powers: &[[f64; 3]], t: f64) {
        let second = |[s1, s2, _]: &[f64; 3]| (s1 * s1 - s2) / (t * (t - 1.0));
        let third = |[s1, s2, s3]: &[f64; 3]| (s1.powi(3) - 3.0 * s1 * s2 + 2.0 * s3) / (t * (t - 1.0) * (t - 2.0));
        let square = |[s1, ..]: &[f64; 3]| (s1 / t).powi(2);
        self.seconds.push(classes.means(powers.iter().map(second)));
        let third = classes.means(powers.iter().map(third));
        let square = classes.means(powers.iter().map(square));
        self.third.iter_mut().zip(third).for_each(|(sum, value)| *sum += value);
        self.squares.iter_mut().zip(square).for_each(|(sum, value)| *sum += value);
    }

    fn law(self, classes: &Classes) -> Law {
        let n_blocks = self.seconds.len() as f64;
        let share = |cumulant: f64, power: f64| if power > 0.0 { cumulant / power } else { 0.0 };
        let of_class: Vec<f64> = self.squares.iter().map(|sum| sum / (n_blocks - 1.0)).collect();
        let shares = |block: &Vec<f64>| -> Vec<f64> {
            // About the mean of the same blocks, which lies nearer to them than the true one, κ₂ is less by 1 / n_blocks.
            block.iter().zip(&of_class).map(|(second, of_block)| share(*second, *of_block) + 1.0 / n_blocks).collect()
        };
        let third = self
            .third
            .iter()
            .zip(&of_class)
            .map(|(sum, of_block)| share(sum * n_blocks / (n_blocks - 1.0) / (n_blocks - 2.0), of_block.powf(1.5)));
        Law {
            of_block: classes.pooled(&of_class),
            second: drawn_together(classes, &self.seconds.iter().map(shares).collect::<Vec<_>>()),
            third: classes.mean(&third.collect::<Vec<f64>>()),
        }
    }
}

/// The mean over blocks of `values`, blocks x classes, drawn towards that of all features, and raised by two standard errors.
fn drawn_together(classes: &Classes, values: &[Vec<f64>]) -> Vec<f64> {
    let n_blocks = values.len() as f64;
    let over_blocks = |value: &dyn Fn(&Vec<f64>) -> f64| {
        let mean = values.iter().map(value).sum::<f64>() / n_blocks;
        (mean, values.iter().map(|block| (value(block) - mean).powi(2)).sum::<f64>() / (n_blocks - 1.0))
    };
    let (mean, variance) = over_blocks(&|block| classes.mean(block));
    let (means, variances): (Vec<f64>, Vec<f64>) =
        (0..classes.len()).map(|class| over_blocks(&|block| block[class])).unzip();
    // Of the mean of one feature: those of a class are about independent.
    let of_feature: Vec<f64> = variances.iter().zip(classes.sizes()).map(|(variance, size)| variance * size).collect();
    let of_feature = classes.mean(&of_feature) / n_blocks;
    let between = variance_between(&means, mean, classes.sizes(), of_feature);
    let drawn = |(own, size): (f64, f64)| {
        let error = of_feature / size;
        let trust = if between > 0.0 { between / (between + error) } else { 0.0 };
        let variance = trust * error + (1.0 - trust).powi(2) * variance / n_blocks;
        (trust * own + (1.0 - trust) * mean + 2.0 * variance.sqrt()).max(LEAST_SHARE)
    };
    classes.pooled(&means).into_iter().zip(classes.effective_sizes()).map(drawn).collect()
}

/// The variance of the true means of classes, of which `means` have the variances `of_feature` / `sizes`.
fn variance_between(means: &[f64], mean: f64, sizes: &[f64], of_feature: f64) -> f64 {
    let sum = |power: i32| sizes.iter().map(|size| size.powi(power)).sum::<f64>();
    let squares: f64 = means.iter().zip(sizes).map(|(value, size)| size * (value - mean).powi(2)).sum();
    let beyond_chance = squares - (sizes.len() - 1) as f64 * of_feature;
    let weight = sum(1) - sum(2) / sum(1);
    if weight > 0.0 { (beyond_chance / weight).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::classes::Likeness;
    use super::*;

    fn numeric(entropy: f64, ln_variance: Option<f64>) -> Likeness {
        Likeness { nominal: false, entropy, ln_variance }
    }

    #[test]
    fn features_whose_shadows_vary_more_have_a_law_of_their_own() {
        let variances = [1.0, 1.2, 400.0, 500.0, 1.1];
        let known = Classes::of(variances.iter().map(|variance: &f64| numeric(5.0, Some(variance.ln()))));
        let pooled = |classes: &Classes, values: &[f64]| -> Vec<f64> {
            let pooled = classes.pooled(&classes.means(values.iter().copied()));
            classes.of_feature.iter().map(|&class| pooled[class]).collect()
        };
        let found = pooled(&known, &variances);
        assert!(found[0] < 1.2 && found[3] > 400.0, "{found:?}");
        // A shadow that is rarely used is like all others with its entropy, which are not like it.
        let mut likeness: Vec<Likeness> = variances.iter().map(|v| numeric(5.0, Some(v.ln()))).collect();
        likeness.push(numeric(5.0, None));
        let found = pooled(&Classes::of(likeness.into_iter()), &[1.0, 1.2, 400.0, 500.0, 1.1, 0.0]);
        assert!(found[5] > 100.0 && found[0] > 1.0 && found[0] < 1.2, "{found:?}");
    }

    /// Numbers between −1 and 1 that look like chance.
    fn noise(i: usize) -> f64 {
        (i as f64 * 78.233).sin() * 43_758.545_3 % 1.0
    }

    /// Values of 20 blocks, for classes of four features with these means.
    fn values(means: &[f64]) -> (Classes, Vec<Vec<f64>>) {
        let classes = Classes::of((0..4 * means.len()).map(|feature| numeric((feature / 4) as f64 * 10.0, None)));
        let value = |block: usize, class: usize| means[class] + noise(block * means.len() + class);
        (classes, (0..20).map(|block| (0..means.len()).map(|class| value(block, class)).collect()).collect())
    }

    #[test]
    fn the_law_has_the_cumulants_of_the_blocks() {
        // Four blocks of three trees, which agree within a block: shadows are 1, −1, 1 and −1.
        let classes = Classes::of(std::iter::once(numeric(1.0, None)));
        let mut sums = Sums::new(1);
        for x in [1.0, -1.0, 1.0, -1.0f64] {
            sums.add(&classes, &[[3.0 * x, 3.0, 3.0 * x]], 3.0);
        }
        let law = sums.law(&classes);
        // About a mean of four blocks the variance is 4/3, and trees add nothing to it. The law is symmetric.
        assert!((law.of_block[0] - 4.0 / 3.0).abs() < 1e-12, "{:?}", law.of_block);
        assert!((law.second[0] - 1.0).abs() < 1e-12, "{:?}", law.second);
        assert!(law.third.abs() < 1e-12, "{}", law.third);
    }

    #[test]
    fn small_p_values_are_raised_thirtyfold_at_most_and_keep_their_order() {
        let raised = |p: f64| with_heavy_tail(p.ln()).exp();
        for (p, expected) in [(0.9, 0.9), (0.01, 0.01), (1e-4, 1e-3), (1e-6, 3e-5), (1e-30, 3e-29)] {
            assert!((raised(p) / expected - 1.0).abs() < 1e-9, "{p}: {}", raised(p));
        }
        let all: Vec<f64> = (0..400).map(|tenths| with_heavy_tail(-f64::from(tenths) / 10.0)).collect();
        assert!(all.windows(2).all(|pair| pair[1] < pair[0]), "{all:?}");
    }

    #[test]
    fn classes_that_differ_by_chance_are_one() {
        let (classes, mut values) = values(&[1.0; 30]);
        values.iter_mut().for_each(|block| block[7] -= 0.25);
        let drawn = drawn_together(&classes, &values);
        assert!(drawn[7] > 0.9, "{}", drawn[7]);
        assert!(drawn.iter().all(|value| (value - drawn[0]).abs() < 0.25), "{drawn:?}");
    }

    #[test]
    fn classes_that_differ_by_more_stay_apart() {
        let means: Vec<f64> = (0..30).map(|class| f64::from(class % 3) * 5.0).collect();
        let (classes, values) = values(&means);
        for (drawn, mean) in drawn_together(&classes, &values).iter().zip(&means) {
            // Raised by two standard errors, about 0.26.
            assert!((0.0..0.8).contains(&(drawn - mean)), "{drawn}, {mean}");
        }
    }
}
