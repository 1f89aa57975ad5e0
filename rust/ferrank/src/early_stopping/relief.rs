//! Relief that is given more queries.

use super::growth::{Case, Growth};
use ferrank_data::source::{ChunkSource, count_rows};
use ferrank_ranking::{DataShape, Ranker, Ranking};
use ferrank_relief::{Iterations, ReliefParams, ReliefScore};
use ferrank_runtime::error::{Result, check};

/// Queries of the first stage.
const FIRST: u64 = 256;
/// More queries than the errors ask for, so that they need not ask again.
const MARGIN: f64 = 1.2;
/// Bounds of how many times the queries of the next stage are; all are looked at anew.
const STEP: (f64, f64) = (2.0, 8.0);
/// Fewest blocks of queries that standard errors come from, less one.
const FREEDOM: f64 = 15.0;

pub(super) struct ReliefGrowth<'a> {
    case: Case<'a, ReliefParams>,
    /// The rows that take part, where these are not all: each stage ranks the same.
    sample: Option<Box<dyn ChunkSource + 'a>>,
    n_rows: u64,
    most: u64,
}

impl<'a> ReliefGrowth<'a> {
    pub(super) fn new(case: Case<'a, ReliefParams>) -> Result<Self> {
        let params = case.params;
        let problem = case.problem()?;
        params.validate(&DataShape::new(&problem))?;
        params.validate_features(&problem.features)?;
        let known = params.scores[0] != ReliefScore::Myopic;
        check(known, "until: myopic has no standard error to judge by; name relief first, or leave until out")?;
        check(
            params.standard_errors,
            "standard_errors: until=\"stable\" judges Relief by them; leave one of the two out",
        )?;
        check(params.n_iterations.len() == 1, "n_iterations: until=\"stable\" chooses how many; give one, the most")?;
        let sample = ferrank_relief::sample(case.source, params, case.monitor)?
            .map(|sample| sample.hold(case.options.memory, case.monitor))
            .transpose()?;
        let n_rows = count_rows(sample.as_deref().unwrap_or(case.source), case.monitor)?;
        Ok(ReliefGrowth { case, sample, n_rows, most: params.queries(n_rows) })
    }
}

impl Growth for ReliefGrowth<'_> {
    type Stage = u64;

    fn first(&self) -> u64 {
        FIRST.min(self.most)
    }

    fn next(&self, queries: u64, times: Option<f64>) -> Option<u64> {
        let step = times.map_or(STEP.1, |times| (times * MARGIN).clamp(STEP.0, STEP.1));
        (queries < self.most).then(|| ((queries as f64 * step) as u64).min(self.most))
    }

    fn rank(&self, queries: u64) -> Result<Ranking> {
        let Case { source, roles, params, options, monitor } = self.case;
        let n_iterations = match queries == self.most {
            true => params.n_iterations.clone(),
            false => vec![Iterations::Share(queries as f64 / self.n_rows as f64)],
        };
        let params = params.clone().with_n_iterations(n_iterations).with_max_samples(Iterations::All);
        let source = self.sample.as_deref().unwrap_or(source);
        ferrank_relief::accumulate(source, roles, &params, options, monitor)?.ranking()
    }

    /// The neighbors of a query are found among all rows, in any stage.
    fn steps(&self, _: u64) -> f64 {
        0.0
    }

    fn has_zero(&self) -> bool {
        true
    }

    /// Each row is a query once.
    fn most_advised(&self, _: u64) -> u64 {
        self.n_rows
    }

    fn freedom(&self, _: u64) -> f64 {
        FREEDOM
    }

    fn extent(&self, queries: u64) -> (u64, Option<u64>, u64) {
        (queries, None, self.n_rows)
    }
}
