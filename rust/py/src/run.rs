//! Work on a thread of its own, behind a handle that Python can wait on, watch and stop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ferrank::Result;
use ferrank::monitor::Monitor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::exit::{self, Busy};
use crate::{error, logs};

/// Converts the result of a run to a Python object, when Python asks for it.
pub(crate) type Convert = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send>;

/// The end of a run: its result, or the message of a panic.
type End = std::result::Result<Result<Convert>, String>;

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
    /// Starts `work`; `convert` turns its result into a Python object.
    pub(crate) fn start<T: Send + 'static>(
        work: impl FnOnce(&Monitor) -> Result<T> + Send + 'static,
        convert: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Self> {
        let busy = Busy::begin().ok_or_else(exit::ending)?;
        Python::attach(logs::configure)?;
        let run = Run { monitor: Arc::default(), end: Arc::default() };
        let (monitor, slot) = (run.monitor.clone(), run.end.clone());
        exit::register(&monitor);
        let spawned = thread::Builder::new().name("ferrank".into()).spawn(move || {
            let _busy = busy;
            let result = catch_unwind(AssertUnwindSafe(|| work(&monitor)));
            monitor.end();
            let convert = |value| -> Convert { Box::new(move |py| convert(py, value)) };
            *slot.lock() = State::Done(result.map(|result| result.map(convert)).map_err(|panic| message(&*panic)));
            slot.done.notify_all();
        });
        spawned.map_err(|error| Python::attach(|py| error::no_thread(py, &error)))?;
        Ok(run)
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
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
    /// Waits up to `timeout` seconds; returns true if the run, or the interpreter, has ended.
    fn wait(&self, py: Python<'_>, timeout: f64) -> bool {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        let Some(busy) = Busy::begin() else { return true };
        busy.detach(py, || {
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

    /// Notes for the user since the last call.
    fn notes(&self) -> Vec<String> {
        self.monitor.take_notes()
    }

    /// Asks the run to stop.
    fn abort(&self) {
        self.monitor.stop();
    }

    /// Asks a run with early stopping to end with the ranking it has.
    fn finish(&self) {
        self.monitor.finish();
    }

    /// The result of a run that has ended, or its error; it can be taken once.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.end.lock();
        if matches!(*state, State::Running) {
            return Err(PyRuntimeError::new_err("the run has not ended"));
        }
        let State::Done(end) = std::mem::replace(&mut *state, State::Taken) else {
            return Err(PyRuntimeError::new_err("the result was taken"));
        };
        drop(state);
        let convert = end.map_err(|panic| error::bug(py, &panic))?.map_err(|e| error::to_py(py, e))?;
        convert(py)
    }
}
