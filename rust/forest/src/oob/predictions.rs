//! Predictions of leaves: the mean, the most frequent class, the labels that most members have.
//!
//! A leaf without a known value among its members predicts what the nearest node above it with known values does. The sums of a node are those of its children, left and right, so that they are the same numbers
//! however the tree was put together.

use std::ops::Range;

use super::targets::{Numeric, Targets};
use crate::tree_buffer::TreeBuffer;
use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::MISSING_U16;

/// What is predicted for the rows of a node, row by row.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeafTotals {
    /// n_numeric; weighted sum and weight of the values that are known.
    numeric: Vec<(f64, f64)>,
    /// n_nominal; weight by class.
    nominal: Vec<Vec<f64>>,
    /// n_sets; weight by label, and that of the sets that are known.
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

    /// Adds `count` copies of `row`; rows come in ascending order.
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

    /// Adds the sums of other rows.
    fn merge(&mut self, other: &LeafTotals) {
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

    /// Mean of a numeric target.
    fn mean(&self, number: usize) -> Option<f64> {
        let (sum, total) = self.numeric[number];
        (total > 0.0).then(|| sum / total)
    }

    /// Most frequent class of a nominal target.
    fn class(&self, number: usize) -> Option<u16> {
        let weights = &self.nominal[number];
        let most = weights.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then(|| weights.iter().position(|&weight| weight == most))?.map(|class| class as u16)
    }

    /// Labels of most, of a target with label sets.
    fn set(&self, number: usize) -> Option<Vec<u32>> {
        let (weights, total) = &self.sets[number];
        let most = |(label, weight): (u32, &f64)| (*weight > total / 2.0).then_some(label);
        (*total > 0.0).then(|| (0..).zip(weights).filter_map(most).collect())
    }
}

/// What each leaf predicts: the mean, the most frequent class (the first of equals), and the labels that more
/// than half of its members have, so with each label those above it.
pub(crate) struct LeafPredictions {
    n_numeric: usize,
    n_nominal: usize,
    n_sets: usize,
    /// n_leaves x n_numeric; NaN where nothing is known.
    means: Vec<f64>,
    /// n_leaves x n_nominal; [`MISSING_U16`] where nothing is known.
    classes: Vec<u16>,
    /// n_leaves x n_sets; ascending labels, `None` where nothing is known.
    sets: Vec<Option<Vec<u32>>>,
    /// Number of leaves.
    count: usize,
    /// Weights by class, and by label, all 0.
    counts: Vec<f64>,
    /// What the tree is put together of, in preorder; empty where all values are known.
    nodes: Vec<Part>,
    has_missing: bool,
}

/// A part of a tree.
enum Part {
    Split,
    /// The leaves below a node, and the totals of the node.
    Leaves(Range<usize>, LeafTotals),
}

impl LeafPredictions {
    /// None yet, of a tree whose bag has these targets.
    pub(crate) fn new(targets: &Targets<'_>, has_missing: bool) -> Self {
        let classes = targets.nominal.iter().map(|(_, classes)| *classes);
        let labels = targets.sets.iter().map(|sets| sets.shares.len());
        LeafPredictions {
            n_numeric: targets.numeric.len(),
            n_nominal: targets.nominal.len(),
            n_sets: targets.sets.len(),
            means: Vec::new(),
            classes: Vec::new(),
            sets: Vec::new(),
            count: 0,
            counts: vec![0.0; classes.chain(labels).max().unwrap_or(0)],
            nodes: Vec::new(),
            has_missing,
        }
    }

    /// Adds a split; what is below it comes next.
    pub(super) fn add_split(&mut self) {
        if self.has_missing {
            self.nodes.push(Part::Split);
        }
    }

    /// Adds the leaf whose members have these sums.
    pub(super) fn add(&mut self, sums: &LeafTotals) {
        self.means.extend((0..self.n_numeric).map(|number| sums.mean(number).unwrap_or(f64::NAN)));
        self.classes.extend((0..self.n_nominal).map(|number| sums.class(number).unwrap_or(MISSING_U16)));
        self.sets.extend((0..self.n_sets).map(|number| sums.set(number)));
        self.close(1, || sums.clone());
    }

    /// Adds the leaves of `grown`, whose members are rows of `targets`.
    pub(super) fn add_members(&mut self, targets: &Targets<'_>, grown: &TreeBuffer) {
        for members in grown.leaf_members() {
            for y in &targets.numeric {
                let members = members.iter().map(|&(row, count)| (row as usize, count));
                self.means.push(mean(y, targets, members).unwrap_or(f64::NAN));
            }
            for (y, _) in &targets.nominal {
                self.classes.push(majority(y, targets, members, &mut self.counts).unwrap_or(MISSING_U16));
            }
            for y in &targets.sets {
                self.sets.push(most_have(y.labels, targets, members, &mut self.counts));
            }
        }
        let mut sums = LeafTotals::default();
        if self.has_missing {
            sums = self.climb(targets, grown);
        }
        self.close(grown.member_ends.len(), || sums);
    }

    fn close(&mut self, n_leaves: usize, sums: impl FnOnce() -> LeafTotals) {
        if self.has_missing {
            self.nodes.push(Part::Leaves(self.count..self.count + n_leaves, sums()));
        }
        self.count += n_leaves;
    }

    /// Lets the leaves of `grown`, which were just added, predict what the nearest node above them does, where none of their
    /// own values is known. Returns the totals of the whole tree.
    fn climb(&mut self, targets: &Targets<'_>, grown: &TreeBuffer) -> LeafTotals {
        let mut members: Vec<_> = grown.leaf_members().collect();
        let mut end = self.count + members.len();
        // Nodes come in preorder, so backwards both children of a node come before it, the left one last.
        let mut done: Vec<(Range<usize>, LeafTotals)> = Vec::new();
        for node in grown.nodes.iter().rev() {
            let (leaves, sums) = match node.split {
                None => {
                    let mut sums = LeafTotals::new(targets);
                    for &(row, count) in members.pop().unwrap_or(&[]) {
                        sums.add(targets, row as usize, count);
                    }
                    end -= 1;
                    (end..end + 1, sums)
                }
                Some(_) => merged(&mut done),
            };
            self.fill(leaves.clone(), &sums);
            done.push((leaves, sums));
        }
        done.pop().map(|(_, sums)| sums).unwrap_or_default()
    }

    /// Fills the predictions of `leaves` without known values with those of a node above them, which has these totals.
    fn fill(&mut self, leaves: Range<usize>, sums: &LeafTotals) {
        for number in 0..self.n_numeric {
            let mean = sums.mean(number).unwrap_or(f64::NAN);
            let cells = &mut self.means[leaves.start * self.n_numeric..leaves.end * self.n_numeric];
            let unknown = cells.iter_mut().skip(number).step_by(self.n_numeric).filter(|mean| mean.is_nan());
            unknown.for_each(|to| *to = mean);
        }
        for number in 0..self.n_nominal {
            let class = sums.class(number).unwrap_or(MISSING_U16);
            let cells = &mut self.classes[leaves.start * self.n_nominal..leaves.end * self.n_nominal];
            let unknown = cells.iter_mut().skip(number).step_by(self.n_nominal).filter(|class| **class == MISSING_U16);
            unknown.for_each(|to| *to = class);
        }
        for number in 0..self.n_sets {
            let set = sums.set(number);
            let cells = &mut self.sets[leaves.start * self.n_sets..leaves.end * self.n_sets];
            let unknown = cells.iter_mut().skip(number).step_by(self.n_sets).filter(|set| set.is_none());
            unknown.for_each(|to| to.clone_from(&set));
        }
    }

    /// Lets all leaves predict something, now that the tree is complete.
    pub(super) fn finish(&mut self) {
        let mut done: Vec<(Range<usize>, LeafTotals)> = Vec::new();
        for node in std::mem::take(&mut self.nodes).into_iter().rev() {
            let (leaves, sums) = match node {
                Part::Leaves(leaves, sums) => (leaves, sums),
                Part::Split => merged(&mut done),
            };
            self.fill(leaves.clone(), &sums);
            done.push((leaves, sums));
        }
        self.means.iter_mut().filter(|mean| mean.is_nan()).for_each(|mean| *mean = 0.0);
        self.classes.iter_mut().filter(|class| **class == MISSING_U16).for_each(|class| *class = 0);
    }

    /// The means of all leaves, n_leaves x n_numeric.
    pub(crate) fn means(&self) -> &[f64] {
        &self.means
    }

    /// The classes and label sets that a leaf predicts.
    pub(crate) fn classes_and_sets(&self, leaf: usize) -> (&[u16], &[Option<Vec<u32>>]) {
        let classes = &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal];
        (classes, &self.sets[leaf * self.n_sets..(leaf + 1) * self.n_sets])
    }
}

/// What the two last of `done`, the right and the left child of a node, make together.
fn merged(done: &mut Vec<(Range<usize>, LeafTotals)>) -> (Range<usize>, LeafTotals) {
    let (Some((left, mut sums)), Some((right, others))) = (done.pop(), done.pop()) else {
        unreachable!("a split has two children")
    };
    sums.merge(&others);
    (left.start..right.end, sums)
}

/// Weighted mean over the members whose value is known.
pub(crate) fn mean(
    values: &Numeric<'_>,
    targets: &Targets<'_>,
    members: impl Iterator<Item = (usize, u32)>,
) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, count) in members {
        let value = values.at(row);
        if !value.is_nan() {
            let weight = f64::from(count) * targets.weight(row);
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
