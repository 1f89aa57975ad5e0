//! What is asked of neighbours, as far as it follows from the settings and the columns: the sums that a block
//! of queries gives, and the scores that come of them.

use super::params::{ReliefParams, TargetDistance};
use super::targets::{TargetMetric, shares};
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Task;
use ferrank_ranking::{Form, RunData, most_parts};

/// How neighbours weigh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scheme {
    /// Neighbours of each class.
    pub(crate) k: usize,
    /// `None`: all weigh the same.
    pub(crate) sigma: Option<f64>,
}

/// The sums asked for.
#[derive(Debug, Clone)]
pub(crate) struct Outline {
    pub(crate) schemes: Vec<Scheme>,
    /// Ways to tell targets apart; none in classification, where all rows have a class.
    pub(crate) apart: Vec<TargetMetric>,
    /// n_targets; they sum up to 1.
    pub(crate) shares: Vec<f64>,
    pub(crate) n_features: usize,
}

impl Outline {
    /// What `params` ask for; `n_unlabelled` rows of the data set have no target.
    pub(crate) fn new(
        params: &ReliefParams,
        task: Task,
        n_features: usize,
        n_targets: usize,
        n_unlabelled: u64,
    ) -> Self {
        let is_semi_supervised = params.unlabelled == Unlabelled::Use && n_unlabelled > 0;
        let schemes =
            params.n_neighbors.iter().flat_map(|&k| params.sigma.iter().map(move |&sigma| Scheme { k, sigma }));
        let apart = match (params.per_target, task) {
            (_, Task::Classification) if !is_semi_supervised => Vec::new(),
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
        Outline { schemes: schemes.collect(), apart, shares, n_features }
    }

    pub(crate) fn of(data: &RunData, params: &ReliefParams) -> Self {
        Outline::new(params, data.task, data.features.len(), data.targets.len(), data.unlabelled)
    }

    /// Sums over features that a block gives.
    pub(crate) fn n_vectors(&self) -> usize {
        self.schemes.len() * (1 + self.apart.len())
    }

    /// Blocks that so many queries are parted into.
    pub(crate) fn n_blocks(&self, queries: u64) -> u64 {
        queries.min(most_parts(self.n_features * self.n_vectors()) as u64)
    }

    /// What the vectors of a block look like: its numbers of queries, the distances of the targets, the sums.
    pub(crate) fn forms(&self) -> Vec<Form> {
        let mut forms = vec![Form::Dense(self.schemes.len()), Form::Dense(self.schemes.len() * self.apart.len())];
        forms.resize(2 + self.n_vectors(), Form::Dense(self.n_features));
        forms
    }

    /// Names of the columns of scores, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let differ = |f: &dyn Fn(&Scheme) -> String| self.schemes.iter().any(|scheme| f(scheme) != f(&self.schemes[0]));
        let (k_differs, sigma_differs) = (differ(&|s| s.k.to_string()), differ(&|s| format!("{:?}", s.sigma)));
        let set = |how: &TargetMetric| if let TargetMetric::Sets(set) = how { Some(*set) } else { None };
        let sets: Vec<TargetDistance> =
            if self.apart.len() > 1 { self.apart.iter().filter_map(set).collect() } else { Vec::new() };
        let mut names = Vec::new();
        for scheme in &self.schemes {
            let mut name = "relief".to_string();
            if k_differs {
                name += &format!("_k{}", scheme.k);
            }
            if let (true, Some(sigma)) = (sigma_differs, scheme.sigma) {
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
