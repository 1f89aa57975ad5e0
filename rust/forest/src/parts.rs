//! A data set in parts: each part is coded where its rows are, and trees are grown where all codes are.
//!
//! The trees have the same bits as those of the whole data set, because the parts make the same store as a pass over
//! all rows.

use arrow_buffer::Buffer;

use super::external::holds_all;
use super::params::ForestParams;
use super::prepared::{Prepared, Resources, single_target};
use ferrank_data::intake::View;
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles, names};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
use ferrank_ranking::RunOptions;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;

/// Codes the parts of a data set, one after the other. [`Coded`] has an example that goes on to a ranking.
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
/// use ferrank_forest::{Coder, ForestParams};
///
/// # let params = ForestParams::default();
/// # let (part, other, all) = (source(batch.slice(0, 30))?, source(batch.project(&[0, 2]).unwrap())?, source(batch)?);
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let profile = profile(view, params.max_bins, Place::default(), 1, &monitor)?;
/// let coder = Coder::new(view, &params, &profile)?;
/// let codes = coder.code(&part, 1, &monitor)?;
/// assert!(codes.starts_with(b"ARROW1"));
/// // The targets alone are less than the codes, and a part without the feature z has no codes.
/// assert!(Coder::answers(codes.clone().into())?.len() < codes.len());
/// assert!(coder.code(&other, 1, &monitor).is_err());
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Coder {
    roles: Roles,
    params: ForestParams,
    alone: Option<usize>,
    problem: Problem,
    book: Codebook,
}

impl Coder {
    /// Derives the codes of the data set of `profile`. `view` has the columns and needs no rows.
    ///
    /// # Errors
    /// An error that describes the invalid role.
    pub fn new(view: View<'_>, params: &ForestParams, profile: &Profile) -> Result<Self> {
        let problem = view.problem()?;
        let book = Codebook::new(profile, &problem, params.clusters(problem.task), "the data set")?;
        Ok(Coder { roles: view.roles.clone(), params: params.clone(), alone: view.alone, problem, book })
    }

    /// The codes of a part, as the bytes of an Arrow file.
    ///
    /// # Errors
    /// An error that describes the invalid column or value; [`Error::Data`] if a category is not in the profile.
    pub fn code(&self, part: &dyn ChunkSource, threads: usize, monitor: &Monitor) -> Result<Vec<u8>> {
        let view = View::new(part, &self.roles, self.params.treatment()).with_alone(self.alone);
        let problem = view.problem()?;
        if names(&problem.features) != names(&self.problem.features) {
            return Err(Error::Data(format!("{}: it has other features than the data set", part.name())));
        }
        let intake = view.intake(&problem, monitor);
        pool(threads)?.install(|| Part::encode(&intake, &self.book, intake.count()?))
    }

    /// The targets and weights of a part whose codes are `codes`, for [`Apart::new`](crate::apart::Apart::new).
    ///
    /// # Errors
    /// [`Error::Data`] if the part is damaged.
    pub fn answers(codes: Buffer) -> Result<Vec<u8>> {
        Part::without_codes(codes)
    }
}

/// A data set assembled from the codes of its parts.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_forest::{Coded, Coder, ForestParams, accumulate};
/// use ferrank_ranking::RunOptions;
/// use ferrank_runtime::monitor::Monitor;
///
/// let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..80).map(f).collect::<Float64Array>()) as ArrayRef;
/// let columns = [("x", column(&|i| f64::from(i * 7 % 31))), ("z", column(&|i| f64::from(i % 5))), ("y", column(&f64::from))];
/// let batch = RecordBatch::try_from_iter(columns).unwrap();
/// let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (roles, params, monitor) = (Roles::new(Targets::Last(1)), ForestParams::default(), Monitor::default());
/// let (parts, all) = ([source(batch.slice(0, 30))?, source(batch.slice(30, 50))?], source(batch)?);
/// fn view<'a>(source: &'a TableSource, roles: &'a Roles) -> View<'a> {
///     View::new(source, roles, Unlabelled::Error)
/// }
///
/// let profile = profile(view(&all, &roles), params.max_bins, Place::default(), 1, &monitor)?;
/// let coder = Coder::new(view(&all, &roles), &params, &profile)?;
/// let codes = |part| coder.code(part, 1, &monitor).map(Into::into);
/// let codes = parts.iter().map(|part| codes(part)).collect::<Result<Vec<_>, _>>()?;
/// let options = RunOptions::default();
/// let coded = Coded::new(view(&all, &roles), &params, &profile, None, codes, &options)?;
/// let ranking = coded.accumulate(&options, &monitor)?.ranking()?;
/// let whole = accumulate(&all, &roles, &params, &options, &monitor)?.ranking()?;
/// assert_eq!(ranking.scores[0].importance, whole.scores[0].importance);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Coded {
    identity: Identity,
    params: ForestParams,
    /// The only target whose ensemble can be grown; `None` for all targets.
    alone: Option<usize>,
    prepared: Prepared,
}

impl Coded {
    /// Assembles the data set from `parts`, whose rows follow each other. `view` has the columns and needs no rows;
    /// `profile` is that of all rows.
    ///
    /// With `per_target`, a target that is missing in some rows has an ensemble of the other rows. Then `view` has only
    /// this target, and `parts` have only its rows, whose profile is `own`.
    ///
    /// The parts are in memory. If the memory limit leaves too little for the bags of all threads, trees are grown in
    /// external memory.
    ///
    /// # Errors
    /// An error that describes the invalid setting or role; [`Error::Data`] if a part is damaged or of another data set.
    pub fn new(
        view: View<'_>,
        params: &ForestParams,
        profile: &Profile,
        own: Option<&Profile>,
        parts: Vec<Buffer>,
        options: &RunOptions<'_>,
    ) -> Result<Self> {
        let (all, problem) = (view.with_alone(None).problem()?, view.problem()?);
        let rows = profile.counts.taking_part("the data set", params.treatment())?;
        params.validate(&DataShape::new(&all).with_rows(rows))?;
        let identity = Identity::new(params.clone(), &all, profile);
        let book = Codebook::new(own.unwrap_or(profile), &problem, params.clusters(problem.task), "the data set")?;
        let expected = own.unwrap_or(profile).counts.kept;
        let resources = Resources::new(options);
        let bytes = resources.budget.left() + parts.iter().map(Buffer::len).sum::<usize>();
        let fits = pool(options.threads)?.install(|| holds_all(expected, &book, params, |_| bytes));
        let outside = (!fits).then_some(resources);
        let keep = outside.as_ref().map_or(Keep::Memory, |resources| Keep::Scratch(&resources.scratch));
        let parts = parts.into_iter().map(|part| Part::read(&book, part)).collect::<Result<Vec<Part>>>()?;
        let store = CodeStore::from_parts(book, parts, keep)?;
        if store.rows as u64 != expected {
            return Err(Error::Data(format!(
                "the parts have {} rows, the profile {expected}; hand over all parts, each once",
                store.rows
            )));
        }
        let prepared = Prepared::new(params, problem, store, false, outside)?;
        Ok(Coded { identity, params: params.clone(), alone: view.alone, prepared })
    }

    /// Grows the trees that `options` request.
    ///
    /// # Errors
    /// An error that describes an invalid option; [`Error::Interrupted`] on request of `monitor`.
    pub fn accumulate(&self, options: &RunOptions<'_>, monitor: &Monitor) -> Result<Accumulator> {
        pool(options.threads)?.install(|| {
            let requested = options.keys(self.identity.n_keys())?;
            let checkpoint = Checkpoint::open(self.identity.clone(), options.resume, options.memory, monitor)?;
            let trees = checkpoint.missing(requested);
            monitor.enter(Phase::Growing, trees.len() as u64);
            match self.alone {
                Some(_) => {
                    self.prepared.grow(&[0], &trees, &single_target(&self.params), (&checkpoint, None), monitor)?
                }
                None => self.prepared.contribute(&trees, &self.params, (&checkpoint, None), monitor, |target| {
                    let name = &self.prepared.problem.targets[target].name;
                    Err(Error::Data(format!(
                        "some rows miss the target '{name}'; its trees need a store of the other rows"
                    )))
                })?,
            }
            checkpoint.close()
        })
    }
}
