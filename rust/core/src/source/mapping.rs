//! Read-only files in memory.

use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
use memmap2::Mmap;

use crate::error::{Error, Result};

/// A memory-mapped file with the name that messages use.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub(super) name: String,
    bytes: Arc<Mmap>,
}

impl Mapping {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// No such file, a folder, a pipe or device, an empty file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::file(path, e))?;
        let kind = file.metadata().map_err(|e| Error::file(path, e))?;
        if kind.is_dir() {
            return Err(Error::file(path, IoError::new(ErrorKind::IsADirectory, "is a folder; name a file in it")));
        }
        if !kind.is_file() {
            let message = "is not a regular file; data are read more than once, so save them to a file first";
            return Err(Error::file(path, IoError::new(ErrorKind::InvalidInput, message)));
        }
        if kind.len() == 0 {
            return Err(Error::Data(format!("{}: the file is empty", path.display())));
        }
        Self::of(&file, path.display().to_string()).map_err(|e| Error::file(path, e))
    }

    /// Maps an open file, called `name`.
    pub(super) fn of(file: &File, name: String) -> std::io::Result<Self> {
        // SAFETY: the mapping is read-only and private to this process. As with every mapped file, it
        // must not be cut short by another process while it is read.
        let bytes = unsafe { Mmap::map(file)? };
        Ok(Mapping { name, bytes: Arc::new(bytes) })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole file as an Arrow buffer that keeps the map alive.
    pub(super) fn buffer(&self) -> Buffer {
        let start = NonNull::from_ref(self.bytes()).cast();
        // SAFETY: the pointer and the length are those of the map, which the buffer owns a share of.
        unsafe { Buffer::from_custom_allocation(start, self.bytes.len(), self.bytes.clone()) }
    }
}
