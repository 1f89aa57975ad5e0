//! The targets that trees predict, by kind.

use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::{CodeStore, Columns, TargetColumn, label_code};

/// The targets that a tree predicts, by kind.
pub(crate) struct Targets<'a> {
    pub(crate) numeric: Vec<Numeric<'a>>,
    /// Codes, and the number of classes.
    pub(crate) nominal: Vec<(&'a [u16], usize)>,
    /// n_nominal; for a label the class of the rows that have it.
    pub(crate) present: Vec<u16>,
    pub(crate) sets: Vec<Sets<'a>>,
    weights: &'a [f64],
    /// The positions of the targets in the store.
    subset: Vec<usize>,
}

/// Label sets, and the share of each label.
pub(crate) struct Sets<'a> {
    pub(crate) labels: &'a LabelColumn,
    pub(crate) shares: Vec<f64>,
}

/// A numeric target, scaled to the range −1 to 1. Errors are relative, so the scale has no effect, and squares do not
/// overflow.
pub(crate) struct Numeric<'a> {
    values: &'a [f64],
    middle: f64,
    half_range: f64,
}

impl<'a> Numeric<'a> {
    fn new(values: &'a [f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let half_range = high / 2.0 - low / 2.0;
        Numeric {
            values,
            middle: f64::midpoint(low, high),
            half_range: if half_range > 0.0 { half_range } else { 1.0 },
        }
    }

    /// NaN where missing.
    #[inline(always)]
    pub(crate) fn at(&self, row: usize) -> f64 {
        (self.values[row] - self.middle) / self.half_range
    }
}

impl<'a> Targets<'a> {
    /// The targets `subset` of `store`.
    pub(crate) fn new(store: &'a CodeStore, subset: &[usize]) -> Self {
        let mut targets = Targets::none(&store.weights, subset);
        for &target in subset {
            let column = &store.targets[target];
            match column {
                TargetColumn::Numeric(values) => targets.numeric.push(Numeric::new(values)),
                TargetColumn::Nominal { categories, codes } => {
                    targets.nominal.push((codes, categories.names.len()));
                    // A class of more than two is no label.
                    targets.present.push(label_code(column, "").map_or(0, |code| code as u16));
                }
                TargetColumn::Labels(labels) => targets.sets.push(Sets { labels, shares: labels.shares() }),
            }
        }
        targets
    }

    /// The same targets, on the same scales, for other rows, whose values are in `columns`.
    pub(crate) fn over<'b>(&self, columns: Columns<'b>) -> Targets<'b> {
        let mut targets = Targets { present: self.present.clone(), ..Targets::none(columns.weights, &self.subset) };
        let (mut scales, mut sets) = (self.numeric.iter(), self.sets.iter());
        for &target in &self.subset {
            match &columns.targets[target] {
                TargetColumn::Numeric(values) => {
                    targets.numeric.extend(scales.next().map(|&Numeric { middle, half_range, .. }| Numeric {
                        values,
                        middle,
                        half_range,
                    }))
                }
                TargetColumn::Nominal { categories, codes } => targets.nominal.push((codes, categories.names.len())),
                TargetColumn::Labels(labels) => {
                    targets.sets.extend(sets.next().map(|Sets { shares, .. }| Sets { labels, shares: shares.clone() }));
                }
            }
        }
        targets
    }

    fn none(weights: &'a [f64], subset: &[usize]) -> Self {
        Targets {
            numeric: Vec::new(),
            nominal: Vec::new(),
            present: Vec::new(),
            sets: Vec::new(),
            weights,
            subset: subset.to_vec(),
        }
    }

    /// Returns true if `row` has a target.
    pub(crate) fn some_known(&self, row: usize) -> bool {
        self.numeric.iter().any(|target| !target.values[row].is_nan())
            || self.nominal.iter().any(|(codes, _)| codes[row] != MISSING_U16)
            || self.sets.iter().any(|sets| sets.labels.of(row).is_some())
    }

    /// Returns true if all classes and label sets of `row` are known.
    pub(crate) fn all_labels_known(&self, row: usize) -> bool {
        self.nominal.iter().all(|(codes, _)| codes[row] != MISSING_U16)
            && self.sets.iter().all(|sets| sets.labels.of(row).is_some())
    }

    pub(crate) fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }
}
