//! Features with like values: their shadows have about the same law.
//!
//! Values are alike if they have about the same entropy. That is not enough where rows come in groups: a feature that is
//! constant within groups has far fewer independent values than another with the same entropy, and its shadows vary 400
//! times as much. Features are then alike if the importances of their shadows vary about as much, too. The variance of a shadow
//! that trees rarely use is not known well enough; such features are alike by their entropy.

use std::cmp::Ordering;

use ferrank_data::schema::Kind;

use crate::data::{Column, RunData};

/// The scale, in bits, on which entropies are alike.
const BANDWIDTH: f64 = 0.35;
/// The steps, in bits, that entropies are rounded to, so that there are at most some hundred classes.
const STEP: f64 = BANDWIDTH / 8.0;

/// The scale on which natural logarithms of variances are alike. From 40 blocks they have errors of 0.3 to 0.6, which a
/// scale of this size mostly averages out.
const VARIANCE_BANDWIDTH: f64 = 1.5;
/// The steps that logarithms of variances are rounded to.
const VARIANCE_STEP: f64 = VARIANCE_BANDWIDTH / 6.0;

/// What features of a class have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Likeness {
    pub(super) nominal: bool,
    /// In bits.
    pub(super) entropy: f64,
    /// Of the importance of the shadow, the natural logarithm; `None` if it is not known well.
    pub(super) ln_variance: Option<f64>,
}

impl Likeness {
    fn rounded(self) -> Self {
        let round = |value: f64, step: f64| (value / step).round() * step;
        let ln_variance = self.ln_variance.map(|value| round(value, VARIANCE_STEP));
        Likeness { entropy: round(self.entropy, STEP), ln_variance, ..self }
    }

    fn order(&self, other: &Likeness) -> Ordering {
        let variance = |likeness: &Likeness| likeness.ln_variance.unwrap_or(f64::NEG_INFINITY);
        let by_entropy = || self.entropy.total_cmp(&other.entropy);
        let by_variance = || variance(self).total_cmp(&variance(other));
        self.nominal.cmp(&other.nominal).then_with(by_entropy).then_with(by_variance)
    }

    /// How much a feature like `other` counts for one like this.
    fn weight(&self, other: &Likeness) -> f64 {
        let near = |distance: f64, bandwidth: f64| (-0.5 * (distance / bandwidth).powi(2)).exp();
        let of_variance = match (self.ln_variance, other.ln_variance) {
            (None, _) => 1.0,
            (Some(_), None) => 0.0,
            (Some(own), Some(other)) => near(own - other, VARIANCE_BANDWIDTH),
        };
        let of_kind = f64::from(self.nominal == other.nominal);
        of_kind * near(self.entropy - other.entropy, BANDWIDTH) * of_variance
    }
}

/// Features that are about alike.
#[derive(Debug)]
pub(super) struct Classes {
    /// n_features
    pub(super) of_feature: Vec<usize>,
    /// Features of each class.
    sizes: Vec<f64>,
    /// n_classes x n_classes; how much the features of another class count for those of a class, summing to 1.
    weights: Vec<Vec<f64>>,
}

impl Classes {
    /// Of the features of `data`, whose shadows have importances with these logarithms of variances, n_features; if they
    /// are known.
    pub(super) fn new(data: &RunData, ln_variances: Option<&[Option<f64>]>) -> Self {
        let likeness = |(number, (column, &entropy)): (usize, (&Column, &f64))| Likeness {
            nominal: column.kind == Kind::Nominal,
            entropy,
            ln_variance: ln_variances.and_then(|variances| variances[number]),
        };
        Classes::of(data.features.iter().zip(&data.entropies).enumerate().map(likeness))
    }

    pub(super) fn of(features: impl Iterator<Item = Likeness>) -> Self {
        let keys: Vec<Likeness> = features.map(Likeness::rounded).collect();
        let mut distinct = keys.clone();
        distinct.sort_by(Likeness::order);
        distinct.dedup();
        let place = |key: &Likeness| distinct.partition_point(|other| other.order(key).is_lt());
        let of_feature: Vec<usize> = keys.iter().map(place).collect();
        let mut sizes = vec![0.0; distinct.len()];
        of_feature.iter().for_each(|&class| sizes[class] += 1.0);
        let weigh = |own: &Likeness| {
            let weights: Vec<f64> = distinct.iter().zip(&sizes).map(|(other, size)| size * own.weight(other)).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        };
        let weights = distinct.iter().map(weigh).collect();
        Classes { of_feature, sizes, weights }
    }

    /// The means over the features of each class.
    pub(super) fn means(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.sizes.len()];
        self.of_feature.iter().zip(values).for_each(|(&class, value)| sums[class] += value);
        sums.iter().zip(&self.sizes).map(|(sum, size)| sum / size).collect()
    }

    /// The weighted means over classes like each.
    pub(super) fn pooled(&self, of_class: &[f64]) -> Vec<f64> {
        let pool = |weights: &Vec<f64>| weights.iter().zip(of_class).map(|(weight, value)| weight * value).sum();
        self.weights.iter().map(pool).collect()
    }

    /// The mean over all features.
    pub(super) fn mean(&self, of_class: &[f64]) -> f64 {
        let n_features = self.of_feature.len() as f64;
        of_class.iter().zip(&self.sizes).map(|(value, size)| value * size).sum::<f64>() / n_features
    }

    /// Features of each class.
    pub(super) fn sizes(&self) -> &[f64] {
        &self.sizes
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// For each class the number of features whose plain mean is as exact as the weighted mean over classes like it.
    pub(super) fn effective_sizes(&self) -> Vec<f64> {
        let squares = |weights: &Vec<f64>| weights.iter().zip(&self.sizes).map(|(w, size)| w * w / size).sum::<f64>();
        self.weights.iter().map(|weights| 1.0 / squares(weights)).collect()
    }
}
