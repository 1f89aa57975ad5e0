//! The bag of a tree: its rows and their multiplicities.
//!
//! A bootstrap draws an exact number of rows with replacement. The number of draws in each half of the row blocks is
//! binomial, and so on down to a single block, whose rows are drawn one by one. Each level has its own random stream,
//! so that any block can be drawn without the others.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Binomial, Distribution};

use ferrank_data::intake::CHUNK_ROWS;
use ferrank_runtime::random::{Purpose, Stream, stream};

/// Rows of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bag {
    /// Row numbers, ascending.
    pub(crate) rows: Vec<u32>,
    /// The multiplicity of each row.
    pub(crate) counts: Vec<u32>,
    /// Number of draws of each row of a block.
    pub(super) drawn: Vec<u32>,
}

impl Bag {
    /// Puts every row into the bag once.
    pub(crate) fn take_all(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.extend(0..rows as u32);
        self.counts.clear();
        self.counts.resize(rows, 1);
    }

    /// Puts each of `rows`, which ascend, into the bag once.
    pub(crate) fn take_rows(&mut self, rows: Vec<u32>) {
        self.counts.clear();
        self.counts.resize(rows.len(), 1);
        self.rows = rows;
    }

    /// Draws `draws` times from `rows`, which ascend, with replacement.
    pub(crate) fn take_draws(&mut self, rows: &[u32], draws: u64, random: &mut Stream) {
        self.rows.clear();
        self.counts.clear();
        self.draw_block(0, rows.len(), draws, random);
        self.rows.iter_mut().for_each(|row| *row = rows[*row as usize]);
    }

    /// Keeps the rows in `kept`, numbered from the first of them.
    pub(crate) fn keep(&mut self, kept: Range<usize>) {
        let place = |row| self.rows.partition_point(|&other| (other as usize) < row);
        let range = place(kept.start)..place(kept.end);
        self.counts = self.counts[range.clone()].to_vec();
        self.rows = self.rows[range].iter().map(|row| row - kept.start as u32).collect();
    }

    /// Draws the bootstrap replicate of tree number `tree`: `draws` draws from `rows` rows.
    pub(crate) fn take_bootstrap(&mut self, seed: u64, tree: u64, rows: usize, draws: u64) {
        self.take_blocks(seed, tree, rows, draws, 0..rows.div_ceil(CHUNK_ROWS));
    }

    /// Draws the part of the bootstrap replicate in `blocks` of [`CHUNK_ROWS`] rows. Rows are numbered from the first
    /// of these blocks.
    pub(crate) fn take_blocks(&mut self, seed: u64, tree: u64, rows: usize, draws: u64, blocks: Range<usize>) {
        self.rows.clear();
        self.counts.clear();
        let base = blocks.start * CHUNK_ROWS;
        let mut pending = vec![(0, rows.div_ceil(CHUNK_ROWS), 1u64, draws)];
        while let Some((first, last, place, draws)) = pending.pop() {
            if draws == 0 || first >= blocks.end || last <= blocks.start {
                continue;
            }
            let mut random = stream(seed, Purpose::Bag, tree, place);
            if last - first == 1 {
                let first = first * CHUNK_ROWS;
                self.draw_block(first - base, rows.min(first + CHUNK_ROWS) - first, draws, &mut random);
                continue;
            }
            let middle = first.midpoint(last);
            let rows_of = |a: usize, b: usize| (rows.min(b * CHUNK_ROWS) - a * CHUNK_ROWS) as f64;
            let share = rows_of(first, middle) / rows_of(first, last);
            let left = Binomial::new(draws, share).expect("a share is in [0, 1]").sample(&mut random);
            pending.push((middle, last, 2 * place + 1, draws - left));
            pending.push((first, middle, 2 * place, left));
        }
    }

    /// Draws from the `size` rows that start at row `first`.
    fn draw_block(&mut self, first: usize, size: usize, draws: u64, random: &mut Stream) {
        let size = size as u32;
        self.drawn.clear();
        self.drawn.resize(size as usize, 0);
        for _ in 0..draws {
            self.drawn[random.random_range(0..size) as usize] += 1;
        }
        for (row, &count) in self.drawn.iter().enumerate().filter(|&(_, &count)| count > 0) {
            self.rows.push((first + row) as u32);
            self.counts.push(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bootstrap_has_exactly_the_requested_draws_spread_evenly() {
        let rows = 3 * CHUNK_ROWS + 1000;
        let mut bag = Bag::default();
        for draws in [1, 1000, rows as u64] {
            bag.take_bootstrap(7, 3, rows, draws);
            assert_eq!(bag.counts.iter().map(|&c| u64::from(c)).sum::<u64>(), draws);
            assert!(bag.rows.is_sorted_by(|a, b| a < b));
            assert!((*bag.rows.last().unwrap() as usize) < rows);
        }
        bag.take_bootstrap(7, 3, rows, rows as u64);
        let share = bag.rows.len() as f64 / rows as f64;
        assert!((share - 0.632).abs() < 0.003, "{share}");
        let last_block = bag.rows.iter().filter(|&&row| row as usize >= 3 * CHUNK_ROWS).count();
        assert!((500..750).contains(&last_block), "{last_block}");
    }
    #[test]
    fn blocks_drawn_alone_are_those_of_the_whole_bag() {
        let rows = 5 * CHUNK_ROWS + 77;
        let (mut bag, mut block) = (Bag::default(), Bag::default());
        bag.take_bootstrap(3, 1, rows, 100_000);
        let mut joined = Vec::new();
        for number in 0..6 {
            block.take_blocks(3, 1, rows, 100_000, number..number + 1);
            let base = (number * CHUNK_ROWS) as u32;
            joined.extend(block.rows.iter().map(|row| base + row).zip(block.counts.iter().copied()));
        }
        assert!(joined.into_iter().eq(bag.rows.into_iter().zip(bag.counts)));
    }
}
