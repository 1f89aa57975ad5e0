//! Scratch files: what a run keeps outside memory.
//!
//! A file has no name in its folder, so it is gone with the run, also after a crash. What was written is
//! mapped, and takes no memory but that of the system; or it is read and written piece by piece, where that, too, is
//! counted as memory of the process and limited.
//!
//! ```
//! use ferrank_runtime::scratch::Scratch;
//!
//! let scratch = Scratch::new(None);
//! let squares = scratch.values((0..3).map(|piece| [piece * piece; 2]))?;
//! assert_eq!(squares[..], [0, 0, 1, 1, 4, 4]);
//! # Ok::<(), ferrank_runtime::Error>(())
//! ```

use std::fs::File;
use std::io::{BufWriter, Error as IoError, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer, ToByteSlice};
use memmap2::{Mmap, MmapMut};
use tracing::debug;

use crate::error::{Error, Result};
use crate::files::{allocate, free_space};

fn is_full(error: &IoError) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// A folder for scratch files.
///
/// ```
/// use std::io::Write;
///
/// use ferrank_runtime::scratch::Scratch;
///
/// let scratch = Scratch::new(None);
/// assert_eq!(scratch.folder(), std::env::temp_dir());
/// let mut file = scratch.file()?;
/// file.write_all(b"codes").map_err(|error| scratch.failed(error))?;
/// assert_eq!(scratch.map(&file)?[..], *b"codes");
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// `folder`, or the system's temporary one.
    pub fn new(folder: Option<&Path>) -> Self {
        Scratch { folder: folder.map_or_else(std::env::temp_dir, PathBuf::from) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that `bytes` of `what` can be written there, before the work that ends with a full disk.
    ///
    /// # Errors
    /// [`Error::Resource`] if there is less space.
    pub fn check(&self, bytes: u64, what: &str) -> Result<()> {
        match free_space(&self.folder) {
            Some(free) if free < bytes => Err(Error::Resource(format!(
                "temp_dir: {} MiB are free in {}, {what} take {} MiB; free space there, name another folder as temp_dir, \
                 or raise memory_limit",
                free >> 20,
                self.folder.display(),
                bytes.div_ceil(1 << 20)
            ))),
            _ => Ok(()),
        }
    }

    /// A new file without a name.
    ///
    /// # Errors
    /// [`Error::File`] if the folder does not exist or cannot be written to.
    pub fn file(&self) -> Result<File> {
        debug!("temporary file in {}", self.folder.display());
        let failed = |error: IoError| match is_full(&error) {
            true => self.failed(error),
            false => {
                let what = format!(
                    "no temporary file can be made there ({error}); make the folder, or name another as temp_dir"
                );
                Error::file(&self.folder, IoError::new(error.kind(), what))
            }
        };
        tempfile::tempfile_in(&self.folder).map_err(failed)
    }

    /// A new file that is read and written at any place.
    ///
    /// # Errors
    /// As for [`Scratch::file`].
    pub fn random_access(&self) -> Result<ScratchFile> {
        Ok(ScratchFile { scratch: self.clone(), file: Mutex::new(self.file()?) })
    }

    /// The error for what failed in the folder.
    pub fn failed(&self, error: IoError) -> Error {
        match is_full(&error) {
            true => Error::file(
                &self.folder,
                IoError::new(error.kind(), "the disk is full; free space there, or name another folder as temp_dir"),
            ),
            false => Error::file(&self.folder, error),
        }
    }

    /// What was written to `file`, as an Arrow buffer that keeps it.
    pub fn map(&self, file: &File) -> Result<Buffer> {
        if file.metadata().map_err(|e| self.failed(e))?.len() == 0 {
            return Ok(Buffer::from(&[] as &[u8]));
        }
        // SAFETY: the file has no name, so no other process can cut it short while it is mapped.
        let map = Arc::new(unsafe { Mmap::map(file) }.map_err(|e| self.failed(e))?);
        let start = NonNull::from_ref(&map[..]).cast();
        // SAFETY: the pointer and the length are those of the map, which the buffer owns a share of.
        Ok(unsafe { Buffer::from_custom_allocation(start, map.len(), map) })
    }

    /// Room for `length` bytes, at least one, in a file of its own. All of it is there, so that a disk that gets full
    /// does no harm later.
    pub fn room(&self, length: usize) -> Result<MmapMut> {
        let file = self.file()?;
        allocate(&file, length as u64).map_err(|e| self.failed(e))?;
        // SAFETY: the file has no name, so no other process can cut it short while it is mapped.
        unsafe { MmapMut::map_mut(&file) }.map_err(|e| self.failed(e))
    }

    /// What was written to `room`, as an Arrow buffer that keeps it.
    pub fn filled(room: MmapMut) -> Buffer {
        let start = NonNull::from_ref(&room[..]).cast();
        let (length, room) = (room.len(), Arc::new(room));
        // SAFETY: the pointer and the length are those of the map, which the buffer owns and nobody writes to.
        unsafe { Buffer::from_custom_allocation(start, length, room) }
    }

    /// `pieces`, one after the other, in a file.
    pub fn values<T: ArrowNativeType>(&self, pieces: impl Iterator<Item = impl AsRef<[T]>>) -> Result<ScalarBuffer<T>> {
        let file = self.file()?;
        let mut writer = BufWriter::new(&file);
        let mut count = 0;
        for piece in pieces {
            let piece = piece.as_ref();
            writer.write_all(piece.to_byte_slice()).map_err(|e| self.failed(e))?;
            count += piece.len();
        }
        writer.flush().map_err(|e| self.failed(e))?;
        drop(writer);
        Ok(ScalarBuffer::new(self.map(&file)?, 0, count))
    }
}

/// A scratch file that threads read and write at any place.
///
/// ```
/// use ferrank_runtime::scratch::Scratch;
///
/// let file = Scratch::new(None).random_access()?;
/// file.write(4, b"codes")?;
/// let mut read = [0; 3];
/// file.read(5, &mut read)?;
/// assert_eq!(read, *b"ode");
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct ScratchFile {
    scratch: Scratch,
    file: Mutex<File>,
}

impl ScratchFile {
    /// Writes `bytes` from byte `at` on.
    ///
    /// # Errors
    /// [`Error::File`] if the disk is full.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.at(at, |file| file.write_all(bytes))
    }

    /// Reads `bytes` from byte `at` on.
    ///
    /// # Errors
    /// [`Error::File`] if there are not so many.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        self.at(at, |file| file.read_exact(bytes))
    }

    fn at(&self, at: u64, work: impl FnOnce(&mut File) -> std::io::Result<()>) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let done = file.seek(SeekFrom::Start(at)).and_then(|_| work(&mut file));
        done.map_err(|error| self.scratch.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_a_file_and_a_missing_folder_is_named() {
        let scratch = Scratch::new(None);
        let pieces: [&[f64]; 3] = [&[1.0, 2.0], &[], &[3.0]];
        assert_eq!(*scratch.values(pieces.into_iter()).unwrap(), [1.0, 2.0, 3.0]);
        assert!(scratch.values(std::iter::empty::<&[u16]>()).unwrap().is_empty());
        let nowhere = Scratch::new(Some(Path::new("/no/such/folder")));
        let error = nowhere.file().unwrap_err().to_string();
        assert!(error.starts_with("/no/such/folder: ") && error.ends_with("or name another as temp_dir"), "{error}");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn what_is_more_than_there_is_space_for_is_an_error_beforehand() {
        let scratch = Scratch::new(None);
        assert!(scratch.check(1, "codes").is_ok());
        let error = scratch.check(1 << 60, "the codes of 10 rows").unwrap_err().to_string();
        assert!(
            error.contains(", the codes of 10 rows take 1099511627776 MiB; free space there, name another"),
            "{error}"
        );
        // Making a file there says what is wrong.
        assert!(Scratch::new(Some(Path::new("/no/such/folder"))).check(1 << 60, "codes").is_ok());
    }
}
