use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};

use super::goal::{Basis, Trend};
use super::growth::Growth as _;
use super::*;
use arrow_schema::SchemaRef;
use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::Targets;
use ferrank_data::source::{Chunks, SampledSource, TableSource};
use ferrank_forest::{ForestParams, MaxSamples, Score};
use ferrank_ranking::{Estimate, ScoreRanking};
use ferrank_relief::{Iterations, ReliefParams};
use ferrank_runtime::random::mix;

const GOAL: Goal = Goal { top: 2, confidence: 0.95 };

fn uniform(key: [u64; 3]) -> f64 {
    (mix(key) >> 11) as f64 / (1u64 << 53) as f64
}

/// Columns x0 … x5 and y of noise.
fn source(rows: usize, chunk: usize) -> TableSource {
    let column = |number: u64| (0..rows).map(move |row| uniform([7, number, row as u64]));
    let named = |number| (format!("x{number}"), Arc::new(column(number).collect::<Float64Array>()) as ArrayRef);
    let target = ("y".to_string(), Arc::new(column(6).collect::<Float64Array>()) as ArrayRef);
    let batch = RecordBatch::try_from_iter((0..6).map(named).chain([target])).unwrap();
    let parts = (0..rows).step_by(chunk).map(|start| batch.slice(start, chunk.min(rows - start))).collect();
    TableSource::new("table", batch.schema(), parts).unwrap()
}

fn roles() -> Roles {
    Roles::new(Targets::Named(vec!["y".into()]))
}

fn forest(source: &TableSource, params: &ForestParams, monitor: &Monitor) -> Result<(Ranking, Stop)> {
    rank(source, &roles(), &Settings::Forest(params.clone()), &GOAL, &RunOptions::default().with_threads(2), monitor)
}

/// A ranking with `errors` that more trees would lower.
fn score(importance: &[f64], errors: &[f64]) -> ScoreRanking {
    let variance = errors.iter().map(|error| error * error).collect();
    Estimate::new(importance.to_vec(), variance).rank("genie3")
}

/// What follows from bags of full size.
fn basis(score: &ScoreRanking) -> Basis<'_> {
    Basis { score, freedom: 1e9, trend: Trend::None, has_zero: false, most_times: 100.0 }
}

#[test]
fn features_are_clear_once_simultaneous_intervals_part() {
    // With many degrees of freedom the half width at 1 − 0.05 / 2 / 4 is 2.4977 standard errors.
    let judge = |importance: &[f64], error: f64| GOAL.judge(&basis(&score(importance, &[error; 4])), 1);
    let standing = judge(&[1.0, 5.0, 2.0, 9.0], 0.5);
    assert_eq!((standing.top, standing.clear, standing.times), (2, 2, Some(1.0)));
    assert_eq!((judge(&[1.0, 5.0, 2.0, 9.0], 0.600).clear, judge(&[1.0, 5.0, 2.0, 9.0], 0.601).clear), (2, 1));
    let times = judge(&[1.0, 5.0, 2.0, 9.0], 0.9).times.unwrap();
    assert!((times / (2.4977f64 * 1.8 / 3.0).powi(2) - 1.0).abs() < 2e-3, "{times}");
    assert_eq!(judge(&[1.0, 2.0, 2.0, 9.0], 0.1).times, None);
    assert_eq!(judge(&[1.0, 5.0, 2.0, 9.0], 7.0).times, None);
    assert_eq!(judge(&[1.0, 5.0, 2.0, 9.0], f64::NAN).clear, 0);
    let few = GOAL.judge(&basis(&score(&[3.0, 1.0], &[0.1, 0.1])), 1);
    assert_eq!((few.top, few.clear), (1, 1));
    assert_eq!(GOAL.judge(&basis(&score(&[3.0], &[0.1])), 1).times, Some(1.0));
}

#[test]
fn a_later_look_and_fewer_trees_ask_for_more() {
    let times = |look, freedom| {
        GOAL.judge(&Basis { freedom, ..basis(&score(&[5.0, 4.0, 1.0], &[0.8; 3])) }, look).times.unwrap()
    };
    assert!(times(2, 1e9) > times(1, 1e9));
    assert!(times(1, 10.0) > times(1, 1e9));
}

#[test]
fn no_number_of_trees_lowers_what_other_rows_would_change() {
    let judge = |sampling: f64| {
        let of_trees = Estimate::new(vec![5.0, 4.0, 1.0], vec![0.64; 3]);
        GOAL.judge(&basis(&of_trees.with_sampling(vec![sampling; 3], 1e9).rank("genie3")), 1)
    };
    assert!(judge(0.64).times.unwrap() > 1.0);
    assert!(judge(1.0).times.unwrap() > 1.5 * judge(0.64).times.unwrap());
    assert_eq!(judge(2.5).times, None);
}

#[test]
fn a_lead_that_larger_bags_lower_is_none() {
    let now = score(&[6.0, 5.0, 1.0], &[0.1; 3]);
    let judge = |smaller: Option<&ScoreRanking>, steps| {
        GOAL.judge(&Basis { trend: Trend::Up { steps, smaller }, ..basis(&now) }, 1)
    };
    assert_eq!(judge(None, 1.0).clear, 0);
    let grows = score(&[6.0, 4.0, 1.0], &[0.1; 3]);
    assert_eq!(judge(Some(&grows), 50.0).clear, 2);
    // The lead over the third fell from 6 to 5, and from 5 to 4: after three more steps 2 and 1 are left, then 0.
    let falls = score(&[7.0, 6.0, 1.0], &[0.1; 3]);
    assert_eq!([1.0, 3.0, 4.0, 5.0].map(|steps| judge(Some(&falls), steps).clear), [2, 2, 1, 0]);
}

#[test]
fn where_chance_gives_zero_the_best_are_above_it() {
    let judge = |importance: &[f64]| GOAL.judge(&Basis { has_zero: true, ..basis(&score(importance, &[0.1; 4])) }, 1);
    let standing = judge(&[3.0, 0.2, -1.0, -2.0]);
    assert_eq!((standing.clear, standing.is_above_zero), (1, true));
    assert!(standing.times.unwrap() < 2.0);
    let standing = judge(&[0.2, 0.1, -1.0, -2.0]);
    assert_eq!((standing.clear, standing.is_above_zero), (0, false));
    assert_eq!(judge(&[-1.0, -2.0, -3.0, -4.0]).times, None);
}

#[test]
fn a_larger_sample_contains_a_smaller_one_for_any_chunking() {
    let firsts = |chunk, rows| -> Vec<f64> {
        let source = source(5_000, chunk);
        let sampled = SampledSource::new(&source, 3, rows, 5_000).hold(None, &Monitor::default()).unwrap();
        let values = |batch: RecordBatch| {
            let column = batch.column(0).as_any().downcast_ref::<Float64Array>().unwrap().clone();
            column.values().to_vec()
        };
        sampled.chunks().unwrap().flat_map(|batch| values(batch.unwrap())).collect()
    };
    let (small, large) = (firsts(5_000, 500), firsts(77, 2_000));
    assert!((400..600).contains(&small.len()) && (1_800..2_200).contains(&large.len()));
    assert!(small.iter().all(|value| large.contains(value)));
    assert_eq!(small, firsts(9, 500));
}

#[test]
fn a_sample_without_a_target_gives_way_to_all_rows() {
    let (rows, monitor) = (130_000, Monitor::default());
    let whole = source(rows, rows);
    let params = ForestParams::default().with_unlabelled(Unlabelled::Ignore).with_max_depth(Some(2)).with_seed(3);
    // The first stage has 32 trees of 1,000 rows. None of these rows has a target.
    let sampled: HashSet<u64> = (SampledSource::new(&whole, params.seed, 32_000, rows as u64).chunks().unwrap())
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Float64Type>().values().to_vec())
        .map(f64::to_bits)
        .collect();
    let without = |batch: RecordBatch| {
        let (x, y) = (batch.column(0).as_primitive::<Float64Type>(), batch.column(6).as_primitive::<Float64Type>());
        let known: Float64Array =
            x.values().iter().zip(y.values()).map(|(x, y)| (!sampled.contains(&x.to_bits())).then_some(*y)).collect();
        let mut columns = batch.columns().to_vec();
        columns[6] = Arc::new(known);
        let names = batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        RecordBatch::try_from_iter_with_nullable(names.into_iter().zip(columns).map(|(n, c)| (n, c, true))).unwrap()
    };
    let batches: Vec<RecordBatch> = whole.chunks().unwrap().map(|batch| without(batch.unwrap())).collect();
    let source = TableSource::new("table", batches[0].schema(), batches).unwrap();

    let (roles, options) = (roles(), RunOptions::default().with_threads(2));
    let case = Case { source: &source, roles: &roles, params: &params, options: &options, monitor: &monitor };
    let growth = forest::ForestGrowth::new(case).unwrap();
    let ranking = growth.rank(growth.first()).unwrap();
    let same = params.with_n_estimators(32).with_max_samples(MaxSamples::Share(1_000.0 / rows as f64));
    let expected = ferrank_forest::accumulate(&source, &roles, &same, &options, &monitor).unwrap().ranking().unwrap();
    assert!(expected.scores[0].monte_carlo_error.iter().all(|error| *error > 0.0));
    assert_eq!(ranking.scores[0].importance, expected.scores[0].importance);
    assert_eq!(ranking.scores[0].monte_carlo_error, expected.scores[0].monte_carlo_error);
}

#[test]
fn trees_that_share_their_rows_have_wider_standard_errors() {
    let (rows, monitor) = (130_000, Monitor::default());
    let (source, roles, options) = (source(rows, rows), roles(), RunOptions::default().with_threads(2));
    let params = ForestParams::default().with_max_depth(Some(2));
    let case = Case { source: &source, roles: &roles, params: &params, options: &options, monitor: &monitor };
    let growth = forest::ForestGrowth::new(case).unwrap();
    let ranking = growth.rank(growth.first()).unwrap();
    // 32 trees of 1,000 rows draw from 32,000 rows: the variance is twice that over trees.
    let sample = SampledSource::new(&source, params.seed, 32_000, rows as u64).hold(None, &monitor).unwrap();
    let same = params.with_n_estimators(32).with_max_samples(MaxSamples::Share(1.0 / 32.0));
    let over_trees =
        ferrank_forest::accumulate(&*sample, &roles, &same, &options, &monitor).unwrap().ranking().unwrap();
    let (wide, over_trees) = (&ranking.scores[0], &over_trees.scores[0]);
    assert_eq!((&wide.importance, wide.freedom), (&over_trees.importance, 31.0));
    assert_eq!(wide.monte_carlo_error, over_trees.monte_carlo_error);
    for (wide, error) in wide.standard_error.iter().zip(&over_trees.monte_carlo_error) {
        assert!(*error > 0.0 && (wide / error - 2f64.sqrt()).abs() < 1e-12, "{wide} {error}");
    }
}

#[test]
fn bags_grow_to_full_size_and_then_trees_do_at_little_cost() {
    let monitor = Monitor::default();
    let stages = |rows: usize, params: &ForestParams, times| {
        let (source, roles, options) = (source(rows, rows), roles(), RunOptions::default());
        let case = Case { source: &source, roles: &roles, params, options: &options, monitor: &monitor };
        let growth = forest::ForestGrowth::new(case).unwrap();
        let stages = std::iter::successors(Some(growth.first()), |stage| growth.next(*stage, times));
        stages.map(|stage| (growth.extent(stage).0, growth.extent(stage).1.unwrap())).collect::<Vec<_>>()
    };
    let params = ForestParams::default();
    assert_eq!(stages(130_000, &params, None), [(32, 1_000), (32, 4_000), (32, 130_000), (100, 130_000)]);
    // With one size of small bags there would be no trend.
    assert_eq!(stages(100_000, &params, None), [(32, 100_000), (100, 100_000)]);
    assert_eq!(stages(100, &params.clone().with_n_estimators(40), None), [(40, 100)]);
    let many = params.with_n_estimators(1_000);
    assert_eq!(stages(100, &many, Some(1.1)), [(32, 100), (64, 100), (128, 100), (1_000, 100)]);
    let cost = |stages: Vec<(u64, u64)>| stages.iter().map(|(trees, bag)| trees * bag).sum::<u64>() as f64;
    for times in [1.1, 2.0, 5.0, 99.0] {
        assert!(cost(stages(100, &many, Some(times))) <= 1.5 * 100.0 * 1_000.0, "{times}");
    }
}

/// Rows that count how often they are read.
struct Counted(TableSource, AtomicUsize);

impl ChunkSource for Counted {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.chunks()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn rows_hint(&self) -> Option<u64> {
        self.0.rows_hint()
    }
}

#[test]
fn the_rows_that_relief_draws_are_the_same_in_all_stages_and_read_once() {
    let (source, monitor) = (Counted(source(20_000, 700), AtomicUsize::new(0)), Monitor::default());
    let params = ReliefParams::default().with_max_samples(Iterations::Count(1_200)).with_seed(5);
    let (settings, options) = (Settings::Relief(params.clone()), RunOptions::default());
    let (ranking, stop) = rank(&source, &roles(), &settings, &GOAL, &options, &monitor).unwrap();
    // Noise is not settled: the last stage has all rows of the sample as queries.
    assert_eq!((stop.effort, stop.sampled, stop.of), (1_200, 1_200, 1_200));
    assert_eq!(source.1.load(Ordering::Relaxed), 1);
    let at_once = ferrank_relief::rank(&source, &roles(), &params, 1, &monitor).unwrap();
    assert_eq!(ranking.scores[0].importance, at_once.scores[0].importance);
}

#[test]
fn noise_is_no_better_than_chance() {
    let (source, monitor) = (source(2_000, 2_000), Monitor::default());
    for score in [Score::Genie3, Score::MdiOob] {
        let params = ForestParams::default().with_n_estimators(40).with_scores(vec![score]);
        let (_, stop) = forest(&source, &params, &monitor).unwrap();
        assert_eq!((stop.reason, stop.effort, stop.needed), (Reason::Chance, 40, None), "{score:?}");
    }
}

#[test]
fn who_asks_gets_the_first_answer_that_there_is() {
    let (source, monitor) = (source(3_000, 3_000), Monitor::default());
    let params = ForestParams::default().with_max_depth(Some(2));
    monitor.finish();
    let (ranking, stop) = forest(&source, &params, &monitor).unwrap();
    assert_eq!((stop.reason, stop.bag), (Reason::Requested, Some(3_000)));
    assert_eq!(ranking.features.len(), 6);
    monitor.stop();
    assert!(matches!(forest(&source, &params, &monitor), Err(ferrank_runtime::Error::Interrupted)));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let source = source(100, 100);
    let monitor = Monitor::default();
    let said = |result: Result<(Ranking, Stop)>| result.unwrap_err().to_string();
    let no_bootstrap = ForestParams::default().with_bootstrap(Some(false));
    assert!(said(forest(&source, &no_bootstrap, &monitor)).contains("bootstrap"));
    let goal = |goal| {
        said(rank(
            &source,
            &roles(),
            &Settings::Forest(ForestParams::default()),
            &goal,
            &RunOptions::default(),
            &monitor,
        ))
    };
    assert!(goal(Goal { top: 0, ..GOAL }).contains("stable_top: 0"));
    assert!(goal(Goal { confidence: 1.0, ..GOAL }).contains("confidence: 1"));
}
