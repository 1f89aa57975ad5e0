//! The permutation score: how much worse a tree predicts its out-of-bag rows when one feature's
//! values are shuffled among them (mtr-ranking Eq. 3; Breiman 2001).
//!
//! A row's prediction can change only through features on its own path, and only from the first node
//! on at which the shuffled value goes the other way. So each row walks its path once and makes a
//! detour from there for each such feature. A step waits for the node it leads to; rows and detours are
//! walked many at a time, so that these waits overlap. Rows without a target have no error and are not
//! looked at.
//!
//! Memory: the tree, 16 bytes for a split and the predictions of its leaves; and a code for each out-of-bag
//! row and feature of the bands that the tree tests, or of one band at a time where scratch files keep them.

mod errors;
mod leaves;
mod outs;
mod routes;
mod targets;
mod walk;

use super::bag::Bag;
use super::grow::Ground;
use super::grown::{Grown, GrownSplit};
use super::view::View;
use crate::error::Result;
use crate::scratch::Scratch;
use errors::{Errors, Sums};
pub(crate) use leaves::LeafSums;
use leaves::Leaves;
pub(crate) use outs::OutOfBag;
pub(crate) use routes::Link;
use routes::{Routes, Rows, Shuffled};
pub(crate) use targets::Targets;
use walk::Walk;

/// Rows whose codes are laid out together.
const BLOCK_ROWS: usize = 64;
/// Rows that walk side by side.
const GROUP_ROWS: usize = 16;

/// A tree on its way to be judged: where rows go, and what leaves predict. It is put together in preorder.
pub(crate) struct Judged {
    routes: Routes,
    leaves: Leaves,
}

impl Judged {
    /// Nothing yet.
    pub(crate) fn new(targets: &Targets<'_>) -> Self {
        Judged { routes: Routes::default(), leaves: Leaves::new(targets) }
    }

    /// Adds a split, to which `link` leads; gives the ways to its children.
    pub(crate) fn add_split(&mut self, link: Option<Link>, split: &GrownSplit) -> [Link; 2] {
        self.leaves.add_split();
        self.routes.add_split(link, split)
    }

    /// Adds a leaf whose members have these sums.
    pub(crate) fn add_leaf(&mut self, link: Option<Link>, sums: &LeafSums) {
        self.routes.add_leaf(link);
        self.leaves.add(sums);
    }

    /// Adds a tree or a subtree, grown with its members kept; `targets` are those of the rows it was grown on.
    pub(crate) fn add_grown(&mut self, link: Option<Link>, grown: &Grown, targets: &Targets<'_>) {
        self.routes.add_grown(link, grown);
        self.leaves.add_members(targets, grown);
    }

    /// Importances of the tree with number `tree`: (feature, value) by ascending feature.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted) on request, [`Error::File`](crate::Error::File) if the disk is
    /// full.
    pub(crate) fn importances(
        mut self,
        ground: Ground<'_>,
        targets: &Targets<'_>,
        out_of_bag: &OutOfBag,
        tree: u64,
        scratch: Option<&Scratch>,
    ) -> Result<Vec<(u32, f64)>> {
        let store = ground.store;
        self.routes.place(store);
        self.leaves.finish();
        let Judged { routes, leaves } = &self;
        let places = &routes.places;
        if out_of_bag.is_empty() || places.features.is_empty() {
            return Ok(Vec::new());
        }
        let errors = Errors::new(targets, out_of_bag);
        let mut sums = Sums::new(&errors, places.len());
        let shuffled = Shuffled::new(places, ground, out_of_bag, tree, scratch)?;
        let (mut codes, mut walk) = (Rows::default(), Walk::new(routes));
        let mut first = 0;
        out_of_bag.by_block(|base, block| {
            let view = View::codes_of(store, base);
            for rows in block.chunks(BLOCK_ROWS) {
                ground.monitor.check()?;
                codes.take(places, view, rows, &shuffled, first);
                first += rows.len();
                for (g, group) in rows.chunks(GROUP_ROWS).enumerate() {
                    walk.follow(routes, &codes, g * GROUP_ROWS, group.len());
                    walk.detours(routes, &codes);
                    for (i, &row) in group.iter().enumerate() {
                        let row = base + row as usize;
                        sums.add(&errors, targets, row, leaves.of(walk.leaf_of(i)));
                        for detour in walk.detours_of(i) {
                            sums.add_change(&errors, targets, row, detour.place as usize, leaves.of(detour.leaf));
                        }
                    }
                }
            }
            Ok(())
        })?;
        let importances = sums.importances(&errors);
        let of = |&feature: &u32| (feature, importances[places.of(store.slots[feature as usize])]);
        Ok(places.features.iter().map(of).collect())
    }
}

/// Importances that `tree`, grown on `bag` with its members kept, gives by permutation:
/// (feature, value) by ascending feature.
///
/// # Errors
/// [`Interrupted`](crate::Error::Interrupted) on request.
pub(crate) fn of_tree(
    ground: Ground<'_>,
    subset: &[usize],
    tree: &Grown,
    bag: &Bag,
    number: u64,
) -> Result<Vec<(u32, f64)>> {
    let store = ground.store;
    let targets = Targets::new(store, subset);
    let mut judged = Judged::new(&targets);
    judged.add_grown(None, tree, &targets);
    let mut out_of_bag = OutOfBag::of(bag, store.rows);
    out_of_bag.retain(|row| targets.some_known(row));
    judged.importances(ground, &targets, &out_of_bag, number, None)
}
