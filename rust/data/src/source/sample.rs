//! A sample of the rows of a source.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use super::{ChunkSource, Chunks, TableSource};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::random::{Purpose, mix};

/// A sample of at most this many bytes, at eight a value, is read once and held.
const HELD_BYTES: u64 = 256 << 20;
/// Hashes are counted by their leading bits before the few that decide are sorted.
const LEADING_BITS: u32 = 16;

/// The rows with the smallest hashes of their numbers, so that rows of a smaller sample are among those of a larger one,
/// whatever the chunks.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{Float64Array, RecordBatch};
/// use ferrank_data::source::{ChunkSource, SampledSource, TableSource};
///
/// let column = Arc::new((0..100).map(f64::from).collect::<Float64Array>());
/// let batch = RecordBatch::try_from_iter([("x", column as _)]).unwrap();
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let sample = SampledSource::new(&table, 0, 30, 100);
/// assert_eq!(sample.chunks()?.map(|chunk| chunk.unwrap().num_rows()).sum::<usize>(), 30);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub struct SampledSource<'a> {
    source: &'a dyn ChunkSource,
    seed: u64,
    /// The greatest hash in the sample; `None`: no row is.
    greatest: Option<u64>,
    rows: u64,
}

impl<'a> SampledSource<'a> {
    /// `rows` of the `of` rows of `source`, or all if these are fewer. Hashes of different rows are equal with a chance of
    /// 2⁻⁶⁴; both rows are then taken.
    pub fn new(source: &'a dyn ChunkSource, seed: u64, rows: u64, of: u64) -> Self {
        let rows = rows.min(of);
        SampledSource { source, seed, greatest: greatest(seed, rows, of), rows }
    }

    /// The sample in memory, or itself where it is too large for a quarter of `memory` bytes.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn hold(self, memory: Option<u64>, monitor: &Monitor) -> Result<Box<dyn ChunkSource + 'a>> {
        Ok(match self.read(memory, monitor)? {
            Some(held) => Box::new(held),
            None => Box::new(self),
        })
    }

    /// The sample in memory; `None` where it is too large for a quarter of `memory` bytes.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn read(&self, memory: Option<u64>, monitor: &Monitor) -> Result<Option<TableSource>> {
        let schema = self.schema();
        if self.rows.saturating_mul(8 * schema.fields().len() as u64)
            > memory.map_or(HELD_BYTES, |memory| HELD_BYTES.min(memory / 4))
        {
            return Ok(None);
        }
        monitor.enter(Phase::Sampling, self.rows);
        let mut batches = Vec::new();
        for batch in self.chunks()? {
            monitor.check()?;
            let batch = batch?;
            monitor.advance(batch.num_rows() as u64);
            batches.push(batch);
        }
        TableSource::new(self.name(), schema, batches).map(Some)
    }

    fn cut(&self, first: u64, batch: &RecordBatch) -> Result<RecordBatch> {
        let drawn = |row: &u32| Some(hash(self.seed, first + u64::from(*row))) <= self.greatest;
        let rows: UInt32Array = (0..batch.num_rows() as u32).filter(drawn).collect();
        take_record_batch(batch, &rows).map_err(|e| Error::Data(format!("{}: {e}", self.name())))
    }
}

fn hash(seed: u64, row: u64) -> u64 {
    mix([seed, Purpose::Sample as u64, row])
}

/// The `rows`-th smallest of the hashes of `of` rows.
fn greatest(seed: u64, rows: u64, of: u64) -> Option<u64> {
    let leading = |hash: u64| (hash >> (u64::BITS - LEADING_BITS)) as usize;
    let mut counts = vec![0u64; 1 << LEADING_BITS];
    (0..of).for_each(|row| counts[leading(hash(seed, row))] += 1);
    let mut left = rows.checked_sub(1)?;
    let deciding = counts.iter().position(|&count| {
        let here = left < count;
        left -= if here { 0 } else { count };
        here
    })?;
    let mut hashes: Vec<u64> = (0..of).map(|row| hash(seed, row)).filter(|&hash| leading(hash) == deciding).collect();
    Some(*hashes.select_nth_unstable(left as usize).1)
}

impl ChunkSource for SampledSource<'_> {
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
        Some(self.rows)
    }
}

/// The number of rows of `source`, by reading it where it cannot be known otherwise.
///
/// # Errors
/// The errors of reading.
pub fn count_rows(source: &dyn ChunkSource, monitor: &Monitor) -> Result<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_hashes_are_below_the_limit_as_rows_are_asked_for() {
        for (rows, of) in [(1, 1), (1, 1_000), (999, 1_000), (1_000, 1_000), (30_000, 100_000)] {
            let greatest = greatest(5, rows, of).unwrap();
            let drawn = (0..of).filter(|&row| hash(5, row) <= greatest).count() as u64;
            assert_eq!(drawn, rows, "{rows} of {of}");
        }
        assert_eq!([greatest(5, 0, 10), greatest(5, 0, 0)], [None; 2]);
    }
}
