//! How much of the rows and of the queries a run holds at once.

use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;

/// Most bytes that a run holds of what it could also process in parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Rows, if they are held together.
    pub(crate) rows: usize,
    /// Queries of a group, with their lists.
    pub(crate) group: usize,
}

/// What a run holds at most where memory is not limited further.
pub(crate) const LIMITS: Limits = Limits { rows: 272 << 20, group: 128 << 20 };
/// What reading takes: a tile of values as columns, as rows and as panels, and columns on their way.
const READING_BYTES: usize = 40 << 20;

impl Limits {
    /// What `budget` leaves beside the targets of `n_rows` rows, `targets` bytes each, if that is less than
    /// [`LIMITS`]. A block of queries is to fit, `block` bytes.
    pub(crate) fn within(budget: Budget, n_rows: u64, targets: usize, block: usize) -> Result<Self> {
        let fixed = n_rows as usize * targets + READING_BYTES;
        let least = fixed + block;
        let left = budget.check(least, "Relief; fewer iterations need less")? - fixed;
        let group = LIMITS.group.min((left / 2).max(block));
        Ok(Limits { rows: LIMITS.rows.min(left - group.min(left)), group })
    }
}
