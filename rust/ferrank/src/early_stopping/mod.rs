//! Rankings that grow no further than they must: from small bags drawn over the whole data to more trees and
//! larger bags, and for Relief from few queries to many, until the importances of the best features stand
//! clear of all others.
//!
//! ```text
//! stage = few trees of small bags                      forest, relief
//! repeat
//!     rank by the rows that the stage draws            sample
//!     are the best features clear of the others?       goal
//!     stage = more trees where enough are allowed, else larger bags
//! ```
//!
//! A stage draws its rows by a hash of their number, so those of a larger stage contain those of a smaller
//! one. The trees of a stage share its rows; their standard errors are widened by what that hides: with a
//! bag of b out of M sampled rows of N, the mean over T trees has a variance of 1 + (1 − M/N) T b / M times
//! that over trees alone. A stage samples M = T b rows, or all.
//!
//! Each stage costs at least about as much as all before it, so looking often costs little; the error that
//! a look may make is shared out over the looks.

mod forest;
mod goal;
mod relief;
mod sample;
#[cfg(test)]
mod tests;

pub use goal::Goal;

use crate::settings::Settings;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::Ranking;
use ferrank_ranking::RunOptions;
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::Monitor;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The best features stand clear of the others.
    Settled,
    /// All trees with bags of full size, or all queries, were not enough.
    Exhausted,
    /// [`Monitor::finish`] was called.
    Asked,
}

impl Reason {
    /// The reason's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Settled => "settled",
            Reason::Exhausted => "exhausted",
            Reason::Asked => "asked",
        }
    }
}

/// How far a run went, and what it would take to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Why it ended.
    pub reason: Reason,
    /// At which confidence it was judged.
    pub confidence: f64,
    /// Best features that were to stand clear of the others.
    pub top: usize,
    /// How many of them do.
    pub clear: usize,
    /// Trees of each ensemble, or queries.
    pub effort: u64,
    /// Rows of a tree's bag; `None` for Relief.
    pub bag: Option<u64>,
    /// Rows that were drawn from, of those that take part; for Relief all.
    pub sampled: u64,
    /// Rows of the source.
    pub of: u64,
    /// Trees of such bags, or queries, that would do if the importances stay what they are; `None` if some
    /// of those to be told apart are equal.
    pub needed: Option<u64>,
}

/// Ranks as [`run::rank`](ferrank_ranking::run::rank) does, with no more trees and rows, or queries, than `goal` needs.
///
/// `n_estimators` and `max_samples`, or `n_iterations`, are the most that it takes.
///
/// # Errors
/// Those of `run::rank`, and [`Error::Setting`] for a forest without a bootstrap, where all trees would see the
/// same rows, or if `options` ask for a part of a run.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    settings: &Settings,
    goal: &Goal,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<(Ranking, Stop)> {
    goal.validate()?;
    let whole = options.resume.is_none() && options.keys.is_none() && options.profile.is_none();
    check(whole, "until: how far the run goes is not known before, so it is not one that goes on or has parts")?;
    match settings {
        Settings::Forest(params) => {
            grow(&forest::Growth::new(Case { source, roles, params, options, monitor })?, goal, monitor)
        }
        Settings::Relief(params) => {
            grow(&relief::Growth::new(Case { source, roles, params, options, monitor })?, goal, monitor)
        }
    }
}

/// What is to be ranked, by a ranker with the settings `P`, and how.
struct Case<'a, P> {
    source: &'a dyn ChunkSource,
    roles: &'a Roles,
    params: &'a P,
    options: &'a RunOptions<'a>,
    monitor: &'a Monitor,
}

impl<P> Case<'_, P> {
    /// What is wrong with the roles is said before a row is read.
    fn problem(&self) -> Result<Problem> {
        Problem::resolve(&self.source.schema(), self.roles, self.source.name())
    }
}

/// A way to rank that can be given more to do.
trait Growth {
    type Stage: Copy;

    fn first(&self) -> Self::Stage;
    /// The stage that takes `factor` times the trees or queries, or what is next to it; `None` after the last.
    fn next(&self, stage: Self::Stage, factor: f64) -> Option<Self::Stage>;
    fn rank(&self, stage: Self::Stage) -> Result<Ranking>;
    /// Degrees of freedom of the stage's standard errors.
    fn freedom(&self, stage: Self::Stage) -> f64;
    /// How far the stage goes: effort, bag, rows in all.
    fn extent(&self, stage: Self::Stage) -> (u64, Option<u64>, u64);
}

fn grow<G: Growth>(growth: &G, goal: &Goal, monitor: &Monitor) -> Result<(Ranking, Stop)> {
    let mut stage = growth.first();
    let mut best: Option<(Ranking, Stop)> = None;
    for look in 1.. {
        let ranking = match (growth.rank(stage), best.take()) {
            (Ok(ranking), _) => ranking,
            (Err(Error::Interrupted), Some((ranking, stop))) if monitor.is_finishing() => {
                return Ok((ranking, Stop { reason: Reason::Asked, ..stop }));
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
            return Ok((ranking, Stop { reason: Reason::Asked, ..stop }));
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
