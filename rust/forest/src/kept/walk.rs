//! Rows on their way down a kept tree.

use std::ops::Range;

use arrow_array::Array;
use ferrank_data::store::Code;

use super::leaf_values::LeafValues;
use super::nodes::Nodes;
use crate::oob::{LEAF, Link, PackedTree};
use crate::tree_buffer::{BufferedSplit, CodeTest, KNOWN};

/// Number of rows that are walked side by side. A step has to wait until its node is in the cache; the waits of several
/// rows overlap. With 10 lanes and more, which the compiler does not unroll, predictions take 1.4 times as long.
const LANES: usize = 8;

/// Rows that are walked together, at most and at least: upper parts of trees are read once for all of them.
const BLOCK_ROWS: Range<usize> = 256..1 << 16;
/// Codes, and numbers that are predicted, of the rows that are walked together, at most.
const BLOCK_CELLS: usize = 1 << 20;

/// Number of rows of a block, whose rows go down a tree together, if there are `n` rows and `threads` threads. A row has
/// at most `n_cells` codes, and as many predicted numbers.
pub(super) fn rows_of_block(n: usize, n_cells: usize, threads: usize) -> usize {
    let most = (BLOCK_CELLS / n_cells.max(1)).clamp(1, BLOCK_ROWS.end);
    n.div_ceil(threads.max(1)).clamp(BLOCK_ROWS.start.min(most), most)
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
    /// The tree of `nodes`, which may predict `components`. `column_of` tells where the codes of a feature are,
    /// `code_of_cut` the highest code that a cut of a feature sends to the left.
    pub(super) fn new(
        nodes: &Nodes<'_>,
        components: Range<usize>,
        column_of: impl Fn(u32) -> u32,
        code_of_cut: impl Fn(u32, f64) -> u16,
    ) -> Self {
        let (mut packed, mut leaf_nodes) = (PackedTree::default(), Vec::with_capacity(nodes.len() / 2 + 1));
        let mut links: Vec<Option<Link>> = vec![None];
        for node in 0..nodes.len() {
            // In preorder the last link leads to the next node.
            let link = links.pop().flatten();
            if nodes.is_leaf(node) {
                packed.add_leaf(link);
                leaf_nodes.push(node as u32);
                continue;
            }
            let feature = nodes.feature.value(node);
            let test = match nodes.cut.is_valid(node) {
                true if nodes.cut.value(node) == f64::INFINITY => CodeTest::Cut(KNOWN),
                true => CodeTest::Cut(code_of_cut(feature, nodes.cut.value(node))),
                false => CodeTest::Subset(nodes.categories(node).to_vec()),
            };
            let split = BufferedSplit {
                feature: column_of(feature),
                test,
                missing_left: nodes.missing_left.value(node),
                gain: 0.0,
                children: [0; 2],
            };
            links.extend(packed.add_split(link, &split).map(Some).into_iter().rev());
        }
        RoutedTree { packed, leaf_nodes, values: nodes.leaf_values(components) }
    }

    /// Writes the leaf of each of `rows`.
    pub(super) fn leaves<C: Code>(&self, codes: &RowCodes<'_, C>, rows: &[u32], leaves: &mut [u32]) {
        match self.packed.has_subsets() {
            _ if self.packed.steps.is_empty() => leaves.fill(0),
            true => self.walk::<C, true>(codes, rows, leaves),
            false => self.walk::<C, false>(codes, rows, leaves),
        }
    }

    /// Walks some rows side by side. The next row takes the lane of one that has reached its leaf: of all steps only the
    /// last one of a row is hard to predict, and nothing but its node is written at the others.
    fn walk<C: Code, const SUBSETS: bool>(&self, codes: &RowCodes<'_, C>, rows: &[u32], leaves: &mut [u32]) {
        let (steps, n_columns) = (&self.packed.steps[..], codes.n_columns);
        let next = |node: u32, start: usize| {
            let step = steps[node as usize];
            self.packed.next::<C, SUBSETS>(step, codes.codes[start + step.column as usize])
        };
        let mut waiting = rows.iter().enumerate().map(|(place, &row)| (place, row as usize * n_columns));
        let mut lanes = [(0usize, 0usize); LANES];
        let mut nodes = [0u32; LANES];
        let n_lanes = rows.len().min(LANES);
        lanes.iter_mut().zip(&mut waiting).for_each(|(lane, row)| *lane = row);
        if n_lanes == LANES {
            'rows: loop {
                for (lane, node) in lanes.iter_mut().zip(&mut nodes) {
                    *node = next(*node, lane.1);
                    if *node & LEAF != 0 {
                        leaves[lane.0] = *node & !LEAF;
                        let Some(row) = waiting.next() else { break 'rows };
                        (*lane, *node) = (row, 0);
                    }
                }
            }
        }
        for (&(place, start), node) in lanes[..n_lanes].iter().zip(&mut nodes) {
            while *node & LEAF == 0 {
                *node = next(*node, start);
            }
            leaves[place] = *node & !LEAF;
        }
    }

    /// Adds the predictions of leaves to `sums`, n x n_components; `leaves[i]` is the leaf that row `rows[i]` reaches.
    pub(super) fn add(&self, rows: &[u32], leaves: &[u32], n_components: usize, sums: &mut [f64]) {
        match &self.values {
            LeafValues::Dense { first, width, values } => {
                // The compiler unrolls loops of a known length.
                let mut add = |width| add_dense((rows, leaves), (values, width), *first, n_components, sums);
                match *width {
                    1 => add(1),
                    2 => add(2),
                    width => add(width),
                }
            }
            LeafValues::Sparse { offsets, components, values } => {
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
    }
}

/// Adds the `width` values of each of `leaves` to the numbers of its row in `sums`, which start at `first` of `n_components`.
#[inline(always)]
fn add_dense(
    (rows, leaves): (&[u32], &[u32]),
    (values, width): (&[f64], usize),
    first: usize,
    n_components: usize,
    sums: &mut [f64],
) {
    for (&row, &leaf) in rows.iter().zip(leaves) {
        let sums = &mut sums[row as usize * n_components + first..][..width];
        sums.iter_mut().zip(&values[leaf as usize * width..][..width]).for_each(|(sum, value)| *sum += value);
    }
}
