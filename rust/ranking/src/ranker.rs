//! The interface of a ranker.
//!
//! Accumulators, checkpoints and streams work with any ranker through [`Ranker`]; none of them names one. A new
//! ranker is a type of settings that implements this trait, a function that computes its contributions, and a
//! variant of the facade's `Settings`.
//!
//! ```
//! use std::ops::Range;
//! use std::sync::Arc;
//!
//! use ferrank_data::Result;
//! use ferrank_data::intake::{Intake, Unlabelled};
//! use ferrank_ranking::{
//!     Accumulator, Checkpoint, Condensed, Contribution, DataShape, Estimate, Form, Identity, Part, Ranker, Ranking, RunData,
//!     RunOptions, ScanSummary, ScoreRanking, Vector,
//! };
//! use serde_json::{Value, json};
//!
//! /// Ranks features by their entropy, several times over.
//! #[derive(Debug)]
//! struct Entropy {
//!     times: u64,
//! }
//!
//! impl Ranker for Entropy {
//!     fn name(&self) -> &'static str {
//!         "entropy"
//!     }
//!     fn to_json(&self) -> Value {
//!         json!({"times": self.times})
//!     }
//!     fn parse(&self, settings: &Value) -> Option<Arc<dyn Ranker>> {
//!         Some(Arc::new(Entropy { times: settings.get("times")?.as_u64()? }))
//!     }
//!     fn unlabelled(&self) -> Unlabelled {
//!         Unlabelled::Ignore
//!     }
//!     fn max_bins(&self) -> usize {
//!         255
//!     }
//!     fn seed(&self) -> u64 {
//!         0
//!     }
//!     fn validate(&self, shape: &DataShape) -> Result<()> {
//!         ferrank_runtime::error::check(shape.n_features > 1, "there is nothing to rank")
//!     }
//!     fn n_keys(&self, _: &RunData) -> u64 {
//!         self.times
//!     }
//!     fn forms(&self, data: &RunData, _: u64) -> Vec<Form> {
//!         vec![Form::Dense(data.features.len())]
//!     }
//!     fn populations(&self, data: &RunData) -> Vec<Range<u64>> {
//!         vec![0..self.n_keys(data)]
//!     }
//!     fn scores(&self, data: &RunData, populations: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
//!         Ok(vec![Estimate::mean(&populations[0], 0, data.features.len()).rank("entropy")])
//!     }
//! }
//!
//! fn accumulate(intake: &Intake<'_>, params: Entropy, options: &RunOptions<'_>) -> Result<Accumulator> {
//!     let scan: ScanSummary<'_> = options.scan(intake, params.max_bins())?;
//!     let identity = Identity::new(params, intake.problem, &scan.profile);
//!     let keys = options.keys(identity.n_keys())?;
//!     let contribution: Contribution = vec![Vector::dense(identity.data.entropies.clone())];
//!     let checkpoint = Checkpoint::open(identity, options.resume, options.memory, intake.monitor)?;
//!     for key in checkpoint.missing(keys) {
//!         checkpoint.add(key, contribution.clone())?;
//!     }
//!     checkpoint.close()
//! }
//!
//! # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! # use ferrank_data::{intake::View, schema::{Roles, Targets}, source::TableSource};
//! # use ferrank_runtime::monitor::Monitor;
//! # let column = |f: fn(i32) -> i32| Arc::new((0..40).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
//! # let columns = [("x", column(|i| i / 20)), ("z", column(|i| i % 4)), ("y", column(|i| i))];
//! # let batch = RecordBatch::try_from_iter(columns).unwrap();
//! # let source = TableSource::new("table", batch.schema(), vec![batch])?;
//! # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
//! # let view = View::new(&source, &roles, Unlabelled::Error);
//! # let problem = view.problem()?;
//! # let intake = view.intake(&problem, &monitor);
//! // x has two values, z four. Parts of a run may come from anywhere, as bytes.
//! let part = |keys: Range<u64>| accumulate(&intake, Entropy { times: 4 }, &RunOptions::default().with_keys(Some(keys)));
//! let parse = |settings: &Value| Entropy { times: 0 }.parse(settings.get("entropy")?);
//! let mut whole = part(0..1)?;
//! whole.merge(&Accumulator::from_ipc(part(1..4)?.to_ipc()?, "a part", &parse)?)?;
//! let ranking: Ranking = whole.ranking()?;
//! assert_eq!(ranking.scores[0].importance, [1.0, 2.0]);
//!
//! // A stream adds up run after run.
//! let mut stream = Condensed::new(whole.identity().clone());
//! stream.add(part(0..4)?, 1.0);
//! stream.add(part(0..4)?, 0.5);
//! assert_eq!(stream.ranking()?.scores[0].rank, [2, 1]);
//! # Ok::<(), ferrank_data::Error>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Attribute;
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
/// The [module](self) shows how a ranker is written.
///
/// ```
/// use ferrank_ranking::{Form, Identity, Ranker};
#[doc = include_str!("example_run.txt")]
///
/// // A ranker of four trees, and data with two features.
/// let Identity { ranker, data, .. } = &identity;
/// assert_eq!(ranker.populations(data), [0..4]);
/// assert_eq!(ranker.forms(data, 3), [Form::Dense(2)]);
/// // Rankers are equal if their names and settings are.
/// let read = ranker.parse(&ranker.to_json()).unwrap();
/// assert!(*read == **ranker);
/// ```
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

    /// Checks the settings that name features against the `features` there are.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) that names the setting and the feature.
    fn validate_features(&self, _features: &[Attribute]) -> Result<()> {
        Ok(())
    }

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

    /// The positions of the features that the scores rank, ascending; `None` for all.
    fn ranked_features(&self, _data: &RunData) -> Option<Vec<usize>> {
        None
    }

    /// How well the model behind the importances predicts each target, from the contributions of each population;
    /// otherwise the reason why that is not known.
    fn model_error(
        &self,
        _data: &RunData,
        _populations: &[Vec<Part<'_>>],
    ) -> std::result::Result<Vec<ModelError>, &'static str> {
        Err("the ranker makes no predictions")
    }

    /// Returns true if the importances of score number `score` come from the rows that the model was made of, so that they
    /// have an order also where the model predicts nothing.
    fn is_in_sample(&self, _score: usize) -> bool {
        false
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
