//! The draw of queries, and their blocks.

use std::ops::Range;

use super::params::ReliefParams;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::random::{Purpose, mix};

/// The place of a row that is not in a selection.
const ABSENT: u32 = u32::MAX;

/// Queries by block.
pub(super) struct Queries<'a> {
    /// In the order of the draw.
    rows: Vec<u32>,
    /// n_rows; the numbers in the data set of the rows of a selection, ascending.
    selection: Option<&'a [u32]>,
    /// Number of the first block.
    first: u64,
    n_blocks: u64,
}

impl<'a> Queries<'a> {
    /// Draws the queries of the rows in `scan`. Queries of a whole data set are split into `n_blocks` blocks. A part of
    /// a data set draws its share of the queries among its rows, for the blocks `own`.
    pub(super) fn new(params: &ReliefParams, scan: &ScanSummary<'_>, own: Range<u64>, n_blocks: u64) -> Self {
        let all = scan.profile.counts.kept;
        let queries = params.queries(all);
        let draw = |count: u64| draw(params.seed, scan.rows as usize, count as usize);
        if !scan.is_part() {
            return Queries { rows: draw(queries), selection: None, first: 0, n_blocks };
        }
        let share = (queries as f64 * (scan.rows as f64 / all as f64)).round() as u64;
        let rows = draw(share.clamp(1, scan.rows));
        Queries { rows, selection: None, first: own.start, n_blocks: own.end - own.start }
    }

    /// The queries of a whole data set of `all_rows` rows, as rows of a selection. The rows of the selection have these
    /// `numbers` in the data set; they ascend, and those of the queries of the blocks `own` are among them.
    ///
    /// # Errors
    /// [`Error::Data`] for a query of these blocks that is not among them.
    pub(super) fn selected(
        params: &ReliefParams,
        all_rows: u64,
        own: Range<u64>,
        n_blocks: u64,
        numbers: &'a [u32],
    ) -> Result<Self> {
        let numbers_of_queries = draw(params.seed, all_rows as usize, params.queries(all_rows) as usize);
        let place = |row: &u32| numbers.binary_search(row).map_or(ABSENT, |place| place as u32);
        let rows = numbers_of_queries.iter().map(place).collect();
        let queries = Queries { rows, selection: Some(numbers), first: 0, n_blocks };
        match own.into_iter().find(|&block| queries.block(block).contains(&ABSENT)) {
            Some(block) => Err(Error::Data(format!("the selected rows lack a query of block {block}"))),
            None => Ok(queries),
        }
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
        let mut groups: Vec<u8> = match self.selection {
            None => (0..n_rows as u64).map(other).collect(),
            Some(numbers) => numbers.iter().map(|&row| other(u64::from(row))).collect(),
        };
        for block in self.first..self.first + self.n_blocks {
            let queries = self.block(block).iter().filter(|query| **query != ABSENT);
            queries.for_each(|&query| groups[query as usize] = group(block));
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
