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
//! Where rows have weights, a pair counts in the mean of all pairs with the product of their weights, a row in the mean and
//! the standard deviation of a query, and among its near or far rows, with its own. Means are then no fractions of whole
//! numbers: thresholds are rounded to 12 decimals, and a distance equal to a rounded threshold is neither near nor far.
//!
//! Where scikit-rebate (0.8) departs: its SURF and SURF* include the n distances of a row from itself in the mean; it
//! weighs misses of several classes by the squared share of the class among the misses, not by its prior; rows of numeric
//! targets are hits within a standard deviation of the target, misses beyond, whereas here RReliefF's probabilities are
//! those of near pairs; far rows of MultiSURF* count 1 − difference, which adds the same constant to all features for each
//! row that has far hits or far misses alone; numeric features beside nominal ones differ by 1 beyond a standard deviation;
//! and missing values are left out.
//!
//! Where no value is missing, rows have the same weight and so have features, distances in [fixed
//! point](ferrank_neighbors::fixed) tell which rows count if all are farther from the thresholds than both can be off. Else
//! the distances of the query are measured in f64, as for all queries with missing values, so that the same rows count.
//!
//! In classification, differences that are added up are [of rounded
//! values](ferrank_neighbors::all_pairs::AllPairs::with_rounded_sums) in features without missing values.
//!
//! Standard errors take the thresholds as given.
//!
//! Memory: as [`AllPairs`], and for each thread the distances of 16 queries, the rows that count for them, and the sums of
//! the lists that are added up together: 1 MiB, or one list.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::rule::{Neighborhood, Queries};
use crate::outline::Scheme;
use crate::params::NeighborhoodRule;
use crate::plan::{Kind, Plan};
use crate::prepared::Prepared;
use crate::sums::{Block, ListSums};
use ferrank_neighbors::all_pairs::{AllPairs, Differences, TOGETHER};
use ferrank_neighbors::fixed::FixedRows;
use ferrank_neighbors::layout::LANES;
use ferrank_neighbors::ranks::without_ones;
use ferrank_neighbors::sink::DECIMALS;
use ferrank_neighbors::table::Table;
use ferrank_ranking::Checkpoint;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Phase;

/// Most rows: the square of a sum of so many distances, in units of 10⁻¹², times four is a number of 128 bits.
const MOST_ROWS: usize = 4_000_000;
/// Groups of queries between looks at the request to stop, in the first pass over all pairs.
const PASSED: usize = 16;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

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

/// Weights of pairs, and sums over the distances in units of 10⁻¹² from some distance in their midst, each with its weight.
#[derive(Debug, Clone, Copy, Default)]
struct WeightedMoments {
    weight: f64,
    sum: f64,
}

impl WeightedMoments {
    fn add(&mut self, weight: f64, apart: f64) {
        self.weight += weight;
        self.sum += weight * apart;
    }

    fn join(self, other: WeightedMoments) -> WeightedMoments {
        WeightedMoments { weight: self.weight + other.weight, sum: self.sum + other.sum }
    }

    /// The mean; 0 without pairs.
    fn mean(self) -> f64 {
        if self.weight > 0.0 { self.sum / self.weight } else { 0.0 }
    }
}

/// Keys of distances that are near, and of those that are far.
#[derive(Debug, Clone, PartialEq)]
struct Thresholds {
    /// Below this key.
    near: u64,
    /// From this key on; not read unless the rule [counts far rows](NeighborhoodRule::counts_far).
    far: u64,
}

impl Thresholds {
    /// Distances below the mean, and above it.
    fn around_mean(Moments { count, sum, .. }: Moments) -> Self {
        let count = u128::from(count.max(1));
        Thresholds { near: sum.div_ceil(count) as u64, far: (sum / count + 1) as u64 }
    }

    /// Distances below `near`, and above `far`, which are no whole numbers.
    fn rounded(near: f64, far: f64) -> Self {
        Thresholds { near: near.round() as u64, far: far.round() as u64 + 1 }
    }

    /// As [`beyond_half_deviation`](Thresholds::beyond_half_deviation) of the distances `keys`, which have these `weights`.
    fn beyond_half_weighted_deviation(keys: &[u64], weights: &[f64]) -> Self {
        // Sums of differences from one of the distances are exact where all are equal.
        let pivot = keys[keys.len() / 2] as f64;
        let moments = |value: &dyn Fn(f64) -> f64| {
            let mut moments = WeightedMoments::default();
            keys.iter().zip(weights).for_each(|(&key, &weight)| moments.add(weight, value(key as f64)));
            moments.mean()
        };
        let mean = pivot + moments(&|key| key - pivot);
        let half = moments(&|key| (key - mean) * (key - mean)).sqrt() / 2.0;
        Thresholds::rounded(mean - half, mean + half)
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

/// Bytes of the lists that are added up together, if there are several.
const LISTS_BYTES: usize = 1 << 20;

/// What a thread reuses from query to query.
struct Buffers {
    selected: Selected,
    chosen: Chosen,
    weights: Vec<f64>,
    /// As many as are added up together.
    sums: Vec<ListSums>,
}

/// The rows that count for some queries.
#[derive(Default)]
struct Chosen {
    /// Positions of near rows, and of far ones, query after query.
    rows: [Vec<u32>; 2],
    /// n_queries; where the rows of each query end.
    ends: [Vec<usize>; 2],
}

impl Chosen {
    fn clear(&mut self) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.ends.iter_mut().for_each(Vec::clear);
    }

    fn push(&mut self, lists: &[Vec<u32>; 2]) {
        for ((rows, ends), list) in self.rows.iter_mut().zip(&mut self.ends).zip(lists) {
            rows.extend_from_slice(list);
            ends.push(rows.len());
        }
    }

    /// The near rows of each query (`which` = 0), or the far ones (1).
    fn of_queries(&self, which: usize) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends[which].iter().copied());
        starts.zip(&self.ends[which]).map(move |(start, &end)| &self.rows[which][start..end])
    }
}

/// The rows of a class that count for a query.
struct ClassList<'a> {
    /// Position of the query.
    query: usize,
    /// Place of the query among those measured.
    number: usize,
    class: usize,
    rows: &'a [u32],
}

/// Distances of some queries, and the rows that count for one of them.
#[derive(Default)]
struct Selected {
    distances: Vec<[f64; TOGETHER]>,
    /// Distances in fixed point.
    fixed: Vec<f64>,
    keys: Vec<u64>,
    /// By position, 0 for the excluded rows; empty where all rows have the same weight.
    weights: Vec<f64>,
    excluded: Vec<usize>,
    /// Positions of near rows, and of far ones.
    lists: [Vec<u32>; 2],
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
        let pairs = match plan.kind {
            Kind::Classes { .. } => pairs.with_rounded_sums(plan.has_equal_weights()),
            Kind::Distances(..) => pairs,
        };
        let mut positions = vec![0; *n_rows];
        (0..).zip(&pairs.numbers).for_each(|(position, &row)| positions[row as usize] = position);
        let selector = Selector { rule: self.rule, n_rows: *n_rows, divisor: space.divisor() };
        // Relative to the largest, so that no product of two overflows.
        let largest = plan.weights.iter().copied().fold(0.0, f64::max);
        let of_positions = pairs.numbers.iter().filter_map(|&row| plan.weights.get(row as usize));
        let weights = without_ones(of_positions.map(|weight| weight / largest).collect());
        let of_row = |&row: &u32| (space.class(row), plan.group(row));
        let mut end = 0;
        let segments = pairs.numbers.chunk_by(|a, b| of_row(a) == of_row(b)).map(|rows| {
            let ((class, group), n_rows) = (of_row(&rows[0]), rows.len());
            end += n_rows as u32;
            Segment { end, n_rows, class, group }
        });
        let segments: Vec<Segment> = segments.collect();
        let run =
            Run { data, plan, pairs: &pairs, positions: &positions, weights: &weights, segments: &segments, selector };
        let mean = match self.rule {
            NeighborhoodRule::Surf | NeighborhoodRule::SurfStar => Some(run.around_mean()?),
            NeighborhoodRule::Multisurf | NeighborhoodRule::MultisurfStar | NeighborhoodRule::Nearest => None,
        };
        monitor.enter(Phase::Summing, blocks.iter().map(|(_, queries)| queries.len() as u64).sum());
        blocks.par_iter().try_for_each_init(
            || run.buffers(),
            |buffers, &(key, queries)| {
                let mut block = plan.block_of_width(queries, pairs.width);
                for queries in queries.chunks(if run.fixed().is_some() { LANES } else { TOGETHER }) {
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
        let thread = n * (8 * (LANES + TOGETHER + 1) + 4 * (LANES + 2) + 8 * units) + sums + LISTS_BYTES;
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
fn key(sum: f64, divisor: f64) -> u64 {
    const WHOLE: f64 = (1u64 << 52) as f64;
    (sum / divisor * DECIMALS + WHOLE).to_bits() - WHOLE.to_bits()
}

/// Mean and standard deviation of `distances`, less those at the positions `excluded`.
#[inline(always)]
fn mean_and_deviation(distances: &[f64], excluded: &[usize]) -> (f64, f64) {
    const SUMS: usize = 8;
    // Differences from one of the distances have no large part in common that rounding errors would depend on.
    let pivot = distances[distances.len() / 2];
    let (mut sums, mut squares) = ([0.0; SUMS], [0.0; SUMS]);
    let (whole, rest) = distances.as_chunks::<SUMS>();
    for distances in whole {
        // As in the kernel, new sums at each step stay in registers.
        let (mut next, mut next_squares) = (sums, squares);
        for n in 0..SUMS {
            let apart = distances[n] - pivot;
            next[n] = sums[n] + apart;
            next_squares[n] = squares[n] + apart * apart;
        }
        (sums, squares) = (next, next_squares);
    }
    for ((sum, square), distance) in sums.iter_mut().zip(&mut squares).zip(rest) {
        let apart = distance - pivot;
        *sum += apart;
        *square += apart * apart;
    }
    let (mut sum, mut square) = (sums.iter().sum::<f64>(), squares.iter().sum::<f64>());
    for &row in excluded {
        let apart = distances[row] - pivot;
        sum -= apart;
        square -= apart * apart;
    }
    let n = (distances.len() - excluded.len()).max(1) as f64;
    (pivot + sum / n, (square / n - (sum / n).powi(2)).max(0.0).sqrt())
}

/// Sets `list` to the positions whose keys are `wanted`, ascending, without those `excluded`.
fn select(keys: &[u64], excluded: &[usize], list: &mut Vec<u32>, wanted: impl Fn(u64) -> bool) {
    // Without branches: which keys are wanted cannot be predicted.
    list.resize(keys.len() + 1, 0);
    let mut n = 0;
    for (row, &key) in (0..).zip(keys) {
        list[n] = row;
        n += usize::from(wanted(key));
    }
    list.truncate(n);
    remove(list, excluded);
}

/// Sets `list` to the positions whose distances are below `threshold`, or above it with `ABOVE`, ascending, without those
/// `excluded`.
///
/// Only the rows that are selected are stored: MultiSURF of 5,000 x 100 takes 0.95 of the time.
#[inline(always)]
fn select_beyond<S: Simd, const ABOVE: bool>(
    simd: S,
    distances: &[f64],
    excluded: &[usize],
    list: &mut Vec<u32>,
    threshold: f64,
) {
    list.resize(distances.len() + 1, 0);
    let mut n = 0;
    for (start, distances) in (0..).step_by(WORD).zip(distances.chunks(WORD)) {
        let mut bits = 0;
        let (vectors, rest) = S::as_simd_f64s(distances);
        // Masks of AVX-512 are bits.
        if size_of::<S::m64s>() == 1 && rest.is_empty() {
            let threshold = simd.splat_f64s(threshold);
            for (place, &distances) in vectors.iter().enumerate() {
                let is_wanted = match ABOVE {
                    true => simd.less_than_f64s(threshold, distances),
                    false => simd.less_than_f64s(distances, threshold),
                };
                bits |= u64::from(pulp::bytemuck::cast::<S::m64s, u8>(is_wanted)) << (place * S::F64_LANES);
            }
        } else {
            for (place, &distance) in distances.iter().enumerate() {
                let is_wanted = if ABOVE { distance > threshold } else { distance < threshold };
                bits |= u64::from(is_wanted) << place;
            }
        }
        let found = &mut list[n..][..bits.count_ones() as usize];
        for row in &mut *found {
            *row = start + bits.trailing_zeros();
            bits &= bits - 1;
        }
        n += found.len();
    }
    list.truncate(n);
    remove(list, excluded);
}

/// Removes those `excluded` from a list that ascends.
fn remove(list: &mut Vec<u32>, excluded: &[usize]) {
    for row in excluded {
        if let Ok(place) = list.binary_search(&(*row as u32)) {
            list.remove(place);
        }
    }
}

/// Tells which rows count.
#[derive(Clone, Copy)]
struct Selector {
    rule: NeighborhoodRule,
    n_rows: usize,
    /// What turns a sum of differences into a distance.
    divisor: f64,
}

impl Selector {
    /// Selects the rows that count for query number `number` of those measured.
    fn select(&self, number: usize, mean: Option<&Thresholds>, buffers: &mut Selected) {
        let Selected { distances, keys, weights, excluded, lists: [near, far], .. } = buffers;
        keys.clear();
        keys.extend(distances.iter().map(|distances| key(distances[number], self.divisor)));
        let own = || match weights.is_empty() {
            true => Thresholds::beyond_half_deviation(Moments::new(keys, excluded)),
            false => Thresholds::beyond_half_weighted_deviation(keys, weights),
        };
        let thresholds = mean.cloned().unwrap_or_else(own);
        select(keys, excluded, near, |key| key < thresholds.near);
        if self.rule.counts_far() {
            select(keys, excluded, far, |key| key >= thresholds.far);
        }
    }

    /// Selects the rows that count for a query by distances in fixed point. Returns false if some of these are in doubt.
    fn select_in_fixed_point(
        self,
        fixed: &FixedRows,
        query: (usize, usize),
        mean: Option<&Thresholds>,
        buffers: &mut Selected,
    ) -> bool {
        Arch::new().dispatch(Decide { selector: self, fixed, query, mean, buffers })
    }

    #[inline(always)]
    fn decide<S: Simd>(
        self,
        simd: S,
        fixed: &FixedRows,
        (query, number): (usize, usize),
        mean: Option<&Thresholds>,
        buffers: &mut Selected,
    ) -> bool {
        /// Rounding errors of distances in f64, of means and deviations, and of distances to 12 decimals, for a feature.
        const ROUNDING: f64 = 1e-9;
        let Selected { fixed: all, excluded, lists: [near, far], .. } = buffers;
        let divisor = self.divisor;
        let distances = &all[number * fixed.stride()..][..self.n_rows];
        let (thresholds, times) = match mean {
            // Halfway to the key below.
            Some(mean) => ([mean.near, mean.far].map(|key| (key as f64 - 0.5) / DECIMALS * divisor), 1.0),
            // If distances are off by at most e, the mean is, too, and half of the deviation by e / 2.
            None => {
                let (mean, deviation) = mean_and_deviation(distances, excluded);
                ([mean - deviation / 2.0, mean + deviation / 2.0], 2.5)
            }
        };
        let doubt = times * fixed.error(query) + ROUNDING * divisor;
        let is_sure = |threshold: f64| {
            let (low, high) = (threshold - doubt, threshold + doubt);
            distances.iter().map(|&distance| u32::from(distance >= low) & u32::from(distance <= high)).sum::<u32>() == 0
        };
        if !is_sure(thresholds[0]) || (self.rule.counts_far() && !is_sure(thresholds[1])) {
            return false;
        }
        select_beyond::<S, false>(simd, distances, excluded, near, thresholds[0]);
        if self.rule.counts_far() {
            select_beyond::<S, true>(simd, distances, excluded, far, thresholds[1]);
        }
        true
    }
}

/// Selects rows by distances in fixed point, in loops that are compiled for the vector instructions of the machine.
struct Decide<'a> {
    selector: Selector,
    fixed: &'a FixedRows,
    query: (usize, usize),
    mean: Option<&'a Thresholds>,
    buffers: &'a mut Selected,
}

impl WithSimd for Decide<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Decide { selector, fixed, query, mean, buffers } = self;
        selector.decide(simd, fixed, query, mean, buffers)
    }
}

/// What the queries of a run have in common.
struct Run<'a> {
    data: &'a Prepared<'a>,
    plan: &'a Plan,
    pairs: &'a AllPairs,
    /// n_rows; the position of each row.
    positions: &'a [u32],
    /// By position; relative to the largest, empty where all rows have the same weight.
    weights: &'a [f64],
    /// By position.
    segments: &'a [Segment],
    selector: Selector,
}

/// Rows that stand together, of one class and group.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The position after the last one.
    end: u32,
    n_rows: usize,
    class: usize,
    group: usize,
}

impl Run<'_> {
    fn buffers(&self) -> Buffers {
        let outline = &self.plan.outline;
        let (n_groups, n_units) = (outline.n_groups().max(1), outline.n_vectors() / outline.schemes.len());
        let width = self.pairs.width;
        let weights = if self.plan.has_equal_weights() { 0 } else { size_of::<f64>() * n_units * self.pairs.len() };
        let most = LISTS_BYTES / (ListSums::bytes(n_groups, n_units, width) + weights);
        let n_lists = most.clamp(1, LANES * self.n_classes());
        Buffers {
            selected: Selected::default(),
            chosen: Chosen::default(),
            weights: Vec::new(),
            sums: (0..n_lists).map(|_| ListSums::new(n_groups, n_units, width)).collect(),
        }
    }

    fn n_classes(&self) -> usize {
        self.segments.chunk_by(|a, b| a.class == b.class).count()
    }

    /// The thresholds around the mean of the distances of all pairs.
    fn around_mean(&self) -> Result<Thresholds> {
        let (weights, mut first) = (self.weights, Vec::new());
        if weights.is_empty() {
            let add = |moments: &mut Moments, _: (usize, usize), key: u64| {
                moments.count += 1;
                moments.sum += u128::from(key);
            };
            let moments: Vec<Moments> = self.over_pairs(add)?;
            return Ok(Thresholds::around_mean(moments.into_iter().fold(Moments::default(), Moments::join)));
        }
        // As in the thresholds of a query.
        self.pairs.distances(Arch::new(), &[0], 0..self.pairs.len(), &mut first);
        let pivot = first.last().map_or(0.0, |sums| key(sums[0], self.data.space.divisor()) as f64);
        let add = |moments: &mut WeightedMoments, (query, row): (usize, usize), key: u64| {
            moments.add(weights[query] * weights[row], key as f64 - pivot);
        };
        // In the order of the rows, so that the sum has the same bits for any number of threads.
        let moments: Vec<WeightedMoments> = self.over_pairs(add)?;
        let mean = pivot + moments.into_iter().fold(WeightedMoments::default(), WeightedMoments::join).mean();
        Ok(Thresholds::rounded(mean, mean))
    }

    /// What `add` makes of the key of the distance of each pair, in parts that together are all pairs.
    fn over_pairs<M: Default + Send>(&self, add: impl Fn(&mut M, (usize, usize), u64) + Sync) -> Result<Vec<M>> {
        let Run { pairs, data, .. } = self;
        let (n, divisor, arch) = (pairs.len(), data.space.divisor(), Arch::new());
        data.monitor.enter(Phase::Searching, n as u64);
        let step = TOGETHER * PASSED;
        let starts: Vec<usize> = (0..n).step_by(step).collect();
        let moments = starts.into_par_iter().map_init(Vec::new, |distances, first| {
            data.monitor.check()?;
            let mut moments = M::default();
            for start in (first..n.min(first + step)).step_by(TOGETHER) {
                let queries: Vec<usize> = (start..n.min(start + TOGETHER)).collect();
                pairs.distances(arch, &queries, start..n, distances);
                for (row, distances) in (start..).zip(&*distances) {
                    for (&query, &sum) in queries.iter().zip(distances) {
                        if query < row && !pairs.is_excluded(query, row) {
                            add(&mut moments, (query, row), key(sum, divisor));
                        }
                    }
                }
            }
            data.monitor.advance(step as u64);
            Ok(moments)
        });
        moments.collect()
    }

    /// The rows in fixed point, where no distance is needed but to tell which rows count.
    fn fixed(&self) -> Option<&FixedRows> {
        self.pairs.fixed.as_ref().filter(|_| self.plan.influence.is_none() && self.weights.is_empty())
    }

    /// Adds the lists of some queries to `block`: at most [`LANES`] where rows are in fixed point, else [`TOGETHER`].
    fn add(&self, queries: &[u32], mean: Option<&Thresholds>, block: &mut Block, buffers: &mut Buffers) {
        let Run { pairs, positions, selector, .. } = self;
        let (n, arch) = (pairs.len(), Arch::new());
        let positions: Vec<usize> = queries.iter().map(|&query| positions[query as usize] as usize).collect();
        let Buffers { selected, chosen, .. } = &mut *buffers;
        match self.fixed() {
            Some(fixed) => fixed.distances(arch, &positions, &mut selected.fixed),
            None => pairs.distances(arch, &positions, 0..n, &mut selected.distances),
        }
        chosen.clear();
        for (number, &query) in positions.iter().enumerate() {
            pairs.excluded(query, &mut selected.excluded);
            selected.weights.clear();
            selected.weights.extend_from_slice(self.weights);
            for &row in selected.excluded.iter().filter(|_| !self.weights.is_empty()) {
                selected.weights[row] = 0.0;
            }
            match self.fixed() {
                // Where distances in fixed point decide, no pair needs its distance in f64.
                Some(fixed) => {
                    if !selector.select_in_fixed_point(fixed, (query, number), mean, selected) {
                        pairs.distances(arch, &[query], 0..n, &mut selected.distances);
                        selector.select(0, mean, selected);
                    }
                }
                None => selector.select(number, mean, selected),
            }
            chosen.push(&selected.lists);
        }
        let chosen = std::mem::take(&mut buffers.chosen);
        for (scheme, kind) in self.plan.outline.schemes.iter().enumerate() {
            let place = usize::from(*kind == Scheme::Far);
            let mut lists: Vec<ClassList<'_>> = Vec::with_capacity(positions.len() * self.n_classes());
            for (number, (&query, mut rest)) in positions.iter().zip(chosen.of_queries(place)).enumerate() {
                for of_class in self.segments.chunk_by(|a, b| a.class == b.class) {
                    let end = of_class[of_class.len() - 1].end;
                    let (rows, after) = rest.split_at(rest.partition_point(|&row| row < end));
                    lists.push(ClassList { query, number, class: of_class[0].class, rows });
                    rest = after;
                }
            }
            for lists in lists.chunks(buffers.sums.len()) {
                self.add_lists(lists, scheme, block, buffers);
            }
        }
        buffers.chosen = chosen;
    }

    /// Adds up lists and adds their sums to `block`, in order.
    fn add_lists(&self, lists: &[ClassList<'_>], scheme: usize, block: &mut Block, buffers: &mut Buffers) {
        let mut rest: Vec<&[u32]> = lists.iter().map(|list| list.rows).collect();
        for of_class in self.segments.chunk_by(|a, b| a.class == b.class) {
            if lists.iter().any(|list| list.class == of_class[0].class) {
                for segment in of_class {
                    self.add_segment(segment, lists, &mut rest, buffers);
                }
            }
        }
        for (list, sums) in lists.iter().zip(&mut buffers.sums) {
            let weight = self.plan.weight(self.pairs.numbers[list.query]);
            if !list.rows.is_empty() {
                block.add_list(scheme, weight, sums);
            } else if matches!(self.plan.kind, Kind::Distances(..)) {
                block.skip_query(scheme, weight);
            }
        }
    }

    /// Adds the rows of a segment to the sums of `lists`, and takes them off the `rest` of each list.
    fn add_segment(
        &self,
        segment: &Segment,
        lists: &[ClassList<'_>],
        rest: &mut [&[u32]],
        Buffers { selected: Selected { distances, .. }, weights, sums, .. }: &mut Buffers,
    ) {
        let Run { plan, pairs, .. } = self;
        let n_units = plan.outline.n_vectors() / plan.outline.schemes.len();
        weights.clear();
        let mut ends = Vec::with_capacity(lists.len());
        let mut of_lists = Vec::with_capacity(lists.len());
        for ((list, rest), sums) in
            lists.iter().zip(rest).zip(sums).filter(|((list, _), _)| list.class == segment.class)
        {
            let most = rest.len().min(segment.n_rows);
            let (rows, after) = rest.split_at(rest[..most].partition_point(|&row| row < segment.end));
            *rest = after;
            if rows.is_empty() {
                continue;
            }
            let start = weights.len();
            let (mass, missed) = self.weigh((list, rows), distances, n_units, weights);
            let sums = sums.group(segment.group);
            sums.add_weights((rows.len(), mass), &weights[start..], missed);
            ends.push(start..weights.len());
            of_lists.push((list.query, rows, &mut sums.vectors));
        }
        let mut of_lists: Vec<Differences<'_>> = (of_lists.into_iter().zip(ends))
            .map(|((query, rows, sums), of_list)| Differences { query, rows, weights: &weights[of_list], sums })
            .collect();
        pairs.add_differences(Arch::new(), &mut of_lists, n_units);
    }

    /// Adds the weights of some rows of a list to `weights`: of each row, or of all if they are the same. Returns the sum of
    /// the weights of the rows, and what the influence of the pairs misses to 1.
    fn weigh(
        &self,
        (list, rows): (&ClassList<'_>, &[u32]),
        distances: &[[f64; TOGETHER]],
        n_units: usize,
        weights: &mut Vec<f64>,
    ) -> (f64, f64) {
        let Run { data, plan, pairs, .. } = self;
        let (space, divisor) = (&data.space, data.space.divisor());
        let query_row = pairs.numbers[list.query];
        let classes = [list.class, space.class(query_row)];
        let start = weights.len();
        if self.plan.has_equal_weights() {
            weights.resize(start + n_units, 0.0);
            plan.influenced_units((query_row, query_row), classes, 0.0, &mut weights[start..]);
            return (rows.len() as f64, 0.0);
        }
        weights.resize(start + rows.len() * n_units, 0.0);
        let weights = &mut weights[start..];
        let weight = |row: u32| plan.weight(pairs.numbers[row as usize]);
        let (mut mass, mut missed) = (rows.len() as f64, 0.0);
        for (&row, weights) in rows.iter().zip(weights.chunks_exact_mut(n_units)) {
            let other = pairs.numbers[row as usize];
            let distance = if plan.influence.is_some() { distances[row as usize][list.number] / divisor } else { 0.0 };
            missed += weight(row) * (1.0 - plan.influenced_units((query_row, other), classes, distance, weights));
        }
        if !plan.weights.is_empty() {
            mass = rows.iter().map(|&row| weight(row)).sum();
            for (&row, weights) in rows.iter().zip(weights.chunks_exact_mut(n_units)) {
                weights.iter_mut().for_each(|unit| *unit *= weight(row));
            }
        }
        (mass, missed)
    }
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::{AllPairs, Moments, NeighborhoodRule, Selected, Selector, Thresholds, key, select};
    use ferrank_neighbors::rows::Rows;
    use ferrank_neighbors::sink::{DECIMALS, distance_key};
    use ferrank_neighbors::space::{Shape, Space};
    use ferrank_neighbors::table::Table;

    fn moments(keys: &[u64]) -> Moments {
        Moments::new(keys, &[])
    }

    #[test]
    fn keys_are_those_of_the_search() {
        let halves = [0.0, 0.5, 1.5, 2.5, 1e12 - 0.5].map(|key| key / DECIMALS * 3.0);
        let sums = (0..3000).map(|n| f64::from(n) / 1000.0).chain(halves);
        sums.for_each(|sum| assert_eq!(key(sum, 3.0), distance_key(sum, 3.0), "{sum}"));
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

    /// The shares of queries for which fixed point decides; the rows are those that count by distances in f64.
    fn decided(shapes: &[Shape], rule: NeighborhoodRule, value: impl Fn(usize, f64) -> f64) -> f64 {
        const N: usize = 90;
        let width = shapes.len();
        let uniform = |n: usize| (ferrank_runtime::random::mix([n as u64]) >> 11) as f64 / (1u64 << 53) as f64;
        let mut rows = Rows::with_capacity(N, width);
        let values = rows.add(0..N as u32).iter_mut().enumerate();
        values.for_each(|(at, cell)| *cell = value(at, uniform(at)));
        let space = Space::new(shapes.to_vec(), shapes.iter().map(|_| None).collect(), Vec::new(), 1);
        let pairs = AllPairs::new(&Table::Held(rows), &space, (0..N as u32).rev().collect()).unwrap();
        let fixed = pairs.fixed.as_ref().unwrap();
        let selector = Selector { rule, n_rows: N, divisor: width as f64 };
        let [mut exact, mut found] = [Selected::default(), Selected::default()];
        let mut n_decided = 0;
        for query in 0..N {
            pairs.excluded(query, &mut exact.excluded);
            pairs.excluded(query, &mut found.excluded);
            pairs.distances(Arch::new(), &[query], 0..N, &mut exact.distances);
            selector.select(0, None, &mut exact);
            let mean = match rule {
                NeighborhoodRule::SurfStar => Some(Thresholds::around_mean(Moments::new(&exact.keys, &exact.excluded))),
                _ => None,
            };
            selector.select(0, mean.as_ref(), &mut exact);
            fixed.distances(Arch::new(), &[query], &mut found.fixed);
            if selector.select_in_fixed_point(fixed, (query, 0), mean.as_ref(), &mut found) {
                assert_eq!(found.lists, exact.lists, "{query}");
                n_decided += 1;
            }
        }
        f64::from(n_decided) / N as f64
    }

    #[test]
    fn fixed_point_selects_the_same_rows_or_does_not_decide() {
        for rule in [NeighborhoodRule::Multisurf, NeighborhoodRule::MultisurfStar, NeighborhoodRule::SurfStar] {
            let numbers = [Shape::Numeric; 9];
            let categories = [Shape::Nominal; 9];
            let both = [Shape::Numeric, Shape::Nominal, Shape::Constant];
            assert!(decided(&numbers, rule, |_, value| value) > 0.95);
            assert!(decided(&numbers, rule, |_, value| value * 1e-3) > 0.95);
            assert!(decided(&categories, rule, |_, value| (value * 4.0).floor()) > 0.5);
            decided(&both, rule, |at, value| [value, (value * 3.0).floor(), 0.0][at % 3]);
            // Many ties, duplicates, values that vanish in fixed point, and rows that are all equally far away.
            decided(&numbers, rule, |_, value| (value * 3.0).round() / 3.0);
            decided(&numbers, rule, |at, value| if at / 9 % 2 == 0 { 0.25 } else { value });
            decided(&numbers, rule, |_, value| value * 1e-9);
            decided(&numbers, rule, |at, _| f64::from(at / 9 == at % 9));
            decided(&numbers, rule, |_, _| 0.5);
        }
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
    fn thresholds_by_weights_are_rounded() {
        let found = |keys: &[u64], weights: &[f64]| Thresholds::beyond_half_weighted_deviation(keys, weights);
        assert_eq!(found(&[2, 6], &[1.0, 1.0]), Thresholds { near: 3, far: 6 });
        // As 2, 6, 6, 6: mean 5, standard deviation √3.
        assert_eq!(found(&[2, 6, 900], &[0.25, 0.75, 0.0]), Thresholds { near: 4, far: 7 });
        let equal = 123_456_789_012;
        assert_eq!(
            found(&[equal; 7], &[0.1, 0.7, 0.3, 0.0, 0.9, 0.2, 0.6]),
            Thresholds { near: equal, far: equal + 1 }
        );
        assert_eq!(found(&[5], &[0.0]), Thresholds { near: 5, far: 6 });
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
