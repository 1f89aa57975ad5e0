//! The search beside one that sorts all distances.

use pulp::Arch;

use super::small;
use crate::monitor::Monitor;
use crate::neighbors::panels::{Layout, Panels};
use crate::relief::rows::{Rows, Table};
use crate::relief::search::{Neighbours, Search, rounds};
use crate::relief::space::{Example, Shape, Space};

/// The k nearest of each class, by distance to 12 decimals and then by row.
fn naive(rows: &Rows, space: &Space, k: usize) -> Neighbours {
    let example = |row: u32| Example { values: rows.row(row), class: space.class(row) };
    let near = |query: u32, class: usize| {
        let mut found: Vec<(u64, u32)> = Vec::new();
        for &row in rows.numbers.iter().filter(|&&row| row != query && space.class(row) == class) {
            let mut sum = Vec::new();
            space.distances(example(query), &[example(row)], &mut sum);
            found.push(((sum[0] / rows.width as f64 * 1e12).round_ties_even() as u64, row));
        }
        found.sort_unstable();
        found.into_iter().take(k).map(|(_, row)| row).collect()
    };
    rows.numbers.iter().map(|&query| (query, (0..space.n_classes).map(|class| near(query, class)).collect())).collect()
}

fn search<'a>(space: &'a Space, layout: &'a Layout, k: usize, monitor: &'a Monitor) -> Search<'a> {
    Search { space, layout, k, monitor, arch: Arch::new() }
}

#[test]
fn it_finds_the_nearest_of_each_class_also_where_many_tie() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant];
    let monitor = Monitor::default();
    for seed in 0..12 {
        let (width, n_classes) = (1 + seed as usize % 5, 1 + seed as usize % 3);
        let shapes: Vec<Shape> = (0..width).map(|i| kinds[i % kinds.len()]).collect();
        let missing = if seed % 4 == 3 { 0.3 } else { 0.0 };
        let (rows, space, layout) = small(20 + 50 * (seed as usize % 7), &shapes, missing, n_classes, seed);
        for k in [1, 3, 10, 500] {
            let expected = naive(&rows, &space, k);
            let search = search(&space, &layout, k, &monitor);
            assert_eq!(search.of_all(&rows).unwrap(), expected, "seed {seed}, k {k}");
            let mut held = Rows::default();
            held.append(&rows);
            assert_eq!(search.among(&Table::Held(held), &rows).unwrap(), expected, "seed {seed}, k {k}");
        }
    }
}

#[test]
fn of_identical_rows_the_lowest_are_nearest_also_if_met_last() {
    let monitor = Monitor::default();
    // So many that panels are worked on in groups, which do not meet in the order of rows.
    let (rows, space, layout) = small(1500, &[Shape::Nominal], 0.0, 1, 0);
    assert_eq!(search(&space, &layout, 3, &monitor).of_all(&rows).unwrap(), naive(&rows, &space, 3));
}

/// Numeric rows that are few steps of a byte apart in most features, and two of nominal ones.
fn skewed(n_rows: usize, width: usize) -> (Rows, Space, Layout) {
    let mut shapes = vec![Shape::Numeric; width];
    shapes[1..3].fill(Shape::Nominal);
    let (mut rows, space, layout) = small(n_rows, &shapes, 0.0, 1, 1);
    for (n, value) in rows.values.iter_mut().enumerate() {
        if shapes[n % width] == Shape::Numeric {
            *value = value.powi(1 + (n % width) as i32);
        }
    }
    (rows, space, layout)
}

#[test]
fn a_guess_from_a_sample_changes_nothing() {
    let monitor = Monitor::default();
    for (n_rows, width, missing, n_classes, seed) in
        [(500, 40, 0.0, 1, 1), (500, 40, 0.0, 1, 2), (1020, 40, 0.0, 2, 1), (500, 4, 0.0, 1, 2), (500, 7, 0.2, 1, 1)]
    {
        let mut shapes = vec![Shape::Numeric; width];
        shapes[width / 2..][..2].fill(Shape::Nominal);
        let (rows, space, layout) = small(n_rows, &shapes, missing, n_classes, seed);
        assert!(Panels::sample(&layout, &space, &rows, 5).len() >= 6 * n_classes);
        assert_eq!(search(&space, &layout, 5, &monitor).of_all(&rows).unwrap(), naive(&rows, &space, 5));
    }
    let (rows, space, layout) = skewed(500, 36);
    assert_eq!(search(&space, &layout, 5, &monitor).of_all(&rows).unwrap(), naive(&rows, &space, 5));
}

#[test]
fn rows_that_a_sample_misjudges_are_searched_for_again() {
    let monitor = Monitor::default();
    let (mut rows, space, layout) = small(600, &[Shape::Numeric; 32], 0.0, 1, 1);
    for value in &mut rows.values {
        *value = 0.5 + *value / 2.0;
    }
    // All of these are in the sample of one row in 6, and nobody else is near them.
    for row in (0..36).step_by(6) {
        rows.values[32 * row..32 * row + 32].fill(row as f64 * 1e-4);
    }
    assert_eq!(search(&space, &layout, 6, &monitor).of_all(&rows).unwrap(), naive(&rows, &space, 6));
}

#[test]
fn rounds_have_every_pair_once() {
    for n in 0..70 {
        let mut pairs = rounds(n).concat();
        pairs.sort_unstable();
        let all: Vec<(usize, usize)> = (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).collect();
        assert_eq!(pairs, all);
    }
}

#[test]
fn a_run_that_was_stopped_ends() {
    let monitor = Monitor::default();
    monitor.stop();
    let (rows, space, layout) = small(50, &[Shape::Numeric; 2], 0.0, 1, 1);
    assert!(search(&space, &layout, 5, &monitor).of_all(&rows).is_err());
}
