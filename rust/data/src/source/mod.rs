//! Sources: a schema and, again and again, the same sequence of Arrow record batches.
//!
//! A ranking passes over its data more than once, so a source replays. What can be read only once
//! (a stream) is spilled to an uncompressed Arrow file at the door.
//!
//! | what | where | memory |
//! |---|---|---|
//! | Arrow IPC file or stream | [`IpcSource`] | a piece of 8 MiB; what has to be larger, a scratch file |
//! | ARFF, dense or sparse | [`ArffSource`] | the header and one chunk |
//! | Parquet | [`ParquetSource`] | the footer, and a row group of 64 MiB or what its open pages take; more, in scratch files |
//! | table in memory | [`TableSource`] | shares the table's |
//! | several of these | [`JoinedSource`] | that of one at a time |
//! | JSON file | [`read_json`], then [`IpcSource`] | one batch, and disk |
//! | one-shot stream | [`spill`], then [`IpcSource`] | one batch, and disk |
//!
//! [`open`] recognises a file by its content. Chunks have at most 65,536 rows and (but for a
//! single row) 4 million cells, so no reader needs more for wide tables than for narrow ones.
//!
//! Beyond the Arrow types, three keys of field metadata carry what other formats know:
//! [`ROLE`] marks the labels of a multi-label set, [`HIERARCHY`] keeps the text of a CLUS
//! `hierarchical` attribute, [`INTEGERS`] tells that numbers may be integers.

mod arff;
mod checked;
mod chunking;
mod dictionary;
mod file;
mod ipc;
mod joined;
mod json;
mod labels;
mod matrix;
mod memory;
mod open;
mod parquet;
mod sample;
mod sparse;
mod spill;
mod valid;
mod write;

pub use arff::ArffSource;
pub use checked::is_decoding;
pub use chunking::cut;
pub use ferrank_arff::HIERARCHY;
pub use ipc::{IpcSource, is_sealed, write_sealed};
pub use joined::JoinedSource;
pub use json::read_json;
pub use matrix::{Matrix, MatrixColumns};
pub use memory::TableSource;
pub use open::open;
pub use parquet::ParquetSource;
pub use sample::{SampledSource, count_rows};
pub use sparse::SparseColumns;
pub use spill::spill;
pub use write::unfinished;
pub use write::write_ipc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use ferrank_runtime::error::{Error, Result};

/// Field metadata key; its value [`LABEL`] marks a label of a multi-label set.
pub const ROLE: &str = "ferrank:role";
/// Value of [`ROLE`] for a label.
pub const LABEL: &str = "label";
/// Field metadata key of a column that is read as floating-point numbers and begins with integers, as in a CSV file.
pub const INTEGERS: &str = "ferrank:integers";
/// Iterator over the record batches of one pass.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::source::{ChunkSource, Chunks, TableSource};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let mut chunks: Chunks<'_> = table.chunks()?;
/// assert_eq!(chunks.next().unwrap()?.num_rows(), 60);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub type Chunks<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

/// Rows that can be read again.
///
/// Every pass yields the same rows in the same order; the grouping into batches is free to differ
/// from source to source and never changes a result.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use arrow_schema::SchemaRef;
/// use ferrank_data::Result;
/// use ferrank_data::source::{ChunkSource, Chunks};
///
/// /// The same batch again and again.
/// struct Repeated(RecordBatch, usize);
///
/// impl ChunkSource for Repeated {
///     fn schema(&self) -> SchemaRef {
///         self.0.schema()
///     }
///
///     fn chunks(&self) -> Result<Chunks<'_>> {
///         Ok(Box::new((0..self.1).map(|_| Ok(self.0.clone()))))
///     }
///
///     fn name(&self) -> &str {
///         "repeated"
///     }
/// }
/// assert_eq!(Repeated(batch, 3).chunks()?.count(), 3);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub trait ChunkSource: Send + Sync {
    /// What the columns are. Every batch has this schema.
    fn schema(&self) -> SchemaRef;
    /// A new pass from the first row.
    fn chunks(&self) -> Result<Chunks<'_>>;
    /// As [`ChunkSource::chunks`], with the columns at these positions alone, which ascend.
    fn chunks_of(&self, columns: &[usize]) -> Result<Chunks<'_>> {
        let columns = columns.to_vec();
        Ok(Box::new(self.chunks()?.map(move |chunk| {
            chunk?.project(&columns).map_err(|error| Error::Data(format!("{}: {error}", self.name())))
        })))
    }
    /// How messages call this source: a path, or a word such as `table`.
    fn name(&self) -> &str;
    /// Number of rows where it is known without reading them.
    fn rows_hint(&self) -> Option<u64> {
        None
    }
    /// The columns that are kept as a matrix of numbers in memory, if there are some. They are in the chunks, too.
    fn matrix(&self) -> Option<MatrixColumns<'_>> {
        None
    }
    /// The columns that are kept as compressed sparse rows, if there are some. They are in the chunks, too.
    fn sparse(&self) -> Result<Option<SparseColumns<'_>>> {
        Ok(None)
    }
}
