//! The pages of a column, which are checked before the decoder sees them: it allocates what they claim.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::super::checked::Checked;
use super::super::chunking::sized;
use super::bytes::{ColumnBytes, Positioned, said};
use super::delta::Lengths;

/// Most bytes of a value of a fixed length.
const MOST_FIXED: usize = 1 << 20;
/// Bytes of texts that may follow from each other, of whose beginnings a page has one copy.
const SHARED: usize = 4 << 10;
/// Bytes that pages of a column may take, whatever the footer says.
const UNCLAIMED: usize = sized(4 << 20, 1_000);
/// Most bytes of pages whose rows are decoded together.
const TOGETHER: usize = sized(256 << 20, 4_000);

/// Bytes of the pages of some columns since rows were last taken from them.
pub(super) type Taken = Arc<AtomicUsize>;

/// A column of a row group.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) file: &'a Positioned,
    pub(super) described: &'a ColumnChunkMetaData,
    pub(super) rows: usize,
}

impl Column<'_> {
    pub(super) fn pages(self, taken: Taken) -> ParquetResult<CheckedPages> {
        let claimed = usize::try_from(self.described.uncompressed_size()).unwrap_or(0);
        let bytes = Arc::new(ColumnBytes::new(self.file.clone(), claimed.max(UNCLAIMED)));
        let column = self.described.column_descr();
        Ok(CheckedPages {
            pages: SerializedPageReader::new(bytes, self.described, self.rows, None)?,
            least: least(column),
            levels: [column.max_rep_level(), column.max_def_level()],
            rows: self.rows as u64,
            n_values: 0,
            n_bytes: 0,
            claimed,
            taken,
        })
    }

    /// Bytes that a row may take: of its longest text that pages need not have for each row, or of all texts on average.
    pub(super) fn row_bytes(self) -> Checked<usize> {
        let rows = self.rows.max(1);
        let mean = usize::try_from(self.described.uncompressed_size()).unwrap_or(usize::MAX) / rows;
        let per_row = usize::try_from(self.described.num_values()).unwrap_or(usize::MAX).div_ceil(rows);
        match self.widest()? {
            0 => Ok(0),
            widest => Ok(widest.saturating_mul(per_row).max(mean)),
        }
    }

    /// Bytes of the longest value that a page need not have for each row; of numbers 0.
    fn widest(self) -> Checked<usize> {
        let column = self.described.column_descr();
        match column.physical_type() {
            Type::FIXED_LEN_BYTE_ARRAY => {
                let width = usize::try_from(column.type_length()).unwrap_or(usize::MAX);
                if width > MOST_FIXED {
                    return Err(format!("values of {width} bytes each"));
                }
                Ok(width)
            }
            Type::BYTE_ARRAY => {
                let mut pages = self.pages(Taken::default()).map_err(said)?;
                let is_dictionary = pages.peek_next_page().map_err(said)?.is_some_and(|page| page.is_dict);
                let dictionary = if is_dictionary { pages.get_next_page().map_err(said)? } else { None };
                let follow = self.described.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY);
                let longest = dictionary.map_or(0, |page| longest(page.buffer()));
                Ok(longest.max(if follow { SHARED } else { 1 }))
            }
            _ => Ok(0),
        }
    }
}

/// Bytes of the longest of the texts in a dictionary.
fn longest(mut dictionary: &[u8]) -> usize {
    let mut longest = 0;
    while let Some((length, rest)) = dictionary.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some(rest) = rest.get(length..) else { break };
        (longest, dictionary) = (longest.max(length), rest);
    }
    longest
}

/// The least bytes of a value in a dictionary.
fn least(column: &ColumnDescriptor) -> u64 {
    match column.physical_type() {
        Type::BOOLEAN => 0,
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).unwrap_or(u64::MAX),
    }
}

/// Pages whose claims were checked.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<ColumnBytes>,
    least: u64,
    /// The highest levels of repetition and definition.
    levels: [i16; 2],
    rows: u64,
    /// Values and bytes of the pages so far.
    n_values: u64,
    n_bytes: usize,
    /// Bytes that all pages take as the footer says.
    claimed: usize,
    taken: Taken,
}

impl CheckedPages {
    fn check(&mut self, page: &Page) -> Checked<()> {
        let (bytes, count) = (page.buffer(), u64::from(page.num_values()));
        let mut n_bytes = bytes.len();
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if self.n_bytes > self.claimed.max(UNCLAIMED) {
            return Err("pages take more bytes than the footer says".into());
        }
        if let Page::DictionaryPage { .. } = page {
            return match count.saturating_mul(self.least) > n_bytes as u64 {
                true => Err("a dictionary claims more values than it has".into()),
                false => Ok(()),
            };
        }
        self.n_values = self.n_values.saturating_add(count);
        let most = match self.levels[0] {
            0 => self.rows,
            // A list of the same value may take next to nothing.
            _ => (64 * self.rows + (4 << 20)).min(self.rows + (1 << 20) + 8 * self.n_bytes as u64),
        };
        if self.n_values > most {
            return Err("pages claim more values than there can be".into());
        }
        if let Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY = page.encoding() {
            let lengths = self.lengths(page).ok_or("lengths of texts are damaged")?;
            if lengths.longest as usize > SHARED && lengths.sum as usize > 16 * n_bytes + (1 << 20) {
                return Err("texts of a page share too many bytes; write them in another encoding".into());
            }
            n_bytes = n_bytes.max(lengths.sum as usize);
        }
        let taken = self.taken.fetch_add(n_bytes, Ordering::Relaxed).saturating_add(n_bytes);
        if taken > TOGETHER {
            return Err("texts take too much memory; write fewer rows to a row group, or leave the column out".into());
        }
        Ok(())
    }

    /// The lengths of the texts of a page, as they are once they are unpacked.
    fn lengths(&self, page: &Page) -> Option<Lengths> {
        let count = u64::from(page.num_values());
        let values = page.buffer().get(self.start_of_values(page)?..)?;
        let first = Lengths::read(values, count)?;
        if page.encoding() == Encoding::DELTA_LENGTH_BYTE_ARRAY {
            return Some(first);
        }
        // First the lengths of the prefixes that texts share with the text before, then the lengths of their suffixes.
        let own = Lengths::read(&values[first.n_bytes..], count)?;
        (first.count == own.count).then(|| Lengths {
            n_bytes: first.n_bytes + own.n_bytes,
            count,
            longest: first.longest + own.longest,
            sum: first.sum.saturating_add(own.sum),
        })
    }

    /// Where the values of a page begin, behind its levels.
    fn start_of_values(&self, page: &Page) -> Option<usize> {
        match page {
            Page::DataPage { buf, num_values, rep_level_encoding, def_level_encoding, .. } => {
                let encodings = [rep_level_encoding, def_level_encoding];
                let levels = self.levels.iter().zip(encodings).filter(|(most, _)| **most > 0);
                levels.into_iter().try_fold(0_usize, |start, (&most, &encoding)| match encoding {
                    Encoding::RLE => {
                        let length = buf.get(start..start.checked_add(4)?)?;
                        start.checked_add(4 + u32::from_le_bytes(length.try_into().ok()?) as usize)
                    }
                    _ => {
                        let bits = (i16::BITS - most.leading_zeros()) as usize;
                        start.checked_add((*num_values as usize * bits).div_ceil(8))
                    }
                })
            }
            Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
                (*rep_levels_byte_len as usize).checked_add(*def_levels_byte_len as usize)
            }
            Page::DictionaryPage { .. } => None,
        }
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page)).map_err(ParquetError::General)?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// The pages of a column in one row group.
pub(super) struct OfColumn(pub(super) Option<CheckedPages>);

impl Iterator for OfColumn {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for OfColumn {}
