//! The rows of a node: its target, and what all selectors need to know of it.

use crate::table::{Column, Outcome, Table};

/// Some rows of a table, on which the features are estimated.
pub(crate) struct NodeRows<'a> {
    pub(crate) table: &'a Table,
    /// n; numbers of the rows in the table, ascending.
    pub(crate) rows: &'a [u32],
    pub(crate) target: NodeTarget,
}

/// The target at a node.
#[derive(Debug)]
pub(crate) enum NodeTarget {
    /// Classes.
    Classes {
        /// n
        codes: Vec<u16>,
        /// n_classes; rows of each.
        counts: Vec<u64>,
    },
    /// Numbers.
    Numbers {
        /// n; the values less their mean.
        centered: Vec<f64>,
        mean: f64,
        /// Sum of the squares of `centered`.
        squares: f64,
    },
}

impl<'a> NodeRows<'a> {
    pub(crate) fn new(table: &'a Table, rows: &'a [u32]) -> Self {
        let target = match &table.outcome {
            Outcome::Classes { codes, n_classes } => {
                let codes: Vec<u16> = rows.iter().map(|&row| codes[row as usize]).collect();
                let mut counts = vec![0; *n_classes];
                codes.iter().for_each(|&code| counts[usize::from(code)] += 1);
                NodeTarget::Classes { codes, counts }
            }
            Outcome::Numbers(values) => {
                let values: Vec<f64> = rows.iter().map(|&row| values[row as usize]).collect();
                let mean = mean(&values);
                let centered: Vec<f64> = values.iter().map(|value| value - mean).collect();
                let squares = centered.iter().map(|value| value * value).sum();
                NodeTarget::Numbers { centered, mean, squares }
            }
        };
        NodeRows { table, rows, target }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The values of a numeric feature, n; `None` for a nominal one.
    pub(crate) fn numbers(&self, feature: usize) -> Option<Vec<f64>> {
        match &self.table.features[feature] {
            Column::Numeric(values) => Some(self.rows.iter().map(|&row| values[row as usize]).collect()),
            Column::Nominal(_) => None,
        }
    }

    /// Gini index, or variance.
    pub(crate) fn impurity(&self) -> f64 {
        let n = self.len() as f64;
        match &self.target {
            NodeTarget::Classes { counts, .. } => 1.0 - counts.iter().map(|&c| (c as f64 / n).powi(2)).sum::<f64>(),
            NodeTarget::Numbers { squares, .. } => squares / n,
        }
    }
}

/// The mean, as what the first value is off by, so that equal values have it exactly.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let first = values.first().copied().unwrap_or(0.0);
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len().max(1) as f64
}
