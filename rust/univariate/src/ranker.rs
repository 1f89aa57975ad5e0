//! The univariate ranker as a [`Ranker`], for accumulators.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::Unlabelled;
use ferrank_ranking::{DataShape, Estimate, Form, Part, Ranker, RunData, ScoreRanking};
use ferrank_runtime::error::{Error, Result};
use serde_json::Value;

use crate::params::UnivariateParams;

impl Ranker for UnivariateParams {
    fn name(&self) -> &'static str {
        "univariate"
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are plain data")
    }

    fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>> {
        Some(Arc::new(serde_json::from_value::<UnivariateParams>(settings.clone()).ok()?))
    }

    fn unlabelled(&self) -> Unlabelled {
        self.unlabelled
    }

    fn max_bins(&self) -> usize {
        self.n_bins
    }

    fn seed(&self) -> u64 {
        0
    }

    fn validate(&self, shape: &DataShape) -> Result<()> {
        UnivariateParams::validate(self, shape)
    }

    fn validate_stream(&self, _: &DataShape) -> Result<()> {
        Err(Error::Setting("ranker: univariate scores are of all rows, not block by block; use fit".into()))
    }

    fn n_keys(&self, _: &RunData) -> u64 {
        1
    }

    fn forms(&self, data: &RunData, _: u64) -> Vec<Form> {
        vec![Form::Dense(data.features.len()); self.scores.len()]
    }

    fn populations(&self, _: &RunData) -> Vec<Range<u64>> {
        std::iter::once(0..1).collect()
    }

    fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
        let parts = populations.first().map_or(&[][..], Vec::as_slice);
        if parts.is_empty() {
            return Err(Error::Data("the accumulator has no scores; merge those that have".into()));
        }
        let rank = |(number, score): (usize, &crate::UnivariateScore)| {
            Estimate::mean(parts, number, data.features.len()).rank(score.name())
        };
        Ok(self.scores.iter().enumerate().map(rank).collect())
    }
}
