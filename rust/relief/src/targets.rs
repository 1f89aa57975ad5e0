//! The targets: classes for ReliefF, distances for RReliefF (Petković et al. 2020a Eq. 7, Petković et al. 2023 Eq. 7,
//! Petković et al. 2020b Eq. 5).
//!
//! Targets differ as features do: numeric ones by their difference over the range, nominal ones by 0 or 1, missing ones
//! by the expected difference. Label sets have one of four distances; a missing label counts as absent. In a hierarchy
//! labels count with their weight. γ of Eq. 7 is 1 over the total weight of labels that occur; CLUS divides by the
//! largest distance between two label sets instead.

use super::params::{Scaling, TargetDistance};
use ferrank_data::labels::{LabelColumn, compare};
use ferrank_data::profile::{ColumnProfile, MISSING_U16};
use ferrank_data::schema::{Attribute, Task};
use ferrank_data::store::{TargetColumn, label_code};
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::ranks::to_weighted_mid_ranks;
use ferrank_neighbors::space::{Example, Scale, Shape, Space};
use ferrank_runtime::error::Result;

/// A distance between the targets of two rows, in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetMetric {
    /// Weighted mean over all targets.
    Mean,
    /// Of one target alone.
    Target(usize),
    /// Between label sets.
    Sets(TargetDistance),
}

/// The targets of all rows.
#[derive(Debug)]
pub(crate) struct Targets {
    values: TargetValues,
    /// n_targets; they sum to 1.
    shares: Vec<f64>,
}

#[derive(Debug)]
enum TargetValues {
    /// A value for each target.
    Columns {
        space: Space,
        /// n_rows x n_targets
        values: Vec<f64>,
        /// n_targets; code of the category that means that a row has the label.
        present: Vec<f64>,
    },
    /// One target whose values are label sets.
    Sets {
        labels: LabelColumn,
        /// n_labels; they sum to 1.
        shares: Vec<f64>,
    },
}

/// The class of each row of a single nominal target, and the number of classes.
pub(crate) fn classes(column: &TargetColumn) -> (Vec<u16>, usize) {
    match column {
        TargetColumn::Nominal { categories, codes } => (codes.to_vec(), categories.names.len().max(1)),
        _ => unreachable!("classification has a nominal target"),
    }
}

impl Targets {
    /// Prepares the distances between targets, which have `weights`; without `row_weights` all rows have the weight 1.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for a label with more than two values.
    pub(crate) fn new(
        columns: &[TargetColumn],
        profiles: &[ColumnProfile],
        names: &[Attribute],
        task: Task,
        scaling: Scaling,
        (weights, row_weights): (Option<&[f64]>, &[f64]),
    ) -> Result<Self> {
        if let [TargetColumn::Labels(labels)] = columns {
            let values = TargetValues::Sets { labels: labels.clone(), shares: labels.shares() };
            return Ok(Targets { values, shares: vec![1.0] });
        }
        let n_targets = columns.len();
        let (mut shapes, mut missing_models, mut present) = (Vec::new(), Vec::new(), Vec::new());
        let mut values = Vec::new();
        for (number, ((column, profile), name)) in columns.iter().zip(profiles).zip(names).enumerate() {
            let scale = Scale::from_profile(profile);
            let (shape, normalized) = normalize(column, &scale, scaling, row_weights);
            if values.is_empty() {
                values.resize(normalized.len() * n_targets, 0.0);
            }
            values
                .iter_mut()
                .skip(number)
                .step_by(n_targets)
                .zip(&normalized)
                .for_each(|(value, normalized)| *value = *normalized);
            let with_missing = shape != Shape::Constant && normalized.iter().any(|value| value.is_nan());
            let model = with_missing
                .then(|| MissingModel::weighted(&normalized, shape == Shape::Nominal, (&[], 1), row_weights))
                .flatten();
            shapes.push(if with_missing && model.is_none() { Shape::Unknown } else { shape });
            missing_models.push(model);
            present.push(if task == Task::MultiLabel { label_code(column, &name.name)? } else { 1.0 });
        }
        let space = Space::new(shapes, missing_models, Vec::new(), 1);
        Ok(Targets { values: TargetValues::Columns { space, values, present }, shares: shares(weights, n_targets) })
    }

    /// The distance between the targets of rows `a` and `b`.
    pub(crate) fn distance(&self, metric: TargetMetric, a: u32, b: u32) -> f64 {
        match (&self.values, metric) {
            (TargetValues::Columns { space, .. }, TargetMetric::Target(target)) => {
                space.difference(target, self.example(a), self.example(b))
            }
            (TargetValues::Columns { space, .. }, TargetMetric::Mean) => {
                let (a, b) = (self.example(a), self.example(b));
                self.shares.iter().enumerate().map(|(target, share)| share * space.difference(target, a, b)).sum()
            }
            (_, TargetMetric::Sets(distance)) => {
                let (one, both) = self.compare(a, b);
                match distance {
                    TargetDistance::Hamming => one,
                    TargetDistance::Subset => f64::from(one > 0.0),
                    _ if one == 0.0 => 0.0,
                    TargetDistance::Accuracy => one / (one + both),
                    TargetDistance::F1 => one / (one + 2.0 * both),
                }
            }
            (TargetValues::Sets { .. }, _) => unreachable!("label sets have distances of sets"),
        }
    }

    fn example(&self, row: u32) -> Example<'_> {
        let TargetValues::Columns { values, .. } = &self.values else { unreachable!("label sets are no columns") };
        let n_targets = self.shares.len();
        Example { values: &values[row as usize * n_targets..][..n_targets], class: 0, expected: &[] }
    }

    /// The weight of the labels that exactly one of two rows has, and of those that both have.
    fn compare(&self, a: u32, b: u32) -> (f64, f64) {
        let present = match &self.values {
            TargetValues::Columns { present, .. } => present,
            TargetValues::Sets { labels, shares } => {
                let set = |row: u32| labels.of(row as usize).unwrap_or(&[]);
                return compare(set(a), set(b), shares);
            }
        };
        let (a, b) = (self.example(a), self.example(b));
        let (mut one, mut both) = (0.0, 0.0);
        for (((present, share), x), y) in present.iter().zip(&self.shares).zip(a.values).zip(b.values) {
            match (x == present, y == present) {
                (true, true) => both += share,
                (false, false) => {}
                _ => one += share,
            }
        }
        (one, both)
    }
}

/// Weights of the targets that sum to 1.
pub(crate) fn shares(weights: Option<&[f64]>, n_targets: usize) -> Vec<f64> {
    let total = weights.map_or(n_targets as f64, |weights| weights.iter().sum());
    (0..n_targets).map(|target| weights.map_or(1.0, |weights| weights[target]) / total).collect()
}

fn normalize(column: &TargetColumn, scale: &Scale, scaling: Scaling, weights: &[f64]) -> (Shape, Vec<f64>) {
    match (column, scale) {
        (TargetColumn::Numeric(values), Scale::Numeric { .. }) if scaling == Scaling::Rank => {
            let mut ranks = values.to_vec();
            to_weighted_mid_ranks(&mut ranks, weights);
            (Shape::Numeric, ranks)
        }
        (TargetColumn::Numeric(values), Scale::Numeric { low, high }) => {
            (Shape::Numeric, values.iter().map(|&value| Scale::normalize(value, *low, *high)).collect())
        }
        (TargetColumn::Numeric(values), _) => (Shape::Constant, vec![0.0; values.len()]),
        (TargetColumn::Nominal { categories, codes }, _) => {
            let shape = if categories.names.len() > 1 { Shape::Nominal } else { Shape::Constant };
            let number = |&code: &u16| if code == MISSING_U16 { f64::NAN } else { f64::from(code) };
            (shape, codes.iter().map(number).collect())
        }
        (TargetColumn::Labels(_), _) => unreachable!("a hierarchical target is the only target"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};
    use ferrank_data::hierarchy::Hierarchy;

    use super::*;

    #[test]
    fn distances_between_label_sets_are_those_of_their_formulas() {
        let edges: Vec<_> = ["a", "b", "c", "d"].map(|label| (None, label.to_string())).to_vec();
        let mut labels = LabelColumn::new(Arc::new(Hierarchy::from_edges(&edges, 1.0).unwrap()), 3);
        labels.add(&(Arc::new(StringArray::from(vec!["a@b@c", "b@c@d", ""])) as ArrayRef), None).unwrap();
        let columns = [TargetColumn::Labels(labels)];
        let targets = Targets::new(&columns, &[], &[], Task::Hierarchical, Scaling::Range, (None, &[])).unwrap();
        let distances = |a: u32, b: u32| {
            [TargetDistance::Hamming, TargetDistance::Subset, TargetDistance::Accuracy, TargetDistance::F1]
                .map(|distance| targets.distance(TargetMetric::Sets(distance), a, b))
        };
        // One of the first two rows has half of the weight of all labels, both have the other half.
        assert_eq!(distances(0, 1), [0.5, 1.0, 0.5, 1.0 / 3.0]);
        assert_eq!((distances(0, 2), distances(2, 2)), ([0.75, 1.0, 1.0, 1.0], [0.0; 4]));
    }
}
