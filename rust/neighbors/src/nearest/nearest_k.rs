//! Lists of nearest neighbors, one for each query and class.
//!
//! A list holds the k best rows by (distance, row number), in whatever order rows were pushed; so lists of parts of
//! the data merge into the lists of all. Distances in f32 only choose candidates: a row is kept as long as its
//! distance less its error does not exceed the k-th smallest distance plus its error. Candidates that remain are
//! *refined*: measured in f64, in the order of features, and rounded to 12 decimals.

use std::ops::Range;

use crate::layout::{Error, LANES, Layout, NO_ROW};
use crate::panels::Panels;
use crate::sink::{ExactDistance, distance_key, key_unit};

/// Candidates beside k that a list takes before it is pruned.
const EXTRA: usize = 8;
/// Most candidates for which a list reserves memory at once.
const MOST_RESERVED: usize = 256;

/// Which neighbors a search finds.
///
/// ```
/// use ferrank_neighbors::nearest::{NearestParams, Search};
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::layout_of;
/// # use ferrank_runtime::monitor::Monitor;
///
/// let mut rows = Rows::with_capacity(4, 1);
/// rows.add(0..4).copy_from_slice(&[0.0, 0.75, 0.25, 1.0]);
/// # let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// # let (layout, monitor) = (layout_of(&space), Monitor::default());
/// let of_row_0 = |k, unordered| {
///     let params = NearestParams { k, unordered };
///     let search = Search { space: &space, layout: &layout, params, monitor: &monitor, arch: Default::default() };
///     search.of_all(&rows, 0).map(|found| found.of(0).flatten().copied().collect::<Vec<u32>>())
/// };
/// assert_eq!(of_row_0(2, 0)?, [2, 1]);
/// // Row 0 has three neighbors, not 10.
/// assert_eq!(of_row_0(10, 0)?, [2, 1, 3]);
/// // The same rows, but in any order.
/// let mut found = of_row_0(2, 2)?;
/// found.sort_unstable();
/// assert_eq!(found, [1, 2]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NearestParams {
    /// Neighbors of each class.
    pub k: usize,
    /// How many of the nearest of k may be in any order; the fewer others, the fewer pairs are measured in f64. Lists of
    /// less than k rows are in order.
    pub unordered: usize,
}

impl NearestParams {
    /// How many of the nearest may be in any order in a list of `n` rows, or in the list of the nearest of `n` candidates.
    pub fn n_unordered(self, n: usize) -> usize {
        if n < self.k { 0 } else { self.unordered.min(self.k) }
    }
}

/// The k nearest rows of each class for the queries of some panels.
///
/// ```
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::nearest::{Bounds, NearestK, NearestParams};
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::scan::Scan;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{error_of, layout_of, panels_of};
/// # use ferrank_runtime::monitor::Monitor;
/// # use pulp::Arch;
///
/// // The query has the value 0; the rows come in two parts.
/// let [mut queries, mut first, mut second] = [1, 2, 2].map(|n_rows| Rows::with_capacity(n_rows, 1));
/// queries.add([0]).copy_from_slice(&[0.0]);
/// first.add([0, 1]).copy_from_slice(&[0.0, 0.5]);
/// second.add([2, 3]).copy_from_slice(&[1.0, 0.25]);
/// # let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// # let (layout, monitor, arch) = (layout_of(&space), Monitor::default(), Arch::new());
/// # let scan = Scan { layout: &layout, monitor: &monitor, arch };
/// # let panels = panels_of(&layout, &space, &queries);
/// let (params, error) = (NearestParams { k: 2, unordered: 0 }, |sum| error_of(&layout, sum));
/// let mut lists = [NearestK::new(&layout, &panels, 0..1, params, 1, error)];
/// for rows in [&first, &second] {
///     let row_panels = panels_of(&layout, &space, rows);
///     let exact = DistanceContext { space: &space, queries: &queries, rows };
///     let bounds = Bounds::new(&layout, arch, &panels, &row_panels, 2);
///     scan.offer(exact, [&panels, &row_panels], bounds, &mut lists, |lists| lists.refine_all(exact))?;
/// }
/// // Of all classes, here one; the query itself is no neighbor.
/// let found = lists[0].neighbors().map(|(query, of_classes)| (query, of_classes.flatten().collect::<Vec<u32>>()));
/// assert_eq!(found.collect::<Vec<_>>(), [(0, vec![3, 1])]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct NearestK {
    /// Number of the first panel.
    first_panel: usize,
    params: NearestParams,
    n_classes: usize,
    /// n_queries; row numbers.
    numbers: Vec<u32>,
    /// n_queries
    errors: Vec<Error>,
    /// n_classes x n_queries; rows with a larger distance in f32 are not among the nearest.
    thresholds: Vec<f32>,
    /// n_queries x n_classes
    lists: Vec<List>,
    buffers: Buffers,
}

#[derive(Debug, Clone, Default)]
struct List {
    /// (rounded distance, row), ascending, at most k.
    refined: Vec<(u64, u32)>,
    candidates: Vec<Candidate>,
}

/// A distance in f32 and a row number, in a word that sorts fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    fn new(distance: f32, row: u32) -> Self {
        // Rounding may give a distance below 0; the bits of numbers from 0 on are in the order of the numbers.
        Candidate(u64::from(distance.max(0.0).to_bits()) << 32 | u64::from(row))
    }

    fn distance(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }

    fn row(self) -> u32 {
        self.0 as u32
    }
}

#[derive(Debug, Default)]
struct Buffers {
    highest: Vec<f64>,
    distances: Vec<f64>,
}

/// Bytes of the lists of one query, for all classes.
pub fn bytes(k: usize, n_classes: usize) -> usize {
    n_classes * (size_of::<List>() + 16 * k + 8 * capacity(k) + size_of::<f32>())
}

/// Most candidates of a list.
fn capacity(k: usize) -> usize {
    k.saturating_add(k / 2).saturating_add(EXTRA)
}

/// The rounded distances of `rows` from the query, each with its row.
fn measured<D: ExactDistance>(
    exact: D,
    query: u32,
    rows: Vec<u32>,
    distances: &mut Vec<f64>,
) -> impl Iterator<Item = (u64, u32)> {
    exact.distances(query, &rows, distances);
    let divisor = exact.divisor();
    distances.iter().map(move |&sum| distance_key(sum, divisor)).zip(rows)
}

impl NearestK {
    /// Creates empty lists for the queries in panels number `panels`. `error` gives the error of the distances of a
    /// row from its A (see [`Panels`]).
    pub fn new(
        layout: &Layout,
        queries: &Panels,
        panels: Range<usize>,
        params: NearestParams,
        n_classes: usize,
        error: impl Fn(f64) -> Error,
    ) -> Self {
        let (mut numbers, mut errors) = (Vec::new(), Vec::new());
        for panel in panels.clone().map(|number| queries.panel(layout, number)) {
            numbers.extend_from_slice(panel.numbers);
            errors.extend(panel.sums.iter().map(|&sum| error(f64::from(sum))));
        }
        let n = numbers.len();
        NearestK {
            first_panel: panels.start,
            params,
            n_classes,
            numbers,
            errors,
            thresholds: vec![f32::MAX; n_classes * n],
            lists: vec![List::default(); n_classes * n],
            buffers: Buffers::default(),
        }
    }

    /// Number of queries.
    pub fn n_queries(&self) -> usize {
        self.numbers.iter().filter(|&&number| number != NO_ROW).count()
    }

    /// Numbers of the panels.
    pub(super) fn panels(&self) -> Range<usize> {
        self.first_panel..self.first_panel + self.numbers.len() / LANES
    }

    /// Neighbors of each class.
    pub(super) fn k(&self) -> usize {
        self.params.k
    }

    /// The position of the query in a lane of panel number `panel`.
    pub(super) fn position(&self, panel: usize, lane: usize) -> usize {
        (panel - self.first_panel) * LANES + lane
    }

    /// The largest distance in f32 that a row of `class` may have, after all candidates so far.
    pub(super) fn threshold(&mut self, exact: impl ExactDistance, query: usize, class: usize) -> f32 {
        if self.lists[query * self.n_classes + class].candidates.len() > self.params.k {
            self.prune(exact, query, class);
        }
        self.thresholds[class * self.numbers.len() + query]
    }

    /// The threshold of a query if the distance in f32 of its k-th nearest row is at most `kth`.
    pub(super) fn threshold_at(&self, exact: impl ExactDistance, query: usize, kth: f32) -> f32 {
        let error = self.errors[query];
        error.threshold(error.highest(kth) + key_unit(exact.divisor()))
    }

    /// Pushes a row with its distance in f32 to the query's list of `class`. Returns false if no row with a higher
    /// number can enter the list.
    pub(super) fn push(
        &mut self,
        exact: impl ExactDistance,
        query: usize,
        class: usize,
        (distance, row): (f32, u32),
    ) -> bool {
        let threshold = self.thresholds[class * self.numbers.len() + query];
        if distance > threshold || exact.is_excluded(self.numbers[query], row) {
            return true;
        }
        let list = &mut self.lists[query * self.n_classes + class];
        // No row is nearer than 0, and of equally near rows the lower stays: any number of rows may be identical.
        if list.refined.len() == self.params.k && list.refined.last().is_some_and(|last| *last < (0, row)) {
            return false;
        }
        if list.candidates.is_empty() {
            list.candidates.reserve_exact(capacity(self.params.k).min(MOST_RESERVED));
        }
        list.candidates.push(Candidate::new(distance, row));
        if list.candidates.len() >= capacity(self.params.k) {
            self.maybe_refine(exact, query, class);
        }
        true
    }

    /// Prunes a full list, and refines it if most candidates stay.
    fn maybe_refine(&mut self, exact: impl ExactDistance, query: usize, class: usize) {
        self.prune(exact, query, class);
        if self.lists[query * self.n_classes + class].candidates.len() + EXTRA / 2 >= capacity(self.params.k) {
            self.refine_exact(exact, query, class);
        }
    }

    /// Drops candidates that cannot be among the nearest, and lowers the threshold.
    fn prune(&mut self, exact: impl ExactDistance, query: usize, class: usize) {
        let threshold = self.kth_upper_bound(exact, query, class);
        self.lists[query * self.n_classes + class].candidates.retain(|candidate| candidate.distance() <= threshold);
        self.set_threshold(query, class, threshold);
    }

    fn set_threshold(&mut self, query: usize, class: usize, threshold: f32) {
        let position = class * self.numbers.len() + query;
        self.thresholds[position] = threshold;
    }

    /// Upper bound of the distance in f32 of the k nearest rows so far.
    fn kth_upper_bound(&mut self, exact: impl ExactDistance, query: usize, class: usize) -> f32 {
        let (list, error) = (&self.lists[query * self.n_classes + class], self.errors[query]);
        let unit = key_unit(exact.divisor());
        let highest = &mut self.buffers.highest;
        highest.clear();
        highest.extend(list.refined.iter().map(|(key, _)| (*key as f64 + 1.0) * unit));
        highest.extend(list.candidates.iter().map(|candidate| error.highest(candidate.distance()) + unit));
        if highest.len() < self.params.k {
            return f32::MAX;
        }
        error.threshold(*highest.select_nth_unstable_by(self.params.k - 1, f64::total_cmp).1)
    }

    /// Measures the candidates of a list in f64 and keeps the k nearest.
    fn refine_exact(&mut self, exact: impl ExactDistance, query: usize, class: usize) {
        let list = &mut self.lists[query * self.n_classes + class];
        if list.candidates.is_empty() {
            return;
        }
        let rows = list.candidates.drain(..).map(Candidate::row).collect();
        list.refined.extend(measured(exact, self.numbers[query], rows, &mut self.buffers.distances));
        list.refined.sort_unstable();
        list.refined.truncate(self.params.k);
        let threshold = self.kth_upper_bound(exact, query, class);
        self.set_threshold(query, class, threshold);
    }

    /// Refines all lists, after which the rows offered so far are not needed any more.
    pub fn refine_all(&mut self, exact: impl ExactDistance) {
        for query in 0..self.numbers.len() {
            for class in 0..self.n_classes {
                if !self.lists[query * self.n_classes + class].candidates.is_empty() {
                    self.prune(exact, query, class);
                    self.refine_exact(exact, query, class);
                }
            }
        }
    }

    /// Decides the final lists after the last row was offered.
    pub fn finish(&mut self, exact: impl ExactDistance) {
        for query in 0..self.numbers.len() {
            for class in 0..self.n_classes {
                if self.lists[query * self.n_classes + class].refined.is_empty() {
                    self.order(exact, query, class);
                } else {
                    self.prune(exact, query, class);
                    self.refine_exact(exact, query, class);
                }
            }
        }
    }

    /// Keeps the k nearest candidates, in order where the order matters. Candidates whose distances in f32 differ by
    /// more than all errors are not measured again.
    fn order(&mut self, exact: impl ExactDistance, query: usize, class: usize) {
        let (number, error, k) = (self.numbers[query], self.errors[query], self.params.k);
        let List { refined, candidates } = &mut self.lists[query * self.n_classes + class];
        let mut candidates = std::mem::take(candidates);
        candidates.sort_unstable();
        refined.reserve_exact(k.min(candidates.len()));
        let lowest = |candidate: &Candidate| error.lowest(candidate.distance());
        let highest = |candidate: &Candidate| error.highest(candidate.distance()) + key_unit(exact.divisor());
        let distances = &mut self.buffers.distances;
        let mut sorted = |candidates: &[Candidate]| {
            let rows = candidates.iter().map(|candidate| candidate.row()).collect();
            let mut found: Vec<(u64, u32)> = measured(exact, number, rows, distances).collect();
            found.sort_unstable();
            found
        };
        let mut rest = &mut candidates[..];
        let n_unordered = self.params.n_unordered(rest.len());
        if n_unordered > 0 {
            // Candidates before `near` are certainly among the first n_unordered, candidates from `end` on certainly not.
            let (mut near, mut end) = (n_unordered, n_unordered);
            if n_unordered < rest.len() && !error.is_zero() {
                let (first_after, last) = (lowest(&rest[n_unordered]), highest(&rest[n_unordered - 1]));
                near = rest.partition_point(|candidate| highest(candidate) < first_after).min(n_unordered);
                end = rest.partition_point(|candidate| lowest(candidate) <= last).max(n_unordered);
            }
            if near < n_unordered {
                let nearest: Vec<u32> =
                    sorted(&rest[near..end])[..n_unordered - near].iter().map(|(_, row)| *row).collect();
                // A stable sort: those that stay are in the order of their distances in f32.
                rest[near..end].sort_by_key(|candidate| !nearest.contains(&candidate.row()));
            }
            let nearest;
            (nearest, rest) = rest.split_at_mut(n_unordered);
            refined.extend((0..).zip(nearest.iter().map(|candidate| candidate.row())));
        }
        // Equally far rows are in the order of their numbers.
        let in_doubt = |a: &Candidate, b: &Candidate| !error.is_zero() && lowest(b) <= highest(a);
        for run in rest.chunk_by(in_doubt) {
            if refined.len() >= k {
                break;
            }
            let rank = refined.len() as u64;
            match run {
                [candidate] => refined.push((rank, candidate.row())),
                run => refined.extend((rank..).zip(sorted(run).iter().map(|(_, row)| *row)).take(k - rank as usize)),
            }
        }
    }

    /// The neighbors of each query by class, nearest first: (query, n_classes lists).
    pub fn neighbors(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = impl Iterator<Item = u32>>)> {
        let queries = self.numbers.iter().zip(self.lists.chunks_exact(self.n_classes));
        queries
            .filter(|(number, _)| **number != NO_ROW)
            .map(|(&number, lists)| (number, lists.iter().map(|list| list.refined.iter().map(|(_, row)| *row))))
    }
}
