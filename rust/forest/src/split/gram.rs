//! Inner products of the examples of a small node, for the search of all its candidates.
//!
//! Let d_i = s_i − m·w_i be the centred sums of example i. The gain of a side L, times the weights of both sides, is
//! |Σ_{i ∈ L} d_i|² = Σ_{i,j ∈ L} G_ij with G_ij = d_i·d_j. The cost of a search then does not depend on the number of
//! components.
//!
//! For indicators, d_i·d_j = w_i·w_j·(Σ_{l in both} ω_l − u_i − u_j + v) with u_i = Σ_{l in i} ω_l·p_l,
//! v = Σ_l ω_l·p_l², and p_l the share of the weight of the node that has l.

use pulp::{Arch, Simd, WithSimd};

use super::examples::Examples;
use super::node::Node;
use crate::criterion::Criterion;

/// The most examples of a node; a word has a bit for each.
pub(super) const MOST: usize = 64;

/// The matrix G, and the counts of the examples.
#[derive(Debug, Default)]
pub(crate) struct Gram {
    /// Distance from one row to the next.
    width: usize,
    /// n x width; zeros beyond the examples.
    cells: Vec<f64>,
    /// width; zeros beyond the examples.
    counts: Vec<f64>,
    /// n_whole x width; centred sums, component by component.
    centred: Vec<f64>,
    /// n_indicators; a bit for each example that has the indicator.
    holders: Vec<u64>,
}

impl Gram {
    /// Computes the products of at most [`MOST`] `examples`, all of row weight 1. Rows of G are `width` apart.
    pub(crate) fn open(
        &mut self,
        arch: Arch,
        criterion: &Criterion,
        examples: Examples<'_>,
        node: &Node,
        width: usize,
    ) {
        let n = examples.rows.len();
        self.width = width;
        self.cells.clear();
        self.cells.resize(n * width, 0.0);
        self.counts.clear();
        self.counts.extend(examples.counts.iter().map(|&count| f64::from(count)));
        self.counts.resize(width, 0.0);
        if !criterion.indicator_weight.is_empty() {
            self.set_indicators(criterion, examples, node);
        }
        if criterion.n_whole > 0 {
            self.centre(criterion, examples, node);
            arch.dispatch(AddDense { gram: self, n });
        }
    }

    /// Row `i` of G.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.cells[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn counts(&self) -> &[f64] {
        &self.counts
    }

    fn centre(&mut self, criterion: &Criterion, examples: Examples<'_>, node: &Node) {
        self.centred.clear();
        self.centred.resize(criterion.n_whole * self.width, 0.0);
        for (i, &row) in examples.rows.iter().enumerate() {
            let count = self.counts[i];
            for (c, (value, mean)) in examples.block.dense(row as usize).iter().zip(&node.means).enumerate() {
                self.centred[c * self.width + i] = count * (value - mean);
            }
        }
    }

    /// Sets the products of the indicators. The cells below the diagonal are a buffer for their first part.
    fn set_indicators(&mut self, criterion: &Criterion, examples: Examples<'_>, node: &Node) {
        let labels = |i: usize| {
            let all = examples.block.indicators(examples.rows[i] as usize);
            all.iter().copied().filter(|&label| node.weighted[label as usize] > 0.0)
        };
        let n = examples.rows.len();
        self.holders.resize(criterion.indicator_weight.len(), 0);
        let mut shares = [0.0; MOST];
        for (i, share) in shares.iter_mut().enumerate().take(n) {
            for label in labels(i) {
                let label = label as usize;
                *share += node.weighted[label] / node.weight();
                let holders = &mut self.holders[label];
                *holders |= 1 << i;
                let mut others = *holders;
                while others != 0 {
                    self.cells[i * self.width + others.trailing_zeros() as usize] += criterion.indicator_weight[label];
                    others &= others - 1;
                }
            }
        }
        for i in 0..n {
            labels(i).for_each(|label| self.holders[label as usize] = 0);
        }
        let all = node.squares / (node.weight() * node.weight());
        for i in 0..n {
            for j in 0..=i {
                let common = self.cells[i * self.width + j];
                let product = self.counts[i] * self.counts[j] * (common - shares[i] - shares[j] + all);
                self.cells[i * self.width + j] = product;
                self.cells[j * self.width + i] = product;
            }
        }
    }
}

struct AddDense<'a> {
    gram: &'a mut Gram,
    n: usize,
}

impl WithSimd for AddDense<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Gram { width, cells, centred, .. } = self.gram;
        for (i, row) in cells.chunks_exact_mut(*width).enumerate().take(self.n) {
            let (row, _) = S::as_mut_simd_f64s(row);
            for component in centred.chunks_exact(*width) {
                let own = simd.splat_f64s(component[i]);
                for (cell, &other) in row.iter_mut().zip(S::as_simd_f64s(component).0) {
                    *cell = simd.add_f64s(*cell, simd.mul_f64s(own, other));
                }
            }
        }
    }
}
