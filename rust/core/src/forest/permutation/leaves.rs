//! What leaves predict: the mean, the most frequent class, the labels that most members have.
//!
//! A leaf none of whose members is known to have a value predicts what the nearest node above it does that
//! has some.

use std::ops::Range;

use super::targets::{Numeric, Targets};
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

/// The members of every node of a tree.
struct Branches<'a> {
    tree: &'a Grown,
    /// n_nodes; the root's own.
    parent: Vec<usize>,
    /// n_nodes
    members: Vec<Range<usize>>,
}

impl<'a> Branches<'a> {
    fn new(tree: &'a Grown) -> Self {
        let n_nodes = tree.nodes.len();
        let mut branches = Branches { tree, parent: vec![0; n_nodes], members: vec![0..0; n_nodes] };
        let mut leaf = tree.member_ends.len();
        // Children come after their parents.
        for (number, node) in tree.nodes.iter().enumerate().rev() {
            branches.members[number] = match &node.split {
                None => {
                    leaf -= 1;
                    let start = leaf.checked_sub(1).map_or(0, |before| tree.member_ends[before]);
                    start as usize..tree.member_ends[leaf] as usize
                }
                Some(split) => {
                    let [left, right] = split.children.map(|child| child as usize);
                    (branches.parent[left], branches.parent[right]) = (number, number);
                    branches.members[left].start..branches.members[right].end
                }
            };
        }
        branches
    }

    /// `value` of each leaf in preorder, of a node above where the leaf has none.
    fn of_leaves<T: Clone + Default>(&self, mut value: impl FnMut(&[(u32, u32)]) -> Option<T>) -> Vec<T> {
        let mut known: Vec<Option<T>> = vec![None; self.members.len()];
        let (mut values, mut climbed) = (Vec::with_capacity(self.tree.member_ends.len()), Vec::new());
        for leaf in (0..self.members.len()).filter(|&number| self.tree.nodes[number].split.is_none()) {
            let mut node = leaf;
            let found = loop {
                if let Some(value) =
                    known[node].clone().or_else(|| value(&self.tree.members[self.members[node].clone()]))
                {
                    break value;
                }
                climbed.push(node);
                if node == 0 {
                    break T::default();
                }
                node = self.parent[node];
            };
            climbed.drain(..).chain([node]).for_each(|node| known[node] = Some(found.clone()));
            values.push(found);
        }
        values
    }
}

/// One leaf's predictions.
#[derive(Clone, Copy)]
pub(super) struct Prediction<'a> {
    pub(super) means: &'a [f64],
    pub(super) classes: &'a [u16],
    pub(super) sets: &'a [Vec<u32>],
}

impl Leaves {
    pub(super) fn new(targets: &Targets<'_>, tree: &Grown) -> Self {
        let (n_numeric, n_nominal, n_sets) = (targets.numeric.len(), targets.nominal.len(), targets.sets.len());
        let branches = Branches::new(tree);
        let n_leaves = tree.member_ends.len();
        let mut means = vec![0.0; n_leaves * n_numeric];
        for (number, y) in targets.numeric.iter().enumerate() {
            let of_leaves = branches.of_leaves(|members| mean(y, targets, members));
            means.iter_mut().skip(number).step_by(n_numeric).zip(of_leaves).for_each(|(to, mean)| *to = mean);
        }
        let mut classes = vec![0; n_leaves * n_nominal];
        let mut counts = vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)];
        for (number, (y, _)) in targets.nominal.iter().enumerate() {
            let of_leaves = branches.of_leaves(|members| majority(y, targets, members, &mut counts));
            classes.iter_mut().skip(number).step_by(n_nominal).zip(of_leaves).for_each(|(to, class)| *to = class);
        }
        let mut sets = vec![Vec::new(); n_leaves * n_sets];
        let mut weights = vec![0.0; targets.sets.iter().map(|sets| sets.shares.len()).max().unwrap_or(0)];
        for (number, y) in targets.sets.iter().enumerate() {
            let of_leaves = branches.of_leaves(|members| most_have(y.labels, targets, members, &mut weights));
            sets.iter_mut().skip(number).step_by(n_sets).zip(of_leaves).for_each(|(to, set)| *to = set);
        }
        Leaves { n_numeric, n_nominal, n_sets, means, classes, sets }
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
