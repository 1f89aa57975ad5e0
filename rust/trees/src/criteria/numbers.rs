//! The mean squared error of the means on both sides (Robnik-Šikonja and Kononenko 1999 Eq. 17, 18).

use super::SideSums;

/// 1 − MSE / R, R the mean squared error of the node's mean; the sums of a side are n, Σ y and Σ y².
pub(crate) struct MeanCriterion<'a> {
    /// n; the target less its mean.
    pub(crate) centered: &'a [f64],
    /// Sum of the squares of `centered`, above 0.
    pub(crate) squares: f64,
}

impl SideSums for MeanCriterion<'_> {
    fn len(&self) -> usize {
        3
    }

    fn add(&self, sums: &mut [f64], position: u32) {
        let value = self.centered[position as usize];
        [1.0, value, value * value].into_iter().zip(sums).for_each(|(value, sum)| *sum += value);
    }

    fn estimate(&self, left: &[f64], right: &[f64]) -> f64 {
        let errors = |side: &[f64]| side[2] - side[1] * side[1] / side[0];
        1.0 - (errors(left) + errors(right)) / self.squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_of_two_values_leaves_no_error() {
        let criterion = MeanCriterion { centered: &[-1.0, -1.0, 1.0, 1.0], squares: 4.0 };
        let sums = |positions: [u32; 2]| {
            let mut sums = [0.0; 3];
            positions.iter().for_each(|&position| criterion.add(&mut sums, position));
            sums
        };
        assert_eq!(criterion.estimate(&sums([0, 1]), &sums([2, 3])), 1.0);
        assert_eq!(criterion.estimate(&sums([0, 2]), &sums([1, 3])), 0.0);
    }
}
