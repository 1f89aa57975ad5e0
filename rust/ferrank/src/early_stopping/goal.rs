//! When the best features stand clear of all others.

use ferrank_ranking::{ScoreRanking, quantile};
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::with_methods;
use serde::Deserialize;

/// When a ranking is good enough: the `top` features with the greatest importances are those, at this
/// confidence.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::early_stopping::{Goal, rank};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let settings = Settings::from(ForestParams::default());
/// let goal = Goal::default().with_top(1).with_confidence(0.9);
/// let (_, stop) = rank(&table, &roles, &settings, &goal, &RunOptions::default(), &Monitor::default())?;
/// assert_eq!((stop.top, stop.confidence), (1, 0.9));
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Goal {
    /// Number of features that are to stand clear of the others; all but one of them at most count.
    #[serde(rename = "stable_top")]
    pub top: usize,
    /// Probability, in (0, 1), that none is among them by chance.
    pub confidence: f64,
}

/// How near a ranking is to the goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    /// Features that are to stand clear.
    pub(super) top: usize,
    /// How many of them do.
    pub(super) clear: usize,
    /// How many times the effort would bring all of them clear if the importances stay what they are; at
    /// most 1 once they are, infinite where some are equal or have no standard error.
    pub(super) factor: f64,
}

impl Default for Goal {
    fn default() -> Self {
        Goal { top: 10, confidence: 0.95 }
    }
}

impl Goal {
    with_methods! {
        with_top => top: usize;
        with_confidence => confidence: f64;
    }

    pub(super) fn validate(&self) -> Result<()> {
        check(self.top >= 1, "stable_top: 0; use at least 1")?;
        let sound = self.confidence > 0.0 && self.confidence < 1.0;
        check(sound, format!("confidence: {} is not between 0 and 1", self.confidence))
    }

    /// Judges the importances of `score` at look number `look`, from 1.
    ///
    /// The one-sided intervals of all features hold together at the confidence 1 − α / (look (look + 1)),
    /// by Bonferroni's inequality, so those of all looks do at 1 − α.
    pub(super) fn judge(&self, score: &ScoreRanking, look: u32, freedom: f64) -> Verdict {
        let n_features = score.importance.len();
        let top = self.top.min(n_features.saturating_sub(1));
        let mut order: Vec<usize> = (0..n_features).collect();
        order.sort_by(|&a, &b| score.importance[b].total_cmp(&score.importance[a]));
        let (best, others) = order.split_at(top);
        let error = (1.0 - self.confidence) / (f64::from(look) * f64::from(look + 1)) / n_features as f64;
        let width = -quantile(error, freedom);
        let factor = |&one: &usize| {
            let of_pair = |&other: &usize| {
                let gap = score.importance[one] - score.importance[other];
                let factor = (width * (score.monte_carlo_error[one] + score.monte_carlo_error[other]) / gap).powi(2);
                if gap > 0.0 && !factor.is_nan() { factor } else { f64::INFINITY }
            };
            others.iter().map(of_pair).fold(0.0, f64::max)
        };
        let factors: Vec<f64> = best.iter().map(factor).collect();
        Verdict {
            top,
            clear: factors.iter().filter(|factor| **factor <= 1.0).count(),
            factor: factors.into_iter().fold(0.0, f64::max),
        }
    }
}
