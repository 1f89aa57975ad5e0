//! Rankings that stop early: from small bags drawn over the whole data to bags of full size and more trees, and for
//! Relief from few queries to many, until the importances of the best features are separated from all others.
//!
//! ```text
//! stage = few trees of small bags                      forest, relief
//! repeat
//!     rank by the rows that the stage draws            sample
//!     are the best features separated?                 goal
//!     stage = larger bags, or more trees of full size
//! ```
//!
//! The question is what a forest with bags of full size would say. Trees on few rows do not find what trees on many rows
//! find, such as interactions, so that errors alone cannot tell. Bags of small size settle a ranking only if the lead
//! of the best features over the others remains when the trend from the bags a quarter as large is continued, linear
//! in the logarithm of the size, to bags of full size; so two sizes are needed at least. Where 32 such bags would hold
//! as many rows as the data have, bags have full size from the start.
//!
//! A stage of small bags draws its rows by a hash of their number, so the rows of a larger stage contain those of a
//! smaller one. The T trees of a stage with bags of b rows share M = T b rows, so that their mean has 1 + T b / M times
//! the variance over trees alone. The standard errors of bags of full size are those of the ranker.
//!
//! The best features settle as being better than chance only. If chance gives an importance of 0, each of them has to
//! be above it; under other scores the forest has to predict better than a constant.
//!
//! Each stage costs more than all before it, and those before the last one at most half of it, so frequent checks cost
//! little. The probability of a false decision is shared out over the checks.

mod forest;
mod goal;
mod growth;
mod relief;
#[cfg(test)]
mod tests;

pub use goal::Goal;
pub use growth::{Reason, Stop};

use ferrank_data::schema::Roles;
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Ranking, RunOptions};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::Monitor;

use crate::settings::Settings;
use growth::{Case, grow};

/// Ranks as [`run::rank`](crate::run::rank) does, with as many trees and rows, or queries, as `goal` needs.
///
/// `n_estimators` and `max_samples`, or `n_iterations`, are the limits.
///
/// # Errors
/// The errors of `run::rank`, and [`Error::Setting`] for a forest without a bootstrap, where all trees would see the same rows, or if `options` ask for a part of a run.
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
        Settings::Association(_) => Err(Error::Setting(
            "until: tests of association always take all rows, once; leave until=\"stable\" out".into(),
        )),
        Settings::Univariate(_) => Err(Error::Setting(
            "until: univariate scores have no trees or queries to stop at; leave until=\"stable\" out".into(),
        )),
    }
}
