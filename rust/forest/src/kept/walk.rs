//! Rows on their way down a kept tree.

use std::ops::Range;

use super::codes::RowCoder;
use super::leaf_values::LeafValues;
use super::nodes::Nodes;
use crate::paired::{PairedTree, WalkedCode};

/// Number of rows that are walked side by side. A step has to wait until its node is in the cache; the waits of several
/// rows overlap. With 16 lanes, whose nodes do not fit into registers, predictions take 1.2 to 1.5 times as long.
const LANES: usize = 8;

/// Steps of a row between two looks at where it is.
const STEPS: usize = 4;

/// Levels that all rows of a block descend before they are sorted by the part of the tree that they have reached. The
/// upper levels of a tree fit into the nearest cache.
const TOP_STEPS: usize = 12;
/// The least number of nodes of a tree, and of rows of a block, for which rows are sorted after [`TOP_STEPS`] levels. Rows
/// that follow each other then share the rest of their path, which stays in the cache: predictions take 0.6 to 0.85 of the
/// time that they take without sorting.
pub(super) const ORDERED_FROM: usize = 1 << 12;
/// The greatest number of parts of a tree by which rows are sorted.
const PARTS: usize = 1 << 12;
/// The most bytes of codes of a row for which rows are sorted, since sorting copies the codes.
const MOST_COPIED: usize = 64;

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
pub(super) struct RoutedTree<C: WalkedCode> {
    tree: PairedTree<C>,
    /// n_leaves; the number of the node of each leaf.
    pub(super) leaf_nodes: Vec<u32>,
    values: LeafValues,
}

/// Rows of a block and the leaves that they reach in a tree, with buffers that are reused.
#[derive(Default)]
pub(super) struct RoutedRows<C> {
    /// n_rows; the number of each row.
    pub(super) rows: Vec<u32>,
    /// n_rows; the number of the leaf of each of `rows`.
    pub(super) leaves: Vec<u32>,
    /// n_rows x n_columns; the codes of `rows`, unless they are in their own order.
    codes: Vec<C>,
    /// Where the rows of each part of the tree start.
    starts: Vec<u32>,
    /// A buffer for places.
    places: Vec<u32>,
}

impl<C: WalkedCode> RoutedRows<C> {
    /// Puts rows roughly into the order of their places, of which there are `n_places`: rows in the same of [`PARTS`] parts
    /// of the tree follow each other.
    fn order(&mut self, codes: &[C], n_columns: usize, n_places: usize) {
        std::mem::swap(&mut self.places, &mut self.leaves);
        let shift = (n_places / PARTS).checked_ilog2().map_or(0, |log| log + 1);
        let part = |place: u32| (place >> shift) as usize;
        self.starts.clear();
        self.starts.resize(part(n_places as u32) + 2, 0);
        self.places.iter().for_each(|&place| self.starts[part(place) + 1] += 1);
        for part in 1..self.starts.len() {
            self.starts[part] += self.starts[part - 1];
        }
        self.leaves.resize(self.places.len(), 0);
        for (row, &place) in (0..).zip(&self.places) {
            let at = &mut self.starts[part(place)];
            self.rows[*at as usize] = row;
            self.leaves[*at as usize] = place;
            *at += 1;
        }
        self.codes.clear();
        self.rows.iter().for_each(|&row| self.codes.extend_from_slice(&codes[row as usize * n_columns..][..n_columns]));
    }
}

impl<C: WalkedCode> std::fmt::Debug for RoutedTree<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoutedTree").field("n_leaves", &self.leaf_nodes.len()).finish_non_exhaustive()
    }
}

impl<C: WalkedCode> RoutedTree<C> {
    /// The tree of `nodes`, which may predict `components`, for codes that `coder` makes.
    pub(super) fn new(nodes: &Nodes<'_>, components: Range<usize>, coder: &RowCoder) -> Self {
        let n = nodes.len();
        let mut tree = PairedTree::new(n);
        let mut leaf_nodes = Vec::with_capacity(n / 2 + 1);
        for node in 0..n {
            if nodes.is_leaf(node) {
                tree.add_leaf();
                leaf_nodes.push(node as u32);
                continue;
            }
            let feature = nodes.feature.value(node);
            let test = nodes.code_test(node, |cut| coder.code_of_cut(feature, cut));
            tree.add_split(coder.column_of(feature), test, nodes.missing_left.value(node));
        }
        RoutedTree { tree, leaf_nodes, values: nodes.leaf_values(components) }
    }

    /// Finds the leaves of `n` rows that have `codes`, n x n_columns.
    pub(super) fn route(&self, codes: &[C], n_columns: usize, n: usize, routed: &mut RoutedRows<C>) {
        routed.leaves.clear();
        routed.leaves.resize(n, 0);
        routed.rows.clear();
        routed.rows.extend(0..n as u32);
        match self.tree.has_subsets() {
            _ if self.tree.n_nodes() == 1 || n == 0 => {}
            false => self.walk::<false>(codes, n_columns, routed),
            true => self.walk::<true>(codes, n_columns, routed),
        }
        routed.leaves.iter_mut().for_each(|place| *place = self.tree.leaf_number(*place));
    }

    /// Sets `leaves` to the places of the leaves.
    fn walk<const SUBSETS: bool>(&self, codes: &[C], n_columns: usize, routed: &mut RoutedRows<C>) {
        let n = routed.leaves.len();
        if self.tree.n_nodes().min(n) < ORDERED_FROM || n_columns * size_of::<C>() > MOST_COPIED {
            return self.walk_down::<SUBSETS>(codes, n_columns, &mut routed.leaves);
        }
        self.walk_top::<SUBSETS>(codes, n_columns, &mut routed.leaves);
        routed.order(codes, n_columns, self.tree.n_nodes());
        self.walk_down::<SUBSETS>(&routed.codes, n_columns, &mut routed.leaves);
    }

    /// Where a row, whose codes start at `start`, goes from `place`; from a leaf to that leaf.
    #[inline(always)]
    fn step<const SUBSETS: bool>(&self, codes: &[C], start: usize, place: u32) -> u32 {
        self.tree.next::<SUBSETS>(place, codes[start + self.tree.column(place)])
    }

    /// Moves rows from the root by [`TOP_STEPS`].
    fn walk_top<const SUBSETS: bool>(&self, codes: &[C], n_columns: usize, places: &mut [u32]) {
        for (places, codes) in places.chunks_mut(LANES).zip(codes.chunks(LANES * n_columns)) {
            let mut lanes = [0; LANES];
            for _ in 0..TOP_STEPS {
                for (lane, place) in lanes.iter_mut().enumerate() {
                    *place = self.step::<SUBSETS>(codes, lane.min(places.len() - 1) * n_columns, *place);
                }
            }
            places.copy_from_slice(&lanes[..places.len()]);
        }
    }

    /// Moves each row from its place to the place of its leaf. [`LANES`] rows are walked side by side; after [`STEPS`] steps
    /// each, the next rows replace those that have reached a leaf. A step from a leaf leads to the leaf itself, so that no
    /// step needs a branch, which would be hard to predict: with one, predictions take up to 1.5 times as long.
    fn walk_down<const SUBSETS: bool>(&self, codes: &[C], n_columns: usize, places: &mut [u32]) {
        let last = places.len() - 1;
        // At the end, some have the last row: they all lead it to its leaf.
        let mut lanes: [(usize, u32); LANES] = std::array::from_fn(|lane| (lane.min(last), places[lane.min(last)]));
        let mut next = LANES;
        while next <= last {
            for _ in 0..STEPS {
                for (row, place) in &mut lanes {
                    *place = self.step::<SUBSETS>(codes, *row * n_columns, *place);
                }
            }
            for (row, place) in &mut lanes {
                places[*row] = *place;
                let is_there = self.tree.is_leaf(*place);
                let other = next.min(last);
                (*row, *place) = std::hint::select_unpredictable(is_there, (other, places[other]), (*row, *place));
                next += usize::from(is_there);
            }
        }
        for (row, mut place) in lanes {
            while !self.tree.is_leaf(place) {
                place = self.step::<SUBSETS>(codes, row * n_columns, place);
            }
            places[row] = place;
        }
    }

    /// Adds the predictions for rows to `sums`, n_rows x n_components.
    pub(super) fn add(&self, routed: &RoutedRows<C>, n_components: usize, sums: &mut [f64]) {
        self.values.add(&self.leaf_nodes, (&routed.rows, &routed.leaves), n_components, sums);
    }
}
