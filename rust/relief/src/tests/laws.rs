//! Where the rows are, how they are cut and who works on them never changes a bit.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};

use super::uniform;
use crate::limits::{LIMITS, Limits};
use crate::{
    DistanceFeatures, FeatureRef, Iterations, Missing, NeighborhoodRule, ReliefParams, Scaling, accumulate_within,
};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_ranking::Ranking;
use ferrank_ranking::RunOptions;
use ferrank_runtime::monitor::Monitor;

/// Both kinds of features and targets, with ties and missing values.
pub(super) fn table(rows: usize, seed: u64) -> RecordBatch {
    let number = |column: u64, row: usize| uniform(ferrank_runtime::random::mix([seed, column, row as u64]));
    let floats = |column: u64, missing: f64| -> ArrayRef {
        let value = |row| (number(column + 100, row) >= missing).then(|| number(column, row) * 1e3);
        Arc::new((0..rows).map(value).collect::<Float64Array>())
    };
    let words = |column: u64, missing: f64| -> ArrayRef {
        let word = |row| ["a", "b", "c"][(number(column, row) * 3.0) as usize];
        Arc::new(
            (0..rows).map(|row| (number(column + 100, row) >= missing).then(|| word(row))).collect::<StringArray>(),
        )
    };
    let few = (0..rows).map(|row| Some((number(5, row) * 4.0).floor())).collect::<Float64Array>();
    let columns = [
        ("x", floats(0, 0.0)),
        ("gaps", floats(1, 0.2)),
        ("word", words(2, 0.0)),
        ("gappy", words(3, 0.2)),
        ("few", Arc::new(few)),
        ("y", floats(6, 0.0)),
        ("class", words(7, 0.0)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

/// `batch` with a column of groups: nine of many rows, in no order, and some of one row.
pub(super) fn with_groups(batch: &RecordBatch) -> RecordBatch {
    let group = |row: usize| if row.is_multiple_of(11) { row } else { row * row % 9 };
    let names = (0..batch.num_rows()).map(|row| format!("g{}", group(row)));
    with_column(batch, "g", Arc::new(StringArray::from_iter_values(names)))
}

/// `batch` with a column of weights.
pub(super) fn with_weights(batch: &RecordBatch, weight: impl Fn(usize) -> f64) -> RecordBatch {
    with_column(batch, "w", Arc::new((0..batch.num_rows()).map(weight).collect::<Float64Array>()))
}

/// `batch` with one more column.
pub(super) fn with_column(batch: &RecordBatch, name: &str, values: ArrayRef) -> RecordBatch {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| (field.name().as_str(), column.clone(), true));
    RecordBatch::try_from_iter_with_nullable(columns.chain([(name, values, true)])).unwrap()
}

/// Weights of many magnitudes, and some of 0.
pub(super) fn uneven(row: usize) -> f64 {
    if row.is_multiple_of(13) { 0.0 } else { 3.0 * uniform(row as u64 + 77).powi(4) }
}

/// Weights of some of the features of [`table`] in distances.
fn some_features() -> DistanceFeatures {
    let weights = [("few", 0.5), ("gaps", 2.0), ("gappy", 0.3), ("word", 0.7)];
    DistanceFeatures::Weighted(weights.map(|(name, weight)| (FeatureRef::Name(name.into()), weight)).into())
}

/// One with missing values and one of categories.
fn some_covariates() -> Vec<FeatureRef> {
    ["gaps", "word"].map(|name| FeatureRef::Name(name.into())).into()
}

/// How the work is done.
pub(super) type Way = (Limits, usize, usize);

pub(super) fn ranked(
    batch: &RecordBatch,
    targets: &[&str],
    params: &ReliefParams,
    (limits, chunk, threads): Way,
) -> Ranking {
    let parts = (0..batch.num_rows()).step_by(chunk).map(|at| batch.slice(at, chunk.min(batch.num_rows() - at)));
    let source = TableSource::new("table", batch.schema(), parts.collect()).unwrap();
    let drop = ["y", "class"].iter().filter(|name| !targets.contains(name)).map(|name| name.to_string()).collect();
    let targets = Targets::Named(targets.iter().map(|name| name.to_string()).collect());
    let [groups, weight] = ["g", "w"].map(|name| batch.column_by_name(name).map(|_| name.to_string()));
    let roles = Roles::new(targets).with_drop(drop).with_groups(groups).with_weight(weight);
    let options = RunOptions::default().with_threads(threads);
    accumulate_within(Some(limits), &source, &roles, params, &options, None, &Monitor::default())
        .unwrap()
        .ranking()
        .unwrap()
}

#[test]
fn nothing_but_data_and_settings_changes_a_bit() {
    let narrow = Limits { rows: 0, group: 20_000, ..LIMITS };
    for (seed, n_iterations) in [(0, Iterations::All), (1, Iterations::Count(37)), (2, Iterations::Share(0.6))] {
        let batch = if seed == 1 { with_groups(&table(230, seed)) } else { table(230, seed) };
        let batch = if seed > 0 { with_weights(&batch, uneven) } else { batch };
        for (targets, per_target) in [(vec!["class"], false), (vec!["y"], false), (vec!["y", "class"], true)] {
            for (scaling, missing) in [
                (Scaling::Range, Missing::Expected),
                (Scaling::Range, Missing::Informative),
                (Scaling::Rank, Missing::Expected),
            ] {
                let params = ReliefParams {
                    n_neighbors: vec![3, 8],
                    sigma: vec![None, Some(2.0)],
                    n_iterations: vec![n_iterations],
                    scaling,
                    missing,
                    per_target,
                    distance_features: if seed == 1 { some_features() } else { DistanceFeatures::All },
                    covariates: if seed == 2 { some_covariates() } else { Vec::new() },
                    ..ReliefParams::default()
                };
                let whole = ranked(&batch, &targets, &params, (LIMITS, 230, 1));
                assert_eq!(whole.scores.len(), 4);
                for way in [(LIMITS, 7, 4), (narrow, 230, 1), (narrow, 50, 2), (Limits { rows: 0, ..LIMITS }, 13, 1)] {
                    // As text: NaN is not equal to itself.
                    assert_eq!(
                        format!("{whole:?}"),
                        format!("{:?}", ranked(&batch, &targets, &params, way)),
                        "{targets:?}, {scaling:?}, {missing:?}, {way:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn differences_that_are_counted_have_the_bits_of_those_that_are_added_up() {
    let streamed = Limits { rows: 0, ..LIMITS };
    let whole = table(230, 3);
    // More features than are counted together, one of them constant, and words that many rows have alone.
    let word = |column: u64, row: usize| {
        let number = ferrank_runtime::random::mix([column, row as u64]);
        format!("w{}", number % [3, 1, 2, 150][column as usize % 4])
    };
    let words =
        |column: u64| Arc::new(StringArray::from_iter_values((0..230).map(|row| word(column, row)))) as ArrayRef;
    let columns = (0..150).map(|column| (format!("x{column}"), words(column)));
    // Of two classes pairs have few weights, of numbers many.
    let class = StringArray::from_iter_values((0..230).map(|row| if row % 5 < 2 { "a" } else { "b" }));
    let y = ("y".to_string(), whole.column_by_name("y").unwrap().clone());
    let targets = [y, ("class".to_string(), Arc::new(class) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns.chain(targets)).unwrap();
    for (batch, n_iterations) in [
        (batch.clone(), Iterations::All),
        (with_groups(&batch), Iterations::Count(90)),
        (with_weights(&batch, |row| [1.0, 0.25][row % 2]), Iterations::All),
    ] {
        for target in ["class", "y"] {
            let n_iterations = vec![n_iterations];
            let params = ReliefParams { n_neighbors: vec![3, 8], n_iterations, ..ReliefParams::default() };
            let text = |way| format!("{:?}", ranked(&batch, &[target], &params, way));
            let expected = text((streamed, 230, 1));
            for way in [(LIMITS, 230, 1), (LIMITS, 60, 2)] {
                assert_eq!(expected, text(way), "{target}, {way:?}");
            }
        }
    }
}

#[test]
fn rules_by_radius_have_the_same_bits_wherever_the_rows_are() {
    let narrow = Limits { rows: 0, group: 20_000, ..LIMITS };
    let rules = [
        (NeighborhoodRule::Surf, Iterations::All),
        (NeighborhoodRule::SurfStar, Iterations::Count(37)),
        (NeighborhoodRule::Multisurf, Iterations::All),
        (NeighborhoodRule::MultisurfStar, Iterations::Share(0.6)),
    ];
    for (seed, (neighborhood, n_iterations)) in (0..).zip(rules) {
        let batch = if seed % 2 == 1 { with_groups(&table(150, seed)) } else { table(150, seed) };
        let weighted = with_weights(&batch, uneven);
        for (batch, targets, target_draws) in [
            (&batch, vec!["class"], 0),
            (&batch, vec!["y"], 0),
            (&batch, vec!["y", "class"], 0),
            (&batch, vec!["class"], 20),
            (&weighted, vec!["class"], 0),
            (&weighted, vec!["y"], 0),
        ] {
            for missing in [Missing::Expected, Missing::Informative] {
                let params = ReliefParams {
                    neighborhood,
                    n_iterations: vec![n_iterations],
                    missing,
                    target_draws,
                    distance_features: if seed < 2 { DistanceFeatures::All } else { some_features() },
                    covariates: if seed == 1 && target_draws == 0 { some_covariates() } else { Vec::new() },
                    ..ReliefParams::default()
                };
                let whole = ranked(batch, &targets, &params, (LIMITS, 150, 1));
                assert!(whole.scores[0].importance.iter().any(|importance| *importance != 0.0));
                for way in [(LIMITS, 7, 4), (narrow, 50, 2)] {
                    assert_eq!(
                        format!("{whole:?}"),
                        format!("{:?}", ranked(batch, &targets, &params, way)),
                        "{targets:?}, {neighborhood:?}, {missing:?}, {way:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_rule_by_radius_says_how_much_memory_it_needs() {
    let batch = table(100, 0);
    let params = ReliefParams::default().with_neighborhood(NeighborhoodRule::Multisurf);
    let source = TableSource::new("table", batch.schema(), vec![batch]).unwrap();
    let roles = Roles::new(Targets::Named(vec!["y".into()]));
    let limits = Some(Limits { all: 1000, ..LIMITS });
    let found = accumulate_within(limits, &source, &roles, &params, &RunOptions::default(), None, &Monitor::default());
    let Err(error) = found else { panic!("too little memory") };
    let error = error.to_string();
    assert!(error.contains("neighborhood: \"multisurf\" holds all rows"), "{error}");
}

#[test]
fn weights_say_which_features_distances_are_made_of() {
    let rules = [NeighborhoodRule::Nearest, NeighborhoodRule::SurfStar, NeighborhoodRule::Multisurf];
    for (neighborhood, targets) in rules.into_iter().flat_map(|rule| [(rule, ["class"]), (rule, ["y"])]) {
        let batch = table(130, 3);
        let importances = |distance_features: DistanceFeatures, batch: &RecordBatch| {
            let params = ReliefParams { neighborhood, distance_features, ..ReliefParams::default() };
            format!("{:?}", ranked(batch, &targets, &params, (LIMITS, 130, 2)).scores[0].importance)
        };
        let all = importances(DistanceFeatures::All, &batch);
        let names = ["x", "gaps", "word", "gappy", "few"].map(|name| FeatureRef::Name(name.into()));
        let equal = |weight: f64| names.clone().map(|name| (name, weight)).to_vec();
        assert_eq!(all, importances(DistanceFeatures::Named(names.clone().into()), &batch));
        assert_eq!(all, importances(DistanceFeatures::Weighted(equal(3.7)), &batch));
        assert_ne!(all, importances(DistanceFeatures::Named(names[..2].into()), &batch));
        // Two features of weight 1 are those of a table without the others.
        let some = importances(DistanceFeatures::Mask(vec![true, false, false, true, false]), &batch);
        let kept = batch.project(&[0, 3, 5, 6]).unwrap();
        let kept = importances(DistanceFeatures::All, &kept);
        let numbers = |text: &str| text.trim_matches(['[', ']']).split(", ").map(str::to_string).collect::<Vec<_>>();
        let (some, kept) = (numbers(&some), numbers(&kept));
        assert_eq!([&some[0], &some[3]], [&kept[0], &kept[1]], "{neighborhood:?}, {targets:?}");
    }
}
