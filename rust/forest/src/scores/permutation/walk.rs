//! The paths of rows through a tree, and their detours.

use pulp::Arch;

use super::ring::{BLOCK_ROWS, Codes, Ring};
use crate::oob::OobView;
use crate::paired::{PairedTree, WalkedCode};
use ferrank_runtime::error::Result;

/// Number of rows that are walked together.
pub(super) const GROUP_ROWS: usize = 32;

/// Steps of a row on a detour, and on its path, between two looks at where it is; a step from a leaf leads to that leaf.
/// With four each, a walk takes 1.1 times as long.
const DETOUR_STEPS: usize = 2;
const PATH_STEPS: usize = 2;

/// Bits of the number of a row in its group.
const ROW_BITS: u32 = GROUP_ROWS.trailing_zeros();

/// The most features. With more, the codes of a block alone would take 64 GiB.
const MOST_COLUMNS: usize = 1 << (u32::BITS - ROW_BITS);

const _: () = assert!(GROUP_ROWS == u32::BITS as usize && BLOCK_ROWS.is_multiple_of(GROUP_ROWS));

/// Walks all rows of `ring` to their leaves, and their detours. Calls `each` with the position of the first row of each
/// group, the rows, their walk and the codes of their block. `C` holds the codes of all features.
pub(super) fn walk_all<C: WalkedCode>(
    view: &OobView<'_>,
    ring: &Ring,
    mut each: impl FnMut(usize, &[u32], &Walk, &Codes<C>) -> Result<()>,
) -> Result<()> {
    let (n_columns, tree) = (view.tree.columns.len(), view.tree.paired::<C>());
    let (arch, mut codes, mut walk) = (Arch::new(), Codes::<C>::new(n_columns), Walk::new(n_columns));
    for (first, rows) in ring.blocks() {
        view.context.monitor.check()?;
        arch.dispatch(|| codes.take(ring, first))?;
        for (number, group) in rows.chunks(GROUP_ROWS).enumerate() {
            let place = number * GROUP_ROWS;
            walk.walk(&tree, &codes, place, group.len());
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
    /// The place of the node; in the end the number of the leaf.
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
        self.node as usize
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
    pub(super) fn walk<C: WalkedCode>(&mut self, tree: &PairedTree<C>, codes: &Codes<C>, first: usize, n: usize) {
        match tree.has_subsets() {
            true => self.walk_by::<C, true>(tree, codes, first, n),
            false => self.walk_by::<C, false>(tree, codes, first, n),
        }
    }

    fn walk_by<C: WalkedCode, const SUBSETS: bool>(
        &mut self,
        tree: &PairedTree<C>,
        codes: &Codes<C>,
        first: usize,
        n: usize,
    ) {
        self.left.fill(0);
        (self.paths.len, self.detours.len, self.arrived.len) = (0, 0, 0);
        if tree.n_nodes() == 1 {
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
        self.leaves[..n].iter_mut().for_each(|place| *place = tree.leaf_number(*place));
        let arrived = &mut self.arrived.entries[..self.arrived.len];
        arrived.iter_mut().for_each(|detour| detour.node = tree.leaf_number(detour.node));
    }

    fn step_on_paths<C: WalkedCode, const SUBSETS: bool>(
        &mut self,
        tree: &PairedTree<C>,
        codes: &Codes<C>,
        first: usize,
    ) {
        let n = std::mem::take(&mut self.paths.len);
        self.detours.reserve(n * PATH_STEPS);
        // Local variables, so that the lists stay in registers.
        let [mut paths, mut detours] = [&mut self.paths, &mut self.detours].map(std::mem::take);
        for i in 0..n {
            let Detour { what: row, mut node } = paths.entries[i];
            let at = (first + row as usize) % BLOCK_ROWS;
            for _ in 0..PATH_STEPS {
                let column = tree.column(node);
                let [own, taken] = codes.at(column);
                let (next, other) = (tree.next::<SUBSETS>(node, own[at]), tree.next::<SUBSETS>(node, taken[at]));
                let left = &mut self.left[column];
                let leaves = (next != other) & (*left >> row & 1 == 0);
                *left |= u32::from(leaves) << row;
                detours.add(Detour::new(row, column as u32, other), leaves);
                node = next;
            }
            self.leaves[row as usize % GROUP_ROWS] = node;
            paths.add(Detour { what: row, node }, !tree.is_leaf(node));
        }
        (self.paths, self.detours) = (paths, detours);
    }

    fn step_on_detours<C: WalkedCode, const SUBSETS: bool>(
        &mut self,
        tree: &PairedTree<C>,
        codes: &Codes<C>,
        first: usize,
    ) {
        self.ahead.reserve(self.detours.len);
        let [mut detours, mut ahead, mut arrived] =
            [&mut self.detours, &mut self.ahead, &mut self.arrived].map(std::mem::take);
        for &(mut detour) in &detours.entries[..detours.len] {
            let (permuted, at) = (detour.column(), (first + detour.row()) % BLOCK_ROWS);
            let mine = codes.at(permuted)[1][at];
            for _ in 0..DETOUR_STEPS {
                let column = tree.column(detour.node);
                let own = codes.at(column)[0][at];
                let code = std::hint::select_unpredictable(column == permuted, mine, own);
                detour.node = tree.next::<SUBSETS>(detour.node, code);
            }
            let is_there = tree.is_leaf(detour.node);
            arrived.add(detour, is_there);
            ahead.add(detour, !is_there);
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
