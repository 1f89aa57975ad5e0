//! The sizes of columns in the footer of a Parquet file, which is untrusted.
//!
//! pyarrow gives them, too, and ends the process where the metadata of a column are not there. The footer is written
//! in Thrift's compact protocol; the numbers of fields are those of `parquet.thrift` of the Parquet format.

use ferrank_runtime::error::{Error, Result};

/// How deep values may lie within each other; the format needs 8.
const DEPTH: u32 = 32;

/// Of each row group the number of rows, and the bytes of its columns.
type Groups = Vec<(u64, Vec<u64>)>;

/// Number of rows of each row group, and the bytes of each of its columns, unpacked, from a `footer` without the length and the mark that end a file.
///
/// Columns are the leaves of the schema, in its order.
///
/// # Errors
/// [`Error::Data`] if the footer is damaged, or a row group has not the columns of the schema.
///
/// ```
/// assert!(ferrank_data::source::parquet_sizes(b"\x15\x04").is_err());
/// ```
pub fn parquet_sizes(footer: &[u8]) -> Result<Groups> {
    let damaged = || Error::Data("the footer is damaged; write the file anew".into());
    let (leaves, groups) = file(&mut Reader(footer)).ok_or_else(damaged)?;
    if groups.iter().all(|(_, sizes)| sizes.len() == leaves) { Ok(groups) } else { Err(damaged()) }
}

/// Number of leaves, and the row groups.
fn file(reader: &mut Reader<'_>) -> Option<(usize, Groups)> {
    let (mut leaves, mut groups) = (0, Vec::new());
    reader.fields(|reader, field, kind| match field {
        2 => reader.each(kind, |reader| {
            leaves += is_leaf(reader)? as usize;
            Some(())
        }),
        4 => reader.each(kind, |reader| {
            groups.push(group(reader)?);
            Some(())
        }),
        _ => reader.skip(kind, DEPTH),
    })?;
    Some((leaves, groups))
}

/// Whether an element of the schema is a column: it has a type.
fn is_leaf(reader: &mut Reader<'_>) -> Option<bool> {
    let mut found = false;
    reader.fields(|reader, field, kind| {
        found |= field == 1;
        reader.skip(kind, DEPTH)
    })?;
    Some(found)
}

fn group(reader: &mut Reader<'_>) -> Option<(u64, Vec<u64>)> {
    let (mut rows, mut sizes) = (None, Vec::new());
    reader.fields(|reader, field, kind| match field {
        1 => reader.each(kind, |reader| {
            sizes.push(column(reader)?);
            Some(())
        }),
        3 => {
            rows = u64::try_from(reader.integer(kind)?).ok();
            Some(())
        }
        _ => reader.skip(kind, DEPTH),
    })?;
    Some((rows?, sizes))
}

/// The bytes of a column; none if it does not say.
fn column(reader: &mut Reader<'_>) -> Option<u64> {
    let mut size = None;
    reader.fields(|reader, field, kind| {
        if field != 3 {
            return reader.skip(kind, DEPTH);
        }
        if kind != Kind::Struct {
            return None;
        }
        reader.fields(|reader, field, kind| {
            if field != 6 {
                return reader.skip(kind, DEPTH);
            }
            size = u64::try_from(reader.integer(kind)?).ok();
            Some(())
        })
    })?;
    size
}

/// Types of values, as the protocol numbers them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    True,
    False,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4..=6 => Kind::Integer,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            _ => return None,
        })
    }
}

/// What is still to be read. Its functions return `None` where that is no Thrift.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// A number of seven bits a byte, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self, kind: Kind) -> Option<i64> {
        let number = self.varint().filter(|_| kind == Kind::Integer)?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Calls `each` with the number and the type of each field of a struct; it reads the value.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, Kind) -> Option<()>) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let kind = Kind::of(head & 0xf)?;
            field = match head >> 4 {
                0 => self.integer(Kind::Integer)?,
                step => field.checked_add(i64::from(step))?,
            };
            each(self, field, kind)?;
        }
    }

    /// Calls `each` for each struct of a list; it reads the struct.
    fn each(&mut self, kind: Kind, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let (items, of) = self.list(kind)?;
        if of != Some(Kind::Struct) && items > 0 {
            return None;
        }
        (0..items).try_for_each(|_| each(self))
    }

    /// The length of a list, and the type of what is in it.
    fn list(&mut self, kind: Kind) -> Option<(u64, Option<Kind>)> {
        let head = self.byte().filter(|_| kind == Kind::List)?;
        let items = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Some((items, Kind::of(head & 0xf)))
    }

    /// Passes over a value, in which others lie up to `depth` deep.
    fn skip(&mut self, kind: Kind, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            Kind::True | Kind::False => Some(()),
            Kind::Byte => self.pass(1),
            Kind::Integer => self.varint().map(drop),
            Kind::Double => self.pass(8),
            Kind::Binary => {
                let bytes = self.varint()?;
                self.pass(bytes)
            }
            Kind::List => {
                let (items, of) = self.list(kind)?;
                (0..items).try_for_each(|_| self.skip_item(of?, depth))
            }
            Kind::Map => {
                let items = self.varint()?;
                if items == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 0xf)?);
                (0..items).try_for_each(|_| {
                    self.skip_item(key, depth)?;
                    self.skip_item(value, depth)
                })
            }
            Kind::Struct => self.fields(|reader, _, kind| reader.skip(kind, depth)),
        }
    }

    /// As [`Reader::skip`], in a list or a map, where a truth value takes a byte.
    fn skip_item(&mut self, kind: Kind, depth: u32) -> Option<()> {
        if matches!(kind, Kind::True | Kind::False) { self.pass(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with two columns and a row group for each of `sizes`.
    fn footer(sizes: &[[u8; 2]]) -> Vec<u8> {
        // version = 2; schema = root with two children, two leaves.
        let mut bytes = vec![0x15, 0x04, 0x19, 0x3c];
        bytes.extend([0x48, 1, b'r', 0x15, 0x04, 0]);
        bytes.extend([0x15, 0x0a, 0x38, 1, b'a', 0]);
        bytes.extend([0x15, 0x0a, 0x38, 1, b'y', 0]);
        // num_rows = 3; row_groups.
        bytes.extend([0x16, 0x06, 0x19, (sizes.len() as u8) << 4 | 0xc]);
        for group in sizes {
            bytes.extend([0x19, 0x2c]);
            for size in group {
                // file_offset; meta_data with path_in_schema and total_uncompressed_size.
                bytes.extend([0x26, 0x08, 0x1c, 0x39, 0x18, 1, b'a', 0x36, size << 1, 0, 0]);
            }
            bytes.extend([0x16, 0x02, 0x16, 0x06, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn sizes_are_by_row_group() {
        assert_eq!(parquet_sizes(&footer(&[[3, 5], [7, 9]])).unwrap(), [(3, vec![3, 5]), (3, vec![7, 9])]);
        assert!(parquet_sizes(&footer(&[])).unwrap().is_empty());
    }

    #[test]
    fn any_damage_is_an_error_or_gives_sizes_of_all_columns() {
        let whole = footer(&[[3, 5], [7, 9]]);
        for end in 0..whole.len() {
            assert!(parquet_sizes(&whole[..end]).is_err(), "cut at {end}");
        }
        for place in 0..whole.len() {
            for value in 0..=255 {
                let mut changed = whole.clone();
                changed[place] = value;
                if let Ok(groups) = parquet_sizes(&changed) {
                    assert!(groups.windows(2).all(|pair| pair[0].1.len() == pair[1].1.len()));
                }
            }
        }
    }

    #[test]
    fn a_column_without_metadata_is_an_error() {
        let whole = footer(&[[3, 5]]);
        let meta = whole.windows(2).position(|pair| pair == [0x1c, 0x39]).unwrap();
        let without = [&whole[..meta], &whole[meta + 9..]].concat();
        assert!(parquet_sizes(&without).is_err());
    }

    #[test]
    fn lists_within_lists_end() {
        let deep = [[0x59].as_slice(), &[0x19; 10_000]].concat();
        assert!(parquet_sizes(&deep).is_err());
    }
}
