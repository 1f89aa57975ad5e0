//! P-values of statistics whose mean and variance over all permutations of the targets are known.

use super::Relevance;
use super::tails::{ln_cauchy, ln_upper_tail};

/// A law with a shape parameter below this is one of rare events, which two moments do not describe.
const LEAST_SHAPE: f64 = 0.25;

/// A statistic that is greater the more a feature says about a target.
///
/// ```
/// use ferrank_ranking::relevance::{PermutationTest, from_tests};
///
/// // Squared correlations in 101 rows. One as great as their mean is nothing unusual.
/// let test = |statistic| PermutationTest { statistic, mean: 0.01, variance: 0.0002 };
/// let p_values = from_tests(&[vec![test(0.01)], vec![test(0.0663)]]).p_values();
/// assert!((p_values[0] - 0.317).abs() < 1e-3 && (p_values[1] - 0.01).abs() < 1e-4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Its value.
    pub statistic: f64,
    /// Its mean over all permutations of the target, above 0.
    pub mean: f64,
    /// Its variance over all permutations.
    pub variance: f64,
}

impl PermutationTest {
    /// The logarithm of the p-value: the upper tail of the gamma law with these moments. Where that law is one of rare
    /// events, such as common rows of a rare category and a rare class, it is at least Cantelli's bound, which holds for
    /// every law.
    fn ln_p_value(&self) -> f64 {
        let spread = self.variance.max(0.0).sqrt();
        if spread <= self.mean * 1e-9 {
            return 0.0;
        }
        let above = (self.statistic - self.mean) / spread;
        let skewness = 2.0 * spread / self.mean;
        let tail = ln_upper_tail(above, skewness);
        match 4.0 / (skewness * skewness) < LEAST_SHAPE {
            true if above <= 0.0 => 0.0,
            true => tail.max(-(above * above).ln_1p()),
            false => tail,
        }
    }
}

/// The p-values of features that were tested in several ways each, joined by Cauchy's combination. That of a feature
/// without a test is 1.
///
/// ```
/// use ferrank_ranking::relevance::{PermutationTest, from_tests};
///
/// // The squared correlation in 101 rows.
/// let test = |statistic| PermutationTest { statistic, mean: 0.01, variance: 0.0002 };
/// let p = from_tests(&[vec![test(0.0384)], vec![test(0.3), test(0.001)], vec![]]).p_values();
/// assert!((p[0] - 0.05).abs() < 1e-3 && p[1] < 1e-6 && p[2] == 1.0);
/// ```
pub fn from_tests(tests: &[Vec<PermutationTest>]) -> Relevance {
    let joined = |tests: &Vec<PermutationTest>| match tests.len() {
        0 => 0.0,
        _ => ln_cauchy(tests.iter().map(PermutationTest::ln_p_value).collect()),
    };
    let Relevance { evidence, .. } = Relevance::from_ln(tests.iter().map(joined), std::iter::empty());
    Relevance::new(evidence.clone(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_events_are_judged_by_a_bound_and_constants_not_at_all() {
        let ln_p = |statistic, mean, variance| PermutationTest { statistic, mean, variance }.ln_p_value();
        // One row of 1,000,000 is expected to have both of two rare values, so that one of 1,000 permutations has.
        let (once, chance) = (0.033, 1e-3);
        let p = ln_p(once, chance * once, chance * once * once).exp();
        assert!((p / chance - 1.0).abs() < 0.01, "{p}");
        assert_eq!(ln_p(0.0, chance * once, chance * once * once), 0.0);
        assert_eq!(ln_p(0.5, 0.5, 0.0), 0.0);
    }
}
