//! The forest ranker.

mod params;

pub use params::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Score, Unlabelled};

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::ranking::Ranking;
use crate::schema::Roles;
use crate::source::ChunkSource;

/// Ranks the features of `source` with an ensemble of trees, on a pool of `threads` threads.
pub fn rank(
    _source: &dyn ChunkSource,
    _roles: &Roles,
    _params: &ForestParams,
    _threads: usize,
    _monitor: &Monitor,
) -> Result<Ranking> {
    Err(Error::Setting("not there yet".into()))
}
