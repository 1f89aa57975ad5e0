//! The k nearest training rows of all test rows, under one metric.

use pulp::Arch;
use rayon::prelude::*;

use super::metric::Metric;
use super::panels::{MetricPanels, Side};
use super::read::Pair;
use ferrank_neighbors::nearest::{Bounds, NearestK, NearestParams};
use ferrank_neighbors::scan::Scan;
use ferrank_neighbors::sink::ExactDistance;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// What a search needs to know.
pub(crate) struct Search<'a> {
    pub(crate) pair: &'a Pair,
    pub(crate) metric: &'a Metric<'a>,
    /// NeighborLists wanted, at most as many as there are training rows.
    pub(crate) k: usize,
    pub(crate) monitor: &'a Monitor,
}

impl Search<'_> {
    /// Of each test row in turn the k nearest, and how far they are.
    pub(crate) fn run(&self) -> Result<(Vec<u32>, Vec<f64>)> {
        let Pair { train, test, .. } = self.pair;
        self.monitor.enter(Phase::Searching, test.numbers.len() as u64);
        let panels = MetricPanels::new(self.metric);
        let (queries, rows) = (panels.panels(test, Side::Query), panels.panels(train, Side::Row));
        let most = rows.sums().filter(|sum| sum.is_finite()).fold(0.0, f32::max);
        let (layout, arch) = (&panels.layout, Arch::new());
        let scan = Scan { layout, monitor: self.monitor, arch };
        let params = NearestParams { k: self.k, unordered: 0 };
        let error = |sum| panels.error(sum, f64::from(most));
        let groups = scan.groups(&queries);
        let mut lists: Vec<NearestK> =
            groups.map(|group| NearestK::new(layout, &queries, group, params, 1, error)).collect();
        let bounds = Bounds::new(layout, arch, &queries, &rows, self.k);
        scan.offer(self, [&queries, &rows], bounds, &mut lists, |lists| {
            lists.finish(self);
            self.monitor.advance(lists.n_queries() as u64);
        })?;
        // Panels hold the test rows in their order.
        let found: Vec<u32> = lists.iter().flat_map(NearestK::neighbors).flat_map(|(_, rows)| rows.flatten()).collect();
        let distances = found.par_chunks(self.k).zip(&test.numbers).flat_map_iter(|(near, &query)| {
            near.iter().map(move |&row| self.metric.distance(test.row(query), train.row(row)))
        });
        let distances = distances.collect();
        Ok((found, distances))
    }
}

impl ExactDistance for &Search<'_> {
    fn divisor(self) -> f64 {
        1.0
    }

    fn is_excluded(self, _: u32, _: u32) -> bool {
        false
    }

    fn n_excluded(self, _: u32) -> usize {
        0
    }

    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>) {
        let query = self.pair.test.row(query);
        out.clear();
        out.extend(rows.iter().map(|&row| self.metric.distance(query, self.pair.train.row(row))));
    }
}
