//! Rankings and their contributions, by any ranker.

use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, DataShape, Ranking, RunData, RunOptions};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

use crate::settings::{Settings, parse_ranker};

/// Computes the contributions to the importances of the features of `source` that `options` ask for.
///
/// # Errors
/// What is wrong with a setting, a column, a value or a file;
/// [`Error::Interrupted`](crate::Error::Interrupted) when `monitor` requests a stop.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    settings: &Settings,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    settings.accumulate(source, roles, options, monitor)
}

/// Ranks the features of `source`.
///
/// # Errors
/// The errors of [`accumulate`].
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    settings: &Settings,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, settings, options, monitor)?.ranking()
}

/// Reads an accumulator that [`Accumulator::to_ipc`] wrote; messages call the bytes `name`.
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if the bytes are something else, damaged, or cut off.
pub fn read_accumulator(bytes: Vec<u8>, name: &str) -> Result<Accumulator> {
    Accumulator::from_ipc(bytes, name, &parse_ranker)
}

/// Number of contributions of a complete run over the data set of `profile`, whose columns are those of `source`.
///
/// # Errors
/// What is wrong with a role or a setting, also in view of the number of rows.
pub fn n_keys(source: &dyn ChunkSource, roles: &Roles, settings: &Settings, profile: &Profile) -> Result<u64> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    let ranker = settings.ranker();
    let rows = profile.counts.taking_part(source.name(), ranker.unlabelled())?;
    ranker.validate(&DataShape::new(&problem).with_rows(rows))?;
    ranker.validate_features(&problem.features)?;
    Ok(ranker.n_keys(&RunData::new(&problem, profile)))
}
