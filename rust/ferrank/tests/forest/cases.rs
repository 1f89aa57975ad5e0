//! Small tables whose importances are known or follow from each other.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use ferrank_forest::{Ensemble, MaxFeatures, Score, Test, Ties, grow_tree};
use ferrank_runtime::monitor::Monitor;

use super::{SCORES, bits, few_trees, numbers, plain, ranked, roles, source, table, texts};

#[test]
fn features_without_variation_get_nothing() {
    for ensemble in [Ensemble::RandomForest, Ensemble::ExtraTrees] {
        let params = few_trees(&SCORES).with_ensemble(ensemble).with_bootstrap(Some(true)).with_n_estimators(10);
        let ranking = ranked(&plain(100), &roles(&["y", "z"]), &params).unwrap();
        assert_eq!(ranking.features, ["a", "constant", "b", "missing"]);
        for score in ranking.scores {
            assert!(score.importance[0] > 0.0 && score.importance[2] > 0.0, "{score:?}");
            assert!(score.importance[1] == 0.0 && score.importance[3] == 0.0, "{score:?}");
            assert!(score.monte_carlo_error[1] == 0.0 && score.monte_carlo_error[3] == 0.0, "{score:?}");
        }
    }
}

#[test]
fn equal_weights_are_no_weights_and_their_scale_does_not_count() {
    let plain = plain(90);
    let weighted = |weight: &dyn Fn(usize) -> f64| {
        let mut columns: Vec<(String, ArrayRef)> =
            plain.schema().fields().iter().map(|f| f.name().clone()).zip(plain.columns().to_vec()).collect();
        columns.push(("w".into(), numbers((0..90).map(weight))));
        let roles = roles(&["y"]).with_weight(Some("w".into()));
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        ranked(&batch, &roles, &few_trees(&SCORES)).unwrap()
    };
    let without = ranked(&plain, &roles(&["y"]), &few_trees(&SCORES)).unwrap();
    let equal = weighted(&|_| 0.3);
    for (a, b) in equal.scores[..3].iter().zip(&without.scores) {
        assert_eq!((&a.importance, &a.monte_carlo_error), (&b.importance, &b.monte_carlo_error));
    }
    // Errors are sums of weighted squares, which round.
    for (a, b) in equal.scores[3].importance.iter().zip(&without.scores[3].importance) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    let uneven = weighted(&|row| 1.0 + (row % 5) as f64);
    assert_ne!(bits(&uneven), bits(&without));
    assert_eq!(bits(&weighted(&|row| 8.0 * (1.0 + (row % 5) as f64))), bits(&uneven));
}

#[test]
fn one_ensemble_for_each_target_averages_over_them() {
    let batch = plain(80);
    let both = |weights: [f64; 2]| {
        let params =
            few_trees(&SCORES).with_per_target(true).with_target_weights(Some(weights.to_vec())).with_by_target(true);
        ranked(&batch, &roles(&["y", "z"]), &params).unwrap()
    };
    let mut only_y = roles(&["y"]);
    only_y.drop.push("z".into());
    let alone = ranked(&batch, &only_y, &few_trees(&SCORES)).unwrap();
    let (first, second, mixed) = (both([1.0, 0.0]), both([0.0, 1.0]), both([1.0, 3.0]));
    for s in 0..SCORES.len() {
        assert_eq!(first.scores[s].importance, alone.scores[s].importance);
        for i in 0..alone.features.len() {
            let [first, second, mixed] = [&first, &second, &mixed].map(|ranking| ranking.scores[s].importance[i]);
            assert!((mixed - (0.25 * first + 0.75 * second)).abs() < 1e-12);
        }
    }
    let z = second.scores[0].importance[0];
    assert!((mixed.scores[0].by_target[1] - 0.75 * z).abs() < 1e-12);
    // Both ensembles' trees can be grown alone, numbered one after the other.
    let params = few_trees(&SCORES).with_per_target(true);
    let tree =
        |number| grow_tree(&source(vec![batch.clone()]), &roles(&["y", "z"]), &params, number, &Monitor::default());
    assert_eq!(tree(2).unwrap(), {
        let params = few_trees(&SCORES);
        grow_tree(&source(vec![batch.clone()]), &only_y, &params, 2, &Monitor::default()).unwrap()
    });
    assert!(tree(5).is_ok());
    let error = tree(6).unwrap_err().to_string();
    assert!(error.contains("tree 6") && error.contains("0 … 5"), "{error}");
}

#[test]
fn a_missing_target_leaves_its_row_out_of_its_own_ensemble() {
    let y = |row: usize| (!row.is_multiple_of(4)).then_some((row * row % 7) as f64);
    let rows = 0..60usize;
    let with = |rows: Vec<usize>| {
        table(vec![
            ("a", numbers(rows.iter().map(|&row| (row % 7) as f64))),
            ("b", numbers(rows.iter().map(|&row| (row % 5) as f64))),
            ("y", Arc::new(rows.iter().map(|&row| y(row)).collect::<Float64Array>())),
            ("z", numbers(rows.iter().map(|&row| row as f64))),
        ])
    };
    let params = few_trees(&SCORES).with_per_target(true).with_target_weights(Some(vec![1.0, 0.0]));
    let both = ranked(&with(rows.clone().collect()), &roles(&["y", "z"]), &params).unwrap();
    let known = with(rows.filter(|&row| y(row).is_some()).collect());
    let alone = ranked(&known, &roles(&["y"]).with_drop(vec!["z".into()]), &few_trees(&SCORES)).unwrap();
    assert_eq!(bits(&both)[..2], bits(&alone)[..2]);
    assert_eq!(both.scores[3].importance, alone.scores[3].importance);
}

#[test]
fn a_target_that_one_row_knows_has_an_ensemble_too() {
    let known = |known: bool| if known { Some(1.5) } else { None };
    let lone: Float64Array = (0..9).map(|row| known(row == 3)).collect();
    let feature = || numbers((0..9).map(f64::from));
    let batch = table(vec![("a", feature()), ("lone", Arc::new(lone)), ("y", feature())]);
    let params = few_trees(&SCORES).with_n_estimators(10).with_per_target(true).with_by_target(true);
    let ranking = ranked(&batch, &roles(&["lone", "y"]), &params).unwrap();
    let genie3 = &ranking.scores[0];
    assert!(genie3.by_target[0] == 0.0 && genie3.by_target[1] > 0.0, "{genie3:?}");
    assert!(genie3.standard_error[0] > 0.0, "{genie3:?}");
}

#[test]
fn tests_of_a_tree_have_the_values_of_the_source() {
    let batch = table(vec![
        ("x", numbers([1.0, 1.0, 2.0, 2.0, 8.0, 8.0, 9.0, 9.0])),
        ("c", texts(["p", "p", "q", "q", "r", "r", "r", "r"])),
        ("y", numbers([0.0, 0.0, 4.0, 4.0, 10.0, 10.0, 10.0, 10.0])),
    ]);
    let params = few_trees(&[Score::Genie3])
        .with_ensemble(Ensemble::Bagging)
        .with_bootstrap(Some(false))
        .with_max_features(Some(MaxFeatures::All))
        .with_ties(Ties::Lowest);
    let tree = grow_tree(&source(vec![batch]), &roles(&["y"]), &params, 0, &Monitor::default()).unwrap();
    let root = tree.nodes[0].split.as_ref().unwrap();
    assert_eq!((root.feature, &root.test), (0, &Test::Cut(5.0)));
    // Variance 18; 4 in the left half, 0 in the right one.
    assert!((root.gain - (1.0 - 2.0 / 18.0)).abs() < 1e-12, "{}", root.gain);
    assert_eq!(tree.nodes[1].split.as_ref().unwrap().test, Test::Cut(1.5));
    assert_eq!(tree.nodes.iter().map(|node| node.n_examples).collect::<Vec<_>>(), [8, 4, 2, 2, 4]);

    let only_c = roles(&["y"]).with_drop(vec!["x".into()]);
    let batch = table(vec![
        ("x", numbers([0.0; 6])),
        ("c", texts(["p", "p", "q", "q", "r", "r"])),
        ("y", numbers([1.0, 1.0, 9.0, 9.0, 1.0, 1.0])),
    ]);
    let tree = grow_tree(&source(vec![batch]), &only_c, &params, 0, &Monitor::default()).unwrap();
    let test = &tree.nodes[0].split.as_ref().unwrap().test;
    // The lighter side is the left one.
    assert_eq!(test, &Test::Subset(vec!["q".into()]));
}
