//! Files that can be read again and never keep a reader waiting.

use std::fs::Metadata;
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;

use crate::error::{Error, Result};

/// What is known of the regular file at `path`. To be asked before the file is opened, which waits for a writer
/// where it is a pipe.
///
/// # Errors
/// [`Error::File`] if there is none, or it is a folder, a pipe or a device.
///
/// ```
/// # use std::path::Path;
/// use ferrank_runtime::files::regular;
///
/// assert!(regular(Path::new("Cargo.toml")).is_ok());
/// assert!(regular(Path::new(".")).is_err());
/// ```
pub fn regular(path: &Path) -> Result<Metadata> {
    let found = std::fs::metadata(path).map_err(|e| Error::file(path, e))?;
    if found.is_dir() {
        return Err(Error::file(path, IoError::new(ErrorKind::IsADirectory, "is a folder; name a file in it")));
    }
    if !found.is_file() {
        let message = "is a pipe or a device; files are read more than once, so save it to a regular one first";
        return Err(Error::file(path, IoError::new(ErrorKind::InvalidInput, message)));
    }
    Ok(found)
}
