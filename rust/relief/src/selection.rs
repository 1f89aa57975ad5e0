//! Contributions of a data set from a selection of its rows, where no machine holds them all.
//!
//! What a block of queries contributes depends on its queries, on the rows that count for them, and on what the profile
//! knows: scales and the shares of classes. The rows that count among all are found among those that count within each
//! part, so that parts may be searched apart ([`nearest`]), and what they find may be joined and searched again. From
//! the rows that are left, in the order that they have in the data set, [`accumulate`] makes the bits of all rows.
//!
//! Where values are ranked, the rows have in their place the ranks among all rows, from 0 to 1 ([`Beside::ranked`],
//! [`values`]). Where targets depend on those of all rows, these have to be known ([`Beside::targets`]).
//!
//! Where more than that is needed of all rows, [`obstacle`] says so.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
//! # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
//! # let batch = RecordBatch::try_from_iter(columns).unwrap();
//!
//! use ferrank_data::intake::{Unlabelled, View};
//! use ferrank_data::profile::{Place, profile};
//! use ferrank_data::schema::{Roles, Targets};
//! use ferrank_data::source::TableSource;
//! use ferrank_relief::ReliefParams;
//! use ferrank_relief::selection::{Beside, Selection, accumulate, beside, nearest, queries};
//! use ferrank_ranking::RunOptions;
//! use ferrank_runtime::monitor::Monitor;
//!
//! let all = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
//! let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
//! let view = View::new(&all, &roles, Unlabelled::Error);
//! let (problem, profile) = (view.problem()?, profile(view, 0, Place::default(), 1, &monitor)?);
//! // The first of the blocks of queries, the rows that they are, and the rows that count for them.
//! let params = ReliefParams::default().with_n_neighbors(vec![2]);
//! let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(0..1));
//! assert_eq!(beside(&problem, &params, &profile), Beside::default());
//! let queries = queries(&problem, &params, &options, &profile)?;
//! let numbers: Vec<u32> = (0..80).collect();
//! let rows = nearest(&all, &roles, &params, &options, (&numbers, &queries), &monitor)?;
//! assert!(rows.len() < 10);
//!
//! let batches = rows.iter().map(|&row| batch.slice(row as usize, 1)).collect();
//! let some = TableSource::new("some", batch.schema(), batches)?;
//! let selection = Selection { numbers: &rows, targets: None };
//! let found = accumulate(&some, &roles, &params, &options, selection, &monitor)?.ranking()?;
//! let whole = ferrank_relief::accumulate(&all, &roles, &params, &options.with_is_profiled(true), &monitor)?.ranking()?;
//! assert_eq!(found.scores[0].importance, whole.scores[0].importance);
//! # Ok::<(), ferrank_data::Error>(())
//! ```

use ferrank_data::column::numbers;
use ferrank_data::intake::{Intake, View};
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, DataShape, Identity, Ranker, RunOptions};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;
use rayon::prelude::*;

use crate::all_targets::are_needed;
use crate::limits::Limits;
use crate::neighborhoods::neighborhood;
use crate::obstacles::check_rows;
pub use crate::obstacles::obstacle;
use crate::params::ReliefParams;
use crate::prepared::{Prepared, ranked_features};
pub use crate::selected::Selection;
use crate::{accumulate_within, estimates};

/// What must be known of all rows beside a selection of them.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::{Place, profile}};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_ranking::RunOptions;
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let all = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let (problem, profile) = (view.problem()?, profile(view, 0, Place::default(), 1, &monitor)?);
/// use ferrank_relief::selection::{Beside, beside};
/// use ferrank_relief::{ReliefParams, Scaling};
///
/// let params = ReliefParams::default();
/// assert_eq!(beside(&problem, &params, &profile), Beside::default());
/// // The features x and z and the target y are ranked.
/// let Beside { targets, ranked } = beside(&problem, &params.with_scaling(Scaling::Rank), &profile);
/// assert_eq!((targets, ranked), (vec!["y".into()], vec!["x".into(), "z".into()]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// Names of the columns of targets and groups that must be known of all rows.
    pub targets: Vec<String>,
    /// Names of the features in whose place rows have ranks among all rows.
    pub ranked: Vec<String>,
}

/// What must be known of all rows of the data set of `profile` beside a selection of them.
pub fn beside(problem: &Problem, params: &ReliefParams, profile: &Profile) -> Beside {
    let targets = match are_needed(problem, params, profile) {
        true => problem.targets.iter().chain(&problem.groups).map(|column| column.name.clone()).collect(),
        false => Vec::new(),
    };
    let name = |feature: usize| problem.features[feature].name.clone();
    Beside { targets, ranked: ranked_features(profile, params).into_iter().map(name).collect() }
}

/// The values of the numeric features called `names` in the rows of `source`, which all take part; NaN where missing.
///
/// # Errors
/// A name that is not that of a numeric feature; the errors of reading.
pub fn values(view: View<'_>, names: &[String], monitor: &Monitor) -> Result<Vec<Vec<f64>>> {
    let problem = view.problem()?;
    let column = |name: &String| {
        let feature = problem.features.iter().find(|feature| feature.name == *name);
        feature.map(|feature| feature.column).ok_or_else(|| Error::Data(format!("no feature '{name}'")))
    };
    let columns = names.iter().map(column).collect::<Result<Vec<usize>>>()?;
    let intake = view.intake(&problem, monitor);
    let mut found = vec![Vec::new(); names.len()];
    intake.pass(Phase::Coding, |batch| {
        found.par_iter_mut().zip(&columns).try_for_each(|(values, &column)| {
            let mut buffer = Vec::new();
            let of_batch = numbers(batch.column(column), &mut buffer);
            values.extend_from_slice(of_batch.map_err(|error| intake.in_column(column, error))?);
            Ok(())
        })
    })?;
    Ok(found)
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
    let ends = estimates::blocks(&identity.data, params).ends();
    let all = profile.counts.kept;
    let drawn = params.draw_queries(all, params.queries(all));
    // Keys after those of blocks have no queries.
    let place = |key: u64| match key {
        0 => 0,
        _ => ends.get(key as usize - 1).or(ends.last()).map_or(0, |&end| end as usize),
    };
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
    params.validate_features(&problem.features)?;
    pool(options.threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.unlabelled, monitor).with_memory(options.memory);
        let scan = options.scan(&intake, 0)?;
        check_rows(numbers, &scan, &problem, params)?;
        let places: std::result::Result<Vec<u32>, usize> =
            queries.iter().map(|row| numbers.binary_search(row).map(|place| place as u32)).collect();
        let Ok(places) = places else { return Err(intake.changed()) };
        let rule = neighborhood(params, numbers.len());
        let query = rule.query_bytes(scan.profile.targets[0].n_categories().max(1), 0) + 20 * problem.features.len();
        let limits = Limits::within(Budget::new(options.memory), 16 * numbers.len(), 64 * query, places.len() * query)?;
        let prepared = Prepared::read(limits, intake, &scan, params, &Scratch::new(options.temp_dir), true)?;
        rule.rows(&prepared, &places)
    })
}

/// The contributions of the blocks of queries in `options.keys`, from the rows of `source`, a `selection` of the data set
/// of `options.profile`. The queries and all rows that count for them are there.
///
/// # Errors
/// As for [`accumulate`](crate::accumulate), and [`Error::Data`] for a query that is
/// not there.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    selection: Selection<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    accumulate_within(None, source, roles, params, options, Some(selection), monitor)
}
