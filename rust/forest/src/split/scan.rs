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

use std::cell::{OnceCell, RefCell};

use pulp::{Arch, Simd, WithSimd};

use super::dense::{self, Values};
use super::kernel::Kernel;
use super::label_bins::LabelBins;
use super::label_csr::{LabelCsr, LabelEntry, LabelSums};
use super::multi_feature::MultiFeatureHistogram;
use super::node_sums::{NodeSums, SumLayout};
use super::prefix::Prefixes;
use super::{Best, Cut, SplitConstraint};
use crate::criterion::{Criterion, EXAMPLES, FIRST, WEIGHT};
use crate::space::Block;
use crate::split::single::{GainFormula, Pair};
use ferrank_data::store::Code;

/// Vectors added up side by side: a sum waits for each of its additions.
const ABREAST: usize = 4;
/// Values of a byte.
const BYTE: usize = 256;

/// Examples of a node: row numbers in the block, and how often each occurs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) block: &'a Block,
    pub(crate) rows: &'a [u32],
    /// Empty where there are pairs.
    pub(crate) counts: &'a [u32],
    /// Sums of each example, where there is a single component; else empty.
    pub(crate) pairs: &'a [Pair],
}

impl Examples<'_> {
    /// Their sums, into `sums`.
    pub(crate) fn total(self, arch: Arch, criterion: &Criterion, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(criterion.len(), 0.0);
        arch.dispatch(Total { examples: self, criterion, sums });
    }

    /// Dense components of the example at `position`, and how often it occurs.
    #[inline(always)]
    fn dense(&self, position: usize) -> (&[f64], f64) {
        (self.block.dense(self.rows[position] as usize), f64::from(self.counts[position]))
    }

    /// Adds example number `i` to `sums`.
    #[inline(always)]
    pub(crate) fn add(&self, criterion: &Criterion, sums: &mut [f64], i: usize) {
        match self.pairs.get(i) {
            Some(&[count, sum]) => criterion.add_single(sums, count, sum),
            None => criterion.add(sums, self.block, self.rows[i] as usize, f64::from(self.counts[i])),
        }
    }
}

struct Total<'a> {
    examples: Examples<'a>,
    criterion: &'a Criterion,
    sums: &'a mut [f64],
}

impl WithSimd for Total<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for position in 0..self.examples.rows.len() {
            add_row(simd, self.criterion, self.examples, position, self.sums);
        }
    }
}

/// A node's sums, and what follows from them for every search in it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) total: Vec<f64>,
    /// n_dense; 0 where nothing is known.
    pub(super) means: Vec<f64>,
    /// n_indicators; ω·c, and 0 for what all examples have, which gains nothing.
    weighted: Vec<f64>,
    /// Σ ω·c² over the indicators known for all rows.
    squares: f64,
    /// n_groups; the same over each group.
    group_squares: Vec<f64>,
    /// Made by the first search that needs them.
    lists: OnceCell<LabelCsr>,
    /// The lists of an earlier node, whose buffers are reused.
    used: RefCell<LabelCsr>,
    pub(super) values: Values,
}

impl Node {
    /// Sets what follows from the total.
    pub(crate) fn open(&mut self, criterion: &Criterion) {
        self.values.clear();
        if let Some(lists) = self.lists.take() {
            self.used.replace(lists);
        }
        self.means.clear();
        let mean = |(c, sum): (usize, &f64)| {
            let weight = criterion.weight_of_dense(&self.total, c);
            if weight > 0.0 { sum / weight } else { 0.0 }
        };
        self.means.extend(criterion.dense(&self.total).iter().enumerate().map(mean));
        if criterion.indicator_weight.is_empty() {
            return;
        }
        let counts = criterion.indicators(&self.total);
        self.weighted.clear();
        self.weighted.extend(criterion.indicator_weight.iter().zip(counts).enumerate().map(|(label, (omega, &c))| {
            if c < criterion.weight_of_indicator(&self.total, label) { omega * c } else { 0.0 }
        }));
        let (whole, partial) = self.weighted.split_at(criterion.n_whole_indicators());
        self.squares = whole.iter().zip(counts).map(|(a, c)| a * c).sum();
        self.group_squares.clear();
        self.group_squares.resize(criterion.n_groups, 0.0);
        for ((a, c), &group) in partial.iter().zip(&counts[whole.len()..]).zip(&criterion.indicator_group) {
            self.group_squares[group as usize] += a * c;
        }
    }

    /// The labels of its `examples`.
    fn lists(&self, criterion: &Criterion, examples: Examples<'_>) -> &LabelCsr {
        self.lists.get_or_init(|| {
            let mut lists = self.used.take();
            lists.set(criterion, examples, &self.weighted);
            lists
        })
    }

    /// Copies the values of `examples` together, if components are dense and few.
    pub(crate) fn set_values(&mut self, arch: Arch, criterion: &Criterion, examples: Examples<'_>) {
        self.values.set(arch, criterion, examples);
    }

    pub(crate) fn has_values(&self) -> bool {
        self.values.is_set()
    }

    pub(crate) fn weight(&self) -> f64 {
        self.total[WEIGHT]
    }

    /// ω·c of a label.
    pub(super) fn weighted(&self, label: usize) -> f64 {
        self.weighted[label]
    }

    /// Σ ω·c².
    pub(super) fn squares(&self) -> f64 {
        self.squares
    }

    pub(crate) fn examples(&self) -> f64 {
        self.total[EXAMPLES]
    }
}

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

/// The inputs of a search of a cut.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a, C> {
    pub(crate) criterion: &'a Criterion,
    pub(crate) examples: Examples<'a>,
    /// One for each example, none missing.
    pub(crate) codes: &'a [C],
    /// Codes lie below this.
    pub(crate) n_codes: usize,
    pub(crate) node: &'a Node,
    pub(crate) constraint: SplitConstraint,
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
            Kernel::Labels => self.of_labels(simd),
            Kernel::Dense => self.of_dense(simd),
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
    fn of_dense<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { criterion, codes, n_codes, .. } = self.search;
        let Scratch { order, spare, walk, .. } = self.scratch;
        sort(codes, n_codes, order, spare);
        match dense::vectors_of::<S>(criterion) {
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
    fn of_labels<S: Simd>(self, simd: S) -> Option<Cut> {
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
        match dense::vectors_of::<S>(self.criterion) {
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

/// Σ ω·C_L² and Σ ω·C_L·c of some indicators.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IndicatorSums {
    pub(super) squares: f64,
    pub(super) cross: f64,
}

impl IndicatorSums {
    /// Adds an example whose labels had `had` = Σ ω·C_L before it.
    #[inline(always)]
    pub(super) fn add(&mut self, example: &LabelEntry, had: f64) {
        self.squares += example.squares + 2.0 * example.weight * had;
        self.cross += example.cross;
    }

    /// Σ ω·(C_L − c·share)², with Σ ω·c² of the node.
    #[inline(always)]
    fn quality(self, share: f64, node_squares: f64) -> f64 {
        self.squares - 2.0 * share * self.cross + share * share * node_squares
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

/// Adds an example to `sums`: [`Criterion::add`], side by side.
#[inline(always)]
pub(super) fn add_row<S: Simd>(
    simd: S,
    criterion: &Criterion,
    examples: Examples<'_>,
    position: usize,
    sums: &mut [f64],
) {
    let (block, row, count) = (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
    let weight = count * block.weight(row);
    sums[EXAMPLES] += count;
    sums[WEIGHT] += weight;
    let (dense, indicators) = sums[FIRST..].split_at_mut(criterion.width());
    add_times(simd, dense, block.dense(row), count);
    for &indicator in block.indicators(row) {
        indicators[indicator as usize] += weight;
    }
}

/// Adds `factor` times `from` to `to`, which is as long.
#[inline(always)]
pub(super) fn add_times<S: Simd>(simd: S, to: &mut [f64], from: &[f64], factor: f64) {
    let times = simd.splat_f64s(factor);
    let (to_vectors, to_rest) = S::as_mut_simd_f64s(to);
    let (from_vectors, from_rest) = S::as_simd_f64s(from);
    for (to, &from) in to_vectors.iter_mut().zip(from_vectors) {
        *to = simd.add_f64s(*to, simd.mul_f64s(times, from));
    }
    to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to += factor * from);
}

/// Adds `factor` times `from` to `sums`, of dense components known for all rows. Returns Σ (S − m·W)².
#[inline(always)]
fn add_measured<S: Simd>(simd: S, sums: &mut [f64], from: &[f64], factor: f64, node: &Node, weight: f64) -> f64 {
    let (times, weights) = (simd.splat_f64s(factor), simd.splat_f64s(weight));
    let (means, means_rest) = S::as_simd_f64s(&node.means[..sums.len()]);
    let ((sums, sums_rest), (from, from_rest)) = (S::as_mut_simd_f64s(sums), S::as_simd_f64s(from));
    let mut squares = [simd.splat_f64s(0.0); ABREAST];
    let step = |square: &mut S::f64s, sum: &mut S::f64s, from: S::f64s, mean: S::f64s| {
        *sum = simd.add_f64s(*sum, simd.mul_f64s(times, from));
        let difference = simd.sub_f64s(*sum, simd.mul_f64s(mean, weights));
        *square = simd.add_f64s(*square, simd.mul_f64s(difference, difference));
    };
    let (four_sums, sums) = sums.as_chunks_mut::<ABREAST>();
    let ((four_from, from), (four_means, means)) = (from.as_chunks::<ABREAST>(), means.as_chunks::<ABREAST>());
    for ((sums, from), means) in four_sums.iter_mut().zip(four_from).zip(four_means) {
        for n in 0..ABREAST {
            step(&mut squares[n], &mut sums[n], from[n], means[n]);
        }
    }
    for (((square, sum), &from), &mean) in squares.iter_mut().zip(sums).zip(from).zip(means) {
        step(square, sum, from, mean);
    }
    let mut rest = 0.0;
    for ((sum, from), mean) in sums_rest.iter_mut().zip(from_rest).zip(means_rest) {
        *sum += factor * from;
        rest += (*sum - mean * weight).powi(2);
    }
    total(simd, squares) + rest
}

#[inline(always)]
fn total<S: Simd>(simd: S, [a, b, c, d]: [S::f64s; ABREAST]) -> f64 {
    simd.reduce_sum_f64s(simd.add_f64s(simd.add_f64s(a, b), simd.add_f64s(c, d)))
}

#[inline(always)]
pub(super) fn dense_quality<S: Simd>(simd: S, sums: &[f64], weight: f64, node: &Node) -> f64 {
    let weights = simd.splat_f64s(weight);
    let (means, means_rest) = S::as_simd_f64s(&node.means[..sums.len()]);
    let (sums, sums_rest) = S::as_simd_f64s(sums);
    let mut squares = [simd.splat_f64s(0.0); ABREAST];
    for (sums, means) in sums.chunks(ABREAST).zip(means.chunks(ABREAST)) {
        for ((square, &sum), &mean) in squares.iter_mut().zip(sums).zip(means) {
            let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weights));
            *square = simd.add_f64s(*square, simd.mul_f64s(difference, difference));
        }
    }
    let rest = sums_rest.iter().zip(means_rest).map(|(sum, mean)| (sum - mean * weight).powi(2)).sum::<f64>();
    total(simd, squares) + rest
}

/// Σ (S_L − m·W_L)² / (W_L·W_R) over dense components with weights of their own; `weights` are those of
/// the left side, `totals` those of the node.
#[inline(always)]
fn dense_gain<S: Simd>(simd: S, sums: &[f64], weights: &[f64], totals: &[f64], means: &[f64]) -> f64 {
    let zero = simd.splat_f64s(0.0);
    let ((sums, sums_rest), (weights, weights_rest)) = (S::as_simd_f64s(sums), S::as_simd_f64s(weights));
    let ((totals, totals_rest), (means, means_rest)) = (S::as_simd_f64s(totals), S::as_simd_f64s(means));
    let mut gain = zero;
    for (((&sum, &weight), &total), &mean) in sums.iter().zip(weights).zip(totals).zip(means) {
        let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weight));
        let both = simd.mul_f64s(weight, simd.sub_f64s(total, weight));
        let part = simd.div_f64s(simd.mul_f64s(difference, difference), both);
        gain = simd.add_f64s(gain, simd.select_f64s(simd.less_than_f64s(zero, both), part, zero));
    }
    let rest = sums_rest.iter().zip(weights_rest).zip(totals_rest).zip(means_rest);
    let rest = rest.map(|(((sum, weight), total), mean)| {
        let both = weight * (total - weight);
        if both > 0.0 { (sum - mean * weight).powi(2) / both } else { 0.0 }
    });
    simd.reduce_sum_f64s(gain) + rest.sum::<f64>()
}

#[inline(always)]
pub(super) fn indicator_quality(criterion: &Criterion, left: &[f64], node: &Node) -> f64 {
    let (weight, all) = (left[WEIGHT], node.weight());
    let counts = criterion.indicators(left).iter().zip(criterion.indicators(&node.total));
    let squares =
        counts.zip(&criterion.indicator_weight).map(|((c, in_all), omega)| omega * (c * all - in_all * weight).powi(2));
    squares.sum::<f64>() / (all * all)
}

/// Writes the positions of the codes for which `wanted` holds, without a branch for each.
#[inline(always)]
fn positions<C: Code>(codes: &[C], wanted: impl Fn(C) -> bool, out: &mut Vec<u32>) {
    out.clear();
    out.resize(codes.len(), 0);
    let mut n = 0;
    for (position, &code) in codes.iter().enumerate() {
        out[n] = position as u32;
        n += usize::from(wanted(code));
    }
    out.truncate(n);
}

/// Positions by code, then by row.
#[inline(always)]
fn sort<C: Code>(codes: &[C], n_codes: usize, order: &mut Vec<u32>, spare: &mut Vec<u32>) {
    match codes.len() {
        0..=16 => by_rank::<16, C>(codes, order),
        17..=32 => by_rank::<32, C>(codes, order),
        33..=64 => by_rank::<64, C>(codes, order),
        n if n_codes <= BYTE => by_byte(codes, C::index, 0..n as u32, order),
        n => {
            by_byte(codes, |code| code.index() % BYTE, 0..n as u32, spare);
            by_byte(codes, |code| code.index() / BYTE, spare.iter().copied(), order);
        }
    }
}

/// Sorts up to `N` codes by counting for each how many come before it: n² comparisons side by side,
/// without branches.
#[inline(always)]
fn by_rank<const N: usize, C: Code>(codes: &[C], order: &mut Vec<u32>) {
    let mut keys = [u32::MAX; N];
    for (position, (key, code)) in keys.iter_mut().zip(codes).enumerate() {
        *key = (code.index() * N + position) as u32;
    }
    let mut ranks = [0u32; N];
    for &key in &keys[..codes.len()] {
        for (rank, &other) in ranks.iter_mut().zip(&keys) {
            *rank += u32::from(key < other);
        }
    }
    order.clear();
    order.resize(codes.len(), 0);
    for (position, &rank) in ranks[..codes.len()].iter().enumerate() {
        order[rank as usize] = position as u32;
    }
}

/// Sorts `positions` by what `byte` makes of their codes; equals stay in their order.
///
/// Not inlined, so that it has all registers.
#[inline(never)]
fn by_byte<C: Code>(
    codes: &[C],
    byte: impl Fn(C) -> usize,
    positions: impl ExactSizeIterator<Item = u32> + Clone,
    order: &mut Vec<u32>,
) {
    let mut starts = [0u32; BYTE];
    for position in positions.clone() {
        starts[byte(codes[position as usize])] += 1;
    }
    let mut before = 0;
    for start in &mut starts {
        (*start, before) = (before, before + *start);
    }
    order.resize(positions.len(), 0);
    let order = &mut order[..];
    for position in positions {
        let next = &mut starts[byte(codes[position as usize])];
        order[*next as usize] = position;
        *next += 1;
    }
}
