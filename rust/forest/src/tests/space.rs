use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Coded, batches, label_sets, numbers, table, texts, total};
use crate::criterion::Criterion;
use crate::space::Space;
use ferrank_data::schema::Task;
use ferrank_data::store::TargetColumn;

/// Impurity of the whole table: of each target, and of the features.
fn impurity(space: &Space, rows: usize, n_targets: usize) -> Vec<f64> {
    let (criterion, block) = (Criterion::new(space), &space.block);
    let variance = |weight: &dyn Fn(usize) -> f64, sum: &dyn Fn(usize) -> f64| {
        let known: Vec<(f64, f64)> =
            (0..rows).map(|row| (weight(row), sum(row))).filter(|(w, _)| *w > 0.0).map(|(w, s)| (w, s / w)).collect();
        let all: f64 = known.iter().map(|(w, _)| w).sum();
        let mean = known.iter().map(|(w, y)| w * y).sum::<f64>() / all;
        known.iter().map(|(w, y)| w * (y - mean).powi(2)).sum::<f64>() / all
    };
    // Sums of a single row.
    let of_row = |row: usize| total(&criterion, block, &[row as u32], &[1]);
    let mut impurity = vec![0.0; n_targets + 1];
    for (c, &target) in space.dense_target.iter().enumerate() {
        let weight = |row: usize| criterion.weight_of_dense(&of_row(row), c);
        impurity[target.unwrap_or(n_targets)] += variance(&weight, &|row| criterion.dense(&of_row(row))[c]);
    }
    for (l, (&target, omega)) in space.indicator_target.iter().zip(&space.indicator_weight).enumerate() {
        let weight = |row: usize| criterion.weight_of_indicator(&of_row(row), l);
        impurity[target.unwrap_or(n_targets)] +=
            omega * variance(&weight, &|row| criterion.indicators(&of_row(row))[l]);
    }
    impurity
}

fn labels(rows: usize, n_labels: usize) -> RecordBatch {
    let mut columns = vec![("x".to_string(), numbers((0..rows).map(|row| row as f64)))];
    for label in 0..n_labels {
        let values: Vec<bool> = (0..rows).map(|row| (row * row + 3 * row * label) % (label + 3) == 0).collect();
        columns.push((format!("l{label}"), Arc::new(BooleanArray::from(values)) as ArrayRef));
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_target_weighs_its_share(
        (batch, targets) in (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(20..80, gaps, weighted))
            .prop_flat_map(|batch| (Just(batch), prop_oneof![
                Just(vec!["y"]), Just(vec!["class"]), Just(vec!["t", "y"]), Just(vec!["y", "class", "t"])
            ])),
    ) {
        // Rows without any target are left out, so the table is coded with y or with others dropped.
        let drop: Vec<&str> = ["y", "t", "class"].into_iter().filter(|name| !targets.contains(name)).collect();
        let keep: Vec<usize> = (0..batch.num_columns()).filter(|&c| !drop.contains(&batch.schema().field(c).name().as_str())).collect();
        let coded = Coded::new(&batch.project(&keep).unwrap(), &targets, None, 255);
        for weights in [None, Some(vec![1.0; targets.len()]), Some((1..=targets.len()).map(|w| w as f64).collect())] {
            let space = coded.space(weights.as_deref());
            let total: f64 = weights.as_ref().map_or(targets.len() as f64, |weights| weights.iter().sum());
            for (target, impurity) in impurity(&space, coded.store.rows, targets.len()).into_iter().take(targets.len()).enumerate() {
                let share = weights.as_ref().map_or(1.0, |weights| weights[target]) / total;
                prop_assert!((impurity - share).abs() < 1e-9, "{target}: {impurity}, not {share}");
            }
        }
    }

    #[test]
    fn features_weigh_what_supervision_leaves(
        batch in any::<bool>().prop_flat_map(|weighted| batches(20..80, true, weighted)),
        supervision in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64],
    ) {
        let coded = Coded::read(&batch, &["class", "t"], None, 4, true);
        let found = impurity(&coded.space_of(None, supervision), coded.store.rows, 2);
        // Features: y, few, many and word; none is constant in 20 rows and more.
        for (found, wanted) in found.iter().zip([supervision / 2.0, supervision / 2.0, 1.0 - supervision]) {
            prop_assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
        }
    }

    #[test]
    fn sums_are_exact_in_any_order(
        rows in vec((prop_oneof![-1e9..1e9f64, -1e-9..1e-9f64, Just(1e300)], 0.0..10.0f64, 0..8u32), 2..300),
        keys in vec(any::<u64>(), 300),
        weighted in any::<bool>(),
    ) {
        let rows: Vec<(f64, f64, u32)> = rows.into_iter().map(|(y, w, count)| (y, w + 1e-6, count)).collect();
        let mut columns = vec![("x", numbers(rows.iter().map(|_| 1.0))), ("y", numbers(rows.iter().map(|row| row.0)))];
        if weighted {
            columns.push(("w", numbers(rows.iter().map(|row| row.1))));
        }
        let coded = Coded::new(&table(columns), &["y"], None, 255);
        let space = coded.space(None);
        let criterion = Criterion::new(&space);
        // As many draws as there are rows.
        let mut left = rows.len() as u32;
        let counts: Vec<u32> = rows.iter().map(|row| { let count = row.2.min(left); left -= count; count }).collect();
        let sums = |order: &[usize]| {
            let (rows, counts): (Vec<u32>, Vec<u32>) = order.iter().map(|&row| (row as u32, counts[row])).unzip();
            let sums = total(&criterion, &space.block, &rows, &counts);
            sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>()
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let forward = sums(&order);
        order.sort_by_key(|&row| keys[row]);
        prop_assert_eq!(forward, sums(&order));
    }
}

#[test]
fn sums_are_exact_where_a_row_far_from_all_others_is_drawn_many_times() {
    let rows = || 0..1000u32;
    let y = numbers(rows().map(|row| if row == 0 { 1e6 } else { f64::from(row).sqrt() }));
    let coded = Coded::new(&table(vec![("x", numbers(rows().map(f64::from))), ("y", y)]), &["y"], None, 255);
    let space = coded.space(None);
    let sums = |order: Vec<u32>| {
        let counts: Vec<u32> = order.iter().map(|&row| if row == 0 { 500 } else { 1 }).collect();
        total(&Criterion::new(&space), &space.block, &order, &counts)
    };
    assert_eq!(sums((0..500).collect()), sums((0..500).rev().collect()));
}

#[test]
fn label_sets_weigh_one_whether_dense_or_listed() {
    for n_labels in [3, 20] {
        let batch = labels(60, n_labels);
        let targets: Vec<String> = (0..n_labels).map(|label| format!("l{label}")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let coded = Coded::new(&batch, &targets, None, 255);
        assert_eq!(coded.problem.task, Task::MultiLabel);
        let space = coded.space(None);
        assert_eq!(space.n_dense() == n_labels, n_labels == 3);
        for impurity in impurity(&space, 60, n_labels).into_iter().take(n_labels) {
            assert!((impurity - 1.0 / n_labels as f64).abs() < 1e-12, "{impurity}");
        }
    }
}

#[test]
fn constant_targets_have_no_component() {
    let batch = table(vec![
        ("x", numbers([1.0, 2.0, 3.0])),
        ("same", numbers([1e17; 3])),
        ("word", texts(["a"; 3])),
        ("y", numbers([1.0, 2.0, 4.0])),
        ("none", Arc::new(Float64Array::new_null(3)) as ArrayRef),
    ]);
    let space = Coded::new(&batch, &["same", "word", "y", "none"], None, 255).space(None);
    assert_eq!((space.dense_target, space.indicator_target), (vec![Some(2)], vec![]));
}

#[test]
fn two_classes_on_one_component_gain_what_gini_does() {
    let classes = ["a", "b", "b", "b", "a", "b", "b"];
    let batch = table(vec![("x", numbers((0..7).map(f64::from))), ("class", texts(classes))]);
    let space = Coded::new(&batch, &["class"], None, 255).space(None);
    let criterion = Criterion::new(&space);
    assert_eq!((criterion.n_dense(), criterion.indicator_weight.len()), (1, 0));
    let gini = |classes: &[&str]| {
        let share = classes.iter().filter(|class| **class == "a").count() as f64 / classes.len() as f64;
        2.0 * share * (1.0 - share)
    };
    for n_left in 1..7 {
        let rows: Vec<u32> = (0..7).collect();
        let all = total(&criterion, &space.block, &rows, &[1; 7]);
        let left = total(&criterion, &space.block, &rows[..n_left], &[1; 7]);
        let (a, b) = classes.split_at(n_left);
        let decrease = gini(&classes) - (a.len() as f64 * gini(a) + b.len() as f64 * gini(b)) / 7.0;
        assert!((criterion.gain(&left, &all) - decrease / gini(&classes)).abs() < 1e-12);
    }
}

#[test]
fn labels_of_a_hierarchy_weigh_their_shares_however_they_are_kept() {
    for (n_labels, missing) in [(3, false), (20, false), (3, true), (20, true)] {
        let mut coded = Coded::new(&labels(60, 1), &["l0"], None, 255);
        coded.store.targets = vec![label_sets(60, n_labels, missing)].into();
        let space = coded.space(None);
        let TargetColumn::Labels(column) = &coded.store.targets[0] else { panic!() };
        // A label that all rows have adds nothing.
        let known: Vec<usize> = (0..60).filter(|&row| column.of(row).is_some()).collect();
        let varies = |label: &usize| {
            let have = known.iter().filter(|&&row| column.has(row, *label as u32) == Some(true)).count();
            have > 0 && have < known.len()
        };
        let varying: Vec<usize> = (0..2 * n_labels).filter(varies).collect();
        let expected: f64 = varying.iter().map(|&label| column.shares()[label]).sum();
        let found = impurity(&space, 60, 1)[0];
        assert!((found - expected).abs() < 1e-9, "{n_labels} {missing}: {found}, not {expected}");
        assert_eq!(space.n_dense() + space.indicator_weight.len(), varying.len());
        assert_eq!(space.n_dense() > 0, n_labels == 3);
        assert_eq!(
            (space.n_whole < space.n_dense(), space.n_groups() > 0),
            (missing && n_labels == 3, missing && n_labels == 20)
        );
    }
}
