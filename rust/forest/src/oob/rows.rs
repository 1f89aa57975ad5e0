//! The rows that are not in a bag.

use crate::bag::{Bag, BagPlan};
use crate::companions::is_companion;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_runtime::error::Result;

const BITS: usize = u64::BITS as usize;

/// A bit for each row, set if it is not in the bag.
#[derive(Debug, Clone)]
pub(crate) struct OutOfBagRows {
    bits: Vec<u64>,
    /// Rows that are not in the bag.
    count: usize,
}

impl OutOfBagRows {
    /// The rows 0 … `rows` − 1.
    pub(crate) fn all(rows: usize) -> Self {
        let mut bits = vec![u64::MAX; rows.div_ceil(BITS)];
        if !rows.is_multiple_of(BITS) {
            bits[rows / BITS] = (1 << (rows % BITS)) - 1;
        }
        OutOfBagRows { bits, count: rows }
    }

    /// The rows that the bag of tree number `tree` is drawn from. A companion knows those of its subsample alone.
    pub(crate) fn candidates(bags: BagPlan<'_>, tree: u64) -> Self {
        match is_companion(tree) {
            false => OutOfBagRows::all(bags.n_rows()),
            true => OutOfBagRows::of(&bags.subsample(tree), bags.n_rows()),
        }
    }

    /// The rows outside of `bag`, the bag of tree number `tree`.
    pub(crate) fn outside(bags: BagPlan<'_>, tree: u64, bag: &Bag) -> Self {
        let mut rows = OutOfBagRows::candidates(bags, tree);
        rows.remove(0, bag);
        rows
    }

    /// Some of the rows 0 … `n_rows` − 1.
    fn of(rows: &[u32], n_rows: usize) -> Self {
        let mut bits = vec![0; n_rows.div_ceil(BITS)];
        rows.iter().for_each(|&row| bits[row as usize / BITS] |= 1 << (row as usize % BITS));
        OutOfBagRows { bits, count: rows.len() }
    }

    /// Removes the rows of `bag`, which are numbered from `base`.
    pub(crate) fn remove(&mut self, base: usize, bag: &Bag) {
        for row in bag.rows.iter().map(|&row| base + row as usize) {
            self.bits[row / BITS] &= !(1 << (row % BITS));
        }
        self.count -= bag.rows.len();
    }

    /// Keeps the rows for which `wanted` returns true.
    pub(crate) fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        for (word, bits) in self.bits.iter_mut().enumerate() {
            for bit in ones(*bits).filter(|bit| !wanted(word * BITS + bit)) {
                *bits &= !(1 << bit);
                self.count -= 1;
            }
        }
    }

    pub(crate) fn contains(&self, row: usize) -> bool {
        self.bits[row / BITS] >> (row % BITS) & 1 == 1
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rows, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + Clone {
        self.bits.iter().enumerate().flat_map(|(word, &bits)| ones(bits).map(move |bit| word * BITS + bit))
    }

    /// Calls `each` for each block of rows, with the number of the first row of the block, and the rows relative to it.
    pub(crate) fn by_block(&self, mut each: impl FnMut(usize, &[u32]) -> Result<()>) -> Result<()> {
        let mut rows = Vec::new();
        for (block, words) in self.bits.chunks(CHUNK_ROWS / BITS).enumerate() {
            rows.clear();
            for (word, &bits) in words.iter().enumerate() {
                rows.extend(ones(bits).map(|bit| (word * BITS + bit) as u32));
            }
            each(block * CHUNK_ROWS, &rows)?;
        }
        Ok(())
    }
}

/// Positions of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_bag_or_out_of_it() {
        let rows = CHUNK_ROWS + 70;
        let mut bag = Bag::default();
        bag.take_bootstrap(1, 2, rows, 50_000);
        let mut out = OutOfBagRows::all(rows);
        out.remove(0, &bag);
        let mut all: Vec<usize> = out.iter().chain(bag.rows.iter().map(|&row| row as usize)).collect();
        assert_eq!(out.len() + bag.rows.len(), rows);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..rows));
        let mut by_block = Vec::new();
        out.by_block(|base, rows| {
            by_block.extend(rows.iter().map(|&row| base + row as usize));
            Ok(())
        })
        .unwrap();
        assert!(by_block.into_iter().eq(out.iter()));
    }
}
