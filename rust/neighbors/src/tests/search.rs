//! The search beside one that sorts all distances.

use pulp::Arch;

use super::{archs, informative, small, space_of, weighted};
use crate::context::DistanceContext;
use crate::layout::LANES;
use crate::layout::Layout;
use crate::nearest::{Bounds, NearestK, NearestParams, NeighborLists, Search};
use crate::rows::Rows;
use crate::scan::Scan;
use crate::space::{Shape, Space};
use crate::space_panels::{error_of, layout_of, panels_of};
use crate::table::Table;
use ferrank_data::groups::Groups;
use ferrank_data::values::{Keep, Values};
use ferrank_runtime::monitor::Monitor;

/// The k nearest of each class, by distance to 12 decimals and then by row.
fn naive(rows: &Rows, space: &Space, k: usize) -> NeighborLists {
    let example = |row: u32| space.example(row, rows.row(row));
    let near = |query: u32, class: usize| {
        let mut found: Vec<(u64, u32)> = Vec::new();
        for &row in rows.numbers.iter().filter(|&&row| !space.excludes(query, row) && space.class(row) == class) {
            let mut sum = Vec::new();
            space.distances(example(query), &[example(row)], &mut sum);
            found.push(((sum[0] / space.divisor() * 1e12).round_ties_even() as u64, row));
        }
        found.sort_unstable();
        found.into_iter().take(k).map(|(_, row)| row).collect::<Vec<u32>>()
    };
    let mut neighbors = NeighborLists::new(space.n_classes);
    for &query in &rows.numbers {
        neighbors.add(query, (0..space.n_classes).map(|class| near(query, class)));
    }
    neighbors.sorted()
}

/// The same lists for the same queries.
fn assert_same(found: &NeighborLists, expected: &NeighborLists, queries: &[u32], what: &str) {
    for &query in queries {
        let lists = |neighbors: &NeighborLists| neighbors.of(query).map(<[u32]>::to_vec).collect::<Vec<_>>();
        assert_eq!(lists(found), lists(expected), "query {query}, {what}");
    }
}

/// Searches on all vectors that there are find what sorting does.
fn assert_found(rows: &Rows, space: &Space, layout: &Layout, k: usize, what: &str) {
    let short = Layout { is_short: true, ..layout_of(space) };
    let of_one_byte = Layout { coordinates: 1, ..layout_of(space) };
    for layout in [layout, &short, &of_one_byte] {
        assert_found_with(rows, space, layout, k, what);
    }
}

fn assert_found_with(rows: &Rows, space: &Space, layout: &Layout, k: usize, what: &str) {
    let (expected, monitor) = (naive(rows, space, k), Monitor::default());
    for arch in archs() {
        let search = Search { arch, ..search(space, layout, k, &monitor) };
        for budget in [0, usize::MAX] {
            assert_same(&search.of_all(rows, budget).unwrap(), &expected, &rows.numbers, what);
        }
        for unordered in [1, k / 2, k] {
            let found = Search { params: NearestParams { k, unordered }, ..search }.of_all(rows, 0).unwrap();
            for &query in &rows.numbers {
                for (list, expected) in found.of(query).zip(expected.of(query)) {
                    let [found, expected] = [list, expected].map(|list| {
                        let mut list = list.to_vec();
                        let n = NearestParams { k, unordered }.n_unordered(list.len());
                        list[..n].sort_unstable();
                        list
                    });
                    assert_eq!(found, expected, "query {query}, {unordered} of {k} in any order, {what}");
                }
            }
        }
    }
}

fn search<'a>(space: &'a Space, layout: &'a Layout, k: usize, monitor: &'a Monitor) -> Search<'a> {
    Search { space, layout, params: NearestParams { k, unordered: 0 }, monitor, arch: Arch::new() }
}

#[test]
fn it_finds_the_nearest_of_each_class_also_where_many_tie() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant];
    let monitor = Monitor::default();
    for seed in 0..16 {
        let (width, n_classes) = (1 + seed as usize % 5, 1 + seed as usize % 3);
        // With so many numeric features bytes serve.
        let width = if seed < 12 { width } else { 60 + width };
        let shapes: Vec<Shape> = (0..width).map(|i| kinds[i % kinds.len()]).collect();
        let missing = if seed % 4 == 3 { 0.3 } else { 0.0 };
        let (rows, space, layout) = small(20 + 50 * (seed as usize % 7), &shapes, missing, n_classes, seed);
        let most: &[usize] = if seed < 12 { &[1, 3, 10, 500] } else { &[10] };
        for &k in most {
            let what = format!("seed {seed}, k {k}");
            assert_found(&rows, &space, &layout, k, &what);
            let mut held = Rows::with_capacity(rows.numbers.len(), width);
            held.add_some(&rows, &rows.numbers);
            let found = search(&space, &layout, k, &monitor).among(&Table::Held(held), &rows).unwrap();
            assert_same(&found, &naive(&rows, &space, k), &rows.numbers, &what);
        }
    }
}

#[test]
fn it_finds_the_nearest_of_few_rows_with_many_features() {
    // More features of each kind than are compared before those that follow, and a constant one between them.
    for seed in 0..2 {
        let kinds = [Shape::Numeric, Shape::Nominal, Shape::Nominal, Shape::Numeric, Shape::Constant];
        let shapes: Vec<Shape> = (0..11_000).map(|i| kinds[i % kinds.len()]).collect();
        let (rows, space, layout) = small(37, &shapes, 0.0, 2, seed);
        let (expected, monitor) = (naive(&rows, &space, 5), Monitor::default());
        let layout = layout.for_rows(rows.numbers.len());
        for arch in archs() {
            let search = Search { arch, ..search(&space, &layout, 5, &monitor) };
            let found = search.of_all(&rows, usize::MAX).unwrap();
            assert_same(&found, &expected, &rows.numbers, &format!("seed {seed}, {arch:?}"));
        }
    }
}

#[test]
fn categories_beyond_a_byte_differ() {
    let rows = Rows::from_values(2, &[300.0, 1.0, 44.0, 1.0, 300.0, 2.0, 44.0, 2.0, 300.0, 2.0]);
    let space = Space::new(vec![Shape::Nominal; 2], vec![None, None], Vec::new(), 1);
    let layout = Layout { is_short: true, ..layout_of(&space) };
    assert_found(&rows, &space, &layout, 2, "numbers that agree in their last byte");
}

#[test]
fn rows_of_the_same_group_are_no_neighbors() {
    for what in ["pairs", "runs", "one large", "scattered"] {
        let group = |row: u64| match what {
            "pairs" => row / 2,
            "runs" => row / 40,
            "one large" => row / 250,
            _ => ferrank_runtime::random::mix([row]) % 12,
        };
        for (width, missing, n_classes, seed) in [(3, 0.2, 2, 3), (40, 0.0, 1, 1)] {
            let (rows, space, layout) = small(300, &vec![Shape::Numeric; width], missing, n_classes, seed);
            let hashes: Vec<u64> = (0..300).map(group).collect();
            let groups = Groups::new(&[Values::Held(hashes.clone())], "table", Keep::Memory).unwrap();
            let space = space.with_groups(Some(groups));
            for k in [1, 20] {
                let what = format!("{what}, {width} features, k {k}");
                assert_found(&rows, &space, &layout, k, &what);
                let monitor = Monitor::default();
                let found = search(&space, &layout, k, &monitor).of_all(&rows, 0).unwrap();
                let group = |row: u32| hashes[row as usize];
                let is_other = |query: u32| found.of(query).flatten().all(|&row| group(row) != group(query));
                assert!(rows.numbers.iter().all(|&query| is_other(query)), "{what}");
            }
        }
    }
}

#[test]
fn of_identical_rows_the_lowest_are_nearest_also_if_met_last() {
    // So many that panels are worked on in groups, which do not meet in the order of rows.
    let (rows, space, layout) = small(1500, &[Shape::Nominal], 0.0, 1, 0);
    assert_found(&rows, &space, &layout, 3, "nominal");
    let (mut rows, space, layout) = small(400, &[Shape::Numeric; 32], 0.0, 1, 0);
    rows.values_mut().fill(0.25);
    assert_found(&rows, &space, &layout, 3, "numeric");
}

#[test]
fn byte_codes_leave_no_neighbor_out() {
    for (n_rows, width, missing, n_classes, seed) in [
        (300, 40, 0.0, 1, 1),
        (200, 130, 0.0, 1, 2),
        (400, 40, 0.0, 2, 1),
        (150, 40, 0.1, 2, 1),
        (180, 40, 0.6, 3, 1),
        // So wide that pairs are compared once, if memory allows.
        (90, 259, 0.0, 1, 1),
        (120, 150, 0.1, 2, 1),
    ] {
        let mut shapes = vec![Shape::Numeric; width];
        shapes[width / 2..][..2].fill(Shape::Nominal);
        let (rows, space, layout) = small(n_rows, &shapes, missing, n_classes, seed);
        let what = format!("{n_rows} x {width}, {missing} missing, {n_classes} classes");
        [1, 5, 40].into_iter().for_each(|k| assert_found(&rows, &space, &layout, k, &what));
        if missing > 0.0 {
            let (space, layout) = informative(&rows, space);
            assert_found(&rows, &space, &layout, 5, &format!("{what}, informative"));
        }
    }
    // Rows that are few steps of a byte apart in most features.
    let (mut rows, space, layout) = small(300, &[Shape::Numeric; 36], 0.0, 1, 1);
    for (n, value) in rows.values_mut().iter_mut().enumerate() {
        *value = value.powi(1 + (n % 36) as i32);
    }
    assert_found(&rows, &space, &layout, 5, "skewed");
    // Panels that the scale is chosen from say nothing of the others.
    let (mut rows, space, layout) = small(512, &[Shape::Numeric; 64], 0.0, 1, 1);
    for row in rows
        .values_mut()
        .chunks_exact_mut(64)
        .enumerate()
        .filter(|(n, _)| (n / LANES).is_multiple_of(2))
        .map(|(_, row)| row)
    {
        row.iter_mut().for_each(|value| *value *= 1e-3);
    }
    assert_found(&rows, &space, &layout, 5, "sampled badly");
}

#[test]
fn nor_do_they_among_rows_that_come_in_parts() {
    // From the second part on, queries have thresholds.
    const PARTS: u32 = 5;
    for (n_rows, width, missing, n_classes, k) in
        [(900, 20, 0.0, 1, 3), (700, 40, 0.0, 2, 1), (600, 33, 0.1, 1, 5), (401, 100, 0.0, 1, 1)]
    {
        let mut shapes = vec![Shape::Numeric; width];
        shapes[width / 2..][..2].fill(Shape::Nominal);
        let (mut rows, space, layout) = small(n_rows, &shapes, missing, n_classes, 1);
        // Rows of a part are as near as those of others, but for some that are far.
        for values in rows.values_mut().chunks_exact_mut(7 * width) {
            values[..width].iter_mut().for_each(|value| *value = value.floor());
        }
        let expected = naive(&rows, &space, k);
        let panels = panels_of(&layout, &space, &rows);
        let monitor = Monitor::default();
        for arch in archs() {
            let scan = Scan { layout: &layout, monitor: &monitor, arch };
            let (params, error) = (NearestParams { k, unordered: 0 }, |sum| error_of(&layout, sum));
            let mut lists: Vec<NearestK> = scan
                .groups(&panels)
                .map(|group| NearestK::new(&layout, &panels, group, params, n_classes, error))
                .collect();
            for part in 0..PARTS {
                let numbers: Vec<u32> = (0..n_rows as u32).filter(|row| row % PARTS == part).collect();
                let mut of_part = Rows::with_capacity(numbers.len(), width);
                of_part.add_some(&rows, &numbers);
                let row_panels = panels_of(&layout, &space, &of_part);
                let exact = DistanceContext { space: &space, queries: &rows, rows: &of_part };
                let bounds = Bounds::new(&layout, arch, &panels, &row_panels, k);
                let offered =
                    scan.offer(exact, [&panels, &row_panels], bounds, &mut lists, |lists| lists.refine_all(exact));
                offered.unwrap();
            }
            let mut found = NeighborLists::new(n_classes);
            lists.iter().flat_map(NearestK::neighbors).for_each(|(query, rows)| found.add(query, rows));
            assert_same(&found.sorted(), &expected, &rows.numbers, &format!("{n_rows} x {width} in parts"));
        }
    }
}

#[test]
fn nor_do_they_leave_one_out_by_categories() {
    for (n_rows, width, missing, n_classes, seed) in
        [(300, 40, 0.0, 1, 1), (250, 33, 0.0, 3, 2), (200, 70, 0.1, 2, 3), (300, 20, 0.02, 1, 4)]
    {
        let shapes = vec![Shape::Nominal; width];
        let (mut rows, space, _) = small(n_rows, &shapes, missing, n_classes, seed);
        // Two to nine categories: with more than four some have the same bytes.
        for (n, value) in rows.values_mut().iter_mut().enumerate() {
            let n_categories = 2 + (n % width % 8) as u64;
            *value += 3.0 * (ferrank_runtime::random::mix([seed, 5, n as u64]) % 3) as f64;
            *value %= n_categories as f64;
        }
        let (space, layout) = space_of(&rows, &shapes, space.classes, n_classes);
        let what = format!("{n_rows} x {width} categories, {missing} missing, {n_classes} classes");
        [1, 5, 40].into_iter().for_each(|k| assert_found(&rows, &space, &layout, k, &what));
        if missing > 0.0 {
            let (space, layout) = informative(&rows, space);
            assert_found(&rows, &space, &layout, 5, &format!("{what}, informative"));
        }
    }
}

#[test]
fn differences_computed_beforehand_have_the_same_bits() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant, Shape::Numeric, Shape::Unknown];
    let shapes: Vec<Shape> = (0..17).map(|i| kinds[i % kinds.len()]).collect();
    for missing in [0.0, 0.1, 0.7] {
        let (mut rows, _, _) = small(60, &shapes, missing, 3, 1);
        for row in rows.values_mut().chunks_exact_mut(17) {
            (0..17).filter(|&i| shapes[i] == Shape::Unknown).for_each(|i| row[i] = f64::NAN);
        }
        let classes: Vec<u16> = (0..60).map(|row| row % 3).collect();
        let (space, layout) = space_of(&rows, &shapes, classes.clone(), 3);
        let computed = space_of(&rows, &shapes, classes, 3).0.with_expected(rows.values());
        for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))) {
            let of = |space: &Space| {
                let [a, b] = [a, b].map(|row| space.example(row, rows.row(row)));
                let mut all = vec![0.0; 17];
                space.differences(Arch::new(), a, b, &mut all);
                all.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
            };
            let apart = (0..17).map(|i| {
                let [a, b] = [a, b].map(|row| (rows.row(row)[i], space.class(row)));
                space.apart(i, a, b).to_bits()
            });
            assert_eq!(of(&space), apart.collect::<Vec<u64>>());
            assert_eq!(of(&space), of(&computed));
        }
        assert_found(&rows, &computed, &layout, 4, "computed beforehand");
    }
}

#[test]
fn nor_do_means_in_the_place_of_few_missing_values() {
    let shapes: Vec<Shape> = (0..44).map(|i| if i % 11 == 10 { Shape::Nominal } else { Shape::Numeric }).collect();
    for (seed, n_classes) in [(1, 2), (2, 1), (3, 3)] {
        let (mut rows, ..) = small(420, &shapes, 0.0005, n_classes, seed);
        // A row that misses most values: as many as are few.
        rows.values_mut()[44 * 6..44 * 7 - 10].fill(f64::NAN);
        let classes: Vec<u16> = (0..420).map(|row| row % n_classes as u16).collect();
        let (space, layout) = space_of(&rows, &shapes, classes, n_classes);
        assert!(layout.with_gaps.len() > 5 && layout.with_missing.len() > 5, "{layout:?}");
        [1, 9].into_iter().for_each(|k| assert_found(&rows, &space, &layout, k, &format!("seed {seed}")));
        let space = space.with_expected(rows.values());
        assert_found(&rows, &space, &layout, 5, &format!("seed {seed}, held"));
        let monitor = Monitor::default();
        let mut held = Rows::with_capacity(420, 44);
        held.add_some(&rows, &rows.numbers);
        let found = search(&space, &layout, 5, &monitor).among(&Table::Held(held), &rows).unwrap();
        assert_same(&found, &naive(&rows, &space, 5), &rows.numbers, "among");
    }
}

#[test]
fn nor_do_they_where_missing_values_differ_between_classes() {
    let shapes = [Shape::Numeric; 48];
    let (mut rows, space, _) = small(320, &shapes, 0.0, 2, 1);
    let classes: Vec<u16> = (0..320).map(|row| space.class(row) as u16).collect();
    for (row, values) in rows.values_mut().chunks_exact_mut(48).enumerate() {
        for (feature, value) in values.iter_mut().enumerate() {
            // A class has low values in some features, the other one in the others.
            *value = 0.3 * *value + if (feature % 2 == 0) == (classes[row] == 0) { 0.7 } else { 0.0 };
            // Some rows miss more than others, and never all.
            if feature % 8 < row % 7 {
                *value = f64::NAN;
            }
        }
    }
    let (space, layout) = space_of(&rows, &shapes, classes, 2);
    [1, 5].into_iter().for_each(|k| assert_found(&rows, &space, &layout, k, "classes apart"));
}

#[test]
fn nor_do_they_where_the_nearest_stand_together() {
    let (mut rows, space, layout) = small(400, &[Shape::Numeric; 32], 0.0, 1, 1);
    for (n, row) in rows.values_mut().chunks_exact_mut(32).enumerate() {
        row.iter_mut().for_each(|value| *value = *value * 1e-3 + n as f64 / 500.0);
    }
    [1, 6, 50].into_iter().for_each(|k| assert_found(&rows, &space, &layout, k, "sorted"));
    // The nearest of all queries are in one panel, or in one lane of all.
    for part in [0..16, 0..400] {
        for row in part.clone().filter(|row| part.len() == 16 || row % 16 == 3) {
            rows.values_mut()[32 * row..32 * (row + 1)].fill(row as f64 * 1e-4);
        }
        assert_found(&rows, &space, &layout, 6, "together");
    }
}

#[test]
fn a_run_that_was_stopped_ends() {
    let monitor = Monitor::default();
    monitor.stop();
    let (rows, space, layout) = small(50, &[Shape::Numeric; 2], 0.0, 1, 1);
    assert!(search(&space, &layout, 5, &monitor).of_all(&rows, 0).is_err());
}

#[test]
fn distances_are_weighted_means() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant];
    for seed in 0..8 {
        let shapes: Vec<Shape> = (0..7).map(|i| kinds[i % kinds.len()]).collect();
        let (rows, space, _) = small(12, &shapes, 0.3, 2, seed);
        let space = weighted(space, seed);
        for (a, b) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
            let [a, b] = [a, b].map(|row| space.example(row, rows.row(row)));
            let (mut sum, mut total) = (0.0, 0.0);
            for i in 0..7 {
                sum += space.weight(i) * space.difference(i, a, b);
                total += space.weight(i);
            }
            let mut found = Vec::new();
            space.distances(a, &[b], &mut found);
            assert_eq!((found[0], space.divisor()), (sum, total));
            let differences: Vec<f64> = (0..7).map(|i| space.difference(i, a, b)).collect();
            assert!((space.distance_of(&differences) - sum / total).abs() < 1e-15);
        }
    }
}

#[test]
fn it_finds_the_nearest_by_weighted_distances() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Numeric, Shape::Constant];
    for seed in 0..16 {
        let n_classes = 1 + seed as usize % 3;
        let width = if seed < 8 { 4 + seed as usize } else { 90 };
        // Numbers alone have byte codes.
        let shapes: Vec<Shape> = match seed % 2 {
            0 => (0..width).map(|i| kinds[i % kinds.len()]).collect(),
            _ => vec![Shape::Numeric; width],
        };
        let (missing, n_rows) = [(0.0, 150), (0.3, 150), (0.0005, 420), (0.02, 150)][seed as usize / 2 % 4];
        let (rows, space, _) = small(n_rows, &shapes, missing, n_classes, seed);
        let space = weighted(space, seed).with_expected(rows.values());
        let what = format!("seed {seed}");
        assert_found(&rows, &space, &layout_of(&space), 7, &what);
        let (space, _) = informative(&rows, space);
        let space = weighted(space, seed);
        assert_found(&rows, &space, &layout_of(&space), 7, &format!("{what}, informative"));
    }
}
