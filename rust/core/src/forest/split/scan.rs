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

use pulp::Arch;

use super::{Best, Cut, Room};
use crate::forest::moments::{EXAMPLES, Shape, WEIGHT};
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
        arch.dispatch(|| best_cut(self, scratch))
    }

    /// The cut at `cut`, with its gain, if it has room.
    pub(crate) fn given_cut(self, arch: Arch, cut: C, scratch: &mut Scratch) -> Option<Cut> {
        arch.dispatch(|| given_cut(self, cut, scratch))
    }
}

#[inline(always)]
fn best_cut<C: Code>(search: Search<'_, C>, scratch: &mut Scratch) -> Option<Cut> {
    let Search { shape, examples, codes, n_codes, .. } = search;
    let block = examples.block;
    let labels =
        if block.starts.is_empty() { 0 } else { block.indicators.len() * codes.len() / (block.starts.len() - 1) };
    let adding = codes.len() * (2 + shape.n_dense) + labels;
    let walking = n_codes * shape.len();
    if adding >= 4 * walking && 8 * walking <= MOST_BIN_BYTES {
        by_code(search, scratch)
    } else {
        in_order(search, scratch)
    }
}

#[inline(always)]
fn by_code<C: Code>(search: Search<'_, C>, scratch: &mut Scratch) -> Option<Cut> {
    let Search { shape, examples, codes, n_codes, node, room } = search;
    let len = shape.len();
    scratch.bins.clear();
    scratch.bins.resize(n_codes * len, 0.0);
    for ((&code, &row), &count) in codes.iter().zip(examples.rows).zip(examples.counts) {
        let bin = &mut scratch.bins[code.index() * len..(code.index() + 1) * len];
        shape.add(bin, examples.block, row as usize, f64::from(count));
    }
    let mut best = Best::new(node.weight(), node.examples(), room);
    let left = &mut scratch.left.sums;
    for (code, bin) in scratch.bins.chunks_exact(len).enumerate() {
        if bin[EXAMPLES] == 0.0 {
            continue;
        }
        left.iter_mut().zip(bin).for_each(|(left, bin)| *left += bin);
        if shape.partial {
            best.offer_gain(code, shape.gain(left, &node.total), left[WEIGHT], left[EXAMPLES]);
        } else {
            let quality = dense_quality(shape, left, node) + indicator_quality(shape, left, node);
            best.offer(code, quality, left[WEIGHT], left[EXAMPLES]);
        }
    }
    left.fill(0.0);
    best.cut()
}

#[inline(always)]
fn in_order<C: Code>(search: Search<'_, C>, scratch: &mut Scratch) -> Option<Cut> {
    let Search { shape, examples, codes, n_codes, node, room } = search;
    sort(codes, n_codes, &mut scratch.order, &mut scratch.starts);
    let left = &mut scratch.left;
    let mut best = Best::new(node.weight(), node.examples(), room);
    for (i, &position) in scratch.order.iter().enumerate() {
        let position = position as usize;
        left.add(shape, examples, position, node);
        let next = scratch.order.get(i + 1).map(|&next| codes[next as usize]);
        if next == Some(codes[position]) {
            continue;
        }
        let code = codes[position].index();
        let (weight, count) = (left.sums[WEIGHT], left.sums[EXAMPLES]);
        if shape.partial {
            best.offer_gain(code, shape.gain(&left.sums, &node.total), weight, count);
        } else {
            best.offer(code, left.quality(shape, node), weight, count);
        }
    }
    left.clear(shape, examples, &scratch.order);
    best.cut()
}

impl Left {
    #[inline(always)]
    fn add(&mut self, shape: &Shape, examples: Examples<'_>, position: usize, node: &Node) {
        let (block, row, count) =
            (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
        if !shape.indicator_weight.is_empty() {
            let weight = count * block.weight(row);
            let counts = self.sums.len() - shape.indicator_weight.len();
            for &label in block.indicators(row) {
                let label = label as usize;
                let had = self.sums[counts + label];
                self.squares += shape.indicator_weight[label] * weight * (2.0 * had + weight);
                self.cross += weight * node.weighted[label];
            }
        }
        shape.add(&mut self.sums, block, row, count);
    }

    /// Σ (S_L − m·W_L)² over all components, with their weights.
    #[inline(always)]
    fn quality(&self, shape: &Shape, node: &Node) -> f64 {
        let dense = dense_quality(shape, &self.sums, node);
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

#[inline(always)]
fn dense_quality(shape: &Shape, left: &[f64], node: &Node) -> f64 {
    let weight = left[WEIGHT];
    shape.dense(left).iter().zip(&node.means).map(|(sum, mean)| (sum - mean * weight).powi(2)).sum()
}

#[inline(always)]
fn indicator_quality(shape: &Shape, left: &[f64], node: &Node) -> f64 {
    let share = left[WEIGHT] / node.weight();
    let counts = shape.indicators(left).iter().zip(shape.indicators(&node.total));
    counts.zip(&shape.indicator_weight).map(|((c, all), omega)| omega * (c - all * share).powi(2)).sum()
}

#[inline(always)]
fn given_cut<C: Code>(search: Search<'_, C>, cut: C, scratch: &mut Scratch) -> Option<Cut> {
    let Search { shape, examples, codes, node, room, .. } = search;
    let n_left = codes.iter().filter(|&&code| code <= cut).count();
    let left_is_smaller = 2 * n_left <= codes.len();
    let order = &mut scratch.order;
    order.clear();
    order.extend((0..codes.len() as u32).filter(|&i| (codes[i as usize] <= cut) == left_is_smaller));
    // Splitting off one side gains as much as splitting off the other.
    let side = &mut scratch.left;
    order.iter().for_each(|&position| side.add(shape, examples, position as usize, node));
    let (weight, count) = (side.sums[WEIGHT], side.sums[EXAMPLES]);
    let gain = if shape.partial {
        shape.gain(&side.sums, &node.total)
    } else {
        side.quality(shape, node) / (weight * (node.weight() - weight))
    };
    side.clear(shape, examples, order);
    let (weights, counts) = ((weight, node.weight() - weight), (count, node.examples() - count));
    let fits = if left_is_smaller {
        room.fits(weights, counts)
    } else {
        room.fits((weights.1, weights.0), (counts.1, counts.0))
    };
    fits.then(|| Cut { gain: gain.max(0.0), code: cut.index() as u16 })
}

/// Positions by code, then by row.
fn sort<C: Code>(codes: &[C], n_codes: usize, order: &mut Vec<u32>, starts: &mut Vec<u32>) {
    order.clear();
    if codes.len() * 4 < n_codes || codes.len() <= 24 {
        order.extend(0..codes.len() as u32);
        order.sort_unstable_by_key(|&position| (codes[position as usize], position));
        return;
    }
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
