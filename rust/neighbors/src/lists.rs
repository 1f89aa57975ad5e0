//! Lists of nearest neighbours, one for each query and class.
//!
//! A list holds the k best by (distance, row number), whatever the order in which rows were met, so that
//! lists of parts of the data merge into those of the whole. The kernel's distances only choose who may
//! be among them: a row is kept as long as its distance, less all errors, does not exceed the k-th
//! smallest of the distances met plus all errors. Those that remain are *settled*: measured in f64, in
//! the order of features, and rounded to 12 decimals.

use std::ops::Range;

use super::layout::{Error, LANES, Layout, NOBODY};
use super::panels::Panels;

/// 1 over the unit that distances, means over features, are rounded to.
pub const DECIMALS: f64 = 1e12;
/// Candidates that a list takes in between two looks at them, besides k.
const ROOM: usize = 8;

/// Candidates for whom a list makes room at once.
const MOST_ROOM: usize = 256;

/// What distances are settled from.
pub trait ExactDistance: Copy + Sync {
    /// What sums of differences are divided by before they are rounded to 12 decimals.
    fn whole(self) -> usize;

    /// Whether the row is the query, which is not its own neighbour.
    fn is_itself(self, query: u32, row: u32) -> bool;

    /// The sums of differences, in the order of features, between the query and each of `rows`.
    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>);
}

/// What sums of differences are rounded to.
pub fn unit(whole: usize) -> f64 {
    whole as f64 / DECIMALS
}

/// The rounded distance of rows whose differences sum up to `sum`.
pub fn key(sum: f64, whole: usize) -> u64 {
    (sum / whole as f64 * DECIMALS).round_ties_even() as u64
}

/// The rounded distances of `rows` from the query, each with its row.
fn keys<G: ExactDistance>(
    context: G,
    query: u32,
    rows: Vec<u32>,
    distances: &mut Vec<f64>,
) -> impl Iterator<Item = (u64, u32)> {
    context.distances(query, &rows, distances);
    let whole = context.whole();
    distances.iter().map(move |&sum| key(sum, whole)).zip(rows)
}

/// What lists are asked for.
#[derive(Debug, Clone, Copy)]
pub struct NearestParams {
    /// Neighbours of each class.
    pub k: usize,
    /// Whether it matters which of them is nearer.
    pub in_order: bool,
}

/// The lists of the queries in some panels.
#[derive(Debug)]
pub struct Lists {
    /// Number of the first panel.
    first_panel: usize,
    wanted: NearestParams,
    n_classes: usize,
    /// n_queries
    numbers: Vec<u32>,
    /// n_queries
    errors: Vec<Error>,
    /// n_classes x n_queries; rows farther away than this need not be offered.
    gates: Vec<f32>,
    /// n_queries x n_classes
    lists: Vec<List>,
    scratch: Scratch,
}

#[derive(Debug, Clone, Default)]
struct List {
    /// (rounded distance, row), ascending, at most k.
    refined: Vec<(u64, u32)>,
    loose: Vec<Candidate>,
}

/// The kernel's distance of a row and its number, in a word that sorts fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    fn new(distance: f32, row: u32) -> Self {
        // Nobody is nearer than 0, whatever rounding says; from there on bits are in the order of numbers.
        Candidate(u64::from(distance.max(0.0).to_bits()) << 32 | u64::from(row))
    }

    fn distance(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }

    fn row(self) -> u32 {
        self.0 as u32
    }
}

impl Error {
    /// The true distance of a row that the kernel finds at `distance` is at most this.
    fn highest(self, distance: f32) -> f64 {
        (f64::from(distance) + self.fixed) * (1.0 + self.relative)
    }

    /// And at least this.
    fn lowest(self, distance: f32) -> f64 {
        (f64::from(distance) - self.fixed) / (1.0 + self.relative)
    }

    /// The kernel finds rows whose true distance is at most `most` no farther away than this.
    fn threshold(self, most: f64) -> f32 {
        ((most * (1.0 + self.relative) + self.fixed) as f32).next_up()
    }
}

#[derive(Debug, Default)]
struct Scratch {
    highest: Vec<f64>,
    distances: Vec<f64>,
}

/// Bytes of the lists of a query, for all classes.
pub fn bytes(k: usize, n_classes: usize) -> usize {
    n_classes * (size_of::<List>() + 16 * k + 8 * capacity(k) + size_of::<f32>())
}

fn capacity(k: usize) -> usize {
    k.saturating_add(k / 2).saturating_add(ROOM)
}

impl Lists {
    /// Empty lists of neighbours of each class, for the queries in those panels of `queries`; `error` says
    /// how far the distances from a row of a given A may be off.
    pub fn new(
        layout: &Layout,
        queries: &Panels,
        panels: Range<usize>,
        wanted: NearestParams,
        n_classes: usize,
        error: impl Fn(f64) -> Error,
    ) -> Self {
        let (mut numbers, mut errors) = (Vec::new(), Vec::new());
        for panel in panels.clone().map(|number| queries.panel(layout, number)) {
            numbers.extend_from_slice(panel.numbers);
            errors.extend(panel.sums.iter().map(|&sum| error(f64::from(sum))));
        }
        let n = numbers.len();
        Lists {
            first_panel: panels.start,
            wanted,
            n_classes,
            numbers,
            errors,
            gates: vec![f32::MAX; n_classes * n],
            lists: vec![List::default(); n_classes * n],
            scratch: Scratch::default(),
        }
    }

    /// Queries that have lists.
    pub fn n_queries(&self) -> usize {
        self.numbers.iter().filter(|&&number| number != NOBODY).count()
    }

    /// Numbers of the panels.
    pub fn panels(&self) -> Range<usize> {
        self.first_panel..self.first_panel + self.numbers.len() / LANES
    }

    /// Neighbours wanted of each class.
    pub fn k(&self) -> usize {
        self.wanted.k
    }

    /// Where the query in a lane of panel number `panel` stands.
    pub(super) fn place(&self, panel: usize, lane: usize) -> usize {
        (panel - self.first_panel) * LANES + lane
    }

    /// Where the query's gate of `class` stands once all who were offered are looked at.
    pub(super) fn threshold(&mut self, context: impl ExactDistance, query: usize, class: usize) -> f32 {
        if self.lists[query * self.n_classes + class].loose.len() > self.wanted.k {
            self.prune(context, query, class);
        }
        self.gates[class * self.numbers.len() + query]
    }

    /// Where the query's gate stands if the kernel's distance of its k-th nearest is `kth` or less.
    pub(super) fn threshold_at(&self, context: impl ExactDistance, query: usize, kth: f32) -> f32 {
        let error = self.errors[query];
        error.threshold(error.highest(kth) + unit(context.whole()))
    }

    /// Takes a row, with the kernel's distance, into the query's list of `class`; `false` once no higher row will be.
    pub(super) fn take(
        &mut self,
        context: impl ExactDistance,
        query: usize,
        class: usize,
        (distance, row): (f32, u32),
    ) -> bool {
        let threshold = self.gates[class * self.numbers.len() + query];
        if distance > threshold || context.is_itself(self.numbers[query], row) {
            return true;
        }
        let list = &mut self.lists[query * self.n_classes + class];
        // Nothing is nearer than 0, and of equals the lower stays: rows without end may be identical.
        if list.refined.len() == self.wanted.k && list.refined.last().is_some_and(|last| *last < (0, row)) {
            return false;
        }
        if list.loose.is_empty() {
            list.loose.reserve_exact(capacity(self.wanted.k).min(MOST_ROOM));
        }
        list.loose.push(Candidate::new(distance, row));
        if list.loose.len() >= capacity(self.wanted.k) {
            self.maybe_refine(context, query, class);
        }
        true
    }

    /// Lets go of candidates that cannot be among the nearest; settles the others if they are many.
    fn maybe_refine(&mut self, context: impl ExactDistance, query: usize, class: usize) {
        self.prune(context, query, class);
        if self.lists[query * self.n_classes + class].loose.len() + ROOM / 2 >= capacity(self.wanted.k) {
            self.refine_exact(context, query, class);
        }
    }

    /// Lets go of candidates that cannot be among the nearest, and lets no more of them in.
    fn prune(&mut self, context: impl ExactDistance, query: usize, class: usize) {
        let threshold = self.kth_upper_bound(context, query, class);
        self.lists[query * self.n_classes + class].loose.retain(|candidate| candidate.distance() <= threshold);
        self.set_gate(query, class, threshold);
    }

    fn set_gate(&mut self, query: usize, class: usize, threshold: f32) {
        let place = class * self.numbers.len() + query;
        self.gates[place] = threshold;
    }

    /// The kernel's distance that a row may have at most to be among the nearest of those met.
    fn kth_upper_bound(&mut self, context: impl ExactDistance, query: usize, class: usize) -> f32 {
        let (list, error) = (&self.lists[query * self.n_classes + class], self.errors[query]);
        let unit = unit(context.whole());
        let highest = &mut self.scratch.highest;
        highest.clear();
        highest.extend(list.refined.iter().map(|(key, _)| (*key as f64 + 1.0) * unit));
        highest.extend(list.loose.iter().map(|candidate| error.highest(candidate.distance()) + unit));
        if highest.len() < self.wanted.k {
            return f32::MAX;
        }
        error.threshold(*highest.select_nth_unstable_by(self.wanted.k - 1, f64::total_cmp).1)
    }

    /// Measures the candidates of a list and keeps the k nearest.
    fn refine_exact(&mut self, context: impl ExactDistance, query: usize, class: usize) {
        let list = &mut self.lists[query * self.n_classes + class];
        if list.loose.is_empty() {
            return;
        }
        let rows = list.loose.drain(..).map(Candidate::row).collect();
        list.refined.extend(keys(context, self.numbers[query], rows, &mut self.scratch.distances));
        list.refined.sort_unstable();
        list.refined.truncate(self.wanted.k);
        let threshold = self.kth_upper_bound(context, query, class);
        self.set_gate(query, class, threshold);
    }

    /// Settles all lists, after which the rows that were offered may go.
    pub fn refine_all(&mut self, context: impl ExactDistance) {
        for query in 0..self.numbers.len() {
            for class in 0..self.n_classes {
                if !self.lists[query * self.n_classes + class].loose.is_empty() {
                    self.prune(context, query, class);
                    self.refine_exact(context, query, class);
                }
            }
        }
    }

    /// Settles the order of all lists once nobody is offered any more.
    pub fn finish(&mut self, context: impl ExactDistance) {
        for query in 0..self.numbers.len() {
            for class in 0..self.n_classes {
                if self.lists[query * self.n_classes + class].refined.is_empty() {
                    self.order(context, query, class);
                } else {
                    self.prune(context, query, class);
                    self.refine_exact(context, query, class);
                }
            }
        }
    }

    /// Keeps the k nearest of the candidates, in order if that is wanted. Those whom the kernel's distances tell
    /// apart beyond all errors are not measured again.
    fn order(&mut self, context: impl ExactDistance, query: usize, class: usize) {
        let (number, error, NearestParams { k, in_order }) = (self.numbers[query], self.errors[query], self.wanted);
        let List { refined, loose } = &mut self.lists[query * self.n_classes + class];
        let mut loose = std::mem::take(loose);
        loose.sort_unstable();
        refined.reserve_exact(k.min(loose.len()));
        let in_doubt = |a: &Candidate, b: &Candidate| {
            error.lowest(b.distance()) <= error.highest(a.distance()) + unit(context.whole())
        };
        for run in loose.chunk_by(in_doubt) {
            if refined.len() >= k {
                break;
            }
            let rank = refined.len() as u64;
            match run {
                run if run.len() == 1 || (!in_order && refined.len() + run.len() <= k) => {
                    refined.extend((rank..).zip(run.iter().map(|candidate| candidate.row())));
                }
                run => {
                    let rows = run.iter().map(|candidate| candidate.row()).collect();
                    let mut found: Vec<(u64, u32)> = keys(context, number, rows, &mut self.scratch.distances).collect();
                    found.sort_unstable();
                    refined.extend((rank..).zip(found.iter().map(|(_, row)| *row)).take(k - refined.len()));
                }
            }
        }
    }

    /// The neighbours of each query, nearest first: (query, n_classes lists).
    pub fn neighbours(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = impl Iterator<Item = u32>>)> {
        let queries = self.numbers.iter().zip(self.lists.chunks_exact(self.n_classes));
        queries
            .filter(|(number, _)| **number != NOBODY)
            .map(|(&number, lists)| (number, lists.iter().map(|list| list.refined.iter().map(|(_, row)| *row))))
    }
}
