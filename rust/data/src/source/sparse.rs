//! Columns that a source keeps as compressed sparse rows.

use arrow_buffer::ScalarBuffer;

use super::ChunkSource;

/// Consecutive columns of a source as compressed sparse rows (SciPy's CSR), and the columns beside them.
///
/// What is read this way costs time and memory for its entries, not for its cells: a record batch has an array for each
/// column, in all of which most values are 0.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::{ColumnProfile, Profile}, schema::{Roles, Targets}};
/// # use ferrank_runtime::monitor::Monitor;
/// use arrow_schema::SchemaRef;
/// use ferrank_data::Result;
/// use ferrank_data::source::{ChunkSource, Chunks, SparseColumns, TableSource};
///
/// /// Words of documents by number, and a column of grades beside them.
/// struct Documents {
///     dense: TableSource,
///     grades: TableSource,
/// }
///
/// impl ChunkSource for Documents {
///     fn schema(&self) -> SchemaRef {
///         self.dense.schema()
///     }
///     fn chunks(&self) -> Result<Chunks<'_>> {
///         self.dense.chunks()
///     }
///     fn name(&self) -> &str {
///         "documents"
///     }
///     fn sparse(&self) -> Result<Option<SparseColumns<'_>>> {
///         // Document 0 has word 1 twice, document 1 nothing, document 2 both words.
///         let (starts, columns, values) = (&[0, 1, 1, 3], &[1, 0, 1], vec![2.0, 1.0, 1.0].into());
///         let rest = Box::new(self.grades.clone());
///         Ok(Some(SparseColumns { first: 0, width: 2, starts, columns, values, rest }))
///     }
/// }
/// # let column = |values: [f64; 3]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
/// # let [words, grades] = [[("a", [0.0, 0.0, 1.0]), ("b", [2.0, 0.0, 1.0])].to_vec(), vec![("grade", [1.0, 3.0, 2.0])]];
/// # let table = |columns: Vec<(&str, [f64; 3])>| {
/// #     let batch = RecordBatch::try_from_iter(columns.into_iter().map(|(name, values)| (name, column(values)))).unwrap();
/// #     TableSource::new("table", batch.schema(), vec![batch])
/// # };
/// # let documents = Documents { dense: table([words, grades.clone()].concat())?, grades: table(grades)? };
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&documents, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// let profile = Profile::new(&view.intake(&problem, &monitor), 255)?;
/// let ColumnProfile::Numeric(word) = &profile.features[1] else { unreachable!("a count") };
/// assert_eq!((word.zeros, word.max), (1, 2.0));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub struct SparseColumns<'a> {
    /// The position of the first of the columns in the schema of the source.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
    /// n_rows + 1; where the entries of each row start.
    pub starts: &'a [i64],
    /// n_entries; the column of each entry, counted from the first, ascending within a row.
    pub columns: &'a [i32],
    /// n_entries; 0 and NaN are allowed.
    pub values: ScalarBuffer<f64>,
    /// The other columns, in the order of the schema, with the same rows.
    pub rest: Box<dyn ChunkSource + 'a>,
}
