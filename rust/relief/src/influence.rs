//! The influence of rows without a target (Petković et al. 2023 §5.2, Alg. 3).
//!
//! A row with a target has influence 1. The influence of another row is linear in its distance from the nearest row with
//! a target: w1 at the smallest distance, w0 at the largest, and w1 if all are equal. The influences of a pair are
//! multiplied. If one of its rows has no target, the distance of the features replaces that of the targets.
//!
//! If rows have groups, the nearest row with a target is one of another group; a row that has none counts as farthest.
//!
//! The paper gives the ends of the line as points (d, w) and leaves open how the influences of a pair combine.
//!
//! Memory: 9 bytes a row.

use pulp::Arch;
use rayon::prelude::*;

use super::prepared::{Prepared, gather};
use ferrank_data::store::TargetColumn;
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::nearest::{NearestParams, Search};
use ferrank_neighbors::panels::Panels;
use ferrank_neighbors::sparse::Index;
use ferrank_neighbors::table::Table;
use ferrank_runtime::error::Result;

/// The influence of each row.
#[derive(Debug)]
pub(crate) struct Influence {
    /// n_rows; in [0, 1].
    of: Vec<f64>,
    /// n_rows; true if a target of the row is known.
    is_labelled: Vec<bool>,
}

impl Influence {
    /// Computes influences from the distance of each row from the nearest row with a target; `None` for rows that have
    /// one.
    fn new(distances: &[Option<f64>], (w0, w1): (f64, f64)) -> Self {
        let known = || distances.iter().flatten().copied().filter(|distance| distance.is_finite());
        let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
        let line = |distance: f64| match distance {
            f64::INFINITY => w0,
            distance if most > least => w1 + (w0 - w1) * (distance - least) / (most - least),
            _ => w1,
        };
        Influence {
            of: distances.iter().map(|distance| distance.map_or(1.0, line)).collect(),
            is_labelled: distances.iter().map(Option::is_none).collect(),
        }
    }

    /// The influence of a pair of rows, and true if the targets of both are known.
    pub(crate) fn of_pair(&self, a: u32, b: u32) -> (f64, bool) {
        let (a, b) = (a as usize, b as usize);
        (self.of[a] * self.of[b], self.is_labelled[a] && self.is_labelled[b])
    }
}

/// The rows with a known target, and the others.
fn by_label(targets: &[TargetColumn], n_rows: usize) -> (Vec<u32>, Vec<u32>) {
    let is_known = |row: usize| targets.iter().any(|target| target.is_known(row));
    (0..n_rows as u32).partition(|&row| is_known(row as usize))
}

impl Prepared<'_> {
    /// The influence of all rows, for `ends` (w0, w1).
    pub(super) fn influence(&self, ends: (f64, f64)) -> Result<Influence> {
        let (labelled, others) = by_label(&self.targets, self.n_rows);
        let mut distances = vec![None; self.n_rows];
        for (&row, distance) in others.iter().zip(self.distances(&others, &labelled)?) {
            distances[row as usize] = Some(distance);
        }
        Ok(Influence::new(&distances, ends))
    }

    /// The distance of each of `rows` from the nearest of `others`, rounded to 12 decimals.
    fn distances(&self, rows: &[u32], others: &[u32]) -> Result<Vec<f64>> {
        if let Table::Sparse(table) = &self.table {
            return Index::new(table, &self.space).distances(rows, others, self.monitor);
        }
        let (layout, monitor) = (&self.layout, self.monitor);
        let params = NearestParams { k: 1, unordered: 1 };
        let search = Search { space: &self.space, layout, params, monitor, arch: Arch::new() };
        let together = (self.limits.group / (Panels::row_bytes(&self.layout) + 8 * self.space.shapes.len())).max(1);
        let mut least = vec![f64::INFINITY; rows.len()];
        for others in others.chunks(together) {
            let near = Table::Held(gather(&self.table, others, self.space.shapes.len())?);
            for (rows, least) in rows.chunks(together).zip(least.chunks_mut(together)) {
                let queries = gather(&self.table, rows, self.space.shapes.len())?;
                let neighbors = search.among(&near, &queries)?;
                let Table::Held(near) = &near else { unreachable!("held, as created above") };
                let context = DistanceContext { space: &self.space, queries: &queries, rows: near };
                rows.par_iter().zip(least).for_each(|(row, least)| {
                    // The nearest of any class.
                    let nearest = neighbors.of(*row).flatten();
                    nearest.for_each(|&other| *least = least.min(context.distance(*row, other)));
                });
            }
        }
        Ok(least)
    }
}

#[cfg(test)]
mod tests {
    use ferrank_data::store::Values;

    use super::*;

    #[test]
    fn a_row_with_some_target_is_labelled() {
        let target = |values: [f64; 4]| TargetColumn::Numeric(Values::Held(values.to_vec()));
        let targets = [target([1.0, f64::NAN, f64::NAN, 2.0]), target([f64::NAN, f64::NAN, 0.0, 1.0])];
        assert_eq!(by_label(&targets, 4), (vec![0, 2, 3], vec![1]));
    }

    #[test]
    fn influence_falls_from_the_nearest_row_to_the_farthest() {
        let distances = [None, Some(0.2), Some(0.6), Some(0.4)];
        let influence = Influence::new(&distances, (0.25, 0.75));
        for (found, wanted) in influence.of.iter().zip([1.0, 0.75, 0.25, 0.5]) {
            assert!((found - wanted).abs() < 1e-15);
        }
        assert_eq!(influence.of_pair(0, 0), (1.0, true));
        let (influence, known) = influence.of_pair(0, 2);
        assert!((influence - 0.25).abs() < 1e-15 && !known);
        assert_eq!(Influence::new(&[Some(0.3), None, Some(0.3)], (0.0, 0.5)).of, [0.5, 1.0, 0.5]);
        assert_eq!(Influence::new(&[None; 2], (0.0, 0.5)).of, [1.0, 1.0]);
        let without = [Some(0.3), Some(f64::INFINITY), Some(0.5)];
        assert_eq!(Influence::new(&without, (0.25, 0.75)).of, [0.75, 0.25, 0.25]);
    }
}
