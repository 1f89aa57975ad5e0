//! Relief as a [`Ranker`], the interface that accumulators use.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::{Unlabelled, numbered};
use ferrank_data::schema::{Attribute, Task};
use ferrank_ranking::relevance::Relevance;
use ferrank_ranking::{DataShape, Form, Part, Ranker, RunData, ScoreRanking};
use ferrank_runtime::error::{Result, check};
use serde_json::Value;

use crate::estimates;
use crate::params::{Iterations, ReliefParams};

impl Ranker for ReliefParams {
    fn name(&self) -> &'static str {
        "relief"
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are plain data")
    }

    fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>> {
        Some(Arc::new(serde_json::from_value::<ReliefParams>(settings.clone()).ok()?))
    }

    fn unlabelled(&self) -> Unlabelled {
        self.unlabelled
    }

    fn max_bins(&self) -> usize {
        0
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn validate(&self, shape: &DataShape) -> Result<()> {
        ReliefParams::validate(self, shape)?;
        shape.n_rows.map_or(Ok(()), |rows| numbered(rows, "the data set", "Relief").map(|_| ()))
    }

    fn validate_stream(&self, shape: &DataShape) -> Result<()> {
        ReliefParams::validate(self, shape)?;
        check(
            self.max_samples == Iterations::All,
            "max_samples: rows that come block by block are not known beforehand, so none are drawn among them; use \
             block_rows, or leave it out",
        )?;
        check(self.target_draws == 0, "target_draws: not for rows that come block by block; leave it out")?;
        check(self.n_iterations.len() == 1, "n_iterations: give one for rows that come block by block")?;
        check(
            shape.task != Task::Classification || self.unlabelled != Unlabelled::Use,
            "unlabelled: ReliefF for classes computes other sums where some rows have no class, so blocks with and \
             without such rows do not add up; use unlabelled=\"ignore\", or the forest",
        )
    }

    fn validate_features(&self, features: &[Attribute]) -> Result<()> {
        self.distance_weights(features).map(drop)
    }

    fn ranked_features(&self, data: &RunData) -> Option<Vec<usize>> {
        estimates::ranked_features(data, self)
    }

    fn n_keys(&self, data: &RunData) -> u64 {
        estimates::n_keys(data, self)
    }

    fn forms(&self, data: &RunData, key: u64) -> Vec<Form> {
        estimates::forms(data, self, key)
    }

    fn populations(&self, data: &RunData) -> Vec<Range<u64>> {
        estimates::populations(data, self)
    }

    fn relevance(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Option<Relevance> {
        estimates::relevance(data, self, populations)
    }

    fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
        estimates::scores(data, self, populations)
    }
}
