//! The rows that are not in a bag.

use std::ops::Range;

use crate::bag::{Bag, BagPlan};
use crate::companions::is_companion;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

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

    /// Those of `rows` that the bag of tree number `tree` is drawn from, numbered from the first. A companion knows the
    /// rows of its subsample alone.
    fn candidates(bags: BagPlan<'_>, tree: u64, rows: Range<usize>) -> Self {
        match is_companion(tree) {
            false => OutOfBagRows::all(rows.len()),
            true => OutOfBagRows::of(&bags.subsample(tree), rows),
        }
    }

    /// The rows outside of `bag`, the bag of tree number `tree`.
    pub(crate) fn outside(bags: BagPlan<'_>, tree: u64, bag: &Bag) -> Self {
        let mut rows = OutOfBagRows::candidates(bags, tree, 0..bags.n_rows());
        rows.remove(0, bag);
        rows
    }

    /// Those of `rows` that are not in the bag of tree number `tree`, numbered from the first. The bag is drawn again,
    /// block by block.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn among(bags: BagPlan<'_>, tree: u64, rows: Range<usize>, monitor: &Monitor) -> Result<Self> {
        let (mut found, mut bag) = (OutOfBagRows::candidates(bags, tree, rows.clone()), Bag::default());
        let mut first = rows.start;
        while first < rows.end {
            monitor.check()?;
            let end = rows.end.min((first + 1).next_multiple_of(CHUNK_ROWS));
            bags.take_rows(tree, first..end, &mut bag);
            found.remove(first - rows.start, &bag);
            first = end;
        }
        Ok(found)
    }

    /// Those of `some` rows, which ascend, that are among `rows`, numbered from the first of these.
    fn of(some: &[u32], rows: Range<usize>) -> Self {
        let mut found = OutOfBagRows { bits: vec![0; rows.len().div_ceil(BITS)], count: 0 };
        for row in some.iter().map(|&row| row as usize).filter(|row| rows.contains(row)) {
            let place = row - rows.start;
            found.bits[place / BITS] |= 1 << (place % BITS);
            found.count += 1;
        }
        found
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
        for base in (0..self.bits.len() * BITS).step_by(CHUNK_ROWS) {
            rows.clear();
            rows.extend(self.block(base));
            each(base, &rows)?;
        }
        Ok(())
    }

    /// The rows of the block that starts with row `base`, relative to it.
    fn block(&self, base: usize) -> impl Iterator<Item = u32> {
        let words = self.bits[base / BITS..].iter().take(CHUNK_ROWS / BITS).enumerate();
        words.flat_map(|(word, &bits)| ones(bits).map(move |bit| (word * BITS + bit) as u32))
    }

    /// The numbers of the rows of the block that starts with row `base`.
    pub(crate) fn numbers(&self, base: usize) -> Vec<u32> {
        self.block(base).map(|row| base as u32 + row).collect()
    }

    /// The places of `rows`, which ascend, among all of these rows in the block that starts with row `base`.
    pub(crate) fn places(&self, base: usize, rows: &[u32]) -> Vec<u32> {
        let mut rest = rows.iter().peekable();
        let is_wanted = |&(_, row): &(u32, u32)| rest.next_if_eq(&&row).is_some();
        (0..).zip(self.block(base)).filter(is_wanted).map(|(place, _)| place).collect()
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
    fn places_count_the_rows_before_in_the_block() {
        let some = [3, 64, 70, CHUNK_ROWS as u32 + 1, CHUNK_ROWS as u32 + 9];
        let rows = OutOfBagRows::of(&some, 0..CHUNK_ROWS + 70);
        assert_eq!(rows.places(0, &[3, 70]), [0, 2]);
        assert_eq!(rows.places(CHUNK_ROWS, &[9]), [1]);
        // Numbered from the first of a part.
        assert!(OutOfBagRows::of(&some, 60..80).iter().eq([4, 10]));
    }

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
