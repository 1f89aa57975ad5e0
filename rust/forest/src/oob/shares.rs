//! The shares of the labels in leaves: the weighted share of the members that have a label.

use std::ops::Range;

use super::leaf_totals::LeafTotals;
use super::targets::Targets;

/// Labels and their shares, without those whose share is 0, by ascending label.
type Shares = Vec<(u32, f64)>;

/// The shares of the labels in each leaf. A label is a nominal target, or one of a label set.
pub(crate) struct LeafShares {
    n_nominal: usize,
    n_sets: usize,
    /// n_nominal; the class of the rows that have the label.
    present: Vec<u16>,
    /// n_leaves x n_nominal; NaN if no value is known.
    of_nominal: Vec<f64>,
    /// n_leaves x n_sets; `None` if no set is known.
    of_sets: Vec<Option<Shares>>,
}

impl LeafShares {
    pub(super) fn new(targets: &Targets<'_>) -> Self {
        LeafShares {
            n_nominal: targets.nominal.len(),
            n_sets: targets.sets.len(),
            present: targets.present.clone(),
            of_nominal: Vec::new(),
            of_sets: Vec::new(),
        }
    }

    /// Adds a leaf with the totals of its members.
    pub(super) fn add(&mut self, totals: &LeafTotals) {
        let shares = self.present.iter().enumerate().map(|(number, &class)| totals.class_share(number, class));
        self.of_nominal.extend(shares.map(|share| share.unwrap_or(f64::NAN)));
        self.of_sets.extend((0..self.n_sets).map(|number| totals.label_shares(number)));
    }

    /// Adds a leaf with these members, in ascending order.
    pub(super) fn add_members(&mut self, targets: &Targets<'_>, members: &[(u32, u32)]) {
        let mut totals = LeafTotals::new(targets);
        members.iter().for_each(|&(row, count)| totals.add(targets, row as usize, count));
        self.add(&totals);
    }

    /// Sets the shares of `leaves` without known values to those of an ancestor with these totals.
    pub(super) fn fill(&mut self, leaves: Range<usize>, totals: &LeafTotals) {
        for (number, &class) in self.present.iter().enumerate() {
            let share = totals.class_share(number, class).unwrap_or(f64::NAN);
            let cells = &mut self.of_nominal[leaves.start * self.n_nominal..leaves.end * self.n_nominal];
            let unknown = cells.iter_mut().skip(number).step_by(self.n_nominal).filter(|share| share.is_nan());
            unknown.for_each(|to| *to = share);
        }
        for number in 0..self.n_sets {
            let cells = &mut self.of_sets[leaves.start * self.n_sets..leaves.end * self.n_sets];
            let unknown = cells.iter_mut().skip(number).step_by(self.n_sets).filter(|shares| shares.is_none());
            unknown.for_each(|to| *to = totals.label_shares(number));
        }
    }

    /// The shares of the nominal targets in a leaf; 0 where no row of the bag has a known value.
    pub(crate) fn of_nominal(&self, leaf: usize) -> impl Iterator<Item = f64> {
        let shares = &self.of_nominal[leaf * self.n_nominal..(leaf + 1) * self.n_nominal];
        shares.iter().map(|&share| if share.is_nan() { 0.0 } else { share })
    }

    /// The shares of the labels of set number `number` in a leaf.
    pub(crate) fn of_set(&self, leaf: usize, number: usize) -> &[(u32, f64)] {
        self.of_sets[leaf * self.n_sets + number].as_deref().unwrap_or(&[])
    }
}
