//! The Relief ranker: ReliefF for classes, RReliefF for numbers, several targets and label sets
//! (relieff-trees figures 3 and 4, mtr-ranking §2.2, ssl-ranking §5.1).
//!
//! ```text
//! draw queries                          queries
//! for each group of blocks of queries   as many as memory holds lists for
//!     the k nearest rows of each class  search (with panels, kernel, lists)
//!     sum up what they say, by block    sums (with targets)
//! importances = f(sums over blocks)     estimates
//! ```
//!
//! Rows are numbers of the distance `space`, in memory together (`rows`) where they are few and read
//! anew for each pass where they are many; then only the queries are held.
//!
//! Where the papers are silent or garbled: missing values differ by what is expected, numeric ones too
//! (see `lack`); distances are means over features, summed in f64 in the order of features and compared to
//! 12 decimals, ties going to the lower row; a class with fewer than k rows counts with those it has; two
//! empty label sets are at distance 0; the rank weight is exp(−(rank/σ)²), as mtr-ranking writes 1/σ for σ.
//! Each target on its own uses 0 or 1 as the distance of a nominal one, for which the neighbours of all
//! targets together do (mtr-ranking §2.3).
//!
//! Rows that are mostly 0 are held by their other values and searched by those alone (`sparse`).
//!
//! Memory: 12 bytes a value for rows that are held; for the others one tile, and the queries of a group.

mod estimates;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod kernel;
mod lack;
mod lists;
mod myopic;
mod panels;
mod params;
mod prepared;
mod queries;
mod rows;
mod search;
mod space;
mod sparse;
mod sums;
mod targets;
#[cfg(test)]
mod tests;

use pulp::Arch;
use rayon::prelude::*;

pub use params::{Iterations, ReliefParams, ReliefScore, TargetDistance};

use crate::Resources;
use crate::accumulate::Accumulator;
use crate::error::{Error, Result};
use crate::intake::Intake;
use crate::monitor::{Monitor, Phase};
use crate::ranking::{Ranking, ScoreRanking};
use crate::schema::{Problem, Roles, Task, names};
use crate::source::ChunkSource;
use crate::threads::pool;
use lists::Ground;
use prepared::{Prepared, gather};
use rows::{Rows, Table};
use search::{Neighbours, Search};
use sparse::Index;
use sums::{Kind, Plan, Scheme, Sums};
use targets::{Apart, Targets};

/// Most bytes that a run holds of what it could do in parts.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Rows, if they are held together.
    rows: usize,
    /// Queries of a group, with their lists.
    group: usize,
}

const LIMITS: Limits = Limits { rows: 192 << 20, group: 128 << 20 };
/// Sums of all blocks take up to this many bytes, where the blocks are not too few then.
const SUMS_BYTES: usize = 64 << 20;
/// Blocks of queries, for whose number standard errors are good enough.
const BLOCKS: std::ops::RangeInclusive<usize> = 16..=128;

/// Ranks the features of `source` by Relief, within these `resources`.
///
/// The same data and settings give the same bits, whatever the resources, the chunking of the rows, and the
/// container they come in.
///
/// # Errors
/// What is wrong with a setting, a column or a value; [`Error::Interrupted`] once `monitor` was
/// asked to stop.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    resources: &Resources,
    monitor: &Monitor,
) -> Result<Ranking> {
    rank_within(LIMITS, source, roles, params, resources.threads, monitor)
}

fn rank_within(
    limits: Limits,
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Ranking> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(problem.task, problem.targets.len())?;
    if roles.weight.is_some() {
        return Err(Error::Setting("weight: Relief does not weigh rows; leave it out, or use the forest".into()));
    }
    pool(threads)?.install(|| {
        let intake = Intake { source, problem: &problem, monitor };
        let prepared = Prepared::read(limits, intake, params)?;
        let mut scores = Vec::new();
        for score in &params.scores {
            match score {
                ReliefScore::Relief => scores.extend(prepared.relief(params)?),
                ReliefScore::Myopic => scores.push(prepared.myopic(monitor)?),
            }
        }
        Ok(Ranking {
            task: problem.task,
            n_rows: prepared.n_rows as u64,
            n_unlabelled: prepared.n_unlabelled,
            features: names(&problem.features),
            targets: names(&problem.targets),
            scores,
        })
    })
}

impl Prepared<'_> {
    /// Shares of the rows that are of each class.
    fn priors(&self) -> Vec<f64> {
        let mut counts = vec![0u64; self.space.n_classes];
        self.space.classes.iter().for_each(|&class| counts[usize::from(class)] += 1);
        counts.into_iter().map(|count| count as f64 / self.n_rows as f64).collect()
    }

    fn myopic(&self, monitor: &Monitor) -> Result<ScoreRanking> {
        let estimate = myopic::estimate(&self.table, &self.space, &self.priors(), monitor)?;
        Ok(estimate.rank(ReliefScore::Myopic.name()))
    }

    fn plan(&self, params: &ReliefParams) -> Result<Plan> {
        let schemes =
            params.n_neighbors.iter().flat_map(|&k| params.sigma.iter().map(move |&sigma| Scheme { k, sigma }));
        let kind = match self.problem.task {
            Task::Classification => Kind::Classes { priors: self.priors() },
            task => Kind::Distances {
                targets: Targets::new(
                    &self.targets,
                    &self.target_profiles,
                    &self.problem.targets,
                    task,
                    params.target_weights.as_deref(),
                )?,
                apart: match (params.per_target, task) {
                    (true, _) => (0..self.targets.len()).map(Apart::Target).collect(),
                    (false, Task::MultiLabel) if params.target_distance.is_empty() => {
                        vec![Apart::Sets(TargetDistance::Hamming)]
                    }
                    (false, Task::MultiLabel) => params.target_distance.iter().copied().map(Apart::Sets).collect(),
                    (false, _) => vec![Apart::Mean],
                },
            },
        };
        Ok(Plan { schemes: schemes.collect(), kind })
    }

    /// All scores that neighbours give.
    fn relief(&self, params: &ReliefParams) -> Result<Vec<ScoreRanking>> {
        let plan = self.plan(params)?;
        let n_features = self.space.shapes.len();
        let queries = queries::draw(params.seed, self.n_rows, params.queries(self.n_rows as u64)? as usize);
        let most = (SUMS_BYTES / (8 * n_features * plan.n_vectors())).clamp(*BLOCKS.start(), *BLOCKS.end());
        let n_blocks = most.min(queries.len());
        let block =
            |number: usize| &queries[number * queries.len() / n_blocks..(number + 1) * queries.len() / n_blocks];
        let blocks: Vec<&[u32]> = (0..n_blocks).map(block).collect();

        let k = params.n_neighbors.iter().copied().max().unwrap_or(1).min(self.n_rows);
        let search = Search { space: &self.space, layout: &self.layout, k, monitor: self.monitor, arch: Arch::new() };
        let a_query = lists::bytes(k, self.space.n_classes) + k * self.space.n_classes * (16 + 8 * plan.n_vectors());
        let mut accumulator = Accumulator::default();
        let mut first = 0;
        match &self.table {
            Table::Held(rows) if queries.len() == self.n_rows && self.n_rows * a_query <= self.limits.group => {
                let neighbours = search.of_all(rows)?;
                self.sum(&plan, &blocks, &neighbours, rows, first, &mut accumulator)?;
            }
            Table::Sparse(rows) => {
                let index = Index::new(rows, &self.space);
                let together = (self.limits.group / a_query / block(0).len()).max(1);
                for group in blocks.chunks(together) {
                    let neighbours = index.neighbours(&group.concat(), k, self.monitor)?;
                    self.sum(&plan, group, &neighbours, &Rows::default(), first, &mut accumulator)?;
                    first += group.len();
                }
            }
            table => {
                let a_query = a_query + self.layout.row_bytes() + 8 * n_features;
                let together = (self.limits.group / a_query / block(0).len()).max(1);
                for group in blocks.chunks(together) {
                    let held = gather(table, &group.concat())?;
                    let neighbours = search.among(table, &held)?;
                    self.sum(&plan, group, &neighbours, &held, first, &mut accumulator)?;
                    first += group.len();
                }
            }
        }
        let estimates = accumulator.estimates(&plan, n_features);
        Ok(estimates.into_iter().zip(plan.names()).map(|(estimate, name)| estimate.rank(&name)).collect())
    }

    fn ground<'b>(&'b self, queries: &'b Rows, rows: &'b Rows) -> Ground<'b> {
        Ground { space: &self.space, queries, rows }
    }

    /// Sums up what the neighbours of the queries in `blocks` say, which are numbered from `first`. The
    /// queries are in `queries_at`, unless the rows are sparse, which hold them too.
    fn sum(
        &self,
        plan: &Plan,
        blocks: &[&[u32]],
        neighbours: &Neighbours,
        queries_at: &Rows,
        first: usize,
        accumulator: &mut Accumulator<Sums>,
    ) -> Result<()> {
        let arch = Arch::new();
        self.monitor.enter(Phase::Summing, self.n_rows as u64);
        let by_block = |add: &(dyn Fn(&mut sums::Block) + Sync)| -> Result<Vec<Sums>> {
            let sum = |queries: &&[u32]| {
                self.monitor.check()?;
                let mut block = plan.block(queries, neighbours, &self.space);
                add(&mut block);
                self.monitor.advance(queries.len() as u64);
                Ok(block.finish())
            };
            blocks.par_iter().map(sum).collect()
        };
        let sums: Vec<Sums> = match &self.table {
            Table::Held(rows) => by_block(&|block| block.add(arch, self.ground(queries_at, rows)))?,
            Table::Sparse(rows) => by_block(&|block| block.add_sparse(rows, &self.space))?,
            Table::Streamed(_) => {
                let mut open: Vec<_> =
                    blocks.par_iter().map(|queries| plan.block(queries, neighbours, &self.space)).collect();
                self.table.pass(Phase::Summing, |rows| {
                    open.par_iter_mut().for_each(|block| block.add(arch, self.ground(queries_at, rows)));
                    Ok(())
                })?;
                open.into_iter().map(sums::Block::finish).collect()
            }
        };
        for (number, sums) in (first..).zip(sums) {
            accumulator.insert(number as u64, sums);
        }
        Ok(())
    }
}
