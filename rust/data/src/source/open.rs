//! Opening a file by its content.

use std::path::Path;

use super::file::InputFile;
use super::labels::Labelled;
use super::{ArffSource, ChunkSource, IpcSource, ParquetSource};
use ferrank_runtime::error::{Error, Result};

/// Bytes within which a file shows what it is.
const MOST_START: usize = 1 << 20;

/// Opens the file at `path`: Arrow IPC (file or stream), Parquet or ARFF, recognised by the content.
///
/// `labels` is a MULAN label XML; its columns are marked with [`ROLE`](super::ROLE) =
/// [`LABEL`](super::LABEL).
///
/// # Errors
/// The file cannot be read, is of another format (CSV is opened through pyarrow), or a
/// label of the XML is not a column.
pub fn open(path: &Path, labels: Option<&Path>) -> Result<Box<dyn ChunkSource>> {
    let file = InputFile::open(path)?;
    let source: Box<dyn ChunkSource> = if IpcSource::recognises(&file) {
        Box::new(IpcSource::from_file(file)?)
    } else {
        let start = file.start(MOST_START)?;
        if ParquetSource::recognises(&start) {
            Box::new(ParquetSource::from_file(file, None)?)
        } else if ArffSource::recognises(&start) {
            Box::new(ArffSource::from_file(file)?)
        } else {
            return Err(Error::Data(format!("{}: {}", file.name, found(&start))));
        }
    };
    match labels {
        Some(labels) => Ok(Box::new(Labelled::new(source, labels)?)),
        None => Ok(source),
    }
}

/// What a file of another format seems to be, and what would do.
fn found(bytes: &[u8]) -> &'static str {
    const STARTS: [(&[u8], &str); 9] = [
        (b"FEA1", "this is a Feather file of version 1; write version 2"),
        (b"\x1f\x8b", "this file is compressed with gzip; unpack it"),
        (b"\x28\xb5\x2f\xfd", "this file is compressed with zstd; unpack it"),
        (b"PK\x03\x04", "this is a zip archive, as OpenDocument files are; save the table as .xlsx or CSV"),
        (b"\xd0\xcf\x11\xe0", "this is a file of Office before 2007, as .xls is; save the table as .xlsx or CSV"),
        (b"\x89HDF", "this is an HDF5 file; use an Arrow IPC, Parquet or ARFF file"),
        (b"\xff\xfe", "this is text in UTF-16; save it as UTF-8"),
        (b"\xfe\xff", "this is text in UTF-16; save it as UTF-8"),
        (b"<?xml", "this is XML; a label file goes beside the data, not in their place"),
    ];
    match STARTS.iter().find(|(start, _)| bytes.starts_with(start)) {
        Some((_, what)) => what,
        None if bytes[..bytes.len().min(4096)].contains(&0) => {
            "this file is of an unknown binary format; use an Arrow IPC, Parquet or ARFF file"
        }
        None => {
            "this looks like CSV or other text, which is opened from Python; use an Arrow IPC, Parquet or ARFF file"
        }
    }
}
