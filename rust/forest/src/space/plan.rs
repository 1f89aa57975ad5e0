//! The variables of a space, and the components that each of them has.

use ferrank_data::schema::Task;
use ferrank_data::store::{CodeStore, Origin, TargetColumn};
use ferrank_runtime::error::{Error, Result};

use super::scaling::{Dense, Raw, RowWeights};

/// Up to this many labels are dense components: adding a few numbers in vectors is cheaper than following a list.
pub(super) const DENSE_LABELS: usize = 8;

/// What a [`Space`](super::Space) is made of.
pub(crate) struct Plan<'a> {
    pub(crate) task: Task,
    /// Positions of the targets whose components the space has.
    pub(crate) subset: &'a [usize],
    /// Names of all targets.
    pub(crate) names: &'a [String],
    /// Weights of all targets; `None` if all are 1.
    pub(crate) weights: Option<&'a [f64]>,
    /// The share of the targets in the impurity; the features share the rest.
    pub(crate) supervision: f64,
    /// Weights of all features; `None` if all are 1.
    pub(crate) feature_weights: Option<&'a [f64]>,
}

/// A target or a feature.
pub(super) struct Variable<'a> {
    pub(super) column: &'a TargetColumn,
    pub(super) origin: Origin,
    /// The variable's share of the impurity of the whole data.
    pub(super) share: f64,
    /// True if the variable is one of several labels, with two values.
    is_label: bool,
}

/// The components of a variable.
pub(super) struct Components<'a> {
    pub(super) variable: &'a Variable<'a>,
    /// True if the variable is known for all rows.
    pub(super) is_whole: bool,
    pub(super) dense: Vec<Dense>,
    /// ω of the indicator of each class or label; `None` for a class or label without indicator.
    pub(super) omegas: Vec<Option<f64>>,
    /// The impurity of the training data in these components.
    pub(super) impurity: f64,
}

impl Plan<'_> {
    /// The targets and the features of `store` that the space is made of.
    ///
    /// # Errors
    /// [`Error::Data`] for a label with more than two values.
    pub(super) fn variables<'a>(&self, store: &'a CodeStore) -> Result<Vec<Variable<'a>>> {
        let weight = |target: usize| self.weights.map_or(1.0, |weights| weights[target]);
        let total: f64 = self.subset.iter().map(|&target| weight(target)).sum();
        let is_label = self.task == Task::MultiLabel;
        let mut variables = Vec::with_capacity(self.subset.len() + store.values.len());
        for &target in self.subset {
            let column = &store.targets[target];
            if let (true, TargetColumn::Nominal { categories, .. }) = (is_label, column)
                && categories.names.len() > 2
            {
                return Err(Error::Data(format!(
                    "the label '{}' has {} values ({}, …); a label has two",
                    self.names[target],
                    categories.names.len(),
                    categories.names[..3].join(", ")
                )));
            }
            let share = self.supervision * (weight(target) / total);
            variables.push(Variable { column, origin: Origin::Target(target), share, is_label });
        }
        let total = self.feature_weights.map_or(store.values.len() as f64, |weights| weights.iter().sum());
        let feature = |(number, column)| {
            let share = (1.0 - self.supervision) / total * self.feature_weights.map_or(1.0, |weights| weights[number]);
            Variable { column, origin: Origin::Feature(number), share, is_label: false }
        };
        variables.extend(store.values.iter().enumerate().map(feature));
        Ok(variables)
    }
}

impl Variable<'_> {
    /// The components of the variable. With `lists_labels`, a label becomes an indicator instead of a dense component.
    pub(super) fn components<'a>(&'a self, rows: &RowWeights<'_>, lists_labels: bool) -> Components<'a> {
        let dense_of = |which: u32| move |scaling| Dense { origin: self.origin, which, scaling };
        let (mut dense, mut omegas, mut share) = (Vec::new(), Vec::new(), self.share);
        match self.column {
            TargetColumn::Numeric(values) => {
                dense.extend(rows.component(&Raw::numeric(values), self.share).map(dense_of(0)))
            }
            TargetColumn::Nominal { categories, codes } => {
                let classes = categories.names.len();
                let gini = rows.gini(codes, classes);
                let omega = self.share / gini;
                match classes {
                    0 | 1 => {}
                    // In a part of the data set the variable may be constant, or known for no row.
                    _ if gini.is_nan() || gini == 0.0 => {}
                    // One indicator describes two classes; its variance is half of the Gini index.
                    2 if self.is_label && lists_labels => omegas = vec![None, Some(2.0 * omega)],
                    2 => dense.push(dense_of(1)(rows.scaled(&Raw::indicator(codes, 1), 2.0 * omega))),
                    _ => omegas = vec![Some(omega); classes],
                }
            }
            TargetColumn::Labels(labels) => {
                let weights = rows.label_weights(labels).into_iter();
                let of_labels: Vec<Option<f64>> =
                    weights.map(|weight| (weight > 0.0).then_some(self.share * weight)).collect();
                let varying = labels.shares().into_iter().zip(&of_labels).filter(|(_, omega)| omega.is_some());
                share *= varying.map(|(share, _)| share).sum::<f64>();
                if of_labels.iter().flatten().count() > DENSE_LABELS {
                    omegas = of_labels;
                } else {
                    let component = |(label, omega): (u32, Option<f64>)| {
                        Some(dense_of(label)(rows.scaled(&Raw::label(labels, label), omega?)))
                    };
                    dense.extend((0..).zip(of_labels).filter_map(component));
                }
            }
        }
        let is_empty = dense.is_empty() && omegas.is_empty();
        let impurity = if is_empty { 0.0 } else { share };
        Components { variable: self, is_whole: !self.column.has_missing(), dense, omegas, impurity }
    }
}

impl Components<'_> {
    /// Returns true if each row has one of the indicators, and these have the same ω.
    pub(super) fn is_classes(&self) -> bool {
        let is_nominal = matches!(self.variable.column, TargetColumn::Nominal { .. });
        is_nominal && self.is_whole && !self.omegas.is_empty() && self.omegas.iter().all(Option::is_some)
    }
}
