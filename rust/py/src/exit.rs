//! The end of the interpreter, before which every thread has to let go of it.
//!
//! CPython ends a thread that asks for the GIL once the interpreter goes down, and with it the process where frames of
//! Rust lie on its stack. So threads say while they may ask for it, and [`end_runs`], which Python calls before it goes
//! down, stops the runs and waits for these threads.

use std::process::id;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use ferrank::monitor::Monitor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

/// Runs end well within a second once they are asked to; readers of others may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

static STATE: Mutex<State> = Mutex::new(State { process: 0, busy: 0, is_ending: false, runs: Vec::new() });
static LESS_BUSY: Condvar = Condvar::new();

struct State {
    /// Whose threads are counted: after a fork, those of the parent are not there.
    process: u32,
    busy: usize,
    is_ending: bool,
    runs: Vec<Weak<Monitor>>,
}

fn state() -> MutexGuard<'static, State> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.process != id() {
        *state = State { process: id(), busy: 0, is_ending: false, runs: Vec::new() };
    }
    state
}

/// As long as this lives, its thread may ask for the GIL.
pub(crate) struct Busy {
    process: u32,
}

impl Busy {
    /// None once the interpreter ends: the caller must not ask for the GIL, nor give it up.
    pub(crate) fn begin() -> Option<Self> {
        let mut state = state();
        if state.is_ending {
            return None;
        }
        state.busy += 1;
        Some(Busy { process: state.process })
    }

    /// Gives up the GIL for `work`.
    #[expect(clippy::disallowed_methods, reason = "the end of the interpreter waits for this")]
    pub(crate) fn detach<T: Ungil>(self, py: Python<'_>, work: impl Ungil + FnOnce() -> T) -> T {
        py.detach(work)
    }

    /// For threads of ours, which sleep for good once the interpreter ends.
    pub(crate) fn begin_or_sleep() -> Self {
        loop {
            match Self::begin() {
                Some(busy) => return busy,
                None => thread::park(),
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = state();
        if state.process == self.process {
            state.busy -= 1;
            LESS_BUSY.notify_all();
        }
    }
}

/// Gives up the GIL for `work`, but not once the interpreter ends.
pub(crate) fn detach<T: Ungil>(py: Python<'_>, work: impl Ungil + FnOnce() -> T) -> T {
    match Busy::begin() {
        Some(busy) => busy.detach(py, work),
        None => work(),
    }
}

/// What `call` returns, which runs code in Python, where other threads may take the GIL; an error once the interpreter
/// ends.
pub(crate) fn calling<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _busy = Busy::begin().ok_or_else(ending)?;
    call()
}

/// The exception for what is begun too late.
pub(crate) fn ending() -> PyErr {
    PyRuntimeError::new_err("the interpreter ends; nothing is begun any more")
}

/// Has the run with this monitor stopped when the interpreter ends.
pub(crate) fn register(monitor: &Arc<Monitor>) {
    let mut state = state();
    state.runs.retain(|run| run.strong_count() > 0);
    state.runs.push(Arc::downgrade(monitor));
}

/// Stops all runs and waits for threads that may ask for the GIL; no run begins afterwards.
#[pyfunction]
#[expect(clippy::disallowed_methods, reason = "no other thread waits for this one")]
pub(crate) fn end_runs(py: Python<'_>) {
    py.detach(|| {
        let mut state = state();
        state.is_ending = true;
        for run in state.runs.iter().filter_map(Weak::upgrade) {
            run.stop();
        }
        let waited = LESS_BUSY.wait_timeout_while(state, PATIENCE, |state| state.busy > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    });
}
