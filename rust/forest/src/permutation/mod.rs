//! The permutation score: how much worse a tree predicts its out-of-bag rows when one feature's
//! values are shuffled among them (mtr-ranking Eq. 3; Breiman 2001).
//!
//! Values are shuffled in a ring (`ring`): the rows stand in it in a random order, drawn once for a tree, and with a
//! feature permuted each row takes the value of the row so many positions on as is drawn for the feature, 1 … n − 1.
//! This is not a uniform permutation, but as good. A row takes the value of each other row with the same chance, so the
//! error to expect is the mean over all pairs of rows (e_switch of Fisher, Rudin and Dominici 2019); a uniform
//! permutation lets one row in n keep its own, and expects (n − 1) / n of the increase. Any two rows take the values of
//! any two others with the same chance but for terms of 1 / n², so the variance is the same but for 1 / n of it; a turn
//! by 0 would add to it, since all rows keep their own at once. Increases of two features are uncorrelated, since they
//! turn the ring independently.
//!
//! A row's prediction can change only through features on its own path, and only from the first node
//! on at which the shuffled value goes the other way. So each row walks its path once and makes a
//! detour from there for each such feature. A step waits for the node it leads to; rows and detours are
//! walked many at a time, so that these waits overlap. Rows without a target have no error and are not
//! looked at.
//!
//! Memory: the tree, 16 bytes for a split and the predictions of its leaves; 4 bytes for each out-of-bag row; and a
//! code for each such row and feature that the tree tests, or where scratch files keep them, for each feature of one
//! band and one more; and the codes of a block of rows.

mod errors;
mod leaves;
mod outs;
mod ring;
mod routes;
mod targets;
mod walk;

use pulp::Arch;

use super::bag::Bag;
use super::grow::GrowContext;
use super::tree_buffer::{BufferedSplit, TreeBuffer};
use errors::{Errors, Sums};
use ferrank_data::store::Code;
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;
pub(crate) use leaves::LeafSums;
use leaves::Leaves;
pub(crate) use outs::OutOfBag;
pub(crate) use ring::BLOCK_BYTES;
use ring::{Codes, Ring};
pub(crate) use routes::Link;
use routes::Routes;
pub(crate) use targets::Targets;
use walk::{GROUP_ROWS, Walk};

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
    pub(crate) fn add_split(&mut self, link: Option<Link>, split: &BufferedSplit) -> [Link; 2] {
        self.leaves.add_split();
        self.routes.add_split(link, split)
    }

    /// Adds a leaf whose members have these sums.
    pub(crate) fn add_leaf(&mut self, link: Option<Link>, sums: &LeafSums) {
        self.routes.add_leaf(link);
        self.leaves.add(sums);
    }

    /// Adds a tree or a subtree, grown with its members kept; `targets` are those of the rows it was grown on.
    pub(crate) fn add_grown(&mut self, link: Option<Link>, grown: &TreeBuffer, targets: &Targets<'_>) {
        self.routes.add_grown(link, grown);
        self.leaves.add_members(targets, grown);
    }

    /// Importances of the tree with number `tree`: (feature, value) by ascending feature.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request, [`Error::File`](ferrank_runtime::error::Error::File) if the disk is
    /// full.
    pub(crate) fn importances(
        mut self,
        context: GrowContext<'_>,
        targets: &Targets<'_>,
        out_of_bag: &OutOfBag,
        tree: u64,
        scratch: Option<&Scratch>,
    ) -> Result<Vec<(u32, f64)>> {
        let store = context.store;
        self.routes.place(store);
        self.leaves.finish();
        let Judged { routes, leaves } = &self;
        let places = &routes.places;
        if out_of_bag.is_empty() || places.features.is_empty() {
            return Ok(Vec::new());
        }
        let errors = Errors::new(targets, out_of_bag);
        let ring = Ring::new(places, context, out_of_bag, tree, scratch)?;
        let trial = Trial { routes, leaves, targets, errors: &errors, ring: &ring };
        let sums = if ring.is_narrow() { trial.run::<u8>(context)? } else { trial.run::<u16>(context)? };
        let mut importances: Vec<_> = places.features.iter().copied().zip(sums.importances(&errors)).collect();
        importances.sort_unstable_by_key(|&(feature, _)| feature);
        Ok(importances)
    }
}

/// What it takes to see how wrong the predictions for each row are.
struct Trial<'a> {
    routes: &'a Routes,
    leaves: &'a Leaves,
    targets: &'a Targets<'a>,
    errors: &'a Errors,
    ring: &'a Ring,
}

impl Trial<'_> {
    /// Errors over all rows; `C` holds the codes of all features.
    fn run<C: Code>(&self, context: GrowContext<'_>) -> Result<Sums> {
        let Trial { routes, leaves, targets, errors, ring } = self;
        let n_places = routes.places.len();
        let (arch, mut codes) = (Arch::new(), Codes::<C>::default());
        let (mut walk, mut sums) = (Walk::new(n_places), Sums::new(errors, n_places));
        for (first, rows) in ring.blocks() {
            context.monitor.check()?;
            arch.dispatch(|| codes.take(ring, first));
            for (number, group) in rows.chunks(GROUP_ROWS).enumerate() {
                walk.walk(routes, &codes, number * GROUP_ROWS, group.len());
                sums.add(errors, targets, leaves, group, &walk);
            }
        }
        Ok(sums)
    }
}

/// Importances that `tree`, grown on `bag` with its members kept, gives by permutation:
/// (feature, value) by ascending feature.
///
/// # Errors
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
pub(crate) fn of_tree(
    context: GrowContext<'_>,
    subset: &[usize],
    tree: &TreeBuffer,
    bag: &Bag,
    number: u64,
) -> Result<Vec<(u32, f64)>> {
    let store = context.store;
    let targets = Targets::new(store, subset);
    let mut judged = Judged::new(&targets);
    judged.add_grown(None, tree, &targets);
    let mut out_of_bag = OutOfBag::of(bag, store.rows);
    out_of_bag.retain(|row| targets.some_known(row));
    judged.importances(context, &targets, &out_of_bag, number, None)
}
