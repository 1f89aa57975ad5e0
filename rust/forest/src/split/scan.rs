//! The best cut for any components, from the examples in the order of their codes.
//!
//! Examples are sorted by code, and the sums of the left side grow example by example. For indicators (labels, classes)
//! the sum Σ ω·(C_L − p·W_L)² is updated label by label. A search then costs the number of labels that examples have,
//! not the number of all labels:
//!
//! ```text
//! for each example, of weight w and labels l:
//!     squares += w²·Σ ω_l + 2·w·Σ ω_l·C_l     Σ ω·C_L²
//!     cross   += w·Σ ω_l·c_l                  Σ ω·C_L·c,  c the node's counts
//!     ω_l·C_l += ω_l·w
//! Σ ω·(C_L − c·r)² = squares − 2·r·cross + r²·Σ ω·c²,  r = W_L / W
//! ```
//!
//! Of these only Σ ω_l·C_l depends on the order. Indicators that are missing in some rows are summed up in the same
//! way, group by group, with r the group's share of weight.
//!
//! Large nodes are searched with sums by code instead ([`node_sums`](super::node_sums)).

use pulp::{Arch, Simd, WithSimd};

use super::dense;
use super::gain::GainFormula;
use super::kernel::Kernel;
use super::label_bins::LabelBins;
use super::missing::better;
use super::multi_feature::MultiFeatureHistogram;
use super::node_sums::{NodeSums, SumLayout};
use super::order::{last_first, sort};
use super::prefix::Prefixes;
use super::search::Search;
use super::side_sums::{SideBuffers, SideSums};
use super::{Best, Cut, values};
use crate::criterion::Criterion;
use ferrank_data::store::Code;

/// Buffers of a search, reused from search to search.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Positions of the examples by code, then by row; or those of one side of a cut.
    pub(super) order: Vec<u32>,
    /// Positions of the examples by the low bytes of their codes.
    spare: Vec<u32>,
    /// The code of each entry of the node's label labels.
    pub(super) entry_codes: Vec<u16>,
    pub(super) side: SideBuffers,
    walk: Prefixes,
    sums: NodeSums,
    /// Sums by code where there are labels alone.
    label_bins: LabelBins,
    /// Sums by code where components are dense and few.
    multi_feature: MultiFeatureHistogram,
}

impl Scratch {
    pub(crate) fn new(criterion: &Criterion) -> Self {
        Scratch {
            order: Vec::new(),
            spare: Vec::new(),
            entry_codes: Vec::new(),
            side: SideBuffers::new(criterion),
            walk: Prefixes::default(),
            sums: NodeSums::default(),
            label_bins: LabelBins::default(),
            multi_feature: MultiFeatureHistogram::default(),
        }
    }
}

impl<C: Code> Search<'_, C> {
    /// The best cut, found by `kernel`. `None` if the constraint allows no cut.
    pub(crate) fn best_cut(self, kernel: Kernel, arch: Arch, scratch: &mut Scratch) -> Option<Cut> {
        let Search { criterion, examples, codes, node, constraint, missing, .. } = self;
        if kernel == Kernel::MultiFeature {
            let multi_feature = &mut scratch.multi_feature;
            multi_feature.take(criterion, 0, codes, self.n_known(), missing.is_some());
            let mut best = multi_feature.best_cuts(arch, criterion, examples, node, constraint, None);
            return best.next().map(|(_, cut)| cut);
        }
        arch.dispatch(BestCut { search: self, kernel, scratch })
    }
}

struct BestCut<'a, C> {
    search: Search<'a, C>,
    kernel: Kernel,
    scratch: &'a mut Scratch,
}

impl<C: Code> WithSimd for BestCut<'_, C> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        match self.kernel {
            Kernel::LabelBins => self.scratch.label_bins.best_cut(simd, self.search),
            Kernel::NodeSums => self.by_sums(simd),
            _ => self.in_order(simd),
        }
    }
}

impl<C: Code> BestCut<'_, C> {
    #[inline(always)]
    fn by_sums<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, examples, codes, node, constraint, .. } = self.search;
        let Scratch { sums, side, .. } = self.scratch;
        sums.reset(SumLayout::Full(criterion.len()), self.search.n_known());
        sums.add_all(simd, criterion, examples, codes);
        sums.best_cut(simd, criterion, node, constraint, sums.some_missing(), &mut side.sums)
    }

    /// Adds up the examples in the order of their codes; a second time if values are missing, with those first.
    #[inline(always)]
    fn in_order<S: Simd>(mut self, simd: S) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, missing, .. } = self.search;
        let Scratch { order, spare, entry_codes, .. } = &mut *self.scratch;
        let by_entry = self.kernel == Kernel::Labels;
        match by_entry {
            true => {
                node.labels(criterion, examples).write_codes(codes, entry_codes);
                sort(entry_codes, n_codes, order, spare);
            }
            false => sort(codes, n_codes, order, spare),
        }
        let (mut n_missing, mut right) = (0, None);
        loop {
            let cut = match self.kernel {
                Kernel::Labels => self.by_labels(simd, n_missing),
                Kernel::Dense => self.by_dense(simd, n_missing),
                _ => self.by_any(simd, n_missing),
            };
            let Some(missing) = missing else { return cut };
            if n_missing > 0 {
                return better(right, cut, usize::from(missing) - 1);
            }
            right = cut;
            let Scratch { order, entry_codes, .. } = &mut *self.scratch;
            n_missing = match by_entry {
                true => last_first(entry_codes, missing, order),
                false => last_first(codes, C::from_u16(missing), order),
            };
        }
    }

    /// For few dense components. The first `n_missing` examples in order are on the left of all cuts.
    #[inline(always)]
    fn by_dense<S: Simd>(&mut self, simd: S, n_missing: usize) -> Option<Cut> {
        let Scratch { order, walk, .. } = &mut *self.scratch;
        match values::vectors_of::<S>(self.search.criterion) {
            Some(1) => dense::best_cut::<S, C, 1>(simd, self.search, order, n_missing, walk),
            Some(2) => dense::best_cut::<S, C, 2>(simd, self.search, order, n_missing, walk),
            _ => dense::best_cut::<S, C, 4>(simd, self.search, order, n_missing, walk),
        }
    }

    /// For any components. The first `n_missing` examples in order are on the left of all cuts.
    #[inline(always)]
    fn by_any<S: Simd>(&mut self, simd: S, n_missing: usize) -> Option<Cut> {
        let Search { criterion, codes, node, constraint, .. } = self.search;
        let Scratch { order, side, .. } = &mut *self.scratch;
        let mut best = Best::new(node.weight(), node.examples(), constraint);
        let is_last =
            |i: usize, position: usize| order.get(i + 1).is_none_or(|&next| codes[next as usize] != codes[position]);
        let mut left = SideSums::new(self.search, side);
        for (i, position) in order.iter().map(|&position| position as usize).enumerate() {
            if i < n_missing || !is_last(i, position) {
                left.add(simd, self.search, position);
                continue;
            }
            let (code, quality) = (codes[position].index(), left.add_measured(simd, self.search, position));
            if criterion.is_partial() {
                best.offer_gain(code, left.gain(simd, node, quality), left.weight, left.count);
            } else {
                best.offer(code, quality, left.weight, left.count);
            }
        }
        left.clear(order);
        best.cut()
    }

    /// For labels alone, known for all rows, of weight 1. The first `n_missing` entries in order are on the left of all
    /// cuts.
    #[inline(always)]
    fn by_labels<S: Simd>(&mut self, simd: S, n_missing: usize) -> Option<Cut> {
        let Search { criterion, examples, node, constraint, .. } = self.search;
        let Scratch { order, entry_codes, side, walk, .. } = &mut *self.scratch;
        let labels = node.labels(criterion, examples);
        labels.walk(entry_codes, order, &mut side.labels, walk);
        walk.join_first(n_missing);
        side.labels.clear(order.len(), labels.all_labels());
        walk.measure_labels(simd, node.examples(), node.squares);
        walk.best_cut(simd, GainFormula::from_qualities(node.examples(), constraint))
    }
}
