//! Profiles of parts, merged in any grouping, against that of the whole.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{ColumnProfile, Place, Profile, Scale, count, profile};
use crate::hierarchy::Edge;
use crate::intake::Unlabelled;
use crate::intake::View;
use crate::schema::{Roles, Targets};
use crate::source::TableSource;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::mix;

fn table(rows: &[(Option<f64>, Option<u8>, Option<f64>)]) -> RecordBatch {
    let x: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>());
    let word: ArrayRef = Arc::new(rows.iter().map(|row| row.1.map(|n| format!("w{n}"))).collect::<StringArray>());
    let y: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>());
    RecordBatch::try_from_iter_with_nullable([("x", x, true), ("word", word, true), ("y", y, true)]).unwrap()
}

fn roles() -> Roles {
    Roles::new(Targets::Named(vec!["y".into()]))
}

fn source(batch: &RecordBatch) -> TableSource {
    TableSource::new("table", batch.schema(), vec![batch.clone()]).unwrap()
}

fn of(batch: &RecordBatch, max_bins: usize, first_row: u64) -> Profile {
    profile(
        View::new(&source(batch), &roles(), Unlabelled::Ignore),
        max_bins,
        Place { first_row, of_rows: None },
        1,
        &Monitor::default(),
    )
    .unwrap()
}

/// Profiles of the parts of `batch` that begin at `borders`.
fn parts(batch: &RecordBatch, borders: &[usize], max_bins: usize) -> Vec<Profile> {
    let mut first = 0;
    let part = |pair: &[usize]| {
        let part = batch.slice(pair[0], pair[1] - pair[0]);
        let profile = of(&part, max_bins, first);
        let (source, roles) = (source(&part), roles());
        first += count(View::new(&source, &roles, Unlabelled::Ignore), &Monitor::default()).unwrap().kept;
        profile
    };
    borders.windows(2).map(part).collect()
}

fn merged(mut one: Profile, other: &Profile) -> Profile {
    one.merge(other).unwrap();
    one
}

fn row() -> impl Strategy<Value = (Option<f64>, Option<u8>, Option<f64>)> {
    let x = prop_oneof![4 => (-20..20i32).prop_map(f64::from), 1 => Just(-0.0), 1 => -1e3..1e3f64];
    (prop::option::weighted(0.9, x), prop::option::weighted(0.9, 0..5u8), prop::option::weighted(0.8, -1.0..1.0f64))
}

#[test]
fn many_rows_in_one_batch_have_the_profile_of_small_batches() {
    let row = |number: u64| {
        let hash = mix([number]);
        ((hash % 5 > 0).then_some((hash >> 40) as f64), Some((hash % 3) as u8), Some((hash % 11) as f64))
    };
    let batch = table(&(0..20_005).map(row).collect::<Vec<_>>());
    let pieces = (0..batch.num_rows()).step_by(1_000);
    let pieces = pieces.map(|first| batch.slice(first, 1_000.min(batch.num_rows() - first))).collect();
    let small = TableSource::new("table", batch.schema(), pieces).unwrap();
    let (roles, place) = (roles(), Place { first_row: 0, of_rows: None });
    let expected = profile(View::new(&small, &roles, Unlabelled::Ignore), 255, place, 1, &Monitor::default()).unwrap();
    assert_eq!(of(&batch, 255, 0).to_ipc().unwrap(), expected.to_ipc().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn parts_in_any_grouping_make_the_whole(
        rows in vec(row(), 1..120),
        cuts in vec(any::<Index>(), 2..5),
        max_bins in prop_oneof![Just(0), Just(2), 3..40usize],
    ) {
        let batch = table(&rows);
        let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(rows.len() + 1)).collect();
        borders.extend([0, rows.len()]);
        borders.sort_unstable();
        let whole = of(&batch, max_bins, 0);
        let bytes = whole.to_ipc().unwrap();
        prop_assert_eq!(&Profile::from_ipc(bytes.clone()).unwrap().to_ipc().unwrap(), &bytes);

        let parts = parts(&batch, &borders, max_bins);
        let left = parts[1..].iter().fold(parts[0].clone(), merged);
        let right = parts[..parts.len() - 1].iter().rev().fold(parts[parts.len() - 1].clone(), merged);
        for merged in [left, right] {
            prop_assert_eq!(merged.digest(), whole.digest());
            prop_assert_eq!(&merged.to_ipc().unwrap(), &bytes);
        }
    }
}

#[test]
fn samples_larger_than_their_size_merge() {
    let rows: Vec<_> = (0..3_000).map(|i| (Some(f64::from(i * 7 % 3_001)), None, Some(f64::from(i)))).collect();
    let batch = table(&rows);
    let mut whole = of(&batch, 200, 0);
    whole.sample.size = 300;
    let mut parts = parts(&batch, &[0, 100, 101, 1_500, 3_000], 200);
    for profile in parts.iter_mut().chain([&mut whole]) {
        profile.sample.size = 300;
        profile.prune(0);
    }
    let (first, rest) = parts.split_first().unwrap();
    let merged = rest.iter().rev().fold(first.clone(), merged);
    assert_eq!(merged.sample.hashes.len(), 300);
    assert_eq!(merged.digest(), whole.digest());
}

#[test]
fn values_of_few_rows_are_found_beyond_the_sample() {
    // Twenty values, each in one of the rows that the sample takes last.
    let mut rows: Vec<u64> = (0..3_000).collect();
    rows.sort_unstable_by_key(|&row| std::cmp::Reverse(mix([row])));
    let mut values = vec![0.0; 3_000];
    (1..).zip(&rows[..20]).for_each(|(value, &row)| values[row as usize] = f64::from(value));
    let rows: Vec<_> = values.iter().map(|&value| (Some(value), None, Some(0.0))).collect();
    let batch = table(&rows);
    let parts = parts(&batch, &[0, 700, 2_000, 3_000], 10).into_iter().map(|mut part| {
        part.sample.size = 300;
        part.prune(0);
        part
    });
    let profile = parts.reduce(|one, other| merged(one, &other)).unwrap();
    let ColumnProfile::Numeric(x) = &profile.features[0] else { panic!("x is a number") };
    assert!(x.sample.all().iter().all(|&value| value == 0.0));
    let Scale::Numeric(cuts) = &profile.codings()[0].scale else { panic!("x is a number") };
    assert_eq!((cuts.values.len(), cuts.values[0], cuts.values[9]), (10, 0.0, 20.0));
}

#[test]
fn profiles_of_other_columns_or_settings_do_not_merge() {
    let batch = table(&[(Some(1.0), None, Some(2.0))]);
    let renamed = RecordBatch::try_from_iter_with_nullable([
        ("z", batch["x"].clone(), true),
        ("word", batch["word"].clone(), true),
        ("y", batch["y"].clone(), true),
    ])
    .unwrap();
    let numbers = RecordBatch::try_from_iter_with_nullable([
        ("x", batch["x"].clone(), true),
        ("word", batch["x"].clone(), true),
        ("y", batch["y"].clone(), true),
    ])
    .unwrap();
    let refusal = |other: Profile| of(&batch, 10, 0).merge(&other).unwrap_err().to_string();
    assert!(refusal(of(&renamed, 10, 0)).contains("'x' where the data have 'z'"));
    assert!(refusal(of(&numbers, 10, 0)).contains("column 'word': numeric in one part"));
    assert!(refusal(of(&batch, 11, 0)).contains("max_bins"));
}

#[test]
fn damaged_bytes_are_an_error() {
    let bytes = of(&table(&[(Some(1.0), Some(3), Some(2.0)), (None, None, Some(1.0))]), 10, 0).to_ipc().unwrap();
    for end in (0..bytes.len()).step_by(5) {
        let _ = Profile::from_ipc(bytes[..end].to_vec());
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        let _ = Profile::from_ipc(damaged);
    }
    assert!(Profile::from_ipc(Vec::new()).is_err());
    assert!(Profile::from_ipc(b"ARROW1, but not quite".to_vec()).is_err());
}

#[test]
fn profiles_of_label_sets_travel_and_merge() {
    let sets = |rows: &[Option<&str>]| {
        let mut lists = ListBuilder::new(StringBuilder::new());
        rows.iter().for_each(|row| lists.append_option(row.map(|label| [Some(label)])));
        let x = Float64Array::from(vec![1.0; rows.len()]);
        RecordBatch::try_from_iter([("x", Arc::new(x) as ArrayRef), ("y", Arc::new(lists.finish()) as ArrayRef)])
            .unwrap()
    };
    let of = |batch: &RecordBatch, hierarchy: Option<Vec<Edge>>, hierarchy_decay: f64| {
        let roles = roles().with_hierarchy(hierarchy).with_hierarchy_decay(hierarchy_decay);
        let source = source(batch);
        let view = View::new(&source, &roles, Unlabelled::Use);
        let profile = profile(view, 10, Place::default(), 1, &Monitor::default()).unwrap();
        let bytes = profile.to_ipc().unwrap();
        let read = Profile::from_ipc(bytes.clone()).unwrap();
        assert_eq!((read.to_ipc().unwrap(), read.digest()), (bytes, profile.digest()));
        read
    };
    let (one, two) = (sets(&[Some("a/b"), None]), sets(&[Some("c"), Some("a/d")]));
    let merged = merged(of(&one, None, 0.5), &of(&two, None, 0.5));
    let ColumnProfile::Labels(labels) = &merged.targets[0] else { panic!() };
    assert_eq!((labels.missing, labels.hierarchy().unwrap().names().len()), (1, 4));
    assert_eq!((merged.counts.unlabelled, merged.counts.kept), (1, 4));
    // Of a, a/b, a/d and c half bring one more along, and three of four rows have one.
    assert_eq!(labels.mean_closed(4).unwrap(), 0.75 * 1.5);
    let edges = || ["c", "a/b", "a/d"].map(|label| (None, label.to_string())).to_vec();
    let refusal = of(&one, Some(edges()), 0.5).merge(&of(&two, None, 0.5)).unwrap_err().to_string();
    assert!(refusal.contains("column 'y': its hierarchy differs"), "{refusal}");
    assert_ne!(of(&one, Some(edges()), 0.5).digest(), of(&one, Some(edges()), 0.75).digest());
    assert_ne!(of(&one, Some(edges()), 0.5).digest(), of(&one, None, 0.5).digest());
}

#[test]
fn cut_points_stand_for_the_samples() {
    // The greatest and least values, and those of z, are rarer than the rows sampled.
    let value = |i: u64| (mix([i]) % 100_003) as f64 - 50_000.0;
    let rows = (0..3_000).map(|i| ((i % 9 > 0).then(|| value(i)), Some((i % 5) as u8), Some((i % 7) as f64)));
    let batch = table(&rows.collect::<Vec<_>>());
    for (max_bins, size) in [(0, 300), (20, 300), (20, 4_000), (5_000, 4_000)] {
        let mut whole = of(&batch, max_bins, 0);
        whole.sample.size = size;
        whole.prune(0);
        let derived = whole.clone().derive_cuts();
        let bytes = derived.to_ipc().unwrap();
        let read = Profile::from_ipc(bytes.clone()).unwrap();
        assert_eq!(read.to_ipc().unwrap(), bytes);
        let entropies = |profile: &Profile| profile.features.iter().map(|x| x.entropy(3_000)).collect::<Vec<_>>();
        let codings = |profile: &Profile| format!("{:?} {:?}", profile.codings(), profile.target_codings());
        for other in [&derived, &read, &read.clone().derive_cuts()] {
            assert_eq!((other.digest(), entropies(other)), (whole.digest(), entropies(&whole)));
            if max_bins > 0 {
                assert_eq!(codings(other), codings(&whole), "{max_bins} bins, {size} rows");
            }
        }
        assert!(bytes.len() < 6_000 + 20 * max_bins.min(3_000), "{} bytes for {max_bins} bins", bytes.len());
        for refused in [read.clone().merge(&whole), whole.merge(&read)] {
            assert!(refused.unwrap_err().to_string().contains("without samples"));
        }
    }
}
