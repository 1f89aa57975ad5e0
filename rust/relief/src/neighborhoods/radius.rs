//! Rows within a radius: SURF (Greene et al. 2009), SURF* (Greene et al. 2010), MultiSURF* (Granizo-Mackenzie and Moore
//! 2013) and MultiSURF (Urbanowicz et al. 2018).
//!
//! | rule | near | far |
//! |---|---|---|
//! | SURF | d < mean of the distances of all pairs | |
//! | SURF* | as SURF | d > that mean |
//! | MultiSURF | d < mean − s/2 of the distances of the query | |
//! | MultiSURF* | as MultiSURF | d > mean + s/2 |
//!
//! s is the standard deviation of a population. A pair is two different rows, in data with groups of two groups. Near rows
//! count as the k nearest rows do elsewhere: each has the same share, in classification of those of its class, and misses
//! are weighted by the prior of their class. The score of far rows is computed in the same way and subtracted. A query
//! without such rows adds nothing; in classification it still counts in m.
//!
//! Distances are compared in units of 10⁻¹², in which sums and squares are whole numbers, so that no rounding decides
//! which rows count.
//!
//! Where scikit-rebate (0.8) departs: its SURF and SURF* include the n distances of a row from itself in the mean; it
//! weighs misses of several classes by the squared share of the class among the misses, not by its prior; rows of numeric
//! targets are hits within a standard deviation of the target, misses beyond, whereas here RReliefF's probabilities are
//! those of near pairs; far rows of MultiSURF* count 1 − difference, which adds the same constant to all features for each
//! row that has far hits or far misses alone; numeric features beside nominal ones differ by 1 beyond a standard deviation;
//! and missing values are left out.
//!
//! Standard errors take the thresholds as given.
//!
//! Memory: as [`AllPairs`], and for each thread the distances of four queries.

use pulp::Arch;
use rayon::prelude::*;

use super::rule::{Neighborhood, Queries};
use crate::outline::Scheme;
use crate::params::NeighborhoodRule;
use crate::plan::{Kind, Plan};
use crate::prepared::Prepared;
use crate::sums::{Block, ListSums};
use ferrank_neighbors::all_pairs::{AllPairs, TOGETHER};
use ferrank_neighbors::sink::DECIMALS;
use ferrank_neighbors::table::Table;
use ferrank_ranking::Checkpoint;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Phase;

/// Most rows: the square of a sum of so many distances, in units of 10⁻¹², times four is a number of 128 bits.
const MOST_ROWS: usize = 4_000_000;
/// Groups of queries between looks at the request to stop, in the first pass over all pairs.
const PASSED: usize = 16;

/// A rule by radius.
pub(super) struct Radius {
    pub(super) rule: NeighborhoodRule,
}

/// Number, sum and sum of squares of distances in units of 10⁻¹².
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    /// The moments of `keys`, at most [`MOST_ROWS`], less those at the positions `excluded`.
    fn new(keys: &[u64], excluded: &[usize]) -> Self {
        let square = |key: u64| u128::from(key) * u128::from(key);
        let (mut sum, mut squares) = (0u64, 0);
        for &key in keys {
            sum += key;
            squares += square(key);
        }
        for &row in excluded {
            sum -= keys[row];
            squares -= square(keys[row]);
        }
        Moments { count: (keys.len() - excluded.len()) as u64, sum: sum.into(), squares }
    }

    /// Joins the moments of other pairs; squares are those of one query alone and not joined.
    fn join(self, other: Moments) -> Moments {
        Moments { count: self.count + other.count, sum: self.sum + other.sum, squares: 0 }
    }
}

/// Keys of distances that are near, and of those that are far.
#[derive(Debug, Clone, PartialEq)]
struct Thresholds {
    /// Below this key.
    near: u64,
    /// From this key on.
    far: u64,
}

impl Thresholds {
    /// Distances below the mean, and above it.
    fn around_mean(Moments { count, sum, .. }: Moments) -> Self {
        let count = u128::from(count.max(1));
        Thresholds { near: sum.div_ceil(count) as u64, far: (sum / count + 1) as u64 }
    }

    /// Distances below the mean less half of the standard deviation, and above the mean plus half of it.
    ///
    /// With S = Σd and r = √(nΣd² − S²), d is near if 2nd < 2S − r. The left side is even and whole: rounding r down
    /// changes nothing.
    fn beyond_half_deviation(Moments { count, sum, squares }: Moments) -> Self {
        let count = u128::from(count.max(1));
        let root = (count * squares - sum * sum).isqrt();
        // As 2S − 2nd > r is 2S − 2nd ≥ ⌊r⌋ + 1, for whole numbers.
        let near = match (2 * sum).checked_sub(root + 1) {
            Some(most) => most / (2 * count) + 1,
            None => 0,
        };
        Thresholds { near: near as u64, far: (2 * sum + root + 1).div_ceil(2 * count) as u64 }
    }
}

/// What a thread reuses from query to query.
struct Buffers {
    distances: Vec<[f64; TOGETHER]>,
    keys: Vec<u64>,
    excluded: Vec<usize>,
    /// Positions of near rows, and of far ones.
    lists: [Vec<u32>; 2],
    weights: Vec<f64>,
    sums: ListSums,
}

impl Neighborhood for Radius {
    fn query_bytes(&self, _: usize, _: usize) -> usize {
        size_of::<u32>()
    }

    fn contribute(
        &self,
        data: &Prepared<'_>,
        plan: &Plan,
        blocks: &[Queries<'_>],
        checkpoint: &Checkpoint,
    ) -> Result<()> {
        self.check_size(data, plan)?;
        let Prepared { space, monitor, n_rows, .. } = data;
        let mut order: Vec<u32> = (0..*n_rows as u32).collect();
        order.sort_by_key(|&row| (space.class(row), plan.group(row), row));
        let pairs = AllPairs::new(&data.table, space, order)?;
        let mut positions = vec![0; *n_rows];
        (0..).zip(&pairs.numbers).for_each(|(position, &row)| positions[row as usize] = position);
        let run = Run { data, plan, pairs: &pairs, positions: &positions, rule: self.rule };
        let mean = match self.rule {
            NeighborhoodRule::Surf | NeighborhoodRule::SurfStar => Some(Thresholds::around_mean(run.all_pairs()?)),
            _ => None,
        };
        monitor.enter(Phase::Summing, blocks.iter().map(|(_, queries)| queries.len() as u64).sum());
        blocks.par_iter().try_for_each_init(
            || run.buffers(),
            |buffers, &(key, queries)| {
                let mut block = plan.block_of_width(queries, pairs.width);
                for queries in queries.chunks(TOGETHER) {
                    monitor.check()?;
                    run.add(queries, mean.as_ref(), &mut block, buffers);
                    monitor.advance(queries.len() as u64);
                }
                checkpoint.add(key, block.with_features(&pairs.columns).finish())
            },
        )
    }

    fn rows(&self, data: &Prepared<'_>, _: &[u32]) -> Result<Vec<u32>> {
        Ok((0..data.n_rows as u32).collect())
    }
}

impl Radius {
    fn check_size(&self, data: &Prepared<'_>, plan: &Plan) -> Result<()> {
        let (n, name) = (data.n_rows, self.rule.name());
        check(
            n <= MOST_ROWS,
            format!(
                "neighborhood: \"{name}\" measures all pairs of at most {MOST_ROWS} rows, there are {n}; use \"nearest\""
            ),
        )?;
        let held = match &data.table {
            Table::Held(rows) => size_of_val(rows.values()),
            _ => 0,
        };
        let pairs = AllPairs::bytes(&data.space, n);
        let units = plan.outline.n_vectors() / plan.outline.schemes.len();
        let sums = (plan.outline.n_groups() + 2) * units * 8 * (data.space.shapes.len() + 16);
        let thread = n * (8 * (TOGETHER + 1) + 2 * 4 + 8 * units) + sums;
        let need = pairs.saturating_add(held).saturating_add(rayon::current_num_threads() * thread);
        check(
            need <= data.limits.all,
            format!(
                "neighborhood: \"{name}\" holds all rows to measure all pairs, which needs {} MiB; {} MiB are free; raise \
                 memory_limit, or use \"nearest\"",
                need.div_ceil(1 << 20),
                data.limits.all >> 20
            ),
        )
    }
}

/// `distance_key` of a distance that is at most 1, for loops: adding 2⁵² rounds half to even, without a call.
#[inline(always)]
fn key(sum: f64, n_features: usize) -> u64 {
    const WHOLE: f64 = (1u64 << 52) as f64;
    (sum / n_features as f64 * DECIMALS + WHOLE).to_bits() - WHOLE.to_bits()
}

/// Sets `list` to the positions whose keys are `wanted`, ascending, without those `excluded`.
#[inline(always)]
fn select(keys: &[u64], excluded: &[usize], list: &mut Vec<u32>, wanted: impl Fn(u64) -> bool) {
    // Without branches: which keys are wanted cannot be predicted.
    list.resize(keys.len() + 1, 0);
    let mut n = 0;
    for (row, &key) in (0..).zip(keys) {
        list[n] = row;
        n += usize::from(wanted(key));
    }
    list.truncate(n);
    for row in excluded {
        if let Ok(place) = list.binary_search(&(*row as u32)) {
            list.remove(place);
        }
    }
}

/// What the queries of a run have in common.
struct Run<'a> {
    data: &'a Prepared<'a>,
    plan: &'a Plan,
    pairs: &'a AllPairs,
    /// n_rows; the position of each row.
    positions: &'a [u32],
    rule: NeighborhoodRule,
}

impl Run<'_> {
    fn buffers(&self) -> Buffers {
        let outline = &self.plan.outline;
        let n_units = outline.n_vectors() / outline.schemes.len();
        Buffers {
            distances: Vec::new(),
            keys: Vec::new(),
            excluded: Vec::new(),
            lists: Default::default(),
            weights: Vec::new(),
            sums: ListSums::new(outline.n_groups().max(1), n_units, self.pairs.width),
        }
    }

    /// Sets `keys` to the distances of query number `number` of those measured, in units of 10⁻¹².
    fn keys(&self, distances: &[[f64; TOGETHER]], number: usize, keys: &mut Vec<u64>) {
        let n_features = self.data.space.shapes.len();
        keys.clear();
        keys.extend(distances.iter().map(|distances| key(distances[number], n_features)));
    }

    /// The moments of the distances of all pairs.
    fn all_pairs(&self) -> Result<Moments> {
        let Run { pairs, data, .. } = self;
        let (n, n_features, arch) = (pairs.len(), data.space.shapes.len(), Arch::new());
        data.monitor.enter(Phase::Searching, n as u64);
        let step = TOGETHER * PASSED;
        let starts: Vec<usize> = (0..n).step_by(step).collect();
        let moments = starts.into_par_iter().map_init(Vec::new, |distances, first| {
            data.monitor.check()?;
            let mut moments = Moments::default();
            for start in (first..n.min(first + step)).step_by(TOGETHER) {
                let queries: Vec<usize> = (start..n.min(start + TOGETHER)).collect();
                pairs.distances(arch, &queries, start..n, distances);
                for (row, distances) in (start..).zip(&*distances) {
                    for (&query, &sum) in queries.iter().zip(distances) {
                        if query < row && !pairs.is_excluded(query, row) {
                            moments.count += 1;
                            moments.sum += u128::from(key(sum, n_features));
                        }
                    }
                }
            }
            data.monitor.advance(step as u64);
            Ok(moments)
        });
        moments.try_reduce(Moments::default, |a, b| Ok(a.join(b)))
    }

    /// Adds the lists of at most [`TOGETHER`] queries to `block`.
    fn add(&self, queries: &[u32], mean: Option<&Thresholds>, block: &mut Block, buffers: &mut Buffers) {
        let Run { pairs, positions, .. } = self;
        let (n, arch) = (pairs.len(), Arch::new());
        let positions: Vec<usize> = queries.iter().map(|&query| positions[query as usize] as usize).collect();
        pairs.distances(arch, &positions, 0..n, &mut buffers.distances);
        for (number, &query) in positions.iter().enumerate() {
            let Buffers { distances, keys, excluded, lists: [near, far], .. } = buffers;
            self.keys(distances, number, keys);
            pairs.excluded(query, excluded);
            let own = || Thresholds::beyond_half_deviation(Moments::new(keys, excluded));
            let thresholds = mean.cloned().unwrap_or_else(own);
            select(keys, excluded, near, |key| key < thresholds.near);
            if self.rule.counts_far() {
                select(keys, excluded, far, |key| key >= thresholds.far);
            }
            for (scheme, kind) in self.plan.outline.schemes.iter().enumerate() {
                let rows = std::mem::take(&mut buffers.lists[usize::from(*kind == Scheme::Far)]);
                if rows.is_empty() && matches!(self.plan.kind, Kind::Distances(..)) {
                    block.skip_query(scheme);
                }
                let class = |row: &u32| self.data.space.class(pairs.numbers[*row as usize]);
                for rows in rows.chunk_by(|a, b| class(a) == class(b)) {
                    self.add_list((query, number), rows, scheme, block, buffers);
                }
                buffers.lists[usize::from(*kind == Scheme::Far)] = rows;
            }
        }
    }

    /// Adds the rows of a class that count for a query; `number` is its place among the measured ones.
    fn add_list(
        &self,
        (query, number): (usize, usize),
        rows: &[u32],
        scheme: usize,
        block: &mut Block,
        Buffers { distances, weights, sums, .. }: &mut Buffers,
    ) {
        let Run { data, plan, pairs, .. } = self;
        let (space, n_features) = (&data.space, data.space.shapes.len() as f64);
        let n_units = plan.outline.n_vectors() / plan.outline.schemes.len();
        let query_row = pairs.numbers[query];
        let group = |row: &u32| plan.group(pairs.numbers[*row as usize]);
        for rows in rows.chunk_by(|a, b| group(a) == group(b)) {
            weights.clear();
            weights.resize(rows.len() * n_units, 0.0);
            let mut missed = 0.0;
            for (&row, weights) in rows.iter().zip(weights.chunks_exact_mut(n_units)) {
                let other = pairs.numbers[row as usize];
                let classes = [space.class(other), space.class(query_row)];
                let distance = distances[row as usize][number] / n_features;
                missed += 1.0 - plan.influenced_units((query_row, other), classes, distance, weights);
            }
            let sums = sums.group(group(&rows[0]));
            sums.add_weights(rows.len(), weights, missed);
            pairs.add_differences(Arch::new(), query, rows, weights, &mut sums.vectors);
        }
        block.add_list(scheme, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::{Moments, Thresholds, key, select};
    use ferrank_neighbors::sink::{DECIMALS, distance_key};

    fn moments(keys: &[u64]) -> Moments {
        Moments::new(keys, &[])
    }

    #[test]
    fn keys_are_those_of_the_search() {
        let halves = [0.0, 0.5, 1.5, 2.5, 1e12 - 0.5].map(|key| key / DECIMALS * 3.0);
        let sums = (0..3000).map(|n| f64::from(n) / 1000.0).chain(halves);
        sums.for_each(|sum| assert_eq!(key(sum, 3), distance_key(sum, 3), "{sum}"));
    }

    #[test]
    fn excluded_rows_do_not_count() {
        let keys = [4, 0, 9, 2, 3];
        let Moments { count, sum, squares } = Moments::new(&keys, &[1, 2]);
        assert_eq!((count, sum, squares), (3, 9, 29));
        let mut list = Vec::new();
        select(&keys, &[1, 2], &mut list, |key| key < 4);
        assert_eq!(list, [3, 4]);
    }

    #[test]
    fn a_distance_equal_to_the_mean_is_neither_near_nor_far() {
        assert_eq!(Thresholds::around_mean(moments(&[1, 2, 3])), Thresholds { near: 2, far: 3 });
        assert_eq!(Thresholds::around_mean(moments(&[1, 2])), Thresholds { near: 2, far: 2 });
        assert_eq!(Thresholds::around_mean(moments(&[])), Thresholds { near: 0, far: 1 });
    }

    #[test]
    fn the_dead_band_is_half_a_standard_deviation_wide_on_both_sides() {
        // Mean 4, standard deviation 2: near are those below 3, far those above 5.
        assert_eq!(Thresholds::beyond_half_deviation(moments(&[2, 6])), Thresholds { near: 3, far: 6 });
        // Mean 4, variance 2/3: half a standard deviation is 0.41.
        assert_eq!(Thresholds::beyond_half_deviation(moments(&[3, 4, 5])), Thresholds { near: 4, far: 5 });
        assert_eq!(Thresholds::beyond_half_deviation(moments(&[7, 7, 7])), Thresholds { near: 7, far: 8 });
        assert_eq!(Thresholds::beyond_half_deviation(moments(&[0, 0])), Thresholds { near: 0, far: 1 });
        assert_eq!(Thresholds::beyond_half_deviation(moments(&[])), Thresholds { near: 0, far: 1 });
    }

    #[test]
    fn thresholds_of_many_large_distances_do_not_overflow() {
        let n = super::MOST_ROWS as u64;
        let key = 1_000_000_000_000u128;
        let all = Moments { count: n, sum: u128::from(n) * key, squares: u128::from(n) * key * key };
        let expected = Thresholds { near: key as u64, far: key as u64 + 1 };
        assert_eq!(Thresholds::beyond_half_deviation(all), expected);
    }
}
