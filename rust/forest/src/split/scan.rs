//! Cuts for any component space, examples in the order of their codes.
//!
//! Examples are sorted by code and walked, and the left sums grow example by example. For
//! indicators (labels, classes) the sum Σ ω·(C_L − p·W_L)² is kept up to date label by label, so that
//! a search costs the number of labels present and not the number there are:
//!
//! ```text
//! for each example, of weight w and labels l:
//!     squares += w²·Σ ω_l + 2·w·Σ ω_l·C_l     Σ ω·C_L²
//!     cross   += w·Σ ω_l·c_l                  Σ ω·C_L·c,  c the node's counts
//!     ω_l·C_l += ω_l·w
//! Σ ω·(C_L − c·r)² = squares − 2·r·cross + r²·Σ ω·c²,  r = W_L / W
//! ```
//!
//! Of these only Σ ω_l·C_l depends on the order. Indicators that are missing in some rows are summed up the same
//! way, group by group, with r the group's share of weight.
//!
//! Large nodes are searched with sums by code instead ([`node_sums`](super::node_sums)).

use pulp::{Arch, Simd, WithSimd};

use super::dense;
use super::examples::Examples;
use super::kernel::Kernel;
use super::label_bins::LabelBins;
use super::label_csr::{LabelCsr, LabelSums};
use super::label_entry::IndicatorSums;
use super::multi_feature::MultiFeatureHistogram;
use super::node::Node;
use super::node_sums::{NodeSums, SumLayout};
use super::order::{positions, sort};
use super::prefix::Prefixes;
use super::quality::{add_measured, dense_quality};
use super::search::Search;
use super::vectors::{add_times, dense_gain};
use super::{Best, Cut, values};
use crate::criterion::Criterion;
use crate::split::single::GainFormula;
use ferrank_data::store::Code;

/// Buffers of a search.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Positions of the examples by code, then by row.
    order: Vec<u32>,
    /// Positions of the examples by the low bytes of their codes.
    spare: Vec<u32>,
    /// Codes of what a node lists.
    listed: Vec<u16>,
    side: Side,
    walk: Prefixes,
    sums: NodeSums,
    /// Sums by code where there are labels alone.
    label_bins: LabelBins,
    /// Sums by code where components are dense and few.
    multi_feature: MultiFeatureHistogram,
}

/// Where one side is summed up: zeros between searches.
#[derive(Debug)]
struct Side {
    sums: Vec<f64>,
    labels: LabelSums,
    /// n_groups
    groups: Vec<IndicatorSums>,
}

impl Scratch {
    pub(crate) fn new(criterion: &Criterion) -> Self {
        let side = Side {
            sums: vec![0.0; criterion.len()],
            labels: LabelSums::new(criterion),
            groups: vec![IndicatorSums::default(); criterion.n_groups],
        };
        Scratch {
            order: Vec::new(),
            spare: Vec::new(),
            listed: Vec::new(),
            side,
            walk: Prefixes::default(),
            sums: NodeSums::default(),
            label_bins: LabelBins::default(),
            multi_feature: MultiFeatureHistogram::default(),
        }
    }
}

impl<C: Code> Search<'_, C> {
    /// The best cut as `kernel` finds it; `None` if the constraint allows no cut.
    pub(crate) fn best_cut(self, kernel: Kernel, arch: Arch, scratch: &mut Scratch) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, constraint } = self;
        if kernel == Kernel::MultiFeature {
            let multi_feature = &mut scratch.multi_feature;
            multi_feature.take(criterion, 0, codes, n_codes);
            let mut best = multi_feature.best_cuts(arch, criterion, examples, node, constraint, None);
            return best.next().map(|(_, cut)| cut);
        }
        arch.dispatch(BestCut { search: self, kernel, scratch })
    }

    /// The cut at `cut` with its gain as `kernel` finds it; `None` if the constraint does not allow it.
    pub(crate) fn given_cut(self, kernel: Kernel, arch: Arch, cut: C, scratch: &mut Scratch) -> Option<Cut> {
        arch.dispatch(GivenCut { search: self, kernel, cut, scratch })
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
            Kernel::Labels => self.by_labels(simd),
            Kernel::Dense => self.by_dense(simd),
            _ => self.in_order(simd),
        }
    }
}

impl<C: Code> BestCut<'_, C> {
    #[inline(always)]
    fn by_sums<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, constraint } = self.search;
        let Scratch { sums, side, .. } = self.scratch;
        sums.reset(SumLayout::Full(criterion.len()), n_codes);
        sums.add_all(simd, criterion, examples, codes);
        sums.best_cut(simd, criterion, node, constraint, &mut side.sums)
    }

    #[inline(always)]
    fn by_dense<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, codes, n_codes, .. } = self.search;
        let Scratch { order, spare, walk, .. } = self.scratch;
        sort(codes, n_codes, order, spare);
        match values::vectors_of::<S>(criterion) {
            Some(1) => dense::best_cut::<S, C, 1>(simd, self.search, order, walk),
            Some(2) => dense::best_cut::<S, C, 2>(simd, self.search, order, walk),
            _ => dense::best_cut::<S, C, 4>(simd, self.search, order, walk),
        }
    }

    #[inline(always)]
    fn in_order<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, codes, n_codes, node, constraint, .. } = self.search;
        let Scratch { order, spare, side, .. } = self.scratch;
        sort(codes, n_codes, order, spare);
        let mut best = Best::new(node.weight(), node.examples(), constraint);
        let is_last =
            |i: usize, position: usize| order.get(i + 1).is_none_or(|&next| codes[next as usize] != codes[position]);
        let mut left = LeftSums::new(self.search, side);
        for (i, position) in order.iter().map(|&position| position as usize).enumerate() {
            if !is_last(i, position) {
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

    /// Where there are labels alone, known for all rows of weight 1.
    #[inline(always)]
    fn by_labels<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, constraint } = self.search;
        let Scratch { order, spare, listed, side, walk, .. } = self.scratch;
        let lists = node.lists(criterion, examples);
        lists.take_codes(codes, listed);
        sort(listed, n_codes, order, spare);
        lists.walk(listed, order, &mut side.labels, walk);
        side.labels.clear(order.len(), lists.all_labels());
        walk.measure_labels(simd, node.examples(), node.squares);
        walk.best_cut(simd, GainFormula::from_qualities(node.examples(), constraint))
    }
}

struct GivenCut<'a, C> {
    search: Search<'a, C>,
    kernel: Kernel,
    cut: C,
    scratch: &'a mut Scratch,
}

impl<C: Code> WithSimd for GivenCut<'_, C> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { codes, node, constraint, .. } = self.search;
        let n_left = codes.iter().filter(|&&code| code <= self.cut).count();
        let left_is_smaller = 2 * n_left <= codes.len();
        // Splitting off one side gains as much as splitting off the other.
        let (weight, count, gain) = match self.kernel {
            Kernel::Dense => self.search.side_of_dense(simd, self.cut, left_is_smaller),
            Kernel::Labels => self.search.side_of_labels(self.cut, left_is_smaller, self.scratch),
            _ => {
                let Scratch { order, side, .. } = self.scratch;
                positions(codes, |code| (code <= self.cut) == left_is_smaller, order);
                self.search.side_gain(simd, order, side)
            }
        };
        let (weights, counts) = ((weight, node.weight() - weight), (count, node.examples() - count));
        let fits = if left_is_smaller {
            constraint.allows(weights, counts)
        } else {
            constraint.allows((weights.1, weights.0), (counts.1, counts.0))
        };
        fits.then(|| Cut { gain: gain.max(0.0), code: self.cut.index() as u16 })
    }
}

impl<C: Code> Search<'_, C> {
    /// Weight, examples and gain of one side of `cut`, where components are dense and few.
    #[inline(always)]
    fn side_of_dense<S: Simd>(self, simd: S, cut: C, left: bool) -> (f64, f64, f64) {
        match values::vectors_of::<S>(self.criterion) {
            Some(1) => dense::side_gain::<S, C, 1>(simd, self, cut, left),
            Some(2) => dense::side_gain::<S, C, 2>(simd, self, cut, left),
            _ => dense::side_gain::<S, C, 4>(simd, self, cut, left),
        }
    }

    /// Weight, examples and gain of one side of `cut`, where there are labels alone, known for all rows of weight 1.
    #[inline(always)]
    fn side_of_labels(self, cut: C, left: bool, scratch: &mut Scratch) -> (f64, f64, f64) {
        let Search { criterion, examples, codes, node, .. } = self;
        let Scratch { order, listed, side, .. } = scratch;
        let lists = node.lists(criterion, examples);
        lists.take_codes(codes, listed);
        positions(listed, |code| (code.index() <= cut.index()) == left, order);
        let (count, whole) = lists.sum(order, &mut side.labels);
        side.labels.clear(order.len(), order.iter().flat_map(|&place| lists.labels_at(place)));
        let gain = whole.quality(count / node.weight(), node.squares) / (count * (node.weight() - count));
        (count, count, gain)
    }

    /// Weight, examples and gain of the side that `positions` make.
    #[inline(always)]
    fn side_gain<S: Simd>(self, simd: S, positions: &[u32], zeros: &mut Side) -> (f64, f64, f64) {
        let Search { criterion, node, .. } = self;
        let mut side = LeftSums::new(self, zeros);
        positions.iter().for_each(|&position| side.add(simd, self, position as usize));
        let dense = dense_quality(simd, &side.row[..criterion.n_whole], side.weight, node);
        let result = (side.weight, side.count, side.gain(simd, node, side.quality(node, dense)));
        side.clear(positions);
        result
    }
}

/// Sums of one side.
struct LeftSums<'a> {
    criterion: &'a Criterion,
    /// The sums of a row of the block.
    row: &'a mut [f64],
    /// The labels of the node's examples, if there are labels.
    lists: Option<&'a LabelCsr>,
    labels: &'a mut LabelSums,
    weight: f64,
    count: f64,
    /// Of the indicators known for all rows.
    whole: IndicatorSums,
    /// n_groups
    groups: &'a mut [IndicatorSums],
}

impl<'a> LeftSums<'a> {
    #[inline(always)]
    fn new<C>(search: Search<'a, C>, side: &'a mut Side) -> Self {
        let Search { criterion, examples, node, .. } = search;
        let Side { sums, labels, groups } = side;
        let row = &mut sums[..criterion.width()];
        let lists = (!criterion.indicator_weight.is_empty()).then(|| node.lists(criterion, examples));
        LeftSums { criterion, row, lists, labels, weight: 0.0, count: 0.0, whole: IndicatorSums::default(), groups }
    }

    /// Adds the example at `position`.
    #[inline(always)]
    fn add<S: Simd, C: Code>(&mut self, simd: S, search: Search<'_, C>, position: usize) {
        self.add_rest(search, position);
        if !self.row.is_empty() {
            let (dense, count) = search.examples.dense(position);
            add_times(simd, self.row, dense, count);
        }
    }

    /// Adds the example at `position`. Returns Σ (S_L − m·W_L)² over all components known for all rows.
    #[inline(always)]
    fn add_measured<S: Simd, C: Code>(&mut self, simd: S, search: Search<'_, C>, position: usize) -> f64 {
        self.add_rest(search, position);
        if self.row.is_empty() {
            return self.quality(search.node, 0.0);
        }
        let (dense, count) = search.examples.dense(position);
        let (whole, partial) = self.row.split_at_mut(self.criterion.n_whole);
        let (from_whole, from_partial) = dense.split_at(whole.len());
        let dense = add_measured(simd, whole, from_whole, count, search.node, self.weight);
        add_times(simd, partial, from_partial, count);
        self.quality(search.node, dense)
    }

    /// Adds what the example at `position` has besides dense components.
    #[inline(always)]
    fn add_rest<C: Code>(&mut self, search: Search<'_, C>, position: usize) {
        let Some(lists) = self.lists else {
            let Examples { block, rows, counts, .. } = search.examples;
            let count = f64::from(counts[position]);
            self.count += count;
            self.weight += count * block.weight(rows[position] as usize);
            return;
        };
        let example = lists.at(position);
        self.count += example.count;
        self.weight += example.weight;
        let had = lists.add(position, self.labels);
        self.whole.add(example, had);
        if !self.groups.is_empty() {
            self.add_partial(search.node, lists.partial(position), example.weight);
        }
    }

    /// Adds `labels`, those of an example that have weights of their own.
    fn add_partial(&mut self, node: &Node, labels: &[u32], weight: f64) {
        let n_whole = self.criterion.n_whole_indicators();
        for label in labels.iter().map(|&label| label as usize) {
            let group = &mut self.groups[self.criterion.indicator_group[label - n_whole] as usize];
            let own = self.criterion.indicator_weight[label] * weight;
            let sum = self.labels.of(label);
            group.squares += weight * (own + 2.0 * *sum);
            group.cross += weight * node.weighted[label];
            *sum += own;
        }
    }

    /// Σ (S_L − m·W_L)² over all components known for all rows, with their weights; `dense` is that over the
    /// dense ones.
    #[inline(always)]
    fn quality(&self, node: &Node, dense: f64) -> f64 {
        if self.lists.is_none() {
            return dense;
        }
        dense + self.whole.quality(self.weight / node.weight(), node.squares)
    }

    /// The impurity decrease; `quality` is that over the components known for all rows.
    #[inline(always)]
    fn gain<S: Simd>(&self, simd: S, node: &Node, quality: f64) -> f64 {
        let gain = quality / (self.weight * (node.weight() - self.weight));
        if self.criterion.is_partial() { gain + self.partial_gain(simd, node) } else { gain }
    }

    /// The part of it that components with weights of their own make.
    #[inline(always)]
    fn partial_gain<S: Simd>(&self, simd: S, node: &Node) -> f64 {
        let Criterion { n_whole, n_partial, .. } = *self.criterion;
        let (sums, weights) = self.row[n_whole..].split_at(n_partial);
        let totals = &self.criterion.row(&node.total)[n_whole + n_partial..];
        let mut gain = dense_gain(simd, sums, &weights[..n_partial], &totals[..n_partial], &node.means[n_whole..]);
        let groups = self.groups.iter().zip(&node.group_squares).zip(&weights[n_partial..]).zip(&totals[n_partial..]);
        for (((group, &squares), &left), &all) in groups {
            let both = left * (all - left);
            if both > 0.0 {
                gain += group.quality(left / all, squares) / both;
            }
        }
        gain
    }

    /// Back to zeros; `added` are the positions that were added.
    #[inline(always)]
    fn clear(&mut self, added: &[u32]) {
        self.row.fill(0.0);
        self.groups.fill(IndicatorSums::default());
        if let Some(lists) = self.lists {
            self.labels.clear(added.len(), added.iter().flat_map(|&position| lists.labels(position as usize)));
        }
    }
}
