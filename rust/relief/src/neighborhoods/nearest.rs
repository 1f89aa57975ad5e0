//! The k nearest rows of each class (ReliefF), or of all rows (RReliefF), with weights by rank.
//!
//! For standard errors one more row is searched, which moves up if another one is left out.

use std::collections::HashMap;

use pulp::Arch;
use rayon::prelude::*;

use super::rule::{Neighborhood, Queries};
use crate::outline::Scheme;
use crate::params::ReliefParams;
use crate::plan::{Plan, Shares};
use crate::prepared::{Prepared, gather};
use crate::sums::{self, Codes, pair_bytes};
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::nearest::{NearestParams, NeighborLists, Search, bytes};
use ferrank_neighbors::panels::Panels;
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::space::Shape;
use ferrank_neighbors::sparse::Index;
use ferrank_neighbors::table::Table;
use ferrank_ranking::Checkpoint;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Phase;

/// Bytes of the pairs of blocks that a thread adds together. With as many as there are, 10,000 rows x 100 features of 20
/// classes took 1.1 times the time; with a quarter of these bytes, 20,000 x 300 of two classes 1.1 times.
const TOGETHER_BYTES: usize = 32 << 20;
/// Queries whose neighbors are searched together, where no blocks of them are summed up.
const SEARCHED: usize = 64;

/// The k nearest rows, for the largest k of the settings, and the next one if there are standard errors.
///
/// The order of those that all have the same share does not matter, except in lists of all rows of a class: there the next
/// one takes the place of one that is left out.
pub(super) struct Nearest(NearestParams);

/// The [`Shares`] of a list of some length, where all rows have the weight 1.
struct ByRank {
    shares: Vec<Vec<f64>>,
    replaced: Vec<Vec<Vec<u32>>>,
}

/// Queries of the largest of `blocks`, at least 1.
fn most_queries(blocks: &[Queries<'_>]) -> usize {
    blocks.iter().map(|(_, queries)| queries.len()).max().unwrap_or(0).max(1)
}

/// Shares of the ranks 1 … n, which sum to 1 (Robnik-Šikonja and Kononenko 1999 Eq. 13, 14).
pub(crate) fn rank_shares(n: usize, sigma: Option<f64>) -> Vec<f64> {
    // Times exp(1/σ²), or all of them could underflow.
    let raw = |rank: usize| sigma.map_or(1.0, |sigma| ((1.0 - (rank * rank) as f64) / sigma / sigma).exp());
    let shares: Vec<f64> = (1..=n).map(raw).collect();
    let total: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / total).collect()
}

/// For each place of a list, the places of the rows in whose place its row comes if they are left out.
///
/// If a row is left out, those after it move up. For equal `shares` that amounts to the first row without a share in its
/// place, otherwise to rows after it in the proportion in which shares fall; one of them is chosen, by a sequence that
/// spreads evenly. Where all rows of the list have a share, the one after it or the first stands for the mean of the others.
fn replaced(shares: &[f64], n_rows: usize) -> Vec<Vec<u32>> {
    /// Fractions of its multiples are spread evenly (Weyl 1916).
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let n = shares.len();
    let mut replaced = vec![Vec::new(); n_rows];
    for (place, share) in shares.iter().enumerate() {
        let fallen = ((place + 1) as f64 * GOLDEN).fract() * share;
        let next = place + 1 + shares[place + 1..].partition_point(|share| *share > fallen);
        let next = if next < n_rows { next } else { (place + 1) % n };
        if next != place {
            replaced[next].push(place as u32);
        }
    }
    replaced
}

impl Neighborhood for Nearest {
    fn query_bytes(&self, n_classes: usize, n_vectors: usize) -> usize {
        bytes(self.0.k, n_classes) + self.pairs_bytes(n_classes, n_vectors)
    }

    fn contribute(
        &self,
        data: &Prepared<'_>,
        plan: &Plan,
        blocks: &[Queries<'_>],
        checkpoint: &Checkpoint,
    ) -> Result<()> {
        let pairs_bytes = self.pairs_bytes(data.space.n_classes, plan.outline.n_vectors());
        self.search(data, pairs_bytes, blocks, |group, neighbors, query_rows| {
            Pairs { data, plan, neighbors, query_rows, params: self.0, pairs_bytes }.add(group, checkpoint)
        })
    }

    fn rows(&self, data: &Prepared<'_>, queries: &[u32]) -> Result<Vec<u32>> {
        let mut rows = queries.to_vec();
        let blocks: Vec<Queries<'_>> = queries.chunks(SEARCHED).map(|queries| (0, queries)).collect();
        self.search(data, 0, &blocks, |group, neighbors, _| {
            let queries = group.iter().flat_map(|(_, queries)| *queries);
            rows.extend(queries.flat_map(|&query| neighbors.of(query).flatten()));
            rows.sort_unstable();
            rows.dedup();
            Ok(())
        })?;
        Ok(rows)
    }
}

impl Nearest {
    /// Bytes of the pairs of a query.
    fn pairs_bytes(&self, n_classes: usize, n_vectors: usize) -> usize {
        self.0.k * n_classes * pair_bytes(n_vectors)
    }

    /// Searches the neighbors of `blocks`, as many together as the memory allows, which take `pairs_bytes` for each query
    /// beside its lists. Calls `each` with these, their lists and the values of the queries, which are empty where the
    /// table is sparse.
    fn search(
        &self,
        data: &Prepared<'_>,
        pairs_bytes: usize,
        blocks: &[Queries<'_>],
        mut each: impl FnMut(&[Queries<'_>], &NeighborLists, &Rows) -> Result<()>,
    ) -> Result<()> {
        let Prepared { space, layout, monitor, limits, .. } = data;
        let n_features = space.shapes.len();
        let search = Search { space, layout, params: self.0, monitor, arch: Arch::new() };
        let largest = most_queries(blocks);
        let n_queries = blocks.iter().map(|(_, queries)| queries.len()).sum::<usize>();
        let list_bytes = bytes(self.0.k, data.space.n_classes);
        let (lists_bytes, query_bytes) = (data.n_rows * list_bytes, list_bytes + pairs_bytes);
        let groups = |query_bytes: usize| blocks.chunks((limits.group / query_bytes / largest).max(1));
        let queries =
            |group: &[Queries<'_>]| -> Vec<u32> { group.iter().flat_map(|(_, queries)| *queries).copied().collect() };
        match &data.table {
            // Each pair of rows is measured once, and at most half of the memory is for lists.
            Table::Held(rows) if n_queries == data.n_rows && 2 * lists_bytes <= limits.group => {
                let left = limits.group - lists_bytes;
                let neighbors = search.of_all(rows, left)?;
                let together = (left / (pairs_bytes * largest).max(1)).max(1);
                blocks.chunks(together).try_for_each(|group| each(group, &neighbors, rows))
            }
            Table::Sparse(rows) => {
                let index = Index::new(rows, space);
                groups(query_bytes).try_for_each(|group| {
                    let neighbors = index.neighbors(&queries(group), self.0.k, monitor)?;
                    each(group, &neighbors, &Rows::default())
                })
            }
            table => groups(query_bytes + Panels::row_bytes(layout) + 8 * n_features).try_for_each(|group| {
                let query_rows = gather(table, &queries(group), n_features)?;
                each(group, &search.among(table, &query_rows)?, &query_rows)
            }),
        }
    }

    pub(super) fn new(params: &ReliefParams, n_rows: usize) -> Self {
        let k = params.n_neighbors.iter().copied().max().unwrap_or(1);
        let is_equal = params.sigma.iter().all(Option::is_none);
        let unordered = params.n_neighbors.iter().copied().min().filter(|_| is_equal).unwrap_or(0);
        let k = k.saturating_add(usize::from(params.has_standard_errors())).min(n_rows);
        Nearest(NearestParams { k, unordered })
    }
}

/// The pairs of queries and their neighbors.
struct Pairs<'a> {
    data: &'a Prepared<'a>,
    plan: &'a Plan,
    neighbors: &'a NeighborLists,
    /// The values of the queries; empty where the table is sparse and holds them.
    query_rows: &'a Rows,
    params: NearestParams,
    /// Bytes of the pairs of a query.
    pairs_bytes: usize,
}

impl Pairs<'_> {
    /// The values of queries and `rows`.
    fn context<'b>(&'b self, rows: &'b Rows) -> DistanceContext<'b> {
        DistanceContext { space: &self.data.space, queries: self.query_rows, rows }
    }

    /// Adds up the pairs of `blocks`, and their contributions to `checkpoint`.
    fn add(&self, blocks: &[Queries<'_>], checkpoint: &Checkpoint) -> Result<()> {
        let Prepared { space, table, monitor, n_rows, .. } = self.data;
        let arch = Arch::new();
        monitor.enter(Phase::Summing, *n_rows as u64);
        // Blocks that are added together share the rows in the cache; sparse ones check for a stop after each.
        let together = if !matches!(table, Table::Sparse(_)) {
            let block_bytes = (most_queries(blocks) * self.pairs_bytes).max(1);
            blocks.len().div_ceil(rayon::current_num_threads()).min(TOGETHER_BYTES / block_bytes).max(1)
        } else {
            1
        };
        let open = |blocks: &[Queries<'_>]| -> Vec<sums::Block> {
            blocks.iter().map(|(_, queries)| self.block(queries)).collect()
        };
        let close = |blocks: &[Queries<'_>], sums: Vec<sums::Block>| {
            blocks.iter().zip(sums).try_for_each(|(&(key, queries), block)| {
                monitor.advance(queries.len() as u64);
                checkpoint.add(key, block.finish())
            })
        };
        let by_group = |add: &(dyn Fn(&mut [sums::Block]) + Sync)| {
            blocks.par_chunks(together).try_for_each(|blocks| {
                monitor.check()?;
                let mut sums = open(blocks);
                add(&mut sums);
                close(blocks, sums)
            })
        };
        match table {
            Table::Held(rows) => {
                // It takes less time to count than to make codes if each row is in some pair.
                let n_queries = blocks.iter().map(|(_, queries)| queries.len()).sum::<usize>();
                let is_worthwhile = self.rounds_weights() && n_queries * self.params.k >= *n_rows;
                let codes = if is_worthwhile { Codes::new(arch, space, rows) } else { None };
                by_group(&|blocks| sums::Block::add(blocks, arch, self.context(rows), codes.as_ref()))
            }
            Table::Sparse(rows) => {
                by_group(&|blocks| blocks.iter_mut().for_each(|block| block.add_sparse(rows, space)))
            }
            Table::Spilled(_) | Table::Streamed(_) => {
                let mut sums: Vec<_> = blocks.par_chunks(together).flat_map_iter(open).collect();
                table.pass(Phase::Summing, |rows| {
                    let add = |blocks: &mut [sums::Block]| sums::Block::add(blocks, arch, self.context(rows), None);
                    sums.par_chunks_mut(together).for_each(add);
                    Ok(())
                })?;
                close(blocks, sums)
            }
        }
    }

    /// The pairs of a block of queries, nothing of which is added yet.
    fn block(&self, queries: &[u32]) -> sums::Block {
        let Pairs { data, plan, neighbors, params, .. } = self;
        let mut block = plan.block(queries);
        // By the length of the list; nearly all are equally long.
        let mut known: HashMap<usize, ByRank> = HashMap::new();
        let mut ordered = Vec::new();
        for &query in queries {
            for (class, rows) in neighbors.of(query).enumerate() {
                // Searches leave those that may be in any order as they find them.
                ordered.clear();
                ordered.extend_from_slice(rows);
                ordered[..params.n_unordered(rows.len())].sort_unstable();
                let ByRank { shares: by_rank, replaced } = known.entry(rows.len()).or_insert_with(|| {
                    let shares = plan.outline.schemes.iter().filter_map(|scheme| match *scheme {
                        Scheme::Nearest { k, sigma } => Some(rank_shares(k.min(rows.len()), sigma)),
                        Scheme::Near | Scheme::Far => None,
                    });
                    let shares: Vec<Vec<f64>> = shares.collect();
                    let moving = shares.iter().filter(|_| plan.outline.has_groups);
                    let replaced = moving.map(|shares| replaced(shares, rows.len())).collect();
                    ByRank { shares, replaced }
                });
                let weighted;
                let shares = if plan.weights.is_empty() {
                    &*by_rank
                } else {
                    weighted = plan.weighted(query, &ordered, by_rank);
                    &weighted
                };
                plan.push(&mut block, &data.space, query, (class, &ordered), Shares { shares, replaced });
            }
        }
        if self.rounds_weights() {
            block.round_weights();
        }
        block.sort();
        block
    }

    /// Returns true if some features are categories, whose differences are then added up without an error.
    fn rounds_weights(&self) -> bool {
        self.data.space.shapes.contains(&Shape::Nominal)
    }
}

#[cfg(test)]
mod tests {
    use super::{rank_shares, replaced};

    #[test]
    fn rank_shares_sum_to_one() {
        assert_eq!(rank_shares(2, None), [0.5, 0.5]);
        let raw: Vec<f64> = [1.0f64, 4.0, 9.0].iter().map(|square| (-square / 4.0).exp()).collect();
        let total: f64 = raw.iter().sum();
        for (found, raw) in rank_shares(3, Some(2.0)).iter().zip(&raw) {
            assert!((found - raw / total).abs() < 1e-15);
        }
        assert_eq!(rank_shares(3, Some(1e-3)), [1.0, 0.0, 0.0]);
        assert!(rank_shares(0, None).is_empty());
    }

    #[test]
    fn the_next_row_moves_up() {
        assert_eq!(replaced(&[0.5, 0.5], 3), [vec![], vec![], vec![0, 1]]);
        // Without a next row, others stand in for it.
        assert_eq!(replaced(&[0.5, 0.5], 2), [vec![1], vec![0]]);
        assert_eq!(replaced(&[1.0], 1), [vec![0u32; 0]]);
        // The second share is 0.1 of the first, above 0.618: row 1 moves up. Others fall off within the list.
        assert_eq!(replaced(&[0.9, 0.09, 0.01], 4), [vec![], vec![0], vec![1], vec![2]]);
        let many = rank_shares(40, Some(10.0));
        let moved = replaced(&many, 41);
        assert_eq!(moved.iter().map(Vec::len).sum::<usize>(), 40);
        assert!(moved.iter().enumerate().all(|(place, before)| before.iter().all(|&row| (row as usize) < place)));
    }
}
