//! The stages of a run with early stopping, for any ranker that can be extended.

use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Ranking, RunOptions};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

use super::goal::Goal;

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
    /// [`Monitor::finish`] was called.
    Requested,
}

impl Reason {
    /// The reason's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Settled => "settled",
            Reason::Exhausted => "exhausted",
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
    /// Trees of such bags, or queries, that would be enough if the importances stay the same; `None` if some of the
    /// importances to be separated are equal.
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
    /// The stage with about `factor` times the trees or queries; `None` after the last.
    fn next(&self, stage: Self::Stage, factor: f64) -> Option<Self::Stage>;
    /// The ranking of a stage.
    fn rank(&self, stage: Self::Stage) -> Result<Ranking>;
    /// Degrees of freedom of the stage's standard errors.
    fn freedom(&self, stage: Self::Stage) -> f64;
    /// Trees or queries of a stage, rows of a bag, and rows of the source.
    fn extent(&self, stage: Self::Stage) -> (u64, Option<u64>, u64);
}

/// Runs stage after stage until `goal` is reached, the last stage is done, or the user requests the end of the run.
pub(super) fn grow<G: Growth>(growth: &G, goal: &Goal, monitor: &Monitor) -> Result<(Ranking, Stop)> {
    let mut stage = growth.first();
    let mut best: Option<(Ranking, Stop)> = None;
    for look in 1.. {
        let ranking = match (growth.rank(stage), best.take()) {
            (Ok(ranking), _) => ranking,
            (Err(Error::Interrupted), Some((ranking, stop))) if monitor.is_finishing() => {
                return Ok((ranking, Stop { reason: Reason::Requested, ..stop }));
            }
            (Err(error), _) => return Err(error),
        };
        let verdict = goal.judge(&ranking.scores[0], look, growth.freedom(stage));
        let (effort, bag, of) = growth.extent(stage);
        let needed = verdict.factor.is_finite().then(|| (effort as f64 * verdict.factor).ceil() as u64);
        let (confidence, top, clear, sampled) = (goal.confidence, verdict.top, verdict.clear, ranking.n_rows);
        let stop = Stop { reason: Reason::Settled, confidence, top, clear, effort, bag, sampled, of, needed };
        if verdict.factor <= 1.0 {
            return Ok((ranking, stop));
        }
        if monitor.is_finishing() {
            return Ok((ranking, Stop { reason: Reason::Requested, ..stop }));
        }
        match growth.next(stage, verdict.factor) {
            None => return Ok((ranking, Stop { reason: Reason::Exhausted, ..stop })),
            Some(next) => stage = next,
        }
        monitor.may_finish();
        best = Some((ranking, stop));
    }
    unreachable!("stages end")
}
