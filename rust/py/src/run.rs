//! Work on a thread of its own, behind a handle that Python can wait on, watch and stop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ferrank::RunOptions;
use ferrank::closed_sets::{ClosedSets, closed_sets as read_closed_sets};
use ferrank::early_stopping::Stop;
use ferrank::inspect::Inspection;
use ferrank::intake::Counts;
use ferrank::intake::View;
use ferrank::knn::{self, Neighbors};
use ferrank::monitor::Monitor;
use ferrank::profile::{Place, Profile};
use ferrank::ranking::Ranking;
use ferrank::source::{IpcSource, write_ipc};
use ferrank::stream::Stream as Streamed;
use ferrank::{Error, Result, early_stopping, forest};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::accumulator::Accumulator;
use crate::input::{Source, reader};
use crate::results::{self, NamedTree};
use crate::stream::Stream;
use crate::{error, settings};

/// What a run ends with.
pub(crate) enum Outcome {
    Accumulator(ferrank::Accumulator),
    Bytes(Vec<u8>),
    Counts(Counts),
    Ranking(Ranking),
    Until(Ranking, Stop),
    Stream(Arc<Streamed>),
    Tree(NamedTree),
    Neighbors(Neighbors),
    ClosedSets(ClosedSets),
    Inspection(Inspection),
    Rows(u64),
    Source(IpcSource),
}

/// A run's end: its outcome, or the message of a panic.
type End = std::result::Result<Result<Outcome>, String>;

/// Work in progress.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Run {
    monitor: Arc<Monitor>,
    end: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Running,
    Done(Box<End>),
    Taken,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    pub(crate) fn start(work: impl FnOnce(&Monitor) -> Result<Outcome> + Send + 'static) -> PyResult<Self> {
        let run = Run { monitor: Arc::default(), end: Arc::default() };
        let (monitor, slot) = (run.monitor.clone(), run.end.clone());
        thread::Builder::new().name("ferrank".into()).spawn(move || {
            let end = catch_unwind(AssertUnwindSafe(|| work(&monitor))).map_err(|panic| words(&*panic));
            *slot.lock() = State::Done(Box::new(end));
            slot.done.notify_all();
        })?;
        Ok(run)
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic").to_string()
}

impl Drop for Run {
    fn drop(&mut self) {
        self.monitor.stop();
    }
}

#[pymethods]
impl Run {
    /// Waits up to `timeout` seconds; whether the run has ended.
    fn wait(&self, py: Python<'_>, timeout: f64) -> bool {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        py.detach(|| {
            let waiting = self.end.done.wait_timeout_while(self.end.lock(), timeout, |s| matches!(s, State::Running));
            let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
            !matches!(*state, State::Running)
        })
    }

    /// What is being done, and how much of it: phase, done, total (0 if unknown).
    fn progress(&self) -> (&'static str, u64, u64) {
        let progress = self.monitor.progress();
        (progress.phase.name(), progress.done, progress.total)
    }

    /// What the person who started the run should know, since the last call.
    fn notes(&self) -> Vec<String> {
        self.monitor.take_notes()
    }

    /// Asks the run to stop.
    fn abort(&self) {
        self.monitor.stop();
    }

    /// Asks a run until a goal is met to end with the answer it has.
    fn finish(&self) {
        self.monitor.finish();
    }

    /// The outcome of a run that has ended, once, or its error.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.end.lock();
        if matches!(*state, State::Running) {
            return Err(PyRuntimeError::new_err("the run has not ended"));
        }
        let State::Done(end) = std::mem::replace(&mut *state, State::Taken) else {
            return Err(PyRuntimeError::new_err("the result was taken"));
        };
        drop(state);
        let outcome = (*end).map_err(|panic| error::bug(py, &panic))?.map_err(|e| error::to_py(py, e))?;
        match outcome {
            Outcome::Accumulator(accumulator) => Ok(Bound::new(py, Accumulator(accumulator))?.into_any()),
            Outcome::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
            Outcome::Counts(counts) => Ok((counts.rows, counts.kept).into_pyobject(py)?.into_any()),
            Outcome::Ranking(ranking) => Ok(results::ranking(py, ranking, None)?.into_any()),
            Outcome::Stream(stream) => Ok(Bound::new(py, Stream(stream))?.into_any()),
            Outcome::Until(ranking, stop) => Ok(results::ranking(py, ranking, Some(stop))?.into_any()),
            Outcome::Tree(tree) => results::tree(py, &tree),
            Outcome::Neighbors(neighbors) => Ok(results::neighbors(py, neighbors)?.into_any()),
            Outcome::ClosedSets(sets) => Ok(results::closed_sets(py, sets)?.into_any()),
            Outcome::Inspection(inspection) => Ok(results::inspection(py, inspection)?.into_any()),
            Outcome::Rows(rows) => Ok(rows.into_pyobject(py)?.into_any()),
            Outcome::Source(source) => Ok(Bound::new(py, Source(Arc::new(source)))?.into_any()),
        }
    }
}

/// Contributions of the ranker that the settings name, on `threads` threads, within `memory` bytes and with
/// temporary files in the folder `temp_dir`; the result is an `Accumulator`.
///
/// `keys`: first and last but one of the trees or blocks wanted; `profile`: bytes of that of the data set;
/// `resume`: file that keeps contributions.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory=None, temp_dir=None, keys=None, profile=None, resume=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn accumulate(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    keys: Option<(u64, u64)>,
    profile: Option<PyBackedBytes>,
    resume: Option<PathBuf>,
) -> PyResult<Run> {
    let (source, roles, ranker) =
        (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(move |monitor| {
        let profile = profile.map(|bytes| Profile::from_ipc(bytes.to_vec())).transpose()?;
        let options = RunOptions {
            threads,
            memory,
            temp_dir: temp_dir.as_deref(),
            keys: keys.map(|(first, end)| first..end),
            profile: profile.as_ref(),
            resume: resume.as_deref(),
        };
        ferrank::run::accumulate(&*source, &roles, &ranker, &options, monitor).map(Outcome::Accumulator)
    })
}

/// Ranks the features of `source` with no more trees or queries than the goal in the settings needs, on `threads`
/// threads, within `memory` bytes and with temporary files in the folder `temp_dir`.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory=None, temp_dir=None))]
pub(crate) fn rank_until(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
) -> PyResult<Run> {
    let (source, roles, goal) = (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::goal(settings)?);
    let ranker = settings::ranker(settings)?;
    Run::start(move |monitor| {
        let options = RunOptions { threads, memory, temp_dir: temp_dir.as_deref(), ..RunOptions::default() };
        let (ranking, stop) = early_stopping::rank(&*source, &roles, &ranker, &goal, &options, monitor)?;
        Ok(Outcome::Until(ranking, stop))
    })
}

/// Profiles `source`, whose rows that take part are numbered from `first_row` on, of `of_rows` rows in all, where
/// that is known; the result is bytes.
///
/// `alone`: number of the target that alone counts.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, first_row, threads, alone=None, of_rows=None))]
pub(crate) fn profile(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    first_row: u64,
    threads: usize,
    alone: Option<usize>,
    of_rows: Option<u64>,
) -> PyResult<Run> {
    let (source, roles, ranker) =
        (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(move |monitor| {
        let view = View { source: &*source, roles: &roles, unlabelled: ranker.ranker().unlabelled(), alone };
        let profile = ferrank::profile::profile(
            view,
            ranker.ranker().max_bins(),
            Place { first_row, of_rows },
            threads,
            monitor,
        )?;
        profile.to_ipc().map(Outcome::Bytes)
    })
}

/// Counts the rows of `source`; the result is how many there are, and how many take part.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, alone=None))]
pub(crate) fn count(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    alone: Option<usize>,
) -> PyResult<Run> {
    let (source, roles, ranker) =
        (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(move |monitor| {
        let view = View { source: &*source, roles: &roles, unlabelled: ranker.ranker().unlabelled(), alone };
        ferrank::profile::count(view, monitor).map(Outcome::Counts)
    })
}

/// Codes `source`, a part of the data set of `profile`, for a forest; the result is bytes.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, profile, threads, alone=None))]
pub(crate) fn code(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
    threads: usize,
    alone: Option<usize>,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::forest(settings)?);
    Run::start(move |monitor| {
        let view = View { source: &*source, roles: &roles, unlabelled: params.treatment(), alone };
        forest::code(view, &params, &Profile::from_ipc(profile.to_vec())?, threads, monitor).map(Outcome::Bytes)
    })
}

/// Grows tree number `tree` of a forest.
#[pyfunction]
pub(crate) fn grow_tree(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    tree: usize,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::forest(settings)?);
    Run::start(move |monitor| {
        let tree = forest::grow_tree(&*source, &roles, &params, tree, monitor)?;
        NamedTree::new(&*source, &roles, tree).map(Outcome::Tree)
    })
}

/// Finds the nearest rows of `train` to each row of `test`, under every ranking in the settings.
#[pyfunction]
pub(crate) fn neighbors(
    train: &Source,
    test: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
) -> PyResult<Run> {
    let (train, test) = (train.0.clone(), test.0.clone());
    let (roles, params) = (settings::ranked_roles(roles, settings)?, settings::knn(settings)?);
    Run::start(move |monitor| {
        knn::neighbors(&*train, &*test, &roles, &params, threads, monitor).map(Outcome::Neighbors)
    })
}

/// Reads the label sets of all rows of `source`, with the labels above them.
#[pyfunction]
pub(crate) fn closed_sets(source: &Source, roles: &Bound<'_, PyDict>, settings: &Bound<'_, PyDict>) -> PyResult<Run> {
    let (source, roles) = (source.0.clone(), settings::ranked_roles(roles, settings)?);
    Run::start(move |monitor| read_closed_sets(&*source, &roles, monitor).map(Outcome::ClosedSets))
}

/// Describes the columns of `source`.
#[pyfunction]
pub(crate) fn inspect(source: &Source) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(move |monitor| ferrank::inspect::inspect(&*source, monitor).map(Outcome::Inspection))
}

/// Writes `source` to the Arrow file at `path`; the result is the number of rows.
#[pyfunction]
pub(crate) fn convert(source: &Source, path: PathBuf) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(move |monitor| write_ipc(&*source, &path, monitor).map(Outcome::Rows))
}

/// Keeps a stream that can be read only once in a file in the folder `temp_dir`; the result is a `Source`.
#[pyfunction]
#[pyo3(signature = (data, name, temp_dir=None))]
pub(crate) fn spill(data: &Bound<'_, PyAny>, name: String, temp_dir: Option<PathBuf>) -> PyResult<Run> {
    let stream = reader(data)?;
    Run::start(move |monitor| {
        let schema = stream.schema();
        let batches = stream.map(|batch| {
            monitor.check()?;
            batch.map_err(|e| Error::Data(format!("{name}: {e}")))
        });
        ferrank::source::spill(&name, schema, batches, temp_dir.as_deref()).map(Outcome::Source)
    })
}
