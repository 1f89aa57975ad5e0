//! Neighbor search on small cases by hand and beside naive twins.

mod fixed;
mod kernel;
mod search;
mod sparse;
mod steps;

use pulp::Arch;

use crate::layout::Layout;
use crate::missing::MissingModel;
use crate::rows::Rows;
use crate::space::{Shape, Space};
use crate::space_panels::layout_of;
use crate::weights::DistanceWeights;

/// All vectors that the machine has, and none.
fn archs() -> Vec<Arch> {
    let mut archs = vec![Arch::new(), Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
    archs
}

/// A random number in [0, 1), another one for each `n`.
fn uniform(n: u64) -> f64 {
    (ferrank_runtime::random::mix([n]) >> 11) as f64 / (1u64 << 53) as f64
}

/// The rows of [`small`] with informative missing values.
fn informative(rows: &Rows, space: Space) -> (Space, Layout) {
    let has_missing = |i: usize| rows.values().iter().skip(i).step_by(rows.width).any(|value| value.is_nan());
    let models = (0..rows.width).map(|i| has_missing(i).then_some(MissingModel::Informative)).collect();
    let space = Space::new(space.shapes, models, space.classes, space.n_classes);
    let layout = layout_of(&space);
    (space, layout)
}

/// Rows of some shapes with many ties, about `missing` of the values missing but never those of row 0;
/// of `n_classes` classes.
fn small(n_rows: usize, shapes: &[Shape], missing: f64, n_classes: usize, seed: u64) -> (Rows, Space, Layout) {
    let width = shapes.len();
    let mut values = vec![0.0; n_rows * width];
    for (n, value) in values.iter_mut().enumerate() {
        let key = ferrank_runtime::random::mix([seed, n as u64]);
        *value = match shapes[n % width] {
            Shape::Constant | Shape::Unknown => 0.0,
            Shape::Numeric if seed.is_multiple_of(2) => (key % 5) as f64 / 4.0,
            Shape::Numeric => uniform(key),
            Shape::Nominal => (key % 3) as f64,
        };
        if n >= width && shapes[n % width] != Shape::Constant && uniform(key + 1) < missing {
            *value = f64::NAN;
        }
    }
    let classes: Vec<u16> = (0..n_rows)
        .map(|row| (ferrank_runtime::random::mix([seed, 7, row as u64]) % n_classes as u64) as u16)
        .collect();
    let rows = Rows::from_values(width, &values);
    let (space, layout) = space_of(&rows, shapes, classes, n_classes);
    (rows, space, layout)
}

/// The space with a weight for each feature, some of them 0.
fn weighted(space: Space, seed: u64) -> Space {
    let of_feature = |i: u64| {
        let key = ferrank_runtime::random::mix([seed, 9, i]);
        match key % 4 {
            _ if i == 0 => 2.5,
            0 => 0.0,
            1 => 2.5,
            _ => 3.0 * uniform(key),
        }
    };
    let weights: Vec<f64> = (0..space.shapes.len() as u64).map(of_feature).collect();
    space.with_distance_weights(DistanceWeights::new(&weights))
}

/// The space of `rows`, with expected differences of missing values.
fn space_of(rows: &Rows, shapes: &[Shape], classes: Vec<u16>, n_classes: usize) -> (Space, Layout) {
    let mut missing_models = Vec::new();
    for (i, shape) in shapes.iter().enumerate() {
        let column: Vec<f64> = rows.values().iter().skip(i).step_by(rows.width).copied().collect();
        let with_missing = column.iter().any(|value| value.is_nan());
        let model =
            with_missing.then(|| MissingModel::new(&column, *shape == Shape::Nominal, &classes, n_classes)).flatten();
        missing_models.push(model);
    }
    let space = Space::new(shapes.to_vec(), missing_models, classes, n_classes);
    let layout = layout_of(&space);
    (space, layout)
}
