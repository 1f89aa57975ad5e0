//! Numbers as differences (DELTA_BINARY_PACKED), in which pages say how long their texts are. They are checked before the
//! decoder sees them: it allocates as many lengths as a page claims.

/// Bits of a length.
const MOST_BITS: usize = 32;

/// What a page says about the lengths of its texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Bytes that they take in the page.
    pub(super) n_bytes: usize,
    pub(super) count: u64,
    pub(super) longest: u64,
    pub(super) sum: u64,
}

impl Lengths {
    /// The at most `most` lengths that `bytes` begin with; `None` if they are damaged, negative or more.
    pub(super) fn read(bytes: &[u8], most: u64) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (block, minis, count) = (reader.number()?, reader.number()?, reader.number()?);
        let values = usize::try_from(block.checked_div(minis)?).ok()?;
        if count > most || values == 0 || values % 8 != 0 || minis > bytes.len() as u64 {
            return None;
        }
        let (mut lengths, mut value) = (Lengths { count, ..Lengths::default() }, reader.signed()?);
        let mut take = |value: i64| {
            let length = u64::from(u32::try_from(value).ok().filter(|&length| length <= i32::MAX as u32)?);
            (lengths.longest, lengths.sum) = (lengths.longest.max(length), lengths.sum.saturating_add(length));
            Some(())
        };
        let mut left = count;
        if left > 0 {
            take(value)?;
            left -= 1;
        }
        while left > 0 {
            let least = reader.signed()?;
            let widths = reader.bytes(minis as usize)?;
            for &width in widths {
                if left == 0 {
                    break;
                }
                let width = usize::from(width);
                if width > MOST_BITS {
                    return None;
                }
                let packed = reader.bytes(values.checked_mul(width)? / 8)?;
                for place in 0..(values as u64).min(left) as usize {
                    // The decoder counts on 32 bits.
                    value =
                        i64::from(value.wrapping_add(least).wrapping_add(bits(packed, place * width, width)) as i32);
                    take(value)?;
                }
                left = left.saturating_sub(values as u64);
            }
        }
        lengths.n_bytes = bytes.len() - reader.0.len();
        Some(lengths)
    }
}

/// The `width` bits from bit `at` on.
fn bits(bytes: &[u8], at: usize, width: usize) -> i64 {
    let first = at / 8;
    let taken = bytes.get(first..).unwrap_or_default();
    let mut word = [0; 8];
    let n = taken.len().min(word.len());
    word[..n].copy_from_slice(&taken[..n]);
    ((u64::from_le_bytes(word) >> (at % 8)) & ((1 << width) - 1)) as i64
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_specification() {
        // The examples of <https://parquet.apache.org/docs/file-format/data-pages/encodings>, in blocks of 8 values:
        // 7, 5, 3, 1, 2, 3, 4, 5, whose differences are -2 and 1.
        let packed = [8, 1, 8, 14, 3, 2, 0b1100_0000, 0b11_1111, 9];
        let lengths = Lengths { n_bytes: 8, count: 8, longest: 7, sum: 30 };
        assert_eq!(Lengths::read(&packed, 8), Some(lengths));
        assert_eq!(Lengths::read(&packed, 7), None);
        for end in 0..8 {
            assert_eq!(Lengths::read(&packed[..end], 8), None, "cut at {end}");
        }
        // 1, 2, 3, 4, 5: all differences are 1, in no bits.
        let even = Lengths { n_bytes: 6, count: 5, longest: 5, sum: 15 };
        assert_eq!(Lengths::read(&[8, 1, 5, 2, 2, 0], 5), Some(even));
        assert_eq!(Lengths::read(&[8, 1, 2, 2, 5, 0], 5), None, "a negative length");
        assert_eq!(Lengths::read(&[8, 1, 0, 0], 5), Some(Lengths { n_bytes: 4, ..Lengths::default() }));
    }
}
