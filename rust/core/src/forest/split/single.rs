//! One dense component, row weights all 1: the search that most time goes to.
//!
//! An example is a pair {count, count · value}, so that both sums grow by one vector addition.
//!
//! Few examples: each against each, without a histogram. For example i, the left side of the cut just
//! above its code is the sum over all j with code_j ≤ code_i: n² additions side by side in registers,
//! which beats clearing and walking bins.
//!
//! More: a histogram of pairs with a bitmap of the bins in use; small nodes visit and clear only
//! those.

use pulp::{Arch, Simd, WithSimd};

use super::{Best, Cut, Room};
use crate::forest::moments::TIE;
use crate::store::Code;

/// Count, and count times component value, of an example or of many.
pub(crate) type Pair = [f64; 2];

/// Most examples that are compared each against each, on the widest vectors.
const MOST_PAIRS: usize = 64;
/// From so many examples on, bins in use are not worth telling from others.
const DENSE_BINS: usize = 512;

/// Sums of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) examples: f64,
    pub(crate) sum: f64,
}

impl Node {
    /// The node of these examples.
    #[inline]
    pub(crate) fn new(pairs: &[Pair]) -> Self {
        let mut sums = [[0.0; 2]; 4];
        let (fours, rest) = pairs.as_chunks::<4>();
        for four in fours {
            for (sum, pair) in sums.iter_mut().zip(four) {
                add(sum, *pair);
            }
        }
        rest.iter().for_each(|pair| add(&mut sums[0], *pair));
        let [examples, sum] = [0, 1].map(|i| sums.iter().map(|sum| sum[i]).sum());
        Node { examples, sum }
    }

    fn mean(self) -> f64 {
        self.sum / self.examples
    }

    /// Gain of splitting off a side; not a number if a side is empty.
    #[inline(always)]
    fn gain(self, [examples, sum]: Pair) -> f64 {
        let difference = sum - self.mean() * examples;
        difference * difference / (examples * (self.examples - examples))
    }
}

#[inline(always)]
fn add(sum: &mut Pair, pair: Pair) {
    sum[0] += pair[0];
    sum[1] += pair[1];
}

/// Histogram of {examples, sum}, kept clear between uses.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Pair>,
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
    fn fill<C: Code>(&mut self, codes: &[C], pairs: &[Pair]) {
        for (&code, &pair) in codes.iter().zip(pairs) {
            add(&mut self.bins[code.index()], pair);
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
    fn drain(&mut self, mut each: impl FnMut(usize, Pair)) {
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
    arch: Arch,
    codes: &[C],
    pairs: &[Pair],
    node: Node,
    room: Room,
    bins: &mut Bins,
) -> Option<Cut> {
    if codes.len() <= MOST_PAIRS
        && let Some(found) = arch.dispatch(EachAgainstEach { codes, pairs, node, room })
    {
        return found;
    }
    by_bins(codes, pairs, node, room, bins)
}

/// Compares each example against each; gives nothing if there are too many for the vectors.
struct EachAgainstEach<'a, C> {
    codes: &'a [C],
    pairs: &'a [Pair],
    node: Node,
    room: Room,
}

impl<C: Code> WithSimd for EachAgainstEach<'_, C> {
    type Output = Option<Option<Cut>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        // Three registers for each vector of examples, out of 32 or of 16.
        let most = if S::F64_LANES >= 8 { 8 } else { 4 };
        match self.codes.len().div_ceil(S::F64_LANES) {
            0..=1 => Some(self.search::<S, 1>(simd)),
            2 => Some(self.search::<S, 2>(simd)),
            3..=4 => Some(self.search::<S, 4>(simd)),
            vectors if vectors <= most => Some(self.search::<S, 8>(simd)),
            _ => None,
        }
    }
}

impl<C: Code> EachAgainstEach<'_, C> {
    #[inline(always)]
    fn search<S: Simd, const VECTORS: usize>(&self, simd: S) -> Option<Cut> {
        // Lanes without an example lie above all codes: their right side is empty.
        let mut padded = [f64::INFINITY; MOST_PAIRS];
        for (to, from) in padded.iter_mut().zip(self.codes) {
            *to = from.index() as f64;
        }
        let (vectors, _) = S::as_simd_f64s(&padded);
        let codes: [S::f64s; VECTORS] = std::array::from_fn(|v| vectors[v]);
        let zero = simd.splat_f64s(0.0);
        let (mut examples, mut sums) = ([zero; VECTORS], [zero; VECTORS]);
        for (&code, pair) in padded.iter().zip(self.pairs) {
            let code = simd.splat_f64s(code);
            let [count, value] = pair.map(|x| simd.splat_f64s(x));
            for v in 0..VECTORS {
                let left = simd.less_than_or_equal_f64s(code, codes[v]);
                examples[v] = simd.add_f64s(examples[v], simd.select_f64s(left, count, zero));
                sums[v] = simd.add_f64s(sums[v], simd.select_f64s(left, value, zero));
            }
        }
        let gains: [S::f64s; VECTORS] = std::array::from_fn(|v| self.gains(simd, examples[v], sums[v]));
        let mut most = gains[0];
        gains[1..].iter().for_each(|&gain| most = simd.max_f64s(most, gain));
        let best = simd.reduce_max_f64s(most);
        let (infinity, wanted) = (simd.splat_f64s(f64::INFINITY), simd.splat_f64s(best * TIE));
        let mut lowest = infinity;
        for v in 0..VECTORS {
            let at = simd.select_f64s(simd.greater_than_or_equal_f64s(gains[v], wanted), codes[v], infinity);
            lowest = simd.min_f64s(lowest, at);
        }
        (best >= 0.0).then(|| Cut { gain: best, code: simd.reduce_min_f64s(lowest) as u16 })
    }

    /// Gains, −1 where there is no room; [`Node::gain`] and [`Room::fits`] side by side.
    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, left: S::f64s, sum: S::f64s) -> S::f64s {
        let splat = |x: f64| simd.splat_f64s(x);
        let right = simd.sub_f64s(splat(self.node.examples), left);
        let difference = simd.sub_f64s(sum, simd.mul_f64s(splat(self.node.mean()), left));
        let gain = simd.div_f64s(simd.mul_f64s(difference, difference), simd.mul_f64s(left, right));
        let (mut held_left, mut held_right) = (left, right);
        if self.room.missing > 0.0 {
            let missing = splat(self.room.missing);
            let heavier = simd.greater_than_or_equal_f64s(left, right);
            held_left = simd.select_f64s(heavier, simd.add_f64s(left, missing), left);
            held_right = simd.select_f64s(heavier, right, simd.add_f64s(right, missing));
        }
        let least = splat(self.room.min_leaf);
        let enough = simd.and_m64s(
            simd.greater_than_or_equal_f64s(held_left, least),
            simd.greater_than_or_equal_f64s(held_right, least),
        );
        let parted = simd.and_m64s(simd.greater_than_f64s(left, splat(0.0)), simd.greater_than_f64s(right, splat(0.0)));
        simd.select_f64s(simd.and_m64s(enough, parted), gain, splat(-1.0))
    }
}

fn by_bins<C: Code>(codes: &[C], pairs: &[Pair], node: Node, room: Room, bins: &mut Bins) -> Option<Cut> {
    bins.fill(codes, pairs);
    let mut best = Best::new(node.examples, node.examples, room);
    let (mean, mut left) = (node.mean(), [0.0; 2]);
    let mut step = |code: usize, bin: Pair| {
        add(&mut left, bin);
        let difference = left[1] - mean * left[0];
        // An empty bin repeats the cut of the one before, which is the lower.
        best.offer(code, difference * difference, left[0], left[0]);
    };
    if codes.len() >= DENSE_BINS.max(2 * bins.bins.len()) {
        for (code, bin) in bins.bins.iter_mut().enumerate() {
            step(code, std::mem::take(bin));
        }
    } else {
        bins.mark(codes);
        bins.drain(step);
    }
    best.cut()
}

/// Sums of the examples with codes up to `cut`.
#[inline(always)]
pub(crate) fn left_of<C: Code>(codes: &[C], pairs: &[Pair], cut: C) -> Pair {
    // Sums are exact, so they may be taken in any order.
    let mut sums = [[0.0; 2]; 8];
    let step = |code: &C, pair: &Pair, sum: &mut Pair| {
        let mask = if *code <= cut { u64::MAX } else { 0 };
        add(sum, pair.map(|x| f64::from_bits(x.to_bits() & mask)));
    };
    let (code_groups, code_rest) = codes.as_chunks::<8>();
    let (pair_groups, pair_rest) = pairs.as_chunks::<8>();
    for (codes, pairs) in code_groups.iter().zip(pair_groups) {
        for lane in 0..8 {
            step(&codes[lane], &pairs[lane], &mut sums[lane]);
        }
    }
    for (code, pair) in code_rest.iter().zip(pair_rest) {
        step(code, pair, &mut sums[0]);
    }
    let mut total = [0.0; 2];
    sums.iter().for_each(|sum| add(&mut total, *sum));
    total
}

/// The cut at `cut`, with its gain, if it has room.
pub(crate) fn given_cut<C: Code>(
    arch: Arch,
    codes: &[C],
    pairs: &[Pair],
    node: Node,
    room: Room,
    cut: C,
) -> Option<Cut> {
    let left = if codes.len() < 8 { left_of(codes, pairs, cut) } else { arch.dispatch(|| left_of(codes, pairs, cut)) };
    let sides = (left[0], node.examples - left[0]);
    room.fits(sides, sides).then(|| Cut { gain: node.gain(left), code: cut.index() as u16 })
}
