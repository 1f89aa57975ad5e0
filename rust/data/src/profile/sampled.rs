//! The values of a column in the sampled rows, kept in one of several ways, and their hash.

use std::borrow::Cow;

use super::coding::Sample;
use super::hashes::{FEW, hash, hash_entries};
use super::sample::SampleOrder;

/// Values of the sampled rows in the order of the sample, NaN where missing.
#[derive(Debug, Clone)]
pub(super) enum SampledValues {
    All(Vec<f64>),
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
            SampledValues::Sparse(len, _) => *len,
        }
    }

    /// All values.
    pub(super) fn all(&self) -> Cow<'_, [f64]> {
        match self {
            SampledValues::All(values) => Cow::Borrowed(values),
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
        match self {
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
            SampledValues::Sparse(len, entries) if FEW * entries.len() <= *len => {
                hash_entries(entries.iter().copied(), order, words)
            }
            SampledValues::Sparse(..) => hash(&self.all(), order, words),
        }
    }
}
