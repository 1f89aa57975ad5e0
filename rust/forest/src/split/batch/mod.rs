//! All candidate features of a small node at once.
//!
//! Most nodes of a fully grown tree hold a handful of examples. A search feature by feature would spend most of the
//! time on starting searches. Here the keys of the examples lie in one row per feature, padded to whole vectors, and
//! each example is compared with each. For example i, the left side of the cut just above its key is the sum over all j
//! with key_j ≤ key_i.
//!
//! Memory: 16 bytes for each candidate and example of the node.

mod category_ranks;
pub(super) mod every_cut;
mod few_sums;
mod random_cut;
pub(super) mod row;

use pulp::{Arch, Simd, WithSimd};

use super::gain::{GainFormula, GainVisitor, PairGain};
use super::gram::{self, Gram};
use super::single::Node;
use super::{STEP, SplitConstraint, node};
use crate::criterion::{Criterion, ties};
use crate::pairs::Pair;
use crate::tree_buffer::{MissingSide, lowest_above};
use category_ranks::CategoryRanks;
use every_cut::{EveryCut, Measure, Pairs, Products};
pub(crate) use few_sums::{FewSums, SumKind};
use random_cut::{RandomCut, SumSource};
use row::Row;

/// Keys of the examples of a node, a row for each candidate feature.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    n: usize,
    width: usize,
    rows: Vec<Row>,
    /// (most candidates) x width, of which the first n_rows are in use; infinite beyond the examples. Codes, or values
    /// for random cuts.
    keys: Vec<f64>,
    /// n_rows x width; the gain of the cut above each key.
    gains: Vec<f64>,
    /// 2 x width; the counts of the examples, then their sums, for random cuts.
    columns: Vec<f64>,
    /// True if the gains are those of random cuts.
    at_random: bool,
    /// The row of the candidate whose cut divides the node.
    chosen: usize,
}

/// The best test of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BatchCut {
    pub(crate) feature: u32,
    pub(crate) gain: f64,
    /// The highest key that goes left, or the random threshold; infinite for the test whether the value is known.
    pub(crate) key: f64,
    /// The side of the examples whose value is missing.
    pub(crate) missing: MissingSide,
}

impl Batch {
    /// The most examples for which comparing each with each is faster than a histogram.
    pub(crate) fn most_examples(arch: Arch) -> usize {
        struct Lanes;
        impl WithSimd for Lanes {
            type Output = usize;
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> usize {
                S::F64_LANES
            }
        }
        // Each vector of examples takes three registers, out of 32 or of 16.
        match arch.dispatch(Lanes) {
            8 => gram::MOST,
            4 => 16,
            _ => STEP,
        }
    }

    /// Starts a node of `n` examples and at most `n_rows` candidates. `n` is 0 for a node that uses no batch.
    pub(crate) fn start(&mut self, n: usize, n_rows: usize) {
        self.n = n;
        self.width = n.next_multiple_of(STEP);
        self.chosen = usize::MAX;
        self.rows.clear();
        self.keys.resize(self.keys.len().max(n_rows * self.width), f64::INFINITY);
    }

    /// Adds `feature`. `fill` writes the keys of the examples and returns true if they differ; otherwise the feature is
    /// dropped. Returns what `fill` returned.
    #[inline(always)]
    pub(crate) fn add(&mut self, feature: u32, fill: impl FnOnce(&mut [f64]) -> bool) -> bool {
        let keys = &mut self.keys[self.rows.len() * self.width..][..self.width];
        keys[self.width - STEP..].fill(f64::INFINITY);
        let varies = fill(&mut keys[..self.n]);
        if varies {
            let (missing, highest) = (MissingSide::Heavier, f64::INFINITY);
            self.rows.push(Row {
                feature,
                share: 0.0,
                gain: -1.0,
                threshold: 0.0,
                missing,
                highest,
                is_nominal: false,
            });
        }
        varies
    }

    /// Sets the position of the random cut of the last feature, from 0 (least key) to 1 (greatest key).
    pub(crate) fn set_share(&mut self, share: f64) {
        if let Some(row) = self.rows.last_mut() {
            row.share = share;
        }
    }

    /// Marks the last row as one of categories. The row has ranks in the place of codes once it is judged.
    pub(crate) fn set_nominal(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.is_nominal = true;
        }
    }

    /// Sets the side of the missing values of the last row. Cuts from the key `highest` on are the test whether the value
    /// is known.
    pub(crate) fn set_missing(&mut self, missing: MissingSide, highest: f64) {
        if let Some(row) = self.rows.last_mut() {
            (row.missing, row.highest) = (missing, highest);
        }
    }

    /// The lowest and the highest key of the last row below `missing`.
    pub(crate) fn ends_below(&self, arch: Arch, missing: f64) -> (f64, f64) {
        struct Ends<'a>(&'a [f64], f64);
        impl WithSimd for Ends<'_> {
            type Output = (f64, f64);
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) -> (f64, f64) {
                random_cut::extremes_below(simd, self.0, self.1)
            }
        }
        arch.dispatch(Ends(&self.keys[(self.rows.len() - 1) * self.width..][..self.width], missing))
    }

    /// Changes the keys of the last row.
    pub(crate) fn change_last(&mut self, to: impl Fn(f64) -> f64) {
        let start = (self.rows.len() - 1) * self.width;
        self.keys[start..start + self.n].iter_mut().for_each(|key| *key = to(*key));
    }

    /// Adds the last row again, with the key `to` where it has the key `from`.
    pub(crate) fn repeat_last(&mut self, arch: Arch, from: f64, to: f64) {
        struct Replaced<'a>(&'a [f64], &'a mut [f64], [f64; 2]);
        impl WithSimd for Replaced<'_> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Replaced(keys, changed, ends) = self;
                let [from, to] = ends.map(|key| simd.splat_f64s(key));
                for (&key, changed) in S::as_simd_f64s(keys).0.iter().zip(S::as_mut_simd_f64s(changed).0) {
                    *changed = simd.select_f64s(simd.equal_f64s(key, from), to, key);
                }
            }
        }
        let start = (self.rows.len() - 1) * self.width;
        self.rows.extend_from_within(self.rows.len() - 1..);
        let (keys, changed) = self.keys[start..][..2 * self.width].split_at_mut(self.width);
        arch.dispatch(Replaced(keys, changed, [from, to]));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Chooses the candidate whose cut divides the node.
    pub(crate) fn choose(&mut self, candidate: usize) {
        self.chosen = candidate;
    }

    /// The keys of the examples in `feature`, ranks if it is nominal, if it is the feature of the chosen candidate and has no
    /// missing values.
    pub(crate) fn keys(&self, feature: u32) -> Option<&[f64]> {
        let row = self.rows.get(self.chosen)?;
        let is_wanted = row.feature == feature && row.missing == MissingSide::Heavier;
        is_wanted.then(|| &self.keys[self.chosen * self.width..][..self.n])
    }

    /// The lowest of `keys`, which are codes, above the code `cut`.
    #[inline(always)]
    pub(crate) fn code_above(keys: &[f64], cut: u16) -> u16 {
        lowest_above(keys.iter().copied(), f64::from(cut), f64::INFINITY) as u16
    }

    /// The distance from one row of keys to the next.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Judges all cuts of the candidates, from the pairs of the examples.
    pub(crate) fn judge(&mut self, arch: Arch, pairs: &[Pair], node: Node, constraint: SplitConstraint) {
        if self.rows.iter().any(|row| row.is_nominal) {
            let Batch { width, rows, keys, .. } = self;
            arch.dispatch(CategoryRanks { width: *width, rows, keys, pairs });
        }
        GainFormula::new(node, constraint).visit(JudgePairs { batch: self, arch, pairs });
    }

    /// Judges all cuts of the candidates, for any components, from the inner products of the examples.
    pub(crate) fn judge_products(&mut self, arch: Arch, gram: &Gram, examples: f64, constraint: SplitConstraint) {
        self.every_cut(arch, Products { gram, gain: GainFormula::from_qualities(examples, constraint) });
    }

    fn every_cut<M: Measure>(&mut self, arch: Arch, measure: M) {
        self.gains.resize(self.keys.len().max(self.gains.len()), 0.0);
        let Batch { n, width, rows, keys, gains, .. } = self;
        arch.dispatch(EveryCut { n: *n, width: *width, rows, keys, gains, measure });
        self.at_random = false;
    }

    /// Judges the random cuts of the candidates, for a single component.
    pub(crate) fn judge_random(&mut self, arch: Arch, pairs: &[Pair], node: Node, constraint: SplitConstraint) {
        self.columns.clear();
        self.columns.resize(2 * self.width, 0.0);
        let (counts, sums) = self.columns.split_at_mut(self.width);
        for ((count, sum), pair) in counts.iter_mut().zip(sums).zip(pairs) {
            (*count, *sum) = (pair[0], pair[1]);
        }
        let Batch { n, width, rows, keys, columns, .. } = self;
        let gain = GainFormula::new(node, constraint);
        arch.dispatch(RandomCut { n: *n, width: *width, rows, keys, sums: SumSource::Columns(columns), gain });
        self.at_random = true;
    }

    /// Judges the random cuts of the candidates, for any components, from the inner products of the examples.
    pub(crate) fn judge_random_products(
        &mut self,
        arch: Arch,
        gram: &Gram,
        examples: f64,
        constraint: SplitConstraint,
    ) {
        self.judge_random_sums(arch, SumSource::Products(gram), examples, constraint);
    }

    /// Judges the random cuts of the candidates from the values of `node`, which are set. `counts` is the multiplicity
    /// of each example.
    pub(crate) fn judge_random_values(
        &mut self,
        arch: Arch,
        criterion: &Criterion,
        node: &node::Node,
        counts: &[u32],
        constraint: SplitConstraint,
    ) {
        self.judge_random_sums(arch, SumSource::Values { criterion, node, counts }, node.examples(), constraint);
    }

    fn judge_random_sums(&mut self, arch: Arch, sums: SumSource<'_>, examples: f64, constraint: SplitConstraint) {
        let Batch { n, width, rows, keys, .. } = self;
        let gain = GainFormula::from_qualities(examples, constraint);
        arch.dispatch(RandomCut { n: *n, width: *width, rows, keys, sums, gain });
        self.at_random = true;
    }

    /// The number, the feature and the gain of each candidate, after they are judged. The gain is −1 if the constraint
    /// allows no cut.
    #[inline(always)]
    pub(crate) fn judged(&self) -> impl Iterator<Item = (usize, u32, f64)> + Clone {
        let rows = self.rows.iter().enumerate();
        let better = rows.filter(|&(number, row)| row.missing == MissingSide::Heavier || self.beats_other_side(number));
        better.map(|(number, row)| (number, row.feature, row.gain))
    }

    /// The feature and the gain of candidate `number`.
    #[inline(always)]
    pub(crate) fn candidate(&self, number: usize) -> (u32, f64) {
        (self.rows[number].feature, self.rows[number].gain)
    }

    /// Returns true if the row at `number` is better than that of the other side of the missing values, if there is one.
    /// Of equal gains, that with the missing values on the right is taken.
    fn beats_other_side(&self, number: usize) -> bool {
        let row = &self.rows[number];
        let other = match row.missing {
            MissingSide::Right => self.rows.get(number + 1),
            _ => number.checked_sub(1).map(|other| &self.rows[other]),
        };
        match other.filter(|other| other.feature == row.feature) {
            Some(left) if row.missing == MissingSide::Right => ties(row.gain, left.gain),
            Some(right) => !ties(right.gain, row.gain),
            None => true,
        }
    }

    /// The cut with the gain of a candidate: the lowest of the cuts that tie, or the random cut.
    pub(crate) fn cut(&self, candidate: usize) -> BatchCut {
        let Row { feature, gain, threshold, missing, highest, .. } = self.rows[candidate];
        let cut = |key: f64| BatchCut { feature, gain, key: if key >= highest { f64::INFINITY } else { key }, missing };
        if self.at_random {
            return cut(threshold);
        }
        let row = candidate * self.width..candidate * self.width + self.n;
        let mut key = f64::INFINITY;
        for (&own_key, &own_gain) in self.keys[row.clone()].iter().zip(&self.gains[row]) {
            let own_key = if ties(own_gain, gain) { own_key } else { f64::INFINITY };
            key = if own_key < key { own_key } else { key };
        }
        cut(key)
    }
}

/// Judges all cuts of the candidates of `batch`.
struct JudgePairs<'a> {
    batch: &'a mut Batch,
    arch: Arch,
    pairs: &'a [Pair],
}

impl GainVisitor for JudgePairs<'_> {
    type Output = ();

    fn visit<G: PairGain>(self, gain: G) {
        self.batch.every_cut(self.arch, Pairs { pairs: self.pairs, gain });
    }
}
