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
    /// n_blocks; where each block ends.
    ends: Vec<u64>,
}

/// The fewest blocks of a smaller number of queries: errors come from the differences between blocks.
const FEWEST_OF_COUNT: u64 = 16;

/// The ends of blocks of queries, in the order of the draw.
#[derive(Debug)]
pub(crate) struct BlockEnds {
    n_queries: u64,
    /// Number of blocks of about the same length.
    n_even: u64,
    /// Ends beside those of the even blocks; ascending.
    others: Vec<u64>,
}

impl BlockEnds {
    /// `n_even` blocks of about the same length, parted so that the first queries of each of `counts` are some blocks.
    pub(crate) fn new(n_queries: u64, n_even: u64, counts: impl Iterator<Item = u64>) -> Self {
        let even = BlockEnds { n_queries, n_even, others: Vec::new() };
        let parted =
            |count: u64| (1..=FEWEST_OF_COUNT.min(count)).map(move |part| part * count / FEWEST_OF_COUNT.min(count));
        let ends = counts.filter(|&count| n_even > 0 && count < n_queries).flat_map(parted);
        let mut others: Vec<u64> = ends.filter(|&end| !even.is_even(end)).collect();
        others.sort_unstable();
        others.dedup();
        BlockEnds { others, ..even }
    }

    /// Number of blocks.
    pub(crate) fn n_blocks(&self) -> u64 {
        self.n_even + self.others.len() as u64
    }

    /// Number of blocks up to the end of query number `count`, which is one of the counts.
    pub(crate) fn n_until(&self, count: u64) -> u64 {
        self.n_even_until(count) + self.others.partition_point(|&end| end <= count) as u64
    }

    /// All ends.
    pub(crate) fn ends(&self) -> Vec<u64> {
        let mut ends: Vec<u64> = (1..=self.n_even).map(|block| self.even(block)).collect();
        ends.extend(&self.others);
        ends.sort_unstable();
        ends
    }

    /// The end of the first `blocks` even blocks.
    fn even(&self, blocks: u64) -> u64 {
        (blocks * self.n_queries).checked_div(self.n_even).unwrap_or(0)
    }

    fn is_even(&self, count: u64) -> bool {
        self.even(self.n_even_until(count)) == count
    }

    /// Number of even blocks that end with query number `count` at the latest.
    fn n_even_until(&self, count: u64) -> u64 {
        if self.n_queries == 0 { 0 } else { ((count + 1) * self.n_even).div_ceil(self.n_queries) - 1 }
    }
}

impl<'a> Queries<'a> {
    /// Draws the queries of the rows in `scan`. Queries of a whole data set are split into `blocks`. A part of a data set
    /// draws its share of the queries among its rows, for the blocks `own`.
    pub(super) fn new(params: &ReliefParams, scan: &ScanSummary<'_>, own: Range<u64>, blocks: &BlockEnds) -> Self {
        let all = scan.profile.counts.kept;
        let queries = params.queries(all);
        let draw = |count: u64| params.draw_queries(scan.rows, count);
        if !scan.is_part() {
            return Queries { rows: draw(queries), selection: None, first: 0, ends: blocks.ends() };
        }
        let share = (queries as f64 * (scan.rows as f64 / all as f64)).round() as u64;
        let rows = draw(share.clamp(1, scan.rows));
        let ends = BlockEnds::new(rows.len() as u64, own.end - own.start, std::iter::empty()).ends();
        Queries { rows, selection: None, first: own.start, ends }
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
        blocks: &BlockEnds,
        numbers: &'a [u32],
    ) -> Result<Self> {
        let numbers_of_queries = params.draw_queries(all_rows, params.queries(all_rows));
        let place = |row: &u32| numbers.binary_search(row).map_or(ABSENT, |place| place as u32);
        let rows = numbers_of_queries.iter().map(place).collect();
        let queries = Queries { rows, selection: Some(numbers), first: 0, ends: blocks.ends() };
        match own.into_iter().find(|&block| queries.block(block).contains(&ABSENT)) {
            Some(block) => Err(Error::Data(format!("the selected rows lack a query of block {block}"))),
            None => Ok(queries),
        }
    }

    /// The largest number of queries of a block.
    pub(super) fn largest_block(&self) -> usize {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0) as usize
    }

    /// The group of each of `n_rows` rows, of `n_groups` groups. Queries are in groups by block, of which there are
    /// `all_blocks` in all; other rows are spread at random over these groups.
    pub(super) fn groups(&self, seed: u64, n_rows: usize, n_groups: usize, all_blocks: u64) -> Vec<u8> {
        let n_blocks = self.ends.len() as u64;
        if n_blocks == 0 {
            return Vec::new();
        }
        let group = |block: u64| (block * n_groups as u64 / all_blocks) as u8;
        let other = |row: u64| group(self.first + mix([seed, Purpose::Groups as u64, row]) % n_blocks);
        let mut groups: Vec<u8> = match self.selection {
            None => (0..n_rows as u64).map(other).collect(),
            Some(numbers) => numbers.iter().map(|&row| other(u64::from(row))).collect(),
        };
        for block in self.first..self.first + n_blocks {
            let queries = self.block(block).iter().filter(|query| **query != ABSENT);
            queries.for_each(|&query| groups[query as usize] = group(block));
        }
        groups
    }

    /// The queries of block number `block`.
    pub(super) fn block(&self, block: u64) -> &[u32] {
        let place = (block - self.first) as usize;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.rows[start as usize..self.ends[place] as usize]
    }
}

impl ReliefParams {
    /// Draws `count` queries of `n_rows` rows; in the order of the draw.
    pub(crate) fn draw_queries(&self, n_rows: u64, count: u64) -> Vec<u32> {
        draw(self.seed, n_rows as usize, count as usize)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_ends_a_block() {
        for (n_queries, n_even) in [(700u64, 16u64), (700, 700), (33, 16), (10, 4), (5, 5), (1, 1)] {
            let counts = [1, 2, 7, 9, 100, 350, 699, 700].map(|count: u64| count.min(n_queries));
            let blocks = BlockEnds::new(n_queries, n_even, counts.into_iter());
            let ends = blocks.ends();
            assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
            assert_eq!((ends.len() as u64, ends.last()), (blocks.n_blocks(), Some(&n_queries)));
            for count in counts {
                let until = blocks.n_until(count);
                assert_eq!(ends[until as usize - 1], count);
                assert!(until >= count.min(FEWEST_OF_COUNT), "{until} blocks of {count} queries");
            }
        }
    }

    #[test]
    fn a_single_count_leaves_the_blocks_even() {
        assert_eq!(BlockEnds::new(10, 4, [10].into_iter()).ends(), [2, 5, 7, 10]);
        assert_eq!(BlockEnds::new(0, 0, [0].into_iter()).n_blocks(), 0);
    }
}
