//! Measures of the classes on both sides of a split (Robnik-Šikonja and Kononenko 1999 Eq. 5, 6, 16; Breiman et al.
//! 1984; Quinlan 1986).

use super::SideSums;
use crate::params::Selector;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClassMeasure {
    Accuracy,
    Gini,
    GainRatio,
    Myopic,
}

impl ClassMeasure {
    /// The measure of a selector; `None` for those that measure no classes.
    pub(crate) fn from_selector(selector: Selector) -> Option<Self> {
        match selector {
            Selector::Accuracy => Some(ClassMeasure::Accuracy),
            Selector::Gini => Some(ClassMeasure::Gini),
            Selector::GainRatio => Some(ClassMeasure::GainRatio),
            Selector::Myopic => Some(ClassMeasure::Myopic),
            _ => None,
        }
    }
}

/// A measure of classes; the sums of a side are its rows by class.
pub(crate) struct ClassCriterion<'a> {
    pub(crate) measure: ClassMeasure,
    /// n
    pub(crate) codes: &'a [u16],
    /// n_classes; rows of the node.
    pub(crate) counts: &'a [u64],
}

impl SideSums for ClassCriterion<'_> {
    fn len(&self) -> usize {
        self.counts.len()
    }

    fn add(&self, sums: &mut [f64], position: u32) {
        sums[usize::from(self.codes[position as usize])] += 1.0;
    }

    fn estimate(&self, left: &[f64], right: &[f64]) -> f64 {
        let n = self.codes.len() as f64;
        match self.measure {
            ClassMeasure::Accuracy => {
                [left, right].map(|side| side.iter().copied().fold(0.0, f64::max)).iter().sum::<f64>() / n
            }
            ClassMeasure::Gini => {
                let weighted = |side: &[f64]| squares(side) / total(side);
                (weighted(left) + weighted(right)) / n - self.alike()
            }
            ClassMeasure::GainRatio => {
                let [of_left, of_right] = [total(left), total(right)];
                let within = (of_left * entropy(left) + of_right * entropy(right)) / n;
                let own: Vec<f64> = self.counts.iter().map(|&count| count as f64).collect();
                (entropy(&own) - within) / entropy(&[of_left, of_right])
            }
            ClassMeasure::Myopic => {
                let equal = squares(&[total(left), total(right)]) / (n * n);
                // Σ_V P(V)² Σ_C P(C|V)² = Σ of squared counts / n².
                let gain = (squares(left) + squares(right)) / (n * n) / equal - self.alike();
                equal * gain / (self.alike() * (1.0 - self.alike()))
            }
        }
    }
}

impl ClassCriterion<'_> {
    /// Σ P(C)², below 1 at a node that is split.
    fn alike(&self) -> f64 {
        let n = self.codes.len() as f64;
        self.counts.iter().map(|&count| (count as f64 / n).powi(2)).sum()
    }
}

fn total(counts: &[f64]) -> f64 {
    counts.iter().sum()
}

fn squares(counts: &[f64]) -> f64 {
    counts.iter().map(|count| count * count).sum()
}

/// In bits.
fn entropy(counts: &[f64]) -> f64 {
    let total = total(counts);
    counts.iter().filter(|&&count| count > 0.0).map(|count| -count / total * (count / total).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(measure: ClassMeasure, left: [f64; 2], right: [f64; 2]) -> f64 {
        let counts = [0, 1].map(|class| (left[class] + right[class]) as u64);
        let codes = [vec![0; counts[0] as usize], vec![1; counts[1] as usize]].concat();
        ClassCriterion { measure, codes: &codes, counts: &counts }.estimate(&left, &right)
    }

    #[test]
    fn measures_worked_by_hand() {
        let (left, right) = ([3.0, 1.0], [1.0, 3.0]);
        assert_eq!(estimate(ClassMeasure::Accuracy, left, right), 0.75);
        // 1/2 − 3/8.
        assert_eq!(estimate(ClassMeasure::Gini, left, right), 0.125);
        // 1/2 (5/8 − 1/2) / (1/4).
        assert_eq!(estimate(ClassMeasure::Myopic, left, right), 0.25);
        assert!((estimate(ClassMeasure::GainRatio, left, right) - 0.188_721_875_540_867_2).abs() < 1e-15);
        assert_eq!(estimate(ClassMeasure::GainRatio, [2.0, 0.0], [0.0, 2.0]), 1.0);
    }
}
