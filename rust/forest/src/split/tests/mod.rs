//! The searches against naive twins.
//!
//! Values, weights and counts are small integers, so that a twin's gain is a fraction of integers,
//! right to the last digit, and tests that part the examples equally well tie in truth.

mod batch;
mod nominal;
mod scan;
mod single;

use proptest::prelude::*;
use pulp::Arch;

use super::{Cut, SplitConstraint};
use crate::criterion::{Criterion, ties};
use crate::space::Block;
use crate::tree_buffer::{KNOWN, MissingSide};
use ferrank_data::store::Code;

/// The examples of a node.
#[derive(Debug, Clone)]
struct Examples {
    /// Missing values have the code [`GONE`].
    codes: Vec<u16>,
    counts: Vec<u32>,
    /// Row weights.
    weights: Vec<i64>,
    /// n x n_dense; `None` where missing.
    dense: Vec<Vec<Option<i64>>>,
    /// Dense components before this are never missing.
    n_whole: usize,
    /// n x n_indicators; `None` where missing.
    labels: Vec<Vec<Option<bool>>>,
    /// n_indicators
    omega: Vec<f64>,
    /// The last indicators, which may be missing: one of [`N_GROUPS`] each.
    group: Vec<u32>,
}

/// The code of a missing value.
const GONE: u16 = u16::MAX;

/// The same code in one or two bytes.
fn code<C: Code>(code: u16) -> C {
    if code == GONE { C::MISSING } else { C::from_u16(code) }
}

/// Groups of indicators that are missing together.
const N_GROUPS: usize = 2;

impl Examples {
    fn n_dense(&self) -> usize {
        self.dense[0].len()
    }

    fn criterion(&self) -> Criterion {
        Criterion {
            n_whole: self.n_whole,
            n_partial: self.n_dense() - self.n_whole,
            indicator_weight: self.omega.clone(),
            indicator_group: self.group.clone(),
            n_groups: if self.group.is_empty() { 0 } else { N_GROUPS },
            is_weighted: self.weights.iter().any(|&weight| weight != 1),
            is_classes: self.is_classes(),
            count_field: None,
        }
    }

    /// Returns true if each example has one of the labels, and these have the same ω.
    fn is_classes(&self) -> bool {
        let is_one = |labels: &Vec<Option<bool>>| labels.iter().filter(|label| **label == Some(true)).count() == 1;
        self.n_dense() == 0
            && self.group.is_empty()
            && self.labels.iter().all(is_one)
            && self.omega.iter().all(|omega| *omega == self.omega[0])
    }

    /// The numbers of a row of the block.
    fn row(&self, i: usize) -> impl Iterator<Item = f64> {
        let weight = self.weights[i];
        let times = move |value: Option<i64>| value.map_or(0.0, |value| (weight * value) as f64);
        let first = self.omega.len() - self.group.len();
        let of_group = move |group| (first..).zip(&self.group).find(|&(_, &g)| g as usize == group).map(|(l, _)| l);
        let groups = (0..if self.group.is_empty() { 0 } else { N_GROUPS })
            .map(move |group| of_group(group).and_then(|label| self.labels[i][label]).map(|_| 1));
        let own = self.dense[i][self.n_whole..].iter().map(|value| value.map(|_| 1));
        self.dense[i].iter().copied().chain(own).chain(groups).map(times)
    }

    fn block(&self) -> Block {
        let mut block = Block { width: self.criterion().width(), ..Block::default() };
        block.dense = (0..self.codes.len()).flat_map(|i| self.row(i)).collect();
        if self.weights.iter().any(|&weight| weight != 1) {
            block.weights = self.weights.iter().map(|&weight| weight as f64).collect();
        }
        if !self.omega.is_empty() {
            let mut starts = vec![0];
            for labels in &self.labels {
                block
                    .indicators
                    .extend((0..).zip(labels).filter(|(_, has)| **has == Some(true)).map(|(label, _)| label));
                starts.push(block.indicators.len());
            }
            block.starts = if self.is_classes() { Vec::new() } else { starts };
        }
        block
    }

    /// ω and the value of each component of an example.
    fn components(&self, i: usize) -> impl Iterator<Item = (f64, Option<i64>)> {
        let labels = self.omega.iter().zip(&self.labels[i]).map(|(&omega, &has)| (omega, has.map(i64::from)));
        self.dense[i].iter().map(|&value| (1.0, value)).chain(labels)
    }

    /// Σ ω (S_L − m·W_L)² / (W_L·W_R) if the examples with codes in `left` go left.
    fn gain(&self, left: impl Fn(u16) -> bool) -> f64 {
        let n_components = self.n_dense() + self.omega.len();
        let mut sums = vec![[0i64; 4]; n_components];
        let mut omegas = vec![0.0; n_components];
        for i in 0..self.codes.len() {
            let weight = i64::from(self.counts[i]) * self.weights[i];
            for (c, (omega, value)) in self.components(i).enumerate() {
                omegas[c] = omega;
                let Some(value) = value else { continue };
                let side = if left(self.codes[i]) { 0 } else { 2 };
                sums[c][side] += weight;
                sums[c][side + 1] += weight * value;
            }
        }
        let gain = |(&[left, sum_left, right, sum_right], omega): (&[i64; 4], f64)| {
            if left == 0 || right == 0 {
                return 0.0;
            }
            let all = left + right;
            let difference = (all * sum_left - (sum_left + sum_right) * left) as f64 / all as f64;
            omega * difference * difference / (left * right) as f64
        };
        sums.iter().zip(omegas).map(gain).sum()
    }

    /// Returns true if the constraint allows the split; examples that miss the feature go to the heavier side.
    fn fits(&self, constraint: SplitConstraint, left: impl Fn(u16) -> bool) -> bool {
        let (mut weights, mut examples) = ([0i64; 2], [0i64; 2]);
        for i in 0..self.codes.len() {
            let side = usize::from(!left(self.codes[i]));
            weights[side] += i64::from(self.counts[i]) * self.weights[i];
            examples[side] += i64::from(self.counts[i]);
        }
        if examples.contains(&0) {
            return false;
        }
        examples[usize::from(weights[1] > weights[0])] += constraint.missing as i64;
        examples.iter().all(|&examples| examples as f64 >= constraint.min_leaf)
    }

    /// Codes that occur, ascending.
    fn present(&self) -> Vec<u16> {
        let mut codes = self.codes.clone();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Codes of known values that occur, ascending.
    fn known(&self) -> Vec<u16> {
        let mut codes = self.present();
        codes.pop_if(|code| *code == GONE);
        codes
    }

    /// The lowest of the best cuts that the constraint allows.
    fn best_cut(&self, constraint: SplitConstraint) -> Option<Cut> {
        let cuts: Vec<Cut> = (self.present().into_iter())
            .filter(|&cut| self.fits(constraint, |code| code <= cut))
            .map(|cut| Cut::new(self.gain(|code| code <= cut), cut))
            .collect();
        let most = cuts.iter().map(|cut| cut.gain).fold(0.0, f64::max);
        cuts.into_iter().find(|cut| ties(cut.gain, most))
    }

    /// The same examples, some of which miss the feature.
    fn without(&self, gone: &[bool]) -> Examples {
        let codes = self.codes.iter().zip(gone.iter().cycle()).map(|(&code, &gone)| if gone { GONE } else { code });
        Examples { codes: codes.collect(), ..self.clone() }
    }

    /// The first of the best cuts with the missing values on the right, then on the left. The first of these of which no
    /// known value is on the right is the test whether the value is known.
    fn best_sided_cut(&self, constraint: SplitConstraint) -> Option<Cut> {
        if !self.codes.contains(&GONE) {
            return self.best_cut(constraint);
        }
        let known = self.known();
        let highest = *known.last()?;
        let cuts = [MissingSide::Right, MissingSide::Left].into_iter().flat_map(|missing| {
            let goes_left =
                move |cut: u16| move |code| if code == GONE { missing == MissingSide::Left } else { code <= cut };
            let cut = move |&cut: &u16| {
                let known = missing == MissingSide::Right && cut == highest;
                let gain = self.gain(goes_left(cut));
                self.fits(constraint, goes_left(cut)).then_some(Cut {
                    gain,
                    code: if known { KNOWN } else { cut },
                    missing,
                })
            };
            known.iter().filter_map(cut).collect::<Vec<Cut>>()
        });
        let cuts: Vec<Cut> = cuts.collect();
        let most = cuts.iter().map(|cut| cut.gain).fold(0.0, f64::max);
        cuts.into_iter().find(|cut| ties(cut.gain, most))
    }

    /// What no gain exceeds: all of the node's impurity.
    fn impurity(&self) -> f64 {
        let mut impurity = 0.0;
        for c in 0..self.n_dense() + self.omega.len() {
            let known =
                || (0..self.codes.len()).filter_map(move |i| self.components(i).nth(c)?.1.map(|y| (i, y as f64)));
            let weight = |i: usize| f64::from(self.counts[i]) * self.weights[i] as f64;
            let all: f64 = known().map(|(i, _)| weight(i)).sum();
            let mean = known().map(|(i, y)| weight(i) * y).sum::<f64>() / all;
            let omega = self.components(0).nth(c).map_or(1.0, |(omega, _)| omega);
            impurity += omega * known().map(|(i, y)| weight(i) * (y - mean).powi(2)).sum::<f64>() / all.max(1.0);
        }
        impurity
    }

    /// Checks a cut that was found against the naive one.
    fn check(&self, found: Option<Cut>, naive: Option<Cut>) -> Result<(), TestCaseError> {
        let (Some(found), Some(naive)) = (found, naive) else {
            prop_assert_eq!(found, naive);
            return Ok(());
        };
        let impurity = self.impurity();
        // Values are searched relative to their mean, which is rounded to the precision of the largest value. An error
        // e of values with variance v is an error of up to 2·e·√v of a gain.
        let largest = self.dense.iter().flatten().flatten().map(|y| y.abs()).max().unwrap_or(0) as f64;
        let of_mean = 2.0 * f64::EPSILON * largest * impurity.sqrt();
        prop_assert!((found.gain - naive.gain).abs() <= 1e-13 * impurity + of_mean, "{found:?} {naive:?} {impurity}");
        // Below, rounding can make equal gains differ.
        if naive.gain > 1e-3 * impurity {
            prop_assert_eq!((found.code, found.missing), (naive.code, naive.missing));
        }
        Ok(())
    }
}

/// Every instruction set there is.
pub(crate) fn arches() -> Vec<Arch> {
    let mut arches = vec![Arch::Scalar, Arch::new()];
    #[cfg(target_arch = "x86_64")]
    {
        arches.extend(pulp::x86::V3::try_new().map(Arch::V3));
        arches.extend(pulp::x86::V4::try_new().map(Arch::V4));
    }
    arches
}

/// `search` on every instruction set; all must give the same bits.
fn on_every_arch(mut search: impl FnMut(Arch) -> Option<Cut>) -> Result<Option<Cut>, TestCaseError> {
    let bits = |cut: Option<Cut>| cut.map(|cut| (cut.gain.to_bits(), cut.code));
    let found: Vec<Option<Cut>> = arches().into_iter().map(&mut search).collect();
    for other in &found {
        prop_assert_eq!(bits(*other), bits(found[0]));
    }
    Ok(found[0])
}

/// Constraints that allow some cuts of `examples` and forbid others.
fn constraint(examples: usize) -> impl Strategy<Value = SplitConstraint> {
    let most = examples as u32;
    let min_leaf = prop_oneof![1..=2u32, 1..=most.max(1)];
    let missing = prop_oneof![Just(0), 0..=most];
    (min_leaf, missing)
        .prop_map(|(min_leaf, missing)| SplitConstraint { min_leaf: f64::from(min_leaf), missing: missing.into() })
}

#[test]
fn examples_that_miss_the_feature_follow_the_heavier_side_or_the_left_one() {
    let constraint = SplitConstraint { min_leaf: 3.0, missing: 2.0 };
    assert!(constraint.allows((3.0, 3.0), (1.0, 3.0)));
    assert!(!constraint.allows((3.0, 3.0), (3.0, 1.0)));
    assert!(constraint.allows((3.0, 4.0), (3.0, 1.0)));
    assert!(!constraint.allows((3.0, 4.0), (1.0, 3.0)));
    // They do not fill a side that is empty.
    assert!(!constraint.allows((0.0, 4.0), (0.0, 4.0)));
    assert!(!SplitConstraint { min_leaf: 1.0, missing: 9.0 }.allows((1.0, 0.0), (1.0, 0.0)));
}
