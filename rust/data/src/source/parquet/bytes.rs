//! The bytes of a Parquet file, as the decoder asks for them.

use std::io::{Cursor, Error as IoError, Read, Result as IoResult};
use std::sync::Arc;

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
pub(super) struct Positioned(Arc<InputFile>);

impl Positioned {
    pub(super) fn new(file: InputFile) -> Self {
        Positioned(Arc::new(file))
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// Ok if the file is as it was when it was opened.
    pub(super) fn check(&self) -> Result<()> {
        self.0.check()
    }

    /// Reads the footer: the metadata of the file, which say where its pages are.
    ///
    /// # Errors
    /// The file does not end with a footer, or the footer is no Thrift structure.
    pub(super) fn footer(&self) -> Checked<Vec<u8>> {
        let read = |at: usize, bytes: &mut [u8]| self.0.read(at, bytes).map_err(|error| error.to_string());
        let tail = self.0.len().checked_sub(TAIL).ok_or("it has no footer")?;
        let (mut length, mut mark) = ([0; 4], [0; 4]);
        read(tail, &mut length)?;
        read(tail + length.len(), &mut mark)?;
        if mark != *MARK {
            return Err("it does not end as Parquet files do".into());
        }
        let length = u32::from_le_bytes(length) as usize;
        let start = tail.checked_sub(length).ok_or("its footer is longer than the file")?;
        let mut footer = vec![0; tail - start];
        read(start, &mut footer)?;
        thrift::length(&footer).map_err(|_| "its footer is no structure")?;
        Ok(footer)
    }

    /// What `work` decodes.
    ///
    /// # Errors
    /// It fails or panics; where the file was changed since it was opened, the error says so.
    pub(super) fn decoded<T>(&self, work: impl FnOnce() -> Checked<T>) -> Result<T> {
        catch_decoder_panic(work).map_err(|what| match self.check() {
            Err(changed) => changed,
            Ok(()) => {
                let what =
                    PREFIXES.iter().fold(what.as_str(), |what, prefix| what.strip_prefix(prefix).unwrap_or(what));
                Error::Data(format!("{}: {DAMAGED}: {what}", self.name()))
            }
        })
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

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl ChunkReader for Positioned {
    type T = Header;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(Header { file: self.clone(), at: usize::try_from(start)?, bytes: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let at = usize::try_from(start)?;
        // What a file claims is not allocated before it is seen to be there.
        if at.checked_add(length).is_none_or(|end| end > self.0.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {at} are beyond the end")));
        }
        let mut bytes = vec![0; length];
        self.0.read(at, &mut bytes).map_err(|error| ParquetError::General(error.to_string()))?;
        Ok(bytes.into())
    }
}

/// The header of a page, which is all that is read byte by byte; it is checked once it is asked for.
pub(super) struct Header {
    file: Positioned,
    at: usize,
    bytes: Option<Cursor<Vec<u8>>>,
}

impl Header {
    fn checked(&self) -> Checked<Vec<u8>> {
        let wrong = || Err(format!("there is no header of a page at byte {}", self.at));
        for most in HEADERS {
            let mut bytes = vec![0; most.min(self.file.0.len().saturating_sub(self.at))];
            self.file.0.read(self.at, &mut bytes).map_err(|error| error.to_string())?;
            match thrift::length(&bytes) {
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
