//! Features that are numbers of a matrix in memory, read row by row, and the other columns in batches.
//!
//! No arrays are made of the features. Gain: 500 rows of 60,000 features are ranked by Relief in .7 of the time.

use std::borrow::Borrow;
use std::ops::Range;

use crate::intake::{Counts, Intake};
use crate::rest::RestIntake;
use crate::schema::{Attribute, Kind};
use crate::source::MatrixColumns;
use ferrank_runtime::error::Result;

/// The features of an intake, all of which are numbers of a matrix.
///
/// ```
/// # use std::ops::Range;
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_schema::SchemaRef;
/// # use ferrank_data::{Result, intake::{Unlabelled, View}, schema::{Roles, Targets}};
/// # use ferrank_data::source::{ChunkSource, Chunks, Matrix, MatrixColumns, TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # struct Two { table: TableSource, columns: [Vec<f64>; 2] }
/// # impl Matrix for Two {
/// #     fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
/// #         let columns: Vec<&[f64]> = self.columns[columns].iter().map(|column| &column[rows.clone()]).collect();
/// #         out.copy_from_slice(&columns.concat());
/// #     }
/// #     fn read_row(&self, row: usize, columns: Range<usize>, out: &mut [f64]) {
/// #         out.iter_mut().zip(&self.columns[columns]).for_each(|(out, column)| *out = column[row]);
/// #     }
/// # }
/// # impl ChunkSource for Two {
/// #     fn schema(&self) -> SchemaRef { self.table.schema() }
/// #     fn chunks(&self) -> Result<Chunks<'_>> { self.table.chunks() }
/// #     fn name(&self) -> &str { self.table.name() }
/// #     fn matrix(&self) -> Option<MatrixColumns<'_>> {
/// #         Some(MatrixColumns { first: 0, width: 2, n_rows: 3, matrix: self })
/// #     }
/// # }
/// # let columns = [vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]];
/// # let column = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
/// # let names = [("x", column(&columns[0])), ("z", column(&columns[1])), ("y", column(&[0.0, f64::NAN, 1.0]))];
/// # let batch = RecordBatch::try_from_iter(names).unwrap();
/// # let source = Two { table: TableSource::new("table", batch.schema(), vec![batch])?, columns };
/// # let (roles, monitor) = (Roles::new(Targets::Named(vec!["y".into()])), Monitor::default());
/// # let view = View::new(&source, &roles, Unlabelled::Ignore);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// use ferrank_data::matrix_features::MatrixFeatures;
///
/// // `x` and `z` are in a matrix. Of three rows the second has no target.
/// let features = MatrixFeatures::new(&intake).expect("a source with a matrix");
/// let rows = features.rows(features.rest().count()?)?;
/// let mut values = vec![0.0; 2];
/// for (row, expected) in rows.into_iter().zip([[1.0, 10.0], [3.0, 30.0]]) {
///     features.tiles(256).for_each(|tile| tile.read(row, &mut values));
///     assert_eq!(values, expected);
/// }
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub struct MatrixFeatures<'a> {
    columns: MatrixColumns<'a>,
    features: &'a [Attribute],
    rest: RestIntake<'a>,
}

/// Features whose columns follow each other.
#[derive(Clone)]
pub struct Tile<'a> {
    /// Numbers of the features.
    pub features: Range<usize>,
    columns: Range<usize>,
    matrix: MatrixColumns<'a>,
}

impl Tile<'_> {
    /// Writes their values in row number `row` of the source to `out`, NaN where missing.
    pub fn read(&self, row: usize, out: &mut [f64]) {
        self.matrix.matrix.read_row(row, self.columns.clone(), out);
    }
}

impl<'a> MatrixFeatures<'a> {
    /// `None` if the source keeps no matrix, or not all features are numbers of it.
    pub fn new(intake: &'a Intake<'a>) -> Option<Self> {
        let (columns, features) = (intake.source.matrix()?, &intake.problem.features);
        let range = columns.first..columns.first + columns.width;
        let is_in_matrix = |feature: &Attribute| feature.kind == Kind::Numeric && range.contains(&feature.column);
        let rest = || RestIntake::new(intake, |_| false);
        features.iter().all(is_in_matrix).then(|| MatrixFeatures { columns, features, rest: rest() })
    }

    /// The rows without the features.
    pub fn rest(&self) -> Intake<'_> {
        self.rest.intake()
    }

    /// The numbers in the source of the rows that take part, of which there are these `counts`.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn rows(&self, counts: Counts) -> Result<Vec<usize>> {
        Ok(self.rest().rows_taking_part(counts)?.unwrap_or_else(|| (0..self.columns.n_rows).collect()))
    }

    /// The features in order, at most `most` together.
    pub fn tiles(&self, most: usize) -> impl Iterator<Item = Tile<'a>> {
        let matrix = self.columns;
        let mut end = 0;
        neighbours(self.features, most).map(move |features| {
            let (number, first) = (end, features[0].column - matrix.first);
            end += features.len();
            Tile { features: number..end, columns: first..first + features.len(), matrix }
        })
    }
}

/// Runs of at most `most` features, in order, whose columns follow each other.
pub(crate) fn neighbours<T: Borrow<Attribute>>(features: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let runs = features.chunk_by(|a, b| a.borrow().column + 1 == b.borrow().column);
    runs.flat_map(move |run| run.chunks(most))
}
