//! Cuts in the order of codes, one by one.

use super::node::{Node, add};
use crate::pairs::Pair;
use crate::split::gain::GainFormula;
use crate::split::missing::better;
use crate::split::{Best, Cut, SplitConstraint};
use ferrank_data::store::Code;

/// The best of the cuts of a node, whose codes come in ascending order.
pub(super) struct CutsInOrder {
    node: Node,
    /// The sums of the examples whose value is missing.
    missing: Pair,
    /// The sums of the codes so far.
    left: Pair,
    highest: usize,
    /// Cuts with lower gains are left out.
    floor: f64,
    /// Cuts with missing values on the right, and on the left if there are some.
    right: Best,
    with_missing: Option<Best>,
}

impl CutsInOrder {
    #[inline(always)]
    pub(super) fn new(node: Node, constraint: SplitConstraint, missing: Pair, floor: f64) -> Self {
        let best = || Best::new(node.weight(), node.examples(), constraint);
        CutsInOrder {
            node,
            missing,
            left: [0.0; 2],
            highest: 0,
            floor,
            right: best(),
            with_missing: (missing[0] > 0.0).then(best),
        }
    }

    /// Adds `code` with the sums of its examples.
    #[inline(always)]
    pub(super) fn push(&mut self, code: usize, sums: Pair) {
        add(&mut self.left, sums);
        offer(&mut self.right, code, self.left, self.node, self.floor);
        if let Some(best) = &mut self.with_missing {
            let mut both = self.missing;
            add(&mut both, self.left);
            offer(best, code, both, self.node, self.floor);
            self.highest = code;
        }
    }

    #[inline(always)]
    pub(super) fn best(self) -> Option<Cut> {
        match self.with_missing {
            Some(left) => better(self.right.cut(), left.cut(), self.highest),
            None => self.right.cut(),
        }
    }
}

/// Offers the cut above `code` to `best`, unless its gain is below `floor`.
#[inline(always)]
fn offer(best: &mut Best, code: usize, left: Pair, node: Node, floor: f64) {
    let (quality, (count, weight)) = (node.quality(left), node.layout.count_and_weight(left[0]));
    if quality >= floor * (weight * (best.weight - weight)) {
        best.offer(code, quality, weight, count);
    }
}

/// The best cut of `node`, whose examples have the code `zero`, except for those in `entries`, with their codes, which
/// ascend, and their pairs. `None` if no gain reaches `floor`.
#[inline(always)]
pub(crate) fn best_sparse_cut(
    entries: impl Iterator<Item = (u16, Pair)> + Clone,
    zero: u16,
    node: Node,
    constraint: SplitConstraint,
    floor: f64,
) -> Option<Cut> {
    let (mut listed, mut missing) = ([0.0; 2], [0.0; 2]);
    let (mut first, mut last) = (u16::MAX, 0);
    for (code, pair) in entries.clone() {
        add(&mut listed, pair);
        if code == u16::MISSING {
            add(&mut missing, pair);
        }
        (first, last) = (first.min(code), code);
    }
    let rest = node.without(Node { pair: listed, ..node });
    let rest = (rest.pair[0] > 0.0).then_some(rest.pair);
    match rest {
        Some(rest) if first == last && missing[0] == 0.0 => {
            let left = if zero < first { rest } else { listed };
            only_cut(zero.min(first), left, node, constraint).filter(|cut| cut.gain >= floor)
        }
        _ => {
            let cuts = CutsInOrder::new(node, constraint, missing, floor);
            cut_in_order(entries.take_while(|&(code, _)| code != u16::MISSING), rest.map(|rest| (zero, rest)), cuts)
        }
    }
}

/// The cut above `code`, the only one there is, whose left side has the sums `left`.
#[inline(always)]
fn only_cut(code: u16, left: Pair, node: Node, constraint: SplitConstraint) -> Option<Cut> {
    let gain = GainFormula::new(node, constraint).gain(left);
    (gain >= 0.0).then(|| Cut::new(gain, code))
}

/// The best cut of examples with the codes and pairs in `entries`, whose codes ascend, and of some more with a code of
/// their own.
#[inline(always)]
fn cut_in_order(
    entries: impl Iterator<Item = (u16, Pair)>,
    mut more: Option<(u16, Pair)>,
    mut cuts: CutsInOrder,
) -> Option<Cut> {
    let mut group: Option<(u16, Pair)> = None;
    for (code, pair) in entries {
        match &mut group {
            Some((own, sums)) if *own == code => add(sums, pair),
            _ => {
                if let Some((own, sums)) = group.replace((code, pair)) {
                    cuts.push(own.into(), sums);
                }
                if let Some((own, sums)) = more.take_if(|(own, _)| *own < code) {
                    cuts.push(own.into(), sums);
                }
            }
        }
    }
    for (own, sums) in group.into_iter().chain(more) {
        cuts.push(own.into(), sums);
    }
    cuts.best()
}
