//! The values of a feature at a node in order, and the binary splits that they allow.
//!
//! Rows with the same value are a bin. A numeric feature is cut between neighboring values. Up to [`MOST_GROUPED`]
//! categories are split in every way into two groups. More are put in the order of their mean target, for classes of the
//! share of the node's majority class, and cut like numbers: for two classes and for means the best groups are among
//! these (Breiman et al. 1984 §4.2.2, 8.8). Rows whose value is missing go with the side that has more of the others, the
//! left one of equal ones, and every selector estimates the split with them there.

use crate::node_rows::{NodeRows, NodeTarget};
use crate::table::Column;
use crate::tree::Test;
use ferrank_data::profile::{MISSING_U16, between};

/// Most categories of which all groups are tried.
pub(crate) const MOST_GROUPED: usize = 8;

/// Rows by the value of a feature.
#[derive(Debug)]
pub(crate) struct Bins {
    /// Positions in the node of the rows whose value is known, by bin.
    pub(crate) order: Vec<u32>,
    /// n_bins; end of each bin in `order`.
    pub(crate) ends: Vec<usize>,
    /// Positions in the node of the rows whose value is missing.
    pub(crate) missing: Vec<u32>,
    labels: Labels,
}

/// What the rows of a bin have in common.
#[derive(Debug)]
enum Labels {
    /// n_bins values, ascending.
    Numbers(Vec<f64>),
    /// n_bins codes.
    Categories(Vec<u16>),
}

/// A binary split of bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    /// Of a cut the last bin on the left, of groups the bins on the left as bits.
    pub(crate) key: u32,
    /// True if rows with a missing value go left.
    pub(crate) missing_left: bool,
    /// Rows of the smaller side.
    pub(crate) smaller: usize,
}

/// The binary splits of a feature.
#[derive(Debug)]
pub(crate) enum Candidates {
    /// By the order of the bins, ascending.
    Cuts(Vec<Candidate>),
    /// By sets of bins, the first bin being on the left.
    Groups(Vec<Candidate>),
}

impl Candidates {
    pub(crate) fn list(&self) -> &[Candidate] {
        match self {
            Candidates::Cuts(list) | Candidates::Groups(list) => list,
        }
    }
}

impl Bins {
    pub(crate) fn new(node: &NodeRows<'_>, feature: usize) -> Self {
        match &node.table.features[feature] {
            Column::Numeric(values) => Bins::of_numbers(node, values),
            Column::Nominal(codes) => Bins::of_categories(node, codes),
        }
    }

    fn of_numbers(node: &NodeRows<'_>, values: &[f64]) -> Self {
        let value = |position: u32| values[node.rows[position as usize] as usize];
        let (missing, mut order): (Vec<u32>, Vec<u32>) =
            (0..node.len() as u32).partition(|&position| value(position).is_nan());
        order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
        let (mut ends, mut numbers) = (Vec::new(), Vec::new());
        for same in order.chunk_by(|&a, &b| value(a) == value(b)) {
            ends.push(ends.last().copied().unwrap_or(0) + same.len());
            numbers.push(value(same[0]));
        }
        Bins { order, ends, missing, labels: Labels::Numbers(numbers) }
    }

    fn of_categories(node: &NodeRows<'_>, codes: &[u16]) -> Self {
        let code = |position: u32| codes[node.rows[position as usize] as usize];
        let (missing, mut order): (Vec<u32>, Vec<u32>) =
            (0..node.len() as u32).partition(|&position| code(position) == MISSING_U16);
        order.sort_by_key(|&position| code(position));
        let mut bins: Vec<&[u32]> = order.chunk_by(|&a, &b| code(a) == code(b)).collect();
        if bins.len() > MOST_GROUPED {
            let mut keyed: Vec<(f64, &[u32])> = bins.into_iter().map(|bin| (node.target.order_key(bin), bin)).collect();
            keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            bins = keyed.into_iter().map(|(_, bin)| bin).collect();
        }
        let categories = bins.iter().map(|bin| code(bin[0])).collect();
        let mut end = 0;
        let ends = bins.iter().map(|bin| {
            end += bin.len();
            end
        });
        Bins { ends: ends.collect(), order: bins.concat(), missing, labels: Labels::Categories(categories) }
    }

    pub(crate) fn n_bins(&self) -> usize {
        self.ends.len()
    }

    /// The rows of a bin.
    pub(crate) fn bin(&self, bin: usize) -> &[u32] {
        &self.order[bin.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[bin]]
    }

    /// The splits whose sides both have at least `least` rows.
    pub(crate) fn candidates(&self, least: usize) -> Candidates {
        let n_bins = self.n_bins();
        match &self.labels {
            Labels::Categories(categories) if categories.len() <= MOST_GROUPED => {
                let all = 1u32.checked_shl(n_bins as u32).unwrap_or(0).wrapping_sub(1);
                let keys = (1..all).step_by(2);
                let known =
                    |key: u32| (0..n_bins).filter(|bin| key >> bin & 1 == 1).map(|bin| self.bin(bin).len()).sum();
                Candidates::Groups(keys.filter_map(|key| self.candidate(key, known(key), least)).collect())
            }
            _ => {
                let keys = 0..n_bins.saturating_sub(1);
                Candidates::Cuts(keys.filter_map(|key| self.candidate(key as u32, self.ends[key], least)).collect())
            }
        }
    }

    /// A split with `left` rows on the left whose value is known.
    fn candidate(&self, key: u32, left: usize, least: usize) -> Option<Candidate> {
        let right = self.order.len() - left;
        // Rows with a missing value go to the larger side, so that the smaller has none of them.
        let smaller = left.min(right);
        (smaller >= least).then_some(Candidate { key, missing_left: left >= right, smaller })
    }

    /// The test of a split, one of those of [`candidates`](Bins::candidates).
    pub(crate) fn test(&self, candidates: &Candidates, candidate: Candidate) -> Test {
        let key = candidate.key as usize;
        match (&self.labels, candidates) {
            (Labels::Numbers(values), _) => Test::AtMost(between(values[key], values[key + 1])),
            (Labels::Categories(codes), Candidates::Cuts(_)) => {
                Test::groups(codes[..=key].to_vec(), codes[key + 1..].to_vec())
            }
            (Labels::Categories(codes), Candidates::Groups(_)) => {
                let (left, right): (Vec<usize>, Vec<usize>) = (0..codes.len()).partition(|bin| key >> bin & 1 == 1);
                let codes = |bins: Vec<usize>| bins.into_iter().map(|bin| codes[bin]).collect();
                Test::groups(codes(left), codes(right))
            }
        }
    }
}

impl NodeTarget {
    /// What the categories of a feature are ordered by: the mean of their rows, or the share of the majority class.
    fn order_key(&self, positions: &[u32]) -> f64 {
        let n = positions.len() as f64;
        match self {
            NodeTarget::Classes { codes, .. } => {
                let majority = self.majority();
                positions.iter().filter(|&&position| codes[position as usize] == majority).count() as f64 / n
            }
            NodeTarget::Numbers { centered, squares, .. } => {
                let mean = positions.iter().map(|&position| centered[position as usize]).sum::<f64>() / n;
                // To 9 decimals of the deviation, so that rounding orders no categories.
                (mean / (squares / centered.len() as f64).sqrt() * 1e9).round()
            }
        }
    }

    /// The class with most rows, the first of equal ones; 0 for numbers.
    pub(crate) fn majority(&self) -> u16 {
        match self {
            NodeTarget::Classes { counts, .. } => {
                (0..counts.len()).rev().max_by_key(|&class| counts[class]).unwrap_or(0) as u16
            }
            NodeTarget::Numbers { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Outcome, Table};

    fn table(feature: Column, target: Vec<f64>) -> Table {
        let n_rows = target.len();
        Table {
            features: vec![feature],
            categories: vec![None],
            outcome: Outcome::Numbers(target),
            classes: Vec::new(),
            n_rows,
        }
    }

    fn keys(candidates: &Candidates) -> Vec<(u32, bool, usize)> {
        candidates.list().iter().map(|one| (one.key, one.missing_left, one.smaller)).collect()
    }

    #[test]
    fn rows_with_a_missing_value_go_with_the_larger_side() {
        let table = table(Column::Numeric(vec![2.0, f64::NAN, 1.0, 1.0, 4.0, f64::NAN]), vec![0.0; 6]);
        let rows: Vec<u32> = (0..6).collect();
        let bins = Bins::new(&NodeRows::new(&table, &rows), 0);
        assert_eq!((bins.n_bins(), bins.bin(0), &bins.missing[..]), (3, &[2, 3][..], &[1, 5][..]));
        // Of 2 and 2 known rows the left side counts as larger.
        assert_eq!(keys(&bins.candidates(1)), [(0, true, 2), (1, true, 1)]);
        assert_eq!(keys(&bins.candidates(2)), [(0, true, 2)]);
        let candidates = bins.candidates(1);
        assert_eq!(bins.test(&candidates, candidates.list()[1]), Test::AtMost(3.0));
    }

    #[test]
    fn the_smaller_side_may_be_the_left_one() {
        let table = table(Column::Numeric(vec![1.0, 2.0, 2.0, 2.0, f64::NAN, f64::NAN, f64::NAN]), vec![0.0; 7]);
        let rows: Vec<u32> = (0..7).collect();
        let bins = Bins::new(&NodeRows::new(&table, &rows), 0);
        assert_eq!(keys(&bins.candidates(1)), [(0, false, 1)]);
        assert_eq!(keys(&bins.candidates(2)), []);
    }

    #[test]
    fn few_categories_are_grouped_in_every_way() {
        let table = table(Column::Nominal(vec![7, 3, 5, 3, MISSING_U16]), vec![0.0; 5]);
        let rows: Vec<u32> = (0..5).collect();
        let bins = Bins::new(&NodeRows::new(&table, &rows), 0);
        let candidates = bins.candidates(1);
        assert_eq!(keys(&candidates), [(0b001, true, 2), (0b011, true, 1), (0b101, true, 1)]);
        assert_eq!(bins.test(&candidates, candidates.list()[2]), Test::groups(vec![3, 7], vec![5]));
    }

    #[test]
    fn many_categories_are_cut_in_the_order_of_their_means() {
        let codes: Vec<u16> = (0..10).collect();
        let target = vec![5.0, 1.0, 3.0, 0.0, 9.0, 8.0, 2.0, 7.0, 6.0, 4.0];
        let table = table(Column::Nominal(codes), target);
        let rows: Vec<u32> = (0..10).collect();
        let bins = Bins::new(&NodeRows::new(&table, &rows), 0);
        let candidates = bins.candidates(3);
        assert_eq!(keys(&candidates).first(), Some(&(2, false, 3)));
        let expected = Test::groups(vec![3, 1, 6], vec![2, 9, 0, 8, 7, 5, 4]);
        assert_eq!(bins.test(&candidates, candidates.list()[0]), expected);
    }
}
