//! What stands in the place of the samples of a column of numbers.

use std::ops::Range;
use std::sync::Arc;

use super::coding::Cuts;
use crate::store::Code;

/// What follows from the samples of a column of numbers.
#[derive(Debug, Clone)]
pub(super) struct Derived {
    pub(super) cuts: Cuts,
    /// Number of distinct values; `None` if there are more than codes.
    pub(super) n_distinct: Option<usize>,
    /// The codes of all rows, where they follow from the ranks of the values.
    pub(super) codes: Option<RowCodes>,
}

/// n_rows; the codes of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowCodes {
    /// If each code is of one byte.
    Narrow(Arc<[u8]>),
    Wide(Arc<[u16]>),
}

impl RowCodes {
    /// Calls `emit` with each of `rows`, counted from the first, and its code.
    pub(crate) fn emit<C: Code>(&self, rows: Range<usize>, emit: impl FnMut(usize, C)) {
        fn each<R: Code, C: Code>(codes: &[R], mut emit: impl FnMut(usize, C)) {
            for (row, &code) in codes.iter().enumerate() {
                emit(row, if code == R::MISSING { C::MISSING } else { C::from_u16(code.index() as u16) });
            }
        }
        match self {
            RowCodes::Narrow(codes) => each(&codes[rows], emit),
            RowCodes::Wide(codes) => each(&codes[rows], emit),
        }
    }
}
