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

/// What a ranking is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    pub(super) score: &'a ScoreRanking,
    /// Degrees of freedom of the Monte Carlo errors.
    pub(super) freedom: f64,
    pub(super) trend: Trend<'a>,
    /// True if chance gives features an importance of 0.
    pub(super) has_zero: bool,
    /// How many times the effort can be advised.
    pub(super) most_times: f64,
}

/// How importances change with the size of bags.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trend<'a> {
    /// Bags have full size.
    None,
    /// Bags would have to be larger by a factor `steps` times; with bags smaller by this factor, importances were those
    /// of `smaller`, where that is known.
    Up { steps: f64, smaller: Option<&'a ScoreRanking> },
}

/// How near a ranking is to the goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Features that are to stand clear.
    pub(super) top: usize,
    /// How many of them do.
    pub(super) clear: usize,
    /// How many times the effort would bring all of them clear if the importances stay what they are; 1 once they are,
    /// `None` where no effort would that can be advised.
    pub(super) times: Option<f64>,
    /// True if some importance is surely above 0.
    pub(super) is_above_zero: bool,
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

    /// Judges at look number `look`, from 1.
    ///
    /// The one-sided intervals of all features hold together at the confidence 1 − α / (look (look + 1)),
    /// by Bonferroni's inequality, so those of all looks do at 1 − α. They come from standard errors where these are
    /// known, otherwise from Monte Carlo errors.
    ///
    /// While bags are small, a lead that became less with larger bags is taken to become less by as much with each step
    /// to bags of full size.
    pub(super) fn judge(&self, basis: &Basis<'_>, look: u32) -> Standing {
        let Basis { score, trend, has_zero, most_times, .. } = *basis;
        let importance = &score.importance;
        let n_features = importance.len();
        let top = self.top.min(n_features.saturating_sub(1));
        let mut order: Vec<usize> = (0..n_features).collect();
        order.sort_by(|&a, &b| importance[b].total_cmp(&importance[a]));
        let (best, others) = order.split_at(top);

        let is_known = score.standard_error.iter().all(|error| !error.is_nan());
        let freedom = if is_known { score.freedom } else { basis.freedom };
        let level = (1.0 - self.confidence) / (f64::from(look) * f64::from(look + 1)) / n_features as f64;
        // More effort makes the Monte Carlo error smaller, and leaves what other rows would change.
        let half_widths = |times: f64| -> Vec<f64> {
            let width = -quantile(level, freedom * times);
            let half_width = |(standard, monte_carlo): (&f64, &f64)| {
                let (all, of_effort) = (standard * standard, monte_carlo * monte_carlo);
                let of_rows = if is_known { (all - of_effort).max(0.0) } else { 0.0 };
                width * (of_rows + of_effort / times).sqrt()
            };
            score.standard_error.iter().zip(&score.monte_carlo_error).map(half_width).collect()
        };
        let lead = |one: usize, other: usize| {
            let now = importance[one] - importance[other];
            match trend {
                Trend::None => now,
                Trend::Up { smaller: None, .. } => f64::NEG_INFINITY,
                Trend::Up { steps, smaller: Some(smaller) } => {
                    now - steps * (smaller.importance[one] - smaller.importance[other] - now).max(0.0)
                }
            }
        };
        let is_above_zero = |one: usize, widths: &[f64]| importance[one] > widths[one];
        let is_clear = |one: usize, widths: &[f64]| {
            let is_ahead = |&other: &usize| lead(one, other) > widths[one] + widths[other];
            (!has_zero || is_above_zero(one, widths)) && others.iter().all(is_ahead)
        };
        let are_clear = |times: f64| {
            let widths = half_widths(times);
            best.iter().all(|&one| is_clear(one, &widths))
        };

        let widths = half_widths(1.0);
        let clear = best.iter().filter(|&&one| is_clear(one, &widths)).count();
        let times = match clear == top {
            true => Some(1.0),
            false => (most_times > 1.0 && are_clear(most_times)).then(|| least(most_times, are_clear)),
        };
        Standing { top, clear, times, is_above_zero: (0..n_features).any(|one| is_above_zero(one, &widths)) }
    }
}

/// The least number from 1 to `most`, to a thousandth, for which `holds`, as it does for all larger ones.
fn least(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (1.0, most);
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
