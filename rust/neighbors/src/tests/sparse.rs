//! Sparse rows beside dense ones.

use super::{small, weighted};
use crate::space::{Shape, rounded};
use crate::sparse::{Index, SparseRows, Usual};
use ferrank_runtime::monitor::Monitor;

#[test]
fn sparse_rows_expand_to_what_they_were() {
    let shapes = [Shape::Numeric, Shape::Nominal, Shape::Constant, Shape::Numeric];
    let (rows, ..) = small(50, &shapes, 0.1, 2, 4);
    let mut sparse = SparseRows::new(Usual::constant(0.0, shapes.len()));
    sparse.append(&rows);
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut values = Vec::new();
    sparse
        .expand(7, |part| -> Result<(), ()> {
            assert_eq!(part.numbers[0] as usize * 4, values.len());
            values.extend(bits(part.values()));
            Ok(())
        })
        .unwrap();
    assert_eq!(values, bits(rows.values()));
    for (column, feature) in sparse.columns(&[3, 0]).iter().zip([3, 0]) {
        let expected: Vec<f64> = rows.values().iter().skip(feature).step_by(4).copied().collect();
        assert_eq!(bits(column), bits(&expected));
    }
}

#[test]
fn distances_from_the_nearest_are_rounded() {
    let shapes = [Shape::Numeric; 10];
    let (rows, space, _) = small(60, &shapes, 0.1, 1, 5);
    let mut sparse = SparseRows::new(Usual::constant(0.0, shapes.len()));
    sparse.append(&rows);
    let (some, others): (Vec<u32>, Vec<u32>) = (0..60).partition(|row| row % 3 == 0);
    for space in [space, weighted(small(60, &shapes, 0.1, 1, 5).1, 3)] {
        let found = Index::new(&sparse, &space).distances(&some, &others, &Monitor::default()).unwrap();
        let example = |row: u32| space.example(row, rows.row(row));
        for (&row, found) in some.iter().zip(found) {
            let mut sums = Vec::new();
            space.distances(example(row), &others.iter().map(|&other| example(other)).collect::<Vec<_>>(), &mut sums);
            let least = sums.iter().map(|&sum| rounded(sum, space.divisor())).fold(f64::INFINITY, f64::min);
            assert_eq!(found.to_bits(), least.to_bits(), "row {row}");
        }
    }
}
