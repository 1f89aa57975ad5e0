//! Companion trees: trees on subsamples of the rows, from which standard errors follow.
//!
//! The error over trees says how far more trees would move an importance, not how far other rows would. For the latter,
//! each of the first [`MOST_TREES`] trees has [`COMPANIONS`] companions, which are grown and scored as trees are, but
//! on the m rows of a subsample as if there were no others. The companions of [`TREES`] consecutive trees share a
//! subsample. Of the mean importances of these groups, the variance between groups less that of their trees is the
//! variance over subsamples, v (Sexton and Laake 2009; Athey, Tibshirani and Wager 2019, §4). A subsample is drawn
//! without replacement from n rows, so that v = (1 − m/n) · V(m), where V(m) is the variance over samples of m rows
//! from the population. V decreases as 1/m, so that V(n) = v · (m/n) / (1 − m/n) (Politis, Romano and Wolf 1999, §2).
//! With m = n/2 this is v itself.
//!
//! Subsamples are half of the rows, and at most [`MOST_ROWS`]: with many rows the error over trees is the larger part
//! of the standard error, and trees on few rows cost little.
//!
//! The trees of the ensemble itself are not affected.

use rand::seq::index;

use ferrank_runtime::random::{Purpose, stream};

use crate::params::ForestParams;

/// Number of companions of a tree.
pub(crate) const COMPANIONS: usize = 2;
/// Number of consecutive trees whose companions share a subsample.
pub(crate) const TREES: u64 = 5;
/// The number of trees of an ensemble that have companions: more subsamples make standard errors hardly more precise.
const MOST_TREES: u64 = 200;
/// The most rows of a subsample.
const MOST_ROWS: usize = 2_000;
/// Marks the numbers of companions, which have random streams of their own.
const COMPANION: u64 = 1 << 63;

/// The number of companion `which` of tree number `tree`.
pub(crate) fn companion(tree: u64, which: usize) -> u64 {
    COMPANION | (COMPANIONS as u64 * tree + which as u64)
}

/// The number of the tree that tree number `tree` belongs to, and its place among it and its companions.
pub(crate) fn family(tree: u64) -> (u64, usize) {
    let (number, n) = (tree & !COMPANION, COMPANIONS as u64);
    match tree & COMPANION {
        0 => (tree, 0),
        _ => (number / n, (number % n) as usize + 1),
    }
}

/// Returns true if tree number `tree` has companions, with `standard_errors`.
///
/// This must not depend on rows: with `per_target`, an ensemble knows the rows of its target alone.
pub(crate) fn has_companions(tree: u64, params: &ForestParams) -> bool {
    params.standard_errors && tree % (params.n_estimators as u64) < MOST_TREES
}

/// The number of the subsample of the companions of tree number `tree`, in its ensemble.
pub(crate) fn subsample(tree: u64, params: &ForestParams) -> u64 {
    tree % params.n_estimators as u64 / TREES
}

/// Returns true if tree number `tree` is a companion.
pub(crate) fn is_companion(tree: u64) -> bool {
    tree & COMPANION != 0
}

/// Draws `n_drawn` of `n_units` rows or groups for the subsample of companion number `tree`; they ascend.
pub(crate) fn draw_subsample(tree: u64, params: &ForestParams, n_units: usize, n_drawn: usize) -> Vec<u32> {
    let number = subsample(family(tree).0, params);
    let mut random = stream(params.seed, Purpose::Subsample, number, 0);
    let mut drawn: Vec<u32> =
        index::sample(&mut random, n_units, n_drawn).into_iter().map(|unit| unit as u32).collect();
    drawn.sort_unstable();
    drawn
}

/// Number of rows of a subsample of `n_rows` rows, at least one.
pub(crate) fn subsample_rows(n_rows: usize) -> usize {
    (n_rows / 2).clamp(1, MOST_ROWS)
}

/// V(n) / v, see the [module](self).
pub(crate) fn variance_factor(n_rows: u64) -> f64 {
    let share = subsample_rows(n_rows as usize) as f64 / n_rows as f64;
    share / (1.0 - share)
}

#[cfg(test)]
mod tests {
    use ferrank_data::intake::CHUNK_ROWS;

    use super::*;
    use crate::bag::{Bag, BagPlan};
    use crate::oob::OutOfBagRows;

    #[test]
    fn companions_of_consecutive_trees_share_half_of_the_rows() {
        let params = ForestParams::default();
        let rows = |tree, which| BagPlan::of_rows(301, &params).subsample(companion(tree, which));
        assert_eq!(rows(0, 0), rows(TREES - 1, 1));
        assert_ne!(rows(0, 0), rows(TREES, 0));
        assert_eq!(rows(7, 0).len(), 150);
        assert!(rows(7, 0).is_sorted_by(|a, b| a < b));
        assert_eq!(BagPlan::of_rows(1_000_000, &params).subsample(companion(0, 0)).len(), MOST_ROWS);
    }

    #[test]
    fn a_companion_sees_no_row_outside_of_its_subsample() {
        let (params, mut bag) = (ForestParams::default(), Bag::default());
        let bags = BagPlan::of_rows(500, &params);
        let number = companion(3, 1);
        bags.take(number, &mut bag);
        assert_eq!((u64::from(bag.counts.iter().sum::<u32>()), bags.n_examples(number)), (250, 250));
        let mut seen: Vec<u32> = OutOfBagRows::outside(bags, number, &bag).iter().map(|row| row as u32).collect();
        assert!(seen.len() > 50);
        seen.extend(&bag.rows);
        seen.sort_unstable();
        assert_eq!(seen, bags.subsample(number));
    }

    #[test]
    fn blocks_of_a_bag_are_those_of_the_whole_bag() {
        for params in [ForestParams::default(), ForestParams::default().with_bootstrap(Some(false))] {
            let bags = BagPlan::of_rows(2 * CHUNK_ROWS + 77, &params);
            for number in [4, companion(4, 0)] {
                let (mut whole, mut part) = (Bag::default(), Bag::default());
                bags.take(number, &mut whole);
                let mut joined = Vec::new();
                for block in 0..3 {
                    bags.take_rows(number, block * CHUNK_ROWS..bags.n_rows().min((block + 1) * CHUNK_ROWS), &mut part);
                    let rows = part.rows.iter().map(|row| row + (block * CHUNK_ROWS) as u32);
                    joined.extend(rows.zip(part.counts.iter().copied()));
                }
                assert!(joined.into_iter().eq(whole.rows.into_iter().zip(whole.counts)));
            }
        }
    }

    #[test]
    fn half_of_the_rows_need_no_factor() {
        assert_eq!(variance_factor(1_000), 1.0);
        assert!((variance_factor(100_000) - 0.02 / 0.98).abs() < 1e-15);
    }
}
