//! The Relief ranker: ReliefF for classes, RReliefF for numbers, several targets and label sets
//! (Robnik-Šikonja and Kononenko 1999 figures 3 and 4, Petković et al. 2020a §2.2, Petković et al. 2023 §5.1).
//!
//! ```text
//! draw queries                          queries
//! for each group of blocks of queries   as many as memory holds lists for
//!     the k nearest rows of each class  search (with panels, and the room neighbors)
//!     sum up what they say, by block    sums (with targets)
//! importances = f(sums over blocks)     estimates
//! ```
//!
//! Rows are numbers of the distance `space`, in memory together (`rows`) where they are few and read
//! anew for each pass where they are many; then only the queries are held.
//!
//! Where the papers are silent or garbled: missing values differ by what is expected, numeric ones too
//! (see `model`); distances are means over features, summed in f64 in the order of features and compared to
//! 12 decimals, ties going to the lower row; a class with fewer than k rows counts with those it has; two
//! empty label sets are at distance 0; the rank weight is exp(−(rank/σ)²), as Petković et al. 2020a writes 1/σ for σ.
//! Each target on its own uses 0 or 1 as the distance of a nominal one, for which the neighbours of all
//! targets together do (Petković et al. 2020a §2.3).
//!
//! Rows without a target can take part (`influence`). Classes then are targets like any other: their
//! distance is 0 or 1, and neighbours are the nearest rows, of whatever class (Petković et al. 2023 §5.2). With no
//! such row there is nothing semi-supervised, and the ranking is the supervised one.
//!
//! Rows that are mostly 0 are held by their other values and searched by those alone (`sparse`).
//!
//! Memory: 13 bytes a value for rows that are held, 17 where bytes do not tell rows apart, and one for each pair of
//! rows where they are few; for the others one tile, and the queries of a group.

mod estimates;
mod influence;
mod limits;
mod myopic;
mod outline;
mod params;
mod prepared;
mod queries;
mod ranker;
mod sums;
mod targets;
#[cfg(test)]
mod tests;

use pulp::Arch;
use rayon::prelude::*;

pub use params::{Iterations, ReliefParams, ReliefScore, TargetDistance};

use ferrank_data::intake::{Intake, numbered};
use ferrank_data::schema::{Problem, Roles, Task};
use ferrank_data::source::ChunkSource;
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::lists::{NearestParams, bytes};
use ferrank_neighbors::neighbours::Neighbours;
use ferrank_neighbors::panels::Panels;
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::search::Search;
use ferrank_neighbors::sparse::Index;
use ferrank_neighbors::table::Table;
use ferrank_ranking::Ranking;
use ferrank_ranking::RunOptions;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity, Vector};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;
use limits::Limits;
use outline::Outline;
use prepared::{Prepared, gather};
use queries::Queries;
use sums::{Kind, Plan, pair_bytes};
use targets::Targets;

/// Its number, and its queries.
type Block<'a> = (u64, &'a [u32]);

/// Ranks the features of `source` by Relief, on a pool of `threads` threads.
///
/// The same arguments give the same bits, whatever the number of threads, the chunking of the rows,
/// and the container they come in.
///
/// # Errors
/// What is wrong with a setting, a column or a value;
/// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted) once `monitor` was asked to stop.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, params, &RunOptions { threads, ..RunOptions::default() }, monitor)?.ranking()
}

/// Contributes the blocks of queries that `options` ask for, each under its number, and after them `myopic`.
///
/// # Errors
/// Those of [`rank`], and what is wrong with `options`.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    accumulate_within(None, source, roles, params, options, monitor)
}

fn accumulate_within(
    limits: Option<Limits>,
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ReliefParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    pool(options.threads)?.install(|| {
        let intake = Intake { source, problem: &problem, unlabelled: params.unlabelled, monitor };
        let met = options.scan(&intake, 0)?;
        numbered(met.rows, source.name(), "Relief")?;
        params.queries(met.profile.counts.kept)?;
        let identity = Identity::new(params.clone(), &problem, &met.profile);
        let asked = options.keys(identity.n_keys())?;
        let n_blocks = estimates::n_blocks(&identity.data, params);
        let ledger = Checkpoint::open(identity, options.resume, monitor)?;
        let missing = ledger.missing(asked.clone());
        if missing.is_empty() {
            return ledger.close();
        }
        let queries = Queries::new(params, &met, asked.start..asked.end.min(n_blocks), n_blocks)?;
        let (n_features, n_targets, unlabelled) =
            (problem.features.len(), problem.targets.len(), met.profile.counts.unlabelled);
        let outline = Outline::new(params, problem.task, n_features, n_targets, unlabelled);
        let limits = match limits {
            Some(limits) => limits,
            None => {
                let (n_classes, targets) = match problem.task {
                    // Their codes, and the classes that these are.
                    Task::Classification if outline.apart.is_empty() => {
                        (met.profile.targets[0].n_categories(), 2 * size_of::<u16>())
                    }
                    // As they are, as numbers of the distance, and on the way; and the influence of rows.
                    _ => (
                        1,
                        n_targets * (2 * size_of::<f64>() + size_of::<u16>()) + size_of::<f64>() + size_of::<bool>(),
                    ),
                };
                let k = nearest(params, met.rows as usize);
                let block = queries.largest_block() * query_bytes(k, n_classes, n_features, outline.n_vectors());
                Limits::within(Budget::new(options.memory), met.rows, targets, block)?
            }
        };
        let prepared = Prepared::read(limits, intake, &met)?;
        let (blocks, myopic): (Vec<u64>, Vec<u64>) = missing.into_iter().partition(|&key| key < n_blocks);
        if !blocks.is_empty() {
            prepared.relief(params, outline, &queries, &blocks, &ledger)?;
        }
        for key in myopic {
            ledger.add(key, vec![Vector::dense(prepared.myopic(monitor)?)])?;
        }
        ledger.close()
    })
}

/// Most neighbours that are asked for.
fn nearest(params: &ReliefParams, n_rows: usize) -> usize {
    params.n_neighbors.iter().copied().max().unwrap_or(1).min(n_rows)
}

/// Bytes of a query that is held beside streamed rows: its lists, what is summed up for it, its values as rows and
/// as panels have them.
fn query_bytes(k: usize, n_classes: usize, n_features: usize, n_vectors: usize) -> usize {
    bytes(k, n_classes) + k * n_classes * pair_bytes(n_vectors) + 20 * n_features
}

impl Prepared<'_> {
    /// Shares of the rows that are of each class.
    fn priors(&self) -> Vec<f64> {
        let mut counts = vec![0u64; self.space.n_classes];
        self.space.classes.iter().for_each(|&class| counts[usize::from(class)] += 1);
        counts.into_iter().map(|count| count as f64 / self.n_rows as f64).collect()
    }

    fn myopic(&self, monitor: &Monitor) -> Result<Vec<f64>> {
        myopic::importances(&self.table, &self.space, &self.priors(), monitor)
    }

    fn plan(&self, params: &ReliefParams, outline: Outline) -> Result<Plan> {
        let kind = match self.problem.task {
            Task::Classification if !self.is_semi_supervised => Kind::Classes { priors: self.priors() },
            task => Kind::Distances(Targets::new(
                &self.targets,
                &self.target_profiles,
                &self.problem.targets,
                task,
                params.target_weights.as_deref(),
            )?),
        };
        let influence = self.is_semi_supervised.then(|| self.influence(params.influence)).transpose()?;
        Ok(Plan { outline, kind, influence })
    }

    /// What neighbours say: the contributions of the blocks called `numbers`.
    fn relief(
        &self,
        params: &ReliefParams,
        outline: Outline,
        queries: &Queries,
        numbers: &[u64],
        ledger: &Checkpoint,
    ) -> Result<()> {
        let n_features = self.space.shapes.len();
        let a_pair = pair_bytes(outline.n_vectors());
        let k = nearest(params, self.n_rows);
        // Where all weigh the same, and nothing is added up in the order of ranks, who is nearer says nothing.
        let alike = outline.apart.is_empty() && outline.schemes.iter().all(|s| s.k >= k && s.sigma.is_none());
        let wanted = NearestParams { k, in_order: !alike };
        let plan = self.plan(params, outline)?;
        let blocks: Vec<Block<'_>> = numbers.iter().map(|&key| (key, queries.block(key))).collect();
        let most = blocks.iter().map(|(_, queries)| queries.len()).max().unwrap_or(1).max(1);

        let (layout, monitor) = (&self.layout, self.monitor);
        let search = Search { space: &self.space, layout, wanted, monitor, arch: Arch::new() };
        let a_query = bytes(k, self.space.n_classes) + k * self.space.n_classes * a_pair;
        let of_group = |group: &[Block<'_>]| group.iter().flat_map(|(_, queries)| *queries).copied().collect();
        match &self.table {
            Table::Held(rows)
                if blocks.iter().map(|(_, queries)| queries.len()).sum::<usize>() == self.n_rows
                    && self.n_rows * a_query <= self.limits.group =>
            {
                let room = self.limits.group - self.n_rows * a_query;
                self.sum(&plan, &blocks, &search.of_all(rows, room)?, rows, ledger)?;
            }
            Table::Sparse(rows) => {
                let index = Index::new(rows, &self.space);
                for group in blocks.chunks((self.limits.group / a_query / most).max(1)) {
                    let wanted: Vec<u32> = of_group(group);
                    let neighbours = index.neighbours(&wanted, k, self.monitor)?;
                    self.sum(&plan, group, &neighbours, &Rows::default(), ledger)?;
                }
            }
            table => {
                let a_query = a_query + Panels::row_bytes(&self.layout) + 8 * n_features;
                for group in blocks.chunks((self.limits.group / a_query / most).max(1)) {
                    let wanted: Vec<u32> = of_group(group);
                    let held = gather(table, &wanted, n_features)?;
                    let neighbours = search.among(table, &held)?;
                    self.sum(&plan, group, &neighbours, &held, ledger)?;
                }
            }
        }
        Ok(())
    }

    fn context<'b>(&'b self, queries: &'b Rows, rows: &'b Rows) -> DistanceContext<'b> {
        DistanceContext { space: &self.space, queries, rows }
    }

    /// Sums up what the neighbours of the queries in `blocks` say. The queries are in `queries_at`, unless the
    /// rows are sparse, which hold them too.
    fn sum(
        &self,
        plan: &Plan,
        blocks: &[Block<'_>],
        neighbours: &Neighbours,
        queries_at: &Rows,
        ledger: &Checkpoint,
    ) -> Result<()> {
        let arch = Arch::new();
        self.monitor.enter(Phase::Summing, self.n_rows as u64);
        // Plain blocks at work together share rows; others ask after each whether to stop.
        let shares_rows = self.space.is_plain() && !matches!(self.table, Table::Sparse(_));
        let together = if shares_rows { blocks.len().div_ceil(rayon::current_num_threads()).max(1) } else { 1 };
        let open = |blocks: &[Block<'_>]| -> Vec<sums::Block> {
            blocks.iter().map(|(_, queries)| plan.block(queries, neighbours, &self.space)).collect()
        };
        let close = |blocks: &[Block<'_>], sums: Vec<sums::Block>| {
            blocks.iter().zip(sums).try_for_each(|(&(key, queries), block)| {
                self.monitor.advance(queries.len() as u64);
                ledger.add(key, block.finish())
            })
        };
        let by_group = |add: &(dyn Fn(&mut [sums::Block]) + Sync)| {
            blocks.par_chunks(together).try_for_each(|blocks| {
                self.monitor.check()?;
                let mut sums = open(blocks);
                add(&mut sums);
                close(blocks, sums)
            })
        };
        match &self.table {
            Table::Held(rows) => by_group(&|blocks| sums::Block::add(blocks, arch, self.context(queries_at, rows))),
            Table::Sparse(rows) => {
                by_group(&|blocks| blocks.iter_mut().for_each(|block| block.add_sparse(rows, &self.space)))
            }
            Table::Streamed(_) => {
                let mut sums: Vec<_> = blocks.par_chunks(together).flat_map_iter(open).collect();
                self.table.pass(Phase::Summing, |rows| {
                    let context = self.context(queries_at, rows);
                    sums.par_chunks_mut(together).for_each(|blocks| sums::Block::add(blocks, arch, context));
                    Ok(())
                })?;
                close(blocks, sums)
            }
        }
    }
}
