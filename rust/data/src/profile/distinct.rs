//! A sample of the distinct values of a column: those whose bits hash lowest ("bottom-k", Cohen and Kaplan 2007).
//!
//! It does not depend on the order in which values are seen, or on how often. As long as no more values are found than
//! it holds, it holds all of them. Each distinct value is drawn with the same probability, however rare it is.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use pulp::{Arch, Simd, WithSimd};

/// A set of numbers that holds `most` of them.
#[derive(Debug, Clone)]
pub(super) struct Distinct {
    most: usize,
    held: Held,
    /// Values that hash higher are not held.
    pub(super) limit: u64,
}

/// The values held, or their hashes, from which the values follow; up to twice as many as wanted until
/// [`prune`](Distinct::prune).
#[derive(Debug, Clone)]
enum Held {
    /// All values so far, which are no more than wanted, in ascending order. Sparse columns of about 40 entries, which have no
    /// others, are read and coded in 0.75 of the time that they take with sets.
    Ascending(Vec<f64>),
    /// All hashes so far.
    All(HashSet<u64, BuildHasherDefault<Same>>),
    /// The hashes up to the limit, some of them several times. Most of those that come are new, so that a set would cost more:
    /// 65,535 of 1,000,000 values take a third of the time.
    Lowest(Vec<u64>),
}

impl Distinct {
    /// The sample of `values`.
    pub(super) fn of(most: usize, values: &[f64]) -> Self {
        if values.len() <= most {
            let mut known: Vec<f64> = values.iter().filter(|value| !value.is_nan()).map(|value| value + 0.0).collect();
            known.sort_unstable_by(f64::total_cmp);
            known.dedup();
            return Distinct { most, held: Held::Ascending(known), limit: u64::MAX };
        }
        let mut distinct = Distinct { most, held: Held::All(HashSet::default()), limit: u64::MAX };
        distinct.extend(values);
        distinct
    }

    /// The values that [`sorted`](Self::sorted) gives, as a set again.
    pub(super) fn from_sorted(most: usize, limit: u64, values: &[f64]) -> Self {
        match limit < u64::MAX {
            true => {
                let hashes = values.iter().map(|value| hash(value.to_bits()));
                Distinct { most, held: Held::Lowest(hashes.collect()), limit }
            }
            false => Distinct::of(most, values),
        }
    }

    /// Adds `values`; a NaN is no value, and -0 is 0.
    pub(super) fn extend(&mut self, values: &[f64]) {
        if self.most == 0 || values.is_empty() {
            return;
        }
        if let Held::Ascending(_) = self.held {
            self.held = Held::All(self.held.hashes().collect());
        }
        let mut last = f64::NAN;
        for values in values.chunks(LANES) {
            match &mut self.held {
                Held::All(hashes) => {
                    for &value in values.iter().filter(|value| !value.is_nan()) {
                        if value != last {
                            last = value;
                            hashes.insert(hash((value + 0.0).to_bits()));
                        }
                    }
                }
                Held::Lowest(hashes) => {
                    // Often all of them hash above the limit.
                    if !Arch::new().dispatch(AnyBelow { values, limit: self.limit }) {
                        continue;
                    }
                    let mut len = hashes.len();
                    hashes.resize(len + LANES, 0);
                    for &value in values {
                        let hash = hash((value + 0.0).to_bits());
                        // Written in any case, which avoids an unpredictable branch.
                        hashes[len] = hash;
                        len += usize::from(hash <= self.limit && !value.is_nan() && value != last);
                        last = value;
                    }
                    hashes.truncate(len);
                }
                Held::Ascending(_) => unreachable!("it was replaced"),
            }
            self.prune(self.most);
        }
    }

    /// Adds the values of `other`.
    pub(super) fn merge(&mut self, other: &Distinct) {
        self.limit = self.limit.min(other.limit);
        match &mut self.held {
            Held::All(hashes) if self.limit == u64::MAX => hashes.extend(other.held.hashes()),
            held if self.limit == u64::MAX => *held = Held::All(held.hashes().chain(other.held.hashes()).collect()),
            held => {
                let hashes = held.hashes().chain(other.held.hashes()).filter(|&hash| hash <= self.limit);
                *held = Held::Lowest(hashes.collect());
            }
        }
        self.prune(self.most);
    }

    /// Brings the sample back to its size once it has outgrown it by more than `slack`.
    pub(super) fn prune(&mut self, slack: usize) {
        if self.held.len() <= self.most + slack {
            return;
        }
        let mut hashes = match &mut self.held {
            Held::Lowest(hashes) => std::mem::take(hashes),
            held => held.hashes().collect(),
        };
        radsort::sort(&mut hashes);
        hashes.dedup();
        if hashes.len() > self.most {
            hashes.truncate(self.most);
            self.limit = hashes.last().copied().unwrap_or(0);
        }
        self.held = Held::Lowest(hashes);
    }

    /// The number of values; `None` if there are more than are held.
    pub(super) fn len(&self) -> Option<usize> {
        match &self.held {
            Held::All(_) | Held::Ascending(_) if self.most > 0 && self.held.len() <= self.most => Some(self.held.len()),
            _ => None,
        }
    }

    /// The values held in ascending order, after [`prune`](Self::prune) to the size.
    pub(super) fn sorted(&self) -> Cow<'_, [f64]> {
        if let Held::Ascending(values) = &self.held {
            return Cow::Borrowed(values);
        }
        let mut values: Vec<f64> = self.held.hashes().map(|hash| f64::from_bits(unhash(hash))).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        Cow::Owned(values)
    }
}

impl Held {
    /// Number of values, each as often as it is held.
    fn len(&self) -> usize {
        match self {
            Held::Ascending(values) => values.len(),
            Held::All(hashes) => hashes.len(),
            Held::Lowest(hashes) => hashes.len(),
        }
    }

    fn hashes(&self) -> impl Iterator<Item = u64> {
        let (mut values, mut set, mut lowest) = (None, None, None);
        match self {
            Held::Ascending(held) => values = Some(held),
            Held::All(hashes) => set = Some(hashes),
            Held::Lowest(hashes) => lowest = Some(hashes),
        }
        let of_values = values.into_iter().flatten().map(|value| hash(value.to_bits()));
        of_values.chain(set.into_iter().flatten().copied()).chain(lowest.into_iter().flatten().copied())
    }
}

/// Hashes are their own hashes.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are u64")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The number of distinct `values`; `None` if there are more than `most`.
pub(super) fn count_distinct(values: &[f64], most: usize) -> Option<usize> {
    /// So many are sought one by one, which takes less time than a set.
    const FEW: usize = 40;
    let mut few = Vec::with_capacity(FEW);
    let mut many = BitSet::default();
    let mut last = f64::NAN;
    for &value in values.iter().filter(|value| !value.is_nan()) {
        if value == last || few.contains(&value) {
            continue;
        }
        last = value;
        match few.len() < FEW {
            true => few.push(value),
            false => drop(many.insert(value.to_bits())),
        }
        if few.len() + many.len() > most {
            return None;
        }
    }
    Some(few.len() + many.len())
}

/// The bits of numbers. Those of integers differ in high bits alone, which takes a hash that mixes all of them.
type BitSet = HashSet<u64, BuildHasherDefault<Mixer>>;

#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = hash(bits);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The finalizer of MurmurHash3 (Appleby 2011), a bijection: no two values tie.
#[inline(always)]
fn hash(bits: u64) -> u64 {
    let mut hash = bits;
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The bits with this [`hash`]: its steps in reverse, with the inverses of the factors modulo 2⁶⁴.
fn unhash(hash: u64) -> u64 {
    let mut bits = hash ^ (hash >> 33);
    bits = bits.wrapping_mul(0x9cb4_b2f8_1293_37db);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0x4f74_430c_22a5_4005);
    bits ^ (bits >> 33)
}

const LANES: usize = 64;

/// Whether any of `values`, at most [`LANES`], hashes to `limit` or below.
struct AnyBelow<'a> {
    values: &'a [f64],
    limit: u64,
}

impl WithSimd for AnyBelow<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        self.values.iter().fold(false, |any, &value| any | (hash((value + 0.0).to_bits()) <= self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_its_bits() {
        for bits in [0, 1, u64::MAX, 0.1f64.to_bits(), f64::NEG_INFINITY.to_bits()] {
            assert_eq!(unhash(hash(bits)), bits);
        }
    }

    #[test]
    fn repeated_values_are_held_once() {
        let values: Vec<f64> = (0..40_000).map(|i| f64::from(i % 150)).collect();
        let mut distinct = Distinct::of(100, &values);
        distinct.prune(0);
        let mut lowest: Vec<u64> = (0..150).map(|i| hash(f64::from(i).to_bits())).collect();
        lowest.sort_unstable();
        let mut expected: Vec<f64> = lowest[..100].iter().map(|&hash| f64::from_bits(unhash(hash))).collect();
        expected.sort_unstable_by(f64::total_cmp);
        assert_eq!((&*distinct.sorted(), distinct.limit), (&expected[..], lowest[99]));
    }

    #[test]
    fn it_knows_few_values_and_samples_many() {
        let mut distinct = Distinct::of(3, &[2.0, f64::NAN, -0.0, 2.0, 0.0]);
        assert_eq!((&*distinct.sorted(), distinct.len()), (&[0.0, 2.0][..], Some(2)));
        distinct.extend(&[5.0]);
        assert_eq!(distinct.len(), Some(3));
        distinct.extend(&[6.0]);
        assert_eq!(distinct.len(), None);
        distinct.prune(0);
        assert_eq!(distinct.sorted().len(), 3);
    }

    #[test]
    fn distinct_values_are_counted_up_to_a_number() {
        let values: Vec<f64> = (0..900).map(|i| f64::from(i * 7 % 300)).chain([f64::NAN, -0.0]).collect();
        assert_eq!((count_distinct(&values, 300), count_distinct(&values, 299)), (Some(300), None));
        assert_eq!((count_distinct(&[2.0, f64::NAN, 2.0], 1), count_distinct(&[-0.0, 0.0], 0)), (Some(1), None));
    }

    #[test]
    fn the_sample_is_the_same_for_any_order_and_grouping() {
        let values: Vec<f64> = (0..5_000).map(|i| f64::from(i * 7_919 % 3_001) - 1_500.0).collect();
        let pruned = |mut distinct: Distinct| {
            distinct.prune(0);
            (distinct.limit, distinct.sorted().into_owned())
        };
        let whole = pruned(Distinct::of(100, &values));
        assert_eq!(whole.1.len(), 100);
        let mut backwards = values.clone();
        backwards.reverse();
        assert_eq!(pruned(Distinct::of(100, &backwards)), whole);
        for size in [30, 999] {
            let mut parts: Vec<Distinct> = values.chunks(size).map(|part| Distinct::of(100, part)).collect();
            parts.iter_mut().step_by(2).for_each(|part| part.prune(0));
            let mut merged = Distinct::of(100, &[]);
            parts.iter().rev().for_each(|part| merged.merge(part));
            assert_eq!(pruned(merged), whole);
        }
    }
}
