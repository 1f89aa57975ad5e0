//! Which rows are queries, and which of them share a block.

use crate::rng::{Purpose, mix};

/// Rows drawn without replacement, in the order of the draw, which does not depend on anything but the
/// seed, `count` and the number of rows: those whose key is lowest.
pub(crate) fn draw(seed: u64, n_rows: usize, count: usize) -> Vec<u32> {
    let mut keys: Vec<(u64, u32)> =
        (0..n_rows as u32).map(|row| (mix([seed, Purpose::Queries as u64, u64::from(row)]), row)).collect();
    if count < n_rows {
        keys.select_nth_unstable(count);
        keys.truncate(count);
    }
    keys.sort_unstable();
    keys.into_iter().map(|(_, row)| row).collect()
}
