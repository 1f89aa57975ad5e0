//! Settings of the Relief ranker and their checks.

use serde::{Deserialize, Serialize};

use crate::distance_features::{DistanceFeatures, FeatureRef};
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Task, check_target_weights};
use ferrank_ranking::{DataShape, settings};
use ferrank_runtime::error::{Result, check};

/// Distance between the label sets of two rows, in [0, 1]. Two empty sets are at distance 0. In a hierarchy each label
/// counts with its weight.
///
/// ```
/// use ferrank_relief::{ReliefParams, TargetDistance};
///
/// let params = ReliefParams::default().with_target_distance(vec![TargetDistance::F1, TargetDistance::Hamming]);
/// assert_eq!(params.target_distance[0].name(), "f1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetDistance {
    /// Share of the labels that exactly one of the rows has (Petković et al. 2023 Eq. 7).
    Hamming,
    /// 1 − |A ∩ B| / |A ∪ B|.
    Accuracy,
    /// 1 − 2 |A ∩ B| / (|A| + |B|) (Petković et al. 2020b Eq. 5).
    F1,
    /// 0 for equal sets, else 1.
    Subset,
}

impl TargetDistance {
    /// The distance's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            TargetDistance::Hamming => "hamming",
            TargetDistance::Accuracy => "accuracy",
            TargetDistance::F1 => "f1",
            TargetDistance::Subset => "subset",
        }
    }
}

/// A way to compute importances from differences between rows.
///
/// ```
/// use ferrank_relief::{ReliefParams, ReliefScore};
///
/// let params = ReliefParams::default().with_scores(vec![ReliefScore::Myopic]);
/// assert_eq!(params.scores[0].name(), "myopic");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReliefScore {
    /// ReliefF for one nominal target, RReliefF for all others.
    Relief,
    /// All pairs of rows instead of near ones (Robnik-Šikonja and Kononenko 1999 Eq. 4, 5); one nominal target only.
    Myopic,
}

impl ReliefScore {
    /// All scores.
    pub const ALL: &[ReliefScore] = &[ReliefScore::Relief, ReliefScore::Myopic];

    /// The score's name in settings and results.
    pub fn name(self) -> &'static str {
        self.description().0
    }

    /// The score's definition in a few words, for readers of a ranking.
    pub fn definition(self) -> &'static str {
        self.description().1
    }

    /// Name and definition.
    fn description(self) -> (&'static str, &'static str) {
        match self {
            ReliefScore::Relief => ("relief", "how much more it differs between near rows whose targets differ"),
            ReliefScore::Myopic => ("myopic", "how much more it differs between rows of different classes"),
        }
    }
}

/// Which rows count as neighbors of a query.
///
/// ```
/// use ferrank_relief::{NeighborhoodRule, ReliefParams};
///
/// let params = ReliefParams::default().with_neighborhood(NeighborhoodRule::Multisurf);
/// assert_eq!(params.neighborhood.name(), "multisurf");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighborhoodRule {
    /// The k nearest, in classification of each class (Robnik-Šikonja and Kononenko 1999).
    Nearest,
    /// SURF: rows nearer than the mean distance of all pairs (Greene et al. 2009).
    Surf,
    /// SURF*: as SURF, and rows farther than that count with the opposite sign (Greene et al. 2010).
    SurfStar,
    /// MultiSURF: rows nearer than the mean of the query's distances less half of their standard deviation
    /// (Urbanowicz et al. 2018).
    Multisurf,
    /// MultiSURF*: as MultiSURF, and rows farther than the mean plus half of the standard deviation count with the
    /// opposite sign (Granizo-Mackenzie and Moore 2013).
    MultisurfStar,
}

impl NeighborhoodRule {
    /// The name of the rule in settings.
    pub fn name(self) -> &'static str {
        match self {
            NeighborhoodRule::Nearest => "nearest",
            NeighborhoodRule::Surf => "surf",
            NeighborhoodRule::SurfStar => "surf_star",
            NeighborhoodRule::Multisurf => "multisurf",
            NeighborhoodRule::MultisurfStar => "multisurf_star",
        }
    }

    /// Returns true if far rows count, with the opposite sign.
    pub fn counts_far(self) -> bool {
        matches!(self, NeighborhoodRule::SurfStar | NeighborhoodRule::MultisurfStar)
    }
}

/// How numbers are scaled to [0, 1] before differences are taken.
///
/// ```
/// use ferrank_relief::{ReliefParams, Scaling};
///
/// assert_eq!(ReliefParams::default().scaling, Scaling::Range);
/// assert_eq!(ReliefParams::default().with_scaling(Scaling::Rank).scaling, Scaling::Rank);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// (value − minimum) / (maximum − minimum).
    Range,
    /// Mid-ranks, scaled to [0, 1]: equal values share the mean of their ranks. Differences then count the rows between
    /// two values, so that outliers and skewed distributions do not matter.
    Rank,
}

/// How much a missing value of a feature differs from others.
///
/// ```
/// use ferrank_relief::{Missing, ReliefParams};
///
/// assert_eq!(ReliefParams::default().missing, Missing::Expected);
/// assert_eq!(ReliefParams::default().with_missing(Missing::Informative).missing, Missing::Informative);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// As much as is expected, given the known values of the feature, in classification those of the row's class
    /// (Robnik-Šikonja and Kononenko 1999 Eq. 7, 8).
    Expected,
    /// By 1 from known values, and not at all from other missing ones. A feature whose missing values depend on the target
    /// is then found.
    Informative,
}

/// Prior probabilities of the classes, by which ReliefF weighs the misses of a class.
///
/// ```
/// use ferrank_relief::ClassPriors;
///
/// let shares = [("a", 0.6), ("b", 0.3), ("c", 0.1)];
/// assert_eq!(ClassPriors::Uniform.of(&shares)?, [1.0 / 3.0; 3]);
/// let given = [("c", 1.0), ("b", 2.0), ("a", 1.0)].map(|(class, prior)| (class.to_string(), prior));
/// assert_eq!(ClassPriors::Given(given.into()).of(&shares)?, [0.25, 0.5, 0.25]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", expecting = "'empirical', 'uniform' or a number for each class")]
pub enum ClassPriors {
    /// The shares of the classes among the rows.
    Empirical,
    /// The same for each class.
    Uniform,
    /// By class, up to a common factor.
    #[serde(untagged)]
    Given(Vec<(String, f64)>),
}

impl ClassPriors {
    /// The priors of classes that have these names and shares of the rows; they sum to 1.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) for a class without a prior, and a prior of no class.
    pub fn of(&self, classes: &[(&str, f64)]) -> Result<Vec<f64>> {
        let given = match self {
            ClassPriors::Empirical => return Ok(classes.iter().map(|(_, share)| *share).collect()),
            ClassPriors::Uniform => return Ok(vec![1.0 / classes.len() as f64; classes.len()]),
            ClassPriors::Given(given) => given,
        };
        let names = || classes.iter().map(|(name, _)| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        if let Some((other, _)) = given.iter().find(|(other, _)| classes.iter().all(|(name, _)| name != other)) {
            return check(false, format!("class_priors: there is no class '{other}'; the classes are {}", names()))
                .map(|()| Vec::new());
        }
        let total: f64 = given.iter().map(|(_, prior)| prior).sum();
        let prior = |(name, _): &(&str, f64)| match given.iter().find(|(class, _)| class == name) {
            Some((_, prior)) => Ok(prior / total),
            None => check(false, format!("class_priors: class '{name}' has none; give one for each of {}", names()))
                .map(|()| 0.0),
        };
        classes.iter().map(prior).collect()
    }
}

/// Number of rows: of those that are queries, or of those that take part.
///
/// ```
/// use ferrank_relief::{Iterations, ReliefParams};
///
/// let queries = |iterations: &[Iterations]| ReliefParams::default().with_n_iterations(iterations.into()).queries(1000);
/// assert_eq!(queries(&[Iterations::All]), 1000);
/// assert_eq!(queries(&[Iterations::Count(50)]), 50);
/// assert_eq!(queries(&[Iterations::Share(0.2), Iterations::Count(50)]), 200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of rows, a share in (0, 1] or None")]
pub enum Iterations {
    /// All.
    All,
    /// A number of rows.
    Count(u64),
    /// A share of the rows in (0, 1], at least one row.
    Share(f64),
}

impl Iterations {
    /// So many of `n_rows` rows; all if there are fewer.
    pub fn of(self, n_rows: u64) -> u64 {
        match self {
            Iterations::All => n_rows,
            Iterations::Count(count) => count.min(n_rows),
            Iterations::Share(share) => ((share * n_rows as f64).round() as u64).max(1),
        }
    }

    pub(crate) fn validate(self, setting: &str) -> Result<()> {
        match self {
            Iterations::All => Ok(()),
            Iterations::Count(count) => check(count > 0, format!("{setting}: 0; use at least 1")),
            Iterations::Share(share) => check(
                share > 0.0 && share <= 1.0,
                format!("{setting}: {share} is neither a number of rows nor a share in (0, 1]"),
            ),
        }
    }
}

impl std::fmt::Display for Iterations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Iterations::All => write!(f, "100%"),
            Iterations::Count(count) => write!(f, "{count}"),
            Iterations::Share(share) => write!(f, "{}%", 100.0 * share),
        }
    }
}

/// The least number of draws of the targets that p-values are computed from.
const LEAST_DRAWS: usize = 20;

settings! {
    /// Settings of the Relief ranker.
    ///
    /// ```
    /// use ferrank_relief::ReliefParams;
    ///
    /// let params = ReliefParams::default().with_n_neighbors(vec![5, 10]);
    /// assert_eq!(params.queries(150), 150);
    /// ```
    pub struct ReliefParams {
        /// The scores to compute.
        scores, with_scores: Vec<ReliefScore> = vec![ReliefScore::Relief];
        /// Which rows count as neighbors; rules other than the nearest have no k and no σ.
        neighborhood, with_neighborhood: NeighborhoodRule = NeighborhoodRule::Nearest;
        /// k, with a score for each; one search finds the neighbors of all.
        n_neighbors, with_n_neighbors: Vec<usize> = vec![10];
        /// σ of the rank weights `exp(−(rank/σ)²)`; `None`: equal weights.
        sigma, with_sigma: Vec<Option<f64>> = vec![None];
        /// Prior probabilities of the classes, by which misses are weighed in classification.
        class_priors, with_class_priors: ClassPriors = ClassPriors::Empirical;
        /// Number of queries, drawn without replacement, with a score for each: that of the first so many of the draw.
        n_iterations, with_n_iterations: Vec<Iterations> = vec![Iterations::All];
        /// Number of rows that take part, drawn without replacement, as queries and as neighbors.
        max_samples, with_max_samples: Iterations = Iterations::All;
        /// The features that define how near two rows are, and how much each counts.
        distance_features, with_distance_features: DistanceFeatures = DistanceFeatures::All;
        /// Features that importances are adjusted for. They do not count in distances, and are not ranked.
        covariates, with_covariates: Vec<FeatureRef> = Vec::new();
        /// How numeric features and targets are scaled.
        scaling, with_scaling: Scaling = Scaling::Range;
        /// How much a missing value of a feature differs from others.
        missing, with_missing: Missing = Missing::Expected;
        /// Distances between label sets; empty: Hamming. Other targets have the distance of their kind.
        target_distance, with_target_distance: Vec<TargetDistance> = Vec::new();
        /// True to compute importances for each target on its own and average them with the target weights
        /// (Petković et al. 2020a §2.3).
        per_target, with_per_target: bool = false;
        /// Weight of each target, in target order; `None`: 1 each.
        target_weights, with_target_weights: Option<Vec<f64>> = None;
        /// How rows without any target are treated.
        unlabelled, with_unlabelled: Unlabelled = Unlabelled::Error;
        /// w0 and w1: the influence of the unlabelled row farthest from all labelled rows, and of the nearest one
        /// (Petković et al. 2023 §5.2).
        influence, with_influence: (f64, f64) = (0.0, 1.0);
        /// Number of times that targets are drawn anew, from which p-values follow; 0: none. Neighbors are then those of all
        /// classes, and standard errors are unknown.
        target_draws, with_target_draws: usize = 0;
        /// True to compute standard errors.
        standard_errors, with_standard_errors: bool = true;
        /// Seed of the draw of queries.
        seed, with_seed: u64 = 0;
    }
}

impl ReliefParams {
    /// Returns true if standard errors are computed: each draw of the targets would need as many sums.
    pub(crate) fn has_standard_errors(&self) -> bool {
        self.standard_errors && self.target_draws == 0
    }

    /// Number of queries among `n_rows` rows, the most of all that are requested; all rows if there are fewer.
    pub fn queries(&self, n_rows: u64) -> u64 {
        self.n_iterations.iter().map(|iterations| iterations.of(n_rows)).max().unwrap_or(0)
    }

    /// The settings with another seed, for a block of `rows` rows; a count of queries is at most `rows`.
    pub fn for_block(&self, seed: u64, rows: u64) -> Self {
        let of_block = |iterations: &Iterations| match *iterations {
            Iterations::Count(count) => Iterations::Count(rows.min(count)),
            other => other,
        };
        let n_iterations = self.n_iterations.iter().map(of_block).collect();
        ReliefParams { seed, n_iterations, ..self.clone() }
    }

    /// Checks each setting, alone and together with other settings, the task and the targets.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) with the setting, its value and valid values.
    pub fn validate(&self, shape: &DataShape) -> Result<()> {
        let DataShape { task, n_targets, is_weighted, .. } = *shape;
        check(
            !is_weighted || self.target_draws == 0,
            "sample_weight: targets that are drawn anew leave the weights of their rows behind, so that p-values would be \
             wrong; leave it out, or leave target_draws out",
        )?;
        check(
            task != Task::Unsupervised,
            "task: Relief compares targets, the task unsupervised has none; give a target, or use the forest",
        )?;
        check(!self.scores.is_empty(), "scores: none given; use relief or myopic")?;
        each_once("scores", self.scores.iter().map(|score| score.name().to_string()))?;
        check(
            task == Task::Classification || !self.scores.contains(&ReliefScore::Myopic),
            format!("scores: myopic needs one nominal target, the task is {}; leave it out", task.name()),
        )?;
        check(!self.n_neighbors.is_empty(), "n_neighbors: none given; use at least 1")?;
        check(!self.n_neighbors.contains(&0), "n_neighbors: 0; use at least 1")?;
        each_once("n_neighbors", self.n_neighbors.iter().map(usize::to_string))?;
        check(!self.sigma.is_empty(), "sigma: none given; use a number above 0, or none for equal weights")?;
        for sigma in self.sigma.iter().flatten() {
            check(
                *sigma > 0.0 && sigma.is_finite(),
                format!("sigma: {sigma} is not above 0; use a finite number, or none for equal weights"),
            )?;
        }
        each_once("sigma", self.sigma.iter().map(|sigma| format!("{sigma:?}")))?;
        self.validate_neighborhood()?;
        check(!self.n_iterations.is_empty(), "n_iterations: none given; use None for all rows, a number, or several")?;
        self.n_iterations.iter().try_for_each(|iterations| iterations.validate("n_iterations"))?;
        each_once("n_iterations", self.n_iterations.iter().map(|iterations| iterations.to_string()))?;
        self.max_samples.validate("max_samples")?;
        self.validate_draws()?;
        self.validate_covariates()?;
        self.validate_priors(task)?;
        let (w0, w1) = self.influence;
        check(
            (0.0..=1.0).contains(&w0) && (w0..=1.0).contains(&w1),
            format!("influence: {w0} and {w1} are not in 0 … 1, the lower one first"),
        )?;
        check(
            self.unlabelled != Unlabelled::Use || !self.scores.contains(&ReliefScore::Myopic),
            "scores: myopic uses rows with a target only; leave it out, or use unlabelled=\"ignore\"",
        )?;
        self.validate_targets(task)?;
        check_target_weights(self.target_weights.as_deref(), n_targets)
    }

    fn validate_neighborhood(&self) -> Result<()> {
        let is_nearest = self.neighborhood == NeighborhoodRule::Nearest;
        let (name, default) = (self.neighborhood.name(), ReliefParams::default());
        check(
            is_nearest || self.n_neighbors == default.n_neighbors,
            format!(
                "n_neighbors: only for neighborhood=\"nearest\"; with \"{name}\" distances decide how many count; leave \
                 one of the two out"
            ),
        )?;
        check(
            is_nearest || self.sigma == default.sigma,
            format!(
                "sigma: only for neighborhood=\"nearest\"; with \"{name}\" all neighbors have the same weight; leave one \
                 of the two out"
            ),
        )
    }

    fn validate_draws(&self) -> Result<()> {
        let none = self.target_draws == 0;
        check(
            none || self.target_draws >= LEAST_DRAWS,
            format!(
                "target_draws: p-values need at least {LEAST_DRAWS} draws, {} were asked for; use 60, for example",
                self.target_draws
            ),
        )?;
        check(
            none || !self.scores.contains(&ReliefScore::Myopic),
            "target_draws: not for the score myopic; leave one of the two out",
        )?;
        check(
            none || self.unlabelled != Unlabelled::Use,
            "target_draws: rows without a target have none to draw; leave it out, or use unlabelled=\"ignore\"",
        )
    }

    fn validate_covariates(&self) -> Result<()> {
        let none = self.covariates.is_empty();
        check(
            none || self.target_draws == 0,
            "covariates: targets that are drawn anew lose what they have to do with the covariates, so that p-values would \
             be wrong; leave one of the two out",
        )?;
        check(
            none || self.unlabelled != Unlabelled::Use,
            "covariates: rows without a target have no distance of targets to adjust; use unlabelled=\"ignore\" without \
             influence, or leave covariates out",
        )?;
        check(
            none || !self.scores.contains(&ReliefScore::Myopic),
            "covariates: not for the score myopic, which compares classes without neighbors; leave myopic out",
        )
    }

    fn validate_priors(&self, task: Task) -> Result<()> {
        let is_default = self.class_priors == ClassPriors::Empirical;
        check(
            is_default || task == Task::Classification,
            format!("class_priors: for one nominal target, the task is {}; leave it out", task.name()),
        )?;
        check(
            is_default || (self.target_draws == 0 && self.covariates.is_empty() && self.unlabelled != Unlabelled::Use),
            "class_priors: weigh misses of ReliefF; with target_draws, covariates or unlabelled=\"use\" classes are ranked by \
             RReliefF, which has none; leave one of them out",
        )?;
        if let ClassPriors::Given(given) = &self.class_priors {
            check(given.len() > 1, format!("class_priors: {} given; use one for each class", given.len()))?;
            each_once("class_priors", given.iter().map(|(class, _)| class.clone()))?;
            for (class, prior) in given {
                check(
                    *prior > 0.0 && prior.is_finite(),
                    format!("class_priors: {prior} of class '{class}' is not a finite number above 0"),
                )?;
            }
        }
        Ok(())
    }

    fn validate_targets(&self, task: Task) -> Result<()> {
        each_once("target_distance", self.target_distance.iter().map(|distance| distance.name().to_string()))?;
        let requested = !self.target_distance.is_empty();
        check(
            matches!(task, Task::MultiLabel | Task::Hierarchical) || !requested,
            format!("target_distance: only for label sets, the task is {}; leave it out", task.name()),
        )?;
        check(
            !(self.per_target && requested),
            "target_distance: not with per_target, where each label is alone; leave one of them out",
        )
    }
}

fn each_once(setting: &str, values: impl Iterator<Item = String>) -> Result<()> {
    let values: Vec<String> = values.collect();
    for (i, value) in values.iter().enumerate() {
        check(!values[..i].contains(value), format!("{setting}: {value} is given twice"))?;
    }
    Ok(())
}
