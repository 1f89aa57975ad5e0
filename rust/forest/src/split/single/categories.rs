//! The best subset of the categories of a nominal feature, from the pairs of a single component.
//!
//! It is a prefix of the categories in the order of their means; see [`nominal`](crate::split::nominal), which finds the
//! same subsets for any components.

use pulp::Arch;

use super::all_bins;
use super::bins::{Bins, is_dense};
use super::node::{Node, add};
use crate::pairs::Pair;
use crate::split::SplitConstraint;
use crate::split::gain::GainFormula;
use crate::split::nominal::{Subset, in_order};
use ferrank_data::store::Code;

/// The categories that are present in a node; a buffer that is empty between searches.
#[derive(Debug, Default)]
pub(crate) struct Categories {
    /// Ascending codes with the sums of their examples.
    present: Vec<(u16, Pair)>,
    /// The mean of each.
    means: Vec<f64>,
    /// Their positions by mean.
    order: Vec<u64>,
    /// The sums of the categories up to each, in that order.
    lefts: Vec<Pair>,
}

impl Categories {
    #[inline(always)]
    pub(super) fn push(&mut self, code: usize, sums: Pair) {
        self.means.push(sums[1] / sums[0]);
        self.present.push((code as u16, sums));
    }

    /// Removes all categories, and returns the best subset that the constraint allows; `None` if its gain is below `floor`.
    pub(super) fn best(&mut self, arch: Arch, gain: GainFormula, floor: f64) -> Option<Subset> {
        let Categories { present, means, order, lefts } = self;
        in_order(means, order);
        let (n, mut left) = (order.len(), [0.0; 2]);
        lefts.clear();
        lefts.extend(order.iter().map(|&position| {
            add(&mut left, present[position as usize].1);
            left
        }));
        lefts.resize(all_bins::padded(n), left);
        let best = all_bins::best_left(arch, lefts, n, gain).filter(|cut| cut.gain >= floor);
        let subset = best.map(|cut| {
            let last = usize::from(cut.code);
            let codes: Vec<u16> = order.iter().map(|&position| present[position as usize].0).collect();
            let (one, other) = codes.split_at(last + 1);
            Subset::new(cut.gain, [lefts[last][0], left[0] - lefts[last][0]].map(|count| [count; 2]), one, other)
        });
        present.clear();
        means.clear();
        subset
    }
}

/// The best subset of the categories `codes`, one for each example of `node`, all below `n_codes`. `None` if the constraint
/// allows none, or its gain is below `floor`.
#[inline(always)]
pub(crate) fn best_subset<C: Code>(
    arch: Arch,
    (codes, n_codes): (impl Iterator<Item = C>, usize),
    pairs: impl ExactSizeIterator<Item = Pair>,
    node: Node,
    constraint: SplitConstraint,
    bins: &mut Bins,
    (categories, floor): (&mut Categories, f64),
) -> Option<Subset> {
    let places = codes.map(Code::index);
    match is_dense(pairs.len(), n_codes) {
        true => {
            bins.fill(places, pairs);
            bins.drain_all(n_codes, |code, sums| categories.push(code, sums));
        }
        false => {
            bins.fill_and_mark(places, pairs);
            bins.drain(|code, sums| categories.push(code, sums));
        }
    }
    categories.best(arch, GainFormula::new(node, constraint), floor)
}
