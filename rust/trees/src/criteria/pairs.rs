//! Relief's estimates of splits: what the near rows that a split separates add up to.
//!
//! A binary split is a feature with two values, so its estimate is the sum of the weights of the pairs that it separates.
//! A pair adds to all cuts between its two values, which are added up by differences: O(pairs + cuts) for a feature.

use super::Criterion;
use crate::bins::{Bins, Candidate, Candidates};
use ferrank_relief::near_pairs::NearPair;

/// The near rows of a node.
pub(crate) struct PairCriterion<'a> {
    pub(crate) pairs: &'a [NearPair],
    /// Rows of the node.
    pub(crate) n_rows: usize,
}

impl Criterion for PairCriterion<'_> {
    fn estimates(&self, bins: &Bins, candidates: &Candidates) -> Vec<f64> {
        match candidates {
            Candidates::Cuts(list) => self.of_cuts(bins, list),
            Candidates::Groups(list) => self.of_groups(bins, list),
        }
    }
}

impl PairCriterion<'_> {
    fn of_cuts(&self, bins: &Bins, list: &[Candidate]) -> Vec<f64> {
        let n_bins = bins.n_bins();
        // Rows with a missing value are before all cuts if they go left, and beyond all of them if they go right.
        let known = self.bins_of_rows(bins, 1, 0);
        let left = self.up_to_cuts(&known, n_bins);
        let right = match bins.missing.is_empty() {
            true => left.clone(),
            false => self.up_to_cuts(&self.bins_of_rows(bins, 1, n_bins + 1), n_bins),
        };
        let of_cut =
            |candidate: &Candidate| (if candidate.missing_left { &left } else { &right })[candidate.key as usize];
        list.iter().map(of_cut).collect()
    }

    /// The bin of each row of the node plus `first`; `missing` where the value is missing.
    fn bins_of_rows(&self, bins: &Bins, first: usize, missing: usize) -> Vec<usize> {
        let mut places = vec![missing; self.n_rows];
        for bin in 0..bins.n_bins() {
            bins.bin(bin).iter().for_each(|&position| places[position as usize] = bin + first);
        }
        places
    }

    /// The sums of the cuts after each bin, given the place of each row in 0 … n_bins + 1, 1 being the first bin.
    fn up_to_cuts(&self, places: &[usize], n_bins: usize) -> Vec<f64> {
        let mut changes = vec![0.0; n_bins + 2];
        for pair in self.pairs {
            let [a, b] = [pair.query, pair.row].map(|row| places[row as usize]);
            changes[a.min(b)] += pair.weight;
            changes[a.max(b)] -= pair.weight;
        }
        let mut sum = changes[0];
        let after = changes[1..=n_bins].iter().map(|change| {
            sum += change;
            sum
        });
        after.collect()
    }

    fn of_groups(&self, bins: &Bins, list: &[Candidate]) -> Vec<f64> {
        let (n_bins, places) = (bins.n_bins(), self.bins_of_rows(bins, 0, bins.n_bins()));
        // n_bins + 1 x n_bins + 1; the last one are missing values.
        let mut between = vec![vec![0.0; n_bins + 1]; n_bins + 1];
        for pair in self.pairs {
            between[places[pair.query as usize]][places[pair.row as usize]] += pair.weight;
        }
        let of_group = |candidate: &Candidate| {
            let is_left =
                |bin: usize| if bin == n_bins { candidate.missing_left } else { candidate.key >> bin & 1 == 1 };
            let apart = between.iter().enumerate().flat_map(|(a, row)| {
                row.iter().enumerate().filter(move |&(b, _)| is_left(a) != is_left(b)).map(|(_, sum)| sum)
            });
            apart.sum()
        };
        list.iter().map(of_group).collect()
    }
}
