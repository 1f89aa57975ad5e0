//! The examples of a node.

use pulp::{Arch, Simd, WithSimd};

use super::vectors::add_times;
use crate::criterion::{Criterion, EXAMPLES, FIRST, WEIGHT};
use crate::pairs::Pair;
use crate::space::Block;

/// The examples of a node: rows of the block and their multiplicities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) block: &'a Block,
    pub(crate) rows: &'a [u32],
    /// The multiplicity of each row; empty if there are pairs.
    pub(crate) counts: &'a [u32],
    /// The sums of each example, if these are pairs; otherwise empty.
    pub(crate) pairs: &'a [Pair],
}

impl Examples<'_> {
    /// Writes the sums of the examples into `sums`.
    pub(crate) fn total(self, arch: Arch, criterion: &Criterion, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(criterion.len(), 0.0);
        arch.dispatch(Total { examples: self, criterion, sums });
    }

    /// The numbers of the row at `position`, and its multiplicity.
    #[inline(always)]
    pub(super) fn dense(&self, position: usize) -> (&[f64], f64) {
        (self.block.dense(self.rows[position] as usize), f64::from(self.counts[position]))
    }

    /// Adds the example at position `i` to `sums`.
    #[inline(always)]
    pub(crate) fn add(&self, criterion: &Criterion, sums: &mut [f64], i: usize) {
        match self.pairs.get(i) {
            // Pairs of other layouts are not added up one by one, so this is a single component.
            Some(&[count, sum]) => {
                sums[EXAMPLES] += count;
                sums[WEIGHT] += count;
                sums[FIRST] += sum;
            }
            None => criterion.add(sums, self.block, self.rows[i] as usize, f64::from(self.counts[i])),
        }
    }
}

struct Total<'a> {
    examples: Examples<'a>,
    criterion: &'a Criterion,
    sums: &'a mut [f64],
}

impl WithSimd for Total<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for position in 0..self.examples.rows.len() {
            add_row(simd, self.criterion, self.examples, position, self.sums);
        }
    }
}

/// Adds an example to `sums`: [`Criterion::add`] in vectors.
#[inline(always)]
pub(super) fn add_row<S: Simd>(
    simd: S,
    criterion: &Criterion,
    examples: Examples<'_>,
    position: usize,
    sums: &mut [f64],
) {
    let (block, row, count) = (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
    let weight = count * block.weight(row);
    sums[EXAMPLES] += count;
    sums[WEIGHT] += weight;
    let (dense, indicators) = sums[FIRST..].split_at_mut(criterion.width());
    add_times(simd, dense, block.dense(row), count);
    for &indicator in block.indicators(row) {
        indicators[indicator as usize] += weight;
    }
}
