//! The stages of a run with early stopping, for any ranker that can be extended.

use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{ModelError, Ranking, RunOptions};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

use super::goal::{Basis, Goal, Trend};

/// Why a run with early stopping ended.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::early_stopping::{Goal, Reason, rank};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let settings = Settings::from(ReliefParams::default().with_n_neighbors(vec![5]));
/// let goal = Goal::default().with_top(1);
/// let (_, stop) = rank(&table, &roles, &settings, &goal, &RunOptions::default(), &Monitor::default())?;
/// assert_eq!(stop.reason, Reason::Settled);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The best features are separated from all others.
    Settled,
    /// All trees with bags of full size, or all queries, were not enough.
    Exhausted,
    /// The same, and no feature is better than chance: the forest predicts no better than a constant, and no importance
    /// is above 0, if that is what chance gives.
    Chance,
    /// [`Monitor::finish`] was called.
    Requested,
}

impl Reason {
    /// The reason's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Settled => "settled",
            Reason::Exhausted => "exhausted",
            Reason::Chance => "chance",
            Reason::Requested => "asked",
        }
    }
}

/// How far a run went, and how much more it would need.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::early_stopping::{Goal, Stop, rank};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let settings = Settings::from(ReliefParams::default().with_n_neighbors(vec![5]));
/// let (options, monitor) = (RunOptions::default(), Monitor::default());
/// let (_, stop) = rank(&table, &roles, &settings, &Goal::default().with_top(1), &options, &monitor)?;
/// let Stop { effort, of, .. } = stop;
/// assert!(effort <= of && of == 60, "{effort} queries of {of}");
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stop {
    /// Why it ended.
    pub reason: Reason,
    /// The confidence at which the ranking was judged.
    pub confidence: f64,
    /// Number of best features that had to be separated from all others.
    pub top: usize,
    /// How many of them are.
    pub clear: usize,
    /// Trees of each ensemble, or queries.
    pub effort: u64,
    /// Rows of a tree's bag; `None` for Relief.
    pub bag: Option<u64>,
    /// Rows that bags were drawn from; for Relief all rows that take part.
    pub sampled: u64,
    /// Rows of the source.
    pub of: u64,
    /// Trees, or queries, that would be enough if the importances stay the same; `None` if hardly any number would, or
    /// bags were still small.
    pub needed: Option<u64>,
}

/// The data, the settings `P` of a ranker, and how the run is carried out.
pub(super) struct Case<'a, P> {
    pub(super) source: &'a dyn ChunkSource,
    pub(super) roles: &'a Roles,
    pub(super) params: &'a P,
    pub(super) options: &'a RunOptions<'a>,
    pub(super) monitor: &'a Monitor,
}

impl<P> Case<'_, P> {
    /// Resolves the roles, so that errors in them are reported before a row is read.
    pub(super) fn problem(&self) -> Result<Problem> {
        Problem::resolve(&self.source.schema(), self.roles, self.source.name())
    }
}

/// A ranking that can be extended in stages.
pub(super) trait Growth {
    type Stage: Copy;

    /// The first stage.
    fn first(&self) -> Self::Stage;
    /// The stage with about `times` as many trees or queries, all of them if that is unknown; `None` after the last.
    fn next(&self, stage: Self::Stage, times: Option<f64>) -> Option<Self::Stage>;
    /// The ranking of a stage.
    fn rank(&self, stage: Self::Stage) -> Result<Ranking>;
    /// How many times bags would have to be [`LARGER`](super::forest::LARGER) to have full size.
    fn steps(&self, stage: Self::Stage) -> f64;
    /// Returns true if chance gives features an importance of 0.
    fn has_zero(&self) -> bool;
    /// The largest number of trees or queries that can be advised.
    fn most_advised(&self, stage: Self::Stage) -> u64;
    /// Degrees of freedom of the stage's Monte Carlo errors.
    fn freedom(&self, stage: Self::Stage) -> f64;
    /// Trees or queries of a stage, rows of a bag, and rows of the source.
    fn extent(&self, stage: Self::Stage) -> (u64, Option<u64>, u64);
}

/// Runs stage after stage until `goal` is reached, the last stage is done, or the user requests the end of the run.
pub(super) fn grow<G: Growth>(growth: &G, goal: &Goal, monitor: &Monitor) -> Result<(Ranking, Stop)> {
    let mut stage = growth.first();
    let mut best: Option<(Ranking, Stop)> = None;
    for look in 1.. {
        let (ranking, before) = match (growth.rank(stage), best.take()) {
            (Ok(ranking), before) => (ranking, before),
            (Err(Error::Interrupted), Some((ranking, stop))) if monitor.is_finishing() => {
                return Ok((ranking, Stop { reason: Reason::Requested, ..stop }));
            }
            (Err(error), _) => return Err(error),
        };
        let (effort, bag, of) = growth.extent(stage);
        let steps = growth.steps(stage);
        let smaller = before.as_ref().map(|(ranking, _)| &ranking.scores[0]);
        let basis = Basis {
            score: &ranking.scores[0],
            freedom: growth.freedom(stage),
            trend: if steps > 0.0 { Trend::Up { steps, smaller } } else { Trend::None },
            has_zero: growth.has_zero(),
            most_times: growth.most_advised(stage) as f64 / effort as f64,
        };
        let standing = goal.judge(&basis, look);
        let errors = ranking.model_error.as_ref().ok();
        let predicts = errors.map(|errors| ModelError::any_is_better(errors, 1.0 - goal.confidence));
        let needed = standing.times.filter(|_| steps == 0.0).map(|times| (effort as f64 * times).ceil() as u64);
        let (confidence, top, clear, sampled) = (goal.confidence, standing.top, standing.clear, ranking.n_rows);
        let stop = Stop { reason: Reason::Settled, confidence, top, clear, effort, bag, sampled, of, needed };
        // Importances above 0 are evidence of their own. Others can differ by chance alone, as those of noise with few
        // and many values do, so that there the model must predict something.
        if clear == top && (top == 0 || basis.has_zero || predicts != Some(false)) {
            return Ok((ranking, stop));
        }
        if monitor.is_finishing() {
            return Ok((ranking, Stop { reason: Reason::Requested, ..stop }));
        }
        match growth.next(stage, standing.times) {
            None => {
                let by_chance = match (predicts, basis.has_zero) {
                    (Some(true), _) | (None, false) => false,
                    (Some(false), false) => true,
                    (_, true) => !standing.is_above_zero,
                };
                let stop = match by_chance {
                    true => Stop { reason: Reason::Chance, needed: None, ..stop },
                    false => Stop { reason: Reason::Exhausted, ..stop },
                };
                return Ok((ranking, stop));
            }
            Some(next) => stage = next,
        }
        monitor.may_finish();
        best = Some((ranking, stop));
    }
    unreachable!("stages end")
}
