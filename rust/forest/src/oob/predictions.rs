//! Predictions of leaves: the mean, the most frequent class, the labels of more than half of the members.
//!
//! A leaf whose members have no known value takes the prediction of its nearest ancestor with known values. The totals
//! of a node are those of its left child plus those of its right child. They have the same bits however the tree was
//! assembled.

use std::ops::Range;

use super::leaf_totals::LeafTotals;
use super::shares::LeafShares;
use super::targets::{Numeric, Targets};
use crate::tree_buffer::TreeBuffer;
use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::MISSING_U16;

/// The predictions of each leaf: the mean, the most frequent class (the first of equals), and the labels that more than
/// half of its members have. In a hierarchy, these include the ancestors of each label.
pub(crate) struct LeafPredictions {
    n_numeric: usize,
    n_nominal: usize,
    n_sets: usize,
    /// n_leaves x n_numeric; NaN if no value is known.
    means: Vec<f64>,
    /// n_leaves x n_nominal; [`MISSING_U16`] if no value is known.
    classes: Vec<u16>,
    /// n_leaves x n_sets; ascending labels, `None` if no set is known.
    sets: Vec<Option<Vec<u32>>>,
    /// Number of leaves.
    count: usize,
    /// A buffer of zeros for the weights of classes or labels.
    counts: Vec<f64>,
    /// The parts of the tree, in preorder; empty if all values are known.
    nodes: Vec<Part>,
    has_missing: bool,
    /// The shares of labels, if they are needed.
    shares: Option<LeafShares>,
}

/// A part of a tree.
enum Part {
    Split,
    /// The leaves below a node, and the totals of the node.
    Leaves(Range<usize>, LeafTotals),
}

impl LeafPredictions {
    /// The predictions of a tree without leaves, whose bag has these targets; with the shares of labels if
    /// `with_shares`.
    pub(crate) fn new(targets: &Targets<'_>, has_missing: bool, with_shares: bool) -> Self {
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
            shares: with_shares.then(|| LeafShares::new(targets)),
        }
    }

    /// Adds a split, whose subtrees are added next.
    pub(super) fn add_split(&mut self) {
        if self.has_missing {
            self.nodes.push(Part::Split);
        }
    }

    /// Adds a leaf with the totals of its members.
    pub(super) fn add(&mut self, sums: &LeafTotals) {
        self.means.extend((0..self.n_numeric).map(|number| sums.mean(number).unwrap_or(f64::NAN)));
        self.classes.extend((0..self.n_nominal).map(|number| sums.class(number).unwrap_or(MISSING_U16)));
        self.sets.extend((0..self.n_sets).map(|number| sums.set(number)));
        if let Some(shares) = &mut self.shares {
            shares.add(sums);
        }
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
            if let Some(shares) = &mut self.shares {
                shares.add_members(targets, members);
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

    /// Sets the predictions of the leaves of `grown` without known values to those of the nearest ancestor. The leaves
    /// are the last that were added. Returns the totals of the whole tree.
    fn climb(&mut self, targets: &Targets<'_>, grown: &TreeBuffer) -> LeafTotals {
        let mut members: Vec<_> = grown.leaf_members().collect();
        let mut end = self.count + members.len();
        // In reverse preorder, the children of a node come before it, the left one last.
        let mut done: Vec<(Range<usize>, LeafTotals)> = Vec::new();
        for node in grown.nodes.iter().rev() {
            let (leaves, sums) = match node.is_split {
                false => {
                    let mut sums = LeafTotals::new(targets);
                    for &(row, count) in members.pop().unwrap_or(&[]) {
                        sums.add(targets, row as usize, count);
                    }
                    end -= 1;
                    (end..end + 1, sums)
                }
                true => merged(&mut done),
            };
            self.fill(leaves.clone(), &sums);
            done.push((leaves, sums));
        }
        done.pop().map(|(_, sums)| sums).unwrap_or_default()
    }

    /// Sets the predictions of `leaves` without known values to those of an ancestor with these totals.
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
        if let Some(shares) = &mut self.shares {
            shares.fill(leaves, sums);
        }
    }

    /// Completes the predictions: every leaf predicts some value.
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

    /// The shares of labels in leaves, if they are needed.
    pub(crate) fn shares(&self) -> Option<&LeafShares> {
        self.shares.as_ref()
    }

    /// Number of leaves.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

/// Removes the last two of `done`, the right and the left child of a node. Returns the leaves and totals of the node.
fn merged(done: &mut Vec<(Range<usize>, LeafTotals)>) -> (Range<usize>, LeafTotals) {
    let (Some((left, mut sums)), Some((right, others))) = (done.pop(), done.pop()) else {
        unreachable!("a split has two children")
    };
    sums.merge(&others);
    (left.start..right.end, sums)
}

/// The weighted mean over the members whose value is known.
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

/// The class of most weight among the members whose class is known. `counts` is a buffer of zeros.
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

/// The labels that more than half of the members with known labels have, by weight. `weights` is a buffer of zeros.
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
