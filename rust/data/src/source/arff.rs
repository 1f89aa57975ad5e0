//! ARFF files as a source.

use std::path::Path;

use arrow_schema::SchemaRef;
use ferrank_arff::{ArffError, Header, is_arff};
use ferrank_runtime::error::{Error, Result};

use super::chunking::rows_per_chunk;
use super::file::InputFile;
use super::{ChunkSource, Chunks};

/// An ARFF file.
///
/// ```
/// use ferrank_data::source::{ArffSource, ChunkSource};
///
/// let path = std::env::temp_dir().join(format!("ferrank-{}-doc.arff", std::process::id()));
/// std::fs::write(&path, "@relation r\n@attribute x numeric\n@attribute y {a,b}\n@data\n1,a\n2,b\n").unwrap();
/// let source = ArffSource::open(&path)?;
/// assert_eq!(source.schema().field(1).name(), "y");
/// assert_eq!(source.chunks()?.next().unwrap()?.num_rows(), 2);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct ArffSource {
    file: InputFile,
    header: Header,
}

impl ArffSource {
    /// Reads the header of the ARFF file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or its header is not ARFF.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_file(InputFile::open(path)?)
    }

    pub(super) fn from_file(file: InputFile) -> Result<Self> {
        let header = Header::read(file.text()).map_err(|error| in_file(&file, error))?;
        Ok(ArffSource { header, file })
    }

    /// Returns true if `bytes` begin like ARFF.
    pub(super) fn recognises(bytes: &[u8]) -> bool {
        is_arff(bytes)
    }
}

impl ChunkSource for ArffSource {
    fn schema(&self) -> SchemaRef {
        self.header.schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let rows = rows_per_chunk(self.header.schema().fields().len());
        let batches = self.header.batches(self.file.text(), rows);
        Ok(Box::new(batches.map(|batch| batch.map_err(|error| in_file(&self.file, error)))))
    }

    fn name(&self) -> &str {
        &self.file.name
    }
}

fn in_file(file: &InputFile, error: ArffError) -> Error {
    let separator = if matches!(error, ArffError::Syntax { .. }) { ", " } else { ": " };
    Error::Data(format!("{}{separator}{error}", file.name))
}
