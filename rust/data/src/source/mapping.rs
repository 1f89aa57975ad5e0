//! Read-only files in memory.

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
#[cfg(unix)]
use memmap2::Advice;
use memmap2::Mmap;

use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::files::regular;

/// A memory-mapped file with the name that messages use.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub(super) name: String,
    bytes: Arc<Mmap>,
    /// What it maps, where others can reach that.
    file: Option<Arc<Mapped>>,
}

/// A file as it was when it was mapped.
#[derive(Debug)]
struct Mapped {
    path: PathBuf,
    known: Metadata,
}

impl Mapping {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// No such file, a folder, a pipe or device, an empty file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        regular(path)?;
        let file = File::open(path).map_err(|e| Error::file(path, e))?;
        let kind = file.metadata().map_err(|e| Error::file(path, e))?;
        if kind.len() == 0 {
            return Err(Error::Data(format!("{}: the file is empty", path.display())));
        }
        let mapping = Self::from_file(&file, path.display().to_string()).map_err(|e| Error::file(path, e))?;
        Ok(Mapping { file: Some(Arc::new(Mapped { path: path.to_path_buf(), known: kind })), ..mapping })
    }

    /// Maps an open file, called `name`.
    pub(super) fn from_file(file: &File, name: String) -> std::io::Result<Self> {
        // SAFETY: the mapping is read-only and private to this process. As with every mapped file, it must not be
        // cut short by another process while it is read; `check` finds out before each batch.
        let bytes = unsafe { Mmap::map(file)? };
        Ok(Mapping { name, bytes: Arc::new(bytes), file: None })
    }

    /// Ok if the file is as it was. One that took its name since does not matter: the map is that of the old one.
    ///
    /// # Errors
    /// [`Error::Data`] if it was written to, or cut short; reading on would end the process then.
    pub(super) fn check(&self) -> Result<()> {
        let Some(Mapped { path, known }) = self.file.as_deref() else { return Ok(()) };
        match std::fs::metadata(path) {
            Ok(now)
                if is_same(known, &now)
                    && (known.len() != now.len() || known.modified().ok() != now.modified().ok()) =>
            {
                Err(Error::Data(format!(
                    "{}: the file was changed while it was read; leave it alone, and rank again",
                    self.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Has the bytes in `range` brought into memory, while something else is done.
    pub(super) fn fetch(&self, range: Range<usize>) {
        // It is but an advice, which other systems do not take.
        #[cfg(unix)]
        let _ = self.bytes.advise_range(Advice::WillNeed, range.start, range.len());
        #[cfg(not(unix))]
        let _ = range;
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

/// Returns true if two descriptions are of one file.
#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns true if two descriptions are of one file; other systems do not let a mapped file be replaced.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}
