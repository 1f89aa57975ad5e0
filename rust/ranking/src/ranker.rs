//! The interface of a ranker.
//!
//! Accumulators, checkpoints and streams work with any ranker through [`Ranker`]; none of them names one. A new
//! ranker is a type of settings that implements this trait, a function that computes its contributions, and a
//! variant of the facade's `Settings`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::Unlabelled;
use ferrank_runtime::error::Result;
use serde_json::Value;

use crate::contribution::{Form, Part};
use crate::data::{DataShape, RunData};
use crate::ranking::{ModelError, ScoreRanking};
use crate::relevance::Relevance;

/// A kind of ranker together with its settings.
///
/// A run of a ranker consists of contributions with the keys 0 to [`n_keys`](Self::n_keys) − 1. Each contribution
/// is a list of vectors whose shapes [`forms`](Self::forms) gives.
pub trait Ranker: fmt::Debug + Send + Sync + 'static {
    /// The ranker's name in settings and files.
    fn name(&self) -> &'static str;

    /// The settings as JSON.
    fn to_json(&self) -> Value;

    /// A ranker of this kind with the settings that [`to_json`](Self::to_json) wrote; `None` if they are not valid.
    fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>>;

    /// What happens to rows without any target.
    fn unlabelled(&self) -> Unlabelled;

    /// The `max_bins` of the profile that the ranker needs; 0 if it needs no cut points.
    fn max_bins(&self) -> usize;

    /// Seed of all random draws.
    fn seed(&self) -> u64;

    /// Checks the settings, as far as `shape` is known.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) that names the setting.
    fn validate(&self, shape: &DataShape) -> Result<()>;

    /// Checks the settings for rows that come in blocks.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate), and settings that do not work block by block.
    fn validate_stream(&self, shape: &DataShape) -> Result<()> {
        self.validate(shape)
    }

    /// Number of contributions of a complete run.
    fn n_keys(&self, data: &RunData) -> u64;

    /// The shapes of the vectors of the contribution with this key.
    fn forms(&self, data: &RunData, key: u64) -> Vec<Form>;

    /// Ranges of keys; an estimate is the mean of the contributions of one range.
    fn populations(&self, data: &RunData) -> Vec<Range<u64>>;

    /// One ranking for each score, from the contributions of each population.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::Error::Data) if a score has no contribution.
    fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>>;

    /// How well the model behind the importances predicts each target, from the contributions of each population;
    /// otherwise the reason why that is not known.
    fn model_error(
        &self,
        _data: &RunData,
        _populations: &[Vec<Part<'_>>],
    ) -> std::result::Result<Vec<ModelError>, &'static str> {
        Err("the ranker makes no predictions")
    }

    /// Whether each feature is relevant, as far as the contributions tell.
    fn relevance(&self, _data: &RunData, _populations: &[Vec<Part<'_>>]) -> Option<Relevance> {
        None
    }

    /// `other` with those settings replaced by this ranker's that may differ when this run continues that of `other`.
    fn continued(&self, other: Value) -> Value {
        other
    }
}

impl PartialEq for dyn Ranker {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.to_json() == other.to_json()
    }
}

/// Reads what [`ranker_to_json`] wrote; `None` if it is of no known ranker or not valid.
pub type ParseRanker<'a> = &'a dyn Fn(&Value) -> Option<Arc<dyn Ranker>>;

/// An object with one entry: the ranker's name and its settings.
pub fn ranker_to_json(ranker: &dyn Ranker) -> Value {
    Value::Object(std::iter::once((ranker.name().to_string(), ranker.to_json())).collect())
}
