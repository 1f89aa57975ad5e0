//! The one error type of the crate.
//!
//! Every message names the file, column or setting, says what was found, and what would do.

use std::path::PathBuf;

/// Result with this crate's [`Error`].
///
/// ```
/// use ferrank_runtime::error::{Result, check};
///
/// fn validate(n_neighbors: usize) -> Result<()> {
///     check(n_neighbors > 0, "n_neighbors: 0; use at least 1")
/// }
/// assert!(validate(1).is_ok());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in a way the caller can mend.
///
/// ```
/// use ferrank_runtime::error::{Error, check};
///
/// let error = check(false, "n_neighbors: 0; use at least 1").unwrap_err();
/// assert!(matches!(error, Error::Setting(_)));
/// assert_eq!(error.to_string(), "n_neighbors: 0; use at least 1");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data are not what the call needs: a column, a value, a malformed file.
    #[error("{0}")]
    Data(String),
    /// A setting is unknown, out of range, or contradicts another one.
    #[error("{0}")]
    Setting(String),
    /// A column holds a type that cannot be ranked. Separate from `Data` so that it becomes a `TypeError`.
    #[error("{0}")]
    Type(String),
    /// A file cannot be opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Memory or another resource does not do.
    #[error("{0}")]
    Resource(String),
    /// The run was stopped on request.
    #[error("interrupted")]
    Interrupted,
}

/// Ok, or an [`Error::Setting`] that says `message`.
pub fn check(ok: bool, message: impl Into<String>) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::Setting(message.into())) }
}

impl Error {
    /// An [`Error::File`] for `path`.
    pub fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::File { path: path.into(), source }
    }
}

/// Up to three of `names`, each in quotes, nearest to `wanted` first.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> =
        names.map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name)).collect();
    near.sort_unstable();
    near.truncate(3);
    near.into_iter().map(|(_, name)| format!("'{name}'")).collect()
}
