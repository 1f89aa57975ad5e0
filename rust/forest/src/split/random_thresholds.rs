//! Random cuts of several features of a large node, for few dense components.
//!
//! Each example has a bit for each cut, which is 1 if the cut sends the example to the left. Examples with the same
//! bits are a group. One pass over the values of the examples adds up the groups for all cuts. The sums of the left
//! side of a cut are then those of all groups with its bit.

use pulp::{Arch, Simd, WithSimd};

use super::dense::{self, GroupSums, LeftSides, OnRegisters, RegisterSums};
use super::examples::Examples;
use super::node::Node;
use super::{Cut, SplitConstraint};
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::tree_buffer::MissingSide;
use ferrank_data::store::Code;

/// Random cuts, and the examples on their left sides.
#[derive(Debug, Default)]
pub(crate) struct RandomThresholds {
    /// n_examples; the bits of each example.
    marks: Vec<u8>,
    cuts: Vec<MarkedCut>,
    /// 2^n_cuts; the sums of the examples with these bits.
    groups: GroupSums,
}

/// A random cut of a feature.
#[derive(Debug, Clone, Copy)]
struct MarkedCut {
    feature: u32,
    code: u16,
    missing: MissingSide,
    /// True if at most half of the rows are on the left.
    left_is_smaller: bool,
    /// −1 if the constraint forbids the cut.
    gain: f64,
}

impl RandomThresholds {
    /// The most cuts at once; each doubles the number of groups.
    const MOST: usize = 7;

    /// Adds the cut of `feature` above the code `cut`. `codes` are those of the examples; missing values that go left
    /// have a code up to `cut`. Returns true if there is no space for another cut.
    pub(crate) fn take<C: Code>(
        &mut self,
        arch: Arch,
        feature: u32,
        codes: &[C],
        cut: u16,
        missing: MissingSide,
    ) -> bool {
        if self.cuts.is_empty() {
            self.marks.clear();
            self.marks.resize(codes.len(), 0);
        }
        let n_left =
            arch.dispatch(Mark { codes, cut: C::from_u16(cut), bit: 1 << self.cuts.len(), marks: &mut self.marks });
        let left_is_smaller = 2 * n_left <= codes.len();
        self.cuts.push(MarkedCut { feature, code: cut, missing, left_is_smaller, gain: -1.0 });
        self.cuts.len() == RandomThresholds::MOST
    }

    /// Removes all cuts and returns those that the constraint allows, with their features. The sums of their left sides
    /// are recorded in `lefts`. Gains have the bits of [`Search::given_cut`](super::search::Search::given_cut) with
    /// [`Kernel::Dense`](super::kernel::Kernel::Dense).
    pub(crate) fn judge<'a>(
        &'a mut self,
        arch: Arch,
        criterion: &Criterion,
        examples: Examples<'_>,
        node: &Node,
        constraint: SplitConstraint,
        lefts: &mut LeftSides,
    ) -> impl Iterator<Item = (u32, Cut)> + use<'a> {
        if !self.cuts.is_empty() {
            dense::in_registers(arch, criterion, Judge { cuts: self, criterion, examples, node, constraint, lefts });
        }
        let fitting = self.cuts.drain(..).filter(|cut| cut.gain >= 0.0);
        fitting.map(|MarkedCut { feature, code, missing, gain, .. }| (feature, Cut { gain, code, missing }))
    }
}

struct Mark<'a, C> {
    codes: &'a [C],
    cut: C,
    bit: u8,
    marks: &'a mut [u8],
}

impl<C: Code> WithSimd for Mark<'_, C> {
    /// Examples on the left.
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let Mark { codes, cut, bit, marks } = self;
        let mut n_left = 0;
        // The most that a byte can count.
        let most = usize::from(u8::MAX);
        for (codes, marks) in codes.chunks(most).zip(marks.chunks_mut(most)) {
            let mut left = 0u8;
            for (mark, &code) in marks.iter_mut().zip(codes) {
                let is_left = code <= cut;
                *mark |= if is_left { bit } else { 0 };
                left += u8::from(is_left);
            }
            n_left += usize::from(left);
        }
        n_left
    }
}

struct Judge<'a> {
    cuts: &'a mut RandomThresholds,
    criterion: &'a Criterion,
    examples: Examples<'a>,
    node: &'a Node,
    constraint: SplitConstraint,
    lefts: &'a mut LeftSides,
}

impl OnRegisters for Judge<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let Judge { cuts: RandomThresholds { marks, cuts, groups }, criterion, examples, node, constraint, lefts } =
            self;
        let (sizes, sums) = groups.cleared::<S, VECTORS>(1 << cuts.len());
        for (position, &mark) in marks.iter().enumerate() {
            let [weight, count] = dense::size_of(examples, position);
            sizes[usize::from(mark)][0] += weight;
            sizes[usize::from(mark)][1] += count;
            let values: [S::f64s; VECTORS] = dense::values_of(simd, examples, position);
            for (sum, value) in sums[usize::from(mark)].iter_mut().zip(values) {
                *sum = simd.add_f64s(*sum, value);
            }
        }
        let total: [S::f64s; VECTORS] = dense::load(simd, criterion.dense(&node.total));
        for (number, cut) in cuts.iter_mut().enumerate().rev() {
            // Adds up the groups with the bit of this cut, then drops the bit by merging groups that differ in it
            // alone.
            let half = 1 << number;
            let ((without, with), (few_without, few_with)) = (sums.split_at_mut(half), sizes.split_at_mut(half));
            let mut side = RegisterSums::<S, VECTORS>::new(simd, node);
            for ((with, without), (few_with, few_without)) in
                with.iter().zip(without).zip(few_with.iter().zip(few_without))
            {
                side.add_sums(simd, *few_with, *with);
                for v in 0..VECTORS {
                    without[v] = simd.add_f64s(without[v], with[v]);
                }
                few_without[0] += few_with[0];
                few_without[1] += few_with[1];
            }
            let sides =
                [(side.weight, node.total[WEIGHT] - side.weight), (side.count, node.total[EXAMPLES] - side.count)];
            if constraint.allows(sides[0], sides[1]) {
                side.note(simd, criterion, cut.feature, lefts);
                if !cut.left_is_smaller {
                    side.turn(simd, total, sides[0].1);
                }
                cut.gain = (side.quality(simd) / (sides[0].0 * sides[0].1)).max(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_left_codes_than_a_byte_counts_are_counted() {
        for (n_left, left_is_smaller) in [(300, false), (151, false), (150, true)] {
            let codes: Vec<u8> = (0..300).map(|position| u8::from(position >= n_left)).collect();
            let mut thresholds = RandomThresholds::default();
            thresholds.take(Arch::new(), 0, &codes, 0, MissingSide::Heavier);
            assert_eq!(thresholds.cuts[0].left_is_smaller, left_is_smaller, "{n_left}");
        }
    }
}
