//! Missing values of features that have few.
//!
//! Panels hold the mean of the known values of the class in the place of such a value, so that distances in f32 are lower
//! bounds: the mean is at most as far from other values as is expected of the missing one. Where a pair may be among the
//! nearest, [`ExactDistance::beyond_means`](crate::sink::ExactDistance::beyond_means) is added. The *excess* of a row bounds
//! what is added for its missing values: the expected distance of known values from their mean, for each of them.
//!
//! Panels then have no lines of expected differences, and none are computed that no pair needs.

use rayon::prelude::*;

use super::layout::{LANES, NO_ROW};

/// Most missing values of a pair whose expected differences are interpolated, so that their errors stay small.
pub(super) const MOST_INTERPOLATED: usize = 8;

/// The missing values of rows in panels.
#[derive(Debug)]
pub(super) struct Gaps {
    /// n_rows + 1; where the features of each row start.
    starts: Vec<u32>,
    /// Features that are missing, row after row.
    features: Vec<u32>,
    /// n_rows
    excess: Vec<f32>,
}

/// The missing values of the rows of a panel.
#[derive(Debug, Clone, Copy)]
pub(super) struct PanelGaps<'a> {
    starts: &'a [u32],
    features: &'a [u32],
    pub(super) excess: &'a [f32; LANES],
}

impl Gaps {
    /// `missing` gives the features that a row misses, and the excess of each.
    pub(super) fn new(numbers: &[u32], missing: impl Fn(u32) -> Vec<(u32, f64)> + Sync) -> Self {
        let of_row = |&number: &u32| if number == NO_ROW { Vec::new() } else { missing(number) };
        let rows: Vec<Vec<(u32, f64)>> = numbers.par_iter().map(of_row).collect();
        let mut starts = Vec::with_capacity(numbers.len() + 1);
        starts.push(0);
        starts.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() as u32;
            Some(*end)
        }));
        let sum = |row: &Vec<(u32, f64)>| row.iter().map(|(_, excess)| excess).sum::<f64>() as f32;
        Gaps {
            starts,
            excess: rows.iter().map(sum).collect(),
            features: rows.into_iter().flatten().map(|(feature, _)| feature).collect(),
        }
    }

    pub(super) fn panel(&self, number: usize) -> PanelGaps<'_> {
        let first = number * LANES;
        PanelGaps {
            starts: &self.starts[first..=first + LANES],
            features: &self.features,
            excess: self.excess[first..].first_chunk().expect("LANES of them"),
        }
    }
}

impl<'a> PanelGaps<'a> {
    /// The features that the row in `lane` misses.
    pub(super) fn features(self, lane: usize) -> &'a [u32] {
        &self.features[self.starts[lane] as usize..self.starts[lane + 1] as usize]
    }
}
