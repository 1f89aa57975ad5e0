//! Contributions of a data set from a selection of its rows, where no machine holds them all.
//!
//! What a block of queries contributes depends on its queries, on the rows that count for them, and on what the profile
//! knows: scales and the shares of classes. The rows that count among all are found among those that count within each
//! part, so that parts may be searched apart ([`nearest`]), and what they find may be joined and searched again. From
//! the rows that are left, in the order that they have in the data set, [`accumulate`] makes the bits of all rows.
//!
//! Where more than that is needed of all rows, [`obstacle`] says so.

use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::{Problem, Roles, Task};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, DataShape, Identity, RunOptions, ScanSummary};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;

use crate::limits::Limits;
use crate::neighborhoods::neighborhood;
use crate::params::{Missing, ReliefParams, ReliefScore, Scaling};
use crate::prepared::Prepared;
use crate::queries::draw;
use crate::{accumulate_within, estimates};

/// Why a data set of this `profile` cannot be ranked from selections; `None` if it can.
pub fn obstacle(problem: &Problem, params: &ReliefParams, profile: &Profile) -> Option<&'static str> {
    let lacks = |columns: &[ColumnProfile]| columns.iter().any(|column| column.missing() > 0);
    if params.scores.contains(&ReliefScore::Myopic) {
        Some("scores: myopic compares all rows at once")
    } else if params.target_draws > 0 {
        Some("target_draws: each row has the targets of another one")
    } else if params.scaling == Scaling::Rank {
        Some("scaling: ranks are those among all rows")
    } else if matches!(problem.task, Task::MultiLabel | Task::Hierarchical) {
        Some("labels: the share of each depends on all rows")
    } else if params.unlabelled == Unlabelled::Use && profile.counts.unlabelled > 0 {
        Some("unlabelled: the influence of a row without a target depends on all that have one")
    } else if problem.task != Task::Classification && lacks(&profile.targets) {
        Some("target: the difference of a missing value is that expected among all rows")
    } else if params.missing == Missing::Expected && lacks(&profile.features) {
        Some("missing: the difference of a missing value is that expected among all rows; \"informative\" needs none")
    } else {
        None
    }
}

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

/// Checks that a selection has these `numbers`, and that it will do.
pub(crate) fn check_rows(
    numbers: &[u32],
    scan: &ScanSummary<'_>,
    problem: &Problem,
    params: &ReliefParams,
) -> Result<()> {
    if let Some(obstacle) = obstacle(problem, params, &scan.profile) {
        return check(false, format!("{obstacle}; rank all rows together"));
    }
    let (rows, all) = (scan.rows, scan.profile.counts.kept);
    let fit = numbers.len() as u64 == rows
        && numbers.is_sorted_by(|a, b| a < b)
        && numbers.last().is_none_or(|&last| u64::from(last) < all);
    check(fit, format!("numbers: give one for each of {rows} rows, ascending and below {all}"))
}

/// The share of the rows that are of each class.
pub(crate) fn priors(profile: &Profile) -> Vec<f64> {
    let ColumnProfile::Nominal(classes) = &profile.targets[0] else { return Vec::new() };
    classes.counts.values().map(|&count| count as f64 / profile.counts.kept as f64).collect()
}
