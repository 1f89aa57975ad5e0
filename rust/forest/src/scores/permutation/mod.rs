//! The permutation score: the increase of the out-of-bag error of a tree when the values of a feature are permuted
//! among the out-of-bag rows (Petković et al. 2020a, Eq. 3; Breiman 2001).
//!
//! The rows form a ring in a random order, which is drawn once for a tree (`ring`). To permute a feature, each row
//! takes the value of the row `turn` positions ahead, where `turn` is drawn for the feature from 1 … n − 1. These
//! permutations are not uniform, but the score has the same properties:
//! - A row takes the value of each other row with the same probability. The expected error is therefore the mean over
//!   all pairs of rows (e_switch of Fisher, Rudin and Dominici 2019). In a uniform permutation one row in n keeps its
//!   own value, so that the expected increase is (n − 1) / n of this.
//! - Two rows take the values of any two other rows with the same probability, up to terms of order 1 / n². The
//!   variance is therefore the same up to a share of order 1 / n. A turn by 0 would add variance, because all rows
//!   would keep their values at once.
//! - The increases of two features are uncorrelated, because their turns are independent.
//!
//! If rows have groups, all rows of the ring are of groups that the tree has not seen, so that a feature which merely
//! tells groups apart scores 0 on average. Values are exchanged among all rows of the ring, not between groups alone. Of
//! n rows in G groups of about the same size, a row takes the value of its own group with probability 1 / G, so that a
//! feature which is constant within groups scores (G − 1) / G of what it would between groups, and no other feature
//! scores less. In return each row takes the value of another group than its neighbor in the group does, which averages
//! over pairs of groups: an exchange of whole groups has the same mean and a greater variance.
//!
//! Only features on the path of a row can change its prediction, from the first node where the permuted value goes to
//! the other side. Each row therefore walks its path once, and a detour from such a node for each such feature. A step
//! has to wait until its node is in the cache; many rows and detours are walked together, so that these waits overlap
//! (`walk`). Rows without a target have no error and are skipped.
//!
//! The error is a mean over the targets (`errors`). Of label sets other measures can be asked for, each of which makes a
//! score of its own (`measured`). A tree whose nodes do not fit into memory comes in parts (`parts`).
//!
//! Memory: a code for each out-of-bag row and tested feature, or with temporary files for each feature of one band; and
//! the codes of a block of rows.

mod errors;
pub(crate) mod measured;
mod parts;
mod ring;
mod walk;

use ferrank_data::schema::Task;
use ferrank_measures::Measure;
use ferrank_ranking::Vector;
use ferrank_runtime::error::{Result, check};

use super::observer::{Harvest, Observer, ScoreMethod, ScoreSize};
use crate::context::GrowContext;
use crate::oob::{OobNeeds, OobPart, OobSize, OobView};
use crate::paired::{PairedTree, WalkedCode};
use crate::params::ForestParams;
use crate::pieces::WAITING;
use errors::{ErrorScale, ErrorSums, Judge};
use measured::JudgedSize;
use parts::PartSums;
use ring::Ring;
use walk::walk_all;

pub(super) struct Permutation;

impl ScoreMethod for Permutation {
    fn validate(&self, _: &ForestParams, task: Task) -> Result<()> {
        check(
            task != Task::Unsupervised,
            "scores: permutation needs a target to predict, the task unsupervised has none; leave it out",
        )
    }

    fn oob_needs(&self, params: &ForestParams) -> Option<OobNeeds> {
        Some(OobNeeds { predictions: true, shares: !params.permutation_measures.is_empty(), contrasts: false })
    }

    fn oob_bytes(&self, size: &OobSize, context: GrowContext<'_>) -> usize {
        let ring = bytes_of_rows(size);
        let measured = match context.params.permutation_measures.is_empty() {
            true => 0.0,
            false => JudgedSize::new(size, context).bytes(),
        };
        (ring + measured) as usize
    }

    fn suffixes(&self, params: &ForestParams) -> Vec<String> {
        match &params.permutation_measures[..] {
            [] | [_] => vec![String::new()],
            several => several.iter().map(|measure| format!("_{}", measure.name())).collect(),
        }
    }

    fn observer(&self, params: &ForestParams, _: ScoreSize) -> Box<dyn Observer> {
        match params.permutation_measures.is_empty() {
            true => Box::new(Increases::Found(Vec::new())),
            false => Box::new(MeasuredLosses::new(params.permutation_measures.clone())),
        }
    }
}

/// Bytes of the rows of a tree in external memory.
pub(crate) fn bytes_of_rows(size: &OobSize) -> f64 {
    // The records of rows have their codes twice, those of a few detours once.
    let waiting = (4.0 * size.out_of_bag * size.n_features as f64).min(WAITING as f64);
    let tree = size.leaves * bytes_of_leaf(size.is_narrow) as f64;
    Ring::bytes(size.out_of_bag, size.n_features, size.is_narrow) + waiting + tree
}

/// Bytes for each leaf of the tree that rows are walked down. `is_narrow` if all codes fit in a byte.
pub(crate) fn bytes_of_leaf(is_narrow: bool) -> usize {
    if is_narrow { PairedTree::<u8>::bytes_of_leaf() } else { PairedTree::<u16>::bytes_of_leaf() }
}

/// The increases of the error.
enum Increases {
    /// By ascending feature.
    Found(Vec<(u32, f64)>),
    /// Those of a tree in parts, some of which may still come.
    InParts(Box<PartSums>),
}

impl Observer for Increases {
    fn on_tree(&mut self, tree: &OobView<'_>) -> Result<()> {
        *self = Increases::Found(importances(tree)?);
        Ok(())
    }

    fn on_upper(&mut self, upper: &OobView<'_>, grows: &[bool]) -> Result<()> {
        if let Some(scratch) = upper.place.scratch()
            && let Some(sums) = PartSums::new(upper, grows, scratch)?
        {
            *self = Increases::InParts(Box::new(sums));
        }
        Ok(())
    }

    fn on_part(&mut self, part: &OobPart<'_>) -> Result<()> {
        match self {
            Increases::InParts(sums) => sums.add(part),
            _ => Ok(()),
        }
    }

    fn harvest(self: Box<Self>) -> Vec<Harvest> {
        let found = match *self {
            Increases::Found(found) => found,
            Increases::InParts(sums) => sums.importances(),
        };
        vec![Vector::sparse(found).into()]
    }
}

/// The relative losses of each measure, by ascending feature.
struct MeasuredLosses {
    measures: Vec<Measure>,
    losses: Vec<Vec<(u32, f64)>>,
}

impl MeasuredLosses {
    fn new(measures: Vec<Measure>) -> Self {
        MeasuredLosses { losses: vec![Vec::new(); measures.len()], measures }
    }
}

impl Observer for MeasuredLosses {
    fn on_tree(&mut self, tree: &OobView<'_>) -> Result<()> {
        self.losses = measured::importances(tree, &self.measures)?;
        Ok(())
    }

    fn harvest(self: Box<Self>) -> Vec<Harvest> {
        self.losses.into_iter().map(|losses| Vector::sparse(losses).into()).collect()
    }
}

/// Importances of the features that `view.tree` tests: (feature, value) by ascending feature.
///
/// # Errors
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request,
/// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full.
pub(crate) fn importances(view: &OobView<'_>) -> Result<Vec<(u32, f64)>> {
    let features = &view.tree.columns.features;
    let rows = view.labelled_rows();
    if rows.is_empty() || features.is_empty() {
        return Ok(Vec::new());
    }
    let scale = ErrorScale::new(view.targets, &rows);
    let ring = Ring::new(view, &rows, &view.tree.columns)?;
    let trial = Trial { view, scale: &scale, ring: &ring };
    let sums = if view.tree.columns.is_narrow() { trial.run::<u8>()? } else { trial.run::<u16>()? };
    let mut importances: Vec<_> = features.iter().copied().zip(sums.importances(&scale)).collect();
    importances.sort_unstable_by_key(|&(feature, _)| feature);
    Ok(importances)
}

/// The inputs of the error sums of all rows.
struct Trial<'a> {
    view: &'a OobView<'a>,
    scale: &'a ErrorScale,
    ring: &'a Ring,
}

impl Trial<'_> {
    /// Error sums over all rows; `C` holds the codes of all features.
    fn run<C: WalkedCode>(&self) -> Result<ErrorSums> {
        let Trial { view, scale, ring } = *self;
        let mut sums = ErrorSums::new(scale, view.tree.columns.len());
        let judge = Judge { scale, targets: view.targets, leaves: view.predictions };
        walk_all::<C>(view, ring, |_, rows, walk, _| {
            sums.add(judge, rows, walk);
            Ok(())
        })?;
        Ok(sums)
    }
}
