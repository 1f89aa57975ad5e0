//! The tests as a [`Ranker`], the interface that accumulators use: a run is a single contribution.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::{Unlabelled, numbered};
use ferrank_ranking::relevance::Relevance;
use ferrank_ranking::{DataShape, Estimate, Form, Part, Ranker, RunData, ScoreRanking, Vector};
use ferrank_runtime::error::Result;
use serde_json::Value;

use crate::params::AssociationParams;

/// The name of the score, and its definition in a few words, for readers of a ranking.
pub const SCORE: (&str, &str) = ("association", "how much of the target it explains by itself, beyond chance");

/// The vectors of the contribution.
enum Sums {
    Strength,
    Evidence,
}

/// The contribution to a ranking of features of this strength and relevance.
pub(crate) fn contribution(strength: Vec<f64>, relevance: Relevance) -> Vec<Vector> {
    vec![Vector::dense(strength), Vector::dense(relevance.evidence)]
}

impl Ranker for AssociationParams {
    fn name(&self) -> &'static str {
        "association"
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are plain data")
    }

    fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>> {
        Some(Arc::new(serde_json::from_value::<AssociationParams>(settings.clone()).ok()?))
    }

    fn unlabelled(&self) -> Unlabelled {
        self.unlabelled
    }

    fn max_bins(&self) -> usize {
        self.max_bins
    }

    fn seed(&self) -> u64 {
        0
    }

    fn validate(&self, shape: &DataShape) -> Result<()> {
        AssociationParams::validate(self, shape)?;
        shape.n_rows.map_or(Ok(()), |rows| numbered(rows, "the data set", "tests of association").map(|_| ()))
    }

    fn n_keys(&self, _data: &RunData) -> u64 {
        1
    }

    fn forms(&self, data: &RunData, _key: u64) -> Vec<Form> {
        vec![Form::Dense(data.features.len()); 2]
    }

    fn populations(&self, data: &RunData) -> Vec<Range<u64>> {
        std::iter::once(0..self.n_keys(data)).collect()
    }

    fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
        let parts = &populations[0];
        Ok(vec![Estimate::mean(parts, Sums::Strength as usize, data.features.len()).rank(SCORE.0)])
    }

    fn relevance(&self, _data: &RunData, populations: &[Vec<Part<'_>>]) -> Option<Relevance> {
        let [part] = &populations[0][..] else { return None };
        let evidence = part.sums[Sums::Evidence as usize].values.clone();
        Some(Relevance::new(evidence.clone(), evidence))
    }
}
