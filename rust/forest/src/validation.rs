//! Checks of the forest's settings.

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Task, check_target_weights};
use ferrank_ranking::DataShape;
use ferrank_runtime::error::{Error, Result, check};

use crate::params::{ForestParams, MaxFeatures, MaxSamples};
use crate::score::Score;
use crate::scores::defined;

impl ForestParams {
    /// Checks each setting, and those that depend on each other or on the shape of the data.
    ///
    /// # Errors
    /// [`Error::Setting`] that names the setting, the value and the values allowed.
    pub fn validate(&self, shape: &DataShape) -> Result<()> {
        self.validate_columns(shape.n_features, shape.n_targets, shape.task)?;
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
        check(self.n_estimators >= 1, "n_estimators: 0 trees; use at least 1")?;
        check(self.min_samples_leaf >= 1, "min_samples_leaf: 0; use at least 1")?;
        check(self.max_depth != Some(0), "max_depth: 0; use at least 1, or none for no limit")?;
        check((2..=65_535).contains(&self.max_bins), format!("max_bins: {} is not in 2 … 65535", self.max_bins))?;
        match self.max_features {
            Some(MaxFeatures::Count(count)) => check(
                (1..=n_features).contains(&count),
                format!("max_features: {count} is not in 1 … {n_features}, the number of features"),
            )?,
            Some(MaxFeatures::Share(share)) => {
                check(share > 0.0 && share <= 1.0, format!("max_features: share {share} is not in (0, 1]"))?
            }
            _ => {}
        }
        match self.max_samples {
            MaxSamples::All => {}
            _ if !self.bootstraps() => {
                return Err(Error::Setting("max_samples: only with bootstrap; set bootstrap, or leave it out".into()));
            }
            MaxSamples::Count(_) => {}
            MaxSamples::Share(share) => {
                check(share > 0.0 && share <= 1.0, format!("max_samples: share {share} is not in (0, 1]"))?
            }
        }
        check(!self.scores.is_empty(), format!("scores: none given; use {}", Score::names()))?;
        for (i, score) in self.scores.iter().enumerate() {
            check(
                self.scores[..i].iter().all(|s| s.name() != score.name()),
                format!("scores: '{}' is given twice", score.name()),
            )?;
        }
        self.scores.iter().try_for_each(|&score| defined(score, self, task))?;
        self.validate_supervision(task)?;
        check_target_weights(self.target_weights.as_deref(), n_targets)
    }

    fn validate_supervision(&self, task: Task) -> Result<()> {
        if let Some(w) = self.supervision {
            check((0.0..=1.0).contains(&w), format!("supervision: {w} is not in 0 … 1"))?;
        }
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
            "unlabelled: rows without a target are used at a level of supervision; set supervision in 0 … 1",
        )
    }
}
