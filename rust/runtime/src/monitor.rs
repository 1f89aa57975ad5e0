//! Progress of a run, and the request to stop it; shared between the thread that works and the one
//! that watches. The start and the end of each phase are logged.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tracing::info;

use crate::error::{Error, Result};

/// The target of the events of phases.
const LOG: &str = "ferrank::run";

/// What a run is doing.
///
/// ```
/// assert_eq!(ferrank_runtime::monitor::Phase::Growing.name(), "growing");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Phase {
    /// First pass over the data: ranges, categories, cut points. Counts rows.
    Profiling,
    /// Second pass: values to codes. Counts rows.
    Coding,
    /// Growing trees. Counts trees.
    Growing,
    /// Looking for neighbours. Counts rows.
    Searching,
    /// Adding up the differences of neighbors. Counts rows.
    Summing,
    /// Reading a sample. Counts its rows.
    Sampling,
    /// Tests of single features. Counts features.
    Testing,
    /// Predicting rows. Counts them.
    Predicting,
}

impl Phase {
    /// A word for progress lines.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Profiling => "profiling",
            Phase::Coding => "coding",
            Phase::Growing => "growing",
            Phase::Searching => "searching",
            Phase::Summing => "summing",
            Phase::Sampling => "sampling",
            Phase::Testing => "testing",
            Phase::Predicting => "predicting",
        }
    }

    /// What the phase counts.
    fn unit(self) -> &'static str {
        match self {
            Phase::Growing => "trees",
            Phase::Testing => "features",
            _ => "rows",
        }
    }
}

/// A snapshot of a run.
///
/// ```
/// use ferrank_runtime::monitor::{Monitor, Phase, Progress};
///
/// let monitor = Monitor::default();
/// monitor.enter(Phase::Growing, 100);
/// monitor.advance(7);
/// let Progress { phase, done, total, .. } = monitor.progress();
/// assert_eq!((phase, done, total), (Phase::Growing, 7, 100));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// Rows or trees done in this phase.
    pub done: u64,
    /// Of how many; 0 where unknown.
    pub total: u64,
}

/// Shared state of one run.
///
/// ```
/// use ferrank_runtime::error::Error;
/// use ferrank_runtime::monitor::Monitor;
///
/// let monitor = Monitor::default();
/// std::thread::scope(|scope| scope.spawn(|| monitor.stop()).join()).unwrap();
/// assert!(matches!(monitor.check(), Err(Error::Interrupted)));
/// ```
#[derive(Debug, Default)]
pub struct Monitor {
    stop: AtomicBool,
    finish: AtomicBool,
    may_finish: AtomicBool,
    phase: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
    notes: Mutex<Vec<String>>,
    /// The phase that has not ended, and when it started.
    current: Mutex<Option<(Phase, Instant)>>,
}

impl Monitor {
    /// Asks the run to stop; it ends with [`Error::Interrupted`] well within a second.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Asks a run that has an answer, or as soon as it has one, to end with it.
    ///
    /// Only runs with early stopping have answers before their end.
    pub fn finish(&self) {
        self.finish.store(true, Relaxed);
    }

    /// # Errors
    /// [`Error::Interrupted`] once [`stop`](Self::stop) was called, or [`finish`](Self::finish) if there is an
    /// answer.
    pub fn check(&self) -> Result<()> {
        let finished = self.finish.load(Relaxed) && self.may_finish.load(Relaxed);
        if self.stop.load(Relaxed) || finished { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Says that there is an answer.
    pub fn may_finish(&self) {
        self.may_finish.store(true, Relaxed);
    }

    /// Returns true if the run should end with the result so far, and was not requested to stop.
    pub fn is_finishing(&self) -> bool {
        self.finish.load(Relaxed) && !self.stop.load(Relaxed)
    }

    /// Where the run is.
    pub fn progress(&self) -> Progress {
        let phase = match self.phase.load(Relaxed) {
            0 => Phase::Profiling,
            1 => Phase::Coding,
            2 => Phase::Growing,
            3 => Phase::Searching,
            4 => Phase::Summing,
            5 => Phase::Sampling,
            6 => Phase::Testing,
            _ => Phase::Predicting,
        };
        Progress { phase, done: self.done.load(Relaxed), total: self.total.load(Relaxed) }
    }

    /// What the person who started the run should know, since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a note for the user.
    pub fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Ends the phase before, and starts a phase of `total` units of work; 0 where unknown.
    pub fn enter(&self, phase: Phase, total: u64) {
        self.end();
        match total {
            0 => info!(target: LOG, "{} starts", phase.name()),
            _ => info!(target: LOG, "{} starts: {total} {}", phase.name(), phase.unit()),
        }
        *self.current() = Some((phase, Instant::now()));
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
        self.phase.store(phase as u8, Relaxed);
    }

    /// Ends the phase, if there is one that has not ended.
    pub fn end(&self) {
        if let Some((phase, started)) = self.current().take() {
            let (done, seconds) = (self.done.load(Relaxed), started.elapsed().as_secs_f64());
            info!(target: LOG, "{} ends: {done} {} in {seconds:.2} s", phase.name(), phase.unit());
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<(Phase, Instant)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `by` more units of work as done.
    pub fn advance(&self, by: u64) {
        self.done.fetch_add(by, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_stopped_does_not_end_with_what_it_has() {
        let monitor = Monitor::default();
        monitor.finish();
        assert!(monitor.is_finishing());
        monitor.stop();
        assert!(!monitor.is_finishing());
    }

    #[test]
    fn progress_names_the_phase_that_was_entered() {
        use Phase::*;
        let monitor = Monitor::default();
        for phase in [Profiling, Coding, Growing, Searching, Summing, Sampling, Testing, Predicting] {
            monitor.enter(phase, 1);
            assert_eq!(monitor.progress().phase, phase);
        }
    }

    #[test]
    fn each_phase_counts_from_nothing() {
        let monitor = Monitor::default();
        monitor.enter(Phase::Coding, 10);
        monitor.advance(10);
        monitor.enter(Phase::Growing, 4);
        let Progress { phase, done, total } = monitor.progress();
        assert_eq!((phase, done, total), (Phase::Growing, 0, 4));
    }
}
