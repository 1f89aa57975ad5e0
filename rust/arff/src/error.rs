//! What can be wrong.

use arrow_schema::ArrowError;

/// What is wrong with an ARFF file, and where.
///
/// ```
/// let error = ferrank_arff::Header::read(&b"@relation r\n@attribute x number\n@data\n"[..]).unwrap_err();
/// assert!(matches!(error, ferrank_arff::ArffError::Syntax { line: 2, .. }), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArffError {
    /// The text breaks the rules of the format.
    Syntax {
        /// Line, from 1.
        line: u64,
        /// Character of the line, from 1.
        column: usize,
        /// What was found there, and what would do.
        message: String,
    },
    /// The file cannot be read; what the system said.
    Read(String),
    /// Arrow cannot hold the values, such as more than 2 GiB of text in a batch.
    Arrow(String),
}

impl std::fmt::Display for ArffError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ArffError::Syntax { line, column, message } => write!(f, "line {line}, column {column}: {message}"),
            ArffError::Read(message) | ArffError::Arrow(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ArffError {}

impl From<ArrowError> for ArffError {
    fn from(error: ArrowError) -> Self {
        ArffError::Arrow(error.to_string())
    }
}
