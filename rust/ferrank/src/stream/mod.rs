//! Rankings of rows that come in batches and are seen once.
//!
//! ```text
//! batch ──▶ block ──▶ rows of block and reservoir ──▶ contributions ──▶ condensed ──▶ ranking
//!             └────▶ reservoir (for the next block)   (as of any rows)
//! ```
//!
//! Rows that take part are numbered in the order of arrival, and `block_rows` consecutive rows are a block. Each
//! complete block is ranked together with the reservoir, a uniform sample of all earlier rows. So importances do not
//! degrade if the rows are sorted, for example by class. The contributions are added up in a bounded number of parts,
//! and the block is merged into the reservoir. The sample depends on the numbers of the rows alone. Therefore the result
//! does not depend on the division into batches, and memory is bounded by a block and a reservoir.
//!
//! With a half-life of h rows, the probability of a row to be in the reservoir and the weight of a contribution are
//! halved by each h later rows.
//!
//! | module | what |
//! |---|---|
//! | `rows` | copies of rows under one schema, whatever containers they came in |
//! | `reservoir` | the sample |
//! | `ipc` | a stream as bytes |
//!
//! The first block is ranked with the bits of a run over its rows; until it is complete, the rows there are, too.

mod ipc;
mod reservoir;
mod rows;
#[cfg(test)]
mod tests;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::run::accumulate;
use crate::settings::Settings;
use ferrank_data::intake::Intake;
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::{ChunkSource, TableSource};
use ferrank_ranking::{Accumulator, Condensed, DataShape, Ranking, RunOptions};
use ferrank_runtime::budget::{Budget, give_back};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::random::{Purpose, mix};
use ferrank_runtime::threads::pool;
use ferrank_runtime::with_methods;
use reservoir::{Draw, Reservoir};
use rows::{Rows, held, plain, united};

/// The division of a stream into blocks, and how fast earlier rows lose weight.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::stream::{Stream, StreamParams};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let params = StreamParams::default().with_block_rows(25).with_half_life(Some(100.0));
/// let stream = Stream::new(Settings::from(ReliefParams::default()), roles, params)?;
/// let stream = stream.push(&table, &RunOptions::default(), &Monitor::default())?;
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamParams {
    /// Rows that are ranked together, when so many have come.
    pub block_rows: u64,
    /// Rows of the reservoir, which are ranked with those of each block.
    pub reservoir_rows: u64,
    /// Rows after which a row counts half as much; `None`: all count the same.
    pub half_life: Option<f64>,
}

impl Default for StreamParams {
    fn default() -> Self {
        StreamParams { block_rows: 20_000, reservoir_rows: 20_000, half_life: None }
    }
}

impl StreamParams {
    with_methods! {
        with_block_rows => block_rows: u64;
        with_reservoir_rows => reservoir_rows: u64;
        with_half_life => half_life: Option<f64>;
    }

    fn validate(&self) -> Result<()> {
        check(self.block_rows >= 1, "block_rows: 0; use at least 1")?;
        let Some(half_life) = self.half_life else { return Ok(()) };
        check(
            half_life.is_finite() && half_life >= self.block_rows as f64,
            format!(
                "half_life: {half_life} rows; the {} rows of a block count the same, so use at least as many, or smaller \
                 blocks (block_rows)",
                self.block_rows
            ),
        )
    }

    /// How rows come to be in the reservoir.
    fn draw(&self, seed: u64) -> Draw {
        let rate = self.half_life.map_or(0.0, |half_life| std::f64::consts::LN_2 / half_life);
        // With a rate of forgetting, all rows together count as much as 1 / rate new ones, which is the most
        // that a reservoir can hold without rows being in it for longer than they should (Aggarwal 2006).
        let most = self.half_life.map_or(u64::MAX, |_| (1.0 / rate).ceil() as u64);
        Draw { seed, rate, capacity: self.reservoir_rows.min(most) as usize }
    }

    /// How much a contribution counts when a block later, of what it did.
    fn fade(&self) -> f64 {
        self.half_life.map_or(1.0, |half_life| (-(self.block_rows as f64) / half_life).exp2())
    }
}

/// What is kept of the rows so far.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::stream::{Stream, StreamParams};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let stream = Stream::new(Settings::from(ReliefParams::default()), roles, StreamParams::default().with_block_rows(25))?;
/// let (options, monitor) = (RunOptions::default(), Monitor::default());
/// let stream = stream.push(&table, &options, &monitor)?.push(&table, &options, &monitor)?;
/// // Of 120 rows, 100 are in complete blocks.
/// assert_eq!(stream.ranking(&options, &monitor)?.n_rows, 100);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    settings: Settings,
    /// With the task that the first rows made.
    roles: Roles,
    params: StreamParams,
    /// How messages call the rows.
    name: String,
    /// `None` before the first row.
    schema: Option<SchemaRef>,
    /// Of the block that is not complete.
    block: Rows,
    reservoir: Reservoir,
    /// Of complete blocks.
    condensed: Option<Condensed>,
    n_blocks: u64,
    n_unlabelled: u64,
}

impl Stream {
    /// No rows yet, of columns with the roles `roles`.
    ///
    /// # Errors
    /// [`Error::Setting`] for `params` that make no sense.
    pub fn new(settings: Settings, roles: Roles, params: StreamParams) -> Result<Self> {
        params.validate()?;
        Ok(Stream {
            settings,
            roles,
            params,
            name: "batch".into(),
            schema: None,
            block: Rows::default(),
            reservoir: Reservoir::default(),
            condensed: None,
            n_blocks: 0,
            n_unlabelled: 0,
        })
    }

    /// The stream with the rows of `batch`, which are copied. Of `options`, threads, memory and scratch count.
    ///
    /// # Errors
    /// An invalid setting, column or value, or that the columns are not those of the batches
    /// before; [`Error::Interrupted`] when `monitor` requests a stop.
    pub fn push(&self, batch: &dyn ChunkSource, options: &RunOptions<'_>, monitor: &Monitor) -> Result<Stream> {
        let problem = Problem::resolve(&batch.schema(), &self.roles, batch.name())?;
        self.settings.ranker().validate_stream(&DataShape::new(&problem))?;
        self.settings.ranker().validate_features(&problem.features)?;
        let intake =
            Intake::new(batch, &problem, self.settings.ranker().unlabelled(), monitor).with_memory(options.memory);
        // It looks at every value, so that one that will not do is refused with its batch.
        let counts = pool(options.threads)?.install(|| Profile::new(&intake, 0))?.counts;
        counts.labelled(batch.name(), intake.unlabelled)?;
        let mut next = Stream { n_unlabelled: self.n_unlabelled + counts.unlabelled, ..self.clone() };
        let schema = match &self.schema {
            None => plain(&batch.schema()),
            Some(schema) => united(schema, &plain(&batch.schema()), batch.name())?,
        };
        if counts.kept == 0 {
            return Ok(next);
        }
        next.roles.task = Some(problem.task);
        next.name = batch.name().to_string();
        next.hold_as(schema)?;
        intake.pass(Phase::Coding, |rows| next.take(rows, options, monitor))?;
        if next.n_blocks > self.n_blocks {
            // Until the next block is complete there is no use for what this one took.
            give_back();
        }
        Ok(next)
    }

    /// The ranking by all complete blocks; by the rows there are, where there is none yet.
    ///
    /// # Errors
    /// The errors of a run over these rows; [`Error::Data`] if there are none.
    pub fn ranking(&self, options: &RunOptions<'_>, monitor: &Monitor) -> Result<Ranking> {
        let (mut ranking, n_rows) = match &self.condensed {
            Some(condensed) => (condensed.ranking()?, self.n_blocks * self.params.block_rows),
            None => (self.run(options, monitor)?.ranking()?, self.block.len() as u64),
        };
        ranking.n_rows = n_rows;
        ranking.n_unlabelled = self.n_unlabelled;
        Ok(ranking)
    }

    /// Number of complete blocks, and of rows without a target.
    pub fn counts(&self) -> (u64, u64) {
        (self.n_blocks, self.n_unlabelled)
    }

    /// Brings all rows held to `schema`.
    fn hold_as(&mut self, schema: SchemaRef) -> Result<()> {
        if self.schema.as_ref().is_some_and(|own| *own != schema) {
            self.block.hold_as(&schema)?;
            self.reservoir.hold_as(&schema)?;
        }
        self.schema = Some(schema);
        Ok(())
    }

    /// Takes rows that take part, and ranks the blocks that they complete.
    fn take(&mut self, batch: &RecordBatch, options: &RunOptions<'_>, monitor: &Monitor) -> Result<()> {
        let Some(schema) = self.schema.clone() else { return Ok(()) };
        let batch = held(batch, &schema)?;
        let waiting = batch.slice(0, batch.num_rows().min(self.params.block_rows as usize));
        let bytes = waiting.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum();
        Budget::new(options.memory).check(bytes, "rows that wait for their block; fewer block_rows need less")?;
        let mut start = 0;
        while start < batch.num_rows() {
            let n_free = self.params.block_rows as usize - self.block.len();
            let end = batch.num_rows().min(start + n_free);
            self.block.append(&batch, start..end)?;
            start = end;
            if self.block.len() as u64 == self.params.block_rows {
                self.finish_block(options, monitor)?;
            }
        }
        Ok(())
    }

    fn finish_block(&mut self, options: &RunOptions<'_>, monitor: &Monitor) -> Result<()> {
        let run = self.run(options, monitor)?;
        let condensed = self.condensed.get_or_insert_with(|| Condensed::new(run.identity().clone()));
        condensed.add(run, self.params.fade());
        let draw = self.params.draw(self.settings.ranker().seed());
        self.reservoir.take_in(self.block.batches(), self.n_blocks * self.params.block_rows, draw)?;
        self.block = Rows::default();
        self.n_blocks += 1;
        Ok(())
    }

    /// The seed of the block; that of the first one is the user's, so that it is ranked like a data set of its own.
    fn block_seed(&self) -> u64 {
        let seed = self.settings.ranker().seed();
        if self.n_blocks == 0 { seed } else { mix([seed, Purpose::Block as u64, self.n_blocks]) }
    }

    /// Contributions of the block, be it complete or not, and the reservoir.
    fn run(&self, options: &RunOptions<'_>, monitor: &Monitor) -> Result<Accumulator> {
        let nothing = || Error::Data(format!("{}: no row with a target and a weight above 0 has come yet", self.name));
        let schema = self.schema.clone().ok_or_else(nothing)?;
        let batches = self.reservoir.rows().into_iter().chain(self.block.batches()).cloned().collect();
        let source = TableSource::new(self.name.clone(), schema, batches)?;
        let settings = self.settings.for_block(self.block_seed(), source.rows_hint().unwrap_or(0));
        let RunOptions { threads, memory, temp_dir, .. } = *options;
        accumulate(
            &source,
            &self.roles,
            &settings,
            &RunOptions::default().with_threads(threads).with_memory(memory).with_temp_dir(temp_dir),
            monitor,
        )
    }
}
