//! A sample of all rows so far, drawn by the hashes of their numbers.
//!
//! Each row has a key that follows from its number; the rows whose keys are lowest stay. Without forgetting, the
//! keys are alike and the sample is uniform, without replacement. Else it is one in which a row is drawn by its
//! weight, 2^(number / half-life): the keys are those of Efraimidis and Spirakis (2006), ln(−ln u) − ln(weight) in
//! place of u^(1 / weight), whose order they reverse and which would underflow.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::rows::{copy, held, join};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, mix};

/// How rows are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) seed: u64,
    /// By how much the logarithm of a row's weight exceeds that of the row before it.
    pub(super) rate: f64,
    /// Most rows.
    pub(super) capacity: usize,
}

impl Draw {
    fn key(&self, number: u64) -> f64 {
        let hash = mix([self.seed, Purpose::Reservoir as u64, number]);
        let uniform = ((hash >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
        (-uniform.ln()).ln() - number as f64 * self.rate
    }

    /// The numbers of the rows that stay, of the ascending `numbers`.
    fn keep(&self, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut keys: Vec<(f64, u64)> = numbers.map(|number| (self.key(number), number)).collect();
        if self.capacity < keys.len() {
            keys.select_nth_unstable_by(self.capacity, |(a, m), (b, n)| a.total_cmp(b).then(m.cmp(n)));
            keys.truncate(self.capacity);
        }
        let mut kept: Vec<u64> = keys.into_iter().map(|(_, number)| number).collect();
        kept.sort_unstable();
        kept
    }
}

/// The rows that stayed.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservoir {
    /// Of the rows, ascending.
    pub(super) numbers: Vec<u64>,
    rows: Option<RecordBatch>,
}

impl Reservoir {
    pub(super) fn new(numbers: Vec<u64>, rows: Option<RecordBatch>) -> Self {
        Reservoir { numbers, rows }
    }

    /// The rows, in the order of their numbers; `None`: there are none.
    pub(super) fn rows(&self) -> Option<&RecordBatch> {
        self.rows.as_ref()
    }

    /// Draws anew from the rows that stayed and those of `block`, which are numbered from `first` on.
    pub(super) fn take_in(&mut self, block: &[RecordBatch], first: u64, draw: Draw) -> Result<()> {
        let n_rows: usize = block.iter().map(RecordBatch::num_rows).sum();
        let kept = draw.keep(self.numbers.iter().copied().chain(first..first + n_rows as u64));
        let (old, new) = kept.split_at(kept.partition_point(|&number| number < first));
        let mut parts = Vec::new();
        if let Some(rows) = &self.rows {
            let place = |number: &u64| self.numbers.partition_point(|other| other < number) as u32;
            parts.push(copy(rows, old.iter().map(place))?);
        }
        let mut start = first;
        for batch in block {
            let end = start + batch.num_rows() as u64;
            let own = new.iter().filter(|number| (start..end).contains(number));
            parts.push(copy(batch, own.map(|number| (number - start) as u32))?);
            start = end;
        }
        self.rows = if kept.is_empty() { None } else { Some(join(&parts)?) };
        self.numbers = kept;
        Ok(())
    }

    /// Brings the rows to `schema`.
    pub(super) fn hold_as(&mut self, schema: &SchemaRef) -> Result<()> {
        self.rows = self.rows.as_ref().map(|rows| held(rows, schema)).transpose()?;
        Ok(())
    }
}
