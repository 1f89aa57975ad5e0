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

/// The usual limits. Larger ones save no time, except where rows are read again for each group of queries. With half of
/// the bytes for a group, 10,000 rows x 100 features of 20 classes took 1.2 times the time: their lists did not fit.
pub(crate) const LIMITS: Limits = Limits { rows: 272 << 20, group: 256 << 20, all: usize::MAX };
/// Memory of reading: a tile of values as columns, as rows and as panels, and columns in conversion.
const READING_BYTES: usize = 40 << 20;

impl Limits {
    /// The limits within `budget`, beside targets and contributions of `held` bytes; a block of queries takes `block` bytes,
    /// all of them `queries`.
    ///
    /// If the queries make several groups, more rows than [`LIMITS`] allows are held, as far as memory permits: they would
    /// be read again for each group. A run on 500 rows x 60,000 features with all rows as queries takes .27 of the CPU
    /// time.
    ///
    /// # Errors
    /// `budget` is too small for a block of queries.
    pub(crate) fn within(budget: Budget, held: usize, block: usize, queries: usize) -> Result<Self> {
        let fixed = held + READING_BYTES;
        let least = fixed + block;
        let left = budget.check(least, "Relief (fewer iterations need less)")? - fixed;
        let group = LIMITS.group.min((left / 2).max(block));
        let most_rows = if queries > group { LIMITS.rows.max(left / 2) } else { LIMITS.rows };
        Ok(Limits { rows: most_rows.min(left - group.min(left)), group, all: left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_would_be_read_again_and_again_are_held() {
        let rows = |memory: u64, queries| {
            let limits = Limits::within(Budget::new(Some(memory)), 0, 1 << 20, queries).unwrap();
            limits.rows
        };
        assert_eq!(rows(64 << 30, 1 << 20), LIMITS.rows);
        assert!(rows(64 << 30, 1 << 30) > 16 << 30);
        // Not more than the memory has.
        assert!(rows(1 << 30, 1 << 30) < 1 << 29);
    }
}
