//! One dense component, row weights all 1: the search that most time goes to.
//!
//! Up to [`PAIRS`] examples: each against each, without a histogram. For example i, the left side of
//! the cut just above its code is the sum over all j with code_j ≤ code_i: n² additions side by side
//! in registers, which beats clearing and walking bins.
//!
//! Above: a histogram of {examples, sum} with a bitmap of the bins in use; small nodes visit and
//! clear only those.

use super::simd::{Level, for_each_level};
use super::{Best, Cut, Room};
use crate::forest::moments::rounded;
use crate::store::Code;

/// Most examples that are compared each against each, where vectors hold eight f64.
const PAIRS: usize = 32;
/// The same for shorter vectors.
const PAIRS_NARROW: usize = 16;
/// From so many examples on, bins in use are not worth telling from others.
const DENSE_BINS: usize = 512;

/// Sums of a node, and its examples when they are few.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) examples: f64,
    pub(crate) sum: f64,
    /// Filled up to [`PAIRS`]; then zeros.
    counts: [f64; PAIRS],
    sums: [f64; PAIRS],
}

impl Node {
    /// A node of examples that occur `counts` times, with component sums `sums`.
    #[inline]
    pub(crate) fn new(counts: &[u32], sums: &[f64]) -> Self {
        let mut node = Node { examples: 0.0, sum: 0.0, counts: [0.0; PAIRS], sums: [0.0; PAIRS] };
        if counts.len() <= PAIRS {
            node.counts.iter_mut().zip(counts).for_each(|(to, &from)| *to = f64::from(from));
            node.sums[..sums.len()].copy_from_slice(sums);
        }
        node.examples = counts.iter().map(|&count| u64::from(count)).sum::<u64>() as f64;
        node.sum = sums.iter().sum();
        node
    }

    fn mean(&self) -> f64 {
        self.sum / self.examples
    }

    /// Gain of splitting off a side; not a number if a side is empty.
    #[inline(always)]
    fn gain(&self, examples: f64, sum: f64) -> f64 {
        let difference = sum - self.mean() * examples;
        difference * difference / (examples * (self.examples - examples))
    }
}

/// Histogram of {examples, sum}, kept clear between uses.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<[f64; 2]>,
    /// A bit for each bin.
    used: Vec<u64>,
    /// A bit for each word of `used`.
    used_words: Vec<u64>,
}

impl Bins {
    /// For codes below `n_codes`.
    pub(crate) fn new(n_codes: usize) -> Self {
        let words = n_codes.div_ceil(64).max(1);
        Bins { bins: vec![[0.0; 2]; 64 * words], used: vec![0; words], used_words: vec![0; words.div_ceil(64)] }
    }

    /// Adds examples up by code.
    fn fill<C: Code>(&mut self, codes: &[C], counts: &[u32], sums: &[f64]) {
        for ((&code, &count), &sum) in codes.iter().zip(counts).zip(sums) {
            let bin = &mut self.bins[code.index()];
            bin[0] += f64::from(count);
            bin[1] += sum;
        }
    }

    fn mark<C: Code>(&mut self, codes: &[C]) {
        for &code in codes {
            self.used[code.index() / 64] |= 1 << (code.index() % 64);
        }
        // A node with fewer examples than words marks words one by one.
        if codes.len() < self.used.len() {
            for &code in codes {
                self.used_words[code.index() / 4096] |= 1 << (code.index() / 64 % 64);
            }
        } else {
            for (word, _) in self.used.iter().enumerate().filter(|&(_, &used)| used != 0) {
                self.used_words[word / 64] |= 1 << (word % 64);
            }
        }
    }

    /// Visits the bins in use in ascending order and clears them.
    #[inline(always)]
    fn drain(&mut self, mut each: impl FnMut(usize, [f64; 2])) {
        for group in 0..self.used_words.len() {
            let mut words = std::mem::take(&mut self.used_words[group]);
            while words != 0 {
                let word = group * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = std::mem::take(&mut self.used[word]);
                while bits != 0 {
                    let code = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    each(code, std::mem::take(&mut self.bins[code]));
                }
            }
        }
    }
}

/// Best cut over `codes`, one for each example of `node`; `None` if no cut has room.
pub(crate) fn best_cut<C: Code>(
    level: Level,
    codes: &[C],
    counts: &[u32],
    sums: &[f64],
    node: &Node,
    room: Room,
    bins: &mut Bins,
) -> Option<Cut> {
    let n = codes.len();
    let pairs = if wide(level) { PAIRS } else { PAIRS_NARROW };
    match n {
        0..=8 => pairs_8(level, codes, node, room),
        9..=16 => pairs_16(level, codes, node, room),
        _ if n <= pairs => pairs_32(level, codes, node, room),
        _ => by_bins(codes, counts, sums, node, room, bins),
    }
}

fn wide(level: Level) -> bool {
    #[cfg(target_arch = "x86_64")]
    return level == Level::Avx512;
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

for_each_level!(pairs_8<C: Code> = pairs::<8, C>, (codes: &[C], node: &Node, room: Room) -> Option<Cut>);
for_each_level!(pairs_16<C: Code> = pairs::<16, C>, (codes: &[C], node: &Node, room: Room) -> Option<Cut>);
for_each_level!(pairs_32<C: Code> = pairs::<32, C>, (codes: &[C], node: &Node, room: Room) -> Option<Cut>);

#[inline(always)]
fn pairs<const N: usize, C: Code>(codes: &[C], node: &Node, room: Room) -> Option<Cut> {
    // Lanes without an example lie above all codes: their right side is empty.
    let mut code = [f64::INFINITY; N];
    for (to, &from) in code.iter_mut().zip(codes) {
        *to = from.index() as f64;
    }
    let (mut examples, mut sum) = ([0.0; N], [0.0; N]);
    for j in 0..codes.len().min(N) {
        let (at, count, value) = (code[j], node.counts[j], node.sums[j]);
        for i in 0..N {
            examples[i] += if at <= code[i] { count } else { 0.0 };
            sum[i] += if at <= code[i] { value } else { 0.0 };
        }
    }
    let mut gain = [0.0; N];
    for i in 0..N {
        let (left, right) = (examples[i], node.examples - examples[i]);
        let follow = if left >= right { room.missing } else { 0.0 };
        let fits = (left + follow >= room.min_leaf)
            & (right + (room.missing - follow) >= room.min_leaf)
            & (left > 0.0)
            & (right > 0.0);
        gain[i] = if fits { rounded(node.gain(left, sum[i])) } else { -1.0 };
    }
    let best = gain.iter().copied().fold(-1.0, |a: f64, b| if b > a { b } else { a });
    let mut lowest = f64::INFINITY;
    for i in 0..N {
        lowest = if gain[i] == best && code[i] < lowest { code[i] } else { lowest };
    }
    (best >= 0.0).then_some(Cut { gain: best, code: lowest as u16 })
}

fn by_bins<C: Code>(
    codes: &[C],
    counts: &[u32],
    sums: &[f64],
    node: &Node,
    room: Room,
    bins: &mut Bins,
) -> Option<Cut> {
    bins.fill(codes, counts, sums);
    let mut best = Best::new(node.examples, node.examples, room);
    let (mean, mut examples, mut sum) = (node.mean(), 0.0, 0.0);
    let mut step = |code: usize, bin: [f64; 2]| {
        examples += bin[0];
        sum += bin[1];
        let difference = sum - mean * examples;
        // An empty bin repeats the gain of the one before, which then keeps the cut.
        best.offer(code, difference * difference, examples, examples);
    };
    if codes.len() >= DENSE_BINS.max(2 * bins.bins.len()) {
        for (code, bin) in bins.bins.iter_mut().enumerate() {
            step(code, std::mem::take(bin));
        }
    } else {
        bins.mark(codes);
        bins.drain(step);
    }
    best.cut
}

for_each_level!(
    /// Examples and sum of the codes up to `cut`.
    left_of<C: Code> = left_of_body, (codes: &[C], counts: &[u32], sums: &[f64], cut: C) -> (f64, f64)
);

#[inline(always)]
fn left_of_body<C: Code>(codes: &[C], counts: &[u32], sums: &[f64], cut: C) -> (f64, f64) {
    // Sums are exact, so lanes may add in any order.
    const LANES: usize = 16;
    let (mut examples, mut sum) = ([0u32; LANES], [0.0; LANES]);
    let whole = codes.len() / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            let at = start + lane;
            let left = codes[at] <= cut;
            examples[lane] += if left { counts[at] } else { 0 };
            sum[lane] += if left { sums[at] } else { 0.0 };
        }
    }
    let mut total = (examples.iter().map(|&e| u64::from(e)).sum::<u64>() as f64, sum.iter().sum::<f64>());
    for at in whole..codes.len() {
        if codes[at] <= cut {
            total.0 += f64::from(counts[at]);
            total.1 += sums[at];
        }
    }
    total
}

/// The cut at `cut`, with its gain, if it has room.
pub(crate) fn given_cut<C: Code>(
    level: Level,
    codes: &[C],
    counts: &[u32],
    sums: &[f64],
    node: &Node,
    room: Room,
    cut: C,
) -> Option<Cut> {
    let (examples, sum) = left_of(level, codes, counts, sums, cut);
    let sides = (examples, node.examples - examples);
    room.fits(sides, sides).then(|| Cut { gain: rounded(node.gain(examples, sum)), code: cut.index() as u16 })
}
