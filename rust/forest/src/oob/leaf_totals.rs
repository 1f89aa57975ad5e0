//! The totals of the targets in a node, from which predictions follow.

use super::targets::Targets;
use ferrank_data::profile::MISSING_U16;

/// The totals of the targets over the rows of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeafTotals {
    /// n_numeric; weighted sum and weight of the known values.
    numeric: Vec<(f64, f64)>,
    /// n_nominal x n_classes; the weight of each class.
    nominal: Vec<Vec<f64>>,
    /// n_sets; the weight of each label, and the weight of the known sets.
    sets: Vec<(Vec<f64>, f64)>,
}

impl LeafTotals {
    pub(crate) fn new(targets: &Targets<'_>) -> Self {
        LeafTotals {
            numeric: vec![(0.0, 0.0); targets.numeric.len()],
            nominal: targets.nominal.iter().map(|(_, classes)| vec![0.0; *classes]).collect(),
            sets: targets.sets.iter().map(|sets| (vec![0.0; sets.shares.len()], 0.0)).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numeric.is_empty() && self.nominal.is_empty() && self.sets.is_empty()
    }

    /// Adds `count` copies of `row`. Rows must be added in ascending order.
    pub(crate) fn add(&mut self, targets: &Targets<'_>, row: usize, count: u32) {
        let weight = f64::from(count) * targets.weight(row);
        for ((sum, total), y) in self.numeric.iter_mut().zip(&targets.numeric) {
            let value = y.at(row);
            if !value.is_nan() {
                *sum += weight * value;
                *total += weight;
            }
        }
        for (weights, (codes, _)) in self.nominal.iter_mut().zip(&targets.nominal) {
            if codes[row] != MISSING_U16 {
                weights[usize::from(codes[row])] += weight;
            }
        }
        for ((weights, total), sets) in self.sets.iter_mut().zip(&targets.sets) {
            if let Some(set) = sets.labels.of(row) {
                set.iter().for_each(|&label| weights[label as usize] += weight);
                *total += weight;
            }
        }
    }

    /// Adds the totals of the rows of another node.
    pub(super) fn merge(&mut self, other: &LeafTotals) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        for ((sum, total), other) in self.numeric.iter_mut().zip(&other.numeric) {
            *sum += other.0;
            *total += other.1;
        }
        self.nominal.iter_mut().zip(&other.nominal).for_each(|(to, from)| add(to, from));
        for ((weights, total), other) in self.sets.iter_mut().zip(&other.sets) {
            add(weights, &other.0);
            *total += other.1;
        }
    }

    /// The mean of a numeric target.
    pub(super) fn mean(&self, number: usize) -> Option<f64> {
        let (sum, total) = self.numeric[number];
        (total > 0.0).then(|| sum / total)
    }

    /// The most frequent class of a nominal target.
    pub(super) fn class(&self, number: usize) -> Option<u16> {
        let weights = &self.nominal[number];
        let most = weights.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then(|| weights.iter().position(|&weight| weight == most))?.map(|class| class as u16)
    }

    /// The share of a class of a nominal target.
    pub(super) fn class_share(&self, number: usize, class: u16) -> Option<f64> {
        let weights = &self.nominal[number];
        let total: f64 = weights.iter().sum();
        (total > 0.0).then(|| weights.get(usize::from(class)).copied().unwrap_or(0.0) / total)
    }

    /// The share of each label that some rows have.
    pub(super) fn label_shares(&self, number: usize) -> Option<Vec<(u32, f64)>> {
        let (weights, total) = &self.sets[number];
        let share = |(label, weight): (u32, &f64)| (*weight > 0.0).then(|| (label, weight / total));
        (*total > 0.0).then(|| (0..).zip(weights).filter_map(share).collect())
    }

    /// The labels that more than half of the rows have, by weight.
    pub(super) fn set(&self, number: usize) -> Option<Vec<u32>> {
        let (weights, total) = &self.sets[number];
        let most = |(label, weight): (u32, &f64)| (*weight > total / 2.0).then_some(label);
        (*total > 0.0).then(|| (0..).zip(weights).filter_map(most).collect())
    }
}
