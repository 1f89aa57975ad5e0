//! Trees grown in passes are those grown in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arrow_buffer::Buffer;
use proptest::prelude::*;

use super::*;
use crate::exchange::Exchange;
use crate::params::{Ensemble, ForestParams, MaxFeatures, MaxSamples};
use crate::score::Score;
use crate::shadows::random;
use crate::tests::grow::missing;
use crate::tests::measured::{LABELS, labelled};
use crate::tests::{Coded, batches, label_sets, numbers, sparse_batch, table, with_groups};
use crate::tree_worker::TreeWorker;
use ferrank_data::store::{Chunk, CodeStore, Keep};
use ferrank_measures::Measure;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::{Purpose, stream};

/// Trees 0 … 4 grown in memory, and in external memory with a plan for these rows of a bucket and bytes of sums.
fn both(coded: &Coded, supervision: f64, params: &ForestParams, memory: (usize, usize)) -> [Vec<Contribution>; 2] {
    [in_memory(coded, supervision, params), outside(coded, supervision, params, memory)]
}

fn in_memory(coded: &Coded, supervision: f64, params: &ForestParams) -> Vec<Contribution> {
    let (monitor, space) = (Monitor::default(), coded.space_of(None, supervision));
    let context = GrowContext { store: &coded.store, space: &space, params, monitor: &monitor };
    let subset: Vec<usize> = (0..coded.store.targets.len()).collect();
    let oob = oob_needs(params).map(|needs| OobContext::new(context, needs, &subset, OobPlace::Memory));
    let sample = RowSample::new(context, &subset, false);
    let tree = |tree| TreeWorker::new(context, sample.as_ref()).contribution(oob.as_ref(), tree).unwrap();
    (0..5).map(tree).collect()
}

fn outside(
    coded: &Coded,
    supervision: f64,
    params: &ForestParams,
    (bucket_rows, sums): (usize, usize),
) -> Vec<Contribution> {
    let (monitor, space) = (Monitor::default(), coded.bare_space(None, supervision));
    let context = GrowContext { store: &coded.store, space: &space, params, monitor: &monitor };
    let subset: Vec<usize> = (0..coded.store.targets.len()).collect();
    let plan = plan((bucket_rows, sums), context);
    let found = Mutex::new(BTreeMap::new());
    let sample = RowSample::new(context, &subset, false);
    grow_in(
        context,
        &plan,
        Place::Store(&Scratch::new(None)),
        (&subset, sample.as_ref()),
        &[0, 1, 2, 3, 4],
        &|tree, result| {
            found.lock().unwrap().insert(tree, result);
            Ok(())
        },
    )
    .unwrap();
    found.into_inner().unwrap().into_values().collect()
}

/// A plan with these rows of a bucket and bytes of sums. Half of the plans hold out-of-bag rows in memory.
fn plan((bucket_rows, sums): (usize, usize), context: GrowContext<'_>) -> MemoryPlan {
    let mut plan = MemoryPlan::with_sizes(bucket_rows, sums, context);
    plan.holds_oob = bucket_rows % 2 == 0;
    plan
}

fn params() -> impl Strategy<Value = ForestParams> {
    let ensemble = prop_oneof![Just(Ensemble::RandomForest), Just(Ensemble::Bagging), Just(Ensemble::ExtraTrees)];
    let draws = (any::<u64>(), prop::option::of(0.2..1.0f64));
    (ensemble, 1..4u64, prop::option::of(0..6usize), 1..4usize, missing(), draws).prop_map(
        |(ensemble, min_samples_leaf, max_depth, features, missing, (seed, share))| ForestParams {
            ensemble,
            min_samples_leaf,
            max_depth,
            missing,
            max_features: Some(MaxFeatures::Count(features)),
            max_samples: match (ensemble, share) {
                (Ensemble::ExtraTrees, _) | (_, None) => MaxSamples::All,
                (_, Some(share)) => MaxSamples::Share(share),
            },
            scores: match ensemble {
                Ensemble::ExtraTrees => vec![Score::Genie3, Score::Symbolic, Score::Coverage],
                _ => vec![Score::Symbolic, Score::Permutation, Score::MdiOob, Score::Genie3],
            },
            by_target: true,
            seed,
            ..ForestParams::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn passes_grow_the_same_trees(
        batch in (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(20..120, gaps, weighted)),
        params in params(),
        which in 0..4usize,
        max_bins in prop_oneof![Just(255), Just(1000), Just(7)],
        supervision in prop_oneof![Just(1.0), Just(0.5), Just(0.0)],
        memory in (1..60usize, prop_oneof![Just(0), Just(1 << 20)]),
        n_groups in prop::option::of(2..50usize),
    ) {
        let batch = n_groups.map_or(batch.clone(), |n_groups| with_groups(&batch, n_groups));
        let targets: &[&str] = [&["y"][..], &["class"], &["y", "t", "class"], &["t"]][which];
        prop_assume!(batch.column_by_name(targets[0]).unwrap().null_count() < batch.num_rows());
        let [expected, found] = {
            let coded = Coded::read(&batch, targets, None, max_bins, supervision < 1.0);
            both(&coded, supervision, &params, memory)
        };
        prop_assert_eq!(expected, found);
    }

    #[test]
    fn passes_grow_the_same_trees_for_label_sets(
        batch in batches(60..61, false, false),
        params in params(),
        (n_labels, missing, measured) in (prop_oneof![Just(3), Just(20)], any::<bool>(), any::<bool>()),
        memory in (1..60usize, prop_oneof![Just(0), Just(1 << 20)]),
    ) {
        let measures = if measured { Measure::ALL.to_vec() } else { Vec::new() };
        let params = params.with_permutation_measures(measures);
        let mut coded = Coded::new(&batch, &["y"], None, 255);
        coded.store.targets = vec![label_sets(60, n_labels, missing)].into();
        let [expected, found] = both(&coded, 1.0, &params, memory);
        prop_assert_eq!(expected, found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn trees_on_entries_of_sparse_features_are_those_on_all_codes(
        (n_rows, seed) in (40..150usize, any::<u64>()),
        (params, features) in (params(), prop_oneof![1..60usize, Just(2_000)]),
        which in 0..3usize,
        memory in (1..60usize, prop_oneof![Just(0), Just(1 << 20)]),
    ) {
        let targets: &[&str] = [&["y"][..], &["class"], &["y", "t"]][which];
        let others: Vec<&str> = ["y", "t", "class"].into_iter().filter(|name| !targets.contains(name)).collect();
        let batch = sparse_batch(n_rows, 1_300, seed);
        let keep = |column: &usize| !others.contains(&batch.schema().field(*column).name().as_str());
        let batch = batch.project(&(0..batch.num_columns()).filter(keep).collect::<Vec<_>>()).unwrap();
        let params = ForestParams { max_features: Some(MaxFeatures::Count(features)), ..params };
        let coded = Coded::new(&batch, targets, None, 255);
        let compressed = coded.compressed();
        prop_assert!(coded.store.is_sparse && coded.store.sparse.is_none() && compressed.store.sparse.is_some());
        let [in_bands, outside] = both(&coded, 1.0, &params, memory);
        prop_assert_eq!(&in_bands, &in_memory(&compressed, 1.0, &params));
        prop_assert_eq!(in_bands, outside);
    }
}

#[test]
fn rows_of_many_windows_are_permuted_as_in_memory() {
    let number = |factor: u32, modulus: u32| numbers((0..4000).map(move |row: u32| f64::from(row * factor % modulus)));
    let columns = vec![("a", number(7, 97)), ("b", number(269, 3001)), ("c", number(11, 5)), ("y", number(31, 211))];
    // With more bins than a byte has codes, columns of both kinds are read from the file.
    for max_bins in [255, 1000] {
        let coded = Coded::new(&table(columns.clone()), &["y"], None, max_bins);
        let scores = vec![Score::Permutation, Score::MdiOob];
        let params = ForestParams { scores, seed: 5, min_samples_leaf: 3, ..ForestParams::default() };
        for bucket_rows in [100, 1000] {
            let [expected, found] = both(&coded, 1.0, &params, (bucket_rows, 0));
            assert_eq!(expected, found);
        }
        let found = over_parts(&coded, coded.cut(3), &params, (300, 0));
        assert_eq!(in_memory(&coded, 1.0, &params), found);
    }
}

/// Parts of a store, in this process.
struct Cut<'a> {
    stores: Vec<(usize, CodeStore)>,
    context: GrowContext<'a>,
}

impl Cut<'_> {
    fn each<T>(&self, each: impl Fn(part::Part<'_>) -> Result<T>) -> Result<Vec<T>> {
        let part = |(first, store): &(usize, CodeStore)| {
            let context = GrowContext { store, ..self.context };
            each(part::Part { context, bags: self.context.bags(), first: *first })
        };
        self.stores.iter().map(part).collect()
    }
}

impl Parts for Cut<'_> {
    fn sums(&self, request: &[u8]) -> Result<Vec<f64>> {
        // The last part first: sums are exact.
        let mut found = self.each(|part| part.sums(request))?.into_iter().rev();
        let mut total = found.next().unwrap_or_default();
        found.for_each(|sums| total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum));
        Ok(total)
    }

    fn collect(&self, request: &[u8], each: &mut dyn FnMut(&[&[u8]]) -> Result<()>) -> Result<()> {
        let found = self.each(|part| part.collect(request))?;
        found.iter().try_for_each(|pieces| each(&pieces.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>()))
    }

    fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        assert!(!matches!(parts::read(request)?, parts::RowsRequest::Codes(_)), "these are few rows");
        self.each(|part| part.rows(request))?.iter().try_for_each(|bytes| each(bytes))
    }

    fn few_rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let parts::RowsRequest::Codes(rows) = parts::read(request)? else { panic!("{request:?}") };
        assert!(rows.is_sorted() && rows.len() <= 2000, "{} rows", rows.len());
        each(&self.each(|part| part.rows(request))?.concat())
    }
}

#[test]
fn damaged_requests_are_refused() {
    let batch = table(vec![("a", numbers((0..20).map(f64::from))), ("y", numbers((0..20).map(f64::from)))]);
    let (coded, params, monitor) = (Coded::new(&batch, &["y"], None, 255), ForestParams::default(), Monitor::default());
    let space = coded.bare_space(None, 1.0);
    let context = GrowContext { store: &coded.store, space: &space, params: &params, monitor: &monitor };
    let part = part::Part { context, bags: context.bags(), first: 0 };
    let split = |feature: u32, children: [u32; 2]| {
        format!(
            r#"[[0, [{{"Split": {{"feature": {feature}, "test": {{"Cut": 3}}, "missing_left": false, "children": {children:?}}}}},
                {{"Open": [0]}}, "Other"]]]"#
        )
    };
    assert!(part.sums(split(0, [1, 2]).as_bytes()).is_ok());
    let damaged =
        [split(1, [1, 2]), split(0, [0, 2]), split(0, [1, 3]), r#"[[0, [{"Open": [1]}]]]"#.into(), "[[0, []]]".into()];
    for request in damaged {
        let error = part.sums(request.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{request}: {error}");
    }
}

/// Parts with the shadows of their rows.
fn with_shadows(stores: Vec<(usize, CodeStore)>, sources: &[u32]) -> Vec<(usize, CodeStore)> {
    let firsts: Vec<usize> = stores.iter().map(|(first, _)| *first).collect();
    let exchange = Exchange { firsts: &firsts, sources };
    let numbered = || stores.iter().enumerate().map(|(number, (_, store))| (number, store));
    let spread: Vec<Vec<Vec<u8>>> = numbered().map(|(from, store)| exchange.spread(store, from)).collect();
    let doubled = numbered().map(|(to, store)| {
        let pieces: Vec<Buffer> = spread.iter().map(|pieces| Buffer::from(pieces[to].clone())).collect();
        store.with_shadow_codes(&exchange.gather(store, to, &pieces).unwrap()).unwrap()
    });
    firsts.iter().copied().zip(doubled).collect()
}

/// The store with the codes of a single row.
fn without_codes(store: &CodeStore) -> CodeStore {
    let mut chunk = Chunk { rows: 1, ..Chunk::default() };
    chunk.narrow.resize(store.chunks[0].narrow.len(), 1);
    chunk.wide.resize(store.chunks[0].wide.len(), 1);
    CodeStore {
        rows: store.rows,
        chunks: vec![chunk],
        firsts: vec![0],
        codings: store.codings.clone(),
        slots: store.slots.clone(),
        sparse: None,
        is_sparse: store.is_sparse,
        targets: store.targets.clone(),
        values: store.values.clone(),
        weights: store.weights.clone(),
        groups: store.groups.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn trees_over_parts_are_those_over_the_whole(
        batch in (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(20..120, gaps, weighted)),
        params in params(),
        which in 0..4usize,
        n_parts in 1..5usize,
        memory in (1..60usize, prop_oneof![Just(0), Just(1 << 20)]),
        n_groups in prop::option::of(2..50usize),
        shadows in any::<bool>(),
    ) {
        let batch = n_groups.map_or(batch.clone(), |n_groups| with_groups(&batch, n_groups));
        let targets: &[&str] = [&["y"][..], &["class"], &["y", "t", "class"], &["t"]][which];
        prop_assume!(batch.column_by_name(targets[0]).unwrap().null_count() < batch.num_rows());
        let params = ForestParams { shadows, ..params };
        let mut coded = Coded::new(&batch, targets, None, 255);
        let mut stores = coded.cut(n_parts);
        if shadows {
            let sources = coded.store.draw_shadows(&mut random(0, &params));
            stores = with_shadows(stores, &sources);
            coded.store = coded.store.with_shadows(&sources, Keep::Memory, coded.store.rows).unwrap();
        }
        let [expected, _] = both(&coded, 1.0, &params, memory);
        prop_assert_eq!(expected, over_parts(&coded, stores, &params, memory));
    }

    #[test]
    fn measures_of_labels_are_the_same_wherever_trees_grow(
        (seed, n_rows) in (any::<u64>(), 20..120usize),
        (gaps, weighted) in (any::<bool>(), any::<bool>()),
        params in params(),
        n_parts in 1..5usize,
        memory in (1..60usize, prop_oneof![Just(0), Just(1 << 20)]),
    ) {
        let params = ForestParams {
            ensemble: Ensemble::RandomForest,
            scores: vec![Score::Permutation, Score::Symbolic],
            permutation_measures: Measure::ALL.to_vec(),
            ..params
        };
        let coded = labelled(n_rows, &LABELS, gaps, weighted, &mut stream(seed, Purpose::Sample, 0, 0));
        let [expected, outside] = both(&coded, 1.0, &params, memory);
        prop_assert_eq!(&expected, &outside);
        prop_assert_eq!(expected, over_parts(&coded, coded.cut(n_parts), &params, memory));
    }
}

/// Trees 0 … 4 grown over parts, where the grower does not see the codes.
fn over_parts(
    coded: &Coded,
    stores: Vec<(usize, CodeStore)>,
    params: &ForestParams,
    memory: (usize, usize),
) -> Vec<Contribution> {
    let (monitor, space, scratch) = (Monitor::default(), coded.bare_space(None, 1.0), Scratch::new(None));
    let context = GrowContext { store: &coded.store, space: &space, params, monitor: &monitor };
    let parts = Cut { stores, context };
    let subset: Vec<usize> = (0..coded.store.targets.len()).collect();
    let sample =
        RowSample::read(context, &subset, false, |rows| parts::codes_of(&coded.store, rows, &parts).map(Some)).unwrap();
    let bare = without_codes(&coded.store);
    let context = GrowContext { store: &bare, ..context };
    let plan = plan(memory, context);
    let found = Mutex::new(BTreeMap::new());
    let place = Place::Parts(&parts, &scratch);
    grow_in(context, &plan, place, (&subset, sample.as_ref()), &[0, 1, 2, 3, 4], &|tree, result| {
        found.lock().unwrap().insert(tree, result);
        Ok(())
    })
    .unwrap();
    found.into_inner().unwrap().into_values().collect()
}
