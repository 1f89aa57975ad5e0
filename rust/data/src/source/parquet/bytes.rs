//! The bytes of a Parquet file, as the decoder asks for them.

use std::io::{BufReader, Read, Result as IoResult};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::super::checked::{Checked, catch_decoder_panic};
use super::super::file::InputFile;
use ferrank_runtime::error::{Error, Result};

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

    /// What `work` decodes.
    ///
    /// # Errors
    /// It fails or panics; where the file was changed since it was opened, the error says so.
    pub(super) fn decoded<T>(&self, work: impl FnOnce() -> Checked<T>) -> Result<T> {
        catch_decoder_panic(work).map_err(|what| match self.check() {
            Err(changed) => changed,
            Ok(()) => Error::Data(format!("{}: the Parquet data are damaged or cut off: {what}", self.name())),
        })
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
    type T = BufReader<FromPlace>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(FromPlace { file: self.0.clone(), at: usize::try_from(start)? }))
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

/// A file from some place on.
pub(super) struct FromPlace {
    file: Arc<InputFile>,
    at: usize,
}

impl Read for FromPlace {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let length = self.file.read_some(self.at, into)?;
        self.at += length;
        Ok(length)
    }
}
