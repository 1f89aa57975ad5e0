//! Checks of the forest's settings that depend on each other or on the data. Checks of a single setting are in
//! [`params`](crate::params).

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Problem, Task, check_feature_weights, check_target_weights};
use ferrank_data::store::CodeStore;
use ferrank_ranking::DataShape;
use ferrank_runtime::error::{Result, check};

use crate::params::{ForestParams, MaxFeatures, MaxSamples};
use crate::score::Score;
use crate::scores::defined;
use crate::shadows;

impl ForestParams {
    /// Checks each setting, and those that depend on each other or on the shape of the data.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) that names the setting, the value and the values allowed.
    pub fn validate(&self, shape: &DataShape) -> Result<()> {
        self.validate_columns(shape.n_features, shape.n_targets, shape.task)?;
        check(
            !shape.is_grouped || !matches!(self.max_samples, MaxSamples::Count(_)),
            "max_samples: with groups, whole groups are drawn; give a share of them in (0, 1], or leave it out",
        )?;
        match (self.max_samples, shape.n_rows) {
            (MaxSamples::Count(count), Some(n_rows)) => check(
                (1..=n_rows).contains(&count),
                format!("max_samples: {count} is not in 1 … {n_rows}, the number of rows"),
            ),
            _ => Ok(()),
        }
    }

    /// The part of [`validate`](Self::validate) that does not depend on the rows.
    fn validate_columns(&self, n_features: usize, n_targets: usize, task: Task) -> Result<()> {
        self.validate_values()?;
        if let Some(MaxFeatures::Count(count)) = self.max_features {
            check(
                (1..=n_features).contains(&count),
                format!("max_features: {count} is not in 1 … {n_features}, the number of features"),
            )?;
        }
        check(
            self.max_samples == MaxSamples::All || self.bootstraps(),
            "max_samples: only with bootstrap; set bootstrap, or leave it out",
        )?;
        self.scores.iter().try_for_each(|&score| defined(score, self, task))?;
        self.validate_measures(task)?;
        self.validate_supervision(task)?;
        shadows::validate(self, task)?;
        check(
            self.feature_weights.is_none() || self.clusters(task),
            "feature_weights: the impurity has no features; set supervision below 1, or leave feature_weights out",
        )?;
        check_feature_weights(self.feature_weights.as_deref(), n_features)?;
        check_target_weights(self.target_weights.as_deref(), n_targets)
    }

    /// Checks that bags can be drawn from the groups of `store`, if rows have groups.
    pub(crate) fn validate_groups(&self, problem: &Problem, store: &CodeStore) -> Result<()> {
        let Some((column, groups)) = problem.groups.as_ref().zip(store.groups.as_ref()) else { return Ok(()) };
        check(
            groups.len() >= 2 || !self.bootstraps(),
            format!(
                "groups: all {} rows have the same value in column '{}', so that no bag leaves out a row; use a column \
                 with 2 or more values, or leave groups out",
                store.rows, column.name
            ),
        )
    }

    fn validate_measures(&self, task: Task) -> Result<()> {
        if self.permutation_measures.is_empty() {
            return Ok(());
        }
        let scores: Vec<&str> = self.scores.iter().map(|score| score.name()).collect();
        check(
            self.scores.contains(&Score::Permutation),
            format!(
                "permutation_measures: for the score permutation, which is not among the scores {}; add it, or leave \
                 permutation_measures out",
                scores.join(", ")
            ),
        )?;
        check(
            matches!(task, Task::MultiLabel | Task::Hierarchical),
            format!(
                "permutation_measures: for label sets, not for the task {}; use targets that are labels (tasks \
                 multi-label and hierarchical), or leave permutation_measures out",
                task.name()
            ),
        )?;
        check(
            !self.per_target || task == Task::Hierarchical,
            "permutation_measures: of label sets, while with per_target each tree predicts one label; leave one of the \
             two out",
        )
    }

    fn validate_supervision(&self, task: Task) -> Result<()> {
        if task == Task::Unsupervised {
            check(
                self.supervision.unwrap_or(0.0) == 0.0,
                "supervision: the task unsupervised has no target; use 0, or leave it out",
            )?;
            return check(
                !self.per_target && !self.by_target,
                "per_target, by_target: the task unsupervised has no target; leave them out",
            );
        }
        check(
            self.unlabelled != Unlabelled::Use || self.supervision.is_some(),
            "unlabelled: rows without a target are used at a level of supervision; set supervision in 0 … 1, such as 0.5",
        )
    }
}
