//! Settings of the forest ranker and their checks.

use serde::{Deserialize, Serialize};

use crate::score::Score;
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Task;
use ferrank_measures::Measure;
use ferrank_ranking::settings;
use ferrank_runtime::error::{Result, check};

/// The greatest number of trees: beyond, their numbers alone would take the memory that growing them needs.
const MOST_TREES: usize = 1 << 24;

/// A kind of ensemble: how its trees differ from each other.
///
/// ```
/// use ferrank_forest::{Ensemble, ForestParams};
///
/// let params = ForestParams::default().with_ensemble(Ensemble::Bagging);
/// assert!(params.bootstraps());
/// assert_eq!(params.features_per_node(100, true), 100);
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

/// The most features that [`MaxFeatures::Auto`] takes if these are a third of all. Of tables with correlated features, 32
/// rank a little better (AUC of causes against what is correlated with them .947 after .936; of the square root .914), but
/// growth takes twice as long.
const MOST_OF_THIRD: usize = 16;

/// The number of non-constant features that are searched in a node.
///
/// ```
/// use ferrank_forest::{ForestParams, MaxFeatures};
///
/// let params = ForestParams::default();
/// assert_eq!(params.features_per_node(90, true), 10);
/// assert_eq!(params.clone().with_max_features(Some(MaxFeatures::Share(0.5))).features_per_node(90, true), 45);
/// assert_eq!(params.with_max_features(Some(MaxFeatures::Auto)).features_per_node(90, true), 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "a number of features, a share in (0, 1], 'sqrt', 'log2', 'auto', 'all' or None"
)]
pub enum MaxFeatures {
    /// `ceil(sqrt(D))`.
    Sqrt,
    /// `ceil(log2(D))`, at least 1.
    Log2,
    /// `ceil(sqrt(D))`, or for numeric targets a third of the features (Breiman 2001), at most 16, if that is more.
    Auto,
    /// All of them.
    All,
    /// A number of features.
    #[serde(untagged)]
    Count(usize),
    /// A share of the features in (0, 1], at least one feature.
    #[serde(untagged)]
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
#[serde(untagged, expecting = "a number of rows, a share in (0, 1] or None")]
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
    /// A feature drawn at random. Of its cuts that divide the examples of the node alike, the middle one.
    Random,
    /// The feature with the lowest number, and the lowest of these cuts, as in CLUS.
    Lowest,
}

/// What a missing value of a feature means.
///
/// ```
/// use ferrank_forest::{ForestParams, Missing};
///
/// assert_eq!(ForestParams::default().missing, Missing::Informative);
/// let as_the_papers = ForestParams::default().with_missing(Missing::Ignore);
/// # assert_eq!(as_the_papers.missing, Missing::Ignore);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It is information, as in "missing incorporated in attributes" (Twala, Jones and Hand 2008). Each test is tried with the
    /// missing values on the left and on the right, and whether the value is known is a test of its own.
    Informative,
    /// It is left out of the gain, which is scaled by the share of the weight for which the feature is known. The
    /// example follows the child with the greater weight.
    Ignore,
}

settings! {
    /// Settings of the forest ranker.
    ///
    /// ```
    /// use ferrank_forest::{Ensemble, ForestParams};
    ///
    /// let params = ForestParams::default().with_ensemble(Ensemble::ExtraTrees).with_n_estimators(500);
    /// assert!(!params.bootstraps());
    /// ```
    pub struct ForestParams {
        /// The kind of ensemble.
        ensemble, with_ensemble: Ensemble = Ensemble::RandomForest;
        /// Number of trees.
        n_estimators, with_n_estimators: usize = 100;
        /// Features looked at in a node; `None`: `Sqrt` for a random forest, else `All`.
        max_features, with_max_features: Option<MaxFeatures> = None;
        /// Least number of examples in a leaf, counted with bag multiplicity.
        min_samples_leaf, with_min_samples_leaf: u64 = 2;
        /// Greatest depth of a tree; `None`: no limit. The root is at depth 0.
        max_depth, with_max_depth: Option<usize> = None;
        /// True if rows are drawn with replacement; `None`: yes, except for extra trees.
        bootstrap, with_bootstrap: Option<bool> = None;
        /// Rows drawn for a tree; only with bootstrap. If rows have groups, a share of the groups.
        max_samples, with_max_samples: MaxSamples = MaxSamples::All;
        /// Greatest number of codes of a numeric feature, 2 to 65,535. A feature with no more distinct
        /// values is searched exactly, others at quantiles. In large tables, quantiles are those of a sample of rows;
        /// values that few rows have are found all the same.
        max_bins, with_max_bins: usize = 255;
        /// Which of the features with equal gains is tested.
        ties, with_ties: Ties = Ties::Random;
        /// What a missing value of a feature means.
        missing, with_missing: Missing = Missing::Informative;
        /// The scores; all are computed from the same trees.
        scores, with_scores: Vec<Score> = vec![Score::Genie3];
        /// For [`Score::Symbolic`]: what a split counts for, as a share of a split one level above; in (0, 1]. Each of several
        /// makes a ranking of its own.
        decay, with_decay: Vec<f64> = vec![0.5];
        /// For [`Score::Permutation`] of label sets: the measures whose relative loss counts, instead of that of the Hamming
        /// loss. Each of several makes a ranking of its own.
        permutation_measures, with_permutation_measures: Vec<Measure> = Vec::new();
        /// One ensemble for each target, importances averaged with the target weights
        /// (Petković et al. 2020a, §2.1, the STR variant).
        per_target, with_per_target: bool = false;
        /// True if `genie3` and `mdi_oob` are reported by target as well.
        by_target, with_by_target: bool = false;
        /// Weight of each target in the impurity, in target order; `None`: 1 each.
        target_weights, with_target_weights: Option<Vec<f64>> = None;
        /// The share w of the targets in the impurity, in [0, 1]; features make up the rest (Petković et al. 2023, Eq. 1).
        /// `None`: the targets alone, and rows without any are not used.
        supervision, with_supervision: Option<f64> = None;
        /// Weight of each feature in the impurity, in input order; `None`: 1 each. Only where features are a part of it.
        feature_weights, with_feature_weights: Option<Vec<f64>> = None;
        /// How rows without any target are treated. With a supervision of 1 they have no effect, so that
        /// [`Unlabelled::Use`] means [`Unlabelled::Ignore`].
        unlabelled, with_unlabelled: Unlabelled = Unlabelled::Error;
        /// True if each tree has companions on subsamples of the rows, from which standard errors follow.
        standard_errors, with_standard_errors: bool = true;
        /// True if trees choose among features and their shadows, from which p-values follow.
        shadows, with_shadows: bool = false;
        /// Seed of all random draws.
        seed, with_seed: u64 = 0;
    }
}

impl ForestParams {
    /// Checks each setting on its own.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) that names the setting, the value and the values allowed.
    pub(crate) fn validate_values(&self) -> Result<()> {
        check(self.n_estimators >= 1, "n_estimators: 0 trees; use at least 1")?;
        check(
            self.n_estimators <= MOST_TREES,
            format!("n_estimators: {} trees; use at most {MOST_TREES}", self.n_estimators),
        )?;
        check(self.min_samples_leaf >= 1, "min_samples_leaf: 0; use at least 1")?;
        check(self.max_depth != Some(0), "max_depth: 0; use at least 1, or none for no limit")?;
        check((2..=65_535).contains(&self.max_bins), format!("max_bins: {} is not in 2 … 65535", self.max_bins))?;
        if let Some(MaxFeatures::Share(share)) = self.max_features {
            check(
                is_share(share),
                format!("max_features: {share} is neither a number of features nor a share in (0, 1]"),
            )?;
        }
        if let MaxSamples::Share(share) = self.max_samples {
            check(is_share(share), format!("max_samples: {share} is neither a number of rows nor a share in (0, 1]"))?;
        }
        check(!self.decay.is_empty(), "decay: none given; use 0.5, or several in (0, 1]")?;
        for (i, &decay) in self.decay.iter().enumerate() {
            check(is_share(decay), format!("decay: {decay} is not in (0, 1]"))?;
            check(!self.decay[..i].contains(&decay), format!("decay: {decay} is given twice"))?;
        }
        for (i, measure) in self.permutation_measures.iter().enumerate() {
            check(
                !self.permutation_measures[..i].contains(measure),
                format!("permutation_measures: '{}' is given twice", measure.name()),
            )?;
        }
        if let Some(w) = self.supervision {
            check((0.0..=1.0).contains(&w), format!("supervision: {w} is not in 0 … 1"))?;
        }
        check(!self.scores.is_empty(), format!("scores: none given; use {}", Score::names()))?;
        for (i, score) in self.scores.iter().enumerate() {
            check(!self.scores[..i].contains(score), format!("scores: '{}' is given twice", score.name()))?;
        }
        Ok(())
    }

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

    /// Number of non-constant features to look at in a node, of `n_features`; both count shadows. `are_numbers`: all targets
    /// are numeric.
    pub fn features_per_node(&self, n_features: usize, are_numbers: bool) -> usize {
        let default = match self.ensemble {
            Ensemble::RandomForest => MaxFeatures::Sqrt,
            _ => MaxFeatures::All,
        };
        let d = n_features as f64;
        let with_shadows = if self.shadows { 2 } else { 1 };
        let sqrt = d.sqrt().ceil() as usize;
        let wanted = match self.max_features.unwrap_or(default) {
            MaxFeatures::Sqrt => sqrt,
            MaxFeatures::Log2 => d.log2().ceil() as usize,
            MaxFeatures::Auto if are_numbers => sqrt.max((n_features / 3).min(MOST_OF_THIRD * with_shadows)),
            MaxFeatures::Auto => sqrt,
            MaxFeatures::All => n_features,
            MaxFeatures::Count(count) => count * with_shadows,
            MaxFeatures::Share(share) => (share * d) as usize,
        };
        wanted.clamp(1, n_features)
    }

    /// Returns true if the settings allow to split a node at `depth` with this number of `examples`. Its impurity is not
    /// known here: sums of a node hold no squares, and give gains alone.
    pub(crate) fn may_split(&self, examples: f64, depth: u32) -> bool {
        examples >= self.min_samples_leaf.saturating_mul(2) as f64
            && self.max_depth.is_none_or(|most| (depth as usize) < most)
    }

    /// Number of rows to draw for a tree, of `n_rows`; or of groups.
    pub fn rows_per_tree(&self, n_rows: u64) -> u64 {
        match self.max_samples {
            MaxSamples::All => n_rows,
            MaxSamples::Count(count) => count,
            MaxSamples::Share(share) => ((share * n_rows as f64).round() as u64).max(1),
        }
    }

    /// The same settings with another seed, for `rows` rows; a number of drawn rows is at most as large. Blocks of a
    /// stream share rows, so that they have no standard errors.
    pub fn for_block(&self, seed: u64, rows: u64) -> Self {
        let max_samples = match self.max_samples {
            MaxSamples::Count(count) => MaxSamples::Count(rows.min(count)),
            other => other,
        };
        ForestParams { seed, max_samples, standard_errors: false, ..self.clone() }
    }
}

fn is_share(share: f64) -> bool {
    share > 0.0 && share <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_candidates_are_a_third_of_few_features_for_numbers() {
        let params = ForestParams::default().with_max_features(Some(MaxFeatures::Auto));
        let shadows = params.clone().with_shadows(true);
        for (n_features, numbers, classes) in [(1, 1, 1), (6, 3, 3), (30, 10, 6), (100, 16, 10), (10_000, 100, 100)] {
            assert_eq!(params.features_per_node(n_features, true), numbers, "{n_features}");
            assert_eq!(params.features_per_node(n_features, false), classes, "{n_features}");
        }
        // Half of the features are shadows.
        assert_eq!([true, false].map(|are_numbers| shadows.features_per_node(200, are_numbers)), [32, 15]);
    }
}
