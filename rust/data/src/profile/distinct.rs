//! Distinct values of a column, as long as they are few.

use rustc_hash::FxHashSet;

/// A set of numbers that gives up once it has more than `most` of them.
#[derive(Debug, Clone)]
pub(super) struct Distinct {
    most: usize,
    /// Bits of the values; `None` once there were too many.
    bits: Option<FxHashSet<u64>>,
}

impl Distinct {
    pub(super) fn new(most: usize) -> Self {
        Distinct { most, bits: Some(FxHashSet::default()) }
    }

    /// Adds `values`; a NaN is no value, and -0 is 0.
    pub(super) fn extend(&mut self, values: &[f64]) {
        let Some(bits) = &mut self.bits else { return };
        let mut last = f64::NAN;
        for &value in values {
            if value.is_nan() || value == last {
                continue;
            }
            last = value;
            bits.insert((value + 0.0).to_bits());
            if bits.len() > self.most {
                self.bits = None;
                return;
            }
        }
    }

    /// Adds the values of `other`.
    pub(super) fn merge(&mut self, other: &Distinct) {
        self.bits = match (self.bits.take(), &other.bits) {
            (Some(mut bits), Some(others)) => {
                bits.extend(others);
                (bits.len() <= self.most).then_some(bits)
            }
            _ => None,
        };
    }

    /// The number of values; `None` if there were too many.
    pub(super) fn len(&self) -> Option<usize> {
        self.bits.as_ref().map(FxHashSet::len)
    }

    /// What [`sorted`](Self::sorted) gives, as a set again.
    pub(super) fn from_sorted(most: usize, values: Option<Vec<f64>>) -> Self {
        Distinct { most, bits: values.map(|values| values.into_iter().map(f64::to_bits).collect()) }
    }

    /// The values in ascending order; `None` if there were too many.
    pub(super) fn sorted(&self) -> Option<Vec<f64>> {
        let mut values: Vec<f64> = self.bits.as_ref()?.iter().map(|&bits| f64::from_bits(bits)).collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_few_values_and_gives_up_on_many() {
        let mut distinct = Distinct::new(3);
        distinct.extend(&[2.0, f64::NAN, -0.0, 2.0, 0.0]);
        assert_eq!(distinct.sorted(), Some(vec![0.0, 2.0]));
        distinct.extend(&[5.0]);
        assert!(distinct.sorted().is_some());
        distinct.extend(&[6.0]);
        assert_eq!(distinct.sorted(), None);
    }
}
