//! P-values of what a feature adds to a linear model of all features.

use statrs::function::beta::{checked_beta_reg, ln_beta};

use super::Relevance;
use super::tails::{IMPOSSIBLE, ln_cauchy};

/// What a feature explains of a target beside all other features: the F test of its columns in a linear model.
///
/// ```
/// use ferrank_ranking::relevance::PartialTest;
///
/// // One column beside 100 degrees of freedom: F is 100 (1 - u) / u, and 3.936 has a p-value of 0.05.
/// let test = PartialTest { unexplained: 1.0 / (1.0 + 3.936 / 100.0), columns: 1.0, rest: 100.0 };
/// assert!((test.ln_p_value().exp() - 0.05).abs() < 1e-4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartialTest {
    /// The squared error of the model as a share of that without the feature, above 0 and at most 1.
    pub unexplained: f64,
    /// The columns that the feature adds, above 0.
    pub columns: f64,
    /// The degrees of freedom of the error, above 0.
    pub rest: f64,
}

impl PartialTest {
    /// The logarithm of the p-value. Without an effect and with errors of a normal law, the share that is left unexplained
    /// has the beta law of rest / 2 and columns / 2.
    pub fn ln_p_value(&self) -> f64 {
        let (a, b) = (self.rest / 2.0, self.columns / 2.0);
        match checked_beta_reg(a, b, self.unexplained.clamp(0.0, 1.0)) {
            Ok(tail) if tail > 1e-200 => tail.ln().min(0.0),
            // Far below its mean, I_u(a, b) is about u^a (1 - u)^(b - 1) / a B(a, b).
            _ => {
                let tail = a * self.unexplained.ln() + (b - 1.0) * (-self.unexplained).ln_1p() - a.ln() - ln_beta(a, b);
                tail.clamp(IMPOSSIBLE, 0.0)
            }
        }
    }
}

impl Relevance {
    /// The better of two p-values for each feature, by Bonferroni's correction: that of `self`, and that of the `partial`
    /// tests of the feature, joined by Cauchy's combination. Features without partial tests keep theirs.
    #[must_use]
    pub fn or_partial(self, partial: &[Vec<PartialTest>]) -> Self {
        let better = |(own, tests): (&f64, &Vec<PartialTest>)| match tests.len() {
            0 => -own * std::f64::consts::LN_10,
            _ => {
                let other = ln_cauchy(tests.iter().map(PartialTest::ln_p_value).collect());
                (2f64.ln() + other.min(-own * std::f64::consts::LN_10)).min(0.0)
            }
        };
        let joined = self.evidence.iter().zip(partial).map(better);
        let Relevance { evidence, .. } = Relevance::from_ln(joined, std::iter::empty());
        Relevance::new(evidence.clone(), evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(f: f64, columns: f64, rest: f64) -> PartialTest {
        PartialTest { unexplained: 1.0 / (1.0 + f * columns / rest), columns, rest }
    }

    #[test]
    fn p_values_are_those_of_the_tables_and_go_on_beyond_f64() {
        // Quantiles of the F law.
        for (f, columns, rest, p) in [(4.351, 1.0, 20.0, 0.05), (2.866, 4.0, 20.0, 0.05), (6.895, 1.0, 100.0, 0.01)] {
            let found = test(f, columns, rest).ln_p_value().exp();
            assert!((found / p - 1.0).abs() < 1e-3, "{f}: {found}");
        }
        for columns in [1.0, 2.0, 7.0] {
            let p: Vec<f64> = (0..4_000).map(|f| test(f64::from(f), columns, 500.0).ln_p_value()).collect();
            assert!(p.is_sorted_by(|a, b| a >= b) && p.iter().all(|p| p.is_finite()), "{columns}");
            assert!(p[3_999] < -500.0, "{columns}");
        }
        assert_eq!(PartialTest { unexplained: 1.0, columns: 1.0, rest: 9.0 }.ln_p_value(), 0.0);
        let all = PartialTest { unexplained: f64::MIN_POSITIVE, columns: 1.0, rest: 1e6 };
        assert_eq!(all.ln_p_value(), IMPOSSIBLE);
    }

    #[test]
    fn the_better_of_two_costs_a_factor_of_two() {
        let single = Relevance::new(vec![2.0, 8.0, 0.0, 3.0], vec![2.0, 8.0, 0.0, 3.0]);
        let at = |p: f64| {
            let (mut low, mut high) = (0.0, 1e4);
            for _ in 0..200 {
                let f = (low + high) / 2.0;
                if test(f, 1.0, 60.0).ln_p_value().exp() > p { low = f } else { high = f }
            }
            test(low, 1.0, 60.0)
        };
        let found = single.or_partial(&[vec![at(1e-6)], vec![at(0.3)], vec![at(0.9)], vec![]]).p_values();
        for (found, expected) in found.iter().zip([2e-6, 2e-8, 1.0, 1e-3]) {
            assert!((found / expected - 1.0).abs() < 1e-6, "{found}, {expected}");
        }
    }
}
