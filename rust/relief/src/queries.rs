//! The draw of queries, and their blocks.

use std::ops::Range;

use super::params::ReliefParams;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::random::{Purpose, mix};

/// Queries by block.
pub(super) struct Queries {
    /// In the order of the draw.
    rows: Vec<u32>,
    /// Number of the first block.
    first: u64,
    n_blocks: u64,
}

impl Queries {
    /// Draws the queries of the rows in `scan`. Queries of a whole data set are split into `n_blocks` blocks. A part of
    /// a data set draws its share of the queries among its rows, for the blocks `own`.
    pub(super) fn new(params: &ReliefParams, scan: &ScanSummary<'_>, own: Range<u64>, n_blocks: u64) -> Self {
        let all = scan.profile.counts.kept;
        let queries = params.queries(all);
        let draw = |count: u64| draw(params.seed, scan.rows as usize, count as usize);
        if !scan.is_part() {
            return Queries { rows: draw(queries), first: 0, n_blocks };
        }
        let share = (queries as f64 * (scan.rows as f64 / all as f64)).round() as u64;
        Queries { rows: draw(share.clamp(1, scan.rows)), first: own.start, n_blocks: own.end - own.start }
    }

    /// The largest number of queries of a block.
    pub(super) fn largest_block(&self) -> usize {
        self.rows.len().div_ceil(self.n_blocks.max(1) as usize)
    }

    /// The group of each of `n_rows` rows, of `n_groups` groups. Queries are in groups by block, of which there are
    /// `all_blocks` in all; other rows are spread at random over these groups.
    pub(super) fn groups(&self, seed: u64, n_rows: usize, n_groups: usize, all_blocks: u64) -> Vec<u8> {
        if self.n_blocks == 0 {
            return Vec::new();
        }
        let group = |block: u64| (block * n_groups as u64 / all_blocks) as u8;
        let other = |row: u64| group(self.first + mix([seed, Purpose::Groups as u64, row]) % self.n_blocks);
        let mut groups: Vec<u8> = (0..n_rows as u64).map(other).collect();
        for block in self.first..self.first + self.n_blocks {
            self.block(block).iter().for_each(|&query| groups[query as usize] = group(block));
        }
        groups
    }

    /// The queries of block number `block`.
    pub(super) fn block(&self, block: u64) -> &[u32] {
        let (n, count) = (self.rows.len() as u64, self.n_blocks);
        let place = block - self.first;
        &self.rows[(place * n / count) as usize..((place + 1) * n / count) as usize]
    }
}

/// Least number of keys held during a draw.
const LEAST_KEYS: usize = 1 << 16;

/// Draws `count` rows without replacement: those with the smallest random keys, in the order of the keys. The result
/// depends on the arguments alone.
pub(crate) fn draw(seed: u64, n_rows: usize, count: usize) -> Vec<u32> {
    let mut keys: Vec<(u64, u32)> = Vec::with_capacity(n_rows.min(2 * count.max(LEAST_KEYS)));
    let keep = |keys: &mut Vec<(u64, u32)>| {
        if count < keys.len() {
            keys.select_nth_unstable(count);
            keys.truncate(count);
        }
    };
    for row in 0..n_rows as u32 {
        if keys.len() == keys.capacity() {
            keep(&mut keys);
        }
        keys.push((mix([seed, Purpose::Queries as u64, u64::from(row)]), row));
    }
    keep(&mut keys);
    keys.sort_unstable();
    keys.into_iter().map(|(_, row)| row).collect()
}
