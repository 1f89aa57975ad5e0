//! What a kept forest says beside its nodes.

use std::ops::Range;

use ferrank_data::hierarchy::Edge;
use ferrank_data::profile::Scale;
use ferrank_data::schema::{Attribute, Kind, Problem, Task};
use ferrank_data::store::{CodeStore, TargetColumn, label_code};
use ferrank_runtime::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::params::ForestParams;

/// The key of the schema's metadata.
pub(super) const KEY: &str = "ferrank:forest";

/// The version of the format.
pub(super) const FORMAT: u32 = 2;

/// A feature as a kept forest knows it.
///
/// ```
/// use ferrank_forest::KeptFeature;
///
/// let feature = KeptFeature { name: "colour".into(), categories: Some(vec!["blue".into(), "red".into()]) };
/// assert_eq!(feature.categories.unwrap()[1], "red");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptFeature {
    /// Name of its column.
    pub name: String,
    /// Names of the categories of a nominal feature, in byte order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
}

/// A target as a kept forest knows it.
///
/// ```
/// use ferrank_data::schema::Kind;
/// use ferrank_forest::KeptTarget;
///
/// let target = KeptTarget::new("y", Kind::Nominal, vec!["no".into(), "yes".into()]);
/// assert_eq!(target.values.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptTarget {
    /// Name of its column.
    pub name: String,
    /// Numbers, classes or sets of labels.
    pub kind: Kind,
    /// The classes or labels, in byte order; none for a number.
    #[serde(default)]
    pub values: Vec<String>,
    /// The edges of the hierarchy of labels.
    #[serde(default)]
    pub edges: Vec<Edge>,
    /// The number of the class that has the label, in multi-label tasks.
    #[serde(default)]
    pub positive: Option<u32>,
}

impl KeptTarget {
    /// A target with these values, without a hierarchy.
    pub fn new(name: &str, kind: Kind, values: Vec<String>) -> Self {
        KeptTarget { name: name.into(), kind, values, edges: Vec::new(), positive: None }
    }

    fn from_column(attribute: &Attribute, column: &TargetColumn, task: Task) -> Result<Self> {
        let name = &attribute.name;
        Ok(match column {
            TargetColumn::Numeric(_) => KeptTarget::new(name, Kind::Numeric, Vec::new()),
            TargetColumn::Nominal { categories, .. } => {
                let positive = match task {
                    Task::MultiLabel => Some(label_code(column, name)? as u32),
                    _ => None,
                };
                KeptTarget { positive, ..KeptTarget::new(name, Kind::Nominal, categories.names.clone()) }
            }
            TargetColumn::Labels(labels) => {
                let edges = labels.hierarchy.edges().collect();
                KeptTarget { edges, ..KeptTarget::new(name, Kind::Labels, labels.hierarchy.names().to_vec()) }
            }
        })
    }

    /// Number of components.
    pub(super) fn n_components(&self) -> usize {
        match self.kind {
            Kind::Numeric => 1,
            Kind::Nominal | Kind::Labels => self.values.len(),
        }
    }
}

/// What a kept forest says beside its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    pub(super) ferrank: String,
    pub(super) task: Task,
    /// Rows that the forest was grown on.
    pub(super) n_rows: u64,
    /// Number of trees, for each target if `per_target`.
    pub(super) n_estimators: usize,
    pub(super) per_target: bool,
    pub(super) features: Vec<KeptFeature>,
    pub(super) targets: Vec<KeptTarget>,
}

impl Head {
    pub(super) fn new(problem: &Problem, store: &CodeStore, params: &ForestParams) -> Result<Self> {
        let features = problem.features.iter().zip(&store.codings).map(|(attribute, coding)| KeptFeature {
            name: attribute.name.clone(),
            categories: match &coding.scale {
                Scale::Numeric(_) => None,
                Scale::Nominal(categories) => Some(categories.names.clone()),
            },
        });
        let targets = problem.targets.iter().zip(store.targets.iter());
        let target = |(attribute, column)| KeptTarget::from_column(attribute, column, problem.task);
        Ok(Head {
            format: FORMAT,
            ferrank: env!("CARGO_PKG_VERSION").into(),
            task: problem.task,
            n_rows: store.rows as u64,
            n_estimators: params.n_estimators,
            per_target: params.per_target,
            features: features.collect(),
            targets: targets.map(target).collect::<Result<_>>()?,
        })
    }

    /// The description in a file: JSON.
    pub(super) fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Data(format!("keep_trees: {error}")))
    }

    /// Number of components of all targets.
    pub(super) fn n_components(&self) -> usize {
        self.targets.iter().map(KeptTarget::n_components).sum()
    }

    /// The components of each target.
    pub(super) fn components(&self) -> Vec<Range<usize>> {
        let ends = self.targets.iter().scan(0, |end, target| {
            let start = *end;
            *end += target.n_components();
            Some(start..*end)
        });
        ends.collect()
    }

    /// Number of trees.
    pub(super) fn n_trees(&self) -> Option<usize> {
        self.n_estimators.checked_mul(if self.per_target { self.targets.len() } else { 1 })
    }

    /// The components that tree number `tree` predicts.
    pub(super) fn components_of_tree(&self, tree: usize) -> Range<usize> {
        match self.per_target {
            false => 0..self.n_components(),
            true => self.components().get(tree / self.n_estimators.max(1)).cloned().unwrap_or(0..0),
        }
    }
}
