//! The permutation score: how much worse a tree predicts its out-of-bag rows when one feature's
//! values are shuffled among them (mtr-ranking Eq. 3; Breiman 2001).
//!
//! A row's prediction can change only through features on its own path, and only from the first node
//! on at which the shuffled value goes the other way. So each row walks its path once and makes a
//! detour from there for each such feature. A step waits for the node it leads to; rows and detours are
//! walked many at a time, so that these waits overlap. Rows without a target have no error and are not
//! looked at.
//!
//! Memory: a code for each out-of-bag row and feature of the bands that the tree tests.

mod errors;
mod leaves;
mod routes;
mod targets;
mod walk;

use super::bag::Bag;
use super::grow::Ground;
use super::grown::Grown;
use crate::error::Result;
use errors::{Errors, Sums};
use leaves::Leaves;
use routes::{Routes, Rows, Shuffled};
use targets::Targets;
use walk::Walk;

/// Rows whose codes are laid out together.
const BLOCK_ROWS: usize = 64;
/// Rows that walk side by side.
const GROUP_ROWS: usize = 16;

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
    let mut out_of_bag = bag.out_of_bag(store.rows);
    out_of_bag.retain(|&row| targets.some_known(row as usize));
    let routes = Routes::new(tree, store);
    let places = &routes.places;
    if out_of_bag.is_empty() || places.features.is_empty() {
        return Ok(Vec::new());
    }
    let leaves = Leaves::new(&targets, tree);
    let errors = Errors::new(&targets, &out_of_bag);
    let mut sums = Sums::new(&errors, places.len());
    let shuffled = Shuffled::new(places, store, &out_of_bag, ground.params.seed, number);
    let (mut codes, mut walk) = (Rows::default(), Walk::new(&routes));
    for (b, rows) in out_of_bag.chunks(BLOCK_ROWS).enumerate() {
        ground.monitor.check()?;
        codes.take(places, store, rows, &shuffled, b * BLOCK_ROWS);
        for (g, group) in rows.chunks(GROUP_ROWS).enumerate() {
            walk.follow(&routes, &codes, g * GROUP_ROWS, group.len());
            walk.detours(&routes, &codes);
            for (i, &row) in group.iter().enumerate() {
                sums.add(&errors, &targets, row as usize, leaves.of(walk.leaf_of(i)));
                for detour in walk.detours_of(i) {
                    sums.add_change(&errors, &targets, row as usize, detour.place as usize, leaves.of(detour.leaf));
                }
            }
        }
    }
    let importances = sums.importances(&errors);
    let of = |&feature: &u32| (feature, importances[places.of(store.slots[feature as usize])]);
    Ok(places.features.iter().map(of).collect())
}
