//! P-values of features: the chance that an irrelevant feature is as important.
//!
//! The data are the same for all trees, so that the importance of an irrelevant feature is one draw from a law, and not
//! an average that more trees would bring to nought. There are two ways to more draws from this law: shadows of features
//! (`shadows`: [`from_blocks`] for tables with few features, [`from_one_permutation`] for those with many), and targets
//! drawn anew (`draws`: [`from_draws`]). Of statistics of single features the moments over all permutations of the targets
//! are known (`permutations`: [`from_tests`]), and F tests say what a feature adds to others (`partial`). P-values of several scores are joined by Cauchy's combination (Liu and Xie
//! 2020), which holds whatever their dependence.

mod blocks;
mod classes;
mod draws;
mod means;
mod one_permutation;
mod partial;
mod permutations;
mod tails;

pub use blocks::from_blocks;
pub use draws::from_draws;
pub use one_permutation::from_one_permutation;
pub use partial::PartialTest;
pub use permutations::{PermutationTest, from_tests};
use tails::ln_cauchy;

/// Whether each feature is relevant.
///
/// ```
/// use ferrank_ranking::relevance::Relevance;
///
/// let relevance = Relevance::new(vec![6.0, 1.0], vec![9.0, 3.0]);
/// assert_eq!(relevance.p_values(), [1e-6, 0.1]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// n_features; −log₁₀ of the p-value, the chance that an irrelevant feature with such values is as important.
    /// P-values of strong features are too small for f64.
    pub evidence: Vec<f64>,
    /// n_features; the evidence if the importance were two Monte Carlo errors greater: more trees may bring it there.
    pub most_evidence: Vec<f64>,
}

/// What a verdict about a feature is.
///
/// ```
/// use ferrank_ranking::relevance::{Dependence, Relevance, Verdict};
///
/// let relevance = Relevance::new(vec![6.0, 0.4, 1.5], vec![9.0, 0.7, 3.0]);
/// let verdicts = relevance.verdicts(0.01, Dependence::Positive);
/// assert_eq!(verdicts, [Verdict::Relevant, Verdict::Irrelevant, Verdict::Undecided]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Relevant, at a rate of false discoveries.
    Relevant,
    /// No sign of relevance.
    Irrelevant,
    /// Not relevant, but more trees may change that.
    Undecided,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Relevant => "relevant",
            Verdict::Irrelevant => "irrelevant",
            Verdict::Undecided => "undecided",
        }
    }
}

/// What is known about the dependence of the p-values of features.
///
/// ```
/// use ferrank_ranking::relevance::{Dependence, Relevance};
///
/// let relevance = Relevance::new(vec![6.0, 1.0], vec![9.0, 3.0]);
/// let [positive, any] = [Dependence::Positive, Dependence::Any].map(|dependence| relevance.q_values(dependence));
/// assert!(positive[0] < any[0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Independent or positively dependent (Benjamini and Hochberg 1995).
    Positive,
    /// Any (Benjamini and Yekutieli 2001).
    Any,
}

impl Relevance {
    /// From `evidence` and `most_evidence`, a value for each feature.
    pub fn new(evidence: Vec<f64>, most_evidence: Vec<f64>) -> Self {
        Relevance { evidence, most_evidence }
    }

    /// From natural logarithms of p-values.
    fn from_ln(p_value: impl Iterator<Item = f64>, least_p_value: impl Iterator<Item = f64>) -> Self {
        let evidence = |ln: f64| (-ln / std::f64::consts::LN_10).max(0.0);
        Relevance::new(p_value.map(evidence).collect(), least_p_value.map(evidence).collect())
    }

    /// The evidence of several p-values together, by Cauchy's combination; `None` without any.
    pub fn joined(parts: &[Relevance]) -> Option<Self> {
        let n_features = parts.first()?.evidence.len();
        let join = |of: fn(&Relevance) -> &Vec<f64>| {
            (0..n_features).map(move |feature| {
                ln_cauchy(parts.iter().map(|part| -of(part)[feature] * std::f64::consts::LN_10).collect())
            })
        };
        Some(Relevance::from_ln(join(|part| &part.evidence), join(|part| &part.most_evidence)))
    }

    /// The p-values, n_features.
    pub fn p_values(&self) -> Vec<f64> {
        self.evidence.iter().map(|evidence| 10f64.powf(-evidence)).collect()
    }

    /// The least rate of false discoveries at which each feature is relevant.
    ///
    /// ```
    /// use ferrank_ranking::relevance::{Dependence, Relevance};
    ///
    /// let evidence: Vec<f64> = [0.01f64, 0.5, 0.03, 0.02].map(|p| -p.log10()).into();
    /// let q_values = Relevance::new(evidence.clone(), evidence).q_values(Dependence::Positive);
    /// assert!(q_values.iter().zip([0.04, 0.5, 0.04, 0.04]).all(|(found, expected)| (found - expected).abs() < 1e-12));
    /// ```
    pub fn q_values(&self, dependence: Dependence) -> Vec<f64> {
        let (n, p_values) = (self.evidence.len(), self.p_values());
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let factor = n as f64 * harmonic(n, dependence);
        let (mut q_values, mut least) = (vec![1.0; n], 1.0f64);
        for (place, &feature) in order.iter().enumerate().rev() {
            least = least.min(p_values[feature] * factor / (place + 1) as f64);
            q_values[feature] = least;
        }
        q_values
    }

    /// The verdict about each feature, such that at most a share of `rate` of the relevant ones is expected to be false.
    pub fn verdicts(&self, rate: f64, dependence: Dependence) -> Vec<Verdict> {
        let q_values = self.q_values(dependence);
        let n = q_values.len();
        let n_relevant = q_values.iter().filter(|&&q| q <= rate).count();
        // What the next feature needs.
        let threshold = -(rate * (n_relevant + 1) as f64 / n as f64 / harmonic(n, dependence)).log10();
        let verdict = |(q, most): (f64, f64)| match (q <= rate, most >= threshold) {
            (true, _) => Verdict::Relevant,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::Irrelevant,
        };
        q_values.into_iter().zip(self.most_evidence.iter().copied()).map(verdict).collect()
    }
}

fn harmonic(n: usize, dependence: Dependence) -> f64 {
    match dependence {
        Dependence::Positive => 1.0,
        Dependence::Any => (1..=n).map(|i| 1.0 / i as f64).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_more_trees_may_bring_is_undecided() {
        let evidence = |p: [f64; 4]| p.map(|p| -p.log10()).to_vec();
        let relevance = Relevance::new(evidence([1e-6, 0.15, 0.15, 0.9]), evidence([1e-7, 0.04, 0.3, 0.5]));
        let verdicts = relevance.verdicts(0.1, Dependence::Positive);
        assert_eq!(
            verdicts.iter().map(|verdict| verdict.name()).collect::<Vec<_>>(),
            ["relevant", "undecided", "irrelevant", "irrelevant"]
        );
    }

    #[test]
    fn any_dependence_takes_the_harmonic_sum() {
        let evidence = vec![2.0, 0.3];
        let relevance = Relevance::new(evidence.clone(), evidence);
        let [positive, any] = [Dependence::Positive, Dependence::Any].map(|it| relevance.q_values(it)[0]);
        assert!((any / positive - 1.5).abs() < 1e-12);
    }
}
