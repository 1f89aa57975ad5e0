//! How large a chunk is, and batches made to fit.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

const ROWS: usize = sized(65_536, 16);
const CELLS: usize = 4 << 20;

/// How much is read at a time: `usual`, and `fuzzed` under `cargo fuzz`, whose small files would never reach it.
pub(super) const fn sized(usual: usize, fuzzed: usize) -> usize {
    if cfg!(fuzzing) { fuzzed } else { usual }
}

/// Most rows of a chunk with so many columns: 65,536, and no more than 4 million cells.
pub(super) fn rows_per_chunk(columns: usize) -> usize {
    ROWS.min(CELLS / columns.max(1)).max(1)
}

/// `batch`, which is held in memory, in pieces of the size of a chunk; one of few rows is not cut.
pub(super) fn pieces(batch: RecordBatch) -> impl Iterator<Item = RecordBatch> {
    /// A slice of a column of categories costs as much as a hundred of its values.
    const FEW_ROWS: usize = sized(1_024, 1);
    let size = rows_per_chunk(batch.num_columns()).max(FEW_ROWS);
    cut(batch, size)
}

/// `batch` in pieces of at most `size` rows, sharing its memory. A batch without rows has none.
pub fn cut(batch: RecordBatch, size: usize) -> impl Iterator<Item = RecordBatch> {
    let n_rows = batch.num_rows();
    // A slice costs an allocation a column.
    (0..n_rows).step_by(size).map(move |start| match size < n_rows {
        true => batch.slice(start, size.min(n_rows - start)),
        false => batch.clone(),
    })
}

/// `batch` under `schema`, whose names and types it must have; only metadata may differ.
pub(super) fn conform(batch: RecordBatch, schema: &SchemaRef) -> Option<RecordBatch> {
    let have = batch.schema();
    if Arc::ptr_eq(&have, schema) || have == *schema {
        return Some(batch);
    }
    let same = have.fields().len() == schema.fields().len()
        && have
            .fields()
            .iter()
            .zip(schema.fields())
            .all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
    same.then(|| RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).ok()).flatten()
}
