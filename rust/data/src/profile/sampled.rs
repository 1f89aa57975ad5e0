//! The values of a column in the sampled rows, kept in one of several ways, and their hash.

use std::borrow::Cow;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::coding::Sample;
use super::ranked::Ranked;
use super::sample::SampleOrder;

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

    /// The hash of the values, which does not depend on how these are kept; `words` is a buffer.
    pub(super) fn hash(&self, order: &SampleOrder, words: &mut Vec<u64>) -> u128 {
        match self {
            SampledValues::All(values) => hash(values, order, words),
            SampledValues::Ranked(ranked) => ranked.hash,
            SampledValues::Sparse(len, entries) if FEW * entries.len() <= *len => {
                hash_entries(entries.iter().copied(), order, words)
            }
            SampledValues::Sparse(..) => hash(&self.all(), order, words),
        }
    }
}

/// The hash of sampled `values`: of all in the order of their rows, or of the few that are not 0; `words` is a buffer.
pub(super) fn hash(values: &[f64], order: &SampleOrder, words: &mut Vec<u64>) -> u128 {
    let is_entry = |value: f64| value.to_bits() != 0;
    let n_entries = values.iter().filter(|&&value| is_entry(value)).count();
    if FEW * n_entries <= values.len() {
        let entries = (0..).zip(values).map(|(position, &value)| (position, value));
        return hash_entries(entries.filter(|entry| is_entry(entry.1)), order, words);
    }
    words.clear();
    words.extend(order.positions.iter().map(|&position| values[position as usize].to_bits()));
    hash_words(words)
}

/// The hash of values other than 0, each with its place in the order of the sampled rows.
fn hash_entries(entries: impl Iterator<Item = (u32, f64)>, order: &SampleOrder, words: &mut Vec<u64>) -> u128 {
    let mut placed: Vec<[u64; 2]> =
        entries.map(|(position, value)| [order.places[position as usize].into(), value.to_bits()]).collect();
    placed.sort_unstable();
    words.clear();
    words.extend_from_slice(placed.as_flattened());
    hash_words(words)
}

/// The hash of the bytes of `words`, lowest first.
pub(super) fn hash_words(words: &[u64]) -> u128 {
    // Which is what memory holds on nearly all machines.
    if cfg!(target_endian = "little") {
        return xxh3_128(bytemuck::cast_slice(words));
    }
    let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
    xxh3_128(bytes.as_flattened())
}
