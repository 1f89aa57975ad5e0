//! The number of examples and another sum of theirs as a single number: the count in the high bits of an integer that f64
//! represents exactly, the sum in the low ones.
//!
//! The fewer bits the addends have, the more examples fit: 2²⁵ with row weights of 1 and 2, and with a component of 100,000 rows,
//! whose sums over all rows take 51 bits, 255.

use super::Pair;

/// Bits of the integers that f64 represents exactly.
const BITS: i32 = f64::MANTISSA_DIGITS as i32;

/// The layout of the count and the sum in one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CountField {
    /// What an example adds to the number, besides its addend: 2 to the power of this.
    unit: i16,
    /// The greatest magnitude of an addend: 2 to the power of this.
    most: i16,
}

impl CountField {
    /// The layout for addends up to 2^`most` in magnitude that are multiples of 2^`step`; `None` if no number of examples
    /// fits.
    ///
    /// Of n examples, the sum is below half the unit, and the number below 2⁵³ times the step.
    pub(crate) fn new(step: i32, most: i32) -> Option<Self> {
        let unit = (BITS + step + most).div_euclid(2);
        let is_normal = (f64::MIN_EXP..f64::MAX_EXP - BITS - 1).contains(&unit);
        (unit >= most + 2 && is_normal).then_some(CountField { unit: unit as i16, most: most as i16 })
    }

    /// The layout for row `weights` from 0 to 1; `None` if no number of examples fits. The sum below the count
    /// is that of (weight − 1/2) over the examples, because these terms take one bit less than the weights.
    pub(crate) fn of_weights(weights: impl Iterator<Item = f64>) -> Option<Self> {
        let step = weights.filter(|&weight| weight > 0.0).map(lowest_bit).min()?;
        CountField::new(step.min(-1), -1)
    }

    /// What an example adds to the number, besides its addend.
    pub(crate) fn unit(self) -> f64 {
        power_of_two(self.unit)
    }

    /// The most examples, counted with multiplicity.
    pub(crate) fn most_examples(self) -> f64 {
        power_of_two(self.unit - 1 - self.most) - 1.0
    }

    /// The number of examples with this count and sum.
    pub(crate) fn number(self, count: f64, sum: f64) -> f64 {
        count * self.unit() + sum
    }

    /// The count and the sum in `number`.
    #[inline]
    pub(crate) fn count_and_sum(self, number: f64) -> (f64, f64) {
        // Around it, numbers are apart by the unit.
        let apart = 1.5 * power_of_two(self.unit + BITS as i16 - 1);
        let counts = (number + apart) - apart;
        (counts * power_of_two(-self.unit), number - counts)
    }

    /// The number of examples with this count and weight.
    pub(crate) fn weighted_number(self, count: f64, weight: f64) -> f64 {
        self.number(count, weight - 0.5 * count)
    }

    /// The count and the weight in `number`.
    #[inline]
    pub(crate) fn count_and_weight(self, number: f64) -> (f64, f64) {
        let (count, sum) = self.count_and_sum(number);
        (count, sum + 0.5 * count)
    }

    /// The means of two components of the examples with the sums `pair`.
    pub(crate) fn means(self, pair: Pair) -> [f64; 2] {
        let (count, sum) = self.count_and_sum(pair[0]);
        [sum, pair[1]].map(|sum| sum / count)
    }
}

/// 2 to the power of `exponent`, of which the result is a normal number (not subnormal, nor infinite).
#[inline]
fn power_of_two(exponent: i16) -> f64 {
    let bias = f64::MAX_EXP as i16 - 1;
    f64::from_bits(((exponent + bias) as u64) << (f64::MANTISSA_DIGITS - 1))
}

/// The exponent of the lowest bit of a number above 0.
fn lowest_bit(x: f64) -> i32 {
    let (fraction, below) = (f64::MANTISSA_DIGITS as i32 - 1, x.to_bits().trailing_zeros() as i32);
    let exponent = (x.to_bits() >> fraction) as i32 - (f64::MAX_EXP - 1);
    exponent - fraction + below.min(fraction)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn layouts_leave_room_for_the_bits_of_weights() {
        let of = |weights: &[f64]| CountField::of_weights(weights.iter().copied()).map(CountField::most_examples);
        assert_eq!(of(&[1.0, 0.5]), Some(((1 << 25) - 1) as f64));
        assert_eq!(of(&[1.0, 0.75, 0.0]), Some(((1 << 25) - 1) as f64));
        assert_eq!(of(&[1.0, 0.5f64.powi(34)]), Some(511.0));
        assert_eq!(of(&[1.0, 1.0 - 0.5f64.powi(34)]), Some(511.0));
        assert_eq!(of(&[1.0, 0.5f64.powi(48)]), Some(3.0));
        assert_eq!(of(&[1.0, 0.5f64.powi(52)]), None);
        assert_eq!(of(&[0.0]), None);
    }

    proptest! {
        #[test]
        fn counts_and_sums_are_what_was_put_together(
            (bits, step, examples) in (0..=45i32, -20..=20i32).prop_flat_map(|(bits, step)| {
                let most = 1i64 << bits;
                let units = prop_oneof![-most..=most, Just(most), Just(-most)];
                (Just(bits), Just(step), prop::collection::vec((1..=3u32, units), 1..5))
            })
        ) {
            let Some(field) = CountField::new(step, step + bits) else { return Ok(()) };
            let count: u32 = examples.iter().map(|&(count, _)| count).sum();
            prop_assume!(f64::from(count) <= field.most_examples());
            let value = |units: i64| units as f64 * 2f64.powi(step);
            if bits > 0 {
                let weight = |units: i64| (units.abs() as f64) / (1u64 << bits) as f64;
                let weights = examples.iter().map(|&(_, units)| weight(units)).chain([0.5f64.powi(bits)]);
                let field = CountField::of_weights(weights).unwrap();
                let parts = examples.iter().map(|&(n, units)| f64::from(n) * field.weighted_number(1.0, weight(units)));
                let total: f64 = examples.iter().map(|&(n, units)| f64::from(n) * weight(units)).sum();
                let is_room = f64::from(count) <= field.most_examples();
                prop_assert!(!is_room || field.count_and_weight(parts.sum()) == (f64::from(count), total));
            }
            let parts = examples.iter().map(|&(count, units)| f64::from(count) * field.number(1.0, value(units)));
            let total: f64 = examples.iter().map(|&(count, units)| f64::from(count) * value(units)).sum();
            prop_assert_eq!(field.count_and_sum(parts.sum()), (f64::from(count), total));
        }
    }
}
