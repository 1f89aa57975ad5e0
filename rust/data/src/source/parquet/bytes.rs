//! The bytes of a Parquet file, as the decoder asks for them.

use std::io::{Cursor, Error as IoError, Read, Result as IoResult};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::super::checked::{Checked, catch_decoder_panic};
use super::super::file::InputFile;
use super::thrift::{self, Flaw};
use ferrank_runtime::error::{Error, Result};

/// What files begin and end with.
pub(super) const MARK: &[u8; 4] = b"PAR1";
/// Bytes behind the footer: its length, and the mark that a file ends with.
const TAIL: usize = 8;

const DAMAGED: &str = "the Parquet data are damaged or cut off";

/// What the decoder says in front of what is wrong, in this order.
const PREFIXES: [&str; 3] = ["Parquet argument error: ", "Parquet error: ", "External: "];

/// Bytes that the header of a page takes; one with statistics of long texts takes more than most.
const HEADERS: [usize; 4] = [1 << 10, 1 << 14, 1 << 18, 1 << 26];

/// A file that is read from any place.
#[derive(Debug, Clone)]
pub(super) struct Positioned {
    file: Arc<InputFile>,
    /// Why the file could not be read, of which the decoder gets the words alone.
    failed: Arc<Mutex<Option<Error>>>,
}

impl Positioned {
    pub(super) fn new(file: InputFile) -> Self {
        Positioned { file: Arc::new(file), failed: Arc::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    /// Ok if the file is as it was when it was opened.
    pub(super) fn check(&self) -> Result<()> {
        self.file.check()
    }

    /// Reads the footer: the metadata of the file, which say where its pages are.
    ///
    /// # Errors
    /// The file does not end with a footer, or the footer is no Thrift structure.
    pub(super) fn footer(&self) -> Checked<Vec<u8>> {
        let tail = self.file.len().checked_sub(TAIL).ok_or("it has no footer")?;
        let (mut length, mut mark) = ([0; 4], [0; 4]);
        self.read(tail, &mut length)?;
        self.read(tail + length.len(), &mut mark)?;
        if mark != *MARK {
            return Err("it does not end as Parquet files do".into());
        }
        let length = u32::from_le_bytes(length) as usize;
        let start = tail.checked_sub(length).ok_or("its footer is longer than the file")?;
        let mut footer = vec![0; tail - start];
        self.read(start, &mut footer)?;
        thrift::check_footer(&footer)
            .map_err(|_| "its footer is no structure, or columns lie too deep within others")?;
        Ok(footer)
    }

    /// Fills `into` with what is at byte `at`.
    fn read(&self, at: usize, into: &mut [u8]) -> Checked<()> {
        self.file.read(at, into).map_err(|error| {
            let what = error.to_string();
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            what
        })
    }

    /// What `work` decodes.
    ///
    /// # Errors
    /// It fails or panics. Where the file could not be read, or was changed since it was opened, the error says so.
    pub(super) fn decoded<T>(&self, work: impl FnOnce() -> Checked<T>) -> Result<T> {
        catch_decoder_panic(work).map_err(|what| match self.failure() {
            Some(failed) => failed,
            None => {
                let what =
                    PREFIXES.iter().fold(what.as_str(), |what, prefix| what.strip_prefix(prefix).unwrap_or(what));
                Error::Data(format!("{}: {DAMAGED}: {what}", self.name()))
            }
        })
    }

    /// The error of the last read that failed, or that the file was changed since it was opened, if either is so.
    fn failure(&self) -> Option<Error> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.or_else(|| self.check().err())
    }

    /// `error` of reading `column` alone.
    pub(super) fn in_column(&self, error: Error, column: &str) -> Error {
        match error {
            Error::Data(text) => Error::Data(text.replacen(DAMAGED, &format!("column '{column}' is damaged"), 1)),
            other => other,
        }
    }
}

/// What an error of the decoder says.
pub(super) fn said(error: ParquetError) -> String {
    match error {
        ParquetError::General(what)
        | ParquetError::NYI(what)
        | ParquetError::EOF(what)
        | ParquetError::ArrowError(what) => what,
        other => other.to_string(),
    }
}

/// The bytes of a column.
pub(super) struct ColumnBytes {
    file: Positioned,
    /// Most bytes of a page once it is unpacked.
    most: usize,
}

impl ColumnBytes {
    pub(super) fn new(file: Positioned, most: usize) -> Self {
        ColumnBytes { file, most }
    }
}

impl Length for ColumnBytes {
    fn len(&self) -> u64 {
        self.file.file.len() as u64
    }
}

impl ChunkReader for ColumnBytes {
    type T = Header;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(Header { file: self.file.clone(), at: usize::try_from(start)?, most: self.most, bytes: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let at = usize::try_from(start)?;
        // What a file claims is not allocated before it is seen to be there.
        if at.checked_add(length).is_none_or(|end| end > self.file.file.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {at} are beyond the end")));
        }
        let mut bytes = vec![0; length];
        self.file.read(at, &mut bytes).map_err(ParquetError::General)?;
        Ok(bytes.into())
    }
}

/// The header of a page, which is all that is read byte by byte; it is checked once it is asked for.
pub(super) struct Header {
    file: Positioned,
    at: usize,
    /// Most bytes of the page once it is unpacked.
    most: usize,
    bytes: Option<Cursor<Vec<u8>>>,
}

impl Header {
    fn checked(&self) -> Checked<Vec<u8>> {
        let wrong = || Err(format!("there is no header of a page at byte {}", self.at));
        for most in HEADERS {
            let mut bytes = vec![0; most.min(self.file.file.len().saturating_sub(self.at))];
            self.file.read(self.at, &mut bytes)?;
            match thrift::page_size(&bytes) {
                Ok(size) if size > self.most => return Err("a page takes more bytes than the footer says".into()),
                Ok(_) => return Ok(bytes),
                Err(Flaw::CutOff) => {}
                Err(Flaw::Wrong) => return wrong(),
            }
        }
        wrong()
    }
}

impl Read for Header {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let bytes = match &mut self.bytes {
            Some(bytes) => bytes,
            None => {
                let bytes = self.checked().map_err(IoError::other)?;
                self.bytes.insert(Cursor::new(bytes))
            }
        };
        bytes.read(into)
    }
}
