//! Files that are read into memory of our own, piece by piece.
//!
//! No file of a user is mapped. A mapped file that another program cuts short ends the process where it is read next
//! (SIGBUS), one that is written to changes under checks that were made already, and a handler of that signal would
//! belong to the whole process, which is not ours. What is read by a copy is either what was there when the file was
//! opened, which its length and the time of its last change tell, or an error.
//!
//! The copy goes to memory that is used again and again, a piece of at most [`PIECE`] at a time, so that it mostly stays
//! in the cache of the processor.

use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Read, Result as IoResult};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use arrow_buffer::Buffer;

use super::chunking::sized;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::files::{read_exact_at, regular, will_need};
use ferrank_runtime::pages::Large;

/// Bytes that are read at a time, where they can be read in pieces.
pub(super) const PIECE: usize = sized(8 << 20, 512);
/// Pieces of memory that are kept to be used again.
const KEPT: usize = 2;

/// Files that stay open at a time; others, of a data set of many files, are opened for each piece.
const OPEN: usize = 8;
static N_OPEN: AtomicUsize = AtomicUsize::new(0);

/// A file with the name that messages use.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    pub(super) name: String,
    path: PathBuf,
    /// Open, if few others are.
    open: Option<Arc<OpenFile>>,
    length: usize,
    modified: Option<SystemTime>,
}

/// A file that stays open.
#[derive(Debug)]
struct OpenFile(File);

impl OpenFile {
    /// `file`, if few others are open.
    fn new(file: File) -> Option<Arc<Self>> {
        let few = N_OPEN.fetch_add(1, Ordering::Relaxed) < OPEN;
        // What is dropped is counted down.
        Some(Arc::new(OpenFile(file))).filter(|_| few)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        N_OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InputFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// No such file, a folder, a pipe or device, an empty file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |e| Error::file(path, e);
        regular(path)?;
        let file = File::open(path).map_err(failed)?;
        let known = file.metadata().map_err(failed)?;
        let name = path.display().to_string();
        if known.len() == 0 {
            return Err(Error::Data(format!("{name}: the file is empty")));
        }
        let length = usize::try_from(known.len()).map_err(|_| failed(ErrorKind::FileTooLarge.into()))?;
        let (path, modified) = (path.to_path_buf(), known.modified().ok());
        Ok(InputFile { name, path, open: OpenFile::new(file), length, modified })
    }

    /// The file, which messages call `name`.
    pub(super) fn called(self, name: &str) -> Self {
        InputFile { name: name.to_string(), ..self }
    }

    /// Bytes of the file when it was opened.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Calls `each` with the open file.
    fn with_file<T>(&self, each: impl FnOnce(&File) -> IoResult<T>) -> IoResult<T> {
        match &self.open {
            Some(open) => each(&open.0),
            None => each(&File::open(&self.path)?),
        }
    }

    /// Fills `into` with what is at byte `at`.
    ///
    /// # Errors
    /// It cannot be read, or the file is not what it was when it was opened.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        match self.with_file(|file| self.read_in(file, at, into)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.changed()),
            Err(error) => Err(Error::file(&self.name, error)),
        }
    }

    /// Reads from the open file; false if it is not what it was.
    fn read_in(&self, file: &File, at: usize, into: &mut [u8]) -> IoResult<bool> {
        match read_exact_at(file, into, at as u64) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            // The system notes a change before it makes it.
            read => read.and_then(|()| self.is_unchanged(file)),
        }
    }

    fn is_unchanged(&self, file: &File) -> IoResult<bool> {
        let now = file.metadata()?;
        Ok(now.len() == self.length as u64 && now.modified().ok() == self.modified)
    }

    /// As [`InputFile::read`], without a look at whether the file is the same; the error says what the system did.
    pub(super) fn read_unchecked(&self, at: usize, into: &mut [u8]) -> std::result::Result<(), String> {
        self.with_file(|file| read_exact_at(file, into, at as u64)).map_err(|error| error.to_string())
    }

    /// Ok if the file is as it was. One that took the name of an open file since does not matter: the open one is the old one.
    ///
    /// # Errors
    /// [`Error::Data`] if the file was written to or cut short; the error of the operating system if its state cannot be read.
    pub(super) fn check(&self) -> Result<()> {
        match self.with_file(|file| self.is_unchanged(file)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.changed()),
            Err(error) => Err(Error::file(&self.name, error)),
        }
    }

    fn changed(&self) -> Error {
        Error::Data(format!("{}: {CHANGED}", self.name))
    }

    /// The first bytes, at most `most` of them.
    pub(super) fn start(&self, most: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; most.min(self.length)];
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Has the bytes in `range` brought into memory, while something else is done.
    pub(super) fn fetch(&self, range: Range<usize>) {
        // What cannot be opened fails when it is read.
        let _ = self.with_file(|file| {
            will_need(file, range.start as u64, range.len() as u64);
            Ok(())
        });
    }

    /// The file from its first byte on.
    pub(super) fn text(&self) -> Text<'_> {
        Text { file: self, at: 0 }
    }
}

const CHANGED: &str = "the file was changed while it was read; leave it alone, and rank again";

/// A file that is read from its first byte to its last.
pub(super) struct Text<'a> {
    file: &'a InputFile,
    at: usize,
}

impl Read for Text<'_> {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let length = into.len().min(self.file.length - self.at);
        if !self.file.with_file(|file| self.file.read_in(file, self.at, &mut into[..length]))? {
            return Err(IoError::other(CHANGED));
        }
        self.at += length;
        Ok(length)
    }
}

/// Memory that is lent out and used again when it comes back.
#[derive(Debug, Default, Clone)]
pub(super) struct Pool(Arc<Mutex<Vec<Large<u8>>>>);

impl Pool {
    /// Memory of at least `length` bytes, whatever is in it.
    pub(super) fn lend(&self, length: usize) -> Lent {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Little in much would keep the rest from being used.
        let fits = free.iter().position(|memory| (length..=4 * length.max(1 << 16)).contains(&memory.len()));
        let memory = match fits {
            Some(place) => free.swap_remove(place),
            None => Large::zeros(length.next_multiple_of(1 << 16)),
        };
        Lent { memory, pool: Arc::downgrade(&self.0), length }
    }
}

/// Memory of a pool.
#[derive(Debug)]
pub(super) struct Lent {
    memory: Large<u8>,
    pool: Weak<Mutex<Vec<Large<u8>>>>,
    length: usize,
}

impl Lent {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[..self.length]
    }

    /// The memory as an Arrow buffer, which gives it back when it is dropped.
    pub(super) fn into_buffer(self) -> Buffer {
        let (start, length) = (NonNull::from_ref(&self.memory[..self.length]).cast(), self.length);
        let owner = Arc::new(self);
        // SAFETY: the pointer and the length are those of the memory, which lies where it was mapped and which the
        // buffer owns. Nobody writes to it before the buffer is gone.
        unsafe { Buffer::from_custom_allocation(start, length, owner) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            let mut free = pool.lock().unwrap_or_else(PoisonError::into_inner);
            // Much larger ones are rare, and not worth their memory.
            if free.len() < KEPT && self.memory.len() <= 2 * PIECE {
                free.push(std::mem::take(&mut self.memory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_to_its_pool() {
        let pool = Pool::default();
        let mut lent = pool.lend(100);
        lent.bytes().fill(7);
        let buffer = lent.into_buffer();
        let start = buffer.as_ptr();
        assert_eq!(*buffer, [7; 100]);
        assert_ne!(pool.lend(50).memory.as_ptr(), start);
        drop(buffer);
        let again = [pool.lend(60), pool.lend(60)];
        assert!(again.iter().any(|lent| lent.memory.as_ptr() == start));
        drop(pool);
        drop(again);
    }
}
