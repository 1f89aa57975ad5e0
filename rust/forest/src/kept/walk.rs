//! Rows on their way down a kept tree.

use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use ferrank_data::store::Code;

use crate::oob::{LEAF, PackedTree};

/// Number of rows that are walked together. A step has to wait until its node is in the cache; the waits of several rows
/// overlap.
const GROUP_ROWS: usize = 32;

/// What the leaves of a tree predict.
#[derive(Debug, Clone)]
pub(super) struct LeafValues {
    /// n_nodes + 1; where the components of each node start.
    pub(super) offsets: OffsetBuffer<i32>,
    pub(super) components: ScalarBuffer<u32>,
    pub(super) values: ScalarBuffer<f64>,
}

/// A tree that routes rows, and what its leaves predict.
pub(super) struct RoutedTree {
    /// The columns of steps are positions in the codes of a row.
    pub(super) packed: PackedTree,
    /// n_leaves; the number of the node of each leaf.
    pub(super) leaf_nodes: Vec<u32>,
    pub(super) values: LeafValues,
}

impl std::fmt::Debug for RoutedTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoutedTree").field("n_leaves", &self.leaf_nodes.len()).finish_non_exhaustive()
    }
}

/// The codes of rows, row after row.
pub(super) struct RowCodes<'a, C> {
    /// n_rows x n_columns
    pub(super) codes: &'a [C],
    pub(super) n_columns: usize,
}

impl RoutedTree {
    /// Writes the leaf of each of `rows`.
    pub(super) fn leaves<C: Code>(&self, codes: &RowCodes<'_, C>, rows: &[u32], leaves: &mut [u32]) {
        if self.packed.steps.is_empty() {
            return leaves.fill(0);
        }
        for (rows, leaves) in rows.chunks(GROUP_ROWS).zip(leaves.chunks_mut(GROUP_ROWS)) {
            match self.packed.has_subsets() {
                true => self.walk::<C, true>(codes, rows, leaves),
                false => self.walk::<C, false>(codes, rows, leaves),
            }
        }
    }

    /// Walks at most [`GROUP_ROWS`] rows. Positions modulo the size of a group need no check.
    fn walk<C: Code, const SUBSETS: bool>(&self, codes: &RowCodes<'_, C>, rows: &[u32], leaves: &mut [u32]) {
        let (steps, codes, n_columns) = (&self.packed.steps[..], codes.codes, codes.n_columns);
        let [mut lanes, mut nodes, mut found] = [[0u32; GROUP_ROWS]; 3];
        let mut starts = [0; GROUP_ROWS];
        for ((lane, start), (number, &row)) in lanes.iter_mut().zip(&mut starts).zip((0..).zip(rows)) {
            (*lane, *start) = (number, row as usize * n_columns);
        }
        let mut n = rows.len().min(GROUP_ROWS);
        while n > 0 {
            let mut ahead = 0;
            for i in 0..n {
                let lane = lanes[i % GROUP_ROWS];
                let step = steps[nodes[i % GROUP_ROWS] as usize];
                let code = codes[starts[lane as usize % GROUP_ROWS] + step.column as usize];
                let next = self.packed.next::<C, SUBSETS>(step, code);
                found[lane as usize % GROUP_ROWS] = next & !LEAF;
                // A branch would be unpredictable.
                (lanes[ahead % GROUP_ROWS], nodes[ahead % GROUP_ROWS]) = (lane, next);
                ahead += usize::from(next & LEAF == 0);
            }
            n = ahead;
        }
        leaves.copy_from_slice(&found[..leaves.len()]);
    }

    /// Adds what `leaves`, those of `rows`, predict to `sums`, n x n_components.
    pub(super) fn add(&self, rows: &[u32], leaves: &[u32], n_components: usize, sums: &mut [f64]) {
        let LeafValues { offsets, components, values } = &self.values;
        if n_components == 1 && values.len() == self.leaf_nodes.len() && offsets[0] == 0 {
            // A single number: leaves and values have the same order.
            for (&row, &leaf) in rows.iter().zip(leaves) {
                sums[row as usize] += values[leaf as usize];
            }
            return;
        }
        for (&row, &leaf) in rows.iter().zip(leaves) {
            let node = self.leaf_nodes[leaf as usize] as usize;
            let range = offsets[node] as usize..offsets[node + 1] as usize;
            let sums = &mut sums[row as usize * n_components..][..n_components];
            for (&component, value) in components[range.clone()].iter().zip(&values[range]) {
                sums[component as usize] += value;
            }
        }
    }
}
