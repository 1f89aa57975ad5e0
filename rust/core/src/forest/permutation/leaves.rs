//! What leaves predict: the mean, the most frequent class, the labels that most members have.

use super::targets::{Numeric, Targets};
use crate::forest::bag::Bag;
use crate::forest::grown::Grown;
use crate::labels::LabelColumn;
use crate::profile::MISSING_U16;

/// What each leaf predicts: the mean, the most frequent class (the first of equals), and the labels that more
/// than half of its members have, so with each label those above it.
pub(super) struct Leaves {
    n_numeric: usize,
    n_nominal: usize,
    n_sets: usize,
    /// n_leaves x n_numeric
    means: Vec<f64>,
    /// n_leaves x n_nominal
    classes: Vec<u16>,
    /// n_leaves x n_sets; ascending labels.
    sets: Vec<Vec<u32>>,
}

/// One leaf's predictions.
#[derive(Clone, Copy)]
pub(super) struct Prediction<'a> {
    pub(super) means: &'a [f64],
    pub(super) classes: &'a [u16],
    pub(super) sets: &'a [Vec<u32>],
}

impl Leaves {
    pub(super) fn new(targets: &Targets<'_>, tree: &Grown, bag: &Bag) -> Self {
        let (n_numeric, n_nominal, n_sets) = (targets.numeric.len(), targets.nominal.len(), targets.sets.len());
        let (means, classes, sets) = (Vec::new(), Vec::new(), Vec::new());
        let mut leaves = Leaves { n_numeric, n_nominal, n_sets, means, classes, sets };
        let everyone: Vec<(u32, u32)> = bag.rows.iter().copied().zip(bag.counts.iter().copied()).collect();
        let means: Vec<f64> = targets.numeric.iter().map(|y| mean(y, targets, &everyone).unwrap_or(0.0)).collect();
        let mut counts = vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)];
        let classes: Vec<u16> =
            targets.nominal.iter().map(|(y, _)| majority(y, targets, &everyone, &mut counts).unwrap_or(0)).collect();
        let n_labels = targets.sets.iter().map(|sets| sets.shares.len()).max().unwrap_or(0);
        let mut weights = vec![0.0; n_labels];
        let sets: Vec<Vec<u32>> = (targets.sets.iter())
            .map(|sets| most_have(sets.labels, targets, &everyone, &mut weights).unwrap_or_default())
            .collect();
        for members in tree.leaf_members() {
            for (y, whole) in targets.numeric.iter().zip(&means) {
                leaves.means.push(mean(y, targets, members).unwrap_or(*whole));
            }
            for ((y, _), whole) in targets.nominal.iter().zip(&classes) {
                leaves.classes.push(majority(y, targets, members, &mut counts).unwrap_or(*whole));
            }
            for (y, whole) in targets.sets.iter().zip(&sets) {
                let set = most_have(y.labels, targets, members, &mut weights);
                leaves.sets.push(set.unwrap_or_else(|| whole.clone()));
            }
        }
        leaves
    }

    pub(super) fn of(&self, leaf: u32) -> Prediction<'_> {
        let leaf = leaf as usize;
        Prediction {
            means: &self.means[leaf * self.n_numeric..(leaf + 1) * self.n_numeric],
            classes: &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal],
            sets: &self.sets[leaf * self.n_sets..(leaf + 1) * self.n_sets],
        }
    }
}

/// Weighted mean over the members whose value is known.
pub(super) fn mean(values: &Numeric<'_>, targets: &Targets<'_>, members: &[(u32, u32)]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for &(row, count) in members {
        let value = values.at(row as usize);
        if !value.is_nan() {
            let weight = f64::from(count) * targets.weight(row as usize);
            sum += weight * value;
            total += weight;
        }
    }
    (total > 0.0).then(|| sum / total)
}

/// The class of most weight among the members whose class is known; `counts` is scratch of zeros.
fn majority(codes: &[u16], targets: &Targets<'_>, members: &[(u32, u32)], counts: &mut [f64]) -> Option<u16> {
    let mut best: Option<(f64, u16)> = None;
    for &(row, count) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            counts[usize::from(code)] += f64::from(count) * targets.weight(row as usize);
        }
    }
    for &(row, _) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            let weight = std::mem::take(&mut counts[usize::from(code)]);
            if best.is_none_or(|(most, first)| weight > most || (weight == most && code < first)) {
                best = Some((weight, code));
            }
        }
    }
    best.map(|(_, code)| code)
}

/// The labels that more than half of the members have, by weight, of those whose labels are known;
/// `weights` is scratch of zeros.
fn most_have(
    labels: &LabelColumn,
    targets: &Targets<'_>,
    members: &[(u32, u32)],
    weights: &mut [f64],
) -> Option<Vec<u32>> {
    let (mut found, mut total) = (Vec::new(), 0.0);
    for &(row, count) in members {
        if let Some(set) = labels.of(row as usize) {
            let weight = f64::from(count) * targets.weight(row as usize);
            total += weight;
            for &label in set {
                if weights[label as usize] == 0.0 {
                    found.push(label);
                }
                weights[label as usize] += weight;
            }
        }
    }
    found.sort_unstable();
    found.retain(|&label| std::mem::take(&mut weights[label as usize]) > total / 2.0);
    (total > 0.0).then_some(found)
}
