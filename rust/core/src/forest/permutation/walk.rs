//! The ways of rows through a tree, and their detours.

use super::routes::{LEAF, Routes, Rows};

/// The ways of a group of rows through the tree.
pub(super) struct Walk {
    /// Where the codes of each row start.
    starts: Vec<usize>,
    /// For each row the steps from the root on, and the leaf.
    paths: Vec<Vec<u32>>,
    /// By row.
    detours: Vec<Detour>,
    /// Where each row's detours end.
    ends: Vec<usize>,
    /// By place; the last row that left its path by this feature.
    left: Vec<u64>,
    row: u64,
    walkers: Vec<Walker>,
}

/// The way of a row whose value of one feature is another.
#[derive(Clone, Copy)]
pub(super) struct Detour {
    pub(super) place: u32,
    pub(super) leaf: u32,
}

/// A detour on its way.
#[derive(Clone, Copy)]
struct Walker {
    start: usize,
    number: u32,
    place: u32,
    node: u32,
}

impl Walk {
    pub(super) fn new(routes: &Routes) -> Self {
        Walk {
            starts: Vec::new(),
            paths: Vec::new(),
            detours: Vec::new(),
            ends: Vec::new(),
            left: vec![0; routes.places.len()],
            row: 0,
            walkers: Vec::new(),
        }
    }

    /// The paths of `n` rows of `codes` from row `first` on.
    pub(super) fn follow(&mut self, routes: &Routes, codes: &Rows, first: usize, n: usize) {
        self.starts.clear();
        self.starts.extend((first..first + n).map(|row| codes.start_of(row)));
        self.paths.resize(n, Vec::new());
        for path in &mut self.paths {
            path.clear();
            path.push(0);
        }
        let mut walking = true;
        while walking {
            walking = false;
            for (path, &start) in self.paths.iter_mut().zip(&self.starts) {
                let node = path[path.len() - 1];
                if node & LEAF == 0 {
                    let step = routes.steps[node as usize];
                    path.push(routes.next(step, codes.own(start, step.place)));
                    walking = true;
                }
            }
        }
    }

    /// For each row and each feature whose shuffled code leaves its path: the leaf that it leads to.
    pub(super) fn detours(&mut self, routes: &Routes, codes: &Rows) {
        self.detours.clear();
        self.ends.clear();
        self.walkers.clear();
        for (path, &start) in self.paths.iter().zip(&self.starts) {
            self.row += 1;
            for pair in path.windows(2) {
                let step = routes.steps[pair[0] as usize];
                let node = routes.next(step, codes.shuffled(start, step.place));
                let left = &mut self.left[step.place as usize];
                if node != pair[1] && *left != self.row {
                    *left = self.row;
                    let number = self.detours.len() as u32;
                    self.detours.push(Detour { place: step.place, leaf: node & !LEAF });
                    if node & LEAF == 0 {
                        self.walkers.push(Walker { start, number, place: step.place, node });
                    }
                }
            }
            self.ends.push(self.detours.len());
        }
        self.walk(routes, codes);
    }

    /// Walks all detours to their leaves.
    fn walk(&mut self, routes: &Routes, codes: &Rows) {
        while !self.walkers.is_empty() {
            let mut walking = 0;
            for i in 0..self.walkers.len() {
                let mut walker = self.walkers[i];
                let step = routes.steps[walker.node as usize];
                let own = codes.own(walker.start, step.place);
                let code = if step.place == walker.place { codes.shuffled(walker.start, step.place) } else { own };
                walker.node = routes.next(step, code);
                // Written even where the walk ends: no branch could be foretold.
                self.detours[walker.number as usize].leaf = walker.node & !LEAF;
                self.walkers[walking] = walker;
                walking += usize::from(walker.node & LEAF == 0);
            }
            self.walkers.truncate(walking);
        }
    }

    pub(super) fn leaf_of(&self, row: usize) -> u32 {
        *self.paths[row].last().expect("a path ends in a leaf") & !LEAF
    }

    pub(super) fn detours_of(&self, row: usize) -> &[Detour] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.detours[start..self.ends[row]]
    }
}
