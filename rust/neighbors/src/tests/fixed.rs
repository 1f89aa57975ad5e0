//! Distances in fixed point beside those in f64.

use super::{archs, uniform};
use crate::fixed::FixedRows;

#[test]
fn distances_are_within_their_error_on_all_vectors() {
    // 70 numbers make two runs; categories of one, two, three and five.
    let n_categories: Vec<usize> = [vec![0; 70], vec![1, 2, 3, 5]].concat();
    let width = n_categories.len();
    let value = |n: usize| match n_categories[n % width] {
        0 if n.is_multiple_of(7) => (uniform(n as u64) * 4.0).round() / 4.0,
        0 if n % 7 == 1 => uniform(n as u64) * 1e-9,
        0 => uniform(n as u64),
        categories => (uniform(n as u64) * categories as f64).floor(),
    };
    let rows: Vec<f64> = (0..37 * width).map(value).collect();
    let row = |number: usize| &rows[number * width..][..width];
    let fixed = FixedRows::new(&rows, width, &n_categories).unwrap();
    for arch in archs() {
        let (queries, mut found) = ([3, 36, 0], Vec::new());
        fixed.distances(arch, &queries, &mut found);
        for (query, found) in queries.iter().zip(found.chunks_exact(fixed.stride())) {
            for (other, &found) in found[..37].iter().enumerate() {
                let exact: f64 = row(*query).iter().zip(row(other)).map(|(a, b)| (a - b).abs().min(1.0)).sum();
                let error = fixed.error(*query);
                assert!((found - exact).abs() <= error && error < 74.0 / f64::from(1 << 25), "{found} for {exact}");
            }
        }
    }
    assert!(FixedRows::new(&rows, width, &vec![9; width]).is_none());
}
