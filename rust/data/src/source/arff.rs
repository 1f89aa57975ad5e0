//! ARFF files as a source, over a memory map.

use std::path::Path;

use arrow_schema::SchemaRef;
use ferrank_arff::{ArffError, Header, is_arff};
use ferrank_runtime::error::{Error, Result};

use super::chunking::rows_per_chunk;
use super::mapping::Mapping;
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
    mapping: Mapping,
    header: Header,
}

impl ArffSource {
    /// Reads the header of the ARFF file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or its header is not ARFF.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_mapping(Mapping::open(path)?)
    }

    pub(super) fn from_mapping(mapping: Mapping) -> Result<Self> {
        let header = Header::read(mapping.bytes()).map_err(|error| in_file(&mapping, error))?;
        Ok(ArffSource { header, mapping })
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
        let mut batches = self.header.batches(self.mapping.bytes(), rows);
        let mut changed = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if changed {
                return None;
            }
            if let Err(error) = self.mapping.check() {
                changed = true;
                return Some(Err(error));
            }
            batches.next().map(|batch| batch.map_err(|error| in_file(&self.mapping, error)))
        })))
    }

    fn name(&self) -> &str {
        &self.mapping.name
    }
}

fn in_file(mapping: &Mapping, error: ArffError) -> Error {
    let separator = if matches!(error, ArffError::Syntax { .. }) { ", " } else { ": " };
    Error::Data(format!("{}{separator}{error}", mapping.name))
}
