//! Cuts in the order of codes, one by one.

use super::node::{Node, Pair, add};
use crate::split::missing::better;
use crate::split::{Best, Cut, SplitConstraint};
use ferrank_data::store::Code;

/// The best of the cuts of a node, whose codes come in ascending order.
pub(super) struct CutsInOrder {
    mean: f64,
    /// The sums of the examples whose value is missing.
    missing: Pair,
    /// The sums of the codes so far.
    left: Pair,
    highest: usize,
    /// Cuts with missing values on the right, and on the left if there are some.
    right: Best,
    with_missing: Option<Best>,
}

impl CutsInOrder {
    #[inline(always)]
    pub(super) fn new(node: Node, constraint: SplitConstraint, missing: Pair) -> Self {
        let best = || Best::new(node.examples, node.examples, constraint);
        CutsInOrder {
            mean: node.mean(),
            missing,
            left: [0.0; 2],
            highest: 0,
            right: best(),
            with_missing: (missing[0] > 0.0).then(best),
        }
    }

    /// Adds `code` with the sums of its examples.
    #[inline(always)]
    pub(super) fn push(&mut self, code: usize, sums: Pair) {
        let mean = self.mean;
        let offer = |best: &mut Best, [count, sum]: Pair| {
            let difference = sum - mean * count;
            best.offer(code, difference * difference, count, count);
        };
        add(&mut self.left, sums);
        offer(&mut self.right, self.left);
        if let Some(best) = &mut self.with_missing {
            let mut both = self.missing;
            add(&mut both, self.left);
            offer(best, both);
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

/// The best cut of `node`, whose examples have the code `zero`, except for those in `entries`, with their codes, which
/// ascend, and their pairs.
#[inline(always)]
pub(crate) fn best_sparse_cut(
    entries: impl Iterator<Item = (u16, Pair)> + Clone,
    zero: u16,
    node: Node,
    constraint: SplitConstraint,
) -> Option<Cut> {
    let (mut listed, mut missing) = ([0.0; 2], [0.0; 2]);
    for (code, pair) in entries.clone() {
        add(&mut listed, pair);
        if code == u16::MISSING {
            add(&mut missing, pair);
        }
    }
    let rest = node.without(Node { examples: listed[0], sum: listed[1] });
    let mut rest = (rest.examples > 0.0).then_some([rest.examples, rest.sum]);
    let mut cuts = CutsInOrder::new(node, constraint, missing);
    let mut group: Option<(u16, Pair)> = None;
    for (code, pair) in entries.take_while(|&(code, _)| code != u16::MISSING) {
        match &mut group {
            Some((own, sums)) if *own == code => add(sums, pair),
            _ => {
                if let Some((own, sums)) = group.replace((code, pair)) {
                    cuts.push(own.into(), sums);
                }
                if let Some(rest) = rest.take_if(|_| zero < code) {
                    cuts.push(zero.into(), rest);
                }
            }
        }
    }
    if let Some((own, sums)) = group {
        cuts.push(own.into(), sums);
    }
    if let Some(rest) = rest {
        cuts.push(zero.into(), rest);
    }
    cuts.best()
}
