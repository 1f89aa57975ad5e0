//! Rankings that stop early: from small bags drawn over the whole data to more trees and larger bags, and for Relief
//! from few queries to many, until the importances of the best features are separated from all others.
//!
//! ```text
//! stage = few trees of small bags                      forest, relief
//! repeat
//!     rank by the rows that the stage draws            sample
//!     are the best features separated?                 goal
//!     stage = more trees where enough are allowed, else larger bags
//! ```
//!
//! A stage draws its rows by a hash of their number, so the rows of a larger stage contain those of a smaller one.
//! The trees of a stage share its rows; their standard errors are widened accordingly: with a bag of b out of M
//! sampled rows of N, the mean over T trees has 1 + (1 − M/N) T b / M times the variance over trees alone. A stage
//! samples M = T b rows, or all.
//!
//! Each stage costs at least about as much as all before it, so frequent checks cost little. The probability of a
//! false decision is shared out over the checks.

mod forest;
mod goal;
mod growth;
mod relief;
mod sample;
#[cfg(test)]
mod tests;

pub use goal::Goal;
pub use growth::{Reason, Stop};

use ferrank_data::schema::Roles;
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Ranking, RunOptions};
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;

use crate::settings::Settings;
use growth::{Case, grow};

/// Ranks as [`run::rank`](crate::run::rank) does, with as many trees and rows, or queries, as `goal` needs.
///
/// `n_estimators` and `max_samples`, or `n_iterations`, are the limits.
///
/// # Errors
/// The errors of `run::rank`, and [`Error::Setting`](crate::Error::Setting) for a forest without a bootstrap, where all trees would see the
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
    check(
        roles.groups.is_none(),
        "groups: until=\"stable\" samples single rows; leave one of the two out, and choose a number of trees or queries",
    )?;
    match settings {
        Settings::Forest(params) => {
            check(
                !params.shadows,
                "shadows: p-values need a given number of trees; leave until=\"stable\" out, or leave shadows out",
            )?;
            grow(&forest::ForestGrowth::new(Case { source, roles, params, options, monitor })?, goal, monitor)
        }
        Settings::Relief(params) => {
            check(
                params.target_draws == 0,
                "target_draws: p-values need a given number of queries; leave until=\"stable\" out, or leave target_draws out",
            )?;
            grow(&relief::ReliefGrowth::new(Case { source, roles, params, options, monitor })?, goal, monitor)
        }
    }
}
