//! Lists of bytes that grow side by side, in pieces of one temporary file.

use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering};

use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::{Scratch, ScratchFile};

/// Most bytes of a list that are written at once.
const PIECE: usize = 32 << 10;

/// Bytes that all lists of a file may wait for together, where memory is scarce.
pub(crate) const WAITING: usize = 4 << 20;

/// A list, whose bytes are in a [`PieceFile`] except for the last.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// What is not yet written.
    pub(crate) waiting: Vec<u8>,
    /// Start and length of each piece in the file.
    written: Vec<(u64, usize)>,
}

impl Pieces {
    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.written.iter().map(|(_, length)| length).sum::<usize>() + self.waiting.len()
    }
}

/// The file of some lists.
#[derive(Debug)]
pub(crate) struct PieceFile {
    file: ScratchFile,
    /// Bytes that are written.
    length: AtomicU64,
    /// Bytes of a list that are written at once.
    piece: usize,
}

impl PieceFile {
    /// A file for `n_lists`, of which up to `waiting` bytes are not yet written.
    ///
    /// # Errors
    /// [`Error::File`](ferrank_runtime::error::Error::File) if there is no folder for it.
    pub(crate) fn new(scratch: &Scratch, n_lists: usize, waiting: usize) -> Result<Self> {
        let piece = PIECE.min(waiting / n_lists.max(1));
        Ok(PieceFile { file: scratch.random_access()?, length: AtomicU64::new(0), piece })
    }

    /// Writes what waits in `list` if it is enough for a piece.
    ///
    /// # Errors
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full.
    pub(crate) fn write(&self, list: &mut Pieces) -> Result<()> {
        if list.waiting.len() >= self.piece { self.finish(list) } else { Ok(()) }
    }

    /// Adds `bytes` to `list`, by way of what waits there only if that is less than a piece.
    ///
    /// # Errors
    /// As for [`PieceFile::write`].
    pub(crate) fn append(&self, list: &mut Pieces, bytes: &[u8]) -> Result<()> {
        if list.waiting.len() + bytes.len() < self.piece {
            list.waiting.extend_from_slice(bytes);
            return Ok(());
        }
        self.finish(list)?;
        self.add(list, bytes)
    }

    /// Writes all that waits in `list`.
    ///
    /// # Errors
    /// As for [`PieceFile::write`].
    pub(crate) fn finish(&self, list: &mut Pieces) -> Result<()> {
        let bytes = take(&mut list.waiting);
        if bytes.is_empty() { Ok(()) } else { self.add(list, &bytes) }
    }

    fn add(&self, list: &mut Pieces, bytes: &[u8]) -> Result<()> {
        let start = self.length.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        list.written.push((start, bytes.len()));
        self.file.write(start, bytes)
    }

    /// Calls `each` with the pieces of `list`, in order. What was written at once is a piece.
    ///
    /// # Errors
    /// The errors of `each`; [`Error::File`](ferrank_runtime::error::Error::File) if the file cannot be read.
    pub(crate) fn read(&self, list: &Pieces, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        for &(start, length) in &list.written {
            bytes.resize(length, 0);
            self.file.read(start, &mut bytes)?;
            each(&bytes)?;
        }
        if list.waiting.is_empty() { Ok(()) } else { each(&list.waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_were_written() {
        let scratch = Scratch::new(None);
        let file = PieceFile::new(&scratch, 2, 20).unwrap();
        let mut lists = [Pieces::default(), Pieces::default()];
        for number in 0..50 {
            let list = &mut lists[usize::from(number % 3 == 0)];
            list.waiting.extend([number; 4]);
            file.write(list).unwrap();
        }
        // The rest of the second list is still in memory.
        file.finish(&mut lists[0]).unwrap();
        for (list, own) in lists.iter().zip([false, true]) {
            let mut found = Vec::new();
            file.read(list, |piece| {
                assert_eq!(piece.len() % 4, 0);
                found.extend_from_slice(piece);
                Ok(())
            })
            .unwrap();
            assert!(
                found.into_iter().eq((0..50).filter(|number| (number % 3 == 0) == own).flat_map(|number| [number; 4]))
            );
        }
    }
}
