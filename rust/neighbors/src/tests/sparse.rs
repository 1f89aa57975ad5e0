//! Sparse rows beside dense ones.

use super::small;
use crate::space::Shape;
use crate::sparse::{SparseRows, Usual};

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
