//! Columns that a source keeps as a matrix of numbers.

use std::ops::Range;

/// Consecutive columns of a source that are kept as a matrix in memory.
///
/// A few columns of it are read at a time, where a record batch would have an array for each of them.
///
/// ```
/// # use std::ops::Range;
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_schema::SchemaRef;
/// # use ferrank_data::Result;
/// # use ferrank_data::source::{Chunks, TableSource};
/// use ferrank_data::source::{ChunkSource, Matrix, MatrixColumns};
///
/// # struct Columns(Vec<Vec<f64>>);
/// # impl Matrix for Columns {
/// #     fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
/// #         let columns: Vec<&[f64]> = self.0[columns].iter().map(|column| &column[rows.clone()]).collect();
/// #         out.copy_from_slice(&columns.concat());
/// #     }
/// #     fn read_row(&self, row: usize, columns: Range<usize>, out: &mut [f64]) {
/// #         out.iter_mut().zip(&self.0[columns]).for_each(|(out, column)| *out = column[row]);
/// #     }
/// # }
/// /// A table of a column of names, and two of numbers that are in a matrix, too.
/// struct Named {
///     table: TableSource,
///     numbers: Columns,
/// }
///
/// impl ChunkSource for Named {
/// #     fn schema(&self) -> SchemaRef {
/// #         self.table.schema()
/// #     }
/// #     fn chunks(&self) -> Result<Chunks<'_>> {
/// #         self.table.chunks()
/// #     }
/// #     fn name(&self) -> &str {
/// #         self.table.name()
/// #     }
///     // Each other method calls the method of the same name of the table.
///     fn matrix(&self) -> Option<MatrixColumns<'_>> {
///         Some(MatrixColumns { first: 1, width: 2, n_rows: 3, matrix: &self.numbers })
///     }
/// }
/// # let numbers = Columns(vec![vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]]);
/// # let column = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
/// # let names = Arc::new(arrow_array::StringArray::from(vec!["a", "b", "c"])) as ArrayRef;
/// # let columns = [("name", names), ("x", column(&numbers.0[0])), ("z", column(&numbers.0[1]))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let named = Named { table: TableSource::new("table", batch.schema(), vec![batch])?, numbers };
/// let MatrixColumns { first, n_rows, matrix, .. } = named.matrix().unwrap();
/// let z = named.schema().index_of("z").unwrap() - first;
/// let mut values = vec![0.0; n_rows];
/// matrix.read(0..n_rows, z..z + 1, &mut values);
/// assert_eq!(values, [10.0, 20.0, 30.0]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct MatrixColumns<'a> {
    /// The position of the first of the columns in the schema of the source.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub n_rows: usize,
    /// The numbers.
    pub matrix: &'a dyn Matrix,
}

/// Numbers in memory, of which any columns can be read.
///
/// ```
/// use std::ops::Range;
///
/// use ferrank_data::source::Matrix;
///
/// /// Rows of two numbers.
/// struct Rows(Vec<[f64; 2]>);
///
/// impl Matrix for Rows {
///     fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
///         for (column, out) in columns.zip(out.chunks_exact_mut(rows.len())) {
///             out.iter_mut().zip(&self.0[rows.clone()]).for_each(|(out, row)| *out = row[column]);
///         }
///     }
///
///     fn read_row(&self, row: usize, columns: Range<usize>, out: &mut [f64]) {
///         out.copy_from_slice(&self.0[row][columns]);
///     }
/// }
/// let mut out = [0.0; 4];
/// Rows(vec![[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]).read(1..3, 0..2, &mut out);
/// assert_eq!(out, [2.0, 3.0, 20.0, 30.0]);
/// ```
pub trait Matrix: Sync {
    /// Writes the numbers of `columns` in `rows` to `out`, one column after the other, NaN where missing.
    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]);

    /// Writes the numbers of `columns` in row number `row` to `out`, NaN where missing.
    fn read_row(&self, row: usize, columns: Range<usize>, out: &mut [f64]);
}
