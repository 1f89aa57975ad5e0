//! The best subset of the categories of a nominal feature, from the pairs of a single component.
//!
//! It is a prefix of the categories in the order of their means; see [`nominal`](crate::split::nominal), which finds the
//! same subsets for any components.

use super::bins::Bins;
use super::is_dense;
use super::node::{Node, add};
use crate::pairs::Pair;
use crate::split::SplitConstraint;
use crate::split::nominal::{Subset, first_of_best, in_order};
use ferrank_data::store::Code;

/// The categories that are present in a node; a buffer that is empty between searches.
#[derive(Debug, Default)]
pub(crate) struct Categories {
    present: Vec<Category>,
    gains: Vec<f64>,
}

/// A category with the sums of its examples.
#[derive(Debug, Clone, Copy)]
struct Category {
    mean: f64,
    code: u16,
    sums: Pair,
}

impl Categories {
    #[inline(always)]
    pub(super) fn push(&mut self, code: usize, sums: Pair) {
        self.present.push(Category { mean: sums[1] / sums[0], code: code as u16, sums });
    }

    /// Removes all categories, and returns the best subset that the constraint allows.
    pub(super) fn best(&mut self, node: Node, constraint: SplitConstraint) -> Option<Subset> {
        let Categories { present, gains } = self;
        in_order(present, |category| category.mean, |category| category.code);
        let (weight, examples) = (node.weight(), node.examples());
        let mut left = [0.0; 2];
        gains.clear();
        gains.extend(present.iter().map(|category| {
            add(&mut left, category.sums);
            let [count, _] = left;
            let fits = constraint.allows((count, weight - count), (count, examples - count));
            if fits { node.gain(left) } else { -1.0 }
        }));
        let best = first_of_best(gains).filter(|&(_, gain)| gain >= 0.0);
        let subset = best.map(|(last, gain)| {
            let codes = present[..=last].iter().map(|category| category.code);
            Subset::new(gain, codes.collect(), present.len())
        });
        present.clear();
        subset
    }
}

/// The best subset of the categories `codes`, one for each example of `node`, all below `n_codes`. `None` if the constraint
/// allows none.
#[inline(always)]
pub(crate) fn best_subset<C: Code>(
    (codes, n_codes): (impl Iterator<Item = C>, usize),
    pairs: &[Pair],
    node: Node,
    constraint: SplitConstraint,
    bins: &mut Bins,
    categories: &mut Categories,
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
    categories.best(node, constraint)
}
