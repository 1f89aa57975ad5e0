//! Contributions of a data set from a selection of its rows, where no machine holds them all.
//!
//! What a block of queries contributes depends on its queries, on the rows that count for them, and on what the profile
//! knows: scales and the shares of classes. The rows that count among all are found among those that count within each
//! part, so that parts may be searched apart ([`nearest`]), and what they find may be joined and searched again. From
//! the rows that are left, in the order that they have in the data set, [`accumulate`] makes the bits of all rows.
//!
//! Where more than that is needed of all rows, [`obstacle`] says so.

use ferrank_data::intake::Intake;
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, DataShape, Identity, RunOptions};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;

use crate::limits::Limits;
use crate::neighborhoods::neighborhood;
use crate::obstacles::check_rows;
pub use crate::obstacles::obstacle;
use crate::params::ReliefParams;
use crate::prepared::Prepared;
use crate::queries::draw;
use crate::{accumulate_within, estimates};

/// The rows, by their numbers in the data set of `profile`, that are queries of the blocks in `options.keys`, ascending.
///
/// # Errors
/// Invalid keys.
pub fn queries(
    problem: &Problem,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    profile: &Profile,
) -> Result<Vec<u32>> {
    let identity = Identity::new(params.clone(), problem, profile);
    let blocks = options.keys(identity.n_keys())?;
    let n_blocks = estimates::n_blocks(&identity.data, params);
    let all = profile.counts.kept;
    let drawn = draw(params.seed, all as usize, params.queries(all) as usize);
    let place = |block: u64| (block * drawn.len() as u64 / n_blocks) as usize;
    let mut queries = drawn[place(blocks.start)..place(blocks.end)].to_vec();
    queries.sort_unstable();
    Ok(queries)
}

/// The places of `queries` and of the rows that count for them, among the rows of `source` which have these `numbers`.
/// All ascend.
///
/// # Errors
/// As for [`accumulate`].
pub fn nearest(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    (numbers, queries): (&[u32], &[u32]),
    monitor: &Monitor,
) -> Result<Vec<u32>> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    pool(options.threads)?.install(|| {
        let intake = Intake { source, problem: &problem, unlabelled: params.unlabelled, monitor };
        let scan = options.scan(&intake, 0)?;
        check_rows(numbers, &scan, &problem, params)?;
        let places: std::result::Result<Vec<u32>, usize> =
            queries.iter().map(|row| numbers.binary_search(row).map(|place| place as u32)).collect();
        let Ok(places) = places else { return Err(intake.changed()) };
        let rule = neighborhood(params, numbers.len());
        let query = rule.query_bytes(scan.profile.targets[0].n_categories().max(1), 0) + 20 * problem.features.len();
        let limits = Limits::within(Budget::new(options.memory), 16 * numbers.len(), 64 * query)?;
        let prepared = Prepared::read(limits, intake, &scan, params, &Scratch::new(options.temp_dir))?;
        rule.rows(&prepared, &places)
    })
}

/// The contributions of the blocks of queries in `options.keys`, from the rows of `source`, which have these `numbers` in
/// the data set of `options.profile`. They ascend, and the queries and all rows that count for them are there.
///
/// # Errors
/// As for [`accumulate`](crate::accumulate), and [`Error::Data`](ferrank_runtime::error::Error::Data) for a query that is
/// not there.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    numbers: &[u32],
    monitor: &Monitor,
) -> Result<Accumulator> {
    accumulate_within(None, source, roles, params, options, Some(numbers), monitor)
}
