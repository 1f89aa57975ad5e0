//! Codes of features: unsigned integers of one or two bytes.

use arrow_buffer::ArrowNativeType;
use bytemuck::Pod;

use crate::profile::{MISSING_U8, MISSING_U16};

/// An unsigned integer that codes are kept in.
///
/// ```
/// use ferrank_data::store::Code;
///
/// fn known<C: Code>(codes: &[C]) -> Vec<usize> {
///     codes.iter().filter(|&&code| code != C::MISSING).map(|code| code.index()).collect()
/// }
/// // 255 stands for a missing value in one byte, not in two.
/// assert_eq!(known(&[3u8, 255, 0]), [3, 0]);
/// assert_eq!(known(&[3u16, 255, u16::MISSING]), [3, 255]);
/// ```
pub trait Code: ArrowNativeType + Pod + Ord {
    /// The code of a missing value.
    const MISSING: Self;
    /// `code`, which fits.
    fn from_u16(code: u16) -> Self;
    /// The code as an index.
    fn index(self) -> usize;
}

impl Code for u8 {
    const MISSING: u8 = MISSING_U8;
    fn from_u16(code: u16) -> u8 {
        code as u8
    }
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl Code for u16 {
    const MISSING: u16 = MISSING_U16;
    fn from_u16(code: u16) -> u16 {
        code
    }
    fn index(self) -> usize {
        usize::from(self)
    }
}
