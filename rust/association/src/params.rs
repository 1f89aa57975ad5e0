//! Settings of the tests and their checks.

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Task, check_target_weights};
use ferrank_ranking::{DataShape, settings};
use ferrank_runtime::error::{Result, check};

settings! {
    /// Settings of the association ranker.
    ///
    /// ```
    /// use ferrank_association::AssociationParams;
    ///
    /// assert_eq!(AssociationParams::default().with_max_bins(63).max_bins, 63);
    /// ```
    pub struct AssociationParams {
        /// Number of bins of a numeric feature with more values; values in a bin have the same rank.
        max_bins, with_max_bins: usize = 255;
        /// Whether the p-value of a feature is the better of two, by Bonferroni's correction: that of the feature by itself, and
        /// that of what it adds to a linear model of the targets' ranks, or classes, in the features found before.
        partial, with_partial: bool = false;
        /// Weight of each target in the importances, in target order; `None`: 1 each.
        target_weights, with_target_weights: Option<Vec<f64>> = None;
        /// How rows without any target are treated.
        unlabelled, with_unlabelled: Unlabelled = Unlabelled::Error;
    }
}

/// Most models that are made, each of which finds features for the next. More find no more in simulations.
const ROUNDS: usize = 4;

impl AssociationParams {
    /// Most linear models of the targets that are made.
    pub(crate) fn rounds(&self) -> usize {
        if self.partial { ROUNDS } else { 0 }
    }

    /// Checks each setting, alone and together with the task and the targets.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) with the setting, its value and valid values.
    pub fn validate(&self, shape: &DataShape) -> Result<()> {
        let DataShape { task, n_targets, is_weighted, is_grouped, .. } = *shape;
        check(
            !is_weighted,
            "sample_weight: tests of association do not weigh rows; leave it out, or use the forest or Relief",
        )?;
        check(
            !is_grouped,
            "groups: tests of association take rows for independent; leave groups out, or use the forest or Relief",
        )?;
        check(
            task != Task::Unsupervised,
            "task: tests of association need a target, the task unsupervised has none; give one, or use the forest",
        )?;
        check((2..=65_535).contains(&self.max_bins), format!("max_bins: {} is not in 2 … 65535", self.max_bins))?;
        check(
            self.unlabelled != Unlabelled::Use,
            "unlabelled: rows without a target say nothing in tests of association; use unlabelled=\"ignore\"",
        )?;
        check_target_weights(self.target_weights.as_deref(), n_targets)
    }
}
