//! Relief at a node: near rows among those of the node, on the scale of their values there.

use rayon::prelude::*;

use crate::node_rows::{NodeRows, NodeTarget};
use crate::table::Column;
use ferrank_data::profile::MISSING_U16;
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::space::{Scale, Shape, Space};
use ferrank_relief::near_pairs::{NearPair, NearPairs};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// The near rows of a node, and Relief's estimates.
pub(crate) struct Near {
    pub(crate) pairs: Vec<NearPair>,
    /// n_features
    pub(crate) estimates: Vec<f64>,
}

/// A feature on the scale of a node.
struct Scaled {
    shape: Shape,
    /// n; NaN where missing.
    values: Vec<f64>,
    missing_model: Option<MissingModel>,
}

impl Near {
    /// Searches the `k` nearest rows of each row, with rank weights of width `sigma`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn search(node: &NodeRows<'_>, k: usize, sigma: Option<f64>, monitor: &Monitor) -> Result<Self> {
        let (classes, n_classes): (&[u16], usize) = match &node.target {
            NodeTarget::Classes { codes, counts } => (codes, counts.len()),
            NodeTarget::Numbers { .. } => (&[], 1),
        };
        let columns: Vec<Scaled> =
            node.table.features.par_iter().map(|column| scaled(node, column, classes, n_classes)).collect();
        let rows = rows_of(&columns, node.len());
        let (mut shapes, mut models, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for column in columns {
            shapes.push(column.shape);
            models.push(column.missing_model);
            values.push(column.values);
        }
        let space = Space::new(shapes, models, classes.to_vec(), n_classes);
        let search = NearPairs { rows: &rows, space: &space, k, sigma, monitor };
        let pairs = match &node.target {
            NodeTarget::Classes { .. } => search.of_classes()?,
            NodeTarget::Numbers { centered, .. } => search.of_numbers(&to_unit_range(centered))?,
        };
        let estimate = |(feature, values): (usize, &Vec<f64>)| {
            let value = |row: u32| (values[row as usize], space.class(row));
            pairs.iter().map(|pair| pair.weight * space.apart(feature, value(pair.query), value(pair.row))).sum()
        };
        let estimates = values.par_iter().enumerate().map(estimate).collect();
        Ok(Near { pairs, estimates })
    }
}

/// The values of `column` as numbers that differ by at most 1, by the range of the node.
fn scaled(node: &NodeRows<'_>, column: &Column, classes: &[u16], n_classes: usize) -> Scaled {
    let (shape, mut values) = match column {
        Column::Numeric(values) => {
            let values: Vec<f64> = node.rows.iter().map(|&row| values[row as usize]).collect();
            let (low, high) =
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
            let shape = if low < high { Shape::Numeric } else { Shape::Constant };
            (shape, values.into_iter().map(|value| Scale::normalize(value, low, high)).collect())
        }
        Column::Nominal(codes) => {
            let number = |code: u16| if code == MISSING_U16 { f64::NAN } else { f64::from(code) };
            let values: Vec<f64> = node.rows.iter().map(|&row| number(codes[row as usize])).collect();
            let first = values.iter().find(|value| !value.is_nan());
            let varies = values.iter().any(|value| !value.is_nan() && Some(value) != first);
            (if varies { Shape::Nominal } else { Shape::Constant }, values)
        }
    };
    if shape == Shape::Constant {
        values.fill(0.0);
    }
    let missing_model = (values.iter().any(|value| value.is_nan()))
        .then(|| MissingModel::new(&values, shape == Shape::Nominal, classes, n_classes))
        .flatten();
    Scaled { shape, values, missing_model }
}

fn rows_of(columns: &[Scaled], n_rows: usize) -> Rows {
    let mut rows = Rows::with_capacity(n_rows, columns.len());
    let values = rows.add(0..n_rows as u32);
    for (feature, column) in columns.iter().enumerate() {
        values
            .iter_mut()
            .skip(feature)
            .step_by(columns.len())
            .zip(&column.values)
            .for_each(|(out, value)| *out = *value);
    }
    rows
}

/// The target scaled to [0, 1]; it varies where a node is split.
fn to_unit_range(values: &[f64]) -> Vec<f64> {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &y| (low.min(y), high.max(y)));
    values.iter().map(|&value| (value - low) / (high - low)).collect()
}
