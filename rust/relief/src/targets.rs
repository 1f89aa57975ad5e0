//! The targets: classes for ReliefF, distances for RReliefF (Petković et al. 2020a Eq. 7, Petković et al. 2023 Eq. 7,
//! Petković et al. 2020b Eq. 5).
//!
//! A target is treated as a feature is: numeric ones differ by their share of the range, nominal ones by
//! 0 or 1, and a missing one by what is expected. Label sets lie at one of four distances from each
//! other; a label that is missing counts as one that the row does not have. In a hierarchy labels count
//! with their weight, and γ of Eq. 7 is one over the weight of all labels that rows have; CLUS divides by the
//! greatest distance between two of them instead.

use super::params::TargetDistance;
use ferrank_data::labels::{LabelColumn, compare};
use ferrank_data::profile::{ColumnProfile, MISSING_U16};
use ferrank_data::schema::{Attribute, Task};
use ferrank_data::store::{TargetColumn, label_code};
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::space::{Example, Scale, Shape, Space};
use ferrank_runtime::error::Result;

/// A way to tell how far the targets of two rows are apart, in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetMetric {
    /// Weighted mean over all targets.
    Mean,
    /// One target alone.
    Target(usize),
    /// Between label sets.
    Sets(TargetDistance),
}

/// The targets of all rows.
#[derive(Debug)]
pub(crate) struct Targets {
    values: Values,
    /// n_targets; they sum up to 1.
    shares: Vec<f64>,
}

#[derive(Debug)]
enum Values {
    /// A value for each target.
    Columns {
        space: Space,
        /// n_rows x n_targets
        values: Vec<f64>,
        /// n_targets; the number of the category that means that a row has the label.
        has: Vec<f64>,
    },
    /// One target, whose values are label sets.
    Sets {
        labels: LabelColumn,
        /// n_labels; they sum up to 1.
        shares: Vec<f64>,
    },
}

/// The class of each row, for a single nominal target; and how many classes there are.
pub(crate) fn classes(column: &TargetColumn) -> (Vec<u16>, usize) {
    match column {
        TargetColumn::Nominal { categories, codes } => (codes.to_vec(), categories.names.len().max(1)),
        _ => unreachable!("classification has a nominal target"),
    }
}

impl Targets {
    /// # Errors
    /// [`Error::Data`] for a label with more than two values.
    pub(crate) fn new(
        columns: &[TargetColumn],
        profiles: &[ColumnProfile],
        names: &[Attribute],
        task: Task,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        if let [TargetColumn::Labels(labels)] = columns {
            let values = Values::Sets { labels: labels.clone(), shares: labels.shares() };
            return Ok(Targets { values, shares: vec![1.0] });
        }
        let n_targets = columns.len();
        let (mut shapes, mut missing_models, mut has) = (Vec::new(), Vec::new(), Vec::new());
        let mut values = Vec::new();
        for (number, ((column, profile), name)) in columns.iter().zip(profiles).zip(names).enumerate() {
            let scale = Scale::of(profile);
            let (shape, placed) = place(column, &scale);
            if values.is_empty() {
                values.resize(placed.len() * n_targets, 0.0);
            }
            values.iter_mut().skip(number).step_by(n_targets).zip(&placed).for_each(|(value, placed)| *value = *placed);
            let with_missing = shape != Shape::Constant && placed.iter().any(|value| value.is_nan());
            let model = if with_missing { MissingModel::new(&placed, shape == Shape::Nominal, &[], 1) } else { None };
            shapes.push(if with_missing && model.is_none() { Shape::Unknown } else { shape });
            missing_models.push(model);
            has.push(if task == Task::MultiLabel { label_code(column, &name.name)? } else { 1.0 });
        }
        let space = Space::new(shapes, missing_models, Vec::new(), 1);
        Ok(Targets { values: Values::Columns { space, values, has }, shares: shares(weights, n_targets) })
    }

    /// The distance between the targets of rows `a` and `b`.
    pub(crate) fn apart(&self, how: TargetMetric, a: u32, b: u32) -> f64 {
        match (&self.values, how) {
            (Values::Columns { space, .. }, TargetMetric::Target(target)) => {
                space.difference(target, self.example(a), self.example(b))
            }
            (Values::Columns { space, .. }, TargetMetric::Mean) => {
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
            (Values::Sets { .. }, _) => unreachable!("label sets are told apart as sets"),
        }
    }

    fn example(&self, row: u32) -> Example<'_> {
        let Values::Columns { values, .. } = &self.values else { unreachable!("label sets are no example") };
        let n_targets = self.shares.len();
        Example { values: &values[row as usize * n_targets..][..n_targets], class: 0 }
    }

    /// The weight of the labels that one of the two rows has, and of those that both have.
    fn compare(&self, a: u32, b: u32) -> (f64, f64) {
        let has = match &self.values {
            Values::Columns { has, .. } => has,
            Values::Sets { labels, shares } => {
                let set = |row: u32| labels.of(row as usize).unwrap_or(&[]);
                return compare(set(a), set(b), shares);
            }
        };
        let (a, b) = (self.example(a), self.example(b));
        let (mut one, mut both) = (0.0, 0.0);
        for (((has, share), x), y) in has.iter().zip(&self.shares).zip(a.values).zip(b.values) {
            match (x == has, y == has) {
                (true, true) => both += share,
                (false, false) => {}
                _ => one += share,
            }
        }
        (one, both)
    }
}

/// The share of each target; they sum up to 1.
pub(crate) fn shares(weights: Option<&[f64]>, n_targets: usize) -> Vec<f64> {
    let total = weights.map_or(n_targets as f64, |weights| weights.iter().sum());
    (0..n_targets).map(|target| weights.map_or(1.0, |weights| weights[target]) / total).collect()
}

fn place(column: &TargetColumn, scale: &Scale) -> (Shape, Vec<f64>) {
    match (column, scale) {
        (TargetColumn::Numeric(values), Scale::Numeric { low, high }) => {
            (Shape::Numeric, values.iter().map(|&value| Scale::place(value, *low, *high)).collect())
        }
        (TargetColumn::Numeric(values), _) => (Shape::Constant, vec![0.0; values.len()]),
        (TargetColumn::Nominal { categories, codes }, _) => {
            let shape = if categories.names.len() > 1 { Shape::Nominal } else { Shape::Constant };
            let number = |&code: &u16| if code == MISSING_U16 { f64::NAN } else { f64::from(code) };
            (shape, codes.iter().map(number).collect())
        }
        (TargetColumn::Labels(_), _) => unreachable!("a hierarchical target stands alone"),
    }
}
