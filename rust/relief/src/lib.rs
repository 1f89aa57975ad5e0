//! The Relief ranker: ReliefF for classes, RReliefF for numbers, several targets and label sets
//! (Robnik-Šikonja and Kononenko 1999 figures 3 and 4, Petković et al. 2020a §2.2, Petković et al. 2023 §5.1).
//!
//! ```text
//! draw queries                                        queries
//! a rule of neighborhood, for blocks of queries:      neighborhoods
//!     search the rows that count
//!     weights of the pairs, from ranks and targets    plan, targets, influence
//!     weighted sums of differences                    sums
//! importances = ratios of sums over blocks            estimates
//! ```
//!
//! | term | in the papers | here |
//! |---|---|---|
//! | query | the randomly selected instance R | [`Iterations`] of them, drawn without replacement |
//! | hit, miss | nearest neighbor of the same, of another class | lists by class |
//! | k, σ | number of neighbors, width of the rank weights | [`ReliefParams::n_neighbors`], [`ReliefParams::sigma`] |
//! | diff | difference of two rows in a feature | `ferrank_neighbors::space` |
//! | d_Y | distance of the targets | [`TargetDistance`], `targets` |
//!
//! Rows are numbers of a distance space. Few rows are held in memory; many are read anew for each pass, and then only
//! the queries are held. Sparse rows are held without their usual values.
//!
//! Decisions where the papers are silent or contradict themselves:
//!
//! - Missing values differ by the expected difference, for numeric features too. With [`Missing::Informative`] missing is a
//!   value of its own in features, not in targets; a feature with one known value and missing ones is not constant then.
//! - Distances are means over features, summed in f64 in the order of features and rounded to 12 decimals; of equally
//!   near rows the one with the lower number is nearer.
//! - With [`DistanceFeatures`], rows are near by some features, or by all with weights: Σ w · difference / Σ w. The
//!   importances are still those of all features. Where the distance of the features stands for that of the targets, it is
//!   the weighted one.
//! - With [`Scaling::Rank`], mid-ranks replace the numbers of features and targets. They are those of all rows that are
//!   ranked together, and missing values have none.
//! - A class with fewer than k rows counts with the rows it has.
//! - Two empty label sets are at distance 0.
//! - With covariates, classes are ranked by RReliefF with the distance 0 or 1, as with targets drawn anew.
//! - If some features are categories, weights of pairs with the nearest rows are rounded to multiples of a power of 2,
//!   about 2⁻⁵² of their sum, so that sums of differences of categories are exact.
//! - The rank weight is exp(−(rank/σ)²); Petković et al. 2020a write 1/σ for σ.
//! - For each target on its own, the distance of a nominal target is 0 or 1, and the neighbors are those of all targets
//!   together (Petković et al. 2020a §2.3).
//!
//! Rows can have weights w: a query counts w times, and a neighbor has the share w κ / Σ w κ in its list, where κ is its
//! rank weight. Priors, distributions of missing values, ranks, mean distances and m are sums of weights in the place of
//! counts. That is what w copies of a row give which are no neighbors of each other, but that k and ranks count rows,
//! however heavy: a search for a sum of weights would have no bound on the length of a list.
//!
//! Rows without a target can take part (`influence`). A class is then a target like any other: its distance is 0 or 1,
//! and neighbors are the nearest rows of any class (Petković et al. 2023 §5.2). If every row has a target, the ranking is
//! the supervised one.
//!
//! Memory: 13 bytes a value for rows in memory, 17 where values have no byte codes, and one byte for each pair of rows
//! where rows are few and wide; for other tables one tile of rows, and the queries of a group. Ranks need 24 bytes a row
//! for a column at a time, and a temporary file of 8 bytes a value where the rows are not held.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{Float64Array, RecordBatch};
//! use ferrank_data::schema::{Roles, Targets};
//! use ferrank_data::source::TableSource;
//! use ferrank_relief::{ReliefParams, rank};
//! use ferrank_runtime::monitor::Monitor;
//!
//! let column = |f: fn(u32) -> u32| Arc::new((0..60).map(|i| f64::from(f(i))).collect::<Float64Array>());
//! let batch = RecordBatch::try_from_iter([
//!     ("signal", column(|i| i) as _),
//!     ("noise", column(|i| i * 37 % 60) as _),
//!     ("y", column(|i| 2 * i) as _),
//! ])?;
//! let source = TableSource::new("example", batch.schema(), vec![batch])?;
//! let roles = Roles::new(Targets::Named(vec!["y".into()]));
//! let ranking = rank(&source, &roles, &ReliefParams::default(), 1, &Monitor::default())?;
//! assert!(ranking.scores[0].importance[0] > ranking.scores[0].importance[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adjusted;
mod all_targets;
mod covariates;
mod distance_features;
mod draws;
mod estimates;
mod influence;
mod limits;
mod myopic;
pub mod near_pairs;
mod neighborhoods;
mod obstacles;
mod outline;
mod params;
mod plan;
mod prepared;
mod queries;
mod ranker;
mod selected;
pub mod selection;
mod sums;
mod targets;
#[cfg(test)]
mod tests;

pub use distance_features::{DistanceFeatures, FeatureRef};
pub use params::*;

use std::sync::Arc;

use all_targets::{AllTargets, are_needed};
use draws::Draws;
use ferrank_data::intake::{Intake, numbered};
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::{Problem, Roles, Task};
use ferrank_data::source::{ChunkSource, SampledSource, count_rows};
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::rows::rows_per_tile;
use ferrank_neighbors::spilled::COLUMN_BYTES;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity, Ranker, Ranking, RunOptions, ScanSummary, Vector};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;
use limits::Limits;
use neighborhoods::neighborhood;
use outline::Outline;
use plan::{Distances, Kind, Plan};
use prepared::Prepared;
use queries::Queries;
use selected::Selection;
use targets::Targets;
use tracing::info;

/// Ranks the features of `source` by Relief, on a pool of `threads` threads.
///
/// The same arguments give the same bits for any number of threads, any chunking of the rows and any container.
///
/// # Errors
/// An invalid setting, column or value;
/// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted) when `monitor` requests a stop.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, params, &RunOptions::default().with_threads(threads), monitor)?.ranking()
}

/// Computes the contributions of the blocks of queries in `options.keys`, each under its number, and of `myopic` under
/// the next key.
///
/// # Errors
/// As for [`rank`], and invalid `options`.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let draws = params.max_samples != Iterations::All;
    check(
        !draws || (options.keys.is_none() && (options.profile.is_none() || options.is_profiled)),
        "max_samples: draws among all rows, and these are a part of them; rank all rows together, or leave it out",
    )?;
    let Some(sample) = sample(source, params, monitor)? else {
        return accumulate_within(None, source, roles, params, options, None, monitor);
    };
    let sample = sample.hold(options.memory, monitor)?;
    // A profile would be of all rows.
    let options = options.clone().with_profile(None);
    accumulate_within(None, &*sample, roles, params, &options, None, monitor)
}

/// The rows of `source` that [`max_samples`](ReliefParams::max_samples) draws, if these are not all. Whoever ranks them
/// several times holds them and leaves the setting out, so that `source` is read once.
///
/// # Errors
/// An invalid `max_samples`, and the errors of reading where rows have to be counted.
pub fn sample<'a>(
    source: &'a dyn ChunkSource,
    params: &ReliefParams,
    monitor: &Monitor,
) -> Result<Option<SampledSource<'a>>> {
    if params.max_samples == Iterations::All {
        return Ok(None);
    }
    params.max_samples.validate("max_samples")?;
    let all = count_rows(source, monitor)?;
    let rows = params.max_samples.of(all);
    if rows == all {
        return Ok(None);
    }
    info!("max_samples: {rows} of {all} rows take part");
    Ok(Some(SampledSource::new(source, params.seed, rows, all)))
}

fn accumulate_within(
    limits: Option<Limits>,
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    selection: Option<Selection<'_>>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    params.validate_features(&problem.features)?;
    pool(options.threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.unlabelled, monitor).with_memory(options.memory);
        let scan = options.scan(&intake, 0)?;
        numbered(scan.rows, source.name(), "Relief")?;
        match selection {
            Some(selection) => selection.check(&scan, &problem, params)?,
            None => {
                check(
                    params.target_draws == 0 || !scan.is_part(),
                    "target_draws: not for rankings of parts of the rows; rank all rows together, or leave it out",
                )?;
                check(
                    params.n_iterations.len() == 1 || !scan.is_part(),
                    "n_iterations: several are not for rankings of parts of the rows; rank all rows together, or give one",
                )?;
            }
        }
        log_capped(params, scan.profile.counts.kept);
        let identity = Identity::new(params.clone(), &problem, &scan.profile);
        let requested = options.keys(identity.n_keys())?;
        let blocks = estimates::blocks(&identity.data, params);
        let n_blocks = blocks.n_blocks();
        let checkpoint = Checkpoint::open(identity, options.resume, options.memory, monitor)?;
        let missing = checkpoint.missing(requested.clone());
        if missing.is_empty() {
            return checkpoint.close();
        }
        let all_rows = scan.profile.counts.kept;
        let own = requested.start..requested.end.min(n_blocks);
        let queries = match selection {
            Some(Selection { numbers, .. }) => Queries::selected(params, all_rows, own, &blocks, numbers)?,
            None => Queries::new(params, &scan, own, &blocks),
        };
        let unlabelled = scan.profile.counts.unlabelled;
        let names: Vec<&str> = problem.features.iter().map(|feature| feature.name.as_str()).collect();
        let (task, covariates) = (problem.task, params.covariates_among(&names)?);
        let outline = Outline::new(params, task, problem.features.len(), problem.targets.len(), unlabelled, covariates);
        let limits = match limits {
            Some(limits) => limits,
            None => {
                let (block, n_blocks) = (queries.largest_block(), (n_blocks, missing.len()));
                memory_limits(params, &problem, &scan, (&outline, n_blocks, block), options.memory)?
            }
        };
        let (scratch, has_ranks) = (Scratch::new(options.temp_dir), selection.is_some());
        let prepared = Prepared::read(limits, intake, &scan, params, &scratch, has_ranks)?;
        prepared.check_groups()?;
        let (blocks, myopic): (Vec<u64>, Vec<u64>) = missing.into_iter().partition(|&key| key < n_blocks);
        if !blocks.is_empty() {
            let rule = neighborhood(params, prepared.n_rows);
            let blocks: Vec<_> = blocks.iter().map(|&key| (key, queries.block(key))).collect();
            let groups = queries.groups(params.seed, prepared.n_rows, outline.n_groups(), n_blocks);
            let priors = prepared.priors(params, selection.map(|_| &*scan.profile))?;
            let all = selection.map(|selection| selection.targets(&scan, &problem, params, monitor)).transpose()?;
            let plan = prepared.plan(params, outline, groups, priors, all.flatten())?;
            rule.contribute(&prepared, &plan, &blocks, &checkpoint)?;
        }
        for key in myopic {
            let priors = prepared.priors(params, None)?;
            let importances = myopic::importances(&prepared.table, &prepared.space, &priors, &prepared.weights, monitor)?;
            checkpoint.add(key, vec![Vector::dense(importances)])?;
        }
        checkpoint.close()
    })
}

/// Logs if there are fewer rows than queries requested.
fn log_capped(params: &ReliefParams, n_rows: u64) {
    for iterations in &params.n_iterations {
        if let Iterations::Count(count) = iterations
            && *count > n_rows
        {
            info!("n_iterations: {count} queries were requested, and all {n_rows} rows are queries");
        }
    }
}

/// How many rows and queries a run may hold at once within the memory limit. `n_blocks` counts all blocks of queries,
/// `n_open` those that are still to be computed.
fn memory_limits(
    params: &ReliefParams,
    problem: &Problem,
    scan: &ScanSummary<'_>,
    (outline, (n_blocks, n_open), largest_block): (&Outline, (u64, usize), usize),
    memory: Option<u64>,
) -> Result<Limits> {
    let (n_classes, target_bytes) = match problem.task {
        // Codes, and classes.
        Task::Classification if outline.metrics.is_empty() => {
            (scan.profile.targets[0].n_categories(), 2 * size_of::<u16>())
        }
        // Values as read, as numbers of the distance, and in a buffer; and the influence of rows.
        _ => (
            1,
            problem.targets.len() * (2 * size_of::<f64>() + size_of::<u16>()) + size_of::<f64>() + size_of::<bool>(),
        ),
    };
    let labels = scan.profile.targets.iter().map(|target| match target {
        ColumnProfile::Labels(labels) => labels.mean_closed(scan.profile.counts.kept),
        _ => Ok(0.0),
    });
    let target_bytes = target_bytes + size_of::<u32>() * labels.sum::<Result<f64>>()?.ceil() as usize;
    // The hash of the group, its number, and what is known of each.
    let target_bytes = target_bytes + if problem.groups.is_some() { 48 } else { 0 };
    // A query beside streamed rows: its lists and sums, its values as rows and in panels.
    let query = neighborhood(params, scan.rows as usize).query_bytes(n_classes, outline.n_vectors())
        + 20 * problem.features.len();
    let (weight_bytes, model_bytes) = match problem.weight {
        Some(_) => (size_of::<f64>(), MissingModel::VALUE_BYTES + MissingModel::WEIGHT_BYTES),
        None => (0, MissingModel::VALUE_BYTES),
    };
    // The group of a row, and its weight.
    // Covariates as columns, and by row.
    let covariate_bytes = 2 * size_of::<f64>() * outline.covariates.len();
    let row_bytes = target_bytes + size_of::<u8>() + weight_bytes + covariate_bytes;
    let column = if params.scaling == Scaling::Rank { COLUMN_BYTES * scan.rows as usize } else { 0 };
    let all_targets = match scan.rows < scan.profile.counts.kept && are_needed(problem, params, &scan.profile) {
        true => scan.profile.counts.kept as usize * target_bytes,
        false => 0,
    };
    let n_missing = match params.missing {
        Missing::Expected => scan.profile.features.iter().filter(|feature| feature.missing() > 0).count(),
        Missing::Informative => 0,
    };
    let tile_rows = rows_per_tile(problem.features.len()).min(scan.rows as usize);
    // Models of missing values, and the expected differences of the rows of a tile.
    let models = n_missing
        * (scan.rows as usize * model_bytes + n_classes * (MissingModel::CLASS_BYTES + tile_rows * size_of::<f32>()));
    let held = scan.rows as usize * row_bytes + models + all_targets + outline.bytes(n_blocks);
    let n_queries = n_open.saturating_mul(largest_block).min(scan.rows as usize);
    Limits::within(Budget::new(memory), held, column.max(largest_block * query), n_queries * query)
}

impl Prepared<'_> {
    /// The priors of the classes; none where the target is not of classes. The shares of classes are those among the
    /// rows here, or in the `profile` of the data set that they are a selection of.
    fn priors(&self, params: &ReliefParams, profile: Option<&Profile>) -> Result<Vec<f64>> {
        let ColumnProfile::Nominal(classes) = &self.target_profiles[0] else { return Ok(Vec::new()) };
        let shares: Vec<f64> = match profile {
            Some(profile) => classes.counts.values().map(|&n| n as f64 / profile.counts.kept as f64).collect(),
            None => {
                let mut masses = vec![0.0; self.space.n_classes];
                for (row, &class) in self.space.classes.iter().enumerate() {
                    masses[usize::from(class)] += self.weights.get(row).copied().unwrap_or(1.0);
                }
                let all = if self.weights.is_empty() { self.n_rows as f64 } else { self.weights.iter().sum() };
                masses.into_iter().map(|mass| mass / all).collect()
            }
        };
        if params.class_priors == ClassPriors::Empirical {
            return Ok(shares);
        }
        let classes: Vec<(&str, f64)> = classes.counts.keys().map(String::as_str).zip(shares).collect();
        params.class_priors.of(&classes)
    }

    /// `all` are the targets of all rows of a data set of which these rows are a selection, and the numbers of these
    /// rows there, if they are needed.
    fn plan(
        &self,
        params: &ReliefParams,
        outline: Outline,
        groups: Vec<u8>,
        priors: Vec<f64>,
        all: Option<(AllTargets, Vec<u32>)>,
    ) -> Result<Plan> {
        let kind = match self.problem.task {
            _ if outline.metrics.is_empty() => Kind::Classes { priors },
            task => {
                let (columns, n_rows, of_rows) = match &all {
                    Some((all, _)) => (&all.columns, all.n_rows, all.groups.as_ref()),
                    None => (&self.targets, self.n_rows, self.space.groups()),
                };
                let targets = Targets::new(
                    columns,
                    &self.target_profiles,
                    &self.problem.targets,
                    task,
                    params.scaling,
                    (params.target_weights.as_deref(), &self.weights),
                )?;
                // Draw 0 are the targets as they are.
                let draws = Draws::new(params.seed, 1 + params.target_draws, n_rows, of_rows);
                let numbers = all.map_or_else(Vec::new, |(_, numbers)| numbers);
                let covariates = self.covariates(&outline.covariates, params.missing)?;
                Kind::Distances(Box::new(Distances { targets, covariates, draws, numbers }))
            }
        };
        let influence = self.is_semi_supervised.then(|| self.influence(params.influence)).transpose()?;
        Ok(Plan { outline, groups, weights: Arc::clone(&self.weights), kind, influence })
    }
}
