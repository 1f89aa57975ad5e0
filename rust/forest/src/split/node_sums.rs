//! Sums of the examples of a node by the code of a feature, and the best test that follows from them.
//!
//! This search supports any components, row weights and missing values. It is used for large nodes in memory and for
//! nodes whose rows are on disk, which differ only in where the sums were computed. The kernels for special cases are
//! faster.
//!
//! # Sums are exact
//!
//! Each number that is added is a multiple of a power of two, the grid of its component ([`space`](crate::space)). The
//! grid is so coarse that no partial sum over a bag is rounded. Therefore:
//!
//! - Examples may be added in any order and in any number of calls; the sums have the same bits.
//! - The sums of disjoint parts of the rows, added cell by cell in any order, have the bits of the sums of all rows.
//! - The sums of all rows less those of a part are the sums of the other rows.
//!
//! The parts must share the [`Space`](crate::space::Space), because the grid depends on all rows, and the codes of the
//! feature. Growth in external memory relies on the first property: it adds examples block by block.
//!
//! Memory: n_codes + 1 vectors of sums; pairs of numbers for a single component.

#[cfg(test)]
mod tests;

use pulp::{Arch, Simd, WithSimd};

use super::examples::Examples;
use super::examples::add_row;
use super::missing::better;
use super::node::Node;
use super::nominal::PresentCategories;
use super::quality::{dense_quality, indicator_quality};
use super::random_test::{random_sided_cut, random_subset};
use super::vectors::add_times;
use super::{Best, Cut, SplitConstraint};
use crate::candidates::Candidate;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::params::{Ensemble, ForestParams, Missing};
use crate::tree_buffer::{CodeTest, MissingSide, NodeTest};
use ferrank_data::profile::{Coding, Scale};
use ferrank_data::store::Code;
use ferrank_runtime::random::Stream;

/// The numbers for each code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumLayout {
    /// Count and sum, for a single component and rows of weight 1.
    Pairs,
    /// This number of sums, in the layout of [`Criterion`].
    Full(usize),
}

impl SumLayout {
    /// The smallest layout for `criterion`.
    pub(crate) fn new(criterion: &Criterion) -> Self {
        if criterion.is_single() { SumLayout::Pairs } else { SumLayout::Full(criterion.len()) }
    }

    fn stride(self) -> usize {
        match self {
            SumLayout::Pairs => 2,
            SumLayout::Full(len) => len,
        }
    }

    /// Bytes of the sums of a feature with `n_codes` codes.
    pub(crate) fn bytes(self, n_codes: usize) -> usize {
        size_of::<f64>() * self.stride() * (n_codes + 1)
    }
}

/// Sums of the examples of a node by the code of a feature; exact in any order of additions.
#[derive(Debug, Clone)]
pub(crate) struct NodeSums {
    layout: SumLayout,
    /// (n_codes + 1) x stride; the last row has the sums of the examples whose value is missing.
    cells: Vec<f64>,
}

impl Default for NodeSums {
    fn default() -> Self {
        NodeSums::new(SumLayout::Pairs, 0)
    }
}

impl NodeSums {
    /// Sums of no examples, for codes below `n_codes`.
    pub(crate) fn new(layout: SumLayout, n_codes: usize) -> Self {
        NodeSums { layout, cells: vec![0.0; layout.stride() * (n_codes + 1)] }
    }

    /// Sets all sums to 0, for codes below `n_codes`.
    pub(crate) fn reset(&mut self, layout: SumLayout, n_codes: usize) {
        self.layout = layout;
        self.cells.clear();
        self.cells.resize(layout.stride() * (n_codes + 1), 0.0);
    }

    /// All sums, code after code.
    pub(crate) fn cells(&self) -> &[f64] {
        &self.cells
    }

    /// All sums, code after code.
    pub(crate) fn cells_mut(&mut self) -> &mut [f64] {
        &mut self.cells
    }

    /// Bytes of the sums.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.cells[..])
    }

    /// Adds `examples`, whose codes are `codes`.
    pub(crate) fn add<C: Code>(&mut self, arch: Arch, criterion: &Criterion, examples: Examples<'_>, codes: &[C]) {
        arch.dispatch(AddExamples { sums: self, criterion, examples, codes });
    }

    #[inline(always)]
    pub(super) fn add_all<S: Simd, C: Code>(
        &mut self,
        simd: S,
        criterion: &Criterion,
        examples: Examples<'_>,
        codes: &[C],
    ) {
        // The code of a missing value is above all others.
        let stride = self.layout.stride();
        let last = self.cells.len() / stride - 1;
        match self.layout {
            SumLayout::Pairs => {
                let (pairs, _) = self.cells.as_chunks_mut::<2>();
                for (code, &[count, sum]) in codes.iter().zip(examples.pairs) {
                    let pair = &mut pairs[code.index().min(last)];
                    pair[0] += count;
                    pair[1] += sum;
                }
            }
            SumLayout::Full(_) => {
                for (i, code) in codes.iter().enumerate() {
                    let start = code.index().min(last) * stride;
                    add_row(simd, criterion, examples, i, &mut self.cells[start..start + stride]);
                }
            }
        }
    }

    /// Adds the examples that are in `total` and not yet in these sums, whose code is `code`.
    pub(crate) fn add_rest(&mut self, code: usize, total: &[f64]) {
        let (listed, stride) = (self.total(), self.layout.stride());
        let cells = &mut self.cells[code * stride..][..stride];
        cells.iter_mut().zip(total).zip(listed).for_each(|((cell, total), listed)| *cell += total - listed);
    }

    /// The same sums in the full layout.
    pub(crate) fn to_full(&self) -> NodeSums {
        match self.layout {
            SumLayout::Pairs => {
                let cells = self.cells.as_chunks().0.iter().flat_map(|&[count, sum]| [count, count, sum]).collect();
                NodeSums { layout: SumLayout::Full(3), cells }
            }
            SumLayout::Full(_) => self.clone(),
        }
    }

    /// The sums of each code, then those of missing values.
    #[inline(always)]
    fn rows(&self) -> impl DoubleEndedIterator<Item = &[f64]> + ExactSizeIterator {
        self.cells.chunks_exact(self.layout.stride())
    }

    /// The codes that occur, ascending, with their sums.
    #[inline(always)]
    fn present(&self) -> impl DoubleEndedIterator<Item = (usize, &[f64])> {
        let mut rows = self.rows();
        rows.next_back();
        rows.enumerate().filter(|(_, sums)| sums[EXAMPLES] > 0.0)
    }

    /// The sums of the examples whose value is missing.
    fn missing(&self) -> &[f64] {
        &self.cells[self.cells.len() - self.layout.stride()..]
    }

    /// The sums of the examples whose value is missing, if there are any.
    pub(super) fn some_missing(&self) -> Option<&[f64]> {
        Some(self.missing()).filter(|sums| sums[EXAMPLES] > 0.0)
    }

    /// The sums of the examples with codes for which `wanted` returns true.
    fn sum(&self, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut total = vec![0.0; self.layout.stride()];
        self.present().filter(|&(code, _)| wanted(code)).for_each(|(_, sums)| add_to(&mut total, sums));
        total
    }

    /// The sums of all examples.
    pub(crate) fn total(&self) -> Vec<f64> {
        let mut total = self.sum(|_| true);
        add_to(&mut total, self.missing());
        total
    }

    /// The lowest code that occurs above `cut`; `cut` if there is none.
    pub(crate) fn next_code(&self, cut: u16) -> u16 {
        let next = self.present().map(|(code, _)| code as u16).find(|&code| code > cut);
        next.unwrap_or(cut)
    }

    /// The sums of the left side of `test`, and those of all examples that it divides: missing values are left out if
    /// they go to the heavier side.
    pub(crate) fn sides(&self, NodeTest { test, missing }: &NodeTest) -> (Vec<f64>, Vec<f64>) {
        let mut left = match test {
            CodeTest::Cut(cut) => self.sum(|code| code <= usize::from(*cut)),
            CodeTest::Subset(codes) => self.sum(|code| codes.binary_search(&(code as u16)).is_ok()),
        };
        match missing {
            MissingSide::Heavier => return (left, self.sum(|_| true)),
            MissingSide::Left => add_to(&mut left, self.missing()),
            MissingSide::Right => {}
        }
        (left, self.total())
    }

    /// The best cut. `node` has the sums of the examples, those with `missing` values included if their sums are given.
    /// `left` is a buffer of zeros, which are restored.
    #[inline(always)]
    pub(super) fn best_cut<S: Simd>(
        &self,
        simd: S,
        criterion: &Criterion,
        node: &Node,
        constraint: SplitConstraint,
        missing: Option<&[f64]>,
        left: &mut [f64],
    ) -> Option<Cut> {
        let right = self.best_cut_from(simd, criterion, node, constraint, left);
        let Some(missing) = missing else { return right };
        left.copy_from_slice(missing);
        let with_missing = self.best_cut_from(simd, criterion, node, constraint, left);
        let highest = self.present().next_back().map_or(0, |(code, _)| code);
        better(right, with_missing, highest)
    }

    /// The best cut, where `left` has the sums that are on the left of all cuts. Sets `left` to 0.
    #[inline(always)]
    fn best_cut_from<S: Simd>(
        &self,
        simd: S,
        criterion: &Criterion,
        node: &Node,
        constraint: SplitConstraint,
        left: &mut [f64],
    ) -> Option<Cut> {
        let mut best = Best::new(node.weight(), node.examples(), constraint);
        for (code, sums) in self.present() {
            add_times(simd, left, sums, 1.0);
            let (weight, count) = (left[WEIGHT], left[EXAMPLES]);
            if criterion.is_partial() {
                best.offer_gain(code, criterion.gain(left, &node.total), weight, count);
            } else {
                let dense = dense_quality(simd, criterion.dense(left), weight, node);
                best.offer(code, dense + indicator_quality(criterion, left, node), weight, count);
            }
        }
        left.fill(0.0);
        best.cut()
    }
}

struct AddExamples<'a, C> {
    sums: &'a mut NodeSums,
    criterion: &'a Criterion,
    examples: Examples<'a>,
    codes: &'a [C],
}

impl<C: Code> WithSimd for AddExamples<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.sums.add_all(simd, self.criterion, self.examples, self.codes);
    }
}

/// Searches the best test of a feature from sums alone, with the same random draws as the search from examples.
pub(crate) struct SumSearch<'a> {
    pub(crate) arch: Arch,
    pub(crate) criterion: &'a Criterion,
    pub(crate) feature: u32,
    pub(crate) coding: &'a Coding,
    /// In the full layout.
    pub(crate) sums: &'a NodeSums,
}

impl SumSearch<'_> {
    /// Returns true if the feature varies in the node, and its best test.
    pub(crate) fn run(&self, params: &ForestParams, random: &mut Stream) -> (bool, Option<Candidate>) {
        let SumSearch { sums, criterion, coding, feature, .. } = *self;
        let ends = (sums.present().next(), sums.present().next_back());
        let (Some((low, _)), Some((high, _))) = ends else { return (false, None) };
        let missing = sums.some_missing();
        let (informative, ignored) = match params.missing {
            Missing::Informative => (missing, None),
            Missing::Ignore => (None, missing),
        };
        if low == high && informative.is_none() {
            return (false, None);
        }
        let mut total = sums.sum(|_| true);
        if let Some(missing) = informative {
            add_to(&mut total, missing);
        }
        let share = ignored.map_or(1.0, |missing| total[WEIGHT] / (total[WEIGHT] + missing[WEIGHT]));
        let left_out = ignored.map_or(0.0, |missing| missing[EXAMPLES]);
        let constraint = SplitConstraint { min_leaf: params.min_samples_leaf as f64, missing: left_out };
        let at_random = params.ensemble == Ensemble::ExtraTrees;
        let found = match (&coding.scale, at_random) {
            (Scale::Numeric(_), false) => self.best_cut(total, constraint, informative),
            (Scale::Numeric(cuts), true) => {
                let (code, missing) = random_sided_cut(&cuts.values, (low, high), informative.is_some(), random);
                self.given_cut(&total, constraint, NodeTest { test: CodeTest::Cut(code), missing })
            }
            (Scale::Nominal(_), _) => {
                // A missing value is one more category.
                let missing = informative.map(|sums| (coding.n_codes(), sums));
                let categories = || sums.present().chain(missing);
                let codes: Vec<u16> = categories().map(|(code, _)| code as u16).collect();
                let cells = categories().flat_map(|(_, sums)| sums).copied().collect();
                let present = PresentCategories::from_sums(codes, cells, total);
                let subset = match at_random {
                    true => present.given(criterion, constraint, &random_subset(present.codes.len(), random)),
                    false => present.best(criterion, constraint),
                };
                subset.map(|subset| subset.test(missing.map(|(code, _)| code as u16)))
            }
        };
        (true, found.map(|(gain, test)| Candidate { gain: share * gain, feature, test }))
    }

    fn best_cut(
        &self,
        total: Vec<f64>,
        constraint: SplitConstraint,
        missing: Option<&[f64]>,
    ) -> Option<(f64, NodeTest)> {
        let mut node = Node::default();
        node.total = total;
        node.open(self.criterion);
        let cut = self.arch.dispatch(BestCut { search: self, node: &node, constraint, missing });
        cut.map(|cut| (cut.gain, cut.test()))
    }

    fn given_cut(&self, total: &[f64], constraint: SplitConstraint, test: NodeTest) -> Option<(f64, NodeTest)> {
        let (left, _) = self.sums.sides(&test);
        let right = (total[WEIGHT] - left[WEIGHT], total[EXAMPLES] - left[EXAMPLES]);
        let allowed = constraint.allows((left[WEIGHT], right.0), (left[EXAMPLES], right.1));
        allowed.then(|| (self.criterion.gain(&left, total), test))
    }
}

struct BestCut<'a> {
    search: &'a SumSearch<'a>,
    node: &'a Node,
    constraint: SplitConstraint,
    missing: Option<&'a [f64]>,
}

impl WithSimd for BestCut<'_> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        let SumSearch { criterion, sums, .. } = *self.search;
        let mut left = vec![0.0; criterion.len()];
        sums.best_cut(simd, criterion, self.node, self.constraint, self.missing, &mut left)
    }
}

fn add_to(total: &mut [f64], sums: &[f64]) {
    total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
}
