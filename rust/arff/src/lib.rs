//! ARFF files, dense and sparse, as Arrow record batches.
//!
//! ```
//! let text = b"@relation r\n@attribute x numeric\n@attribute y {a, b}\n@data\n1.5,a\n?,b\n";
//! let header = ferrank_arff::Header::read(&text[..])?;
//! assert_eq!(header.schema().field(1).name(), "y");
//! let batches: Vec<_> = header.batches(&text[..], 65_536).collect::<Result<_, _>>()?;
//! assert_eq!(batches[0].num_rows(), 2);
//! # Ok::<(), ferrank_arff::ArffError>(())
//! ```
//!
//! Where the format leaves a choice, or readers differ:
//!
//! - `?` is missing, `'?'` is the value of that name; a number that is NaN is missing too.
//! - A value that a sparse row leaves out is 0, or the first declared value, or (text) missing.
//! - Sparse rows count the attributes from 0 (Weka, MULAN) or from 1 (CLUS).
//! - Text is UTF-8; a name or value that is not is read as Latin-1.
//! - Dates are kept as text. Instance weights and relational attributes are errors.
//! - Values are separated by commas or tabs; a comma at the end of a row is ignored.
//! - An attribute of CLUS's type `hierarchical` is text; its declaration is in the field's metadata under
//!   [`HIERARCHY`].
//!
//! A file is read in blocks of 1 MiB, never mapped: one that is cut short while it is read is an error at most.
//! Memory: the header, a block, and one batch from at most 32 MiB of text.

mod blocks;
mod column;
mod error;
mod header;
mod row;
mod text;

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use blocks::Blocks;
pub use error::ArffError;
use header::Attribute;
pub use header::HIERARCHY;
use row::{Rows, SparseBase};
use text::{Fault, Lines};

/// Most text of a batch, which bounds the memory that long texts take.
const BATCH_BYTES: usize = 32 << 20;

/// Returns true if `bytes` begin like ARFF: after blank lines and comments, with a keyword of its header.
pub fn is_arff(bytes: &[u8]) -> bool {
    // A large file of another kind is not searched to its end for a line.
    let start = &bytes[..bytes.len().min(1 << 20)];
    let first = Lines::new(without_mark(start)).next_full().ok().flatten().unwrap_or_default().trim_ascii_start();
    [&b"@relation"[..], b"@attribute", b"@data"]
        .iter()
        .any(|word| first.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
}

/// The header of an ARFF file.
///
/// ```
/// let text = b"@relation r\n@attribute x numeric\n@attribute y {a, b}\n@data\n1.5,a\n";
/// let header = ferrank_arff::Header::read(&text[..])?;
/// assert_eq!(header.schema().fields().len(), 2);
/// # Ok::<(), ferrank_arff::ArffError>(())
/// ```
#[derive(Debug)]
pub struct Header {
    schema: SchemaRef,
    attributes: Vec<Attribute>,
    /// Byte offset of the first row.
    rows_at: usize,
    /// Line before the first row.
    rows_line: u64,
    end_of_line: u8,
    /// The number of the first attribute in sparse rows.
    base: usize,
}

impl Header {
    /// Reads the header of an ARFF file, and as many sparse rows as it takes to see from which number they count the
    /// attributes.
    ///
    /// # Errors
    /// [`ArffError::Syntax`] if the header is not ARFF, [`ArffError::Read`] if `file` cannot be read.
    pub fn read(file: impl Read) -> Result<Self, ArffError> {
        let mut blocks = Blocks::new(file)?;
        let attributes = loop {
            let mut lines = blocks.lines();
            match header::read(&mut lines) {
                Ok(attributes) => {
                    (blocks.at, blocks.number) = (lines.position(), lines.number);
                    break attributes;
                }
                Err(fault) => {
                    // A header that goes on behind the block is read with what follows.
                    let (error, is_at_end) = (located(&lines, fault), lines.is_done());
                    if !is_at_end || !blocks.grow()? {
                        return Err(error);
                    }
                }
            }
        };
        let fields: Vec<_> = attributes.iter().map(Attribute::field).collect();
        let (rows_at, rows_line, end_of_line) = (blocks.position(), blocks.number, blocks.end_of_line);
        let mut base = SparseBase::new(attributes.len());
        while !base.look(blocks.lines()) && blocks.next()? {}
        let schema = Arc::new(Schema::new(fields));
        Ok(Header { schema, attributes, rows_at, rows_line, end_of_line, base: base.found() })
    }

    /// The attributes as Arrow fields.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The rows of `file`, whose header this is, in batches of at most `rows` rows.
    pub fn batches<R: Read>(&self, file: R, rows: usize) -> Batches<'_, R> {
        Batches {
            schema: &self.schema,
            most: rows,
            text: Blocks::behind(file, self.rows_at, self.rows_line, self.end_of_line),
            rows: Rows::new(&self.attributes, self.base),
            done: false,
        }
    }
}

/// Iterator over the record batches of an ARFF file; ends with the first error.
///
/// ```
/// let text = b"@relation r\n@attribute x numeric\n@data\n1\n2\n3\n";
/// let header = ferrank_arff::Header::read(&text[..])?;
/// let batches: Vec<_> = header.batches(&text[..], 2).collect::<Result<_, _>>()?;
/// assert_eq!(batches.iter().map(|batch| batch.num_rows()).collect::<Vec<_>>(), [2, 1]);
/// # Ok::<(), ferrank_arff::ArffError>(())
/// ```
pub struct Batches<'a, R> {
    schema: &'a SchemaRef,
    most: usize,
    text: Result<Blocks<R>, ArffError>,
    rows: Rows<'a>,
    done: bool,
}

impl<R: Read> Batches<'_, R> {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArffError> {
        let text = self.text.as_mut().map_err(|error| error.clone())?;
        let mut taken = 0;
        while self.rows.len() < self.most && taken < BATCH_BYTES {
            if text.is_done() && !text.next()? {
                break;
            }
            let mut lines = text.lines();
            let start = lines.position();
            while self.rows.len() < self.most && taken + lines.position() - start < BATCH_BYTES {
                let line = lines.next_full().map_err(|fault| located(&lines, fault))?;
                let Some(line) = line else { break };
                self.rows.read(line).map_err(|fault| located(&lines, fault))?;
            }
            taken += lines.position() - start;
            (text.at, text.number) = (lines.position(), lines.number);
        }
        if self.rows.len() == 0 {
            return Ok(None);
        }
        let columns = self.rows.finish()?;
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}

impl<R: Read> Iterator for Batches<'_, R> {
    type Item = Result<RecordBatch, ArffError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.batch().transpose();
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}

/// `bytes` without a byte order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn located(lines: &Lines<'_>, fault: Fault) -> ArffError {
    ArffError::Syntax { line: lines.number, column: lines.column(fault.at), message: fault.what }
}
