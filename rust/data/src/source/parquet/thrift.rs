//! The structure of what a Parquet file says of itself, which is written in Thrift's compact protocol.
//!
//! It is checked before the decoder sees it, which takes a list of two billion booleans from six bytes and skips them one by
//! one, so that a small file would keep it busy for hours; which goes down into columns within columns until the stack is
//! full; and which allocates what a page claims.

/// How deep values may lie within each other; the format needs 8.
const DEPTH: u32 = 32;
/// How deep columns may lie within each other; Arrow's readers take less.
const NESTED: usize = 100;
/// Most bytes of a number.
const DIGITS: usize = 10;

/// Why bytes are no structure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It may go on behind the bytes.
    CutOff,
    Wrong,
}

/// Checks a footer (`FileMetaData`).
pub(super) fn check_footer(bytes: &[u8]) -> Result<(), Flaw> {
    Reader(bytes).structure(DEPTH, &mut |reader, field, kind| {
        let is_schema = field == 2;
        if is_schema {
            expect(kind, LIST)?;
            reader.schema(DEPTH - 1)?;
        }
        Ok(is_schema)
    })
}

/// The bytes that a page takes once it is unpacked, as its header (`PageHeader`) claims, with which `bytes` begin.
pub(super) fn page_size(bytes: &[u8]) -> Result<usize, Flaw> {
    let mut size = 0;
    Reader(bytes).structure(DEPTH, &mut |reader, field, kind| {
        let is_size = field == 2;
        if is_size {
            expect(kind, I32)?;
            size = usize::try_from(reader.signed()?).map_err(|_| Flaw::Wrong)?;
        }
        Ok(is_size)
    })?;
    Ok(size)
}

const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCTURE: u8 = 12;

fn expect(kind: u8, wanted: u8) -> Result<(), Flaw> {
    if kind == wanted { Ok(()) } else { Err(Flaw::Wrong) }
}

/// Takes the value of a field of this number and kind, or returns false.
type Take<'t, 'a> = &'t mut dyn FnMut(&mut Reader<'a>, i64, u8) -> Result<bool, Flaw>;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn skip(&mut self, length: u64) -> Result<(), Flaw> {
        let length = usize::try_from(length).map_err(|_| Flaw::Wrong)?;
        self.0 = self.0.get(length..).ok_or(Flaw::CutOff)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Flaw> {
        let (&byte, rest) = self.0.split_first().ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, Flaw> {
        let mut number = 0;
        for digit in 0..DIGITS {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).wrapping_shl(7 * digit as u32);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Flaw::Wrong)
    }

    fn signed(&mut self) -> Result<i64, Flaw> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn structure(&mut self, depth: u32, take: Take<'_, 'a>) -> Result<(), Flaw> {
        if depth == 0 {
            return Err(Flaw::Wrong);
        }
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            // A difference of 0 from the number of the field before: the number follows.
            field = match byte >> 4 {
                0 => self.signed()?,
                step => field.wrapping_add(i64::from(step)),
            };
            let kind = byte & 0xf;
            if !take(self, field, kind)? {
                match kind {
                    1 | 2 => {} // true and false are types, without a value
                    kind => self.value(kind, depth)?,
                }
            }
        }
    }

    /// The columns of a file, each before those within it.
    fn schema(&mut self, depth: u32) -> Result<(), Flaw> {
        let (length, kind) = self.list()?;
        expect(kind, STRUCTURE)?;
        // How many columns are still to come in each of those that the next is within.
        let mut within: Vec<i64> = Vec::new();
        for _ in 0..length {
            let mut n_within = 0;
            self.structure(depth - 1, &mut |reader, field, kind| {
                let is_count = field == 5;
                if is_count {
                    expect(kind, I32)?;
                    n_within = reader.signed()?;
                }
                Ok(is_count)
            })?;
            while within.pop_if(|left| *left == 0).is_some() {}
            if let Some(left) = within.last_mut() {
                *left -= 1;
            }
            if n_within > 0 {
                within.push(n_within);
            }
            if within.len() > NESTED {
                return Err(Flaw::Wrong);
            }
        }
        Ok(())
    }

    fn value(&mut self, kind: u8, depth: u32) -> Result<(), Flaw> {
        match kind {
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            LIST | 10 => {
                let (length, kind) = self.list()?;
                if depth == 1 {
                    return Err(Flaw::Wrong);
                }
                (0..length).try_for_each(|_| self.value(kind, depth - 1))
            }
            STRUCTURE => self.structure(depth - 1, &mut |_, _, _| Ok(false)),
            _ => Err(Flaw::Wrong),
        }
    }

    /// The length of a list, and the kind of its values.
    fn list(&mut self) -> Result<(u64, u8), Flaw> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        // Each value takes a byte at least.
        if length > self.0.len() as u64 {
            return Err(Flaw::CutOff);
        }
        Ok((length, byte & 0xf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the structure that `bytes` begin with.
    fn length(bytes: &[u8]) -> Result<usize, Flaw> {
        let mut reader = Reader(bytes);
        reader.structure(DEPTH, &mut |_, _, _| Ok(false))?;
        Ok(bytes.len() - reader.0.len())
    }

    #[test]
    fn columns_may_lie_within_each_other_but_not_too_deep() {
        // A structure with the number of columns within it.
        let column = |n_within: u8| [0x55, 2 * n_within, 0];
        let footer = |columns: &[u8]| {
            let list = columns.iter().flat_map(|&n_within| column(n_within));
            [0x29, 0xfc, columns.len() as u8].into_iter().chain(list).chain([0]).collect::<Vec<u8>>()
        };
        let deep = |levels: usize| [vec![1; levels], vec![0]].concat();
        assert_eq!(check_footer(&footer(&[3, 1, 0, 2, 0, 0, 0])), Ok(()));
        assert_eq!(check_footer(&footer(&deep(NESTED))), Ok(()));
        assert_eq!(check_footer(&footer(&deep(NESTED + 1))), Err(Flaw::Wrong));
        // Side by side, each is at an end before the next.
        let pairs: Vec<u8> = [60].into_iter().chain((0..60).flat_map(|_| [1, 0])).collect();
        assert_eq!(check_footer(&footer(&pairs)), Ok(()));
        assert_eq!(check_footer(&[0x25, 2, 0]), Err(Flaw::Wrong), "a number for the columns");
    }

    #[test]
    fn the_size_of_a_page_is_that_of_its_header() {
        assert_eq!(page_size(&[0x15, 0, 0x15, 20, 0x15, 8, 0]), Ok(10));
        assert_eq!(page_size(&[0x15, 0, 0x15, 3, 0]), Err(Flaw::Wrong), "a negative size");
        assert_eq!(page_size(&[0x15, 0, 0x16, 20, 0]), Err(Flaw::Wrong), "of another kind");
        assert_eq!(page_size(&[0x15, 0, 0x15]), Err(Flaw::CutOff));
    }

    #[test]
    fn structures_are_measured() {
        // Field 1: 5; field 2: true; field 3: "ab"; field 20: a list of two numbers; field 21: a structure.
        let whole = [0x15, 10, 0x11, 0x18, 2, b'a', b'b', 0x09, 40, 0x25, 1, 0x81, 1, 0x1c, 0x16, 3, 0, 0];
        assert_eq!(length(&whole), Ok(whole.len()));
        assert_eq!(length(&[&whole[..], b"more"].concat()), Ok(whole.len()));
        for end in 0..whole.len() {
            assert_eq!(length(&whole[..end]), Err(Flaw::CutOff), "cut at {end}");
        }
    }

    #[test]
    fn what_the_decoder_would_be_busy_with_is_wrong() {
        let billions = [0xff, 0xff, 0xff, 0xff, 0x07];
        assert_eq!(length(&[&[0x19, 0xf1][..], &billions, &[0, 0]].concat()), Err(Flaw::CutOff));
        assert_eq!(length(&[0x19, 0x21, 1, 1, 0]), Err(Flaw::Wrong));
        assert_eq!(length(&[0x1b, 0, 0]), Err(Flaw::Wrong));
        assert_eq!(length(&[0x1c; 100]), Err(Flaw::Wrong));
        assert_eq!(length(&[0x15; 3].into_iter().chain([0x80; 20]).collect::<Vec<_>>()), Err(Flaw::Wrong));
    }
}
