//! A data set in parts whose codes stay where they are: no machine holds them all.
//!
//! Every machine knows the targets and weights of all rows. One grows trees ([`Apart::accumulate`]); the parts add up the
//! sums of their rows for it, and hand over the rows of nodes that fit into its memory, and the codes of the rows out of
//! the bag if scores read them. These go to a temporary file, and reach the scores subtree by subtree, so that no machine
//! holds a whole tree. The score `permutation` gives rows the values of rows in other parts, so that codes have to
//! move for it in any case.
//!
//! With shadows, each part keeps the codes of those too, for the trees that see the same shadows ([`rounds`]): it gets
//! them from all parts ([`Apart::spread`], [`Apart::shadows`]).
//!
//! The trees have the bits of one machine. [`obstacle`] says what cannot be grown so.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;

use super::exchange::Exchange;
use super::external;
pub use super::external::access::Parts;
use super::external::part::Part;
use super::external::parts::codes_of;
use super::model_error::RowSample;
use super::params::ForestParams;
use super::prepared::{Prepared, Resources};
use super::scores::oob_needs;
use super::shadows;
use super::space::Space;
use crate::context::GrowContext;
use ferrank_data::intake::{View, numbered};
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::{Problem, Task};
use ferrank_data::store::{CodeStore, Codebook, Keep, Part as Coded};
use ferrank_ranking::RunOptions;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;

/// Why trees cannot be grown over parts that keep their codes; `None` if they can.
pub fn obstacle(problem: &Problem, params: &ForestParams) -> Option<&'static str> {
    if params.per_target {
        Some("per_target: each target has rows of its own")
    } else if params.clusters(problem.task) {
        Some("supervision: the values of features are components")
    } else if problem.task == Task::Hierarchical {
        Some("labels: label sets stay with the codes")
    } else {
        None
    }
}

/// The trees of a run in ranges, each to be grown by calls of [`Apart::accumulate`] of their own.
///
/// # Errors
/// An error that describes the invalid role.
pub fn rounds(view: View<'_>, params: &ForestParams, profile: &Profile) -> Result<Vec<Range<u64>>> {
    let problem = view.problem()?;
    let identity = Identity::new(params.clone(), &problem, profile);
    Ok(shadows::rounds(identity.n_keys(), problem.features.len(), params))
}

/// Bytes that a machine needs for the trees of one thread, about.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_buffer::Buffer;
/// # use ferrank_data::{Result, intake::{Unlabelled, View}, profile::{Place, profile}};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_ranking::RunOptions;
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// use ferrank_forest::ForestParams;
/// use ferrank_forest::apart::{Needs, needs};
///
/// # let all = source(batch)?;
/// let params = ForestParams::default();
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let profile = profile(view, params.max_bins, Place::default(), 1, &monitor)?;
/// // Over parts, a machine has the targets of all rows and not their codes.
/// let Needs { in_memory, over_parts } = needs(view, &params, &profile)?;
/// assert!(over_parts < in_memory);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Where it has the codes of all rows.
    pub in_memory: f64,
    /// Where parts keep them.
    pub over_parts: f64,
}

/// What a machine needs to grow trees over the rows of `profile`.
///
/// # Errors
/// An error that describes the invalid role.
pub fn needs(view: View<'_>, params: &ForestParams, profile: &Profile) -> Result<Needs> {
    let (problem, rows) = (view.problem()?, profile.counts.kept);
    let book = Codebook::new(profile, &problem, params.clusters(problem.task), "the data set")?;
    let of_target = |column: &ColumnProfile| match column {
        ColumnProfile::Numeric(_) => size_of::<f64>(),
        ColumnProfile::Nominal(_) => size_of::<u16>(),
        _ => 0,
    };
    let weight = if problem.weight.is_some() { size_of::<f64>() } else { 0 };
    let row_bytes =
        profile.targets.iter().map(of_target).sum::<usize>() + weight + book.label_bytes() + book.group_bytes();
    Ok(Needs {
        in_memory: external::bytes_in_memory(rows, &book, params, 1),
        over_parts: external::bytes_over_parts(rows, (&profile.targets, row_bytes), &book, params),
    })
}

/// What every machine knows of a data set in parts.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
///
/// use arrow_buffer::Buffer;
/// use ferrank_data::Result;
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_forest::apart::{Apart, Needs, PartCodes, Parts, needs};
/// use ferrank_forest::{Coder, ForestParams, accumulate};
/// use ferrank_ranking::RunOptions;
/// use ferrank_runtime::monitor::Monitor;
///
/// /// Parts that are all on this machine: their codes, and first rows.
/// struct Local<'a> {
///     apart: &'a Apart,
///     parts: Vec<(Buffer, usize)>,
/// }
///
/// impl Local<'_> {
///     /// What `ask` finds in each part.
///     fn each<T>(&self, ask: impl Fn(PartCodes) -> Result<T>) -> Result<Vec<T>> {
///         let part = |(codes, first): &(Buffer, usize)| PartCodes { codes: codes.clone(), shadows: None, first: *first };
///         self.parts.iter().map(|own| ask(part(own))).collect()
///     }
/// }
///
/// impl Parts for Local<'_> {
///     fn sums(&self, request: &[u8]) -> Result<Vec<f64>> {
///         let sums = self.each(|part| self.apart.sums(part, request, 1, &Monitor::default()))?;
///         let add = |all: Vec<f64>, part: Vec<f64>| all.iter().zip(part).map(|(a, b)| a + b).collect();
///         Ok(sums.into_iter().reduce(add).unwrap_or_default())
///     }
///     fn collect(&self, request: &[u8], each: &mut dyn FnMut(&[&[u8]]) -> Result<()>) -> Result<()> {
///         let found = self.each(|part| self.apart.collect(part, request, 1, &Monitor::default()))?;
///         found.iter().try_for_each(|pieces| each(&pieces.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>()))
///     }
///     fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
///         let found = self.each(|part| self.apart.rows(part, request, 1, &Monitor::default()))?;
///         found.iter().try_for_each(|rows| each(rows))
///     }
/// }
///
/// let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (parts, all) = ([source(batch.slice(0, 30))?, source(batch.slice(30, 50))?], source(batch)?);
/// let (roles, monitor, options) = (Roles::new(Targets::Last(1)), Monitor::default(), RunOptions::default());
/// let params = ForestParams::default().with_n_estimators(3).with_shadows(false);
/// let view = View::new(&all, &roles, Unlabelled::Error);
/// let profile = profile(view, params.max_bins, Place::default(), 1, &monitor)?;
/// let Needs { in_memory, over_parts } = needs(view, &params, &profile)?;
/// assert!(in_memory > 0.0 && over_parts > 0.0);
///
/// let coder = Coder::new(view, &params, &profile)?;
/// let code = |part: &TableSource| coder.code(part, 1, &monitor).map(Buffer::from);
/// let codes = parts.iter().map(code).collect::<Result<Vec<Buffer>>>()?;
/// let answers = codes.iter().map(|codes| Coder::answers(codes.clone()).map(Buffer::from)).collect::<Result<_>>()?;
/// let apart = Apart::new(view, &params, &profile, answers)?;
/// let parts = codes.into_iter().zip([0, 30]).collect();
/// let local = Local { apart: &apart, parts };
/// let found = apart.accumulate(&options, &local, &monitor)?.ranking()?;
/// let whole = accumulate(&all, &roles, &params, &options, &monitor)?.ranking()?;
/// assert_eq!(found.scores[0].importance, whole.scores[0].importance);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Apart {
    identity: Identity,
    params: ForestParams,
    book: Codebook,
    prepared: Prepared,
    space: Space,
    /// A block of trees with the same shadows, and the row that the shadows of each row have their codes from.
    sources: Mutex<Option<(u64, Arc<Vec<u32>>)>>,
}

/// The codes of a part.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_buffer::Buffer;
/// # use ferrank_data::{Result, intake::{Unlabelled, View}, profile::{Place, profile}};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_ranking::RunOptions;
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// use ferrank_forest::apart::{Apart, PartCodes};
/// # use ferrank_forest::{Coder, ForestParams};
///
/// # let params = ForestParams::default().with_n_estimators(200).with_shadows(true);
/// # let (parts, all) = ([source(batch.slice(0, 30))?, source(batch.slice(30, 50))?], source(batch)?);
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let profile = profile(view, params.max_bins, Place::default(), 1, &monitor)?;
/// # let coder = Coder::new(view, &params, &profile)?;
/// # let codes = parts.iter().map(|part| coder.code(part, 1, &monitor).map(Buffer::from)).collect::<Result<Vec<_>>>()?;
/// # let answers = codes.iter().map(|codes| Coder::answers(codes.clone()).map(Buffer::from)).collect::<Result<_>>()?;
/// # let apart = Apart::new(view, &params, &profile, answers)?;
/// let firsts = [0, 30];
/// let part = |number: usize| PartCodes { codes: codes[number].clone(), shadows: None, first: firsts[number] };
/// // What both parts have for the shadows of part 1, in the round that starts with tree 0.
/// let pieces = [0, 1].map(|from| apart.spread(part(from), (0, &firsts, from), 1, &monitor));
/// let pieces = pieces.into_iter().map(|of_all| Ok(of_all?.swap_remove(1).into())).collect::<Result<Vec<Buffer>>>()?;
/// let shadows = apart.shadows(part(1), (0, &firsts, 1), &pieces, &monitor)?;
/// let part = PartCodes { shadows: Some(shadows.into()), ..part(1) };
/// assert!(part.shadows.is_some_and(|shadows| shadows.starts_with(b"ARROW1")));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct PartCodes {
    /// As [`Coder::code`](crate::Coder::code) returns them.
    pub codes: Buffer,
    /// Those of the shadows, as [`Apart::shadows`] returns them, if there are some.
    pub shadows: Option<Buffer>,
    /// The number of its first row.
    pub first: usize,
}

impl Apart {
    /// A data set with the columns of `view`, the `profile` of all rows, and the [`answers`](crate::Coder::answers) of all
    /// parts, in order.
    ///
    /// # Errors
    /// An error that describes the invalid setting or role, an [`obstacle`]; [`Error::Data`] if a part is damaged.
    pub fn new(view: View<'_>, params: &ForestParams, profile: &Profile, answers: Vec<Buffer>) -> Result<Self> {
        let problem = view.problem()?;
        if let Some(obstacle) = obstacle(&problem, params) {
            return Err(Error::Setting(format!("{obstacle}; use larger workers")));
        }
        let rows = profile.counts.taking_part("the data set", params.treatment())?;
        params.validate(&DataShape::new(&problem).with_rows(rows))?;
        if params.shadows || oob_needs(params).is_some() {
            numbered(rows, "the data set", "shadows, or a score of out-of-bag rows,")?;
        }
        let identity = Identity::new(params.clone(), &problem, profile);
        let book = Codebook::new(profile, &problem, false, "the data set")?;
        let parts = answers.into_iter().map(|part| Coded::read_without_codes(&book, part)).collect::<Result<_>>()?;
        let store = CodeStore::without_codes(book.clone(), parts)?;
        if store.rows as u64 != rows {
            return Err(Error::Data(format!("the parts have {} rows, the profile {rows}", store.rows)));
        }
        let n_targets = problem.targets.len();
        let prepared = Prepared::new(params, problem, store, false, None)?;
        let space = prepared.space(&(0..n_targets).collect::<Vec<usize>>(), params)?;
        Ok(Apart { identity, params: params.clone(), book, prepared, space, sources: Mutex::default() })
    }

    /// Grows the trees that `options` request, which are of one of the [`rounds`], over the rows of `parts`.
    ///
    /// # Errors
    /// An error that describes an invalid option; too little memory; a part that does not answer;
    /// [`Error::Interrupted`] on request of `monitor`.
    pub fn accumulate(&self, options: &RunOptions<'_>, parts: &dyn Parts, monitor: &Monitor) -> Result<Accumulator> {
        pool(options.threads)?.install(|| {
            let requested = options.keys(self.identity.n_keys())?;
            let checkpoint = Checkpoint::open(self.identity.clone(), options.resume, options.memory, monitor)?;
            let trees = checkpoint.missing(requested);
            monitor.enter(Phase::Growing, trees.len() as u64);
            let Apart { prepared: Prepared { store, problem, .. }, space, params, .. } = self;
            let doubled = params.shadows.then(|| store.with_shadow_codes(&store.chunks)).transpose()?;
            let store = doubled.as_ref().unwrap_or(store);
            let context = GrowContext { store, space, params, monitor };
            let subset: Vec<usize> = (0..problem.targets.len()).collect();
            let sample = RowSample::read(context, &subset, false, |rows| codes_of(store, rows, parts).map(Some))?;
            let Resources { budget, scratch } = Resources::new(options);
            let predicted = (&subset[..], sample.as_ref());
            external::grow_over(context, &budget, (parts, &scratch), predicted, &trees, &|tree, vectors| {
                checkpoint.add(tree, vectors)
            })?;
            checkpoint.close()
        })
    }

    /// Calls `each` with a part.
    fn with_part<T: Send>(
        &self,
        part: PartCodes,
        threads: usize,
        monitor: &Monitor,
        each: impl FnOnce(&Part<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let Apart { prepared, space, params, book, .. } = self;
        pool(threads)?.install(|| {
            let PartCodes { codes, shadows, first } = part;
            let coded = Coded::read(book, codes)?;
            let store = CodeStore::from_parts(book.clone(), vec![coded], Keep::Memory)?;
            check(
                first + store.rows <= prepared.store.rows,
                format!("a part of {} rows from {first} on, of {}", store.rows, prepared.store.rows),
            )?;
            let doubled = shadows.map(|codes| store.with_shadow_codes(&Coded::read_codes(book, codes)?)).transpose()?;
            let whole = GrowContext { store: &prepared.store, space, params, monitor };
            let context = GrowContext { store: doubled.as_ref().unwrap_or(&store), ..whole };
            each(&Part { context, bags: whole.bags(), first })
        })
    }

    /// The sums that `request` asks for, of a part.
    ///
    /// # Errors
    /// Damaged bytes; [`Error::Interrupted`].
    pub fn sums(&self, part: PartCodes, request: &[u8], threads: usize, monitor: &Monitor) -> Result<Vec<f64>> {
        self.with_part(part, threads, monitor, |part| part.sums(request))
    }

    /// The rows of each bucket that `request` asks for, of a part.
    ///
    /// # Errors
    /// As for [`Apart::sums`].
    pub fn collect(&self, part: PartCodes, request: &[u8], threads: usize, monitor: &Monitor) -> Result<Vec<Vec<u8>>> {
        self.with_part(part, threads, monitor, |part| part.collect(request))
    }

    /// What `request` asks for of the rows of a part.
    ///
    /// # Errors
    /// As for [`Apart::sums`].
    pub fn rows(&self, part: PartCodes, request: &[u8], threads: usize, monitor: &Monitor) -> Result<Vec<u8>> {
        self.with_part(part, threads, monitor, |part| part.rows(request))
    }

    /// For each part, the codes that its shadows have from the part with number `from`, in the round that starts with
    /// tree number `tree`. `firsts` are the first rows of all parts.
    ///
    /// # Errors
    /// As for [`Apart::sums`].
    pub fn spread(
        &self,
        part: PartCodes,
        (tree, firsts, from): (u64, &[usize], usize),
        threads: usize,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<u8>>> {
        self.check_parts(firsts, from)?;
        let sources = self.sources(tree);
        self.with_part(part, threads, monitor, |part| {
            Ok(Exchange { firsts, sources: &sources }.spread(part.context.store, from))
        })
    }

    /// The codes of the shadows of the part with number `to`, from the `pieces` that all parts spread for it.
    ///
    /// # Errors
    /// As for [`Apart::sums`]; [`Error::Data`] if the pieces are of other rows.
    pub fn shadows(
        &self,
        part: PartCodes,
        (tree, firsts, to): (u64, &[usize], usize),
        pieces: &[Buffer],
        monitor: &Monitor,
    ) -> Result<Vec<u8>> {
        self.check_parts(firsts, to)?;
        if pieces.len() != firsts.len() {
            return Err(Error::Data(format!("{} pieces of shadows from {} parts", pieces.len(), firsts.len())));
        }
        let sources = self.sources(tree);
        self.with_part(part, 1, monitor, |part| {
            let chunks = Exchange { firsts, sources: &sources }.gather(part.context.store, to, pieces)?;
            let mut bytes = Vec::new();
            Coded::write_codes(&self.book, chunks, &mut bytes)?;
            Ok(bytes)
        })
    }

    fn check_parts(&self, firsts: &[usize], number: usize) -> Result<()> {
        let ascend = firsts.first() == Some(&0) && firsts.is_sorted_by(|a, b| a < b);
        match ascend && number < firsts.len() && firsts.last().is_some_and(|&last| last < self.prepared.store.rows) {
            true => Ok(()),
            false => {
                Err(Error::Data(format!("part {number} of {} parts, whose first rows do not ascend", firsts.len())))
            }
        }
    }

    /// For each row the row that its shadows have their codes from, in the round that starts with tree number `tree`.
    fn sources(&self, tree: u64) -> Arc<Vec<u32>> {
        let Apart { prepared, params, .. } = self;
        let mut held = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some((of, sources)) if *of == tree => Arc::clone(sources),
            _ => {
                let drawn = Arc::new(prepared.store.draw_shadows(&mut shadows::random(tree, params)));
                *held = Some((tree, Arc::clone(&drawn)));
                drawn
            }
        }
    }
}
