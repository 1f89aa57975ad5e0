//! The ways of rows through a tree, and their detours.

use super::ring::{BLOCK_ROWS, Codes};
use super::routes::{LEAF, Routes};

/// Rows that walk side by side.
pub(super) const GROUP_ROWS: usize = 32;

const _: () = assert!(GROUP_ROWS == u32::BITS as usize && BLOCK_ROWS.is_multiple_of(GROUP_ROWS));

/// The ways of a group of rows through the tree.
pub(super) struct Walk {
    /// Rows on their paths.
    paths: List,
    /// Rows that left them, and those that reached a leaf so.
    detours: List,
    arrived: List,
    /// By row.
    leaves: [u32; GROUP_ROWS],
    /// By place; a bit for each row that left its path by this feature.
    left: Vec<u32>,
}

/// A row on its way through the tree, with another value of one feature once it left its path.
#[derive(Clone, Copy, Default)]
pub(super) struct Detour {
    /// Number of the row in its group.
    pub(super) row: u32,
    /// Of the feature.
    pub(super) place: u32,
    /// A step, or with [`LEAF`] a leaf.
    node: u32,
}

impl Detour {
    pub(super) fn leaf(&self) -> u32 {
        self.node & !LEAF
    }
}

/// Entries that are added without a branch: none could be foretold.
#[derive(Default)]
struct List {
    entries: Vec<Detour>,
    len: usize,
}

impl List {
    /// Room for `n` entries more.
    fn reserve(&mut self, n: usize) {
        if self.entries.len() < self.len + n {
            self.entries.resize(self.len + n, Detour::default());
        }
    }

    /// Adds `entry` if it is `wanted`; there is room.
    #[inline(always)]
    fn add(&mut self, entry: Detour, wanted: bool) {
        self.entries[self.len] = entry;
        self.len += usize::from(wanted);
    }
}

impl Walk {
    /// Through a tree that tests `n_places` features.
    pub(super) fn new(n_places: usize) -> Self {
        Walk {
            paths: List::default(),
            detours: List::default(),
            arrived: List::default(),
            leaves: [0; GROUP_ROWS],
            left: vec![0; n_places],
        }
    }

    /// Walks the `n` rows of `codes` from number `first` on to their leaves, and each also with each feature's shuffled
    /// value that leads off its path.
    pub(super) fn walk(&mut self, routes: &Routes, codes: &Codes, first: usize, n: usize) {
        match routes.has_subsets() {
            true => self.walk_by::<true>(routes, codes, first, n),
            false => self.walk_by::<false>(routes, codes, first, n),
        }
    }

    fn walk_by<const SUBSETS: bool>(&mut self, routes: &Routes, codes: &Codes, first: usize, n: usize) {
        self.left.fill(0);
        (self.paths.len, self.detours.len, self.arrived.len) = (0, 0, 0);
        self.paths.reserve(n);
        (0..n as u32).for_each(|row| self.paths.add(Detour { row, ..Detour::default() }, true));
        while self.paths.len > 0 {
            self.step_on_paths::<SUBSETS>(routes, codes, first);
        }
        self.arrived.reserve(self.detours.len);
        while self.detours.len > 0 {
            self.step_on_detours::<SUBSETS>(routes, codes, first);
        }
    }

    fn step_on_paths<const SUBSETS: bool>(&mut self, routes: &Routes, codes: &Codes, first: usize) {
        let n = std::mem::take(&mut self.paths.len);
        self.detours.reserve(n);
        self.arrived.reserve(n);
        for i in 0..n {
            let Detour { row, node, .. } = self.paths.entries[i];
            let step = routes.steps[node as usize];
            let (number, at) = (row as usize % GROUP_ROWS, (first + row as usize) % BLOCK_ROWS);
            let [own, taken] = codes.at(step.place);
            let (next, other) = (routes.next::<SUBSETS>(step, own[at]), routes.next::<SUBSETS>(step, taken[at]));
            let left = &mut self.left[step.place as usize];
            let leaves = (next != other) & (*left >> number & 1 == 0);
            *left |= u32::from(leaves) << number;
            let detour = Detour { row, place: step.place, node: other };
            self.detours.add(detour, leaves & (other & LEAF == 0));
            self.arrived.add(detour, leaves & (other & LEAF != 0));
            self.leaves[number] = next & !LEAF;
            self.paths.add(Detour { row, node: next, ..Detour::default() }, next & LEAF == 0);
        }
    }

    fn step_on_detours<const SUBSETS: bool>(&mut self, routes: &Routes, codes: &Codes, first: usize) {
        let n = std::mem::take(&mut self.detours.len);
        for i in 0..n {
            let mut detour = self.detours.entries[i];
            let step = routes.steps[detour.node as usize];
            let codes = &codes.at(step.place)[usize::from(step.place == detour.place)];
            detour.node = routes.next::<SUBSETS>(step, codes[(first + detour.row as usize) % BLOCK_ROWS]);
            self.arrived.add(detour, detour.node & LEAF != 0);
            self.detours.add(detour, detour.node & LEAF == 0);
        }
    }

    /// The leaf of each row.
    pub(super) fn leaves(&self) -> &[u32; GROUP_ROWS] {
        &self.leaves
    }

    /// The detours, at their leaves.
    pub(super) fn detours(&self) -> &[Detour] {
        &self.arrived.entries[..self.arrived.len]
    }
}
