//! Split search: the best test of a feature in a node.
//!
//! A search reads the codes of the examples as a slice, in the order of the examples. It returns the test with the
//! highest gain that leaves enough examples on both sides. Of equal gains, the lowest cut is taken. [`kernel`] chooses
//! the kernel of a node; its table lists the gain in speed of each.
//!
//! Searches for any components:
//! - [`node_sums`]: sums by code, for large nodes in memory and for nodes whose rows are on disk;
//! - [`scan`]: examples in the order of their codes, for the other nodes; `given_cut` for a random cut;
//! - [`nominal`]: subsets of categories; of a single component, [`batch`] and [`single`] find them, too.
//!
//! Kernels for special cases:
//! - [`batch`]: small nodes, all candidates at once; with `gram`, inner products, for more than one component;
//! - [`few_examples`]: small nodes whose examples are pairs and whose features are numbers;
//! - [`single`]: a single component;
//! - [`dense`], [`multi_feature`], [`random_thresholds`]: few dense components;
//! - `label_csr`, `label_bins`: labels alone.
//!
//! Missing values: [`missing`].
//!
//! Parts of these: `gain` (gains of many cuts), `prefix` (cuts of sorted examples), `side_sums` (sums of a side),
//! `random_test` (random cuts and subsets).

pub(crate) mod batch;
pub(crate) mod dense;
pub(crate) mod examples;
pub(crate) mod few_examples;
pub(crate) mod gain;
mod given_cut;
pub(crate) mod gram;
pub(crate) mod kernel;
mod label_bins;
mod label_csr;
mod label_entry;
pub(crate) mod missing;
pub(crate) mod multi_feature;
pub(crate) mod node;
pub(crate) mod node_sums;
pub(crate) mod nominal;
mod order;
mod prefix;
mod quality;
pub(crate) mod random_test;
pub(crate) mod random_thresholds;
pub(crate) mod scan;
pub(crate) mod search;
mod side_sums;
pub(crate) mod single;
#[cfg(test)]
pub(crate) mod tests;
mod values;
mod vectors;

use crate::criterion::{TIE, ties};
use crate::tree_buffer::{CodeTest, MissingSide, NodeTest};

/// The number of lanes of the widest vectors. Arrays for vectors are padded to multiples of it.
const STEP: usize = 8;

/// The least size of the children of a split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitConstraint {
    /// Least number of examples of a child, counted with multiplicity.
    pub(crate) min_leaf: f64,
    /// Number of examples that are left out of the search because their value is missing. They go to the heavier side;
    /// to the left side if both weigh the same.
    pub(crate) missing: f64,
}

impl SplitConstraint {
    /// Returns true if sides of these weights and numbers of examples are large enough.
    #[inline(always)]
    pub(crate) fn allows(self, weights: (f64, f64), examples: (f64, f64)) -> bool {
        let (mut left, mut right) = examples;
        if weights.0 >= weights.1 {
            left += self.missing;
        } else {
            right += self.missing;
        }
        left >= self.min_leaf && right >= self.min_leaf && examples.0 > 0.0 && examples.1 > 0.0
    }
}

/// The best of the cuts offered so far, which come in ascending order of codes.
#[derive(Debug)]
struct Best {
    /// Weight and number of examples of the node.
    weight: f64,
    examples: f64,
    constraint: SplitConstraint,
    /// The greatest gain.
    most: f64,
    /// The first gains and codes that tie with it; codes ascend.
    tied: [(f64, u16); Best::TIED],
    n_tied: usize,
}

impl Best {
    const TIED: usize = 8;
    /// Slightly less than [`TIE`]. A comparison with this share of the greatest gain avoids most divisions.
    const LOOSE: f64 = TIE - 1e-12;

    fn new(weight: f64, examples: f64, constraint: SplitConstraint) -> Self {
        Best { weight, examples, constraint, most: 0.0, tied: [(0.0, 0); Best::TIED], n_tied: 0 }
    }

    /// Offers the cut above `code`, whose left side has this `weight` and number of `examples`. `quality` is
    /// Σ_c (S_L − m·W_L)², the gain times the weights of both sides.
    #[inline(always)]
    fn offer(&mut self, code: usize, quality: f64, weight: f64, examples: f64) {
        let weights = weight * (self.weight - weight);
        if quality >= self.most * Best::LOOSE * weights {
            self.offer_gain(code, quality / weights, weight, examples);
        }
    }

    /// Offers the cut above `code` with its gain, which is NaN if a side is empty.
    #[inline(always)]
    fn offer_gain(&mut self, code: usize, gain: f64, weight: f64, examples: f64) {
        let (weights, examples) = ((weight, self.weight - weight), (examples, self.examples - examples));
        if ties(gain, self.most) && self.constraint.allows(weights, examples) {
            self.take(gain, code as u16);
        }
    }

    fn take(&mut self, gain: f64, code: u16) {
        if gain > self.most {
            self.most = gain;
            let mut kept = 0;
            for i in 0..self.n_tied {
                if ties(self.tied[i].0, gain) {
                    self.tied[kept] = self.tied[i];
                    kept += 1;
                }
            }
            self.n_tied = kept;
        }
        if self.n_tied < Best::TIED {
            self.tied[self.n_tied] = (gain, code);
            self.n_tied += 1;
        }
    }

    /// The lowest of the best cuts.
    fn cut(&self) -> Option<Cut> {
        (self.n_tied > 0).then(|| Cut::new(self.most, self.tied[0].1))
    }
}

/// The position of the first of `gains` that [ties] with the greatest gain `most`; `None` if `most` is negative. The
/// length of `gains` is a multiple of [`STEP`].
#[inline(always)]
fn first_best(gains: &[f64], most: f64) -> Option<usize> {
    if most < 0.0 {
        return None;
    }
    let step = gains.as_chunks::<STEP>().0.iter().position(|gains| {
        // All gains of a step, without a branch for each.
        let mut is_here = false;
        for &gain in gains {
            is_here |= ties(gain, most);
        }
        is_here
    })?;
    let start = STEP * step;
    gains[start..].iter().position(|&gain| ties(gain, most)).map(|place| start + place)
}

/// The best cut of a feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Impurity decrease over the examples of the search.
    pub(crate) gain: f64,
    /// The highest code that goes left.
    pub(crate) code: u16,
    /// The side of the examples whose value is missing.
    pub(crate) missing: MissingSide,
}

impl Cut {
    /// A cut whose missing values, if any, go to the heavier side.
    #[inline(always)]
    pub(crate) fn new(gain: f64, code: u16) -> Self {
        Cut { gain, code, missing: MissingSide::Heavier }
    }

    pub(crate) fn test(self) -> NodeTest {
        NodeTest { test: CodeTest::Cut(self.code), missing: self.missing }
    }
}
