//! Cuts for any component space, examples in the order of their codes.
//!
//! Small nodes are sorted by code and walked, the left sums growing example by example. For
//! indicators (labels, classes) the sum Σ ω·(C_L − p·W_L)² is kept up to date label by label, so that
//! a search costs the number of labels present and not the number there are:
//!
//! ```text
//! for each label l of an example of weight w:
//!     squares += ω_l · w · (2·C_l + w)        Σ ω·C_L²
//!     cross   += ω_l · w · c_l                Σ ω·C_L·c,  c the node's counts
//!     C_l     += w
//! Σ ω·(C_L − c·r)² = squares − 2·r·cross + r²·Σ ω·c²,  r = W_L / W
//! ```
//!
//! Large nodes add up one vector of sums for each code and walk those.

use pulp::{Arch, Simd, WithSimd};

use super::{Best, Cut, Room};
use crate::forest::moments::{EXAMPLES, FIRST, Shape, WEIGHT};
use crate::forest::space::Block;
use crate::forest::split::single::Pair;
use crate::store::Code;

/// Most bytes of sums by code.
const MOST_BIN_BYTES: usize = 1 << 20;

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
    /// Adds example number `i` to `sums`.
    #[inline(always)]
    pub(crate) fn add(&self, shape: &Shape, sums: &mut [f64], i: usize) {
        match self.pairs.get(i) {
            Some(&[count, sum]) => shape.add_single(sums, count, sum),
            None => shape.add(sums, self.block, self.rows[i] as usize, f64::from(self.counts[i])),
        }
    }
}

/// A node's sums, and what follows from them for every search in it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) total: Vec<f64>,
    /// n_dense
    means: Vec<f64>,
    /// n_indicators; ω·c
    weighted: Vec<f64>,
    /// Σ ω·c²
    squares: f64,
}

impl Node {
    /// Sums up `examples`.
    pub(crate) fn open(&mut self, shape: &Shape, examples: Examples<'_>) {
        shape.total(&mut self.total, examples.block, examples.rows, examples.counts);
        let weight = self.total[WEIGHT];
        self.means.clear();
        if shape.partial {
            let own = shape.dense_weights(&self.total);
            self.means.extend(shape.dense(&self.total).iter().zip(own).map(|(s, w)| s / w));
        } else {
            self.means.extend(shape.dense(&self.total).iter().map(|s| s / weight));
        }
        let counts = shape.indicators(&self.total);
        self.weighted.clear();
        self.weighted.extend(shape.indicator_weight.iter().zip(counts).map(|(omega, c)| omega * c));
        self.squares = self.weighted.iter().zip(counts).map(|(a, c)| a * c).sum();
    }

    pub(crate) fn weight(&self) -> f64 {
        self.total[WEIGHT]
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
    starts: Vec<u32>,
    left: Left,
    /// One vector of sums for each code.
    bins: Vec<f64>,
}

/// Sums of the left side, and Σ ω·C_L² and Σ ω·C_L·c.
#[derive(Debug)]
struct Left {
    sums: Vec<f64>,
    squares: f64,
    cross: f64,
}

impl Scratch {
    pub(crate) fn new(shape: &Shape) -> Self {
        Scratch {
            order: Vec::new(),
            starts: Vec::new(),
            left: Left { sums: vec![0.0; shape.len()], squares: 0.0, cross: 0.0 },
            bins: Vec::new(),
        }
    }
}

/// What a search of a cut is about.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a, C> {
    pub(crate) shape: &'a Shape,
    pub(crate) examples: Examples<'a>,
    /// One for each example, none missing.
    pub(crate) codes: &'a [C],
    /// Codes lie below this.
    pub(crate) n_codes: usize,
    pub(crate) node: &'a Node,
    pub(crate) room: Room,
}

impl<C: Code> Search<'_, C> {
    /// Best cut; `None` if no cut has room.
    pub(crate) fn best_cut(self, arch: Arch, scratch: &mut Scratch) -> Option<Cut> {
        arch.dispatch(BestCut { search: self, scratch })
    }

    /// The cut at `cut`, with its gain, if it has room.
    pub(crate) fn given_cut(self, arch: Arch, cut: C, scratch: &mut Scratch) -> Option<Cut> {
        arch.dispatch(GivenCut { search: self, cut, scratch })
    }

    /// Whether adding up by code costs less than walking examples in order.
    fn is_large(&self) -> bool {
        let block = self.examples.block;
        let n = self.codes.len();
        let labels = if block.starts.is_empty() { 0 } else { block.indicators.len() * n / (block.starts.len() - 1) };
        let adding = n * (2 + self.shape.n_dense) + labels;
        let walking = self.n_codes * self.shape.len();
        adding >= 4 * walking && 8 * walking <= MOST_BIN_BYTES
    }
}

struct BestCut<'a, C> {
    search: Search<'a, C>,
    scratch: &'a mut Scratch,
}

impl<C: Code> WithSimd for BestCut<'_, C> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        if self.search.is_large() { self.by_code(simd) } else { self.in_order(simd) }
    }
}

impl<C: Code> BestCut<'_, C> {
    #[inline(always)]
    fn by_code<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { shape, examples, codes, n_codes, node, room } = self.search;
        let Scratch { bins, left, .. } = self.scratch;
        let len = shape.len();
        bins.clear();
        bins.resize(n_codes * len, 0.0);
        for (i, code) in codes.iter().enumerate() {
            let bin = &mut bins[code.index() * len..(code.index() + 1) * len];
            add_row(simd, shape, examples, i, bin);
        }
        let mut best = Best::new(node.weight(), node.examples(), room);
        for (code, bin) in bins.chunks_exact(len).enumerate() {
            if bin[EXAMPLES] == 0.0 {
                continue;
            }
            add_times(simd, &mut left.sums, bin, 1.0);
            let (weight, count) = (left.sums[WEIGHT], left.sums[EXAMPLES]);
            if shape.partial {
                best.offer_gain(code, shape.gain(&left.sums, &node.total), weight, count);
            } else {
                let labels = indicator_quality(shape, &left.sums, node);
                best.offer(code, dense_quality(simd, shape, &left.sums, node) + labels, weight, count);
            }
        }
        left.sums.fill(0.0);
        best.cut()
    }

    #[inline(always)]
    fn in_order<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { shape, examples, codes, n_codes, node, room } = self.search;
        let Scratch { order, starts, left, .. } = self.scratch;
        sort(codes, n_codes, order, starts);
        if shape.indicator_weight.is_empty() && !shape.partial {
            match shape.n_dense.div_ceil(S::F64_LANES) {
                1 => return dense_in_order::<S, C, 1>(simd, self.search, order),
                2 => return dense_in_order::<S, C, 2>(simd, self.search, order),
                3..=4 => return dense_in_order::<S, C, 4>(simd, self.search, order),
                _ => {}
            }
        }
        let mut best = Best::new(node.weight(), node.examples(), room);
        for (i, &position) in order.iter().enumerate() {
            let position = position as usize;
            left.add(simd, shape, examples, position, node);
            let next = order.get(i + 1).map(|&next| codes[next as usize]);
            if next == Some(codes[position]) {
                continue;
            }
            let code = codes[position].index();
            let (weight, count) = (left.sums[WEIGHT], left.sums[EXAMPLES]);
            if shape.partial {
                best.offer_gain(code, shape.gain(&left.sums, &node.total), weight, count);
            } else {
                best.offer(code, left.quality(simd, shape, node), weight, count);
            }
        }
        left.clear(shape, examples, order);
        best.cut()
    }
}

struct GivenCut<'a, C> {
    search: Search<'a, C>,
    cut: C,
    scratch: &'a mut Scratch,
}

impl<C: Code> WithSimd for GivenCut<'_, C> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { shape, examples, codes, node, room, .. } = self.search;
        let Scratch { order, left: side, .. } = self.scratch;
        let n_left = codes.iter().filter(|&&code| code <= self.cut).count();
        let left_is_smaller = 2 * n_left <= codes.len();
        positions(codes, |code| (code <= self.cut) == left_is_smaller, order);
        // Splitting off one side gains as much as splitting off the other.
        order.iter().for_each(|&position| side.add(simd, shape, examples, position as usize, node));
        let (weight, count) = (side.sums[WEIGHT], side.sums[EXAMPLES]);
        let gain = if shape.partial {
            shape.gain(&side.sums, &node.total)
        } else {
            side.quality(simd, shape, node) / (weight * (node.weight() - weight))
        };
        side.clear(shape, examples, order);
        let (weights, counts) = ((weight, node.weight() - weight), (count, node.examples() - count));
        let fits = if left_is_smaller {
            room.fits(weights, counts)
        } else {
            room.fits((weights.1, weights.0), (counts.1, counts.0))
        };
        fits.then(|| Cut { gain: gain.max(0.0), code: self.cut.index() as u16 })
    }
}

impl Left {
    #[inline(always)]
    fn add<S: Simd>(&mut self, simd: S, shape: &Shape, examples: Examples<'_>, position: usize, node: &Node) {
        if shape.indicator_weight.is_empty() {
            return add_row(simd, shape, examples, position, &mut self.sums);
        }
        let (block, row, count) =
            (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
        let weight = count * block.weight(row);
        self.sums[EXAMPLES] += count;
        self.sums[WEIGHT] += weight;
        let (dense, counts) = self.sums[FIRST..].split_at_mut(shape.n_dense);
        add_times(simd, dense, block.dense(row), count);
        let (mut squares, mut cross) = (0.0, 0.0);
        for &label in block.indicators(row) {
            let label = label as usize;
            let had = counts[label];
            squares += shape.indicator_weight[label] * (2.0 * had + weight);
            cross += node.weighted[label];
            counts[label] = had + weight;
        }
        self.squares += weight * squares;
        self.cross += weight * cross;
    }

    /// Σ (S_L − m·W_L)² over all components, with their weights.
    #[inline(always)]
    fn quality<S: Simd>(&self, simd: S, shape: &Shape, node: &Node) -> f64 {
        let dense = dense_quality(simd, shape, &self.sums, node);
        if shape.indicator_weight.is_empty() {
            return dense;
        }
        let share = self.sums[WEIGHT] / node.weight();
        dense + self.squares - 2.0 * share * self.cross + share * share * node.squares
    }

    /// Back to nothing; `added` are the positions that were added.
    #[inline(always)]
    fn clear(&mut self, shape: &Shape, examples: Examples<'_>, added: &[u32]) {
        let counts = self.sums.len() - shape.indicator_weight.len();
        self.sums[..counts].fill(0.0);
        if !shape.indicator_weight.is_empty() {
            for &position in added {
                for &label in examples.block.indicators(examples.rows[position as usize] as usize) {
                    self.sums[counts + label as usize] = 0.0;
                }
            }
        }
        (self.squares, self.cross) = (0.0, 0.0);
    }
}

/// A walk in order over dense components alone, few enough that their sums stay in registers.
#[inline(always)]
fn dense_in_order<S: Simd, C: Code, const VECTORS: usize>(
    simd: S,
    search: Search<'_, C>,
    order: &[u32],
) -> Option<Cut> {
    let Search { examples, codes, node, room, .. } = search;
    let means: [S::f64s; VECTORS] = load(simd, &node.means);
    let mut sums = [simd.splat_f64s(0.0); VECTORS];
    let (mut weight, mut count) = (0.0, 0.0);
    let mut best = Best::new(node.weight(), node.examples(), room);
    for (i, &position) in order.iter().enumerate() {
        let position = position as usize;
        let (row, times) = (examples.rows[position] as usize, f64::from(examples.counts[position]));
        count += times;
        weight += times * examples.block.weight(row);
        let values: [S::f64s; VECTORS] = load(simd, examples.block.dense(row));
        let times = simd.splat_f64s(times);
        for v in 0..VECTORS {
            sums[v] = simd.add_f64s(sums[v], simd.mul_f64s(times, values[v]));
        }
        let next = order.get(i + 1).map(|&next| codes[next as usize]);
        if next == Some(codes[position]) {
            continue;
        }
        let weights = simd.splat_f64s(weight);
        let mut squares = simd.splat_f64s(0.0);
        for v in 0..VECTORS {
            let difference = simd.sub_f64s(sums[v], simd.mul_f64s(means[v], weights));
            squares = simd.add_f64s(squares, simd.mul_f64s(difference, difference));
        }
        best.offer(codes[position].index(), simd.reduce_sum_f64s(squares), weight, count);
    }
    best.cut()
}

/// `values` in vectors, zeros behind them.
#[inline(always)]
fn load<S: Simd, const VECTORS: usize>(simd: S, values: &[f64]) -> [S::f64s; VECTORS] {
    std::array::from_fn(|v| {
        let rest = &values[(v * S::F64_LANES).min(values.len())..];
        match S::as_simd_f64s(rest).0.first() {
            Some(&full) => full,
            None => simd.partial_load_f64s(rest),
        }
    })
}

/// Adds an example to `sums`: [`Shape::add`], side by side.
#[inline(always)]
fn add_row<S: Simd>(simd: S, shape: &Shape, examples: Examples<'_>, position: usize, sums: &mut [f64]) {
    let (block, row, count) = (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
    if shape.partial {
        return shape.add(sums, block, row, count);
    }
    let weight = count * block.weight(row);
    sums[EXAMPLES] += count;
    sums[WEIGHT] += weight;
    let (dense, indicators) = sums[FIRST..].split_at_mut(shape.n_dense);
    add_times(simd, dense, block.dense(row), count);
    for &indicator in block.indicators(row) {
        indicators[indicator as usize] += weight;
    }
}

/// Adds `factor` times `from` to `to`, which is as long.
#[inline(always)]
fn add_times<S: Simd>(simd: S, to: &mut [f64], from: &[f64], factor: f64) {
    let times = simd.splat_f64s(factor);
    let (to_vectors, to_rest) = S::as_mut_simd_f64s(to);
    let (from_vectors, from_rest) = S::as_simd_f64s(from);
    for (to, &from) in to_vectors.iter_mut().zip(from_vectors) {
        *to = simd.add_f64s(*to, simd.mul_f64s(times, from));
    }
    to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to += factor * from);
}

#[inline(always)]
fn dense_quality<S: Simd>(simd: S, shape: &Shape, left: &[f64], node: &Node) -> f64 {
    let weight = left[WEIGHT];
    let weights = simd.splat_f64s(weight);
    let (sums, sums_rest) = S::as_simd_f64s(shape.dense(left));
    let (means, means_rest) = S::as_simd_f64s(&node.means);
    let mut squares = simd.splat_f64s(0.0);
    for (&sum, &mean) in sums.iter().zip(means) {
        let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weights));
        squares = simd.add_f64s(squares, simd.mul_f64s(difference, difference));
    }
    let rest = sums_rest.iter().zip(means_rest).map(|(sum, mean)| (sum - mean * weight).powi(2)).sum::<f64>();
    simd.reduce_sum_f64s(squares) + rest
}

#[inline(always)]
fn indicator_quality(shape: &Shape, left: &[f64], node: &Node) -> f64 {
    let share = left[WEIGHT] / node.weight();
    let counts = shape.indicators(left).iter().zip(shape.indicators(&node.total));
    counts.zip(&shape.indicator_weight).map(|((c, all), omega)| omega * (c - all * share).powi(2)).sum()
}

/// Writes the positions of the codes that `wanted` picks, without a guess for each.
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
fn sort<C: Code>(codes: &[C], n_codes: usize, order: &mut Vec<u32>, starts: &mut Vec<u32>) {
    match codes.len() {
        0..=16 => by_rank::<16, C>(codes, order),
        17..=32 => by_rank::<32, C>(codes, order),
        33..=64 => by_rank::<64, C>(codes, order),
        n if 4 * n < n_codes => {
            order.clear();
            order.extend(0..n as u32);
            order.sort_unstable_by_key(|&position| (codes[position as usize], position));
        }
        _ => by_counting(codes, n_codes, order, starts),
    }
}

/// Sorts up to `N` codes by counting for each how many come before it: n² comparisons side by side,
/// none of them guessed.
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

fn by_counting<C: Code>(codes: &[C], n_codes: usize, order: &mut Vec<u32>, starts: &mut Vec<u32>) {
    starts.clear();
    starts.resize(n_codes + 1, 0);
    codes.iter().for_each(|code| starts[code.index() + 1] += 1);
    for code in 1..=n_codes {
        starts[code] += starts[code - 1];
    }
    order.resize(codes.len(), 0);
    for (position, code) in codes.iter().enumerate() {
        let next = &mut starts[code.index()];
        order[*next as usize] = position as u32;
        *next += 1;
    }
}
