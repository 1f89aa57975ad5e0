//! Statistics against their textbook formulas, moments against all permutations.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use ferrank_data::hierarchy::Hierarchy;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::labels::LabelColumn;
use ferrank_data::schema::{Problem, Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_data::store::{CodeStore, Keep, TargetColumn};
use ferrank_ranking::RunOptions;
use ferrank_ranking::relevance::PartialTest;
use ferrank_runtime::monitor::Monitor;
use nalgebra::{DMatrix, DVector};

use crate::answers::{Answer, LABELS};
use crate::association::{Association, associations};
use crate::design::{Design, has_light_tails};
use crate::partial;
use crate::tables::Table;
use crate::tested::Tested;

fn numbers(values: &[f64]) -> ArrayRef {
    Arc::new(values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect::<Float64Array>())
}

fn words(values: &[usize]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values.iter().map(|value| format!("c{value}"))))
}

/// The codes of `columns`, the last of which is the target.
fn coded(columns: &[ArrayRef]) -> CodeStore {
    let named = columns.iter().enumerate().map(|(i, column)| (format!("{i:02}"), column.clone()));
    let batch = RecordBatch::try_from_iter(named).unwrap();
    let source = TableSource::new("table", batch.schema(), vec![batch]).unwrap();
    let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
    let problem = Problem::resolve(&ferrank_data::source::ChunkSource::schema(&source), &roles, "table").unwrap();
    let intake = Intake::new(&source, &problem, Unlabelled::Error, &monitor);
    let options = RunOptions::default();
    let scan = options.scan(&intake, 255).unwrap();
    CodeStore::new(&intake, &scan.profile, scan.counts, false, Keep::Memory).unwrap()
}

/// The associations of the only feature with the only target.
fn found(x: ArrayRef, y: ArrayRef) -> Vec<Association> {
    let store = coded(&[x, y]);
    let answer = Answer::of(0, &store.targets[0]).remove(0);
    associations(&store.codings[0].scale, &Table::new(&store, 0, (&answer, &store.targets[0]), 0), &answer)
}

fn statistic(x: ArrayRef, y: ArrayRef) -> f64 {
    let all = found(x, y);
    assert_eq!(all.len(), 1);
    all[0].test.statistic
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found}, {expected}");
}

const X: [f64; 7] = [3.0, 1.0, 2.0, 2.0, 5.0, -1.0, 9.0];
const Y: [f64; 7] = [0.1, 0.5, 0.4, -3.0, 8.0, 0.0, 1.0];
const CLASSES: [usize; 7] = [0, 1, 0, 1, 2, 0, 2];
const OTHERS: [usize; 7] = [0, 0, 1, 1, 1, 0, 1];

#[test]
fn statistics_are_those_of_the_textbooks() {
    // By hand: the ranks of X are 5, 2, 3.5, 3.5, 6, 1, 7, those of Y 3, 5, 4, 1, 7, 2, 6.
    let (x, y) = ([5.0, 2.0, 3.5, 3.5, 6.0, 1.0, 7.0], [3.0, 5.0, 4.0, 1.0, 7.0, 2.0, 6.0]);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - 4.0) * (b - 4.0)).sum::<f64>();
    close(statistic(numbers(&X), numbers(&Y)), product(&x, &y).powi(2) / product(&x, &x) / product(&y, &y));
    // Kruskal and Wallis: ranks 3, 4, 2 of class 0; 5, 1 of class 1; 7, 6 of class 2.
    let between = (9.0f64 - 12.0).powi(2) / 3.0 + (6.0f64 - 8.0).powi(2) / 2.0 + (13.0f64 - 8.0).powi(2) / 2.0;
    close(statistic(words(&CLASSES), numbers(&Y)), between / 28.0);
    close(statistic(numbers(&Y), words(&CLASSES)), between / 28.0);
    // Pearson: counts 2, 1; 1, 1; 0, 2, in columns of 3 and 4.
    let cell = |count: f64, row: f64, column: f64| count * count / (row * column);
    let sum =
        cell(2.0, 3.0, 3.0) + cell(1.0, 3.0, 4.0) + cell(1.0, 2.0, 3.0) + cell(1.0, 2.0, 4.0) + cell(2.0, 2.0, 4.0);
    close(statistic(words(&CLASSES), words(&OTHERS)), sum - 1.0);
    close(statistic(words(&OTHERS), words(&CLASSES)), sum - 1.0);
}

/// Calls `each` with all orders of the numbers below `n`.
fn permutations(n: usize, each: &mut dyn FnMut(&[usize])) {
    fn go(order: &mut Vec<usize>, rest: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
        if rest.is_empty() {
            return each(order);
        }
        for i in 0..rest.len() {
            let next = rest.remove(i);
            order.push(next);
            go(order, rest, each);
            order.pop();
            rest.insert(i, next);
        }
    }
    go(&mut Vec::new(), &mut (0..n).collect(), each);
}

#[test]
fn moments_are_those_of_all_permutations() {
    let x = &X[..6];
    let classes = [0, 1, 0, 1, 2, 2];
    let sides: [ArrayRef; 3] = [numbers(x), words(&classes), words(&[0, 0, 0, 1, 0, 0])];
    type Permuted<'a> = &'a dyn Fn(&[usize]) -> ArrayRef;
    let targets: [Permuted<'_>; 3] = [
        &|order| numbers(&order.iter().map(|&i| Y[i].max(0.3)).collect::<Vec<_>>()),
        &|order| words(&order.iter().map(|&i| classes[i]).collect::<Vec<_>>()),
        &|order| words(&order.iter().map(|&i| usize::from(i == 3)).collect::<Vec<_>>()),
    ];
    for side in &sides {
        for target in targets {
            let (mut n, mut sum, mut squares, mut test) = (0.0, 0.0, 0.0, None);
            permutations(6, &mut |order| {
                let association = found(side.clone(), target(order)).remove(0);
                let value = association.test.statistic;
                (n, sum, squares) = (n + 1.0, sum + value, squares + value * value);
                test = Some(association.test);
            });
            let (mean, test) = (sum / n, test.unwrap());
            close(test.mean, mean);
            close(test.variance, squares / n - mean * mean);
        }
    }
}

#[test]
fn rows_that_lack_the_feature_leave_the_law_of_the_target_as_it_is() {
    let twice = |values: &[f64]| numbers(&values.iter().chain(values).copied().collect::<Vec<_>>());
    let x: Vec<f64> = X.into_iter().chain([f64::NAN; 7]).collect();
    // Rows that miss the feature are added; the others, and so the moments, are the same.
    let (whole, known) = (found(numbers(&X), numbers(&Y))[0].test, found(numbers(&x), twice(&Y))[0].test);
    close(known.statistic, whole.statistic);
    close(known.mean, whole.mean);
    close(known.variance, whole.variance);
}

#[test]
fn labels_are_counted_in_blocks() {
    let n_labels = LABELS + 2;
    let name = |label: usize| format!("{label:05}");
    let hierarchy = Hierarchy::from_edges(&(0..n_labels).map(|label| (None, name(label))).collect::<Vec<_>>(), 1.0);
    let (last, last_but_one) = (n_labels - 1, n_labels - 2);
    let sets = [&[0, last][..], &[1], &[last_but_one, last], &[0, 1, last_but_one], &[]];
    let texts = sets.map(|set| set.iter().map(|&label| name(label)).collect::<Vec<_>>().join("@"));
    let mut labels = LabelColumn::new(Arc::new(hierarchy.unwrap()), sets.len());
    labels.add(&(Arc::new(StringArray::from_iter_values(texts)) as ArrayRef), None).unwrap();
    let answers = Answer::of(0, &TargetColumn::Labels(labels));
    assert_eq!(answers.len(), 2);
    let totals: Vec<i64> = answers.iter().flat_map(|answer| answer.totals[1..].to_vec()).collect();
    assert_eq!(totals.len(), n_labels);
    assert!(answers.iter().all(|answer| answer.totals[0] == 5));
    assert_eq!((&totals[..3], &totals[n_labels - 3..]), (&[2, 2, 0][..], &[0, 2, 2][..]));
}

#[test]
fn missing_values_are_tested_apart_and_attributes_that_do_not_vary_not_at_all() {
    let nan = f64::NAN;
    let x = [1.0, nan, 2.0, nan, 3.0, 4.0, nan, 5.0];
    let y = [1.0, 9.0, 2.0, 8.0, 3.0, 4.0, 7.0, 5.0];
    let all = found(numbers(&x), numbers(&y));
    assert_eq!(all.len(), 2);
    close(all[0].test.statistic, 1.0);
    close(all[0].strength(), 1.0);
    // The ranks of rows that lack the value are 8, 7, 6.
    close(all[1].test.statistic, (21.0f64 - 13.5).powi(2) * (1.0 / 3.0 + 1.0 / 5.0) / 42.0);
    assert!(found(numbers(&[2.0; 6]), numbers(&y[..6])).is_empty());
    assert!(found(words(&CLASSES), numbers(&[2.0; 7])).is_empty());
    assert!(found(numbers(&X[..4]), numbers(&Y[..4])).is_empty());
}

/// The partial tests of the features in `columns`, the last of which is the target, beside the `given` ones.
fn partial_tests(columns: &[ArrayRef], given: &[usize]) -> Vec<Vec<PartialTest>> {
    let (store, monitor) = (coded(columns), Monitor::default());
    let tested = Tested::new(&store);
    let Some(design) = Design::new(&store, &tested, given.to_vec()) else { return Vec::new() };
    partial::tests(&design, &design.sums(&store, &tested, 0, &monitor).unwrap(), store.codings.len())
}

/// Numbers in [0, 1) that look random.
fn uniform(seed: u64, n: usize) -> Vec<f64> {
    let bits = |i: usize| ferrank_runtime::random::mix([seed, i as u64]);
    (0..n).map(|i| (bits(i) >> 11) as f64 / (1u64 << 53) as f64).collect()
}

/// The squared error of least squares on these columns and a constant one.
fn error(columns: &[Vec<f64>], y: &[f64]) -> f64 {
    let design = DMatrix::from_fn(y.len(), columns.len() + 1, |row, i| if i == 0 { 1.0 } else { columns[i - 1][row] });
    let y = DVector::from_column_slice(y);
    let model = design.clone().svd(true, true).solve(&y, 1e-10).unwrap();
    (y - design * model).norm_squared()
}

#[test]
fn partial_tests_are_those_of_least_squares_with_and_without_the_feature() {
    let n = 150;
    let [a, noise] = [1, 2].map(|seed| uniform(seed, n));
    let b: Vec<f64> = a.iter().zip(uniform(3, n)).map(|(a, u)| a + u).collect();
    let category = |row: usize| (uniform(4, n)[row] * 3.0) as usize;
    let y: Vec<f64> = (0..n).map(|row| b[row] + f64::from(category(row) == 1) + noise[row]).collect();
    let rank = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| values.iter().filter(|other| *other < value).count() as f64).collect()
    };
    let missing = |row: usize| row.is_multiple_of(10);
    let known: Vec<f64> = (0..n).filter(|&row| !missing(row)).map(|row| a[row]).collect();
    let middle = (known.len() - 1) as f64 / 2.0;
    let code = |row: usize| known.iter().filter(|&&other| other < a[row]).count() as f64;
    let with_gaps = (0..n).map(|row| if missing(row) { middle } else { code(row) }).collect();
    let categories = |number: usize| (0..n).map(|row| f64::from(category(row) == number)).collect();
    let of_features: [Vec<Vec<f64>>; 3] = [vec![with_gaps], vec![rank(&b)], vec![categories(1), categories(2)]];
    let gaps: Vec<f64> = (0..n).map(|row| if missing(row) { f64::NAN } else { a[row] }).collect();
    let names: Vec<usize> = (0..n).map(category).collect();
    let classes: Vec<usize> = y.iter().map(|&y| usize::from(y > 2.0)).collect();
    let targets = [(numbers(&y), rank(&y)), (words(&classes), classes.iter().map(|&class| class as f64).collect())];
    for (target, values) in targets {
        for given in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
            let found = partial_tests(&[numbers(&gaps), numbers(&b), words(&names), target.clone()], given);
            for (feature, tests) in found.iter().enumerate() {
                let others: Vec<_> = given.iter().filter(|&&other| other != feature).collect();
                let columns: Vec<_> = others.iter().flat_map(|&&other| of_features[other].clone()).collect();
                let with = [&columns[..], &of_features[feature]].concat();
                let [test] = tests[..] else { panic!("{} tests", tests.len()) };
                let n_added = of_features[feature].len() as f64;
                assert_eq!((test.columns, test.rest), (n_added, (n - 1 - with.len()) as f64));
                let expected = error(&with, &values) / error(&columns, &values);
                assert!((test.unexplained - expected).abs() < 1e-9, "{feature}: {}, {expected}", test.unexplained);
            }
        }
    }
}

#[test]
fn features_that_say_the_same_share_what_they_say() {
    let n = 120;
    let [a, b, noise] = [1, 2, 3].map(|seed| uniform(seed, n));
    let y: Vec<f64> = (0..n).map(|row| a[row] + b[row] + 0.2 * noise[row]).collect();
    let columns = [&a, &a, &b, &vec![5.0; n], &y].map(|values| numbers(values));
    let once = partial_tests(&[numbers(&a), numbers(&b), numbers(&y)], &[0, 1]);
    let unexplained = |tests: &[PartialTest]| tests[0].unexplained;
    let twice = partial_tests(&columns, &[0, 1, 2]);
    for (copy, of) in [(0, 0), (1, 0), (2, 1)] {
        assert!((unexplained(&twice[copy]) - unexplained(&once[of])).abs() < 1e-9, "{copy}");
    }
    assert!(twice[3].is_empty());
    // Beside the one, the other adds nothing that could be tested.
    let beside = partial_tests(&columns, &[0, 2]);
    assert_eq!(beside.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1, 0]);
}

#[test]
fn rare_values_have_heavy_tails() {
    let is_light = |x: ArrayRef| {
        let y = numbers(&uniform(7, x.len()));
        let store = coded(&[x, y]);
        let table = Tested::new(&store).tables(&store, 0, 0).remove(0);
        has_light_tails(&store.codings[0], &table)
    };
    let flags = |n: usize, ones: usize| (0..n).map(|row| f64::from(row < ones)).collect::<Vec<_>>();
    let named = |n: usize, ones: usize| words(&(0..n).map(|row| usize::from(row < ones)).collect::<Vec<_>>());
    assert!(is_light(numbers(&uniform(1, 300))));
    // The fourth moment of a flag with a share of s is 1 / s (1 - s) - 3: 3.25 for 20 %, and 8.1 for 10 %.
    for (n, ones, expected) in [(300, 60, true), (300, 54, false), (300, 30, false), (6_000, 600, true)] {
        assert_eq!(is_light(numbers(&flags(n, ones))), expected, "{ones} of {n}");
        assert_eq!(is_light(named(n, ones)), expected, "{ones} of {n}");
    }
    assert!(is_light(words(&(0..300).map(|row| row % 12).collect::<Vec<_>>())));
}

#[test]
fn what_a_linear_model_cannot_take_has_no_partial_tests() {
    let n = 120;
    let [a, b] = [1, 2].map(|seed| uniform(seed, n));
    let target = |n_first: usize| words(&(0..n).map(|row| usize::from(row >= n_first)).collect::<Vec<_>>());
    assert_eq!(partial_tests(&[numbers(&a), numbers(&b), target(40)], &[0]).len(), 2);
    // A rare class, and a constant.
    assert!(partial_tests(&[numbers(&a), target(12)], &[0]).is_empty());
    assert!(partial_tests(&[numbers(&a), numbers(&[1.0; 120])], &[0]).is_empty());
    // More categories than there are columns for.
    let many = words(&(0..n).map(|row| row % 40).collect::<Vec<_>>());
    let found = partial_tests(&[many, numbers(&a), numbers(&b)], &[1]);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
}
