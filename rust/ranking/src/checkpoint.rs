//! Contributions as they are made, and the file from which a killed run goes on.
//!
//! The file is an [accumulator](super::ipc) that grows: each contribution is appended as it comes, and what
//! was appended is brought to the disk once a second. A record that is cut off or damaged, as a kill or a
//! power cut may leave it, is dropped with all that follows, and its contributions are made again.
//!
//! A file of fewer trees is gone on with under the head of the larger run; one of more trees keeps its own, and
//! the requested ones are taken from it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_buffer::Buffer;

use crate::accumulator::Accumulator;
use crate::contribution::Contribution;
use crate::identity::Identity;
use crate::ipc::{Stream, check_begin, identity_like, records};
use ferrank_data::source::{IpcSource, unfinished};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::files::regular;
use ferrank_runtime::monitor::Monitor;
use tracing::{debug, info};

/// Time after which what was written is brought to the disk.
const SYNC: Duration = Duration::from_secs(1);
/// The end of a stream that was written as a whole.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Where threads leave what they make.
///
/// ```
/// use ferrank_ranking::{Checkpoint, Vector};
#[doc = include_str!("example_run.txt")]
///
/// # let monitor = ferrank_runtime::monitor::Monitor::default();
/// # let path = std::env::temp_dir().join(format!("ferrank-checkpoint-{}.arrows", std::process::id()));
/// let open = || Checkpoint::open(identity.clone(), Some(&path), None, &monitor);
/// let killed = open()?;
/// killed.add(2, vec![Vector::dense(vec![3.0, 1.0])])?;
/// drop(killed);
///
/// let resumed = open()?;
/// assert_eq!(resumed.missing(0..4), [0, 1, 3]);
/// assert_eq!(resumed.close()?.keys().collect::<Vec<_>>(), [2]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
pub struct Checkpoint {
    state: Mutex<State>,
}

struct State {
    accumulator: Accumulator,
    log: Option<Log>,
}

impl Checkpoint {
    /// A checkpoint of the run that `identity` makes, with the contributions that the file `resume` has, which are read
    /// within `memory` bytes; `None`: half of what is free.
    ///
    /// # Errors
    /// The file cannot be read or written, is of another run, or another run writes it just now.
    pub fn open(identity: Identity, resume: Option<&Path>, memory: Option<u64>, monitor: &Monitor) -> Result<Self> {
        let mut accumulator = Accumulator::new(identity);
        let log = resume.map(|path| Log::open(path, &mut accumulator, memory, monitor)).transpose()?;
        Ok(Checkpoint { state: Mutex::new(State { accumulator, log }) })
    }

    /// The `keys` whose contributions are still to be computed.
    pub fn missing(&self, keys: Range<u64>) -> Vec<u64> {
        let state = self.state();
        keys.filter(|key| !state.accumulator.contributions.contains_key(key)).collect()
    }

    /// Takes the contribution of `key`.
    pub fn add(&self, key: u64, contribution: Contribution) -> Result<()> {
        let mut state = self.state();
        if let Some(log) = &mut state.log {
            log.append(key, &contribution)?;
        }
        state.accumulator.insert(key, contribution)
    }

    /// All contributions.
    pub fn close(self) -> Result<Accumulator> {
        let State { accumulator, log } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = log {
            log.sync()?;
            info!("{}: {} contributions are written", log.path.display(), accumulator.contributions.len());
        }
        Ok(accumulator)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Log {
    path: PathBuf,
    file: File,
    /// What `path` led to before; its lock keeps out a run that opened it then.
    _replaced: Option<File>,
    stream: Stream,
    synced: Instant,
}

impl Log {
    /// Opens the file at `path`, or creates it, and moves its contributions into `accumulator`.
    fn open(path: &Path, accumulator: &mut Accumulator, memory: Option<u64>, monitor: &Monitor) -> Result<Self> {
        let failed = |e| Error::file(path, e);
        let (stream, begin) = Stream::new(&accumulator.identity)?;
        let open = || OpenOptions::new().read(true).write(true).open(path);
        let mut file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let created = create(path, &begin).map_err(failed)?;
                created.map_or_else(|| open().map_err(failed), Ok)?
            }
            opened => opened.map_err(failed)?,
        };
        regular(path)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::Setting(format!(
                "resume: another run is writing {}; name another file, or wait for it",
                path.display()
            )));
        }
        // They are read as a whole, and what is in them is kept.
        let length = file.metadata().map_err(failed)?.len();
        let needed = usize::try_from(2 * length).unwrap_or(usize::MAX);
        Budget::check_early(memory, needed, &format!("the contributions in {}", path.display()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let mut log = Log { path: path.to_path_buf(), file, _replaced: None, stream, synced: Instant::now() };
        if bytes.is_empty() {
            log.write(&begin)?;
        } else {
            log.take(bytes, &begin, accumulator, monitor)?;
            info!("{}: the file has {} contributions", path.display(), accumulator.contributions.len());
        }
        Ok(log)
    }

    /// Moves what is whole in `bytes`, the content of the file, into `accumulator`, and cuts off the rest. The
    /// file begins with `begin` from then on if this run has more trees.
    fn take(&mut self, bytes: Vec<u8>, begin: &[u8], accumulator: &mut Accumulator, monitor: &Monitor) -> Result<()> {
        let name = self.path.display().to_string();
        let advice = "name another file for resume, or remove this one";
        let with_advice = |error: Error| match error {
            Error::Data(message) => Error::Data(format!("{message}; {advice}")),
            other => other,
        };
        let marked = bytes.ends_with(&END);
        let length = bytes.len();
        let bytes = Buffer::from(bytes);
        let source = IpcSource::from_cut_buffer(name.clone(), bytes.clone()).map_err(with_advice)?;
        let own = accumulator.identity.clone();
        let whole = identity_like(&source, &own, "this one").map_err(with_advice)?;
        own.continues(&whole, "this one", &name).map_err(with_advice)?;
        check_begin(&source, &bytes, &whole, None).map_err(with_advice)?;
        let mut ends = source.ends();
        let mut end = ends.next().unwrap_or(length);
        for (record, next) in records(&source, &whole)?.zip(ends) {
            let Ok((key, contribution)) = record else { break };
            if key < own.n_keys() {
                let twice = |error| with_advice(Error::Data(format!("{name}: {error}")));
                accumulator.insert(key, contribution).map_err(twice)?;
            }
            end = next;
        }
        let lost = length - end - if marked { END.len().min(length - end) } else { 0 };
        if lost > 0 {
            monitor.note(format!(
                "{name}: dropped the last {lost} bytes, which a run that was killed left incomplete; what they held \
                 is made again"
            ));
        }
        if own.n_keys() > whole.n_keys() {
            // The checksums of records are those of their run.
            let mut records = Vec::new();
            for (&key, contribution) in &accumulator.contributions {
                records.extend(self.stream.record(key, contribution)?);
            }
            return self.replace(begin, &records).map_err(|e| Error::file(&self.path, e));
        }
        self.stream = Stream::new(&whole)?.0;
        let cut = self.file.set_len(end as u64).and_then(|()| self.file.seek(SeekFrom::End(0)));
        cut.map(|_| ()).map_err(|e| Error::file(&self.path, e))
    }

    /// Replaces the file by one with `begin` and `records`, in one step.
    fn replace(&mut self, begin: &[u8], records: &[u8]) -> std::io::Result<()> {
        let mut file = unfinished(&self.path)?;
        file.write_all(begin)?;
        file.write_all(records)?;
        file.as_file().sync_all()?;
        file.as_file().try_lock()?;
        let file = file.persist(&self.path).map_err(|error| error.error)?;
        self._replaced = Some(std::mem::replace(&mut self.file, file));
        Ok(())
    }

    fn append(&mut self, key: u64, contribution: &Contribution) -> Result<()> {
        let record = self.stream.record(key, contribution)?;
        self.write(&record)?;
        if self.synced.elapsed() >= SYNC {
            self.sync()?;
            debug!("{}: written up to key {key}", self.path.display());
            self.synced = Instant::now();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::file(&self.path, e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::file(&self.path, e))
    }
}

/// Makes the file at `path`, unless it came to be meanwhile. It appears with all of `begin` in it, and locked.
fn create(path: &Path, begin: &[u8]) -> std::io::Result<Option<File>> {
    let mut file = unfinished(path)?;
    file.write_all(begin)?;
    file.as_file().sync_all()?;
    // Some file systems have no locks.
    let _ = file.as_file().try_lock();
    match file.persist_noclobber(path) {
        Ok(mut file) => file.rewind().map(|()| Some(file)),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error.error),
    }
}
