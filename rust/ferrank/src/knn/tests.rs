//! The search beside one that sorts all distances, on tables of both kinds with ties and missing values.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use pulp::Arch;

use super::metric::{Feature, Metric, Shape, Unknown};
use super::panels::{MetricPanels, Side};
use super::read::Pair;
use super::{Conventions, KnnParams, Neighbors, TargetPair, neighbors};
use ferrank_data::schema::{Problem, Roles, Targets};
use ferrank_data::source::{ChunkSource, TableSource};
use ferrank_neighbors::kernel::Measure;
use ferrank_neighbors::layout::{LANES, NO_ROW};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::mix;

/// Features of one kind, besides six that are each of another.
const MORE: usize = 70;

/// A number in [0, 1), and another one for each key.
fn uniform(key: [u64; 3]) -> f64 {
    (mix(key) >> 11) as f64 / (1u64 << 53) as f64
}

fn table(n_rows: usize, seed: u64, missing: f64, chunk: usize) -> TableSource {
    let number = |column: u64, row: usize| uniform([seed, column, row as u64]);
    let known = |column: u64, row: usize| number(column + 100, row) >= missing;
    let floats = |column: u64, steps: f64| -> ArrayRef {
        // Other rows than the training ones reach further out.
        let value = |row| ((number(column, row) * steps).floor() - 0.1 * steps) * (1.0 + seed as f64 / 10.0);
        Arc::new((0..n_rows).map(|row| known(column, row).then(|| value(row))).collect::<Float64Array>())
    };
    let words = |column: u64, n: f64| -> ArrayRef {
        let word = |row| format!("{}", (number(column, row) * n) as u32);
        Arc::new((0..n_rows).map(|row| known(column, row).then(|| word(row))).collect::<StringArray>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("fine".into(), floats(0, 1e6)),
        ("byte_codes".into(), floats(1, 4.0)),
        ("two".into(), words(2, 2.0)),
        ("five".into(), words(3, 5.0 + seed as f64)),
        ("same".into(), Arc::new(Float64Array::from(vec![3.0; n_rows]))),
        ("fine too".into(), floats(4, 1e9)),
    ];
    // More than the kernel adds up in one go.
    columns.extend((0..MORE as u64).map(|number| (format!("word {number}"), words(1000 + number, 3.0))));
    let numbers = (0..n_rows).map(|row| Some(number(9, row))).collect::<Float64Array>();
    let classes = (0..n_rows).map(|row| Some(["a", "b"][row % 2])).collect::<StringArray>();
    columns.push(("y".into(), Arc::new(numbers)));
    columns.push(("z".into(), Arc::new(classes)));
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    let parts = (0..n_rows).step_by(chunk).map(|at| batch.slice(at, chunk.min(n_rows - at))).collect();
    TableSource::new(format!("table {seed}"), batch.schema(), parts).unwrap()
}

fn roles() -> Roles {
    let targets = Targets::Named(vec!["y".into(), "z".into()]);
    Roles::new(targets)
}

/// Importances of all features.
fn importances(first: [f64; 6], more: impl Fn(u64) -> f64) -> Vec<f64> {
    first.into_iter().chain((0..MORE as u64).map(more)).collect()
}

fn params(k: usize, conventions: Conventions) -> KnnParams {
    let rankings = vec![
        importances([1.0; 6], |_| 1.0),
        importances([3.0, 0.5, 1e-3, 2.0, 7.0, 1e-12], |number| uniform([number, 0, 1]) / 10.0),
        importances([0.0, 0.0, 2.0, 0.0, 0.0, -1.0], |_| 0.0),
        importances([-1.0; 6], |_| -1.0),
    ];
    KnnParams::new(k, rankings).with_conventions(conventions)
}

fn read(conventions: Conventions, missing: f64) -> Pair {
    let (train, test) = (table(300, 0, missing, 300), table(90, 1, missing, 90));
    let problem = Problem::resolve(&train.schema(), &roles(), "train").unwrap();
    let there = problem.elsewhere(&test).unwrap();
    Pair::read([(&train, &problem), (&test, &there)], &params(1, conventions), &Monitor::default()).unwrap()
}

fn found(k: usize, conventions: Conventions, missing: f64, chunk: usize, threads: usize) -> Neighbors {
    let (train, test) = (table(300, 0, missing, chunk), table(90, 1, missing, chunk));
    neighbors(&train, &test, &roles(), &params(k, conventions), threads, &Monitor::default()).unwrap()
}

#[test]
fn it_finds_the_nearest_rows() {
    for conventions in [Conventions::Textbook, Conventions::Clus] {
        for missing in [0.0, 0.3] {
            let (pair, params) = (read(conventions, missing), params(7, conventions));
            let found = found(7, conventions, missing, 300, 2);
            for (ranking, importances) in params.rankings.iter().enumerate() {
                let metric = Metric::new(&pair.features, importances);
                for query in 0..90 {
                    let distance = |row| metric.distance(pair.test.row(query), pair.train.row(row));
                    let mut all: Vec<(u64, u32)> =
                        (0..300).map(|row| ((distance(row) * 1e12).round_ties_even() as u64, row)).collect();
                    all.sort_unstable();
                    let at = query as usize * 7..(query as usize + 1) * 7;
                    let nearest: Vec<u32> = all[..7].iter().map(|(_, row)| *row).collect();
                    assert_eq!(
                        found.rows[ranking][at.clone()],
                        nearest,
                        "{conventions:?}, {missing}, {ranking}, {query}"
                    );
                    let apart: Vec<f64> = nearest.iter().map(|&row| distance(row)).collect();
                    assert_eq!(found.distances[ranking][at], apart);
                }
            }
        }
    }
}

#[test]
fn panels_give_the_distances_of_the_metric_within_their_error() {
    let mut archs = vec![Arch::new(), Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
    for (conventions, missing) in [(Conventions::Textbook, 0.0), (Conventions::Textbook, 0.3), (Conventions::Clus, 0.3)]
    {
        let (pair, params) = (read(conventions, missing), params(1, conventions));
        for (arch, importances) in archs.iter().flat_map(|arch| params.rankings.iter().map(move |of| (arch, of))) {
            let metric = Metric::new(&pair.features, importances);
            let panels = MetricPanels::new(&metric);
            let (queries, rows) = (panels.panels(&pair.test, Side::Query), panels.panels(&pair.train, Side::Row));
            let most = rows.sums().filter(|sum| sum.is_finite()).fold(0.0, f32::max);
            let mut block = [[0.0; LANES]; LANES];
            for (a, b) in [(0, 0), (1, 2), (queries.len() - 1, rows.len() - 1)] {
                let (one, other) = (queries.panel(&panels.layout, a), rows.panel(&panels.layout, b));
                arch.dispatch(Measure::new(&panels.layout, one, other, &mut block));
                for (line, &x) in one.numbers.iter().enumerate().filter(|(_, x)| **x != NO_ROW) {
                    for (lane, &y) in other.numbers.iter().enumerate().filter(|(_, y)| **y != NO_ROW) {
                        let exact = metric.distance(pair.test.row(x), pair.train.row(y));
                        let error = panels.error(f64::from(one.sums[line]), f64::from(most));
                        let found = f64::from(block[line][lane]);
                        let allowed = error.fixed + error.relative * exact;
                        assert!(
                            allowed < 1e-4 && (found - exact).abs() <= allowed,
                            "{found} is not {exact} ± {allowed}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn threads_and_chunks_change_nothing() {
    let one = found(5, Conventions::Textbook, 0.2, 300, 1);
    for (chunk, threads) in [(7, 1), (300, 3), (64, 2)] {
        let other = found(5, Conventions::Textbook, 0.2, chunk, threads);
        assert_eq!((&one.rows, &one.distances), (&other.rows, &other.distances));
    }
}

#[test]
fn importances_of_any_size_weigh_by_their_shares() {
    let (train, test) = (table(50, 0, 0.0, 50), table(20, 1, 0.0, 20));
    let run = |scale: f64| {
        let rankings = vec![importances([0.25, 0.5, 0.0, 1.0, 0.0, 0.25].map(|w| w * scale), |_| 0.0)];
        let params = KnnParams { rankings, ..params(3, Conventions::Textbook) };
        neighbors(&train, &test, &roles(), &params, 1, &Monitor::default()).unwrap().distances
    };
    let expected = run(1.0);
    for scale in [2f64.powi(-1020), 2f64.powi(1023)] {
        assert_eq!(run(scale), expected);
    }
}

#[test]
fn importances_below_0_weigh_nothing() {
    let (train, test) = (table(50, 0, 0.0, 50), table(20, 1, 0.0, 20));
    let run = |least: f64| {
        let rankings = vec![importances([0.25, 0.5, least, 1.0, least, 0.25], |_| least)];
        let params = KnnParams { rankings, ..params(3, Conventions::Textbook) };
        neighbors(&train, &test, &roles(), &params, 1, &Monitor::default()).unwrap().distances
    };
    assert_eq!(run(-0.5), run(0.0));
}

#[test]
fn targets_of_both_sources_have_the_same_categories() {
    let found = found(1, Conventions::Textbook, 0.0, 300, 1);
    assert_eq!((found.n_train, found.n_test), (300, 90));
    assert_eq!(found.targets.iter().map(|target| &target.name).collect::<Vec<_>>(), ["y", "z"]);
    let TargetPair::Nominal { categories, train, test } = &found.targets[1].values else {
        panic!("{:?}", found.targets[1])
    };
    assert_eq!((categories.len(), train[1], test[89]), (2, Some(1), Some(1)));
}

#[test]
fn more_neighbours_than_rows_are_an_error() {
    let (train, test) = (table(4, 0, 0.0, 4), table(3, 1, 0.0, 3));
    let run = |k| neighbors(&train, &test, &roles(), &params(k, Conventions::Clus), 1, &Monitor::default());
    assert_eq!(run(4).unwrap().rows[0].len(), 12);
    assert!(run(5).unwrap_err().to_string().contains("5 neighbors of 4 training rows"));
    assert!(run(0).is_err());
}

#[test]
fn missing_values_differ_by_what_is_expected_or_by_the_most_there_can_be() {
    let known = [0.0, 0.25, 1.0, 1.0];
    let column = || known.into_iter().chain([f64::NAN]);
    let feature = |shape, conventions| {
        let unknown = Some(Unknown::of(column(), shape, 3, conventions));
        Feature { shape, unknown }
    };
    let mean = |sum: f64, n: usize| sum / n as f64;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} is not {b}");
    let numbers = feature(Shape::Numeric, Conventions::Textbook);
    for value in [0.0, 0.4, 1.0] {
        let expected = mean(known.iter().map(|x| (x - value).powi(2)).sum(), 4);
        close(numbers.difference(f64::NAN, value), expected);
        close(numbers.difference(value, f64::NAN), expected);
    }
    let both = known.iter().flat_map(|x| known.iter().map(move |y| (x - y).powi(2))).sum();
    close(numbers.difference(f64::NAN, f64::NAN), mean(both, 16));

    // Of three categories one is known once, one twice and one never.
    let unknown = Some(Unknown::of([0.0, 1.0, 1.0, f64::NAN].into_iter(), Shape::Nominal, 3, Conventions::Textbook));
    let words = Feature { shape: Shape::Nominal, unknown };
    close(words.difference(f64::NAN, 1.0), 1.0 / 3.0);
    close(words.difference(2.0, f64::NAN), 1.0);
    close(words.difference(f64::NAN, f64::NAN), 4.0 / 9.0);

    let (numbers, words) = (feature(Shape::Numeric, Conventions::Clus), feature(Shape::Nominal, Conventions::Clus));
    for (value, most) in [(0.0, 1.0), (0.4, 0.36), (0.9, 0.81)] {
        close(numbers.difference(f64::NAN, value), most);
        close(words.difference(value, f64::NAN), 1.0);
    }
    close(numbers.difference(f64::NAN, f64::NAN), 1.0);
    close(words.difference(f64::NAN, f64::NAN), 1.0);
}
