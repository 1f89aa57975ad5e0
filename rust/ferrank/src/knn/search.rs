//! The k nearest training rows of all test rows, under one metric.

use pulp::Arch;
use rayon::prelude::*;

use super::metric::Metric;
use super::panels::{Places, Side};
use super::read::Pair;
use ferrank_neighbors::lists::{ExactDistance, Lists, NearestParams};
use ferrank_neighbors::scan::Scan;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// What a search needs to know.
pub(crate) struct Search<'a> {
    pub(crate) pair: &'a Pair,
    pub(crate) metric: &'a Metric<'a>,
    /// Neighbours wanted, at most as many as there are training rows.
    pub(crate) k: usize,
    pub(crate) monitor: &'a Monitor,
}

impl Search<'_> {
    /// Of each test row in turn the k nearest, and how far they are.
    pub(crate) fn run(&self) -> Result<(Vec<u32>, Vec<f64>)> {
        let Pair { train, test, .. } = self.pair;
        self.monitor.enter(Phase::Searching, test.numbers.len() as u64);
        let places = Places::new(self.metric);
        let (queries, rows) = (places.panels(test, Side::Query), places.panels(train, Side::Row));
        let most = rows.sums().filter(|sum| sum.is_finite()).fold(0.0, f32::max);
        let scan = Scan { layout: &places.layout, monitor: self.monitor, arch: Arch::new(), pairwise: None };
        let error = |sum| places.error(sum, f64::from(most));
        let mut lists = scan.lists(&queries, NearestParams { k: self.k, in_order: true }, 1, error);
        scan.offer(self, &queries, &rows, &mut lists, |lists| {
            lists.finish(self);
            self.monitor.advance(lists.n_queries() as u64);
        })?;
        // Panels hold the test rows in their order.
        let found: Vec<u32> = lists.iter().flat_map(Lists::neighbours).flat_map(|(_, rows)| rows.flatten()).collect();
        let distances = found.par_chunks(self.k).zip(&test.numbers).flat_map_iter(|(near, &query)| {
            near.iter().map(move |&row| self.metric.distance(test.row(query), train.row(row)))
        });
        let distances = distances.collect();
        Ok((found, distances))
    }
}

impl ExactDistance for &Search<'_> {
    fn whole(self) -> usize {
        1
    }

    fn is_itself(self, _: u32, _: u32) -> bool {
        false
    }

    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>) {
        let query = self.pair.test.row(query);
        out.clear();
        out.extend(rows.iter().map(|&row| self.metric.distance(query, self.pair.train.row(row))));
    }
}
