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

#[cfg(test)]
mod tests {
    use super::*;

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
