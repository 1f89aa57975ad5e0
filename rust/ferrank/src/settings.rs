//! The rankers, by name. A new ranker is a variant here.

use std::sync::Arc;

use ferrank_association::AssociationParams;
use ferrank_data::schema::Roles;
use ferrank_data::source::ChunkSource;
use ferrank_forest::{ForestParams, Score};
use ferrank_ranking::{Accumulator, Identity, Ranker, RunOptions};
use ferrank_relief::{ReliefParams, ReliefScore};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_univariate::{UnivariateParams, UnivariateScore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A ranker and its settings.
///
/// ```
/// use ferrank::prelude::*;
///
/// let settings = Settings::from(ForestParams::default().with_seed(7));
/// assert!(matches!(&settings, Settings::Forest(params) if params.seed == 7));
/// assert_eq!(settings.ranker().name(), "forest");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Settings {
    /// An ensemble of trees.
    Forest(ForestParams),
    /// Nearest neighbours.
    Relief(ReliefParams),
    /// Tests of single features.
    Association(AssociationParams),
    /// Features one by one.
    Univariate(UnivariateParams),
}

impl From<ForestParams> for Settings {
    fn from(params: ForestParams) -> Self {
        Settings::Forest(params)
    }
}

impl From<ReliefParams> for Settings {
    fn from(params: ReliefParams) -> Self {
        Settings::Relief(params)
    }
}

impl From<AssociationParams> for Settings {
    fn from(params: AssociationParams) -> Self {
        Settings::Association(params)
    }
}

impl From<UnivariateParams> for Settings {
    fn from(params: UnivariateParams) -> Self {
        Settings::Univariate(params)
    }
}

impl Settings {
    /// The settings as accumulators see them.
    pub fn ranker(&self) -> &dyn Ranker {
        match self {
            Settings::Forest(params) => params,
            Settings::Relief(params) => params,
            Settings::Association(params) => params,
            Settings::Univariate(params) => params,
        }
    }

    /// The settings of a run.
    pub fn from_run(run: &Identity) -> Option<Self> {
        serde_json::from_value(ferrank_ranking::ranker::ranker_to_json(&*run.ranker)).ok()
    }

    /// The same settings with another seed, for a data set of `rows` rows; counts of rows are limited to `rows`.
    pub(crate) fn for_block(&self, seed: u64, rows: u64) -> Self {
        match self {
            Settings::Forest(params) => Settings::Forest(params.for_block(seed, rows)),
            Settings::Relief(params) => Settings::Relief(params.for_block(seed, rows)),
            Settings::Association(params) => Settings::Association(params.clone()),
            Settings::Univariate(params) => Settings::Univariate(params.clone()),
        }
    }

    pub(crate) fn accumulate(
        &self,
        source: &dyn ChunkSource,
        roles: &Roles,
        options: &RunOptions<'_>,
        monitor: &Monitor,
    ) -> Result<Accumulator> {
        match self {
            Settings::Forest(params) => ferrank_forest::accumulate(source, roles, params, options, monitor),
            Settings::Relief(params) => ferrank_relief::accumulate(source, roles, params, options, monitor),
            Settings::Association(params) => ferrank_association::accumulate(source, roles, params, options, monitor),
            Settings::Univariate(params) => ferrank_univariate::accumulate(source, roles, params, options, monitor),
        }
    }
}

/// A score that a ranker can compute.
///
/// ```
/// let scores = ferrank::settings::score_definitions();
/// assert!(scores.iter().any(|score| score.ranker == "forest" && score.name == "genie3"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreDefinition {
    /// The name of the ranker in settings.
    pub ranker: &'static str,
    /// The name of the score in settings and results.
    pub name: &'static str,
    /// What it is, in a few words.
    pub definition: &'static str,
}

/// All scores of all rankers.
pub fn score_definitions() -> Vec<ScoreDefinition> {
    let of = |ranker| move |(name, definition)| ScoreDefinition { ranker, name, definition };
    let forest =
        Score::ALL.iter().map(|score| (score.name(), score.definition())).map(of(ForestParams::default().name()));
    let relief =
        ReliefScore::ALL.iter().map(|score| (score.name(), score.definition())).map(of(ReliefParams::default().name()));
    let association = [ferrank_association::SCORE].map(of(AssociationParams::default().name()));
    let univariate = UnivariateScore::ALL
        .iter()
        .map(|score| (score.name(), score.definition()))
        .map(of(UnivariateParams::default().name()));
    forest.chain(relief).chain(association).chain(univariate).collect()
}

/// Reads the ranker in a saved accumulator.
pub(crate) fn parse_ranker(settings: &Value) -> Option<Arc<dyn Ranker>> {
    match serde_json::from_value(settings.clone()).ok()? {
        Settings::Forest(params) => Some(Arc::new(params)),
        Settings::Relief(params) => Some(Arc::new(params)),
        Settings::Association(params) => Some(Arc::new(params)),
        Settings::Univariate(params) => Some(Arc::new(params)),
    }
}
