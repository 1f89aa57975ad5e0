//! Indicators that are missing in the same rows.

use std::ops::Range;

use rustc_hash::FxHashMap;

use ferrank_data::store::Origin;

use super::plan::Variable;

/// Groups of partial indicators, by the rows where they are missing.
#[derive(Default)]
pub(super) struct Groups {
    by_pattern: FxHashMap<Vec<u64>, u32>,
    /// A member of each group.
    pub(super) members: Vec<Origin>,
}

impl Groups {
    /// The number of the group of the indicators of `variable`.
    pub(super) fn number(&mut self, variable: &Variable<'_>) -> u32 {
        let column = variable.column;
        let word = |rows: Range<usize>| {
            rows.enumerate().fold(0, |word, (bit, row)| word | u64::from(column.is_known(row)) << bit)
        };
        let n_rows = column.len();
        let pattern = (0..n_rows).step_by(64).map(|start| word(start..n_rows.min(start + 64))).collect();
        *self.by_pattern.entry(pattern).or_insert_with(|| {
            self.members.push(variable.origin);
            self.members.len() as u32 - 1
        })
    }
}
