//! The text of a file, in blocks that end where a line does.

use std::io::Read;

use memchr::{memchr, memrchr};

use super::error::ArffError;
use super::text::{LONGEST_LINE, Lines};

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A file that is read block by block.
pub(super) struct Blocks<R> {
    file: R,
    /// The block, and what follows it in its last line.
    buffer: Vec<u8>,
    /// Bytes of the block.
    length: usize,
    pub(super) end_of_line: u8,
    /// Where in the block the next line begins, and the number of the line before it.
    pub(super) at: usize,
    pub(super) number: u64,
    /// Bytes of the file before the block.
    passed: usize,
    is_whole: bool,
}

impl<R: Read> Blocks<R> {
    /// The first block of `file`, behind a byte order mark.
    pub(super) fn new(file: R) -> Result<Self, ArffError> {
        let mut blocks = Blocks {
            file,
            buffer: Vec::new(),
            length: 0,
            end_of_line: b'\n',
            at: 0,
            number: 0,
            passed: 0,
            is_whole: false,
        };
        blocks.fill(BLOCK)?;
        if blocks.buffer.starts_with(MARK) {
            blocks.buffer.drain(..MARK.len());
            blocks.passed = MARK.len();
        }
        // Files of old machines end lines by this alone.
        if memchr(b'\n', &blocks.buffer).is_none() {
            blocks.end_of_line = b'\r';
        }
        blocks.cut()?;
        Ok(blocks)
    }

    /// The block that begins behind `passed` bytes of `file`, of which the line has the number `number`.
    pub(super) fn behind(mut file: R, passed: usize, number: u64, end_of_line: u8) -> Result<Self, ArffError> {
        let skipped = std::io::copy(&mut file.by_ref().take(passed as u64), &mut std::io::sink());
        skipped.map_err(|error| ArffError::Read(error.to_string()))?;
        let mut blocks =
            Blocks { file, buffer: Vec::new(), length: 0, end_of_line, at: 0, number, passed, is_whole: false };
        blocks.fill(BLOCK)?;
        blocks.cut()?;
        Ok(blocks)
    }

    /// The lines of the block that were not taken.
    pub(super) fn lines(&self) -> Lines<'_> {
        Lines::within(&self.buffer[..self.length], self.at, self.number, self.end_of_line)
    }

    /// Byte offset in the file of the next line.
    pub(super) fn position(&self) -> usize {
        self.passed + self.at
    }

    /// True if no line is left in the block.
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.length
    }

    /// The next block; false at the end of the file.
    pub(super) fn next(&mut self) -> Result<bool, ArffError> {
        self.buffer.drain(..self.length);
        self.passed += self.length;
        (self.length, self.at) = (0, 0);
        self.fill(BLOCK)?;
        self.cut()?;
        Ok(self.length > 0)
    }

    /// Makes the block twice as large; false if the file is at its end, or the block is very large.
    pub(super) fn grow(&mut self) -> Result<bool, ArffError> {
        let before = self.length;
        if !self.is_whole && before < LONGEST_LINE {
            self.fill(2 * self.buffer.len())?;
            self.cut()?;
        }
        Ok(self.length > before)
    }

    /// Reads until the buffer holds `size` bytes, or the file ends.
    fn fill(&mut self, size: usize) -> Result<(), ArffError> {
        let more = size.saturating_sub(self.buffer.len()) as u64;
        let read = self.file.by_ref().take(more).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| ArffError::Read(error.to_string()))?;
        self.is_whole = (read as u64) < more;
        Ok(())
    }

    /// Ends the block behind the last line that is whole.
    fn cut(&mut self) -> Result<(), ArffError> {
        loop {
            let end = memrchr(self.end_of_line, &self.buffer).map(|at| at + 1);
            match end {
                _ if self.is_whole => self.length = self.buffer.len(),
                Some(end) => self.length = end,
                // The line is refused for its length where it is read.
                None if self.buffer.len() > LONGEST_LINE => self.length = self.buffer.len(),
                None => {
                    self.fill(2 * self.buffer.len())?;
                    continue;
                }
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_behind_a_line() {
        // Lines of 1 to 300 bytes, and one that is longer than a block.
        let mut text: Vec<u8> =
            (0..20_000).flat_map(|line| [vec![b'x'; line * 7 % 300], vec![b'\n']].concat()).collect();
        text.extend([vec![b'y'; BLOCK + 10], b"\nlast".to_vec()].concat());
        let (mut blocks, mut read, mut n_blocks) = (Blocks::new(&text[..]).unwrap(), Vec::new(), 0);
        loop {
            let block = &blocks.buffer[..blocks.length];
            read.extend_from_slice(block);
            assert!(block.ends_with(b"\n") || read.len() == text.len());
            n_blocks += 1;
            if !blocks.next().unwrap() {
                break;
            }
        }
        assert!(read == text && n_blocks > 3);
    }
}
