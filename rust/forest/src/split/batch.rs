//! All candidates of a small node at once.
//!
//! Most nodes of a fully grown tree hold a handful of examples. Searched feature by feature, they would spend most of
//! the time on starting searches. Here the examples' keys lie in one row per feature, padded to whole vectors, and each
//! example is compared with each. For example i, the left side of the
//! cut just above its key is the sum over all j with key_j ≤ key_i.
//!
//! Memory: 16 bytes for each candidate and example of the node.

use bytemuck::cast_slice;
use pulp::{Arch, Simd, WithSimd};

use super::gram::{self, Gram};
use super::single::{GainFormula, Node, Pair};
use super::{STEP, SplitConstraint, dense, node, values};
use crate::criterion::Criterion;
use crate::criterion::ties;

/// 0, 1, 2, …
const POSITIONS: [f64; gram::MOST] = {
    let mut positions = [0.0; gram::MOST];
    let mut i = 0;
    while i < positions.len() {
        positions[i] = i as f64;
        i += 1;
    }
    positions
};

/// Keys of the examples of a node, a row for each candidate feature.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    n: usize,
    width: usize,
    rows: Vec<Row>,
    /// Most candidates x width, of which the first n_rows count; infinite beyond the examples. Codes, or values for
    /// random cuts.
    keys: Vec<f64>,
    /// n_rows x width; gain of the cut above each key.
    gains: Vec<f64>,
    /// 2 x width; counts and sums of the examples, for random cuts.
    columns: Vec<f64>,
    /// Whether the candidates were judged by random cuts.
    at_random: bool,
}

/// A candidate.
#[derive(Debug, Clone, Copy)]
struct Row {
    feature: u32,
    /// The random cut's place between the least and the greatest key.
    share: f64,
    /// Gain of the best cut, or of the random one; −1 if the constraint forbids all.
    gain: f64,
    /// The random cut.
    threshold: f64,
}

/// A candidate's best test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BatchCut {
    pub(crate) feature: u32,
    pub(crate) gain: f64,
    /// The highest key that goes left, or the random threshold.
    pub(crate) key: f64,
}

impl Batch {
    /// Most examples for which comparing each with each is faster than a histogram.
    pub(crate) fn most_examples(arch: Arch) -> usize {
        struct Lanes;
        impl WithSimd for Lanes {
            type Output = usize;
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> usize {
                S::F64_LANES
            }
        }
        // Three registers for each vector of examples, out of 32 or of 16.
        match arch.dispatch(Lanes) {
            8 => gram::MOST,
            4 => 16,
            _ => STEP,
        }
    }

    /// Starts a node of `n` examples and at most `n_rows` candidates; with 0 examples if the node uses no batch.
    pub(crate) fn start(&mut self, n: usize, n_rows: usize) {
        self.n = n;
        self.width = n.next_multiple_of(STEP);
        self.rows.clear();
        self.keys.resize(self.keys.len().max(n_rows * self.width), f64::INFINITY);
    }

    /// Adds `feature`; `fill` writes the examples' keys and says whether they differ. If not, the
    /// feature is not kept.
    #[inline]
    pub(crate) fn add(&mut self, feature: u32, fill: impl FnOnce(&mut [f64]) -> bool) -> bool {
        let keys = &mut self.keys[self.rows.len() * self.width..][..self.width];
        keys[self.width - STEP..].fill(f64::INFINITY);
        let varies = fill(&mut keys[..self.n]);
        if varies {
            self.rows.push(Row { feature, share: 0.0, gain: -1.0, threshold: 0.0 });
        }
        varies
    }

    /// Where the random cut of the feature added last lies, from 0 to 1.
    pub(crate) fn set_share(&mut self, share: f64) {
        if let Some(row) = self.rows.last_mut() {
            row.share = share;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The examples' keys in `feature`, if that is a candidate.
    pub(crate) fn keys(&self, feature: u32) -> Option<&[f64]> {
        let row = self.rows.iter().position(|row| row.feature == feature)?;
        Some(&self.keys[row * self.width..][..self.n])
    }

    /// From one row of keys to the next.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Judges all cuts of the candidates, of a single component.
    pub(crate) fn judge(&mut self, arch: Arch, pairs: &[Pair], node: Node, constraint: SplitConstraint) {
        self.every_cut(arch, Squares { pairs, gain: GainFormula::new(node, constraint) });
    }

    /// Judges all cuts of the candidates, of any components, from the examples' inner products.
    pub(crate) fn judge_products(&mut self, arch: Arch, gram: &Gram, examples: f64, constraint: SplitConstraint) {
        self.every_cut(arch, Products { gram, gain: GainFormula::from_qualities(examples, constraint) });
    }

    fn every_cut<M: Measure>(&mut self, arch: Arch, measure: M) {
        self.gains.resize(self.keys.len().max(self.gains.len()), 0.0);
        arch.dispatch(EveryCut { batch: self, measure });
        self.at_random = false;
    }

    /// Judges the random cuts of the candidates, of a single component.
    pub(crate) fn judge_random(&mut self, arch: Arch, pairs: &[Pair], node: Node, constraint: SplitConstraint) {
        self.columns.clear();
        self.columns.resize(2 * self.width, 0.0);
        let (counts, sums) = self.columns.split_at_mut(self.width);
        for ((count, sum), pair) in counts.iter_mut().zip(sums).zip(pairs) {
            (*count, *sum) = (pair[0], pair[1]);
        }
        let Batch { n, width, rows, keys, columns, .. } = self;
        let gain = GainFormula::new(node, constraint);
        arch.dispatch(RandomCut { n: *n, width: *width, rows, keys, sums: Sums::Columns(columns), gain });
        self.at_random = true;
    }

    /// Judges the random cuts of the candidates, of any components, from the examples' inner products.
    pub(crate) fn judge_random_products(
        &mut self,
        arch: Arch,
        gram: &Gram,
        examples: f64,
        constraint: SplitConstraint,
    ) {
        self.judge_random_sums(arch, Sums::Products(gram), examples, constraint);
    }

    /// Judges the random cuts of the candidates from the values of `node`, which are set. `counts` has the number of copies of
    /// each example.
    pub(crate) fn judge_random_values(
        &mut self,
        arch: Arch,
        criterion: &Criterion,
        node: &node::Node,
        counts: &[u32],
        constraint: SplitConstraint,
    ) {
        self.judge_random_sums(arch, Sums::Values { criterion, node, counts }, node.examples(), constraint);
    }

    fn judge_random_sums(&mut self, arch: Arch, sums: Sums<'_>, examples: f64, constraint: SplitConstraint) {
        let Batch { n, width, rows, keys, .. } = self;
        let gain = GainFormula::from_qualities(examples, constraint);
        arch.dispatch(RandomCut { n: *n, width: *width, rows, keys, sums, gain });
        self.at_random = true;
    }

    /// Feature and gain of each candidate, once they are judged; the gain is −1 if the constraint allows no cut.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (u32, f64)> {
        self.rows.iter().map(|row| (row.feature, row.gain))
    }

    /// The cut that made the gain of a candidate: the lowest of those that tie, or the random one.
    pub(crate) fn cut(&self, candidate: usize) -> BatchCut {
        let Row { feature, gain, threshold, .. } = self.rows[candidate];
        if self.at_random {
            return BatchCut { feature, gain, key: threshold };
        }
        let row = candidate * self.width..candidate * self.width + self.n;
        let mut key = f64::INFINITY;
        for (&at, &of) in self.keys[row.clone()].iter().zip(&self.gains[row]) {
            let at = if ties(of, gain) { at } else { f64::INFINITY };
            key = if at < key { at } else { key };
        }
        BatchCut { feature, gain, key }
    }
}

/// How the sums of the left side make gains.
trait Measure: Copy {
    /// Count, and what the gain is made of, of each example; `keys` are the candidate's.
    fn pairs<'a, S: Simd, const VECTORS: usize>(&'a self, simd: S, keys: &[f64], own: &'a mut [Pair]) -> &'a [Pair];
    /// Gains of sides with these sums.
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s;
}

/// A single component: the square of the centred sum.
#[derive(Clone, Copy)]
struct Squares<'a> {
    pairs: &'a [Pair],
    gain: GainFormula,
}

impl Measure for Squares<'_> {
    #[inline(always)]
    fn pairs<'a, S: Simd, const VECTORS: usize>(&'a self, _: S, _: &[f64], _: &'a mut [Pair]) -> &'a [Pair] {
        self.pairs
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.of(simd, counts, sums)
    }
}

/// Any components: example k, in the order of keys, adds G_kk + 2·Σ G_jk over those before it.
#[derive(Clone, Copy)]
struct Products<'a> {
    gram: &'a Gram,
    gain: GainFormula,
}

impl Measure for Products<'_> {
    #[inline(always)]
    fn pairs<'a, S: Simd, const VECTORS: usize>(&'a self, simd: S, keys: &[f64], own: &'a mut [Pair]) -> &'a [Pair] {
        let (zero, times) = (simd.splat_f64s(0.0), simd.splat_f64s(gram::MOST as f64));
        let (keys, positions) = (S::as_simd_f64s(keys).0, S::as_simd_f64s(&POSITIONS).0);
        // Examples of one key come in the order of their rows.
        let mut places = [zero; VECTORS];
        for v in 0..VECTORS {
            places[v] = simd.add_f64s(simd.mul_f64s(keys[v], times), positions[v]);
        }
        let mut before = [zero; VECTORS];
        for (j, &place) in cast_slice(&places).iter().enumerate().take(own.len()) {
            let place = simd.splat_f64s(place);
            let (row, _) = S::as_simd_f64s(self.gram.row(j));
            for v in 0..VECTORS {
                let comes_after = simd.less_than_f64s(place, places[v]);
                before[v] = simd.add_f64s(before[v], simd.select_f64s(comes_after, row[v], zero));
            }
        }
        for (k, (pair, before)) in own.iter_mut().zip(cast_slice::<_, f64>(&before)).enumerate() {
            *pair = [self.gram.counts()[k], self.gram.row(k)[k] + 2.0 * before];
        }
        own
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.of_quality(simd, counts, simd.max_f64s(sums, simd.splat_f64s(0.0)))
    }
}

struct EveryCut<'a, M> {
    batch: &'a mut Batch,
    measure: M,
}

impl<M: Measure> WithSimd for EveryCut<'_, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.batch.width / S::F64_LANES {
            1 => self.run::<S, 1>(simd),
            2 => self.run::<S, 2>(simd),
            3 => self.run::<S, 3>(simd),
            4 => self.run::<S, 4>(simd),
            5 => self.run::<S, 5>(simd),
            6 => self.run::<S, 6>(simd),
            7 => self.run::<S, 7>(simd),
            _ => self.run::<S, 8>(simd),
        }
    }
}

impl<M: Measure> EveryCut<'_, M> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let Batch { n, width, rows, keys, gains, .. } = self.batch;
        let zero = simd.splat_f64s(0.0);
        let lines = keys.chunks_exact(*width).zip(gains.chunks_exact_mut(*width));
        let mut own = [[0.0; 2]; gram::MOST];
        for (row, (keys, gains)) in rows.iter_mut().zip(lines) {
            let (vectors, _) = S::as_simd_f64s(keys);
            let vectors: [S::f64s; VECTORS] = std::array::from_fn(|v| vectors[v]);
            let pairs = self.measure.pairs::<S, VECTORS>(simd, keys, &mut own[..*n]);
            let (mut examples, mut sums) = ([zero; VECTORS], [zero; VECTORS]);
            for (&key, pair) in keys.iter().zip(pairs) {
                let key = simd.splat_f64s(key);
                let [count, value] = pair.map(|x| simd.splat_f64s(x));
                for v in 0..VECTORS {
                    let left = simd.less_than_or_equal_f64s(key, vectors[v]);
                    examples[v] = simd.add_f64s(examples[v], simd.select_f64s(left, count, zero));
                    sums[v] = simd.add_f64s(sums[v], simd.select_f64s(left, value, zero));
                }
            }
            let (out, _) = S::as_mut_simd_f64s(gains);
            let mut most = simd.splat_f64s(-1.0);
            for v in 0..VECTORS {
                out[v] = self.measure.gains(simd, examples[v], sums[v]);
                most = simd.max_f64s(most, out[v]);
            }
            row.gain = simd.reduce_max_f64s(most);
        }
    }
}

/// What the left side of a random cut adds up to, and the gain that makes.
trait LeftSide {
    /// Count, and what the gain is made of, of the side whose `keys` are up to `at`.
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair;
    /// Gains of sides with these sums; −1 if the constraint forbids the split.
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s;
}

/// A single component; all counts, then all sums.
struct PairSums<'a> {
    columns: &'a [f64],
    gain: GainFormula,
}

impl LeftSide for PairSums<'_> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        sums_up_to(simd, self.columns, keys, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.of(simd, counts, sums)
    }
}

/// Any components, from inner products.
struct ProductSums<'a> {
    gram: &'a Gram,
    n: usize,
    gain: GainFormula,
}

impl LeftSide for ProductSums<'_> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        products_up_to(simd, self.gram, keys, self.n, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.of_quality(simd, counts, sums)
    }
}

/// Few dense components, from a node's values.
struct ValueSums<'a, const VECTORS: usize> {
    node: &'a node::Node,
    counts: &'a [u32],
    gain: GainFormula,
}

impl<const VECTORS: usize> LeftSide for ValueSums<'_, VECTORS> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        dense::side_up_to::<S, VECTORS>(simd, self.node, self.counts, keys, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.of_quality(simd, counts, sums)
    }
}

struct RandomCut<'a> {
    n: usize,
    width: usize,
    rows: &'a mut [Row],
    keys: &'a [f64],
    sums: Sums<'a>,
    gain: GainFormula,
}

/// Where the sums of a random cut's left side come from.
enum Sums<'a> {
    Columns(&'a [f64]),
    Products(&'a Gram),
    Values { criterion: &'a Criterion, node: &'a node::Node, counts: &'a [u32] },
}

impl WithSimd for RandomCut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (n, gain) = (self.n, self.gain);
        match self.sums {
            Sums::Columns(columns) => self.run(simd, PairSums { columns, gain }),
            Sums::Products(gram) => self.run(simd, ProductSums { gram, n, gain }),
            Sums::Values { criterion, node, counts } => match values::vectors_of::<S>(criterion) {
                Some(1) => self.run(simd, ValueSums::<1> { node, counts, gain }),
                Some(2) => self.run(simd, ValueSums::<2> { node, counts, gain }),
                _ => self.run(simd, ValueSums::<4> { node, counts, gain }),
            },
        }
    }
}

impl RandomCut<'_> {
    #[inline(always)]
    fn run<S: Simd, L: LeftSide>(self, simd: S, side: L) {
        // Whether the constraint allows a random cut is unpredictable.
        for (rows, keys) in self.rows.chunks_mut(STEP).zip(self.keys.chunks(STEP * self.width)) {
            let (mut counts, mut sums) = ([0.0; STEP], [0.0; STEP]);
            for (i, (row, keys)) in rows.iter_mut().zip(keys.chunks_exact(self.width)).enumerate() {
                let (low, high) = extremes(simd, keys);
                row.threshold = threshold(low, high, row.share);
                [counts[i], sums[i]] = side.sums(simd, keys, row.threshold);
            }
            let mut gains = [0.0; STEP];
            let sides = S::as_simd_f64s(&counts).0.iter().zip(S::as_simd_f64s(&sums).0);
            for (gain, (&count, &sum)) in S::as_mut_simd_f64s(&mut gains).0.iter_mut().zip(sides) {
                *gain = side.gains(simd, count, sum);
            }
            for (row, gain) in rows.iter_mut().zip(gains) {
                row.gain = gain;
            }
        }
    }
}

/// The least and the greatest of `keys`, of which infinite ones do not count.
#[inline(always)]
fn extremes<S: Simd>(simd: S, keys: &[f64]) -> (f64, f64) {
    let infinite = simd.splat_f64s(f64::INFINITY);
    let lowest = simd.splat_f64s(f64::NEG_INFINITY);
    let (mut low, mut high) = (infinite, lowest);
    for &keys in S::as_simd_f64s(keys).0 {
        low = simd.min_f64s(low, keys);
        high = simd.max_f64s(high, simd.select_f64s(simd.less_than_f64s(keys, infinite), keys, lowest));
    }
    (simd.reduce_min_f64s(low), simd.reduce_max_f64s(high))
}

/// Count and sum of the examples up to `at`; `columns` are all counts, then all sums.
#[inline(always)]
fn sums_up_to<S: Simd>(simd: S, columns: &[f64], keys: &[f64], at: f64) -> Pair {
    let (counts, sums) = columns.split_at(keys.len());
    let (counts, sums) = (S::as_simd_f64s(counts).0, S::as_simd_f64s(sums).0);
    let (zero, at) = (simd.splat_f64s(0.0), simd.splat_f64s(at));
    let (mut count, mut sum) = (zero, zero);
    for ((&keys, &counts), &sums) in S::as_simd_f64s(keys).0.iter().zip(counts).zip(sums) {
        let left = simd.less_than_or_equal_f64s(keys, at);
        count = simd.add_f64s(count, simd.select_f64s(left, counts, zero));
        sum = simd.add_f64s(sum, simd.select_f64s(left, sums, zero));
    }
    [simd.reduce_sum_f64s(count), simd.reduce_sum_f64s(sum)]
}

/// Count of the examples up to `at`, and the sum of the products among them.
#[inline(always)]
fn products_up_to<S: Simd>(simd: S, gram: &Gram, keys: &[f64], n: usize, at: f64) -> Pair {
    let zero = simd.splat_f64s(0.0);
    let limit = simd.splat_f64s(at);
    let (vectors, _) = S::as_simd_f64s(keys);
    let (counts, _) = S::as_simd_f64s(gram.counts());
    let (mut count, mut quality) = (zero, zero);
    // Which examples go left is unpredictable, so it is computed once for all vectors, without a branch.
    let (mut places, mut n_left) = ([0u8; gram::MOST], 0);
    for (j, &key) in keys[..n].iter().enumerate() {
        places[n_left] = j as u8;
        n_left += usize::from(key <= at);
    }
    for (v, (&vector, &counts)) in vectors.iter().zip(counts).enumerate() {
        let mut sums = zero;
        for &j in &places[..n_left] {
            sums = simd.add_f64s(sums, S::as_simd_f64s(gram.row(usize::from(j))).0[v]);
        }
        let left = simd.less_than_or_equal_f64s(vector, limit);
        count = simd.add_f64s(count, simd.select_f64s(left, counts, zero));
        quality = simd.add_f64s(quality, simd.select_f64s(left, sums, zero));
    }
    [simd.reduce_sum_f64s(count), simd.reduce_sum_f64s(quality).max(0.0)]
}

/// The number at `share` of the way from `low` to `high`, at least the first and below the second.
#[inline(always)]
pub(crate) fn threshold(low: f64, high: f64, share: f64) -> f64 {
    (low * (1.0 - share) + high * share).clamp(low, high.next_down())
}
