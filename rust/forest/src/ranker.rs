//! The forest as a [`Ranker`], for accumulators.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::Unlabelled;
use ferrank_ranking::relevance::Relevance;
use ferrank_ranking::{DataShape, Form, ModelError, Part, Ranker, RunData, ScoreRanking};
use ferrank_runtime::error::{Result, check};
use serde_json::Value;

use crate::estimates;
use crate::params::ForestParams;
use crate::scores::variants;

impl Ranker for ForestParams {
    fn name(&self) -> &'static str {
        "forest"
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are plain data")
    }

    fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>> {
        Some(Arc::new(serde_json::from_value::<ForestParams>(settings.clone()).ok()?))
    }

    fn unlabelled(&self) -> Unlabelled {
        self.treatment()
    }

    fn max_bins(&self) -> usize {
        self.max_bins
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn validate(&self, shape: &DataShape) -> Result<()> {
        ForestParams::validate(self, shape)
    }

    fn validate_stream(&self, shape: &DataShape) -> Result<()> {
        check(!self.shadows, "shadows: not for rows that come block by block; leave shadows out")?;
        self.validate(shape)
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

    fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
        estimates::scores(data, self, populations)
    }

    fn model_error(
        &self,
        data: &RunData,
        populations: &[Vec<Part<'_>>],
    ) -> std::result::Result<Vec<ModelError>, &'static str> {
        estimates::model_error(data, self, populations)
    }

    fn is_in_sample(&self, score: usize) -> bool {
        variants(self)[score].score.method().oob_needs(self).is_none()
    }

    fn relevance(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Option<Relevance> {
        estimates::relevance(data, self, populations)
    }

    fn continued(&self, mut other: Value) -> Value {
        // With one ensemble for each target, the numbers of the trees of a target depend on the size of the ensembles
        // before it.
        if !self.per_target
            && let Some(n_estimators) = other.get_mut("n_estimators")
        {
            *n_estimators = self.n_estimators.into();
        }
        other
    }
}
