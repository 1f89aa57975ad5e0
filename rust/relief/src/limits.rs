//! How much of the rows and of the queries a run holds in memory at once.

use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;

/// Most bytes of what a run can also process in parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// All rows, held together.
    pub(crate) rows: usize,
    /// The queries of a group, with their lists.
    pub(crate) group: usize,
    /// All that is free, for a rule that holds all rows.
    pub(crate) all: usize,
}

/// The limits without a memory limit.
pub(crate) const LIMITS: Limits = Limits { rows: 272 << 20, group: 128 << 20, all: usize::MAX };
/// Memory of reading: a tile of values as columns, as rows and as panels, and columns in conversion.
const READING_BYTES: usize = 40 << 20;

impl Limits {
    /// The limits within `budget`, at most [`LIMITS`], beside targets and contributions of `held` bytes.
    ///
    /// # Errors
    /// `budget` is too small for a block of queries, `block` bytes.
    pub(crate) fn within(budget: Budget, held: usize, block: usize) -> Result<Self> {
        let fixed = held + READING_BYTES;
        let least = fixed + block;
        let left = budget.check(least, "Relief; fewer iterations need less")? - fixed;
        let group = LIMITS.group.min((left / 2).max(block));
        Ok(Limits { rows: LIMITS.rows.min(left - group.min(left)), group, all: left })
    }
}
