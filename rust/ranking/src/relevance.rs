//! P-values of features: the chance that an irrelevant feature is as important.
//!
//! A *shadow* of a feature has its values in other rows, so that it says nothing about the targets. Trees are grown in
//! *blocks*; the trees of a block see the same shadow, those of another block another one. Importances of shadows over
//! blocks are draws from the law of what chance alone gives to a feature with these values. To the importance of the
//! feature itself, which is one draw if the feature is irrelevant, this law is compared: the mean of its shadows says
//! nothing, since half of all irrelevant features are above it (Altmann et al. 2010 and Janitza, Celik and Boulesteix
//! 2018 have laws of permuted targets and of mirrored importances for the same purpose).
//!
//! The trees of a block add noise, which the average over all trees hardly has. The second and third cumulant of the
//! law without this noise follow without bias from products over distinct trees (U-statistics, Hoeffding 1948):
//!
//! ```text
//! κ₂ = mean over blocks of (S₁² − S₂) / t(t − 1)                    S_p = Σ (x − mean of the shadow)^p
//! κ₃ = mean over blocks of (S₁³ − 3 S₁ S₂ + 2 S₃) / t(t − 1)(t − 2)        over the t trees of a block
//! ```
//!
//! They are averaged over features whose values have about the same entropy, with Gaussian weights, because a feature
//! with many categories has a wider law than one with two. κ₂ is raised by two of its standard errors over blocks, and
//! κ₃ is at least that of an exponential law, 2 κ₂^1.5: importances of irrelevant features are about squares of chance
//! correlations. To κ₂ the variance of the mean of the feature over blocks is added. The p-value is the upper tail of
//! the Pearson type III law with these cumulants. P-values of several scores are joined by Cauchy's combination (Liu and
//! Xie 2020), which holds whatever their dependence.

use ferrank_data::schema::Kind;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::checked_gamma_ur;

use crate::contribution::Part;
use crate::data::RunData;

/// The least number of blocks that p-values are computed from.
const LEAST_BLOCKS: usize = 10;
/// The scale, in bits, on which entropies are alike.
const BANDWIDTH: f64 = 0.35;
/// The greatest skewness of a law.
const MOST_SKEWED: f64 = 4.0;
/// P-values below are not told apart.
const LEAST: f64 = 1e-15;

/// Whether each feature is relevant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// n_features; the chance that an irrelevant feature with such values is as important.
    pub p_value: Vec<f64>,
    /// n_features; the p-value if the importance were two Monte Carlo errors greater: more trees may bring it there.
    pub least_p_value: Vec<f64>,
}

/// What a verdict about a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Relevant, at a rate of false discoveries.
    Relevant,
    /// No sign of relevance.
    Irrelevant,
    /// Not relevant, but more trees may change that.
    Undecided,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Relevant => "relevant",
            Verdict::Irrelevant => "irrelevant",
            Verdict::Undecided => "undecided",
        }
    }
}

/// What is known about the dependence of the p-values of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Independent or positively dependent (Benjamini and Hochberg 1995).
    Positive,
    /// Any (Benjamini and Yekutieli 2001).
    Any,
}

impl Relevance {
    /// From `p_value` and `least_p_value`, a value for each feature.
    pub fn new(p_value: Vec<f64>, least_p_value: Vec<f64>) -> Self {
        Relevance { p_value, least_p_value }
    }

    /// The p-values of several scores together.
    pub fn joined(parts: &[Relevance]) -> Option<Self> {
        let join = |of: &dyn Fn(&Relevance) -> &[f64]| {
            let n_features = of(parts.first()?).len();
            Some((0..n_features).map(|feature| cauchy(parts.iter().map(|part| of(part)[feature]))).collect())
        };
        Some(Relevance::new(join(&|part| &part.p_value)?, join(&|part| &part.least_p_value)?))
    }

    /// The least rate of false discoveries at which each feature is relevant.
    ///
    /// ```
    /// use ferrank_ranking::relevance::{Dependence, Relevance};
    ///
    /// let p_value = vec![0.01, 0.5, 0.03, 0.02];
    /// let relevance = Relevance::new(p_value.clone(), p_value);
    /// assert_eq!(relevance.q_values(Dependence::Positive), [0.04, 0.5, 0.04, 0.04]);
    /// ```
    pub fn q_values(&self, dependence: Dependence) -> Vec<f64> {
        let n = self.p_value.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| self.p_value[a].total_cmp(&self.p_value[b]));
        let factor = n as f64 * harmonic(n, dependence);
        let (mut q_values, mut least) = (vec![1.0; n], 1.0f64);
        for (place, &feature) in order.iter().enumerate().rev() {
            least = least.min(self.p_value[feature] * factor / (place + 1) as f64);
            q_values[feature] = least;
        }
        q_values
    }

    /// The verdict about each feature, such that at most a share of `rate` of the relevant ones is expected to be false.
    pub fn verdicts(&self, rate: f64, dependence: Dependence) -> Vec<Verdict> {
        let q_values = self.q_values(dependence);
        let n = q_values.len();
        let n_relevant = q_values.iter().filter(|&&q| q <= rate).count();
        // What the next feature needs.
        let threshold = rate * (n_relevant + 1) as f64 / n as f64 / harmonic(n, dependence);
        let verdict = |(q, least): (f64, f64)| match (q <= rate, least <= threshold) {
            (true, _) => Verdict::Relevant,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::Irrelevant,
        };
        q_values.into_iter().zip(self.least_p_value.iter().copied()).map(verdict).collect()
    }
}

fn harmonic(n: usize, dependence: Dependence) -> f64 {
    match dependence {
        Dependence::Positive => 1.0,
        Dependence::Any => (1..=n).map(|i| 1.0 / i as f64).sum(),
    }
}

/// The p-values of one score: vector number `own` of each part has the importances of the features, number `shadow` those
/// of their shadows. Parts with the same `block` are trees that see the same shadows. `None` with fewer than ten complete
/// blocks.
pub fn from_shadows(
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
    let own = Sums::new(&blocks, own, n_features);
    let classes = Classes::new(data);
    let sums = Sums::new(&blocks, shadow, n_features);
    let mut law = Law::new(&classes);
    for block in &blocks {
        let mut powers = vec![[0.0; 3]; n_features];
        let mut present = vec![0.0; n_features];
        for (feature, value) in block.iter().flat_map(|part| part.sums[shadow].entries()) {
            let x = value - sums.mean[feature];
            present[feature] += 1.0;
            powers[feature].iter_mut().zip([x, x * x, x * x * x]).for_each(|(sum, power)| *sum += power);
        }
        for (feature, powers) in powers.iter_mut().enumerate() {
            // Trees that do not use the shadow have an importance of 0.
            let (x, absent) = (-sums.mean[feature], t - present[feature]);
            powers.iter_mut().zip([x, x * x, x * x * x]).for_each(|(sum, power)| *sum += absent * power);
        }
        law.add(&classes, &powers, t);
    }
    let law = law.finish(&classes, n_blocks);
    let p_values = |raised: f64| {
        let p_value = |feature: usize| {
            let Cumulants { second, third, of_mean } = law[classes.of_feature[feature]];
            let monte_carlo = own.variance_of_mean[feature];
            let variance = second + monte_carlo + of_mean;
            let above = own.mean[feature] + raised * monte_carlo.sqrt() - sums.mean[feature];
            if variance <= 0.0 {
                // Neither the feature nor a shadow like it is ever used.
                return if above > 0.0 { LEAST } else { 1.0 };
            }
            let skewness = third.max(2.0 * second.powf(1.5)) / variance.powf(1.5);
            upper_tail(above / variance.sqrt(), skewness.min(MOST_SKEWED)).clamp(LEAST, 1.0)
        };
        (0..n_features).map(p_value).collect()
    };
    Some(Relevance::new(p_values(0.0), p_values(2.0)))
}

/// The p-values of one score whose importances are `own`: `drawn` are the importances of the same features for targets that
/// have nothing to do with them, a vector for each draw; at least two.
///
/// Each feature has a law of its own, with the mean and the variance of its draws and the mean skewness of all features. That
/// mean and variance are of few draws is allowed for as Student's t does.
pub fn from_draws(own: &[f64], drawn: &[&[f64]]) -> Relevance {
    let (n_draws, n_features) = (drawn.len() as f64, own.len());
    let moment = |feature: usize, center: f64, power: i32| {
        drawn.iter().map(|draw| (draw[feature] - center).powi(power)).sum::<f64>()
    };
    let means: Vec<f64> = (0..n_features).map(|feature| moment(feature, 0.0, 1) / n_draws).collect();
    let variances: Vec<f64> =
        (0..n_features).map(|feature| moment(feature, means[feature], 2) / (n_draws - 1.0)).collect();
    let varying = || (0..n_features).filter(|&feature| variances[feature] > 0.0);
    let skewness = |feature: usize| moment(feature, means[feature], 3) / n_draws / variances[feature].powf(1.5);
    let skewness = varying().map(skewness).sum::<f64>() / (varying().count() as f64).max(1.0);
    let student = StudentsT::new(0.0, 1.0, n_draws - 1.0).expect("at least two draws");
    let p_value = |feature: usize| {
        let above = own[feature] - means[feature];
        if variances[feature] <= 0.0 {
            return if above > 0.0 { LEAST } else { 1.0 };
        }
        let z = above / (variances[feature] * (1.0 + 1.0 / n_draws)).sqrt();
        let p = upper_tail(z, skewness.clamp(0.0, MOST_SKEWED)).clamp(LEAST, 1.0 - LEAST);
        student.sf(-Normal::standard().inverse_cdf(p)).clamp(LEAST, 1.0)
    };
    let p_value: Vec<f64> = (0..n_features).map(p_value).collect();
    Relevance::new(p_value.clone(), p_value)
}

/// Means over all trees, and their variances from those of the means of blocks.
struct Sums {
    mean: Vec<f64>,
    variance_of_mean: Vec<f64>,
}

impl Sums {
    fn new(blocks: &[&[Part<'_>]], number: usize, n_features: usize) -> Self {
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
        Sums { mean, variance_of_mean: variance }
    }
}

/// Features with the same kind and entropy.
struct Classes {
    /// n_features
    of_feature: Vec<usize>,
    /// Features of each class.
    sizes: Vec<f64>,
    /// n_classes x n_classes; how much the features of another class count for those of a class, summing to 1.
    weights: Vec<Vec<f64>>,
}

impl Classes {
    fn new(data: &RunData) -> Self {
        let key = |(column, entropy): (&crate::data::Column, &f64)| (column.kind == Kind::Nominal, *entropy);
        let keys: Vec<(bool, f64)> = data.features.iter().zip(&data.entropies).map(key).collect();
        let mut distinct = keys.clone();
        let order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        distinct.sort_by(order);
        distinct.dedup();
        let place = |key: &(bool, f64)| distinct.partition_point(|other| order(other, key).is_lt());
        let of_feature: Vec<usize> = keys.iter().map(place).collect();
        let mut sizes = vec![0.0; distinct.len()];
        of_feature.iter().for_each(|&class| sizes[class] += 1.0);
        let weigh = |&(kind, entropy): &(bool, f64)| {
            let weight = |(&(other_kind, other), &size): (&(bool, f64), &f64)| {
                let distance = (entropy - other) / BANDWIDTH;
                if kind == other_kind { size * (-0.5 * distance * distance).exp() } else { 0.0 }
            };
            let weights: Vec<f64> = distinct.iter().zip(&sizes).map(weight).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        };
        let weights = distinct.iter().map(weigh).collect();
        Classes { of_feature, sizes, weights }
    }

    /// The means over the features of each class.
    fn means(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.sizes.len()];
        self.of_feature.iter().zip(values).for_each(|(&class, value)| sums[class] += value);
        sums.iter().zip(&self.sizes).map(|(sum, size)| sum / size).collect()
    }

    /// The weighted means over classes like each.
    fn pooled(&self, of_class: &[f64]) -> Vec<f64> {
        let pool = |weights: &Vec<f64>| weights.iter().zip(of_class).map(|(weight, value)| weight * value).sum();
        self.weights.iter().map(pool).collect()
    }
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
        let n_classes = classes.sizes.len();
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
        (0..classes.sizes.len()).map(cumulants).collect()
    }
}

/// The upper tail of the Pearson type III law with mean 0, variance 1 and `skewness`, which is not negative, at `z`.
fn upper_tail(z: f64, skewness: f64) -> f64 {
    if skewness < 1e-3 {
        return Normal::standard().sf(z);
    }
    // A gamma variable with shape 4 / skewness², shifted and scaled.
    let x = 2.0 / skewness * (z + 2.0 / skewness);
    if x <= 0.0 { 1.0 } else { checked_gamma_ur(4.0 / (skewness * skewness), x).unwrap_or(1.0) }
}

/// Cauchy's combination of p-values.
fn cauchy(p_values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = p_values.clone().count() as f64;
    // The cotangent; p-values near 1 would outweigh all others.
    let sum: f64 = p_values.map(|p| 1.0 / (std::f64::consts::PI * p.clamp(LEAST, 0.999)).tan()).sum();
    let p = f64::atan2(1.0, sum / n) / std::f64::consts::PI;
    p.clamp(LEAST, 1.0)
}
