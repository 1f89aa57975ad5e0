//! The profile of a source that keeps features as compressed sparse rows.
//!
//! It has the bits of the profile of the same rows in batches. Cost: the entries, and a little for each feature.

use rayon::prelude::*;

use super::distinct::Distinct;
use super::sampled::SampledValues;
use super::{ColumnProfile, NumericProfile, Place, Profile, known};
use crate::reservation::Reservation;
use crate::sparse::SparseIntake;
use ferrank_runtime::error::Result;

/// The rows of a sample.
pub(super) struct SampledRows {
    /// n_rows; the position in the sample, or [`SampledRows::NOT`].
    positions: Vec<u32>,
    pub(super) len: usize,
    pub(super) holds_all: bool,
}

impl SampledRows {
    const NOT: u32 = u32::MAX;

    pub(super) fn holds(&self, row: usize) -> bool {
        self.positions[row] != SampledRows::NOT
    }
}

impl Profile {
    /// The profile of the columns of `sparse` and of those beside them.
    pub(super) fn with_sparse(
        sparse: &SparseIntake<'_>,
        max_bins: usize,
        place: Place,
        reservation: &Reservation,
    ) -> Result<Self> {
        let problem = sparse.intake.problem;
        let mut profile = Profile::by_batch(&sparse.rest(), max_bins, place, problem.features.len(), reservation)?;
        let values = sparse.by_feature()?;
        let sampled = profile.sampled_rows(place, values.n_rows);
        let columns = (0..sparse.n_features()).into_par_iter().map(|number| {
            let numeric = NumericProfile::of_entries(max_bins, values.n_rows, values.of(number), &sampled);
            numeric.map(ColumnProfile::Numeric).map_err(|error| sparse.in_feature(number, error))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let first = sparse.first_feature();
        profile.features.splice(first..first, columns);
        profile.names = problem.names();
        Ok(profile)
    }

    /// Which of the `n_rows` rows that the profile is of are in its sample.
    pub(super) fn sampled_rows(&self, place: Place, n_rows: usize) -> SampledRows {
        let (mut positions, mut len) = (Vec::with_capacity(n_rows), 0);
        for row in 0..n_rows as u64 {
            let is_sampled = self.sample.holds(place.first_row + row);
            positions.push(if is_sampled { len as u32 } else { SampledRows::NOT });
            len += usize::from(is_sampled);
        }
        debug_assert_eq!(len, self.sample.hashes.len());
        SampledRows { positions, len, holds_all: self.sample.holds_all() }
    }
}

impl NumericProfile {
    /// The profile of a column of `n_rows` rows that is 0 but for the entries: `rows`, which ascend, and their `values`.
    fn of_entries(
        max_bins: usize,
        n_rows: usize,
        (rows, values): (&[u32], &[f64]),
        sampled: &SampledRows,
    ) -> Result<Self> {
        let mut profile = NumericProfile::new(max_bins);
        profile.add_range(values)?;
        let zeros: &[f64] = if rows.len() < n_rows { &[0.0] } else { &[] };
        profile.add_range(zeros)?;
        profile.zeros += (n_rows - rows.len()).saturating_sub(1) as u64;
        let position = |(&row, &value): (&u32, &f64)| {
            let position = sampled.positions[row as usize];
            (position != SampledRows::NOT && value != 0.0).then(|| (position, known(value)))
        };
        profile.sample = SampledValues::Sparse(sampled.len, rows.iter().zip(values).filter_map(position).collect());
        if !sampled.holds_all {
            let mut distinct = Distinct::of(max_bins, &[values, zeros].concat());
            distinct.prune(0);
            profile.distinct = Some(distinct);
        }
        Ok(profile)
    }
}
