//! Accumulators merge, travel, and are resumed, with the bits of one run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use serde_json::Value;
use tempfile::tempdir;

use ferrank::run::read_accumulator;
use ferrank::{Accumulator, Ranking, RunOptions, Settings, run};
use ferrank_data::intake::Unlabelled;
use ferrank_data::intake::View;
use ferrank_data::profile::{Place, Profile, count, profile};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_forest::{ForestParams, Score};
use ferrank_ranking::{Condensed, Ranker, Vector};
use ferrank_relief::{Iterations, ReliefParams, ReliefScore};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Numeric and nominal features with gaps; the targets follow `a` and `word`, `z` has gaps.
fn table(rows: usize) -> RecordBatch {
    let noise = |i: usize, by: usize| ((i * by) % 97) as f64;
    let column =
        |f: &dyn Fn(usize) -> Option<f64>| -> ArrayRef { Arc::new((0..rows).map(f).collect::<Float64Array>()) };
    let word = |i: usize| ["x", "y", "z"][i * 7 % 3];
    RecordBatch::try_from_iter_with_nullable([
        ("a", column(&|i| (i % 11 != 5).then_some(noise(i, 37))), true),
        ("b", column(&|i| Some(noise(i, 61))), true),
        ("word", Arc::new((0..rows).map(|i| (i % 13 != 0).then_some(word(i))).collect::<StringArray>()), true),
        ("y", column(&|i| Some(noise(i, 37) + noise(i, 5) / 9.0)), true),
        ("z", column(&|i| (i % 4 != 1).then_some(f64::from(u8::from(word(i) == "x")))), true),
        (
            "class",
            Arc::new(
                (0..rows).map(|i| Some(if noise(i, 37) > 40.0 { "hi" } else { word(i) })).collect::<StringArray>(),
            ),
            true,
        ),
    ])
    .unwrap()
}

fn source(batch: &RecordBatch) -> TableSource {
    TableSource::new("table", batch.schema(), vec![batch.clone()]).unwrap()
}

/// Bytes that end a complete Arrow stream.
const END_MARKER: usize = 8;

/// Reads the settings of any ranker.
fn parse(settings: &Value) -> Option<Arc<dyn Ranker>> {
    match serde_json::from_value(settings.clone()).ok()? {
        Settings::Forest(params) => Some(Arc::new(params)),
        Settings::Relief(params) => Some(Arc::new(params)),
        _ => None,
    }
}

/// A way to rank: targets, columns to leave out, settings.
struct Case(&'static [&'static str], &'static [&'static str], Settings);

fn cases() -> Vec<Case> {
    let forest = ForestParams::default()
        .with_n_estimators(9)
        .with_scores(vec![Score::Genie3, Score::Symbolic, Score::Coverage, Score::Permutation])
        .with_by_target(true)
        .with_max_bins(40);
    let relief = ReliefParams::default().with_n_neighbors(vec![3, 7]).with_n_iterations(vec![Iterations::Share(0.7)]);
    let both = vec![ReliefScore::Relief, ReliefScore::Myopic];
    vec![
        Case(&["y", "z"], &["class"], Settings::Forest(forest.clone())),
        Case(&["y", "z"], &["class"], Settings::Forest(forest.clone().with_per_target(true))),
        Case(&["class"], &["y", "z"], Settings::Forest(forest.with_by_target(false))),
        Case(&["y", "z"], &["class"], Settings::Relief(relief.clone())),
        Case(&["y", "z"], &["class"], Settings::Relief(relief.clone().with_per_target(true))),
        Case(&["class"], &["y", "z"], Settings::Relief(relief.with_scores(both))),
    ]
}

impl Case {
    fn roles(&self) -> Roles {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Roles::new(Targets::Named(names(self.0))).with_drop(names(self.1))
    }

    fn accumulate(&self, batch: &RecordBatch, options: &RunOptions<'_>) -> Result<Accumulator> {
        run::accumulate(&source(batch), &self.roles(), &self.2, options, &Monitor::default())
    }

    fn whole(&self, batch: &RecordBatch) -> Accumulator {
        self.accumulate(batch, &RunOptions::default().with_threads(2)).unwrap()
    }

    fn profile(&self, batch: &RecordBatch, first_row: u64) -> Profile {
        let monitor = Monitor::default();
        let (source, roles) = (source(batch), self.roles());
        let view = View::new(&source, &roles, Unlabelled::Ignore);
        profile(view, self.2.ranker().max_bins(), Place { first_row, of_rows: None }, 1, &monitor).unwrap()
    }
}

fn assert_same(one: &Ranking, other: &Ranking) {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    assert_eq!(one.features, other.features);
    assert_eq!(one.scores.len(), other.scores.len());
    for (a, b) in one.scores.iter().zip(&other.scores) {
        assert_eq!((&a.score, bits(&a.importance)), (&b.score, bits(&b.importance)));
        assert_eq!((bits(&a.monte_carlo_error), &a.rank_interval), (bits(&b.monte_carlo_error), &b.rank_interval));
        assert_eq!(bits(&a.by_target), bits(&b.by_target));
    }
}

#[test]
fn shares_of_a_run_merge_in_any_order_to_its_bits() {
    let batch = table(300);
    for case in cases() {
        let whole = case.whole(&batch);
        let n = whole.identity().n_keys();
        assert_eq!(whole.keys().collect::<Vec<u64>>(), (0..n).collect::<Vec<u64>>());
        let known = case.profile(&batch, 0);
        let share = |keys| {
            let options = RunOptions::default().with_keys(Some(keys)).with_profile(Some(&known));
            case.accumulate(&batch, &options).unwrap()
        };
        let (one, two, three) = (share(0..n / 3), share(n / 3..n / 2), share(n / 4..n));
        for [a, b, c] in [[&one, &two, &three], [&three, &one, &two]] {
            let mut merged = a.clone();
            merged.merge(b).unwrap();
            merged.merge(c).unwrap();
            assert_same(&merged.ranking().unwrap(), &whole.ranking().unwrap());
            assert_eq!(merged.to_ipc().unwrap(), whole.to_ipc().unwrap());
        }
        let sent = read_accumulator(whole.to_ipc().unwrap(), "sent").unwrap();
        assert_same(&sent.ranking().unwrap(), &whole.ranking().unwrap());
        assert_eq!(sent.identity(), whole.identity());
    }
}

#[test]
fn what_is_condensed_gives_the_bits_of_a_run_and_a_mean_of_several() {
    let (first, second) = (table(300), table(500).slice(300, 200));
    for case in cases() {
        let (one, two) = (case.whole(&first), case.whole(&second));
        let mut condensed = Condensed::new(one.identity().clone());
        condensed.add(one.clone(), 0.5);
        assert_same(&condensed.ranking().unwrap(), &one.ranking().unwrap());
        condensed.add(two.clone(), 0.5);
        let sent = Condensed::from_ipc(condensed.to_ipc().unwrap(), "sent", &parse).unwrap();
        assert_same(&sent.ranking().unwrap(), &condensed.ranking().unwrap());
        if let Settings::Forest(_) = case.2 {
            let (ranking, one, two) = (condensed.ranking().unwrap(), one.ranking().unwrap(), two.ranking().unwrap());
            for ((both, one), two) in ranking.scores.iter().zip(one.scores).zip(two.scores) {
                for ((both, one), two) in both.importance.iter().zip(one.importance).zip(two.importance) {
                    assert!((both - (one / 2.0 + two) / 1.5).abs() < 1e-12, "{both} of {one} and {two}");
                }
            }
        }
    }
}

#[test]
fn parts_of_the_rows_contribute_under_one_profile() {
    let batch = table(400);
    let parts = [batch.slice(0, 150), batch.slice(150, 250)];
    for case in cases() {
        let (source, roles) = (source(&parts[0]), case.roles());
        let counted = count(View::new(&source, &roles, Unlabelled::Ignore), &Monitor::default()).unwrap();
        let mut known = case.profile(&parts[0], 0);
        known.merge(&case.profile(&parts[1], counted.kept)).unwrap();
        let of_part = |part: &RecordBatch, keys| {
            let options = RunOptions::default().with_keys(Some(keys)).with_profile(Some(&known));
            case.accumulate(part, &options).unwrap()
        };
        let n = case.whole(&batch).identity().n_keys();
        let mut merged = of_part(&parts[0], 0..n / 3);
        merged.merge(&of_part(&parts[1], n / 3..n)).unwrap();
        let ranking = merged.ranking().unwrap();
        assert_eq!(ranking.n_rows, 400);
        assert!(ranking.scores.iter().all(|score| score.importance.iter().all(|value| value.is_finite())));
        let nothing_told = case.accumulate(&parts[0], &RunOptions::default().with_profile(Some(&known)));
        assert!(nothing_told.unwrap_err().to_string().contains("keys: table is a part"));
    }
}

#[test]
fn a_part_may_lack_classes_and_targets() {
    let batch = table(400);
    let constant = |value: Option<&str>, y: Option<f64>, z: Option<f64>| {
        let mut columns = batch.slice(0, 50).columns().to_vec();
        columns[0] = Arc::new((0..50).map(|_| z.map(|_| 3.0)).collect::<Float64Array>());
        columns[2] = Arc::new((0..50).map(|_| z.map(|_| "x")).collect::<StringArray>());
        columns[3] = Arc::new((0..50).map(|_| y).collect::<Float64Array>());
        columns[4] = Arc::new((0..50).map(|_| z).collect::<Float64Array>());
        columns[5] = Arc::new((0..50).map(|_| value).collect::<StringArray>());
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    for part in [constant(Some("x"), Some(1.0), None), constant(Some("hi"), Some(2.0), Some(1.0))] {
        for case in cases() {
            let mut known = case.profile(&batch, 0);
            known.merge(&case.profile(&part, 400)).unwrap();
            let n = case.whole(&batch).identity().n_keys();
            let options = |keys| RunOptions::default().with_keys(Some(keys)).with_profile(Some(&known));
            let some = match &case.2 {
                // No row of the part has the second target, whose trees then have no rows.
                Settings::Forest(params) if params.per_target => 0..n / 2,
                _ => 0..n,
            };
            let found = case.accumulate(&part, &options(some)).unwrap();
            let finite = |vector: &Vector| vector.values.iter().all(|value| value.is_finite());
            assert!(found.contributions().flat_map(|(_, vectors)| vectors).all(finite), "{:?}", case.2);
        }
    }
}

#[test]
fn what_does_not_belong_together_does_not_merge() {
    let batch = table(120);
    let cases = cases();
    let refusal = |a: &Accumulator, b: &Accumulator| a.clone().merge(b).unwrap_err().to_string();
    let one = cases[0].whole(&batch);
    let Settings::Forest(params) = &cases[0].2 else { unreachable!() };
    let other = |params: ForestParams| Case(cases[0].0, cases[0].1, Settings::Forest(params)).whole(&batch);
    let seeded = other(params.clone().with_seed(3).with_min_samples_leaf(5));
    let said = refusal(&one, &seeded);
    assert!(said.contains("min_samples_leaf: 2 in this accumulator, 5 in the other one; seed: 0"), "{said}");
    let said = refusal(&one, &cases[3].whole(&batch));
    assert!(said.ends_with(": the ranker: forest in this accumulator, relief in the other one"), "{said}");
    assert!(refusal(&one, &cases[0].whole(&table(119))).contains("the values of the data"));
    assert!(refusal(&one, &cases[2].whole(&batch)).contains("targets: 2 in"));

    let mut forged = Accumulator::new(one.identity().clone());
    for (key, contribution) in one.contributions() {
        let mut contribution = contribution.clone();
        if key == 3 {
            contribution[0].values[0] += 1e-9;
        }
        forged.insert(key, contribution).unwrap();
    }
    assert!(refusal(&one, &forged).contains("contribution 3 is in both"));
}

#[test]
fn a_score_without_contributions_is_an_error() {
    let batch = table(120);
    for (case, keys, missing) in [(1, 0..4, "no tree of the target 'z'"), (5, 0..4, "no contribution of myopic")] {
        let options = RunOptions::default().with_keys(Some(keys));
        let some = cases()[case].accumulate(&batch, &options).unwrap();
        assert!(some.ranking().unwrap_err().to_string().contains(missing));
    }
}

#[test]
fn damaged_accumulators_are_errors() {
    let whole = cases()[2].whole(&table(60));
    let bytes = whole.to_ipc().unwrap();
    let read = |bytes: Vec<u8>| read_accumulator(bytes, "run");
    assert!(read(Vec::new()).is_err() && read(b"no Arrow at all".to_vec()).is_err());
    for end in (0..bytes.len()).step_by(29) {
        if let Ok(shorter) = read(bytes[..end].to_vec()) {
            assert!(shorter.keys().count() < 10);
        }
    }
    for at in (0..bytes.len()).step_by(23) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        if let Ok(found) = read(damaged) {
            let _ = found.ranking();
            // What passes are bytes that mean nothing, such as padding; or the head, which identifies the run.
            if found.identity() == whole.identity() {
                let (one, other) = (found.ranking().unwrap(), whole.ranking().unwrap());
                assert_same(&one, &other);
            }
        }
    }
}

fn resumed(case: &Case, batch: &RecordBatch, path: &Path) -> (Result<Accumulator>, Vec<String>) {
    let monitor = Monitor::default();
    let options = RunOptions::default().with_threads(2).with_resume(Some(path));
    let accumulator = run::accumulate(&source(batch), &case.roles(), &case.2, &options, &monitor);
    (accumulator, monitor.take_notes())
}

/// What stays the same as long as a file is not replaced by another one; nothing where the system has no such number.
fn file_number(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap()));
    #[cfg(not(unix))]
    return None;
}

#[test]
fn a_run_resumes_from_wherever_its_file_ends() {
    let batch = table(150);
    for case in cases() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("run.ferrank");
        let (whole, notes) = resumed(&case, &batch, &path);
        let whole = whole.unwrap();
        assert_same(&whole.ranking().unwrap(), &case.whole(&batch).ranking().unwrap());
        assert!(notes.is_empty());
        let bytes = fs::read(&path).unwrap();
        assert_eq!(read_accumulator(bytes.clone(), "run").unwrap().to_ipc().unwrap(), whole.to_ipc().unwrap());
        let begin = Accumulator::new(whole.identity().clone()).to_ipc().unwrap().len() - END_MARKER;

        // Nothing is left to do; then cut off at any place, and damaged.
        let file = file_number(&path);
        assert!(resumed(&case, &batch, &path).1.is_empty());
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(file_number(&path), file, "a complete file is not written anew");
        for part in 0..6 {
            // Records are multiples of 8 bytes long, so this is within one.
            let end = begin + part * (bytes.len() - begin) / 6 / 8 * 8 + if part > 0 { 3 } else { 0 };
            let mut cut = bytes[..end].to_vec();
            if part % 2 == 1 {
                cut.extend([0; 40]);
            }
            fs::write(&path, &cut).unwrap();
            let (again, notes) = resumed(&case, &batch, &path);
            assert_eq!(again.unwrap().to_ipc().unwrap(), whole.to_ipc().unwrap());
            assert_eq!(notes.is_empty(), part == 0, "{notes:?}");
            assert_eq!(fs::read(&path).unwrap().len(), bytes.len());
        }
    }
}

#[test]
fn a_file_of_fewer_or_more_trees_is_gone_on_with() {
    let (batch, folder) = (table(150), tempdir().unwrap());
    let path = folder.path().join("run.ferrank");
    let case = |n_estimators, per_target| {
        let Case(targets, drop, Settings::Forest(params)) = cases().swap_remove(0) else { unreachable!() };
        Case(targets, drop, Settings::Forest(params.with_n_estimators(n_estimators).with_per_target(per_target)))
    };
    let bytes = || fs::read(&path).unwrap();
    let load = || read_accumulator(bytes(), "run").unwrap();
    resumed(&case(9, false), &batch, &path).0.unwrap();
    let all =
        |run: Accumulator| run.contributions().map(|(key, record)| (key, record.clone())).collect::<BTreeMap<_, _>>();
    let records = all(load());
    for torn in [false, true] {
        if torn {
            let cut = bytes();
            fs::write(&path, &cut[..cut.len() - 5]).unwrap();
        }
        let n = 20 + usize::from(torn);
        let (more, notes) = resumed(&case(n, false), &batch, &path);
        assert_eq!(
            (more.unwrap().to_ipc().unwrap(), notes.len()),
            (case(n, false).whole(&batch).to_ipc().unwrap(), usize::from(torn))
        );
        assert_eq!(load().to_ipc().unwrap(), case(n, false).whole(&batch).to_ipc().unwrap());
    }
    let kept = all(load());
    assert!(records.iter().all(|(key, record)| kept[key] == *record));

    // Fewer are a part of what is there, which stays.
    let before = bytes();
    let (fewer, notes) = resumed(&case(4, false), &batch, &path);
    assert_eq!((fewer.unwrap().to_ipc().unwrap(), notes.len()), (case(4, false).whole(&batch).to_ipc().unwrap(), 0));
    assert_eq!(bytes(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    // With an ensemble for each target, the numbers of trees mean other trees.
    fs::remove_file(&path).unwrap();
    resumed(&case(3, true), &batch, &path).0.unwrap();
    let said = resumed(&case(4, true), &batch, &path).0.unwrap_err().to_string();
    assert!(said.contains("n_estimators: 4 in this one, 3 in"), "{said}");
}

#[test]
fn files_of_other_runs_are_refused_and_left_alone() {
    let batch = table(80);
    let (folder, cases) = (tempdir().unwrap(), cases());
    let path = folder.path().join("run.ferrank");
    resumed(&cases[0], &batch, &path).0.unwrap();
    let bytes = fs::read(&path).unwrap();
    let refusal = |result: Result<Accumulator>| result.unwrap_err().to_string();
    let said = refusal(resumed(&cases[1], &batch, &path).0);
    assert!(said.contains("per_target: true in this one, false in") && said.contains("run.ferrank"), "{said}");
    assert!(refusal(resumed(&cases[0], &table(81), &path).0).contains("the values of the data"));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    for text in ["not ours", "\u{0}\u{0}\u{0}\u{0}"] {
        fs::write(&path, text).unwrap();
        let said = refusal(resumed(&cases[0], &batch, &path).0);
        assert!(said.contains("name another file for resume"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert!(refusal(resumed(&cases[0], &batch, &folder.path().join("no/such/folder")).0).contains("no/such"));

    fs::write(&path, "").unwrap();
    assert_eq!(resumed(&cases[0], &batch, &path).0.unwrap().keys().count(), 9);
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    assert!(refusal(resumed(&cases[0], &batch, &path).0).contains("another run is writing"));
}

#[test]
fn a_missing_target_without_leave_is_an_error_before_any_file_is_made() {
    let batch = table(80);
    let folder = tempdir().unwrap();
    let path = folder.path().join("run.ferrank");
    let case = Case(&["z"], &["class", "y"], Settings::Forest(ForestParams::default()));
    assert!(resumed(&case, &batch, &path).0.unwrap_err().to_string().contains("unlabelled"));
    assert!(!path.exists());
    let params = ForestParams::default().with_unlabelled(Unlabelled::Ignore).with_n_estimators(2);
    let case = Case(&["z"], &["class", "y"], Settings::Forest(params));
    assert_eq!(resumed(&case, &batch, &path).0.unwrap().ranking().unwrap().n_unlabelled, 20);
}
