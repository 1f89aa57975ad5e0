//! Features with like values: their shadows have about the same law.

use ferrank_data::schema::Kind;

use crate::data::{Column, RunData};

/// The scale, in bits, on which entropies are alike.
const BANDWIDTH: f64 = 0.35;
/// The steps, in bits, that entropies are rounded to, so that there are at most some hundred classes.
const STEP: f64 = BANDWIDTH / 8.0;

/// Features with the same kind and about the same entropy.
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
    pub(super) fn new(data: &RunData) -> Self {
        let key = |(column, entropy): (&Column, &f64)| (column.kind == Kind::Nominal, *entropy);
        Classes::of(data.features.iter().zip(&data.entropies).map(key))
    }

    /// Of features with these entropies, nominal or not.
    pub(super) fn of(features: impl Iterator<Item = (bool, f64)>) -> Self {
        let keys: Vec<(bool, f64)> =
            features.map(|(nominal, entropy)| (nominal, (entropy / STEP).round() * STEP)).collect();
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
