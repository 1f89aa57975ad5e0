//! The forest ranker.

mod params;
mod tree;

pub use params::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Score, Unlabelled};
pub use tree::{Node, Split, Test, Tree};

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

/// Grows tree number `tree` of the ensemble that [`rank`] grows with the same arguments.
///
/// With `per_target`, trees are numbered target by target.
pub fn grow_tree(
    _source: &dyn ChunkSource,
    _roles: &Roles,
    _params: &ForestParams,
    _tree: usize,
    _monitor: &Monitor,
) -> Result<Tree> {
    Err(Error::Setting("not there yet".into()))
}
