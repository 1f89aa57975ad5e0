//! Scores: ways to turn trees into importances of features.
//!
//! A [`Score`] is a setting. Its implementation is a [`ScoreMethod`] in a file of its own, which [`Score::method`]
//! looks up. A method declares what it needs and makes an [`Observer`] for each tree. The observer sees every split,
//! then the whole tree with its out-of-bag rows if the method needs them, at once or in parts, and becomes the contribution of the tree.
//!
//! To add a score, add its file, its name and definition in `score.rs`, and its line in [`Score::method`].
//!
//! Memory: a number for each feature, score and thread.

mod coverage;
mod genie3;
mod mdi_oob;
mod observer;
pub(crate) mod permutation;
mod symbolic;

use ferrank_data::schema::Task;
use ferrank_ranking::Contribution;
use ferrank_runtime::error::{Result, check};

use crate::context::GrowContext;
use crate::oob::{OobNeeds, OobPart, OobView};
use crate::params::ForestParams;
use crate::score::Score;
use crate::shadows;
use crate::tree_buffer::BufferedSplit;
pub(crate) use observer::ScoreSize;
use observer::{Harvest, Observer, ScoreMethod, SplitEvent};

impl Score {
    /// The implementation of the score.
    pub(crate) fn method(self) -> Box<dyn ScoreMethod> {
        match self {
            Score::Genie3 => Box::new(genie3::Genie3),
            Score::Symbolic => Box::new(symbolic::Symbolic),
            Score::Coverage => Box::new(coverage::Coverage),
            Score::Permutation => Box::new(permutation::Permutation),
            Score::MdiOob => Box::new(mdi_oob::MdiOob),
        }
    }
}

/// Dimensions of the importances of an ensemble.
pub(crate) fn score_size(context: GrowContext<'_>) -> ScoreSize {
    let n_targets = if context.params.by_target { context.store.targets.len() } else { 0 };
    ScoreSize { n_features: context.store.codings.len(), n_targets }
}

/// Checks that `score` is defined under `params` for `task`.
pub(crate) fn defined(score: Score, params: &ForestParams, task: Task) -> Result<()> {
    let method = score.method();
    // Without a bootstrap there are no such rows.
    let message = "needs out-of-bag rows, so a bootstrap; set bootstrap, or leave the score out";
    check(method.oob_needs(params).is_none() || params.bootstraps(), format!("scores: {} {message}", score.name()))?;
    method.validate(params, task)
}

/// Importances that a run computes.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) score: Score,
    pub(crate) name: String,
}

/// The importances that a run under `params` computes, in the order of the vectors of a tree.
pub(crate) fn variants(params: &ForestParams) -> Vec<Variant> {
    let of_score = |&score: &Score| {
        let suffixes = score.method().suffixes(params).into_iter();
        suffixes.map(move |suffix| Variant { score, name: format!("{}{suffix}", score.name()) })
    };
    params.scores.iter().flat_map(of_score).collect()
}

/// What the scores of `params` read of a complete tree with its out-of-bag rows; `None` if none of them reads such rows.
pub(crate) fn oob_needs(params: &ForestParams) -> Option<OobNeeds> {
    params.scores.iter().filter_map(|score| score.method().oob_needs(params)).reduce(OobNeeds::and)
}

/// The observers of one tree, one for each score.
pub(crate) struct SplitScores {
    /// The weight of the root, whose split comes first.
    root: Option<f64>,
    observers: Vec<Box<dyn Observer>>,
    /// The number of the first shadow, if there are some.
    first_shadow: Option<usize>,
}

impl SplitScores {
    pub(crate) fn new(params: &ForestParams, size: ScoreSize) -> Self {
        let observers = params.scores.iter().map(|score| score.method().observer(params, size)).collect();
        SplitScores { root: None, observers, first_shadow: params.shadows.then_some(size.n_features / 2) }
    }

    /// Adds the split of a node of this depth and weight. `gain_by_target` are the parts of the targets in its gain.
    pub(crate) fn on_split(&mut self, depth: u32, weight: f64, split: &BufferedSplit, gain_by_target: &[f64]) {
        let root = *self.root.get_or_insert(weight);
        let BufferedSplit { feature, gain, .. } = *split;
        let event = SplitEvent { feature, depth, share: weight / root, gain, gain_by_target };
        self.observers.iter_mut().for_each(|observer| observer.on_split(&event));
    }

    /// Shows the complete tree to all observers.
    ///
    /// # Errors
    /// The first error of an observer.
    pub(crate) fn on_tree(&mut self, tree: &OobView<'_>) -> Result<()> {
        self.observers.iter_mut().try_for_each(|observer| observer.on_tree(tree))
    }

    /// Shows the upper part of a tree to all observers; `grows`: the leaves that subtrees take the place of.
    ///
    /// # Errors
    /// The first error of an observer.
    pub(crate) fn on_upper(&mut self, upper: &OobView<'_>, grows: &[bool]) -> Result<()> {
        self.observers.iter_mut().try_for_each(|observer| observer.on_upper(upper, grows))
    }

    /// Shows a subtree to all observers.
    ///
    /// # Errors
    /// The first error of an observer.
    pub(crate) fn on_part(&mut self, part: &OobPart<'_>) -> Result<()> {
        self.observers.iter_mut().try_for_each(|observer| observer.on_part(part))
    }

    /// A vector for each score, followed by those of the scores that are reported by target and, if there are shadows,
    /// a vector of these for each score.
    pub(crate) fn harvest(self) -> Contribution {
        let harvests: Vec<Harvest> = self.observers.into_iter().flat_map(Observer::harvest).collect();
        let n_scores = harvests.len();
        let (mut vectors, by_target): (Contribution, Vec<_>) =
            harvests.into_iter().map(|Harvest { importances, by_target }| (importances, by_target)).unzip();
        vectors.extend(by_target.into_iter().flatten());
        match self.first_shadow {
            None => vectors,
            Some(first) => shadows::apart(vectors, n_scores, first),
        }
    }
}
