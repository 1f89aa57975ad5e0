//! Best cuts of several features of a large node, for few dense components.
//!
//! One pass over the values of the examples fills the histograms of all the features, because the values of a large
//! node do not stay in the cache.
//!
//! Memory: a vector of sums for each code of these features, at most 640 KiB.

use pulp::{Arch, Simd};

use super::dense::{self, GroupSums, LeftSides, OnRegisters, RegisterSums};
use super::examples::Examples;
use super::missing::better;
use super::node::Node;
use super::{Best, Cut, SplitConstraint};
use crate::criterion::Criterion;
use crate::tree_buffer::MissingSide;
use ferrank_data::store::Code;

/// Features that are searched together.
#[derive(Debug, Default)]
pub(crate) struct MultiFeatureHistogram {
    features: Vec<Coded>,
    /// n_features x n_examples
    codes: Vec<u16>,
    /// The codes of each feature, then missing values if there are any; the sums of the examples of each.
    groups: GroupSums,
    /// [`BLOCK`] x width; the components of a block of examples, times their counts.
    values: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Coded {
    feature: u32,
    n_codes: usize,
    /// True if some example misses the feature.
    has_missing: bool,
    best: Option<Cut>,
}

impl Coded {
    fn n_groups(&self) -> usize {
        self.n_codes + usize::from(self.has_missing)
    }
}

/// Number of examples that are added up for one feature before the next feature.
const BLOCK: usize = 128;
/// The most bytes of sums of several features, which fit the cache.
const MOST_BYTES: usize = 640 << 10;
/// With this number of codes no more features are taken, so that an interrupt does not wait long for a pass.
const MANY_CODES: usize = 1 << 24;

impl MultiFeatureHistogram {
    /// Adds a feature with the codes of the examples, all below `n_codes`, or missing if `has_missing`. Returns true if
    /// there is no space for another feature of this size.
    pub(crate) fn take<C: Code>(
        &mut self,
        criterion: &Criterion,
        feature: u32,
        codes: &[C],
        n_codes: usize,
        has_missing: bool,
    ) -> bool {
        self.features.push(Coded { feature, n_codes, has_missing, best: None });
        self.codes.extend(codes.iter().map(|code| code.index().min(n_codes) as u16));
        let all = n_codes + self.features.iter().map(|coded| coded.n_codes).sum::<usize>();
        all * criterion.len() * size_of::<f64>() > MOST_BYTES || self.codes.len() >= MANY_CODES
    }

    /// Removes all features and returns the best cut of each that has one. The sums of the left sides are recorded in
    /// `lefts`.
    pub(crate) fn best_cuts<'a>(
        &'a mut self,
        arch: Arch,
        criterion: &Criterion,
        examples: Examples<'_>,
        node: &Node,
        constraint: SplitConstraint,
        lefts: Option<&mut LeftSides>,
    ) -> impl Iterator<Item = (u32, Cut)> + use<'a> {
        if !self.features.is_empty() {
            dense::in_registers(
                arch,
                criterion,
                BestCuts { together: self, criterion, examples, node, constraint, lefts },
            );
            self.codes.clear();
        }
        self.features.drain(..).filter_map(|Coded { feature, best, .. }| best.map(|cut| (feature, cut)))
    }
}

struct BestCuts<'a> {
    together: &'a mut MultiFeatureHistogram,
    criterion: &'a Criterion,
    examples: Examples<'a>,
    node: &'a Node,
    constraint: SplitConstraint,
    lefts: Option<&'a mut LeftSides>,
}

impl OnRegisters for BestCuts<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let BestCuts { together, criterion, examples, node, constraint, mut lefts } = self;
        let MultiFeatureHistogram { features, codes, groups, values } = together;
        let (sizes, sums) = groups.cleared::<S, VECTORS>(features.iter().map(Coded::n_groups).sum());
        values.resize(BLOCK * VECTORS * S::F64_LANES, 0.0);
        let (values, _) = S::as_mut_simd_f64s(values);
        let (values, _) = values.as_chunks_mut::<VECTORS>();
        let mut sizes_of = [[0.0; 2]; BLOCK];
        let n = examples.rows.len();
        for start in (0..n).step_by(BLOCK) {
            let block = start..n.min(start + BLOCK);
            for ((position, values), size) in block.clone().zip(&mut *values).zip(&mut sizes_of) {
                *size = dense::size_of(examples, position);
                *values = dense::values_of(simd, examples, position);
            }
            let (mut sizes, mut sums) = (&mut sizes[..], &mut sums[..]);
            for (coded, codes) in features.iter().zip(codes.chunks_exact(n)) {
                let (own_sizes, own_sums);
                (own_sizes, sizes) = sizes.split_at_mut(coded.n_groups());
                (own_sums, sums) = sums.split_at_mut(coded.n_groups());
                for ((&code, values), size) in codes[block.clone()].iter().zip(&*values).zip(&sizes_of) {
                    let [weight, count] = &mut own_sizes[usize::from(code)];
                    *weight += size[0];
                    *count += size[1];
                    for (sum, &value) in own_sums[usize::from(code)].iter_mut().zip(values) {
                        *sum = simd.add_f64s(*sum, value);
                    }
                }
            }
        }
        let (mut sizes, mut sums) = (&sizes[..], &sums[..]);
        for coded in features {
            let (own_sizes, own_sums);
            (own_sizes, sizes) = sizes.split_at(coded.n_groups());
            (own_sums, sums) = sums.split_at(coded.n_groups());
            let known = (&own_sizes[..coded.n_codes], &own_sums[..coded.n_codes]);
            let nothing = RegisterSums::<S, VECTORS>::new(simd, node);
            let mut missing = nothing;
            coded.best = best_cut(simd, known, nothing, node, constraint);
            if coded.has_missing {
                missing.add_sums(simd, own_sizes[coded.n_codes], own_sums[coded.n_codes]);
                let highest = known.0.iter().rposition(|size| size[1] > 0.0).unwrap_or(0);
                coded.best = better(coded.best, best_cut(simd, known, missing, node, constraint), highest);
            }
            if let (Some(cut), Some(lefts)) = (coded.best, &mut lefts) {
                let mut left = if cut.missing == MissingSide::Left { missing } else { nothing };
                for (size, &sums) in known.0.iter().zip(known.1).take(usize::from(cut.code) + 1) {
                    left.add_sums(simd, *size, sums);
                }
                left.note(simd, criterion, coded.feature, lefts);
            }
        }
    }
}

/// The best cut of the groups with these `sizes` and `sums`, which are added to `left` one by one.
#[inline(always)]
fn best_cut<S: Simd, const VECTORS: usize>(
    simd: S,
    (sizes, sums): (&[[f64; 2]], &[[S::f64s; VECTORS]]),
    mut left: RegisterSums<S, VECTORS>,
    node: &Node,
    constraint: SplitConstraint,
) -> Option<Cut> {
    let mut best = Best::new(node.weight(), node.examples(), constraint);
    for (code, (size, &sums)) in sizes.iter().zip(sums).enumerate() {
        if size[1] > 0.0 {
            left.add_sums(simd, *size, sums);
            best.offer(code, left.quality(simd), left.weight, left.count);
        }
    }
    best.cut()
}
