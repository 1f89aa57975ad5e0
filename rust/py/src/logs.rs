//! The engine's events for Python's `logging`.
//!
//! Threads of the engine put events into a queue and never wait for the GIL. Python takes them from there while it
//! waits for a run, and hands them to its loggers. Without a logger that wants them, an event costs a comparison.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// Level, name of the logger, message, and seconds since 1970.
type Entry = (u8, String, String, f64);

/// Most events that wait; older ones are dropped.
const MOST: usize = 10_000;
/// Above the levels of all events.
const OFF: u8 = u8::MAX;

static LEAST: AtomicU8 = AtomicU8::new(OFF);
static QUEUE: Mutex<VecDeque<Entry>> = Mutex::new(VecDeque::new());

/// Asks Python which events are wanted from now on.
pub(crate) fn configure(py: Python<'_>) -> PyResult<()> {
    static SUBSCRIBE: Once = Once::new();
    let level: u8 = py.import("ferrank.logs")?.getattr("level")?.call0()?.extract()?;
    LEAST.store(level, Relaxed);
    if level < OFF {
        // The subscriber is that of this library alone, whose copy of `tracing` no other library shares.
        SUBSCRIBE.call_once(|| set_global_default(Queue).unwrap_or_default());
    }
    Ok(())
}

/// The events since the last call: level, name of the logger, message, and seconds since 1970.
#[pyfunction]
pub(crate) fn take_events() -> Vec<(u8, String, String, f64)> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
}

/// Puts events into [`QUEUE`].
struct Queue;

impl Subscriber for Queue {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.is_event() { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && number(*metadata.level()) >= LEAST.load(Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let entry = (number(*event.metadata().level()), logger(event.metadata().target()), message.0, seconds);
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() == MOST {
            queue.pop_front();
        }
        queue.push_back(entry);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The level in Python's `logging`.
fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

/// The logger of events of the module `target`: of `ferrank_forest::external` it is `ferrank.forest`.
fn logger(target: &str) -> String {
    let mut names = target.split("::");
    match names.next().unwrap_or_default() {
        "ferrank" => ["ferrank", names.next().unwrap_or("run")].join("."),
        krate => krate.replacen('_', ".", 1),
    }
}

/// The text of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A string takes everything that is written to it.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
