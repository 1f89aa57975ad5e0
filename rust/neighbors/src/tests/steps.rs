//! Sums in fixed point beside those of rounded values in f64.

use pulp::Arch;

use super::{archs, uniform};
use crate::all_pairs::{AllPairs, Differences};
use crate::rows::Rows;
use crate::space::{Shape, Space};
use crate::steps::{RUN, STEPS, StepRows};
use crate::table::Table;

const N: usize = 41;

/// The sums of `width` features and three more columns, which are 0.5 at first.
fn sums((steps, width): (&StepRows, usize), arch: Arch, (query, rows): (usize, &[u32]), weight: f64) -> Vec<f64> {
    let mut sums = vec![0.5; width + 3];
    let list = Differences { query, rows, weights: &[weight], sums: &mut sums };
    steps.add(arch, &mut [list]);
    sums
}

#[test]
fn sums_are_those_of_rounded_values_on_all_vectors() {
    for width in [1, 7, 16, 33, 100, 150, 300] {
        for nominal in [false, true] {
            let is_nominal: Vec<bool> = (0..width).map(|column| nominal && column % 3 == 0).collect();
            let row_width = width + 2;
            let value = |n: usize| match n % row_width {
                column if column < width && is_nominal[column] => (uniform(n as u64) * 5.0).floor(),
                column if column % 5 == 1 => (uniform(n as u64) * 2.0).round() / 2.0,
                _ => uniform(n as u64),
            };
            let rows: Vec<f64> = (0..N * row_width).map(value).collect();
            let steps = StepRows::new(&rows, row_width, &is_nominal);
            for n in [0, 1, 2, 3, 7, 40] {
                let list: Vec<u32> = (0..n).map(|place| place * 11 % N as u32).collect();
                let mut expected = vec![0.5; width + 3];
                for (&row, column) in list.iter().flat_map(|row| (0..width).map(move |column| (row, column))) {
                    let rounded = |row: usize| (rows[row * row_width + column] * STEPS).round_ties_even() / STEPS;
                    expected[column] -= (rounded(5) - rounded(row as usize)).abs().min(1.0);
                }
                for arch in archs() {
                    assert_eq!(sums((&steps, width), arch, (5, &list), -1.0), expected, "{width} features, {n} rows");
                }
            }
        }
    }
}

#[test]
fn sums_of_many_rows_do_not_overflow() {
    let steps = StepRows::new(&[0.0, 1.0, 0.3], 1, &[false]);
    for n in [RUN - 1, RUN, RUN + 1, 3 * RUN + 5] {
        for arch in archs() {
            assert_eq!(sums((&steps, 1), arch, (0, &vec![1; n]), 1.0)[0], 0.5 + n as f64);
            assert!(
                (sums((&steps, 1), arch, (0, &vec![2; n]), 1.0)[0] - 0.5 - n as f64 * 0.3).abs() < n as f64 / STEPS
            );
        }
    }
}

#[test]
fn sums_with_weights_are_of_the_same_values() {
    for width in [1, 9, 30, 100] {
        let shapes: Vec<Shape> = (0..width).map(|i| [Shape::Numeric, Shape::Numeric, Shape::Nominal][i % 3]).collect();
        let value = |n: usize| match shapes[n % width] {
            Shape::Nominal => (uniform(n as u64) * 5.0).floor(),
            _ => uniform(n as u64),
        };
        let pairs = |has_equal_weights| {
            let mut rows = Rows::with_capacity(N, width);
            rows.add(0..N as u32).iter_mut().enumerate().for_each(|(n, cell)| *cell = value(n));
            let space = Space::new(shapes.clone(), shapes.iter().map(|_| None).collect(), Vec::new(), 1);
            let pairs = AllPairs::new(&Table::Held(rows), &space, (0..N as u32).collect()).unwrap();
            pairs.with_rounded_sums(has_equal_weights)
        };
        let (equal, different) = (pairs(true), pairs(false));
        let list: Vec<u32> = (0..N as u32).collect();
        for arch in archs() {
            let mut expected = vec![0.0; equal.width];
            let of_list = Differences { query: 3, rows: &list, weights: &[1.0], sums: &mut expected };
            equal.add_differences(arch, &mut [of_list], 1);
            for n_units in [1, 2, 7] {
                let mut found = vec![0.0; n_units * equal.width];
                let weights = vec![1.0; n_units * N];
                let of_list = Differences { query: 3, rows: &list, weights: &weights, sums: &mut found };
                different.add_differences(arch, &mut [of_list], n_units);
                // Sums of few multiples of 2⁻³⁰ are exact in f64, too.
                found.chunks_exact(equal.width).for_each(|found| assert_eq!(found, expected, "{width} features"));
            }
        }
    }
}
