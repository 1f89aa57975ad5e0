//! Rows in panels under a metric: distances as A + B − 2 M (see `neighbors::panels`).
//!
//! ```text
//! numeric, w        A, B: w a²      M: √w a · √w b                  = w (a − b)²
//! nominal, w        A, B: w/2       M: w/2 where equal              = w [a ≠ b]
//! ```
//!
//! A missing number with mean m and variance v is stored as m and adds w v to A, which gives the expected square.
//! The contributions of other missing values are sums of products that are 0 unless the value of one row is missing;
//! the other row then determines the contribution. With k = 1 where a value is known and 0 where it is missing:
//!
//! ```text
//! numeric, as far as can be: f(a) = max(a, 1 − a)²
//!     A: w a² k     M: √w a k · √w b k'  +  √w (a² − f(a)) k / 2 · √w (1 − k')
//!                      +  √w (1 − k) · √w ((b² − f(b)) k' − (1 − k')) / 2
//! nominal, as expected: P(a) the share of a, or of two that are equal where a is missing
//!     A: w/2        M: w/2 where equal  +  √w (1 − k) · √w P(b) / 2  +  √w k P(a) / 2 · √w (1 − k')
//! ```

use super::metric::{Feature, Metric, Shape, Unknown};
use ferrank_neighbors::layout::{Common, Error, Layout, ROUNDING, additions};
use ferrank_neighbors::panels::{Cells, Panels};
use ferrank_neighbors::rows::Rows;

/// Which factor of the products a row gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Query,
    Row,
}

/// The content of a column of panels.
#[derive(Debug, Clone, Copy)]
enum Column {
    /// The value, or its expectation if it is missing.
    Value,
    /// Missing values of rows: 1 in such a row; in a query, the contribution of its known value.
    MissingInRow,
    /// Missing values of queries: 1 in such a query; in a row, the contribution of its value, known or missing.
    MissingInQuery,
}

/// The columns of panels in which the features of a metric are stored.
#[derive(Debug)]
pub(crate) struct MetricPanels<'a> {
    pub(crate) layout: Layout,
    /// n_whole
    columns: Vec<Column>,
    metric: &'a Metric<'a>,
    /// The largest sum of the products of missing values.
    missing: f64,
}

impl<'a> MetricPanels<'a> {
    pub(crate) fn new(metric: &'a Metric<'a>) -> Self {
        let mut layout = Layout { common: Common::Product, n_classes: 1, ..Layout::default() };
        let mut columns = Vec::new();
        let mut missing = 0.0;
        let mut add = |layout: &mut Layout, term: usize, column| {
            layout.whole.push(term as u32);
            columns.push(column);
        };
        for (term, (_, weight, feature)) in metric.terms.iter().enumerate() {
            if feature.shape == Shape::Numeric {
                add(&mut layout, term, Column::Value);
            }
            if feature.has_products() {
                add(&mut layout, term, Column::MissingInRow);
                add(&mut layout, term, Column::MissingInQuery);
                missing += 2.0 * weight;
            }
        }
        layout.n_numeric = layout.whole.len();
        for (term, (_, weight, _)) in metric.terms.iter().enumerate().filter(|(_, t)| t.2.shape == Shape::Nominal) {
            add(&mut layout, term, Column::Value);
            layout.halves.push((weight / 2.0) as f32);
        }
        MetricPanels { layout, columns, metric, missing }
    }

    /// All of `rows`.
    pub(crate) fn panels(&self, rows: &Rows, side: Side) -> Panels {
        Panels::new(&self.layout, vec![rows.numbers.clone()], |number, cells| self.fill(rows.row(number), side, cells))
    }

    /// Writes a row; returns its A.
    fn fill(&self, values: &[f64], side: Side, cells: &mut Cells<'_>) -> f32 {
        for (place, (&term, column)) in self.layout.whole.iter().zip(&self.columns).enumerate() {
            let (number, weight, feature) = self.metric.terms[term as usize];
            let value = values[number];
            cells.values[place] = match column {
                Column::Value if place >= self.layout.n_numeric => value as f32,
                column => (weight.sqrt() * feature.factor(*column, side, value)) as f32,
            };
        }
        self.metric.terms.iter().map(|(number, weight, feature)| weight * feature.alone(values[*number])).sum::<f64>()
            as f32
    }

    /// The error of distances from a query whose A is `sum`, where no row's is above `most`.
    ///
    /// A, B and all factors are rounded by 2⁻²⁴ of themselves, M once more for each addition on its way; the
    /// products of M are, without those of missing values, at most √(A B) together (Cauchy).
    pub(crate) fn error(&self, sum: f64, most: f64) -> Error {
        let products = (sum * most).sqrt() + self.missing;
        let fixed =
            2.0 * products * (additions(self.layout.whole.len()) + 3.0 * ROUNDING) + 2.0 * (sum + most) * ROUNDING;
        // A tenth for the errors of errors, and of sums in f64; and products that vanish in f32.
        let vanished = self.layout.whole.len() as f64 * f64::from(f32::MIN_POSITIVE);
        Error { fixed: 1.1 * fixed + vanished, relative: 4.0 * ROUNDING }
    }
}

impl Feature {
    /// Returns true if missing values go through products of their own.
    fn has_products(&self) -> bool {
        matches!(
            (self.shape, &self.unknown),
            (Shape::Numeric, Some(Unknown::Most)) | (Shape::Nominal, Some(Unknown::Category { .. }))
        )
    }

    /// The part of A, over the weight.
    fn alone(&self, value: f64) -> f64 {
        match (self.shape, &self.unknown) {
            (Shape::Constant, _) => 0.0,
            (Shape::Nominal, _) => 0.5,
            (Shape::Numeric, Some(Unknown::Number { mean, variance })) if value.is_nan() => mean.powi(2) + variance,
            (Shape::Numeric, _) if value.is_nan() => 0.0,
            (Shape::Numeric, _) => value * value,
        }
    }

    /// The factor that is stored in `column`, over the square root of the weight.
    fn factor(&self, column: Column, side: Side, value: f64) -> f64 {
        let missing = f64::from(u8::from(value.is_nan()));
        match (column, side, &self.unknown) {
            (Column::Value, _, Some(Unknown::Number { mean, .. })) if value.is_nan() => *mean,
            (Column::Value, _, _) if value.is_nan() => 0.0,
            (Column::Value, _, _) => value,
            (Column::MissingInRow, Side::Row, _) | (Column::MissingInQuery, Side::Query, _) => missing,
            (Column::MissingInRow, Side::Query, _) if value.is_nan() => 0.0,
            (_, _, Some(unknown)) => unknown.half(value),
            (_, _, None) => 0.0,
        }
    }
}

impl Unknown {
    /// Half of the contribution to M of a missing value on the other side.
    fn half(&self, value: f64) -> f64 {
        match self {
            Unknown::Most if value.is_nan() => -0.5,
            Unknown::Most => (value * value - value.max(1.0 - value).powi(2)) / 2.0,
            Unknown::Category { both, .. } if value.is_nan() => both / 2.0,
            Unknown::Category { shares, .. } => shares[value as usize] / 2.0,
            Unknown::Number { .. } => 0.0,
        }
    }
}
