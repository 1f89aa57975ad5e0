//! The best test of a feature from the sums of a node's examples by code.
//!
//! A node whose rows memory does not hold is summed up in a pass over the store. What follows from the
//! sums is decided here, draw by draw as in a node whose examples are at hand.

use rand::{Rng, RngExt};

use super::batch::threshold;
use super::nominal::{Present, Subset};
use super::{Best, SplitConstraint};
use crate::candidates::Candidate;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::params::{Ensemble, ForestParams};
use crate::tree_buffer::CodeTest;
use ferrank_data::profile::{Coding, Scale};
use ferrank_runtime::random::Stream;

/// Sums of a node's examples by the code of a feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByCode<'a> {
    pub(crate) criterion: &'a Criterion,
    pub(crate) feature: u32,
    pub(crate) coding: &'a Coding,
    /// (n_codes + 1) x n_sums; the last ones are those of missing values.
    pub(crate) sums: &'a [f64],
}

impl ByCode<'_> {
    fn of(&self, code: usize) -> &[f64] {
        &self.sums[code * self.criterion.len()..(code + 1) * self.criterion.len()]
    }

    /// The sums of examples that miss the feature.
    fn missing(&self) -> &[f64] {
        self.of(self.coding.n_codes())
    }

    /// Codes that occur, ascending.
    fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.coding.n_codes()).filter(|&code| self.of(code)[EXAMPLES] > 0.0)
    }

    /// The sums of the examples with a code for which `wanted` holds.
    fn sum(&self, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut total = vec![0.0; self.criterion.len()];
        for code in self.present().filter(|&code| wanted(code)) {
            total.iter_mut().zip(self.of(code)).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    /// The sums of all examples.
    pub(crate) fn total(&self) -> Vec<f64> {
        let mut total = self.sum(|_| true);
        total.iter_mut().zip(self.missing()).for_each(|(total, sum)| *total += sum);
        total
    }

    /// Whether the feature varies, and its best test.
    pub(crate) fn search(&self, params: &ForestParams, random: &mut Stream) -> (bool, Option<Candidate>) {
        let total = self.sum(|_| true);
        let (Some(low), Some(high)) = (self.present().next(), self.present().last()) else { return (false, None) };
        if low == high {
            return (false, None);
        }
        let missing = self.missing();
        let share = if missing[EXAMPLES] > 0.0 { total[WEIGHT] / (total[WEIGHT] + missing[WEIGHT]) } else { 1.0 };
        let constraint = SplitConstraint { min_leaf: params.min_samples_leaf as f64, missing: missing[EXAMPLES] };
        let at_random = params.ensemble == Ensemble::ExtraTrees;
        let found = match (&self.coding.scale, at_random) {
            (Scale::Numeric(_), false) => self.best_cut(constraint, &total),
            (Scale::Numeric(cuts), true) => {
                let at = threshold(cuts.values[low], cuts.values[high], random.random());
                let cut = low + cuts.values[low..high].partition_point(|&value| value <= at) - 1;
                self.given_cut(constraint, &total, cut)
            }
            (Scale::Nominal(_), _) => {
                let codes: Vec<u16> = self.present().map(|code| code as u16).collect();
                let sums = self.present().flat_map(|code| self.of(code)).copied().collect();
                let present = Present::of_sums(codes, sums, total);
                let subset = match at_random {
                    true => present.given(self.criterion, constraint, &random_subset(present.codes.len(), random)),
                    false => present.best(self.criterion, constraint),
                };
                subset.map(|Subset { gain, codes }| (gain, CodeTest::Subset(codes)))
            }
        };
        (true, found.map(|(gain, test)| Candidate { gain: share * gain, feature: self.feature, test }))
    }

    fn best_cut(&self, constraint: SplitConstraint, total: &[f64]) -> Option<(f64, CodeTest)> {
        let mut best = Best::new(total[WEIGHT], total[EXAMPLES], constraint);
        let mut left = vec![0.0; total.len()];
        for code in self.present() {
            left.iter_mut().zip(self.of(code)).for_each(|(left, sum)| *left += sum);
            if left[EXAMPLES] < total[EXAMPLES] {
                best.offer_gain(code, self.criterion.gain(&left, total), left[WEIGHT], left[EXAMPLES]);
            }
        }
        best.cut().map(|cut| (cut.gain, CodeTest::Cut(cut.code)))
    }

    fn given_cut(&self, constraint: SplitConstraint, total: &[f64], cut: usize) -> Option<(f64, CodeTest)> {
        let left = self.sum(|code| code <= cut);
        let right = (total[WEIGHT] - left[WEIGHT], total[EXAMPLES] - left[EXAMPLES]);
        let fits = constraint.allows((left[WEIGHT], right.0), (left[EXAMPLES], right.1));
        fits.then(|| (self.criterion.gain(&left, total), CodeTest::Cut(cut as u16)))
    }

    /// Sums of the left side of `test`, and of all examples whose value is known.
    pub(crate) fn sides(&self, test: &CodeTest) -> (Vec<f64>, Vec<f64>) {
        let left = match test {
            CodeTest::Cut(cut) => self.sum(|code| code <= usize::from(*cut)),
            CodeTest::Subset(codes) => self.sum(|code| codes.binary_search(&(code as u16)).is_ok()),
        };
        (left, self.sum(|_| true))
    }
}

/// A random subset of `n` positions, neither none nor all.
pub(crate) fn random_subset(n: usize, random: &mut Stream) -> Vec<usize> {
    loop {
        let chosen: Vec<usize> = (0..n).filter(|_| random.next_u32() & 1 == 1).collect();
        if !chosen.is_empty() && chosen.len() < n {
            return chosen;
        }
    }
}
