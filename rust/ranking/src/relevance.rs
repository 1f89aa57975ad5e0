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
//! squares of chance correlations. To κ₂ the variance of the mean of the feature over blocks is added. The p-value is the upper tail of
//! the Pearson type III law with these cumulants. P-values of several scores are joined by Cauchy's combination (Liu and
//! Xie 2020), which holds whatever their dependence.

use ferrank_data::schema::Kind;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::{checked_gamma_ur, ln_gamma};

use crate::contribution::Part;
use crate::data::RunData;

/// The least number of blocks that p-values are computed from.
const LEAST_BLOCKS: usize = 10;
/// The scale, in bits, on which entropies are alike.
const BANDWIDTH: f64 = 0.35;
/// The greatest skewness of a law.
const MOST_SKEWED: f64 = 6.0;
/// The logarithm of a p-value that is 0: above every other importance.
const IMPOSSIBLE: f64 = -1e6;
/// P-values near 1 would outweigh all others in Cauchy's combination.
const MOST: f64 = 0.999;

/// Whether each feature is relevant.
///
/// ```
/// use ferrank_ranking::relevance::Relevance;
///
/// let relevance = Relevance::new(vec![6.0, 1.0], vec![9.0, 3.0]);
/// assert_eq!(relevance.p_values(), [1e-6, 0.1]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// n_features; −log₁₀ of the p-value, the chance that an irrelevant feature with such values is as important.
    /// P-values of strong features are too small for f64.
    pub evidence: Vec<f64>,
    /// n_features; the evidence if the importance were two Monte Carlo errors greater: more trees may bring it there.
    pub most_evidence: Vec<f64>,
}

/// What a verdict about a feature is.
///
/// ```
/// use ferrank_ranking::relevance::{Dependence, Relevance, Verdict};
///
/// let relevance = Relevance::new(vec![6.0, 0.4, 1.5], vec![9.0, 0.7, 3.0]);
/// let verdicts = relevance.verdicts(0.01, Dependence::Positive);
/// assert_eq!(verdicts, [Verdict::Relevant, Verdict::Irrelevant, Verdict::Undecided]);
/// ```
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
///
/// ```
/// use ferrank_ranking::relevance::{Dependence, Relevance};
///
/// let relevance = Relevance::new(vec![6.0, 1.0], vec![9.0, 3.0]);
/// let [positive, any] = [Dependence::Positive, Dependence::Any].map(|dependence| relevance.q_values(dependence));
/// assert!(positive[0] < any[0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Independent or positively dependent (Benjamini and Hochberg 1995).
    Positive,
    /// Any (Benjamini and Yekutieli 2001).
    Any,
}

impl Relevance {
    /// From `evidence` and `most_evidence`, a value for each feature.
    pub fn new(evidence: Vec<f64>, most_evidence: Vec<f64>) -> Self {
        Relevance { evidence, most_evidence }
    }

    /// From natural logarithms of p-values.
    fn from_ln(p_value: impl Iterator<Item = f64>, least_p_value: impl Iterator<Item = f64>) -> Self {
        let evidence = |ln: f64| (-ln / std::f64::consts::LN_10).max(0.0);
        Relevance::new(p_value.map(evidence).collect(), least_p_value.map(evidence).collect())
    }

    /// The evidence of several p-values together, by Cauchy's combination; `None` without any.
    pub fn joined(parts: &[Relevance]) -> Option<Self> {
        let n_features = parts.first()?.evidence.len();
        let join = |of: fn(&Relevance) -> &Vec<f64>| {
            (0..n_features).map(move |feature| {
                ln_cauchy(parts.iter().map(|part| -of(part)[feature] * std::f64::consts::LN_10).collect())
            })
        };
        Some(Relevance::from_ln(join(|part| &part.evidence), join(|part| &part.most_evidence)))
    }

    /// The p-values, n_features.
    pub fn p_values(&self) -> Vec<f64> {
        self.evidence.iter().map(|evidence| 10f64.powf(-evidence)).collect()
    }

    /// The least rate of false discoveries at which each feature is relevant.
    ///
    /// ```
    /// use ferrank_ranking::relevance::{Dependence, Relevance};
    ///
    /// let evidence: Vec<f64> = [0.01f64, 0.5, 0.03, 0.02].map(|p| -p.log10()).into();
    /// let q_values = Relevance::new(evidence.clone(), evidence).q_values(Dependence::Positive);
    /// assert!(q_values.iter().zip([0.04, 0.5, 0.04, 0.04]).all(|(found, expected)| (found - expected).abs() < 1e-12));
    /// ```
    pub fn q_values(&self, dependence: Dependence) -> Vec<f64> {
        let (n, p_values) = (self.evidence.len(), self.p_values());
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let factor = n as f64 * harmonic(n, dependence);
        let (mut q_values, mut least) = (vec![1.0; n], 1.0f64);
        for (place, &feature) in order.iter().enumerate().rev() {
            least = least.min(p_values[feature] * factor / (place + 1) as f64);
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
        let threshold = -(rate * (n_relevant + 1) as f64 / n as f64 / harmonic(n, dependence)).log10();
        let verdict = |(q, most): (f64, f64)| match (q <= rate, most >= threshold) {
            (true, _) => Verdict::Relevant,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::Irrelevant,
        };
        q_values.into_iter().zip(self.most_evidence.iter().copied()).map(verdict).collect()
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
        let (law, own, sums, classes) = (&law, &own, &sums, &classes);
        let p_value = move |feature: usize| {
            let Cumulants { second, third, of_mean } = law[classes.of_feature[feature]];
            let monte_carlo = own.variance_of_mean[feature];
            let variance = second + monte_carlo + of_mean;
            let above = own.mean[feature] + raised * monte_carlo.sqrt() - sums.mean[feature];
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
    let freedom = n_draws - 1.0;
    let p_value = |feature: usize| {
        let above = own[feature] - means[feature];
        if variances[feature] <= 0.0 {
            return if above > 0.0 { IMPOSSIBLE } else { 0.0 };
        }
        let t = above / (variances[feature] * (1.0 + 1.0 / n_draws)).sqrt();
        // The normal value with the tail of Student's t (Wallace 1959).
        let z = (freedom * (t * t / freedom).ln_1p()).sqrt() * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
        ln_upper_tail(z.copysign(t), skewness.clamp(0.0, MOST_SKEWED))
    };
    let Relevance { evidence, .. } = Relevance::from_ln((0..n_features).map(p_value), std::iter::empty());
    Relevance::new(evidence.clone(), evidence)
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

/// The logarithm of the upper tail at `z` of the Pearson type III law with mean 0, variance 1 and `skewness`, which is not
/// negative.
fn ln_upper_tail(z: f64, skewness: f64) -> f64 {
    if skewness < 1e-2 {
        // The asymptotic series (Abramowitz and Stegun 1964, 26.2.12) errs by less than 1e-6 here.
        let series = || (1.0 - 1.0 / (z * z) + 3.0 / z.powi(4) - 15.0 / z.powi(6)).ln();
        return match z > 20.0 {
            true => -0.5 * z * z - (z * std::f64::consts::TAU.sqrt()).ln() + series(),
            false => Normal::standard().sf(z).ln(),
        };
    }
    // A gamma variable of this shape, shifted and scaled.
    let (shape, x) = (4.0 / (skewness * skewness), 2.0 / skewness * (z + 2.0 / skewness));
    match checked_gamma_ur(shape, x.max(f64::MIN_POSITIVE)) {
        _ if x <= 0.0 => 0.0,
        Ok(tail) if tail > 1e-200 => tail.ln().min(0.0),
        // Far above the shape, Q(a, x) is about x^(a − 1) e^(−x) / Γ(a), times 1 + (a − 1) / x + …
        _ => (shape - 1.0) * x.ln() - x - ln_gamma(shape) - (-(shape - 1.0) / x).ln_1p(),
    }
}

/// Cauchy's combination of p-values, given and returned as logarithms.
fn ln_cauchy(p_values: Vec<f64>) -> f64 {
    let n = p_values.len() as f64;
    let least = p_values.iter().copied().fold(0.0, f64::min);
    if least < -30.0 {
        // The cotangent of π p is 1 / π p.
        let sum: f64 = p_values.iter().map(|p| (least - p).exp()).sum();
        return (n.ln() + least - sum.ln()).min(0.0);
    }
    let cotangent = |p: &f64| 1.0 / (std::f64::consts::PI * p.exp().min(MOST)).tan();
    let mean = p_values.iter().map(cotangent).sum::<f64>() / n;
    (f64::atan2(1.0, mean) / std::f64::consts::PI).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables_and_go_on_beyond_f64() {
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-5, "{found}, {expected}");
        // Of the exponential law, with skewness 2, e^(−1 − z).
        for z in [0.0, 3.0, 40.0, 400.0, 1e5] {
            close(ln_upper_tail(z, 2.0), -1.0 - z);
        }
        // Of the χ² law with one degree of freedom: 3.841459 has mean 1 and variance 2 to lose.
        close(ln_upper_tail(2.841459 / 2f64.sqrt(), 8f64.sqrt()), 0.05f64.ln());
        close(ln_upper_tail(1.959964, 0.0), 0.025f64.ln());
        close(ln_upper_tail(19.99, 0.0), ln_upper_tail(20.01, 0.0) + 0.02 * 20.05);
        assert_eq!(ln_upper_tail(-5.0, 2.0), 0.0);
        for skewness in [0.005, 0.02, 0.3, 1.0, 4.0] {
            let tails: Vec<f64> = (-30..2_000).map(|z| ln_upper_tail(f64::from(z) / 4.0, skewness)).collect();
            assert!(tails.is_sorted_by(|a, b| a >= b), "{skewness}");
            assert!(tails.iter().all(|tail| tail.is_finite()), "{skewness}");
        }
    }

    #[test]
    fn equal_p_values_stay_what_they_are_and_one_that_is_small_suffices() {
        for p in [0.3f64, 1e-3, 1e-12, 1e-15] {
            assert!((ln_cauchy(vec![p.ln(); 3]) - p.ln()).abs() < 1e-9, "{p}");
        }
        assert!((ln_cauchy(vec![1e-10f64.ln(), 0.5f64.ln()]) - 2e-10f64.ln()).abs() < 1e-6);
        assert!((ln_cauchy(vec![-900.0, -2.0]) - (2f64.ln() - 900.0)).abs() < 1e-9);
    }

    #[test]
    fn what_more_trees_may_bring_is_undecided() {
        let evidence = |p: [f64; 4]| p.map(|p| -p.log10()).to_vec();
        let relevance = Relevance::new(evidence([1e-6, 0.15, 0.15, 0.9]), evidence([1e-7, 0.04, 0.3, 0.5]));
        let verdicts = relevance.verdicts(0.1, Dependence::Positive);
        assert_eq!(
            verdicts.iter().map(|verdict| verdict.name()).collect::<Vec<_>>(),
            ["relevant", "undecided", "irrelevant", "irrelevant"]
        );
    }

    #[test]
    fn any_dependence_takes_the_harmonic_sum() {
        let evidence = vec![2.0, 0.3];
        let relevance = Relevance::new(evidence.clone(), evidence);
        let [positive, any] = [Dependence::Positive, Dependence::Any].map(|it| relevance.q_values(it)[0]);
        assert!((any / positive - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_feature_above_all_draws_is_relevant_and_one_among_them_is_not() {
        let drawn: Vec<Vec<f64>> = (0..60).map(|draw| vec![f64::from(draw * 37 % 60) / 60.0; 3]).collect();
        let drawn: Vec<&[f64]> = drawn.iter().map(|draw| &draw[..]).collect();
        let p = from_draws(&[0.5, 3.0, -1.0], &drawn).p_values();
        assert!((p[0] - 0.5).abs() < 0.05 && p[1] < 1e-6 && p[2] > 0.99, "{p:?}");
    }
}
