//! Data that cannot be ranked, and runs that are stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array};
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Task;
use ferrank_forest::{ForestParams, Score, grow_tree, rank};
use ferrank_runtime::error::Error;
use ferrank_runtime::monitor::{Monitor, Phase};

use super::{few_trees, message, numbers, plain, ranked, roles, source, table, texts};

#[test]
fn errors_say_what_is_wrong_and_where() {
    let params = few_trees(&[Score::Genie3]);
    let y = || numbers([1.0, 2.0, 3.0, 4.0]);
    let infinite = table(vec![("fine", y()), ("bad", numbers([1.0, f64::INFINITY, 0.0, 0.0])), ("y", y())]);
    assert!(message(&infinite, &roles(&["y"]), &params).contains("column 'bad'"));
    let infinite = table(vec![("x", y()), ("goal", numbers([1.0, f64::NEG_INFINITY, 0.0, 0.0]))]);
    assert!(message(&infinite, &roles(&["goal"]), &params).contains("target 'goal'"));

    let labels = table(vec![
        ("x", y()),
        ("two", Arc::new(BooleanArray::from(vec![true, false, true, true])) as ArrayRef),
        ("three", texts(["0", "1", "2", "0"])),
    ]);
    let multi_label = roles(&["two", "three"]).with_task(Some(Task::MultiLabel));
    let error = message(&labels, &multi_label, &params);
    assert!(error.contains("'three'") && error.contains("3 values"), "{error}");

    let partly = table(vec![("x", y()), ("y", Arc::new(Float64Array::from(vec![Some(1.0), None, None, Some(2.0)])))]);
    let error = message(&partly, &roles(&["y"]), &params);
    assert!(error.contains("2 of 4 rows"), "{error}");
    let ranking = ranked(&partly, &roles(&["y"]), &params.clone().with_unlabelled(Unlabelled::Ignore));
    let ranking = ranking.unwrap();
    assert_eq!((ranking.n_rows, ranking.n_unlabelled), (2, 2));

    let none = table(vec![("x", numbers([])), ("y", numbers([]))]);
    assert!(message(&none, &roles(&["y"]), &params).contains("no rows"));
    let unknown = table(vec![("x", y()), ("y", Arc::new(Float64Array::new_null(4)))]);
    let ignore = params.clone().with_unlabelled(Unlabelled::Ignore);
    assert!(message(&unknown, &roles(&["y"]), &ignore).contains("none of 4 rows"));

    let weights = table(vec![("x", y()), ("w", numbers([1.0, -1.0, 0.0, 1.0])), ("y", y())]);
    let error = message(&weights, &roles(&["y"]).with_weight(Some("w".into())), &params);
    assert!(error.contains("column 'w'") && error.contains("-1"), "{error}");
}

#[test]
fn so_many_categories_and_no_more() {
    let with = |categories: usize| {
        let names: Vec<String> = (0..categories).map(|i| i.to_string()).collect();
        table(vec![
            ("id", texts(names.iter().map(String::as_str))),
            ("y", Arc::new(Int32Array::from_iter_values((0..categories as i32).map(|i| i % 7)))),
        ])
    };
    let params = ForestParams::default().with_n_estimators(1).with_max_depth(Some(2));
    let ranking = ranked(&with(65_535), &roles(&["y"]), &params).unwrap();
    assert!(ranking.scores[0].importance[0] > 0.0);
    let error = message(&with(65_536), &roles(&["y"]), &params);
    assert!(error.contains("column 'id'") && error.contains("65535"), "{error}");
}

#[test]
fn a_run_stops_on_request() {
    let batch = plain(5_000);
    let params = few_trees(&[Score::Genie3]).with_n_estimators(1_000_000);
    let source = source(vec![batch]);
    let monitor = Monitor::default();
    monitor.stop();
    let stopped = rank(&source, &roles(&["y"]), &params, 1, &monitor);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert!(matches!(grow_tree(&source, &roles(&["y"]), &params, 0, &monitor), Err(Error::Interrupted)));

    let monitor = Monitor::default();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| rank(&source, &roles(&["y"]), &params, 2, &monitor));
        while monitor.progress().phase != Phase::Growing || monitor.progress().done < 3 {
            assert!(!run.is_finished());
            std::thread::sleep(Duration::from_millis(1));
        }
        monitor.stop();
        let requested = Instant::now();
        assert!(matches!(run.join().unwrap(), Err(Error::Interrupted)));
        assert!(requested.elapsed() < Duration::from_secs(1));
    });
}
