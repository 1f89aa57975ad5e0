//! A data set in parts whose codes stay where they are: no machine holds them all.
//!
//! Every machine knows the targets and weights of all rows. One grows trees ([`Apart::accumulate`]); the parts add up the
//! sums of their rows for it, and hand over the rows of nodes that fit into its memory. The trees have the bits of one
//! machine. [`obstacle`] says what cannot be grown so.

use arrow_buffer::Buffer;

use super::external;
pub use super::external::access::Parts;
use super::external::parts::Part;
use super::model_error::RowSample;
use super::params::ForestParams;
use super::prepared::{Prepared, Resources};
use super::scores::oob_needs;
use super::space::Space;
use crate::context::GrowContext;
use ferrank_data::intake::View;
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Task};
use ferrank_data::store::{Chunk, CodeStore, Codebook, Keep, Part as Coded};
use ferrank_ranking::RunOptions;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;

/// Why trees cannot be grown over parts that keep their codes; `None` if they can.
pub fn obstacle(problem: &Problem, params: &ForestParams) -> Option<&'static str> {
    if oob_needs(&params.scores).is_some() {
        Some("scores: scores of out-of-bag rows read the codes of all rows; genie3, symbolic and coverage do not")
    } else if params.shadows {
        Some("shadows: they are drawn from the codes of all rows")
    } else if params.per_target {
        Some("per_target: each target has rows of its own")
    } else if params.clusters(problem.task) {
        Some("supervision: the values of features are components")
    } else if problem.task == Task::Hierarchical {
        Some("labels: label sets stay with the codes")
    } else {
        None
    }
}

/// The targets and weights of a part, whose codes are in `part`, for [`Apart::new`].
///
/// # Errors
/// [`Error::Data`] if the part is damaged or of another data set.
pub fn answers(view: View<'_>, params: &ForestParams, profile: &Profile, part: Buffer) -> Result<Vec<u8>> {
    let problem = view.problem()?;
    let book = Codebook::new(profile, &problem, params.clusters(problem.task), "the data set")?;
    let mut bytes = Vec::new();
    Coded::read(&book, part)?.write_without_codes(&book, &mut bytes)?;
    Ok(bytes)
}

/// What every machine knows of a data set in parts.
#[derive(Debug)]
pub struct Apart {
    identity: Identity,
    params: ForestParams,
    profile: Profile,
    prepared: Prepared,
    space: Space,
}

impl Apart {
    /// A data set with the columns of `view`, the `profile` of all rows, and the `answers` of all parts, in order.
    ///
    /// # Errors
    /// An error that describes the invalid setting or role, an [`obstacle`]; [`Error::Data`] if a part is damaged.
    pub fn new(view: View<'_>, params: &ForestParams, profile: Profile, answers: Vec<Buffer>) -> Result<Self> {
        let problem = view.problem()?;
        if let Some(obstacle) = obstacle(&problem, params) {
            return Err(Error::Setting(format!("{obstacle}; use larger workers")));
        }
        let rows = profile.counts.taking_part("the data set", params.treatment())?;
        params.validate(&DataShape::new(&problem).with_rows(rows))?;
        let identity = Identity::new(params.clone(), &problem, &profile);
        let book = Codebook::new(&profile, &problem, false, "the data set")?;
        let parts = answers.into_iter().map(|part| Coded::read_without_codes(&book, part)).collect::<Result<_>>()?;
        let store = CodeStore::without_codes(book, parts)?;
        if store.rows as u64 != rows {
            return Err(Error::Data(format!("the parts have {} rows, the profile {rows}", store.rows)));
        }
        let n_targets = problem.targets.len();
        let prepared = Prepared::new(params, problem, store, false, None)?;
        let space = prepared.space(&(0..n_targets).collect::<Vec<usize>>(), params)?;
        Ok(Apart { identity, params: params.clone(), profile, prepared, space })
    }

    /// Grows the trees that `options` request over the rows of `parts`.
    ///
    /// # Errors
    /// An error that describes an invalid option; too little memory; a part that does not answer;
    /// [`Error::Interrupted`] on request of `monitor`.
    pub fn accumulate(&self, options: &RunOptions<'_>, parts: &dyn Parts, monitor: &Monitor) -> Result<Accumulator> {
        pool(options.threads)?.install(|| {
            let requested = options.keys(self.identity.n_keys())?;
            let checkpoint = Checkpoint::open(self.identity.clone(), options.resume, monitor)?;
            let trees = checkpoint.missing(requested);
            monitor.enter(Phase::Growing, trees.len() as u64);
            let Apart { prepared: Prepared { store, problem, .. }, space, params, .. } = self;
            let context = GrowContext { store, space, params, monitor };
            let subset: Vec<usize> = (0..problem.targets.len()).collect();
            let sample =
                RowSample::read(context, &subset, false, |rows| chunk(store, rows.len(), &parts.codes(rows)?))?;
            let budget = Resources::new(options).budget;
            external::grow_over(context, &budget, parts, sample.as_ref(), &trees, &|tree, vectors| {
                checkpoint.add(tree, vectors)
            })?;
            checkpoint.close()
        })
    }

    /// Calls `each` with the part whose codes are in `codes`, and whose first row is number `first`.
    fn with_part<T: Send>(
        &self,
        (codes, first): (Buffer, usize),
        threads: usize,
        monitor: &Monitor,
        each: impl FnOnce(&Part<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let Apart { prepared, space, params, profile, .. } = self;
        pool(threads)?.install(|| {
            let book = Codebook::new(profile, &prepared.problem, false, "the data set")?;
            let part = Coded::read(&book, codes)?;
            let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
            check(
                first + store.rows <= prepared.store.rows,
                format!("a part of {} rows from {first} on, of {}", store.rows, prepared.store.rows),
            )?;
            let whole = GrowContext { store: &prepared.store, space, params, monitor };
            each(&Part { context: GrowContext { store: &store, ..whole }, bags: whole.bags(), first })
        })
    }

    /// The sums that `request` asks for, of a part: its codes, and the number of its first row.
    ///
    /// # Errors
    /// Damaged bytes; [`Error::Interrupted`].
    pub fn sums(&self, part: (Buffer, usize), request: &[u8], threads: usize, monitor: &Monitor) -> Result<Vec<f64>> {
        self.with_part(part, threads, monitor, |part| part.sums(request))
    }

    /// The rows of each bucket that `request` asks for, of a part.
    ///
    /// # Errors
    /// As for [`Apart::sums`], and [`Error::File`] if the disk is full.
    pub fn collect(
        &self,
        part: (Buffer, usize),
        request: &[u8],
        options: &RunOptions<'_>,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<u8>>> {
        let scratch = Resources::new(options).scratch;
        self.with_part(part, options.threads, monitor, |part| part.collect(request, &scratch))
    }

    /// The codes of those of `rows`, which ascend, that are in a part.
    ///
    /// # Errors
    /// As for [`Apart::sums`].
    pub fn codes(&self, part: (Buffer, usize), rows: &[usize], monitor: &Monitor) -> Result<Vec<u8>> {
        self.with_part(part, 1, monitor, |part| Ok(part.codes(rows)))
    }
}

/// The codes of `n` rows, in bands like those of `store`, from `bytes`, row by row.
fn chunk(store: &CodeStore, n: usize, bytes: &[u8]) -> Result<Chunk> {
    let row_bytes = store.row_bytes();
    if bytes.len() != n * row_bytes {
        return Err(Error::Data(format!("{} bytes of codes for {n} rows of {row_bytes}", bytes.len())));
    }
    let mut chunk = Chunk { rows: n, ..Chunk::default() };
    chunk.narrow.resize(store.chunks[0].narrow.len(), n);
    chunk.wide.resize(store.chunks[0].wide.len(), n);
    let mut start = 0;
    for cells in chunk.narrow.iter_mut() {
        start = read(cells, bytes, start, row_bytes);
    }
    for cells in chunk.wide.iter_mut() {
        start = read(cells, bytes, start, row_bytes);
    }
    Ok(chunk)
}

/// Reads the cell at `start` of each row into `cells`. Returns the start of the next.
fn read<T: bytemuck::Pod>(cells: &mut [T], bytes: &[u8], start: usize, row_bytes: usize) -> usize {
    for (row, cell) in cells.iter_mut().enumerate() {
        *cell = bytemuck::pod_read_unaligned(&bytes[row * row_bytes + start..][..size_of::<T>()]);
    }
    start + size_of::<T>()
}
