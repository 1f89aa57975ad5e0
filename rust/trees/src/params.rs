//! Settings of a tree, and their checks.

use serde::{Deserialize, Serialize};

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Problem, Task};
use ferrank_ranking::settings;
use ferrank_runtime::error::{Error, Result, check};

/// What estimates the features of a node, and chooses the test of the best.
///
/// ```
/// use ferrank_trees::Selector;
///
/// assert_eq!(Selector::ReliefAccuracy.name(), "relief+accuracy");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// ReliefF for classes, RReliefF for numbers, on the rows of the node.
    Relief,
    /// Myopic Relief, Eq. 5 of Robnik-Šikonja and Kononenko 1999; classes only.
    Myopic,
    /// Share of rows in the majority class of their side, Eq. 16; classes only.
    Accuracy,
    /// Mean squared error of the predictor on each side, Eq. 17 and 18; numbers only.
    Mse,
    /// Decrease of the Gini index (Breiman et al. 1984); classes only.
    Gini,
    /// Information gain over the information of the test (Quinlan 1986); classes only.
    GainRatio,
    /// Relief until its estimates agree with the accuracy, then the accuracy.
    #[serde(rename = "relief+accuracy")]
    ReliefAccuracy,
    /// Relief until its estimates agree with the mean squared error, then the mean squared error.
    #[serde(rename = "relief+mse")]
    ReliefMse,
}

impl Selector {
    /// The selector's name in settings and trees.
    pub fn name(self) -> &'static str {
        match self {
            Selector::Relief => "relief",
            Selector::Myopic => "myopic",
            Selector::Accuracy => "accuracy",
            Selector::Mse => "mse",
            Selector::Gini => "gini",
            Selector::GainRatio => "gain_ratio",
            Selector::ReliefAccuracy => "relief+accuracy",
            Selector::ReliefMse => "relief+mse",
        }
    }

    /// The selector that a combined one switches to.
    pub(crate) fn other(self) -> Option<Selector> {
        match self {
            Selector::ReliefAccuracy => Some(Selector::Accuracy),
            Selector::ReliefMse => Some(Selector::Mse),
            _ => None,
        }
    }

    fn validate(self, task: Task) -> Result<()> {
        let name = self.name();
        let classes = task == Task::Classification;
        match self {
            Selector::Relief => Ok(()),
            Selector::Mse | Selector::ReliefMse => {
                check(!classes, format!("selector: {name} is for numbers, the target is nominal; use relief+accuracy"))
            }
            _ => check(classes, format!("selector: {name} is for classes, the target is numeric; use relief+mse")),
        }
    }
}

/// What a leaf predicts.
///
/// ```
/// use ferrank_trees::Leaves;
///
/// assert_eq!(Leaves::Linear.name(), "linear");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leaves {
    /// The class of most of its rows; classes only.
    Majority,
    /// The mean of its rows; numbers only.
    Mean,
    /// A linear model of its rows in the numeric features, or the mean where that is better; numbers only.
    Linear,
}

impl Leaves {
    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Leaves::Majority => "majority",
            Leaves::Mean => "mean",
            Leaves::Linear => "linear",
        }
    }
}

settings! {
    /// Settings of a tree.
    ///
    /// ```
    /// use ferrank_trees::{Selector, TreeParams};
    ///
    /// let params = TreeParams::default().with_selector(Selector::ReliefAccuracy).with_m(None);
    /// assert_eq!(params.switch_at, 0.8);
    /// ```
    pub struct TreeParams {
        /// What chooses the test of a node.
        selector, with_selector: Selector = Selector::Relief;
        /// What a leaf predicts; `None`: the majority class, or the mean.
        leaves, with_leaves: Option<Leaves> = None;
        /// m of the m-estimate of error that the tree is pruned by; `None`: it is not pruned.
        m, with_m: Option<f64> = Some(2.0);
        /// Correlation of Relief's estimates with those of the other selector from which on the other one chooses, in the
        /// node and below it; for combined selectors.
        switch_at, with_switch_at: f64 = 0.8;
        /// k of Relief; `None`: 10 for classes, 70 for numbers.
        n_neighbors, with_n_neighbors: Option<usize> = None;
        /// σ of Relief's rank weights `exp(−(rank/σ)²)`; `None`: equal weights for classes, 20 for numbers.
        sigma, with_sigma: Option<f64> = None;
        /// Least number of rows of a leaf.
        min_samples_leaf, with_min_samples_leaf: usize = 5;
        /// Share of rows of one class from which on a node is a leaf, in (0, 1].
        max_purity, with_max_purity: f64 = 0.97;
        /// How rows without a target are treated.
        unlabelled, with_unlabelled: Unlabelled = Unlabelled::Error;
    }
}

impl TreeParams {
    /// Checks each setting, alone and together with the columns of `problem`.
    ///
    /// # Errors
    /// [`Error::Setting`] with the setting, its value and valid values.
    pub fn validate(&self, problem: &Problem) -> Result<()> {
        let task = problem.task;
        if !matches!(task, Task::Classification | Task::Regression) {
            return Err(Error::Setting(format!(
                "task: a tree has one target, nominal or numeric, and the task is {}; name one target",
                task.name()
            )));
        }
        check(
            problem.weight.is_none(),
            "sample_weight: a tree that splits by Relief does not weigh rows; leave it out",
        )?;
        check(problem.groups.is_none(), "groups: a tree has no use for groups of rows; leave them out")?;
        self.selector.validate(task)?;
        self.validate_leaves(task)?;
        check(
            self.m.is_none_or(|m| m >= 0.0 && m.is_finite()),
            format!("m: {} is not a number of at least 0; use 2, or none for no pruning", self.m.unwrap_or(0.0)),
        )?;
        check(
            (-1.0..=1.0).contains(&self.switch_at),
            format!("switch_at: {} is no correlation; use a number in -1 … 1", self.switch_at),
        )?;
        check(self.n_neighbors != Some(0), "n_neighbors: 0; use at least 1")?;
        check(
            self.sigma.is_none_or(|sigma| sigma > 0.0 && sigma.is_finite()),
            format!("sigma: {} is not above 0; use a finite number", self.sigma.unwrap_or(0.0)),
        )?;
        check(self.min_samples_leaf > 0, "min_samples_leaf: 0; use at least 1")?;
        check(
            self.max_purity > 0.0 && self.max_purity <= 1.0,
            format!("max_purity: {} is not in (0, 1]; use 0.97, or 1 for pure leaves", self.max_purity),
        )?;
        check(
            self.unlabelled != Unlabelled::Use,
            "unlabelled: rows without a target cannot be used by a tree; use error or ignore",
        )
    }

    fn validate_leaves(&self, task: Task) -> Result<()> {
        let classes = task == Task::Classification;
        match self.leaves {
            Some(leaves) if (leaves == Leaves::Majority) != classes => {
                let (target, instead) = if classes { ("nominal", "majority") } else { ("numeric", "mean or linear") };
                Err(Error::Setting(format!(
                    "leaves: {} is not for a {target} target; use {instead}, or leave it out",
                    leaves.name()
                )))
            }
            _ => Ok(()),
        }
    }

    /// True if leaves may have linear models.
    pub(crate) fn has_models(&self) -> bool {
        self.leaves == Some(Leaves::Linear)
    }

    /// k and σ of Relief for this task.
    pub(crate) fn neighborhood(&self, task: Task) -> (usize, Option<f64>) {
        match task {
            Task::Classification => (self.n_neighbors.unwrap_or(10), self.sigma),
            _ => (self.n_neighbors.unwrap_or(70), self.sigma.or(Some(20.0))),
        }
    }
}
