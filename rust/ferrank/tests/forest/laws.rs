//! What must hold for every table and setting.

use std::sync::Arc;

use arrow_array::types::Int16Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray};
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Roles;
use ferrank_forest::{Ensemble, ForestParams, grow_tree, rank};
use ferrank_runtime::monitor::Monitor;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{SCORES, bits, few_trees, numbers, ranked, roles, source, table};

/// A table that is hard on sums: magnitudes far apart, ties, missing values, both kinds of features
/// and targets, row weights.
fn awkward(rows: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = RecordBatch> {
    let wide = || prop_oneof![-1e9..1e9f64, -1e-9..1e-9f64, Just(0.0), Just(-0.0), (-2..=2i32).prop_map(f64::from)];
    let tied = || prop_oneof![Just(0.1), Just(0.2), Just(0.3), Just(1e9)];
    let known = || prop::option::weighted(0.9, wide());
    let word = || prop::option::weighted(0.9, prop_oneof![Just("a"), Just("b"), Just("c"), Just("a longer word")]);
    let row = (known(), tied(), word(), known(), prop::option::weighted(0.8, tied()), word(), 0.0..1e3f64);
    vec(row, rows).prop_map(|rows| {
        table(vec![
            ("wide", Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>())),
            ("tied", numbers(rows.iter().map(|row| row.1))),
            ("word", Arc::new(rows.iter().map(|row| row.2).collect::<StringArray>())),
            ("far", Arc::new(rows.iter().map(|row| row.3).collect::<Float64Array>())),
            ("near", Arc::new(rows.iter().map(|row| row.4).collect::<Float64Array>())),
            ("class", Arc::new(rows.iter().map(|row| row.5).collect::<StringArray>())),
            ("weight", numbers(rows.iter().map(|row| row.6))),
        ])
    })
}

/// Settings for [`awkward`] tables: targets, ensemble, and true if rows have weights.
fn settings() -> impl Strategy<Value = (Roles, ForestParams)> {
    let targets = prop_oneof![
        Just(vec!["far"]),
        Just(vec!["near"]),
        Just(vec!["class"]),
        Just(vec!["far", "near"]),
        Just(vec!["near", "class", "far"]),
    ];
    let ensembles = prop_oneof![Just(Ensemble::RandomForest), Just(Ensemble::Bagging), Just(Ensemble::ExtraTrees)];
    let switches = (any::<bool>(), any::<bool>(), prop_oneof![Just(2usize), Just(255), Just(65_535)], any::<u64>());
    (targets, ensembles, switches).prop_map(|(targets, ensemble, (weighted, per_target, max_bins, seed))| {
        let mut roles = roles(&targets);
        roles.drop = ["far", "near", "class"].iter().filter(|n| !targets.contains(n)).map(|n| n.to_string()).collect();
        match weighted {
            true => roles.weight = Some("weight".into()),
            false => roles.drop.push("weight".into()),
        }
        let scores = if ensemble == Ensemble::ExtraTrees { &SCORES[..3] } else { &SCORES };
        let params = few_trees(scores)
            .with_ensemble(ensemble)
            .with_per_target(per_target)
            .with_max_bins(max_bins)
            .with_seed(seed)
            .with_by_target(true)
            .with_unlabelled(Unlabelled::Ignore);
        (roles, params)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn neither_threads_nor_chunks_change_a_bit(
        batch in awkward(4..=150),
        (roles, params) in settings(),
        threads in 2..=3usize,
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let whole = ranked(&batch, &roles, &params);
        let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(batch.num_rows() + 1)).collect();
        borders.extend([0, batch.num_rows()]);
        borders.sort_unstable();
        let parts = borders.windows(2).map(|pair| batch.slice(pair[0], pair[1] - pair[0])).collect();
        let parts = rank(&source(parts), &roles, &params, threads, &Monitor::default());
        match (whole, parts) {
            (Ok(whole), Ok(parts)) => {
                prop_assert_eq!(bits(&whole), bits(&parts));
                prop_assert!(whole.scores.iter().all(|s| s.importance.iter().all(|value| value.is_finite())));
            }
            // A table may have no known target.
            (Err(whole), Err(parts)) => prop_assert_eq!(whole.to_string(), parts.to_string()),
            (whole, parts) => prop_assert!(false, "{whole:?} {parts:?}"),
        }
    }

    #[test]
    fn strings_and_dictionaries_rank_alike(batch in awkward(4..=80), (roles, params) in settings()) {
        let dictionary = |name: &str| -> ArrayRef {
            let strings = batch.column_by_name(name).unwrap().as_any().downcast_ref::<StringArray>().unwrap();
            Arc::new(strings.iter().collect::<DictionaryArray<Int16Type>>())
        };
        let columns = batch.schema().fields().iter().map(|field| {
            let name = field.name().clone();
            let is_text = name == "word" || name == "class";
            let column = if is_text { dictionary(&name) } else { batch.column_by_name(&name).unwrap().clone() };
            (name, column, true)
        }).collect::<Vec<_>>();
        let other = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        if let Ok(plain) = ranked(&batch, &roles, &params) {
            prop_assert_eq!(bits(&plain), bits(&ranked(&other, &roles, &params).unwrap()));
        }
    }

    #[test]
    fn targets_share_out_the_genie3_importance(batch in awkward(10..=120), (roles, params) in settings()) {
        if let Ok(ranking) = ranked(&batch, &roles, &params) {
            let genie3 = &ranking.scores[0];
            for (parts, whole) in genie3.by_target.chunks(ranking.targets.len()).zip(&genie3.importance) {
                prop_assert!((parts.iter().sum::<f64>() - whole).abs() < 1e-12, "{parts:?} {whole}");
            }
        }
    }

    #[test]
    fn importances_are_what_the_trees_show(batch in awkward(10..=120), (mut roles, params) in settings()) {
        roles.weight = None;
        let params = params.with_per_target(false).with_scores(SCORES[..3].to_vec());
        let Ok(ranking) = ranked(&batch, &roles, &params) else { return Ok(()) };
        let mut sums = vec![[0.0; 3]; ranking.features.len()];
        for number in 0..params.n_estimators {
            let tree = grow_tree(&source(vec![batch.clone()]), &roles, &params, number, &Monitor::default()).unwrap();
            for node in &tree.nodes {
                let Some(split) = &node.split else { continue };
                let share = node.n_examples as f64 / tree.nodes[0].n_examples as f64;
                let values = [share * split.gain, 0.5f64.powi(node.depth as i32), share];
                sums[split.feature].iter_mut().zip(values).for_each(|(sum, value)| *sum += value / 3.0);
            }
        }
        for (feature, sums) in sums.iter().enumerate() {
            for (score, sum) in ranking.scores.iter().zip(sums) {
                prop_assert!((score.importance[feature] - sum).abs() < 1e-12, "{} {sum}", score.importance[feature]);
            }
        }
    }
}
