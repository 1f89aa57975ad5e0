//! The paths of rows through a tree, and their detours.

use pulp::Arch;

use super::ring::{BLOCK_ROWS, Codes, Ring};
use crate::oob::{LEAF, OobView, PackedTree};
use ferrank_data::store::Code;
use ferrank_runtime::error::Result;

/// Number of rows that are walked together.
pub(super) const GROUP_ROWS: usize = 32;

/// Bits of the number of a row in its group.
const ROW_BITS: u32 = GROUP_ROWS.trailing_zeros();

/// The most features. With more, the codes of a block alone would take 64 GiB.
const MOST_COLUMNS: usize = 1 << (u32::BITS - ROW_BITS);

const _: () = assert!(GROUP_ROWS == u32::BITS as usize && BLOCK_ROWS.is_multiple_of(GROUP_ROWS));

/// Walks all rows of `ring` to their leaves, and their detours. Calls `each` with the position of the first row of each
/// group, the rows, their walk and the codes of their block. `C` holds the codes of all features.
pub(super) fn walk_all<C: Code>(
    view: &OobView<'_>,
    ring: &Ring,
    mut each: impl FnMut(usize, &[u32], &Walk, &Codes<C>) -> Result<()>,
) -> Result<()> {
    let n_columns = view.tree.columns.len();
    let (arch, mut codes, mut walk) = (Arch::new(), Codes::<C>::new(n_columns), Walk::new(n_columns));
    for (first, rows) in ring.blocks() {
        view.context.monitor.check()?;
        arch.dispatch(|| codes.take(ring, first))?;
        for (number, group) in rows.chunks(GROUP_ROWS).enumerate() {
            let place = number * GROUP_ROWS;
            walk.walk(view.tree, &codes, place, group.len());
            each(first + place, group, &walk, &codes)?;
        }
    }
    Ok(())
}

/// The paths and detours of a group of rows.
pub(super) struct Walk {
    /// The rows on their paths.
    paths: List,
    /// The rows on detours.
    detours: List,
    /// The `detours` that continue after the current step.
    ahead: List,
    arrived: List,
    /// The leaf of each row.
    leaves: [u32; GROUP_ROWS],
    /// n_columns; a bit for each row that left its path because of this feature.
    left: Vec<u32>,
}

/// A row at a node of the tree. On a detour, the row has a permuted value of one feature.
#[derive(Clone, Copy, Default)]
pub(super) struct Detour {
    /// The column of the feature, then [`ROW_BITS`] bits for the number of the row in its group.
    what: u32,
    /// The position of a step, or with [`LEAF`] the number of a leaf.
    node: u32,
}

impl Detour {
    #[inline(always)]
    fn new(row: u32, column: u32, node: u32) -> Self {
        Detour { what: column << ROW_BITS | row, node }
    }

    /// The number of the row in its group.
    #[inline(always)]
    pub(super) fn row(self) -> usize {
        self.what as usize % GROUP_ROWS
    }

    /// The column of the permuted feature.
    #[inline(always)]
    pub(super) fn column(self) -> usize {
        (self.what >> ROW_BITS) as usize
    }

    #[inline(always)]
    pub(super) fn leaf(self) -> usize {
        (self.node & !LEAF) as usize
    }

    #[inline(always)]
    fn is_at_leaf(self) -> bool {
        self.node & LEAF != 0
    }
}

/// A list with entries that are added without branches, which would be unpredictable.
#[derive(Default)]
struct List {
    entries: Vec<Detour>,
    len: usize,
}

impl List {
    /// Reserves space for `n` more entries.
    fn reserve(&mut self, n: usize) {
        if self.entries.len() < self.len + n {
            self.entries.resize(self.len + n, Detour::default());
        }
    }

    /// Adds `entry` if it is `wanted`. Space must be reserved in any case.
    #[inline(always)]
    fn add(&mut self, entry: Detour, wanted: bool) {
        self.entries[self.len] = entry;
        self.len += usize::from(wanted);
    }
}

impl Walk {
    /// A walk through a tree that tests `n_columns` features.
    pub(super) fn new(n_columns: usize) -> Self {
        assert!(n_columns <= MOST_COLUMNS);
        Walk {
            paths: List::default(),
            detours: List::default(),
            ahead: List::default(),
            arrived: List::default(),
            leaves: [0; GROUP_ROWS],
            left: vec![0; n_columns],
        }
    }

    /// Walks the `n` rows of `codes` from row `first` on to their leaves. Also walks each row with each permuted value
    /// that leads off its path.
    pub(super) fn walk<C: Code>(&mut self, tree: &PackedTree, codes: &Codes<C>, first: usize, n: usize) {
        match tree.has_subsets() {
            true => self.walk_by::<C, true>(tree, codes, first, n),
            false => self.walk_by::<C, false>(tree, codes, first, n),
        }
    }

    fn walk_by<C: Code, const SUBSETS: bool>(&mut self, tree: &PackedTree, codes: &Codes<C>, first: usize, n: usize) {
        self.left.fill(0);
        (self.paths.len, self.detours.len, self.arrived.len) = (0, 0, 0);
        if tree.steps.is_empty() {
            return self.leaves.fill(0);
        }
        self.paths.reserve(n);
        (0..n as u32).for_each(|row| self.paths.add(Detour::new(row, 0, 0), true));
        while self.paths.len > 0 {
            self.step_on_paths::<C, SUBSETS>(tree, codes, first);
        }
        self.arrived.reserve(self.detours.len);
        while self.detours.len > 0 {
            self.step_on_detours::<C, SUBSETS>(tree, codes, first);
        }
    }

    fn step_on_paths<C: Code, const SUBSETS: bool>(&mut self, tree: &PackedTree, codes: &Codes<C>, first: usize) {
        let n = std::mem::take(&mut self.paths.len);
        self.detours.reserve(n);
        self.arrived.reserve(n);
        // Local variables, so that the lists stay in registers.
        let [mut paths, mut detours, mut arrived] =
            [&mut self.paths, &mut self.detours, &mut self.arrived].map(std::mem::take);
        for i in 0..n {
            let path = paths.entries[i];
            let step = tree.steps[path.node as usize];
            let (row, at) = (path.row(), (first + path.row()) % BLOCK_ROWS);
            let [own, taken] = codes.at(step.column);
            let (next, other) = (tree.next::<C, SUBSETS>(step, own[at]), tree.next::<C, SUBSETS>(step, taken[at]));
            let left = &mut self.left[step.column as usize];
            let leaves = (next != other) & (*left >> row & 1 == 0);
            *left |= u32::from(leaves) << row;
            let detour = Detour::new(row as u32, step.column, other);
            detours.add(detour, leaves & !detour.is_at_leaf());
            arrived.add(detour, leaves & detour.is_at_leaf());
            let path = Detour { node: next, ..path };
            self.leaves[row] = next & !LEAF;
            paths.add(path, !path.is_at_leaf());
        }
        (self.paths, self.detours, self.arrived) = (paths, detours, arrived);
    }

    fn step_on_detours<C: Code, const SUBSETS: bool>(&mut self, tree: &PackedTree, codes: &Codes<C>, first: usize) {
        self.ahead.reserve(self.detours.len);
        let [mut detours, mut ahead, mut arrived] =
            [&mut self.detours, &mut self.ahead, &mut self.arrived].map(std::mem::take);
        for &(mut detour) in &detours.entries[..detours.len] {
            let step = tree.steps[detour.node as usize];
            let codes = &codes.at(step.column)[usize::from(step.column as usize == detour.column())];
            detour.node = tree.next::<C, SUBSETS>(step, codes[(first + detour.row()) % BLOCK_ROWS]);
            tree.prefetch(detour.node);
            arrived.add(detour, detour.is_at_leaf());
            ahead.add(detour, !detour.is_at_leaf());
        }
        detours.len = 0;
        (self.detours, self.ahead, self.arrived) = (ahead, detours, arrived);
    }

    /// The leaf of each row.
    pub(super) fn leaves(&self) -> &[u32; GROUP_ROWS] {
        &self.leaves
    }

    /// The detours, each at its leaf.
    pub(super) fn detours(&self) -> &[Detour] {
        &self.arrived.entries[..self.arrived.len]
    }
}
