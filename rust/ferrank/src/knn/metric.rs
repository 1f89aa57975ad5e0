//! How far two rows are apart: by feature, squared, and weighted.
//!
//! A numeric value is its place in [0, 1], a nominal one the number of its category, a missing one NaN. A
//! nominal feature of two categories is a numeric one, as are its differences.

use super::params::Conventions;
use ferrank_data::profile::{ColumnProfile, NominalProfile};
use ferrank_neighbors::space::Scale;

/// A feature, for all rankings.
#[derive(Debug)]
pub(crate) struct Feature {
    pub(crate) shape: Shape,
    /// What becomes of missing values; `None` where no row misses one.
    pub(crate) unknown: Option<Unknown>,
}

/// What kind of difference a feature makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing.
    Constant,
    /// |a − b|
    Numeric,
    /// a ≠ b, between more than two categories.
    Nominal,
}

/// What a missing value differs by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unknown {
    /// As much as it can.
    Most,
    /// As is expected of a number with this mean and variance.
    Number { mean: f64, variance: f64 },
    /// As is expected of a category that is each with this probability; and two unknown ones.
    Category { shares: Vec<f64>, both: f64 },
}

impl Unknown {
    /// From the known ones among a column's training `values`; nothing known is as far away as it can be.
    pub(crate) fn of(
        values: impl Iterator<Item = f64> + Clone,
        shape: Shape,
        n_categories: usize,
        how: Conventions,
    ) -> Self {
        let known = values.filter(|value| !value.is_nan());
        let count = known.clone().count() as f64;
        if how == Conventions::Clus || count == 0.0 {
            return Unknown::Most;
        }
        if shape == Shape::Nominal {
            let mut shares = vec![0.0; n_categories];
            known.for_each(|value| shares[value as usize] += 1.0);
            shares.iter_mut().for_each(|share| *share /= count);
            let both = shares.iter().map(|share| share * share).sum();
            return Unknown::Category { shares, both };
        }
        let mean = known.clone().sum::<f64>() / count;
        let variance = known.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Unknown::Number { mean, variance }
    }

    /// The square of the difference from a known `value`.
    fn one(&self, value: f64, shape: Shape) -> f64 {
        match self {
            Unknown::Most if shape == Shape::Nominal => 1.0,
            Unknown::Most => value.max(1.0 - value).powi(2),
            Unknown::Number { mean, variance } => (value - mean).powi(2) + variance,
            Unknown::Category { shares, .. } => 1.0 - shares[value as usize],
        }
    }

    /// The square of the difference between two unknown values.
    fn two(&self) -> f64 {
        match self {
            Unknown::Most => 1.0,
            Unknown::Number { variance, .. } => 2.0 * variance,
            Unknown::Category { both, .. } => 1.0 - both,
        }
    }
}

impl Feature {
    /// The square of the difference between two values.
    pub(crate) fn difference(&self, x: f64, y: f64) -> f64 {
        match (&self.unknown, x.is_nan(), y.is_nan()) {
            (Some(unknown), true, true) => unknown.two(),
            (Some(unknown), true, false) => unknown.one(y, self.shape),
            (Some(unknown), false, true) => unknown.one(x, self.shape),
            _ => match self.shape {
                Shape::Constant => 0.0,
                Shape::Numeric => (x - y).powi(2),
                Shape::Nominal => f64::from(x != y),
            },
        }
    }
}

/// The features that weigh something under a ranking.
#[derive(Debug)]
pub(crate) struct Metric<'a> {
    /// Ascending; number, weight and feature. The weights of all features sum up to 1.
    pub(crate) terms: Vec<(usize, f64, &'a Feature)>,
    /// True if all of them are numeric and no row misses one.
    plain: bool,
}

impl<'a> Metric<'a> {
    pub(crate) fn new(features: &'a [Feature], importances: &[f64]) -> Self {
        let largest = importances.iter().copied().fold(0.0, f64::max);
        // Over the largest first: sums of importances may overflow, and shares of tiny ones be lost.
        let share = |importance: f64| if largest > 0.0 { importance.max(0.0) / largest } else { 1.0 };
        let total: f64 = importances.iter().map(|&importance| share(importance)).sum();
        let terms: Vec<(usize, f64, &Feature)> = (features.iter().zip(importances).enumerate())
            .map(|(number, (feature, &importance))| (number, share(importance) / total, feature))
            .filter(|(_, weight, feature)| *weight > 0.0 && feature.shape != Shape::Constant)
            .collect();
        let plain = terms.iter().all(|(_, _, feature)| feature.shape == Shape::Numeric && feature.unknown.is_none());
        Metric { terms, plain }
    }

    /// The distance of two rows, squared; summed up in the order of features.
    pub(crate) fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let mut sum = 0.0;
        if self.plain {
            for &(number, weight, _) in &self.terms {
                let apart = a[number] - b[number];
                sum += weight * (apart * apart);
            }
        } else {
            for (number, weight, feature) in &self.terms {
                sum += weight * feature.difference(a[*number], b[*number]);
            }
        }
        sum
    }
}

/// The scale of a feature on both sources.
pub(crate) fn scale(train: &ColumnProfile, test: &ColumnProfile, how: Conventions) -> Scale {
    match (train, test) {
        (ColumnProfile::Numeric(train), ColumnProfile::Numeric(test)) => {
            let (low, high) = match how {
                Conventions::Textbook => (train.min, train.max),
                Conventions::Clus => (train.min.min(test.min), train.max.max(test.max)),
            };
            if low < high { Scale::Numeric { low, high } } else { Scale::Constant }
        }
        (ColumnProfile::Nominal(train), ColumnProfile::Nominal(test)) => {
            Scale::from_profile(&ColumnProfile::Nominal(union(train, test)))
        }
        _ => unreachable!("a feature is of one kind in both sources"),
    }
}

/// The categories of both.
pub(crate) fn union(train: &NominalProfile, test: &NominalProfile) -> NominalProfile {
    let mut both = train.clone();
    test.counts.iter().for_each(|(name, count)| *both.counts.entry(name.clone()).or_default() += count);
    both.missing += test.missing;
    both
}
