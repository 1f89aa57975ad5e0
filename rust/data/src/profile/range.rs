//! The range of numbers, and how many are missing or 0: several side by side, as wide as the machine's vectors.

use pulp::{Arch, Simd, WithSimd};

const LANES: usize = 16;

/// What there is to say of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    /// Infinite where nothing is known.
    pub(super) low: f64,
    pub(super) high: f64,
    /// NaNs.
    pub(super) missing: u64,
    pub(super) zeros: u64,
}

impl Range {
    pub(super) fn of(values: &[f64]) -> Self {
        Arch::new().dispatch(Of(values))
    }
}

struct Of<'a>(&'a [f64]);

impl WithSimd for Of<'_> {
    type Output = Range;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Range {
        let mut low = [f64::INFINITY; LANES];
        let mut high = [f64::NEG_INFINITY; LANES];
        let (mut missing, mut zeros) = ([0u64; LANES], [0u64; LANES]);
        let mut add = |values: &[f64; LANES]| {
            for lane in 0..LANES {
                let value = values[lane];
                // No comparison with a NaN holds.
                low[lane] = if value < low[lane] { value } else { low[lane] };
                high[lane] = if value > high[lane] { value } else { high[lane] };
                missing[lane] += u64::from(value.is_nan());
                zeros[lane] += u64::from(value == 0.0);
            }
        };
        let (whole, rest) = self.0.as_chunks::<LANES>();
        whole.iter().for_each(&mut add);
        let mut last = [f64::NAN; LANES];
        last[..rest.len()].copy_from_slice(rest);
        add(&last);
        Range {
            low: low.into_iter().fold(f64::INFINITY, f64::min),
            high: high.into_iter().fold(f64::NEG_INFINITY, f64::max),
            missing: missing.into_iter().sum::<u64>() - (LANES - rest.len()) as u64,
            zeros: zeros.into_iter().sum(),
        }
    }
}

/// What there is to say of some columns, whose values come row by row.
#[derive(Debug)]
pub(super) struct Ranges {
    n_rows: u64,
    low: Vec<f64>,
    high: Vec<f64>,
    missing: Vec<u64>,
    zeros: Vec<u64>,
}

impl Ranges {
    pub(super) fn new(n_columns: usize) -> Self {
        let (missing, zeros) = (vec![0; n_columns], vec![0; n_columns]);
        Ranges {
            n_rows: 0,
            low: vec![f64::INFINITY; n_columns],
            high: vec![f64::NEG_INFINITY; n_columns],
            missing,
            zeros,
        }
    }

    /// Adds the values of a row.
    pub(super) fn add(&mut self, arch: Arch, row: &[f64]) {
        arch.dispatch(AddRow { ranges: self, row });
    }

    /// The range of each column, and how many values are known.
    pub(super) fn into_columns(self) -> impl Iterator<Item = (Range, u64)> {
        let Ranges { n_rows, low, high, missing, zeros } = self;
        let columns = low.into_iter().zip(high).zip(missing).zip(zeros);
        columns.map(move |(((low, high), missing), zeros)| (Range { low, high, missing, zeros }, n_rows - missing))
    }
}

struct AddRow<'a> {
    ranges: &'a mut Ranges,
    row: &'a [f64],
}

impl WithSimd for AddRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Ranges { n_rows, low, high, missing, zeros } = self.ranges;
        *n_rows += 1;
        let n = self.row.len();
        let (low, high, missing, zeros) = (&mut low[..n], &mut high[..n], &mut missing[..n], &mut zeros[..n]);
        for (column, &value) in self.row.iter().enumerate() {
            // No comparison with a NaN holds.
            low[column] = if value < low[column] { value } else { low[column] };
            high[column] = if value > high[column] { value } else { high[column] };
            missing[column] += u64::from(value.is_nan());
            zeros[column] += u64::from(value == 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_row_have_the_ranges_of_columns() {
        let value = |row: usize, column: usize| match (row * 7 + column * 3) % 5 {
            0 => f64::NAN,
            1 => 0.0,
            _ => row as f64 - 3.0 * column as f64,
        };
        let mut ranges = Ranges::new(19);
        (0..23).for_each(|row| ranges.add(Arch::new(), &(0..19).map(|column| value(row, column)).collect::<Vec<_>>()));
        for (column, (found, n_known)) in ranges.into_columns().enumerate() {
            let expected = Range::of(&(0..23).map(|row| value(row, column)).collect::<Vec<_>>());
            assert_eq!((found, n_known), (expected, 23 - expected.missing));
        }
    }

    #[test]
    fn numbers_of_every_length_have_their_range() {
        let numbers = |n: usize| (0..n).map(|i| if i % 7 == 3 { f64::NAN } else { (i as f64 - 20.0) / 2.0 });
        for n in 0..50 {
            let values: Vec<f64> = numbers(n).collect();
            let known = || numbers(n).filter(|value| !value.is_nan());
            let expected = Range {
                low: known().fold(f64::INFINITY, f64::min),
                high: known().fold(f64::NEG_INFINITY, f64::max),
                missing: (n - known().count()) as u64,
                zeros: u64::from(n > 20),
            };
            assert_eq!(Range::of(&values), expected);
        }
    }
}
