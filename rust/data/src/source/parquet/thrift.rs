//! The structure of what a Parquet file says of itself, which is written in Thrift's compact protocol.
//!
//! It is checked before the decoder sees it: that takes a list of two billion booleans, which it skips one by one, from six
//! bytes, so that a small file would keep it busy for hours.

/// How deep values may lie within each other; the format needs 8.
const DEPTH: u32 = 32;
/// Most bytes of a number.
const DIGITS: usize = 10;

/// Why bytes are no structure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It may go on behind the bytes.
    CutOff,
    Wrong,
}

/// The length of the structure that `bytes` begin with.
pub(super) fn length(bytes: &[u8]) -> Result<usize, Flaw> {
    let mut reader = Reader(bytes);
    reader.structure(DEPTH)?;
    Ok(bytes.len() - reader.0.len())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
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

    fn structure(&mut self, depth: u32) -> Result<(), Flaw> {
        if depth == 0 {
            return Err(Flaw::Wrong);
        }
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            // A difference of 0 from the number of the field before: the number follows.
            if byte >> 4 == 0 {
                self.number()?;
            }
            match byte & 0xf {
                1 | 2 => {} // true and false are types, without a value
                kind => self.value(kind, depth)?,
            }
        }
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
            9 | 10 => self.list(depth),
            12 => self.structure(depth - 1),
            _ => Err(Flaw::Wrong),
        }
    }

    /// Lists of booleans, of which the format has none here, would be read in another way by the decoder.
    fn list(&mut self, depth: u32) -> Result<(), Flaw> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        if depth == 1 {
            return Err(Flaw::Wrong);
        }
        // Each value takes a byte at least.
        if length > self.0.len() as u64 {
            return Err(Flaw::CutOff);
        }
        (0..length).try_for_each(|_| self.value(byte & 0xf, depth - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
