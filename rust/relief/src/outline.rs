//! The sums that a block of queries contributes and the scores computed from them, as far as settings and columns
//! determine them.

use std::ops::RangeInclusive;

use super::params::{NeighborhoodRule, ReliefParams, TargetDistance};
use super::targets::{TargetMetric, shares};
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Task;
use ferrank_ranking::{Form, RunData, most_parts};

/// Number of groups of rows that standard errors are computed from.
const GROUPS: RangeInclusive<usize> = 4..=32;
/// So many groups still give useful standard errors; blocks are fewer before groups are.
const FEW_GROUPS: usize = 8;
/// Fewest blocks of many queries.
const FEWEST_BLOCKS: usize = 16;
/// Sums by group take up to this many bytes, where blocks and groups are not too few then.
const GROUP_BYTES: usize = 64 << 20;

/// The weights of neighbors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scheme {
    /// The k nearest.
    Nearest {
        /// Number of neighbors of each class.
        k: usize,
        /// Width of the rank weights; `None`: equal weights.
        sigma: Option<f64>,
    },
    /// All near rows, equally.
    Near,
    /// All far rows, equally; what they give is subtracted from the score of the near ones.
    Far,
}

/// The sums of a run.
#[derive(Debug, Clone)]
pub(crate) struct Outline {
    pub(crate) schemes: Vec<Scheme>,
    /// Distances between targets; none in classification where all rows have a class, targets are not drawn anew
    /// and there are no covariates.
    pub(crate) metrics: Vec<TargetMetric>,
    /// Number of draws of the targets, each with all distances.
    pub(crate) n_draws: usize,
    /// True if there are sums by group of rows, for standard errors.
    pub(crate) has_groups: bool,
    /// n_targets; weights of the targets, which sum to 1.
    pub(crate) shares: Vec<f64>,
    pub(crate) n_features: usize,
    /// The positions of the covariates among the features.
    pub(crate) covariates: Vec<usize>,
}

impl Outline {
    /// The sums for `params`, in a data set with `n_unlabelled` rows without a target.
    pub(crate) fn new(
        params: &ReliefParams,
        task: Task,
        n_features: usize,
        n_targets: usize,
        n_unlabelled: u64,
        covariates: Vec<usize>,
    ) -> Self {
        let is_semi_supervised = params.unlabelled == Unlabelled::Use && n_unlabelled > 0;
        let schemes = match params.neighborhood {
            NeighborhoodRule::Nearest => {
                let sigmas = |&k| params.sigma.iter().map(move |&sigma| Scheme::Nearest { k, sigma });
                params.n_neighbors.iter().flat_map(sigmas).collect()
            }
            rule if rule.counts_far() => vec![Scheme::Near, Scheme::Far],
            _ => vec![Scheme::Near],
        };
        let metrics = match (params.per_target, task) {
            (_, Task::Classification) if !is_semi_supervised && params.target_draws == 0 && covariates.is_empty() => {
                Vec::new()
            }
            (true, task) if task != Task::Hierarchical => (0..n_targets).map(TargetMetric::Target).collect(),
            (_, Task::MultiLabel | Task::Hierarchical) if params.target_distance.is_empty() => {
                vec![TargetMetric::Sets(TargetDistance::Hamming)]
            }
            (_, Task::MultiLabel | Task::Hierarchical) => {
                params.target_distance.iter().copied().map(TargetMetric::Sets).collect()
            }
            _ => vec![TargetMetric::Mean],
        };
        let shares = shares(params.target_weights.as_deref(), n_targets);
        let (n_draws, has_groups) = (params.target_draws, params.has_standard_errors());
        Outline { schemes, metrics, n_draws, has_groups, shares, n_features, covariates }
    }

    pub(crate) fn from_run(data: &RunData, params: &ReliefParams) -> Self {
        let covariates = params.covariates_of_run(data);
        Outline::new(params, data.task, data.features.len(), data.targets.len(), data.unlabelled, covariates)
    }

    /// Number of distances of a pair beside that of the features: between targets, each as the targets are, then in each
    /// draw; and in each covariate.
    pub(crate) fn n_distances(&self) -> usize {
        self.metrics.len() * (1 + self.n_draws) + self.covariates.len()
    }

    /// Number of vectors of n_features sums in a contribution.
    pub(crate) fn n_vectors(&self) -> usize {
        self.schemes.len() * (1 + self.n_distances())
    }

    /// Number of blocks that `queries` queries are split into.
    pub(crate) fn n_blocks(&self, queries: u64) -> u64 {
        queries.min(self.most_blocks() as u64)
    }

    fn most_blocks(&self) -> usize {
        let within = GROUP_BYTES / (FEW_GROUPS * self.sum_bytes());
        most_parts(self.n_features * self.n_vectors()).min(within.max(FEWEST_BLOCKS))
    }

    /// Bytes of the sums over features.
    fn sum_bytes(&self) -> usize {
        size_of::<f64>() * self.n_features * self.n_vectors()
    }

    /// Number of groups of rows that standard errors are computed from.
    pub(crate) fn n_groups(&self) -> usize {
        if !self.has_groups {
            return 0;
        }
        (GROUP_BYTES / (self.most_blocks() * self.sum_bytes())).clamp(*GROUPS.start(), *GROUPS.end())
    }

    /// Bytes of the contributions of `n_blocks` blocks.
    pub(crate) fn bytes(&self, n_blocks: u64) -> usize {
        n_blocks as usize * (1 + self.n_groups()) * self.sum_bytes()
    }

    /// The vectors of a contribution: numbers of queries, distances of the targets, sums over features; and the same three
    /// for each group of rows.
    pub(crate) fn forms(&self) -> Vec<Form> {
        let scalars = [self.schemes.len(), self.schemes.len() * self.n_distances()];
        let mut forms = scalars.map(Form::Dense).to_vec();
        forms.resize(2 + self.n_vectors(), Form::Dense(self.n_features));
        let values = [scalars[0], scalars[1], self.n_vectors() * self.n_features];
        forms.extend(values.map(|n| Form::Dense(self.n_groups() * n)));
        forms
    }

    /// Names of the scores, in order; `of_queries` is what they have of the number of queries.
    pub(crate) fn names(&self, of_queries: &str) -> Vec<String> {
        let schemes: Vec<(usize, Option<f64>)> = (self.schemes.iter())
            .filter_map(|scheme| match *scheme {
                Scheme::Nearest { k, sigma } => Some((k, sigma)),
                Scheme::Near => Some((0, None)),
                Scheme::Far => None,
            })
            .collect();
        let k_differs = schemes.iter().any(|scheme| scheme.0 != schemes[0].0);
        let sigma_differs = schemes.iter().any(|scheme| scheme.1 != schemes[0].1);
        let set = |metric: &TargetMetric| if let TargetMetric::Sets(set) = metric { Some(*set) } else { None };
        let sets: Vec<TargetDistance> =
            if self.metrics.len() > 1 { self.metrics.iter().filter_map(set).collect() } else { Vec::new() };
        let mut names = Vec::new();
        for &(k, sigma) in &schemes {
            let mut name = format!("relief{of_queries}");
            if k_differs {
                name += &format!("_k{k}");
            }
            if let (true, Some(sigma)) = (sigma_differs, sigma) {
                name += &format!("_sigma{sigma}");
            }
            match sets.is_empty() {
                true => names.push(name),
                false => names.extend(sets.iter().map(|set| format!("{name}_{}", set.name()))),
            }
        }
        names
    }
}
