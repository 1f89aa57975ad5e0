//! Work on a thread of its own, behind a handle that Python can wait on, watch and stop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ferrank_core::anytime::Stop;
use ferrank_core::inspect::Inspection;
use ferrank_core::knn::{self, Neighbors};
use ferrank_core::monitor::Monitor;
use ferrank_core::ranking::Ranking;
use ferrank_core::source::{IpcSource, write_ipc};
use ferrank_core::{Error, Result, anytime, forest, relief};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::input::{Source, reader};
use crate::results::{self, NamedTree};
use crate::settings::Ranker;
use crate::{error, settings};

/// What a run ends with.
enum Outcome {
    Ranking(Ranking, Option<Stop>),
    Tree(NamedTree),
    Neighbors(Neighbors),
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
    Done(End),
    Taken,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn start(work: impl FnOnce(&Monitor) -> Result<Outcome> + Send + 'static) -> PyResult<Self> {
        let run = Run { monitor: Arc::default(), end: Arc::default() };
        let (monitor, slot) = (run.monitor.clone(), run.end.clone());
        thread::Builder::new().name("ferrank".into()).spawn(move || {
            let end = catch_unwind(AssertUnwindSafe(|| work(&monitor))).map_err(|panic| words(&*panic));
            *slot.lock() = State::Done(end);
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
        let outcome = end.map_err(|panic| error::bug(py, &panic))?.map_err(|e| error::to_py(py, e))?;
        match outcome {
            Outcome::Ranking(ranking, stop) => Ok(results::ranking(py, ranking, stop)?.into_any()),
            Outcome::Tree(tree) => results::tree(py, &tree),
            Outcome::Neighbors(neighbors) => Ok(results::neighbors(py, neighbors)?.into_any()),
            Outcome::Inspection(inspection) => Ok(results::inspection(py, inspection)?.into_any()),
            Outcome::Rows(rows) => Ok(rows.into_pyobject(py)?.into_any()),
            Outcome::Source(source) => Ok(Bound::new(py, Source(Arc::new(source)))?.into_any()),
        }
    }
}

/// Ranks the features of `source` on `threads` threads, by the ranker that the settings name.
#[pyfunction]
pub(crate) fn rank(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
) -> PyResult<Run> {
    let (source, roles, goal) = (source.0.clone(), settings::ranked_roles(roles, settings)?, settings::goal(settings)?);
    let ranker = settings::ranker(settings)?;
    Run::start(move |monitor| {
        let whole = |ranking| Outcome::Ranking(ranking, None);
        let until = |(ranking, stop)| Outcome::Ranking(ranking, Some(stop));
        match (&ranker, &goal) {
            (Ranker::Forest(params), None) => forest::rank(&*source, &roles, params, threads, monitor).map(whole),
            (Ranker::Relief(params), None) => relief::rank(&*source, &roles, params, threads, monitor).map(whole),
            (Ranker::Forest(params), Some(goal)) => {
                anytime::rank_forest(&*source, &roles, params, goal, threads, monitor).map(until)
            }
            (Ranker::Relief(params), Some(goal)) => {
                anytime::rank_relief(&*source, &roles, params, goal, threads, monitor).map(until)
            }
        }
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

/// Describes the columns of `source`.
#[pyfunction]
pub(crate) fn inspect(source: &Source) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(move |monitor| ferrank_core::inspect::inspect(&*source, monitor).map(Outcome::Inspection))
}

/// Writes `source` to the Arrow file at `path`; the result is the number of rows.
#[pyfunction]
pub(crate) fn convert(source: &Source, path: PathBuf) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(move |monitor| write_ipc(&*source, &path, monitor).map(Outcome::Rows))
}

/// Keeps a stream that can be read only once in a scratch file; the result is a `Source`.
#[pyfunction]
pub(crate) fn spill(data: &Bound<'_, PyAny>, name: String) -> PyResult<Run> {
    let stream = reader(data)?;
    Run::start(move |monitor| {
        let schema = stream.schema();
        let batches = stream.map(|batch| {
            monitor.check()?;
            batch.map_err(|e| Error::Data(format!("{name}: {e}")))
        });
        ferrank_core::source::spill(&name, schema, batches, None).map(Outcome::Source)
    })
}
