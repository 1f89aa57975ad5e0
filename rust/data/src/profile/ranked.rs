//! A short column as ranks: its distinct values in order, and the place of each row's value among them.
//!
//! Where the sample holds all rows, one sort of a column gives the number of distinct values, the cut points and the codes,
//! which are needed later. Columns of f32 that have few rows are sorted eight at a time, by a network (Batcher
//! 1968; Knuth 1998, §5.2.2, algorithm M) whose exchanges are minima and maxima of vectors.
//!
//! Gain in speed: 1.8x on a call of one tree (200 x 20,000, CPU time).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};

use super::coding::{Cuts, MISSING_U8, MISSING_U16, Sample, Scratch};
use crate::store::Code;

/// Columns that are sorted side by side.
pub(super) const ABREAST: usize = 8;

/// Rows up to which the network is faster than a radix sort of each column: their keys stay in the nearest cache.
const MOST_IN_NETWORK: usize = 512;

/// The sort key of missing values, greater than that of any number.
const MISSING_KEY: u32 = u32::MAX;

/// The values of a column.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// Ascending, each once; as many as codes of two bytes have room for.
    pub(super) distinct: Arc<Vec<f64>>,
    ranks: Ranks,
}

/// n_rows; positions among the distinct values, or the code of a missing value.
#[derive(Debug)]
enum Ranks {
    /// If each has a code of one byte.
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl Ranked {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        match &self.ranks {
            Ranks::Narrow(ranks) => ranks.len(),
            Ranks::Wide(ranks) => ranks.len(),
        }
    }

    /// The value of each row, NaN where missing.
    pub(super) fn values(&self) -> Vec<f64> {
        fn of<C: Code>(ranks: &[C], distinct: &[f64]) -> Vec<f64> {
            ranks.iter().map(|rank| distinct.get(rank.index()).copied().unwrap_or(f64::NAN)).collect()
        }
        match &self.ranks {
            Ranks::Narrow(ranks) => of(ranks, &self.distinct),
            Ranks::Wide(ranks) => of(ranks, &self.distinct),
        }
    }

    /// The cuts of the column, whose rows were all ranked.
    pub(super) fn cuts(&self, max_bins: usize, scratch: &mut Scratch) -> Cuts {
        if self.distinct.len() <= max_bins {
            return Cuts::each(self.distinct.clone());
        }
        scratch.distinct.clear();
        scratch.distinct.extend_from_slice(&self.distinct);
        self.count(&mut scratch.ends);
        Cuts::with_rare_of(scratch, &[], &[], max_bins)
    }

    /// How many rows have a value up to each of the distinct ones, in `ends`.
    fn count(&self, ends: &mut Vec<usize>) {
        ends.clear();
        ends.resize(self.distinct.len(), 0);
        let mut count = |rank: usize| ends.get_mut(rank).into_iter().for_each(|end| *end += 1);
        match &self.ranks {
            Ranks::Narrow(ranks) => ranks.iter().for_each(|rank| count(rank.index())),
            Ranks::Wide(ranks) => ranks.iter().for_each(|rank| count(rank.index())),
        }
        let mut before = 0;
        ends.iter_mut().for_each(|end| {
            before += *end;
            *end = before;
        });
    }

    /// Calls `emit` with each of `rows`, counted from the first, and its code by `cuts`.
    pub(crate) fn encode<C: Code>(&self, cuts: &Cuts, rows: Range<usize>, emit: impl FnMut(usize, C)) {
        match &self.ranks {
            Ranks::Narrow(ranks) => encode(&ranks[rows], &self.distinct, cuts, emit),
            Ranks::Wide(ranks) => encode(&ranks[rows], &self.distinct, cuts, emit),
        }
    }
}

fn encode<R: Code, C: Code>(ranks: &[R], distinct: &[f64], cuts: &Cuts, mut emit: impl FnMut(usize, C)) {
    let or_missing = |rank: R, code: C| if rank == R::MISSING { C::MISSING } else { code };
    if cuts.values.len() == distinct.len() {
        // As many codes as values: each has its own.
        let code = |rank: R| or_missing(rank, C::from_u16(rank.index() as u16));
        return ranks.iter().enumerate().for_each(|(row, &rank)| emit(row, code(rank)));
    }
    let (mut codes, mut code) = (Vec::with_capacity(distinct.len()), 0);
    for &value in distinct {
        while code + 1 < cuts.values.len() && cuts.cut(code) < value {
            code += 1;
        }
        codes.push(C::from_u16(code as u16));
    }
    for (row, &rank) in ranks.iter().enumerate() {
        emit(row, codes.get(rank.index()).copied().unwrap_or(C::MISSING));
    }
}

/// Makes ranks of values, with buffers that are reused from column to column.
#[derive(Default)]
pub(super) struct Ranker {
    /// n_rows; a key above the number of the row, of each column.
    abreast: Vec<[u64; ABREAST]>,
    keys: Vec<u64>,
    ranks: Vec<u16>,
}

impl Ranker {
    /// Ranks the values of `columns`, at most [`ABREAST`], with as many rows each. Left as they are: columns of numbers that
    /// are no f32, which take a key of twice the size, with -0, and columns with more rows than codes.
    pub(super) fn rank(&mut self, columns: &mut [&mut SampledValues]) {
        let n_rows = columns.first().map_or(0, |column| column.len());
        if !(1..=usize::from(MISSING_U16)).contains(&n_rows) {
            return;
        }
        let in_network = n_rows <= MOST_IN_NETWORK;
        self.abreast.resize(if in_network { n_rows } else { 0 }, [0; ABREAST]);
        let mut are_keys = [false; ABREAST];
        for (lane, column) in columns.iter_mut().enumerate() {
            let SampledValues::All(values) = &mut **column else { continue };
            if in_network {
                are_keys[lane] = keys_of(values, |row, key| self.abreast[row][lane] = key);
                continue;
            }
            self.keys.resize(n_rows, 0);
            if keys_of(values, |row, key| self.keys[row] = key) {
                radsort::sort_by_key(&mut self.keys, |key| (key >> 32) as u32);
                let values = std::mem::take(values);
                **column = SampledValues::Ranked(Arc::new(ranked(self.keys.iter().copied(), values, &mut self.ranks)));
            }
        }
        if !are_keys.contains(&true) {
            return;
        }
        Arch::new().dispatch(Network(&mut self.abreast));
        for (lane, column) in columns.iter_mut().enumerate().filter(|(lane, _)| are_keys[*lane]) {
            let values = std::mem::take(column.as_mut());
            let keys = self.abreast.iter().map(|row| row[lane]);
            **column = SampledValues::Ranked(Arc::new(ranked(keys, values, &mut self.ranks)));
        }
    }
}

/// Calls `put` with each row of `values` and its key, above the number of the row. Returns false if some are no f32.
fn keys_of(values: &[f64], mut put: impl FnMut(usize, u64)) -> bool {
    // Ranks would not tell -0 from 0, and the digest of a profile does.
    let is_single =
        |value: f64| value.is_nan() || f64::from(value as f32) == value && value.to_bits() != (-0.0f64).to_bits();
    if !values.iter().take(8).all(|&value| is_single(value)) {
        return false;
    }
    let mut are_single = true;
    for (row, &value) in values.iter().enumerate() {
        are_single &= is_single(value);
        let bits = (value as f32).to_bits();
        let ascending = bits ^ (((bits.cast_signed() >> 31).cast_unsigned()) | 1 << 31);
        let key = if value.is_nan() { MISSING_KEY } else { ascending };
        put(row, u64::from(key) << 32 | row as u64);
    }
    are_single
}

/// The value with a key.
fn value_of(key: u32) -> f64 {
    f64::from(f32::from_bits(if key >> 31 == 1 { key ^ 1 << 31 } else { !key }))
}

/// The column with the sorted `keys`; `distinct` has room for its values, and `ranks` is a buffer.
fn ranked(keys: impl Iterator<Item = u64>, mut distinct: Vec<f64>, ranks: &mut Vec<u16>) -> Ranked {
    let n_rows = distinct.len();
    ranks.resize(n_rows, 0);
    let (mut last, mut n_distinct) = (MISSING_KEY, 0usize);
    for key in keys {
        let (key, row) = ((key >> 32) as u32, key as u32 as usize);
        n_distinct += usize::from(key != last);
        last = key;
        // The first key counts, unless it is that of a missing value, whose rank is one below 0.
        let rank = n_distinct.wrapping_sub(1);
        ranks[row] = if key == MISSING_KEY { MISSING_U16 } else { rank as u16 };
        if let Some(distinct) = distinct.get_mut(rank) {
            *distinct = value_of(key);
        }
    }
    // Missing values come last, and are counted as one unless there is nothing else.
    n_distinct -= usize::from(last == MISSING_KEY && n_distinct > 0);
    distinct.truncate(n_distinct);
    distinct.shrink_to_fit();
    let ranks = match n_distinct <= usize::from(MISSING_U8) {
        // The code of a missing value becomes that of one byte.
        true => Ranks::Narrow(ranks.iter().map(|&rank| rank as u8).collect()),
        false => Ranks::Wide(ranks.clone()),
    };
    Ranked { distinct: Arc::new(distinct), ranks }
}

/// Sorts each lane.
struct Network<'a>(&'a mut [[u64; ABREAST]]);

impl WithSimd for Network<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let rows = self.0;
        let n = rows.len();
        let most = n.next_power_of_two() / 2;
        let mut p = most;
        while p > 0 {
            let (mut q, mut r, mut d) = (most, 0, p);
            loop {
                for start in (r..n - d).step_by(2 * p) {
                    let end = (start + p).min(n - d);
                    let (low, high) = rows.split_at_mut(start + d);
                    for (low, high) in low[start..end].iter_mut().zip(high) {
                        for lane in 0..ABREAST {
                            let (a, b) = (low[lane], high[lane]);
                            (low[lane], high[lane]) = (a.min(b), a.max(b));
                        }
                    }
                }
                if q == p {
                    break;
                }
                (d, q, r) = (q - p, q / 2, p);
            }
            p /= 2;
        }
    }
}

/// A column in which at most one of so many values is not 0 is hashed by its values other than 0.
const FEW: usize = 8;

/// Values of the sampled rows in the order of the sample, NaN where missing.
#[derive(Debug, Clone)]
pub(super) enum SampledValues {
    All(Vec<f64>),
    /// If the sampled rows are all rows, and no others come.
    Ranked(Arc<Ranked>),
    /// Number of rows; the positions of the values other than 0, ascending, and these values.
    Sparse(usize, Vec<(u32, f64)>),
}

impl Default for SampledValues {
    fn default() -> Self {
        SampledValues::All(Vec::new())
    }
}

impl SampledValues {
    pub(super) fn len(&self) -> usize {
        match self {
            SampledValues::All(values) => values.len(),
            SampledValues::Ranked(ranked) => ranked.len(),
            SampledValues::Sparse(len, _) => *len,
        }
    }

    /// All values.
    pub(super) fn all(&self) -> Cow<'_, [f64]> {
        match self {
            SampledValues::All(values) => Cow::Borrowed(values),
            SampledValues::Ranked(ranked) => Cow::Owned(ranked.values()),
            SampledValues::Sparse(len, entries) => {
                let mut values = vec![0.0; *len];
                entries.iter().for_each(|&(position, value)| values[position as usize] = value);
                Cow::Owned(values)
            }
        }
    }

    /// The values in any order, of many that are alike perhaps only one.
    pub(super) fn distinct(&self) -> Cow<'_, [f64]> {
        match self {
            SampledValues::All(values) => Cow::Borrowed(values),
            SampledValues::Ranked(ranked) => Cow::Borrowed(&ranked.distinct),
            SampledValues::Sparse(len, entries) => {
                let zero = (entries.len() < *len).then_some(0.0);
                Cow::Owned(entries.iter().map(|&(_, value)| value).chain(zero).collect())
            }
        }
    }

    /// The values in any order, zeros counted where they are not kept; `buffer` holds them if need be.
    pub(super) fn unordered<'a>(&'a self, buffer: &'a mut Vec<f64>) -> Sample<'a> {
        match self {
            SampledValues::All(values) => Sample::new(values),
            SampledValues::Ranked(ranked) => {
                *buffer = ranked.values();
                Sample::new(buffer)
            }
            SampledValues::Sparse(len, entries) => {
                buffer.clear();
                buffer.extend(entries.iter().map(|(_, value)| value));
                Sample { numbers: buffer, zeros: len - entries.len() }
            }
        }
    }

    /// The values, which are kept one by one from here on.
    pub(super) fn as_mut(&mut self) -> &mut Vec<f64> {
        if !matches!(self, SampledValues::All(_)) {
            *self = SampledValues::All(self.all().into_owned());
        }
        match self {
            SampledValues::All(values) => values,
            _ => unreachable!("it was replaced"),
        }
    }

    /// Leaves the values at the positions `keep`, which ascend.
    pub(super) fn keep(&mut self, keep: &[u32]) {
        if let SampledValues::Ranked(_) = self {
            self.as_mut();
        }
        match self {
            SampledValues::Ranked(_) => unreachable!("it was replaced"),
            SampledValues::All(values) => {
                (0..).zip(keep).for_each(|(to, &from)| values[to] = values[from as usize]);
                values.truncate(keep.len());
            }
            SampledValues::Sparse(len, entries) => {
                entries.retain_mut(|(position, _)| match keep.binary_search(position) {
                    Ok(to) => {
                        *position = to as u32;
                        true
                    }
                    Err(_) => false,
                });
                *len = keep.len();
            }
        }
    }

    /// Words to hash: the values in the `order` of their positions, or the entries, each with its place in that order. What
    /// they are depends on the values, and not on how these are kept. `places` has the place of each position.
    pub(super) fn words(&self, order: &[u32], places: &[u32]) -> Vec<u64> {
        let is_entry = |value: f64| value.to_bits() != 0;
        let (entries, values) = match self {
            SampledValues::Sparse(_, entries) => (&entries[..], Cow::default()),
            _ => (&[][..], self.all()),
        };
        let n_entries = entries.len() + values.iter().filter(|&&value| is_entry(value)).count();
        if FEW * n_entries > self.len() {
            let values = if values.is_empty() { self.all() } else { values };
            return order.iter().map(|&position| values[position as usize].to_bits()).collect();
        }
        let of_all = (0..).zip(values.iter()).filter(|(_, value)| is_entry(**value));
        let all = entries.iter().copied().chain(of_all.map(|(position, &value)| (position, value)));
        let mut words: Vec<[u64; 2]> =
            all.map(|(position, value)| [places[position as usize].into(), value.to_bits()]).collect();
        words.sort_unstable();
        words.into_flattened()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rank(columns: &[Vec<f64>]) -> Vec<SampledValues> {
        let mut values: Vec<SampledValues> = columns.iter().cloned().map(SampledValues::All).collect();
        Ranker::default().rank(&mut values.iter_mut().collect::<Vec<_>>());
        values
    }

    /// What the general way finds in `values` agrees with what the ranks say.
    fn check(values: &[f64], ranked: &SampledValues, max_bins: usize) {
        let SampledValues::Ranked(ranked) = ranked else { panic!("{values:?} are f32") };
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&ranked.values()), bits(values));
        let mut scratch = Scratch::default();
        let expected = Cuts::quantiles(values.to_vec(), max_bins);
        let cuts = ranked.cuts(max_bins, &mut scratch);
        assert_eq!(cuts, expected);
        let mut codes = vec![0; values.len()];
        expected.encode(values, MISSING_U16, |row, code| codes[row] = code);
        let mut found = vec![0; values.len()];
        ranked.encode(&cuts, 0..values.len(), |row, code: u16| found[row] = code);
        assert_eq!(found, codes);
    }

    #[test]
    fn columns_of_any_number_of_rows_are_ranked() {
        for n in [1, 2, 3, 7, 64, 200, 511, 512, 513, 2_000] {
            let hash = |i: usize, column: usize| ((i * 7 + column + 1) * 2_654_435_761 % 1_000_003) as f32;
            let columns: Vec<Vec<f64>> = (0..ABREAST)
                .map(|column| match column {
                    // Nothing known; ties; a single value; a missing value; all different.
                    0 => vec![f64::NAN; n],
                    1 => (0..n).map(|i| f64::from((hash(i, 1) / 3e5).round())).collect(),
                    2 => vec![0.0; n],
                    3 => (0..n).map(|i| if i % 5 == 1 { f64::NAN } else { f64::from(-hash(i, 3)) }).collect(),
                    _ => (0..n).map(|i| f64::from(hash(i, column) - 5e5)).collect(),
                })
                .collect();
            for (values, ranked) in columns.iter().zip(&rank(&columns)) {
                [2, 3, 255, 2_000].into_iter().for_each(|max_bins| check(values, ranked, max_bins));
            }
        }
    }

    #[test]
    fn numbers_that_are_no_singles_and_columns_longer_than_codes_are_left() {
        for values in [vec![0.5, 0.1, 0.25], vec![0.5, -0.0], vec![0.5; 65_536], [vec![0.5; 9], vec![1e300]].concat()] {
            assert!(matches!(&rank(&[vec![1.0; values.len()], values])[1], SampledValues::All(_)));
        }
    }

    proptest! {
        #[test]
        fn ranks_agree_with_the_general_way(
            columns in (1usize..700).prop_flat_map(|n| {
                let value = prop_oneof![
                    8 => (-50i8..50).prop_map(|value| f64::from(value) / 4.0),
                    4 => any::<f32>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| f64::from(value) + 0.0),
                    1 => Just(f64::NAN),
                ];
                prop::collection::vec(prop::collection::vec(value, n), 1..=ABREAST)
            }),
            max_bins in 2usize..300,
        ) {
            for (values, ranked) in columns.iter().zip(&rank(&columns)) {
                check(values, ranked, max_bins);
            }
        }
    }
}
