//! ARFF, dense and sparse, read as a stream over a memory map.
//!
//! Where the format leaves room, or readers differ:
//!
//! - `?` is missing, `'?'` is the value so called; a number that is NaN is missing too.
//! - A value that a sparse row leaves out is 0, or the first declared value, or (text) missing.
//! - Sparse rows count the attributes from 0 (Weka, MULAN) or from 1 (CLUS); see [`row::sparse_base`].
//! - Text is UTF-8; a name or value that is not is taken as Latin-1.
//! - Dates are kept as text. Instance weights and relational attributes are errors.
//! - Values are parted by commas or tabs; a comma at the end of a row is ignored.
//!
//! Memory: the header, and one chunk of at most 4 million cells from at most 32 MiB of text.

mod column;
mod header;
mod row;
mod text;

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::chunking::rows_per_chunk;
use super::mapping::Mapping;
use super::{ChunkSource, Chunks};
use crate::error::{Error, Result};
use header::Attribute;
use row::Rows;
use text::{Fault, Lines};

/// Most text of a chunk, so that long texts do not add up.
const CHUNK_BYTES: usize = 32 << 20;

/// An ARFF file.
#[derive(Debug)]
pub struct ArffSource {
    mapping: Mapping,
    schema: SchemaRef,
    attributes: Vec<Attribute>,
    // Where the rows begin, in bytes and in lines.
    rows_at: usize,
    rows_line: u64,
    base: usize,
}

impl ArffSource {
    /// Reads the header of the ARFF file at `path`, and as many sparse rows as it takes to see from
    /// which number they count.
    ///
    /// # Errors
    /// The file cannot be read, or its header is not ARFF.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(Mapping::open(path)?)
    }

    pub(super) fn of(mapping: Mapping) -> Result<Self> {
        let text = without_mark(mapping.bytes());
        let mut lines = Lines::new(text);
        let attributes = header::read(&mut lines).map_err(|fault| located(&mapping, &lines, fault))?;
        let fields: Vec<_> = attributes.iter().map(Attribute::field).collect();
        let base = row::sparse_base(lines.clone(), attributes.len());
        let (rows_at, rows_line) = (lines.position(), lines.number);
        Ok(ArffSource { schema: Arc::new(Schema::new(fields)), attributes, rows_at, rows_line, base, mapping })
    }

    /// Whether `bytes` begin like ARFF: after blank lines and comments, with a word of its header.
    pub(super) fn recognises(bytes: &[u8]) -> bool {
        // A large file of another kind is not searched to its end for a line.
        let start = &bytes[..bytes.len().min(1 << 20)];
        let first = Lines::new(without_mark(start)).next_full().ok().flatten().unwrap_or_default().trim_ascii_start();
        [&b"@relation"[..], b"@attribute", b"@data"]
            .iter()
            .any(|word| first.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }
}

impl ChunkSource for ArffSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(Box::new(Pass {
            source: self,
            lines: Lines::after(without_mark(self.mapping.bytes()), self.rows_at, self.rows_line),
            rows: Rows::new(&self.attributes, self.base),
            done: false,
        }))
    }

    fn name(&self) -> &str {
        &self.mapping.name
    }
}

/// `bytes` without a byte order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn located(mapping: &Mapping, lines: &Lines<'_>, fault: Fault) -> Error {
    let column = lines.column(fault.at);
    Error::Data(format!("{}, line {}, column {column}: {}", mapping.name, lines.number, fault.what))
}

struct Pass<'a> {
    source: &'a ArffSource,
    lines: Lines<'a>,
    rows: Rows<'a>,
    done: bool,
}

impl Pass<'_> {
    fn chunk(&mut self) -> Result<Option<RecordBatch>> {
        self.source.mapping.check()?;
        let rows = rows_per_chunk(self.source.attributes.len());
        let start = self.lines.position();
        while self.rows.len() < rows && self.lines.position() - start < CHUNK_BYTES {
            let line = self.lines.next_full().map_err(|fault| self.located(fault))?;
            let Some(line) = line else { break };
            self.rows.read(line).map_err(|fault| located(&self.source.mapping, &self.lines, fault))?;
        }
        if self.rows.len() == 0 {
            return Ok(None);
        }
        let columns = self.rows.finish().map_err(|e| self.broken(e))?;
        RecordBatch::try_new(self.source.schema.clone(), columns).map(Some).map_err(|e| self.broken(e))
    }

    fn located(&self, fault: Fault) -> Error {
        located(&self.source.mapping, &self.lines, fault)
    }

    fn broken(&self, error: ArrowError) -> Error {
        Error::Data(format!("{}: {error}", self.source.mapping.name))
    }
}

impl Iterator for Pass<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let chunk = self.chunk().transpose();
        self.done = !matches!(chunk, Some(Ok(_)));
        chunk
    }
}
