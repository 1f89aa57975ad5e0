//! Kept forests against plain walks by values, and files that were damaged.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::Schema;
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::{TableSource, cut, write_sealed};
use ferrank_ranking::RunOptions;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

use super::nodes::Nodes;
use super::{KeptForest, Output};
use crate::{Ensemble, ForestParams, Score, accumulate_and_keep, rank};

const ROWS: usize = 300;

/// Numbers with missing values, categories, a class and a number to predict.
fn table(rows: usize) -> RecordBatch {
    let hash = |row: usize, salt: usize| (row * 7919 + salt * 104_729) % 1009;
    let number = |salt| {
        let value = move |row| (hash(row, salt) % 11 != 0).then(|| hash(row, salt) as f64 / 100.0);
        Arc::new((0..rows).map(value).collect::<Float64Array>()) as ArrayRef
    };
    let colours = ["red", "green", "blue", "grey"];
    let colour = |row| (hash(row, 3) % 13 != 0).then(|| colours[hash(row, 3) % 4]);
    let class = |row| Some(if hash(row, 1) > 500 || hash(row, 3) % 4 == 1 { "yes" } else { "no" });
    let target = |row: usize| Some(hash(row, 1) as f64 - 3.0 * (hash(row, 3) % 4) as f64);
    RecordBatch::try_from_iter_with_nullable([
        ("a", number(1), true),
        ("colour", Arc::new((0..rows).map(colour).collect::<StringArray>()) as ArrayRef, true),
        ("b", number(2), true),
        ("class", Arc::new((0..rows).map(class).collect::<StringArray>()) as ArrayRef, true),
        ("number", Arc::new((0..rows).map(target).collect::<Float64Array>()) as ArrayRef, true),
    ])
    .unwrap()
}

fn source(batch: RecordBatch, rows: usize) -> TableSource {
    TableSource::new("table", batch.schema(), cut(batch, rows).collect()).unwrap()
}

fn params() -> ForestParams {
    ForestParams::default().with_n_estimators(12).with_standard_errors(false)
}

fn keep(params: &ForestParams, threads: usize) -> Result<KeptForest> {
    let (roles, options) = (Roles::new(Targets::Last(2)), RunOptions::default().with_threads(threads));
    Ok(accumulate_and_keep(&source(table(ROWS), 64), &roles, params, &options, &Monitor::default())?.1)
}

fn predict(forest: &KeptForest, output: Output, chunk: usize, threads: usize) -> Vec<RecordBatch> {
    let mut found = Vec::new();
    let features = table(ROWS).project(&[2, 1, 0]).unwrap();
    let done = forest.predict(&source(features, chunk), output, threads, &Monitor::default(), |batch| {
        found.push(batch);
        Ok(())
    });
    done.unwrap();
    found
}

fn numbers(batches: &[RecordBatch], column: usize) -> Vec<f64> {
    batches.iter().flat_map(|batch| batch.column(column).as_primitive::<Float64Type>().values().to_vec()).collect()
}

/// The leaf of a row, by the values and the tests of the table of nodes.
fn leaf(forest: &KeptForest, tree: usize, row: usize, data: &RecordBatch) -> usize {
    let batch = forest.batch(tree);
    let nodes = Nodes::new(&batch);
    let mut node = 0;
    while !nodes.is_leaf(node) {
        let feature = &forest.features()[nodes.feature.value(node) as usize];
        let column = data.column_by_name(&feature.name).unwrap();
        let goes_left = match &feature.categories {
            _ if column.is_null(row) => nodes.missing_left.value(node),
            None => column.as_primitive::<Float64Type>().value(row) <= nodes.cut.value(node),
            Some(names) => {
                let value = column.as_string::<i32>().value(row);
                nodes.categories(node).iter().any(|&code| names[usize::from(code)] == value)
            }
        };
        node = if goes_left { node + 1 } else { nodes.right.value(node) as usize };
    }
    node
}

#[test]
fn rows_reach_the_leaves_that_their_values_lead_to() {
    for params in [params(), params().with_ensemble(Ensemble::ExtraTrees), params().with_per_target(true)] {
        let forest = keep(&params, 2).unwrap();
        let data = table(ROWS);
        let leaves = predict(&forest, Output::Leaves, 100, 2);
        let shares = predict(&forest, Output::Shares, 100, 2);
        for row in 0..ROWS {
            let mut means = [0.0; 3];
            for tree in 0..forest.n_trees() {
                let expected = leaf(&forest, tree, row, &data);
                let found = leaves[row / 100].column(tree).as_primitive::<UInt32Type>().value(row % 100);
                assert_eq!(found as usize, expected);
                let batch = forest.batch(tree);
                let (components, values) = Nodes::new(&batch).predicted(expected);
                components.iter().zip(values).for_each(|(&c, value)| means[c as usize] += value / 12.0);
            }
            for (component, mean) in means.into_iter().enumerate() {
                let found = shares[row / 100].column(component).as_primitive::<Float64Type>().value(row % 100);
                assert!((found - mean).abs() < 1e-9 * mean.abs().max(1.0), "{found} is not {mean}");
            }
        }
    }
}

#[test]
fn predictions_have_the_same_bits_for_any_threads_and_chunks_and_from_a_file() {
    let forest = keep(&params(), 1).unwrap();
    let bits = |forest: &KeptForest, chunk, threads| -> Vec<u64> {
        let found = predict(forest, Output::Shares, chunk, threads);
        (0..3).flat_map(|column| numbers(&found, column)).map(f64::to_bits).collect()
    };
    let expected = bits(&forest, ROWS, 1);
    assert_eq!(bits(&forest, 7, 3), expected);
    assert_eq!(bits(&keep(&params(), 3).unwrap(), 50, 2), expected);
    let bytes = forest.to_ipc().unwrap();
    let read = KeptForest::from_ipc(bytes.clone()).unwrap();
    assert_eq!(bits(&read, 50, 2), expected);
    assert_eq!(read.to_ipc().unwrap(), bytes);
}

#[test]
fn many_rows_reach_the_leaves_of_large_trees_as_few_do() {
    let rows = 6000;
    let number = |salt: u64| -> ArrayRef {
        let value = |row| (row as u64 + 1).wrapping_mul(salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let known = |row| (value(row) % 17 != 0).then(|| value(row) as f64);
        Arc::new((0..rows).map(known).collect::<Float64Array>())
    };
    let category = |row: usize| Some(["red", "green", "blue", "grey"][row * row % 11 % 4]);
    let colours: ArrayRef = Arc::new((0..rows).map(category).collect::<StringArray>());
    let target: ArrayRef = Arc::new((0..rows).map(|row| (row * 7919 % 6007) as f64).collect::<Float64Array>());
    let columns = [("a", number(3)), ("colour", colours), ("b", number(5)), ("y", target)];
    let data = RecordBatch::try_from_iter(columns).unwrap();
    for max_bins in [255, 1 << 12] {
        let params = params().with_n_estimators(3).with_max_bins(max_bins).with_min_samples_leaf(1);
        let (roles, options) = (Roles::new(Targets::Last(1)), RunOptions::default());
        let all = source(data.clone(), rows);
        let forest = accumulate_and_keep(&all, &roles, &params, &options, &Monitor::default()).unwrap().1;
        assert!(Nodes::new(&forest.batch(0)).len() > super::walk::ORDERED_FROM);
        let leaves = |chunk| {
            let mut found = vec![Vec::new(); 3];
            let each = |batch: RecordBatch| {
                for (found, column) in found.iter_mut().zip(batch.columns()) {
                    found.extend_from_slice(column.as_primitive::<UInt32Type>().values());
                }
                Ok(())
            };
            forest.predict(&source(data.clone(), chunk), Output::Leaves, 1, &Monitor::default(), each).unwrap();
            found
        };
        assert_eq!(leaves(rows), leaves(1000));
    }
}

#[test]
fn keeping_trees_changes_no_bit_of_the_ranking() {
    let (data, roles) = (source(table(ROWS), 64), Roles::new(Targets::Last(2)));
    let (monitor, options) = (Monitor::default(), RunOptions::default());
    for params in [params(), params().with_standard_errors(true), params().with_per_target(true)] {
        let kept = accumulate_and_keep(&data, &roles, &params, &options, &monitor).unwrap().0.ranking().unwrap();
        let plain = rank(&data, &roles, &params, 2, &monitor).unwrap();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&kept.scores[0].importance), bits(&plain.scores[0].importance));
        assert_eq!(bits(&kept.scores[0].standard_error), bits(&plain.scores[0].standard_error));
    }
}

#[test]
fn out_of_bag_predictions_are_those_of_the_trees_without_the_row() {
    let of_scores = [Score::MdiOob, Score::Genie3, Score::Permutation].map(|score| params().with_scores(vec![score]));
    let mut found: Vec<Vec<u64>> = Vec::new();
    for params in of_scores.into_iter().chain([params().with_per_target(true)]) {
        let forest = keep(&params, 2).unwrap();
        let bits = |forest: &KeptForest| -> Vec<u64> {
            let oob = forest.oob(&Monitor::default()).unwrap();
            oob.values().iter().map(|value| value.to_bits()).collect()
        };
        assert_eq!(bits(&keep(&params, 1).unwrap()), bits(&forest));
        found.push(bits(&forest));
        let (oob, data) = (forest.oob(&Monitor::default()).unwrap(), table(ROWS));
        let bag = |tree: usize| {
            let mut bag = crate::bag::Bag::default();
            crate::bag::BagPlan::of_rows(ROWS, &params).take(tree as u64, &mut bag);
            bag.rows
        };
        let bags: Vec<Vec<u32>> = (0..forest.n_trees()).map(bag).collect();
        for row in 0..ROWS {
            let (mut means, mut counts) = ([0.0; 3], [0.0; 3]);
            for tree in (0..forest.n_trees()).filter(|&tree| !bags[tree].contains(&(row as u32))) {
                let node = leaf(&forest, tree, row, &data);
                let batch = forest.batch(tree);
                let (components, values) = Nodes::new(&batch).predicted(node);
                components.iter().zip(values).for_each(|(&c, value)| means[c as usize] += value);
                forest.head.components_of_tree(tree).for_each(|component| counts[component] += 1.0);
            }
            for component in 0..3 {
                let (found, expected) = (oob.values()[3 * row + component], means[component] / counts[component]);
                assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0) || expected.is_nan());
            }
        }
        let scores = oob.scores();
        assert!(scores[0].value > 0.8 && scores[1].value > 0.8, "{scores:?}");
    }
    assert_eq!([&found[1], &found[2]], [&found[0]; 2], "the same trees predict the same");
}

#[test]
fn rows_are_known_until_they_are_forgotten_and_not_in_a_file() {
    let (forest, monitor) = (keep(&params(), 2).unwrap(), Monitor::default());
    assert!(forest.no_oob().is_none() && forest.row_bytes() >= 3 * ROWS);
    let first = forest.oob(&monitor).unwrap();
    assert_eq!(forest.oob(&monitor).unwrap().scores(), first.scores());
    forest.forget_rows();
    assert_eq!(forest.row_bytes(), 0);
    assert!(forest.oob(&monitor).unwrap_err().to_string().starts_with("oob: "));
    let read = KeptForest::from_ipc(forest.to_ipc().unwrap()).unwrap();
    assert!(read.no_oob().unwrap().contains("read from a file"));
    let all = keep(&params().with_bootstrap(Some(false)), 1).unwrap();
    assert!(all.oob(&monitor).unwrap_err().to_string().starts_with("bootstrap: "));
}

#[test]
fn unknown_categories_are_as_missing_values() {
    let forest = keep(&params(), 1).unwrap();
    let data = table(ROWS);
    let with = |colours: StringArray| {
        let columns =
            [("colour", Arc::new(colours) as ArrayRef), ("a", data.column(0).clone()), ("b", data.column(2).clone())];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
        let mut found = Vec::new();
        let take = |batch: RecordBatch| {
            found.extend(numbers(&[batch], 2));
            Ok(())
        };
        forest.predict(&source(batch, ROWS), Output::Shares, 1, &Monitor::default(), take).unwrap();
        found
    };
    let (unknown, missing) = (vec![Some("violet"); ROWS], vec![None::<&str>; ROWS]);
    assert_eq!(with(StringArray::from(unknown)), with(StringArray::from(missing)));
}

#[test]
fn leaves_without_a_known_target_predict_what_is_above_them() {
    let mut columns = table(ROWS).columns().to_vec();
    let known = columns[4].as_primitive::<Float64Type>().clone();
    // Numbers are known for few rows, and classes for all of them.
    let few = (0..ROWS).map(|row| (row % 40 == 0).then(|| known.value(row)));
    columns[4] = Arc::new(few.collect::<Float64Array>());
    let batch = RecordBatch::try_new(table(ROWS).schema(), columns).unwrap();
    let roles = Roles::new(Targets::Last(2));
    let (options, monitor) = (RunOptions::default(), Monitor::default());
    let forest = accumulate_and_keep(&source(batch, 64), &roles, &params(), &options, &monitor).unwrap().1;
    for batch in forest.batches() {
        let nodes = Nodes::new(&batch);
        for node in (0..nodes.len()).filter(|&node| nodes.is_leaf(node)) {
            let (components, values) = nodes.predicted(node);
            assert_eq!(components.last(), Some(&2));
            assert!((-9.0..1009.0).contains(&values[values.len() - 1]));
        }
    }
}

#[test]
fn constant_leaves_predict_their_value_exactly() {
    let x: ArrayRef = Arc::new((0..90).map(f64::from).collect::<Float64Array>());
    let y: ArrayRef = Arc::new((0..90).map(|row| if row < 45 { 0.1 } else { 0.7 }).collect::<Float64Array>());
    let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
    let (roles, options, monitor) = (Roles::new(Targets::Last(1)), RunOptions::default(), Monitor::default());
    let forest = accumulate_and_keep(&source(batch, 90), &roles, &params(), &options, &monitor).unwrap().1;
    for batch in forest.batches() {
        let nodes = Nodes::new(&batch);
        let leaves = (0..nodes.len()).filter(|&node| nodes.is_leaf(node));
        assert!(leaves.map(|node| nodes.predicted(node).1[0]).all(|value| value == 0.1 || value == 0.7));
    }
}

#[test]
fn what_cannot_be_kept_is_named() {
    let shadows = params().with_shadows(true).with_n_estimators(200);
    assert!(keep(&shadows, 1).unwrap_err().to_string().starts_with("keep_trees: "));
    let options = RunOptions::default().with_keys(Some(0..2));
    let roles = Roles::new(Targets::Last(2));
    let error = accumulate_and_keep(&source(table(ROWS), 64), &roles, &params(), &options, &Monitor::default());
    assert!(error.unwrap_err().to_string().starts_with("keep_trees: "));
}

/// The forest's file with its tables changed by `change`, and a checksum that fits.
fn damaged(forest: &KeptForest, change: impl Fn(&RecordBatch) -> RecordBatch) -> Result<KeptForest> {
    let batches: Vec<RecordBatch> = forest.batches().map(|batch| change(&batch)).collect();
    let mut bytes = Vec::new();
    write_sealed(&mut bytes, batches[0].schema_ref(), &batches).unwrap();
    KeptForest::from_ipc(bytes)
}

fn with_column(batch: &RecordBatch, number: usize, column: ArrayRef) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    columns[number] = column;
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

#[test]
fn damaged_tables_of_nodes_are_errors() {
    let forest = keep(&params(), 1).unwrap();
    assert!(damaged(&forest, RecordBatch::clone).is_ok());
    let integers = |batch: &RecordBatch, number: usize, change: &dyn Fn(u32) -> u32| {
        let old = batch.column(number).as_primitive::<UInt32Type>();
        with_column(batch, number, Arc::new(old.iter().map(|value| value.map(change)).collect::<UInt32Array>()))
    };
    let floats = |batch: &RecordBatch, number: usize, change: &dyn Fn(f64) -> f64| {
        let old = batch.column(number).as_primitive::<Float64Type>();
        with_column(batch, number, Arc::new(old.iter().map(|value| value.map(change)).collect::<Float64Array>()))
    };
    type Change<'a> = &'a dyn Fn(&RecordBatch) -> RecordBatch;
    let changes: [(&str, Change<'_>); 9] = [
        ("a feature out of range", &|batch| integers(batch, 0, &|_| 99)),
        ("other features", &|batch| integers(batch, 0, &|feature| (feature + 1) % 3)),
        ("a cycle", &|batch| integers(batch, 4, &|_| 0)),
        ("children out of range", &|batch| integers(batch, 4, &|_| u32::MAX)),
        ("shared children", &|batch| integers(batch, 4, &|right| right - 1)),
        ("cuts that are no numbers", &|batch| floats(batch, 1, &|_| f64::NAN)),
        ("gains that are not finite", &|batch| floats(batch, 5, &|_| f64::INFINITY)),
        ("weights below 0", &|batch| floats(batch, 6, &|_| -1.0)),
        ("missing sides", &|batch| with_column(batch, 3, Arc::new(BooleanArray::from(vec![None; batch.num_rows()])))),
    ];
    for (what, change) in changes {
        let error = damaged(&forest, change).expect_err(what).to_string();
        assert!(error.starts_with("forest: no forest of ferrank: tree 0: "), "{what}: {error}");
    }
    for cut in [1, 2] {
        let error = damaged(&forest, |batch| batch.slice(0, batch.num_rows() - cut)).unwrap_err();
        assert!(error.to_string().contains("tree 0: "), "{error}");
    }
}

#[test]
fn damaged_descriptions_are_errors() {
    let forest = keep(&params(), 1).unwrap();
    let with_head = |from: &str, to: &str| {
        let text = forest.description().unwrap().replace(from, to);
        assert_ne!(text, forest.description().unwrap(), "{from}");
        let metadata = HashMap::from([("ferrank:forest".to_string(), text)]);
        damaged(&forest, move |batch| {
            let schema = Schema::new_with_metadata(batch.schema().fields().clone(), metadata.clone());
            batch
                .clone()
                .with_schema(Arc::new(schema.clone()))
                .unwrap_or_else(|_| RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap())
        })
    };
    for (from, to) in [
        ("\"format\":2", "\"format\":1"),
        ("\"n_estimators\":12", "\"n_estimators\":13"),
        ("\"n_estimators\":12", "\"n_estimators\":18446744073709551615"),
        ("\"per_target\":false", "\"per_target\":true"),
        ("\"no\",\"yes\"", "\"yes\",\"no\""),
        ("\"no\",\"yes\"", "\"no\""),
        ("\"blue\",\"green\"", "\"green\",\"blue\""),
        ("\"task\":", "\"tusk\":"),
        ("{", "["),
    ] {
        let error = with_head(from, to).expect_err(to).to_string();
        assert!(error.starts_with("forest: no forest of ferrank: "), "{error}");
    }
    assert!(KeptForest::from_ipc(b"ARROW1".to_vec()).is_err());
}

#[test]
fn columns_are_found_by_name_or_missed_by_name() {
    let forest = keep(&params(), 1).unwrap();
    let batch = table(ROWS).project(&[0, 1]).unwrap();
    let error = forest.predict(&source(batch, 64), Output::default(), 1, &Monitor::default(), |_| Ok(()));
    assert!(error.unwrap_err().to_string().starts_with("table: no column 'b', which the training data have"));
}

#[test]
fn pairs_that_work_together_come_first_and_trends_have_a_sign() {
    let hash = |row: u32, salt: u32| {
        let mixed = (u64::from(row) << 8 | u64::from(salt)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / f64::from(1 << 24)
    };
    let column = |f: &dyn Fn(u32) -> f64| Arc::new((0..2000).map(f).collect::<Float64Array>()) as ArrayRef;
    let forest = |y: &dyn Fn(u32) -> f64| {
        let names = ["p", "q", "noise", "down"];
        let mut columns: Vec<(&str, ArrayRef)> =
            names.iter().zip(1..).map(|(&name, salt)| (name, column(&|row| hash(row, salt)))).collect();
        columns.push(("y", column(y)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (roles, options, monitor) = (Roles::new(Targets::Last(1)), RunOptions::default(), Monitor::default());
        let params = params().with_n_estimators(30).with_min_samples_leaf(20);
        accumulate_and_keep(&source(batch, 500), &roles, &params, &options, &monitor).unwrap().1
    };
    let parity = forest(&|row| f64::from((hash(row, 1) > 0.5) == (hash(row, 2) > 0.5)));
    let [first, second] = [parity.interactions()[0], parity.interactions()[1]];
    assert!(first.features == (0, 1) && first.gain > 1.5 * second.gain, "{first:?} {second:?}");
    let trends = forest(&|row| hash(row, 1) - 2.0 * hash(row, 4)).trends();
    let of = |feature| trends.iter().find(|one| one.feature == feature).unwrap().trend;
    assert!(of(0) > 0.9 && of(3) < -0.9, "{trends:?}");
    assert!(of(2).abs() < 0.7, "{trends:?}");
}
