//! All candidates of a small node at once, where there is one dense component.
//!
//! Most nodes of a fully grown tree hold a handful of examples, and most of the time of a search one
//! by one would go to starting it. Here the examples' keys lie in one row per feature, as many as
//! vectors are wide, and each example is compared against each: for example i, the left side of the
//! cut just above its key is the sum over all j with key_j ≤ key_i.

use pulp::{Arch, Simd, WithSimd};

use super::Room;
use super::single::{GainOf, Node, Pair};
use crate::forest::moments::{TIE, ties};

/// Rows hold a multiple of so many keys: as many as the widest vector.
const STEP: usize = 8;

/// Keys of the examples of a node, a row for each candidate feature.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    n: usize,
    width: usize,
    rows: Vec<Row>,
    /// n_rows x width; infinite beyond the examples. Codes, or values for random cuts.
    keys: Vec<f64>,
    /// n_rows x width; gain of the cut above each key.
    gains: Vec<f64>,
    /// 2 x width; counts and sums of the examples, for random cuts.
    columns: Vec<f64>,
}

/// A candidate.
#[derive(Debug, Clone, Copy)]
struct Row {
    feature: u32,
    /// The random cut's place between the least and the greatest key.
    share: f64,
    /// Gain of its best cut, or of the random one; −1 if there is no room.
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
            8 => 64,
            4 => 16,
            _ => STEP,
        }
    }

    /// Begins a node of `n` examples.
    pub(crate) fn start(&mut self, n: usize) {
        self.n = n;
        self.width = n.next_multiple_of(STEP);
        // The number of vectors is known where the search is compiled.
        if self.width > 2 * STEP {
            self.width = self.width.next_power_of_two();
        }
        self.rows.clear();
        self.keys.clear();
    }

    /// Adds `feature`; `fill` writes the examples' keys and says whether they differ. If not, the
    /// feature is not kept.
    pub(crate) fn add(&mut self, feature: u32, fill: impl FnOnce(&mut [f64]) -> bool) -> bool {
        let start = self.keys.len();
        self.keys.resize(start + self.width, f64::INFINITY);
        let varies = fill(&mut self.keys[start..start + self.n]);
        if varies {
            self.rows.push(Row { feature, share: 0.0, gain: -1.0, threshold: 0.0 });
        } else {
            self.keys.truncate(start);
        }
        varies
    }

    /// Where the random cut of the feature added last lies, from 0 to 1.
    pub(crate) fn set_share(&mut self, share: f64) {
        if let Some(row) = self.rows.last_mut() {
            row.share = share;
        }
    }

    /// The best cuts of the features whose gains tie with the greatest.
    pub(crate) fn best_cuts(
        &mut self,
        arch: Arch,
        pairs: &[Pair],
        node: Node,
        room: Room,
    ) -> impl Iterator<Item = BatchCut> {
        self.gains.resize(self.keys.len().max(self.gains.len()), 0.0);
        arch.dispatch(EveryCut { batch: self, pairs, gain: GainOf::new(node, room) });
        let Batch { width, n, keys, gains, .. } = &*self;
        self.best().map(move |(i, row)| {
            let keys = &keys[i * width..i * width + n];
            let gains = &gains[i * width..i * width + n];
            let tied = keys.iter().zip(gains).filter(|&(_, &gain)| gain >= row.gain * TIE);
            let key = tied.map(|(key, _)| *key).fold(f64::INFINITY, f64::min);
            BatchCut { feature: row.feature, gain: row.gain, key }
        })
    }

    /// The same for one random threshold for each feature.
    pub(crate) fn random_cuts(
        &mut self,
        arch: Arch,
        pairs: &[Pair],
        node: Node,
        room: Room,
    ) -> impl Iterator<Item = BatchCut> {
        self.columns.clear();
        self.columns.resize(2 * self.width, 0.0);
        let (counts, sums) = self.columns.split_at_mut(self.width);
        for ((count, sum), pair) in counts.iter_mut().zip(sums).zip(pairs) {
            (*count, *sum) = (pair[0], pair[1]);
        }
        arch.dispatch(RandomCut { batch: self, gain: GainOf::new(node, room) });
        self.best().map(|(_, row)| BatchCut { feature: row.feature, gain: row.gain, key: row.threshold })
    }

    fn best(&self) -> impl Iterator<Item = (usize, &Row)> {
        let most = self.rows.iter().map(|row| row.gain).fold(-1.0, f64::max);
        self.rows.iter().enumerate().filter(move |(_, row)| row.gain >= 0.0 && ties(row.gain, most))
    }
}

struct EveryCut<'a> {
    batch: &'a mut Batch,
    pairs: &'a [Pair],
    gain: GainOf,
}

impl WithSimd for EveryCut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.batch.width / S::F64_LANES {
            1 => self.run::<S, 1>(simd),
            2 => self.run::<S, 2>(simd),
            4 => self.run::<S, 4>(simd),
            8 => self.run::<S, 8>(simd),
            _ => self.run::<S, 16>(simd),
        }
    }
}

impl EveryCut<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let Batch { width, rows, keys, gains, .. } = self.batch;
        let zero = simd.splat_f64s(0.0);
        let lines = keys.chunks_exact(*width).zip(gains.chunks_exact_mut(*width));
        for (row, (keys, gains)) in rows.iter_mut().zip(lines) {
            let (vectors, _) = S::as_simd_f64s(keys);
            let vectors: [S::f64s; VECTORS] = std::array::from_fn(|v| vectors[v]);
            let (mut examples, mut sums) = ([zero; VECTORS], [zero; VECTORS]);
            for (&key, pair) in keys.iter().zip(self.pairs) {
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
                out[v] = self.gain.of(simd, examples[v], sums[v]);
                most = simd.max_f64s(most, out[v]);
            }
            row.gain = simd.reduce_max_f64s(most);
        }
    }
}

struct RandomCut<'a> {
    batch: &'a mut Batch,
    gain: GainOf,
}

impl WithSimd for RandomCut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Batch { width, n, rows, keys, columns, .. } = self.batch;
        let (counts, sums) = columns.split_at(*width);
        let (counts, _) = S::as_simd_f64s(counts);
        let (sums, _) = S::as_simd_f64s(sums);
        let zero = simd.splat_f64s(0.0);
        for (row, keys) in rows.iter_mut().zip(keys.chunks_exact(*width)) {
            let (low, high) = keys[..*n].iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &key| {
                (if key < low { key } else { low }, if key > high { key } else { high })
            });
            row.threshold = threshold(low, high, row.share);
            let at = simd.splat_f64s(row.threshold);
            let (mut examples, mut sum) = (zero, zero);
            for ((&keys, &count), &value) in S::as_simd_f64s(keys).0.iter().zip(counts).zip(sums) {
                let left = simd.less_than_or_equal_f64s(keys, at);
                examples = simd.add_f64s(examples, simd.select_f64s(left, count, zero));
                sum = simd.add_f64s(sum, simd.select_f64s(left, value, zero));
            }
            row.gain = self.gain.of_one([simd.reduce_sum_f64s(examples), simd.reduce_sum_f64s(sum)]);
        }
    }
}

/// The number at `share` of the way from `low` to `high`, at least the first and below the second.
#[inline(always)]
pub(crate) fn threshold(low: f64, high: f64, share: f64) -> f64 {
    (low * (1.0 - share) + high * share).clamp(low, high.next_down())
}
