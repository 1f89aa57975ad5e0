//! A share of the rows of a source.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use ferrank_data::source::{ChunkSource, Chunks, TableSource};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::random::{Purpose, mix};

/// A sample of at most this many bytes, at eight a value, is read once and held.
const HELD_BYTES: u64 = 256 << 20;

/// The rows whose hash lies below a limit: each with the same probability, those of a smaller share among
/// those of a larger one.
pub(super) struct Sampled<'a> {
    source: &'a dyn ChunkSource,
    seed: u64,
    limit: u64,
    expected: u64,
}

impl<'a> Sampled<'a> {
    /// About `rows` of the `of` rows of `source`.
    pub(super) fn new(source: &'a dyn ChunkSource, seed: u64, rows: u64, of: u64) -> Self {
        Sampled { source, seed, limit: (rows as f64 / of as f64 * 2f64.powi(64)) as u64, expected: rows }
    }

    /// The sample in memory, or itself where it is too large.
    ///
    /// # Errors
    /// The errors of reading.
    pub(super) fn hold(self, monitor: &Monitor) -> Result<Box<dyn ChunkSource + 'a>> {
        let schema = self.schema();
        if self.expected.saturating_mul(8 * schema.fields().len() as u64) > HELD_BYTES {
            return Ok(Box::new(self));
        }
        monitor.enter(Phase::Sampling, self.expected);
        let mut batches = Vec::new();
        for batch in self.chunks()? {
            monitor.check()?;
            let batch = batch?;
            monitor.advance(batch.num_rows() as u64);
            batches.push(batch);
        }
        Ok(Box::new(TableSource::new(self.name(), schema, batches)?))
    }

    fn cut(&self, first: u64, batch: &RecordBatch) -> Result<RecordBatch> {
        let drawn = |row: &u32| mix([self.seed, Purpose::Sample as u64, first + u64::from(*row)]) < self.limit;
        let rows: UInt32Array = (0..batch.num_rows() as u32).filter(drawn).collect();
        take_record_batch(batch, &rows).map_err(|e| Error::Data(format!("{}: {e}", self.name())))
    }
}

impl ChunkSource for Sampled<'_> {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let mut first = 0;
        let parts = self.source.chunks()?.map(move |batch| {
            let batch = batch?;
            let part = self.cut(first, &batch);
            first += batch.num_rows() as u64;
            part
        });
        Ok(Box::new(parts.filter(|part| part.as_ref().map_or(true, |part| part.num_rows() > 0))))
    }

    fn name(&self) -> &str {
        self.source.name()
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.expected)
    }
}

/// The number of rows of `source`, by reading it where it cannot be known otherwise.
pub(super) fn count_rows(source: &dyn ChunkSource, monitor: &Monitor) -> Result<u64> {
    if let Some(rows) = source.rows_hint() {
        return Ok(rows);
    }
    monitor.enter(Phase::Sampling, 0);
    let mut rows = 0;
    for batch in source.chunks()? {
        monitor.check()?;
        rows += batch?.num_rows() as u64;
    }
    Ok(rows)
}
