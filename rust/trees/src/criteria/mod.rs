//! Estimates of binary splits: each selector's, for all candidates of a feature at once.
//!
//! A new selector of classes is a variant in [`classes`]. One that is a function of sums over the rows of each side
//! implements [`SideSums`]; others, like Relief's, implement [`Criterion`].

mod classes;
mod linear;
mod numbers;
mod pairs;

use crate::bins::{Bins, Candidate, Candidates};
pub(crate) use classes::{ClassCriterion, ClassMeasure};
pub(crate) use linear::{LinearCriterion, MOST_COLUMNS};
pub(crate) use numbers::MeanCriterion;
pub(crate) use pairs::PairCriterion;

/// Estimates of at least this difference are different; of those that are not, the first counts.
pub(crate) const TOLERANCE: f64 = 1e-10;

/// A way to estimate splits. Estimates are of the order of 1, and more is better.
pub(crate) trait Criterion: Sync {
    /// Most cuts of a feature that are tried at once.
    fn most_cuts(&self) -> usize {
        usize::MAX
    }

    /// The estimate of each candidate.
    fn estimates(&self, bins: &Bins, candidates: &Candidates) -> Vec<f64>;
}

/// A criterion of the sums of some values over the rows of each side.
pub(crate) trait SideSums: Sync {
    /// Number of sums.
    fn len(&self) -> usize;

    /// Most cuts of a feature that are tried at once.
    fn most_cuts(&self) -> usize {
        usize::MAX
    }

    /// Adds the row at `position` of the node.
    fn add(&self, sums: &mut [f64], position: u32);

    /// The estimate of a split.
    fn estimate(&self, left: &[f64], right: &[f64]) -> f64;
}

impl<S: SideSums> Criterion for S {
    fn most_cuts(&self) -> usize {
        SideSums::most_cuts(self)
    }

    fn estimates(&self, bins: &Bins, candidates: &Candidates) -> Vec<f64> {
        let sums_of = |positions: &[u32]| {
            let mut sums = vec![0.0; self.len()];
            positions.iter().for_each(|&position| self.add(&mut sums, position));
            sums
        };
        let (all, missing) = (sums_of(&bins.order), sums_of(&bins.missing));
        let mut right = vec![0.0; self.len()];
        let mut estimate = |left: &mut Vec<f64>, missing_left: bool| {
            right.iter_mut().zip(all.iter().zip(&*left)).for_each(|(right, (all, left))| *right = all - left);
            add(if missing_left { left } else { &mut right }, &missing);
            self.estimate(left, &right)
        };
        match candidates {
            Candidates::Cuts(list) => {
                let (mut left, mut side) = (vec![0.0; self.len()], Vec::new());
                let mut done = 0;
                let of_cut = |candidate: &Candidate| {
                    let end = bins.ends[candidate.key as usize];
                    bins.order[done..end].iter().for_each(|&position| self.add(&mut left, position));
                    done = end;
                    side.clone_from(&left);
                    estimate(&mut side, candidate.missing_left)
                };
                list.iter().map(of_cut).collect()
            }
            Candidates::Groups(list) => {
                let of_bins: Vec<Vec<f64>> = (0..bins.n_bins()).map(|bin| sums_of(bins.bin(bin))).collect();
                let of_group = |candidate: &Candidate| {
                    let mut left = vec![0.0; self.len()];
                    let inside = (0..of_bins.len()).filter(|bin| candidate.key >> bin & 1 == 1);
                    inside.for_each(|bin| add(&mut left, &of_bins[bin]));
                    estimate(&mut left, candidate.missing_left)
                };
                list.iter().map(of_group).collect()
            }
        }
    }
}

fn add(sums: &mut [f64], others: &[f64]) {
    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}
