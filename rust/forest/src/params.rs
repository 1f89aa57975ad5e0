//! Settings of the forest ranker and their checks.

use serde::{Deserialize, Serialize};

use crate::score::Score;
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Task;
use ferrank_runtime::error::{Error, Result};

/// A kind of ensemble: how its trees differ from each other.
///
/// ```
/// use ferrank_forest::{Ensemble, ForestParams};
///
/// let params = ForestParams::default().with_ensemble(Ensemble::Bagging);
/// assert!(params.bootstraps());
/// assert_eq!(params.features_per_node(100), 100);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensemble {
    /// Bootstrap replicates, a random subset of the features at each node (Breiman 2001).
    RandomForest,
    /// Bootstrap replicates, all features at each node (Breiman 1996).
    Bagging,
    /// All rows, one random cut for each feature (Geurts et al. 2006).
    ExtraTrees,
}

impl Ensemble {
    /// The ensemble's name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Ensemble::RandomForest => "random_forest",
            Ensemble::Bagging => "bagging",
            Ensemble::ExtraTrees => "extra_trees",
        }
    }

    /// The ensemble called `name`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "random_forest" => Ok(Ensemble::RandomForest),
            "bagging" => Ok(Ensemble::Bagging),
            "extra_trees" => Ok(Ensemble::ExtraTrees),
            _ => Err(Error::Setting(format!(
                "ensemble: unknown ensemble '{name}'; use random_forest, bagging or extra_trees"
            ))),
        }
    }
}

/// The number of non-constant features that are searched in a node.
///
/// ```
/// use ferrank_forest::{ForestParams, MaxFeatures};
///
/// let params = ForestParams::default();
/// assert_eq!(params.features_per_node(90), 10);
/// assert_eq!(params.with_max_features(Some(MaxFeatures::Share(0.5))).features_per_node(90), 45);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxFeatures {
    /// `ceil(sqrt(D))`.
    Sqrt,
    /// `ceil(log2(D))`, at least 1.
    Log2,
    /// All of them.
    All,
    /// A number of features.
    Count(usize),
    /// A share of the features in (0, 1], at least one feature.
    Share(f64),
}

/// The number of rows that are drawn for a tree.
///
/// ```
/// use ferrank_forest::{ForestParams, MaxSamples};
///
/// let params = ForestParams::default();
/// assert_eq!(params.rows_per_tree(1_000), 1_000);
/// assert_eq!(params.with_max_samples(MaxSamples::Share(0.2)).rows_per_tree(1_000), 200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxSamples {
    /// As many as there are.
    All,
    /// A number of rows.
    Count(u64),
    /// A share of the rows in (0, 1], at least one row.
    Share(f64),
}

/// The rule that chooses among features with equal gains.
///
/// In a node of few examples, many features separate the examples perfectly. If the first of them were always taken,
/// importances would decrease with the number of the column, even among irrelevant features.
///
/// ```
/// use ferrank_forest::{ForestParams, Ties};
///
/// assert_eq!(ForestParams::default().ties, Ties::Random);
/// let as_clus = ForestParams::default().with_ties(Ties::Lowest);
/// # assert_eq!(as_clus.ties, Ties::Lowest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// A feature drawn at random.
    Random,
    /// The feature with the lowest number, as in CLUS.
    Lowest,
}

impl Ties {
    /// The rule's name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Ties::Random => "random",
            Ties::Lowest => "lowest",
        }
    }

    /// The rule called `name`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "random" => Ok(Ties::Random),
            "lowest" => Ok(Ties::Lowest),
            _ => Err(Error::Setting(format!("ties: unknown rule '{name}'; use random or lowest"))),
        }
    }
}

/// Settings of the forest ranker.
///
/// ```
/// use ferrank_forest::{Ensemble, ForestParams};
///
/// let params = ForestParams::default().with_ensemble(Ensemble::ExtraTrees).with_n_estimators(500);
/// assert!(!params.bootstraps());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForestParams {
    /// The kind of ensemble.
    pub ensemble: Ensemble,
    /// Number of trees.
    pub n_estimators: usize,
    /// Features looked at in a node; `None`: `Sqrt` for a random forest, else `All`.
    pub max_features: Option<MaxFeatures>,
    /// Least number of examples in a leaf, counted with bag multiplicity.
    pub min_samples_leaf: u64,
    /// Greatest depth of a tree; `None`: no limit. The root is at depth 0.
    pub max_depth: Option<usize>,
    /// Whether rows are drawn with replacement; `None`: yes, except for extra trees.
    pub bootstrap: Option<bool>,
    /// Rows drawn for a tree; only with bootstrap.
    pub max_samples: MaxSamples,
    /// Greatest number of codes of a numeric feature, 2 to 65,535. A feature with no more distinct
    /// values is searched exactly, others at quantiles.
    pub max_bins: usize,
    /// Which of the features with equal gains is tested.
    pub ties: Ties,
    /// The scores; all are computed from the same trees.
    pub scores: Vec<Score>,
    /// One ensemble for each target, importances averaged with the target weights
    /// (Petković et al. 2020a, §2.1, the STR variant).
    pub per_target: bool,
    /// Whether `genie3` is reported by target as well.
    pub by_target: bool,
    /// Weight of each target in the impurity, in target order; `None`: 1 each.
    pub target_weights: Option<Vec<f64>>,
    /// The share w of the targets in the impurity, in [0, 1]; features make up the rest (Petković et al. 2023, Eq. 1).
    /// `None`: the targets alone, and rows without any are not used.
    pub supervision: Option<f64>,
    /// How rows without any target are treated. With a supervision of 1 they have no effect, so that
    /// [`Unlabelled::Use`] means [`Unlabelled::Ignore`].
    pub unlabelled: Unlabelled,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Default for ForestParams {
    fn default() -> Self {
        ForestParams {
            ensemble: Ensemble::RandomForest,
            n_estimators: 100,
            max_features: None,
            min_samples_leaf: 2,
            max_depth: None,
            bootstrap: None,
            max_samples: MaxSamples::All,
            max_bins: 255,
            ties: Ties::Random,
            scores: vec![Score::Genie3],
            per_target: false,
            by_target: false,
            target_weights: None,
            supervision: None,
            unlabelled: Unlabelled::Error,
            seed: 0,
        }
    }
}

/// Makes a method for each setting that returns the settings with another value of it.
macro_rules! setters {
    ($($name:ident: $field:ident: $type:ty;)*) => {
        impl ForestParams {
            $(
                #[doc = concat!("The same settings with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $name(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

setters! {
    with_ensemble: ensemble: Ensemble;
    with_n_estimators: n_estimators: usize;
    with_max_features: max_features: Option<MaxFeatures>;
    with_min_samples_leaf: min_samples_leaf: u64;
    with_max_depth: max_depth: Option<usize>;
    with_bootstrap: bootstrap: Option<bool>;
    with_max_samples: max_samples: MaxSamples;
    with_max_bins: max_bins: usize;
    with_ties: ties: Ties;
    with_scores: scores: Vec<Score>;
    with_per_target: per_target: bool;
    with_by_target: by_target: bool;
    with_target_weights: target_weights: Option<Vec<f64>>;
    with_supervision: supervision: Option<f64>;
    with_unlabelled: unlabelled: Unlabelled;
    with_seed: seed: u64;
}

impl ForestParams {
    /// Returns true if rows are drawn with replacement.
    pub fn bootstraps(&self) -> bool {
        self.bootstrap.unwrap_or(self.ensemble != Ensemble::ExtraTrees)
    }

    /// The share of the targets in the impurity for `task`.
    pub(crate) fn share_of_targets(&self, task: Task) -> f64 {
        match task {
            Task::Unsupervised => 0.0,
            _ => self.supervision.unwrap_or(1.0),
        }
    }

    /// Returns true if features are components, too.
    pub(crate) fn clusters(&self, task: Task) -> bool {
        self.share_of_targets(task) < 1.0
    }

    /// How rows without any target are treated.
    pub fn treatment(&self) -> Unlabelled {
        match (self.unlabelled, self.supervision) {
            (Unlabelled::Use, Some(1.0)) => Unlabelled::Ignore,
            (unlabelled, _) => unlabelled,
        }
    }

    /// Number of non-constant features to look at in a node, of `n_features`.
    pub fn features_per_node(&self, n_features: usize) -> usize {
        let default = match self.ensemble {
            Ensemble::RandomForest => MaxFeatures::Sqrt,
            _ => MaxFeatures::All,
        };
        let d = n_features as f64;
        let wanted = match self.max_features.unwrap_or(default) {
            MaxFeatures::Sqrt => d.sqrt().ceil() as usize,
            MaxFeatures::Log2 => d.log2().ceil() as usize,
            MaxFeatures::All => n_features,
            MaxFeatures::Count(count) => count,
            MaxFeatures::Share(share) => (share * d) as usize,
        };
        wanted.clamp(1, n_features)
    }

    /// Number of rows to draw for a tree, of `n_rows`.
    pub fn rows_per_tree(&self, n_rows: u64) -> u64 {
        match self.max_samples {
            MaxSamples::All => n_rows,
            MaxSamples::Count(count) => count,
            MaxSamples::Share(share) => ((share * n_rows as f64).round() as u64).max(1),
        }
    }

    /// The same settings with another seed, for `rows` rows; a number of drawn rows is at most as large.
    pub fn for_block(&self, seed: u64, rows: u64) -> Self {
        let max_samples = match self.max_samples {
            MaxSamples::Count(count) => MaxSamples::Count(rows.min(count)),
            other => other,
        };
        ForestParams { seed, max_samples, ..self.clone() }
    }
}
