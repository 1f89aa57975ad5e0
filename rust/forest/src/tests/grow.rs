use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;
use rand::{Rng, RngExt};

use super::scores::add_splits;
use super::{Coded, bag, batches, goes_left, numbers, table, total};
use crate::bag::Bag;
use crate::context::GrowContext;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::grow::Grower;
use crate::oob::{Node, PackedTree};
use crate::params::{Ensemble, ForestParams, MaxFeatures, Missing};
use crate::router::Router;
use crate::score::Score;
use crate::scores::{SplitScores, score_size};
use crate::space::Space;
use crate::split::tests::arches;
use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer};
use crate::view::View;
use ferrank_data::profile::Scale;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::{Purpose, stream};

fn grown(coded: &Coded, space: &Space, bag: &Bag, params: &ForestParams) -> TreeBuffer {
    grown_on(Arch::new(), coded, space, bag, params)
}

fn grown_on(arch: Arch, coded: &Coded, space: &Space, bag: &Bag, params: &ForestParams) -> TreeBuffer {
    let monitor = Monitor::default();
    let context = GrowContext { store: &coded.store, space, params, monitor: &monitor };
    Grower::new(context, arch).grow(bag, 0).unwrap().clone()
}

/// The sums of some rows of the bag, given by position.
fn sums(criterion: &Criterion, space: &Space, bag: &Bag, positions: impl Iterator<Item = usize>) -> Vec<f64> {
    let (rows, counts): (Vec<u32>, Vec<u32>) = positions.map(|i| (bag.rows[i], bag.counts[i])).unzip();
    total(criterion, &space.block, &rows, &counts)
}

/// Sends the bag down the tree and checks every node on the way; positions of the bag's rows by node.
fn check(coded: &Coded, space: &Space, bag: &Bag, tree: &TreeBuffer, params: &ForestParams) -> Vec<Vec<usize>> {
    let criterion = Criterion::new(space);
    let mut members = vec![Vec::new(); tree.nodes.len()];
    members[0] = (0..bag.rows.len()).collect();
    let mut waiting = vec![(0, 0)];
    let (splits, children): (Vec<_>, _) = (tree.splits_of_nodes().collect(), tree.children());
    let mut preorder = 0;
    while let Some((node, depth)) = waiting.pop() {
        assert_eq!(node, preorder);
        preorder += 1;
        let grown = &tree.nodes[node];
        let all = sums(&criterion, space, bag, members[node].iter().copied());
        assert_eq!((grown.depth, grown.examples, grown.weight), (depth, all[EXAMPLES], all[WEIGHT]));
        assert!(node == 0 || grown.examples >= params.min_samples_leaf as f64);
        let Some(split) = splits[node] else { continue };
        assert!(params.max_depth.is_none_or(|most| (depth as usize) < most));
        let code = |i: usize| coded.code(split.feature as usize, bag.rows[i] as usize);
        let is_informative = params.missing == Missing::Informative;
        // Missing values that are no information are left out.
        let known = || members[node].iter().copied().filter(|&i| is_informative || code(i).is_some());
        let total = sums(&criterion, space, bag, known());
        let left = sums(&criterion, space, bag, known().filter(|&i| goes_left(split, code(i))));
        if !is_informative || members[node].iter().all(|&i| code(i).is_some()) {
            assert_eq!(split.missing_left, left[WEIGHT] >= total[WEIGHT] - left[WEIGHT]);
        }
        let gain = total[WEIGHT] / all[WEIGHT] * criterion.gain(&left, &total);
        assert!((split.gain - gain).abs() <= 1e-13, "{} {gain}", split.gain);
        let [left, right] = children[node].unwrap().map(|child| child as usize);
        (members[left], members[right]) = members[node].iter().partition(|&&i| goes_left(split, code(i)));
        waiting.extend([(right, depth + 1), (left, depth + 1)]);
    }
    assert_eq!(preorder, tree.nodes.len());
    members
}

/// The greatest gain of any cut of a numeric feature in a node, with the missing values on either side.
fn best_sided_gain(coded: &Coded, space: &Space, bag: &Bag, members: &[usize], min_leaf: f64) -> f64 {
    let criterion = Criterion::new(space);
    let total = sums(&criterion, space, bag, members.iter().copied());
    let mut best: f64 = 0.0;
    for (feature, coding) in coded.store.codings.iter().enumerate() {
        let Scale::Numeric(_) = coding.scale else { continue };
        let code = |i: usize| coded.code(feature, bag.rows[i] as usize);
        for (cut, missing_left) in (0..coding.n_codes() as u16).flat_map(|cut| [(cut, false), (cut, true)]) {
            let goes_left = |&i: &usize| code(i).map_or(missing_left, |code| code <= cut);
            let left = sums(&criterion, space, bag, members.iter().copied().filter(goes_left));
            let sides = [left[EXAMPLES], total[EXAMPLES] - left[EXAMPLES]];
            if sides.iter().all(|&side| side >= min_leaf) {
                best = best.max(criterion.gain(&left, &total));
            }
        }
    }
    best
}

/// The greatest gain of any cut of a numeric feature in a node, without the missing values.
fn best_gain(coded: &Coded, space: &Space, bag: &Bag, members: &[usize], min_leaf: f64) -> f64 {
    let criterion = Criterion::new(space);
    let all = sums(&criterion, space, bag, members.iter().copied());
    let mut best: f64 = 0.0;
    for (feature, coding) in coded.store.codings.iter().enumerate() {
        let Scale::Numeric(_) = coding.scale else { continue };
        let code = |i: usize| coded.code(feature, bag.rows[i] as usize);
        let total = sums(&criterion, space, bag, members.iter().copied().filter(|&i| code(i).is_some()));
        let missing = all[EXAMPLES] - total[EXAMPLES];
        for cut in 0..coding.n_codes() as u16 {
            let left =
                sums(&criterion, space, bag, members.iter().copied().filter(|&i| code(i).is_some_and(|c| c <= cut)));
            let right = total[WEIGHT] - left[WEIGHT];
            let mut examples = [left[EXAMPLES], total[EXAMPLES] - left[EXAMPLES]];
            if examples.contains(&0.0) {
                continue;
            }
            examples[usize::from(right > left[WEIGHT])] += missing;
            if examples.iter().all(|&side| side >= min_leaf) {
                best = best.max(total[WEIGHT] / all[WEIGHT] * criterion.gain(&left, &total));
            }
        }
    }
    best
}

fn tables() -> impl Strategy<Value = (Coded, Bag)> {
    let targets = prop_oneof![Just(vec!["y"]), Just(vec!["class"]), Just(vec!["y", "class", "t"])];
    let batch = (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(10..120, gaps, weighted));
    let bins = prop_oneof![Just(8usize), Just(255)];
    (batch, targets, bins, vec(0..4u32, 120)).prop_filter_map("an empty bag", |(batch, targets, bins, counts)| {
        let keep: Vec<usize> = (0..batch.num_columns())
            .filter(|&c| {
                let name = batch.schema().field(c).name().clone();
                targets.contains(&name.as_str()) || !["y", "class", "t"].contains(&name.as_str())
            })
            .collect();
        let coded = Coded::new(&batch.project(&keep).unwrap(), &targets, None, bins);
        let bag = bag(&counts[..coded.store.rows]);
        (!bag.rows.is_empty()).then_some((coded, bag))
    })
}

/// What the columns of a row of [`plain_tables`] are made of.
type Row = (i32, i32, i32, i32, u32, [u8; 3]);

/// Numeric features with codes of both types, some missing, and one target, a number or up to 40 classes, or two
/// numbers; with row weights in some tables.
fn plain_tables() -> impl Strategy<Value = (Coded, Bag)> {
    let row = (0..1000i32, 0..300i32, 0..3i32, -40..40i32, 0..4u32, any::<[u8; 3]>());
    let rows = (vec(row, 2..600), prop_oneof![Just(0u8), Just(2), Just(30), Just(200)]);
    let n_classes = prop_oneof![Just(None), (2..12i32).prop_map(Some), (12..41i32).prop_map(Some)];
    let target = (n_classes, prop_oneof![Just(1u32), Just(20)], any::<bool>());
    let weights: fn(&Row) -> f64 = |row| f64::from(1 + row.2);
    let fractions: fn(&Row) -> f64 = |row| if row.2 == 0 { 1e-300 } else { f64::from(row.3 + 50) / 7.0 };
    let weights = prop_oneof![3 => Just(None), 1 => Just(Some(weights)), 1 => Just(Some(fractions))];
    (rows, prop_oneof![Just(8usize), Just(255), Just(65_535)], target, weights).prop_filter_map(
        "an empty bag",
        |((rows, gone), bins, (n_classes, times, is_two), weights)| {
            let column = |of: fn(&Row) -> i32, number: usize| {
                let known = |row: &Row| (number == 3 || row.5[number] >= gone).then(|| f64::from(of(row)));
                Arc::new(rows.iter().map(known).collect::<Float64Array>()) as ArrayRef
            };
            let number = |row: &Row| row.3 + row.0 / 50 * row.2 + 20 * i32::from(row.5[0] < 30);
            let class = |n: i32| {
                let width = if n < 12 { 9 } else { 3 };
                StringArray::from_iter_values(rows.iter().map(|row| (number(row) / width).rem_euclid(n).to_string()))
            };
            let target = n_classes.map_or(column(number, 3), |n| Arc::new(class(n)) as ArrayRef);
            let mut columns = vec![
                ("most", column(|row| row.0, 0)),
                ("many", column(|row| row.1, 1)),
                ("few", column(|row| row.2, 2)),
                ("y", target),
            ];
            columns.extend(
                weights.map(|of| ("w", Arc::new(Float64Array::from_iter_values(rows.iter().map(of))) as ArrayRef)),
            );
            let is_two = is_two && n_classes.is_none();
            columns.extend(is_two.then(|| ("t", column(|row| row.3 * (row.1 - 150), 3))));
            let targets: &[&str] = if is_two { &["y", "t"] } else { &["y"] };
            let coded = Coded::new(&table(columns), targets, None, bins);
            // Rows drawn often make nodes that are too large for pairs of classes. Other sums are exact for as many draws as rows.
            let times = if n_classes.is_some_and(|n| n > 2) && weights.is_none() { times } else { 1 };
            let bag = bag(&rows.iter().map(|row| times * row.4).collect::<Vec<u32>>());
            (!bag.rows.is_empty()).then_some((coded, bag))
        },
    )
}

fn settings() -> impl Strategy<Value = ForestParams> {
    let ensemble = prop_oneof![Just(Ensemble::RandomForest), Just(Ensemble::ExtraTrees), Just(Ensemble::Bagging)];
    let min_samples_leaf = prop_oneof![Just(1u64), Just(2), 3..20u64];
    let max_depth = prop_oneof![Just(None), (1..5usize).prop_map(Some)];
    let settings = (ensemble, min_samples_leaf, max_depth, missing(), any::<u64>());
    settings.prop_map(|(ensemble, min_samples_leaf, max_depth, missing, seed)| ForestParams {
        ensemble,
        min_samples_leaf,
        max_depth,
        missing,
        seed,
        ..ForestParams::default()
    })
}

pub(crate) fn missing() -> impl Strategy<Value = Missing> {
    prop_oneof![Just(Missing::Informative), Just(Missing::Ignore)]
}

impl std::fmt::Debug for Coded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.problem, self.store)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn nodes_part_the_bag_alike_on_every_machine(
        (coded, bag) in tables(),
        params in settings(),
    ) {
        let space = coded.space(None);
        let tree = grown(&coded, &space, &bag, &params);
        check(&coded, &space, &bag, &tree, &params);
        for arch in arches() {
            prop_assert_eq!(format!("{tree:?}"), format!("{:?}", grown_on(arch, &coded, &space, &bag, &params)));
        }
    }

    #[test]
    fn plain_data_grows_the_tree_of_the_longer_way(
        (coded, bag) in plain_tables(),
        params in settings(),
        score in prop_oneof![Just(Score::Genie3), Just(Score::MdiOob)],
    ) {
        let space = coded.space(None);
        let params = ForestParams { scores: vec![score], ..params };
        let tree = grown(&coded, &space, &bag, &params);
        check(&coded, &space, &bag, &tree, &params);
        let longer = grown(&coded, &space, &bag, &ForestParams { by_target: true, ..params.clone() });
        let parts = |tree: &TreeBuffer| format!("{:?}", (&tree.nodes, &tree.splits, &tree.contrasts));
        prop_assert_eq!(parts(&tree), parts(&longer));

        let monitor = Monitor::default();
        let context = GrowContext { store: &coded.store, space: &space, params: &params, monitor: &monitor };
        let mut afterwards = SplitScores::new(context.params, score_size(context));
        add_splits(&mut afterwards, &tree, &[]);
        let afterwards = afterwards.harvest();
        for keeps_nodes in [false, true] {
            let scores = SplitScores::new(context.params, score_size(context));
            let mut grower = Grower::new(context, Arch::new());
            let (meanwhile, grown) = grower.score(&bag, 0, scores, keeps_nodes).unwrap();
            prop_assert_eq!(grown.nodes.len(), if keeps_nodes { tree.nodes.len() } else { 0 });
            prop_assert_eq!(meanwhile.harvest(), afterwards.clone());
        }
    }

    #[test]
    fn a_packed_tree_routes_the_bag_to_the_nodes_that_it_was_grown_on((coded, bag) in tables(), params in settings()) {
        let space = coded.space(None);
        let tree = grown(&coded, &space, &bag, &params);
        let mut packed = PackedTree::default();
        packed.add_tree(None, &tree);
        packed.finish(&coded.store);
        let mut router = Router::default();
        router.items.take(&bag, None);
        let view = View::from_store(&coded.store, &space.block);
        let mut nodes = tree.nodes.iter();
        packed.apply(view, &mut router, |node, reached| {
            // Each node holds some examples, so nodes are visited in preorder without gaps.
            let grown = nodes.next().unwrap();
            let examples: u32 = reached.range.clone().map(|position| reached.items.count(position)).sum();
            assert_eq!(f64::from(examples), grown.examples);
            assert_eq!(matches!(node, Node::Split(..)), grown.is_split);
            Ok(())
        }).unwrap();
        prop_assert!(nodes.next().is_none());
    }

    #[test]
    fn no_cut_is_better_than_the_one_taken(
        (coded, bag) in tables(),
        min_samples_leaf in 1..6u64,
        missing in missing(),
    ) {
        let params = ForestParams { ensemble: Ensemble::Bagging, min_samples_leaf, missing, ..ForestParams::default() };
        let space = coded.space(None);
        let tree = grown(&coded, &space, &bag, &params);
        let members = check(&coded, &space, &bag, &tree, &params);
        for (split, members) in tree.splits_of_nodes().zip(&members) {
            let best = match missing {
                Missing::Informative => best_sided_gain(&coded, &space, &bag, members, min_samples_leaf as f64),
                Missing::Ignore => best_gain(&coded, &space, &bag, members, min_samples_leaf as f64),
            };
            match split {
                Some(split) => {
                    prop_assert!(split.gain >= best - 1e-12, "{} {best}", split.gain);
                    if let (CodeTest::Cut(_), Scale::Numeric(_)) =
                        (&split.test, &coded.store.codings[split.feature as usize].scale)
                    {
                        prop_assert!(split.gain <= best + 1e-12);
                    }
                }
                // Grown until no test lowers the impurity.
                None => prop_assert!(best < 1e-12, "{best} in a leaf"),
            }
        }
    }
}

#[test]
fn codes_copied_together_at_each_size_grow_the_tree_of_the_store() {
    // More bytes of codes than the outer cache.
    const ROWS: usize = 70_000;
    let mut random = stream(0, Purpose::Node, 0, 0);
    let mut columns: Vec<(String, _)> = (0..61)
        .map(|i| {
            (format!("x{i}"), numbers((0..ROWS).map(|_| f64::from(random.next_u32() % 200)).collect::<Vec<f64>>()))
        })
        .collect();
    let wide: Vec<f64> = (0..ROWS).map(|_| random.random()).collect();
    columns.push(("y".into(), numbers(wide)));
    let batch = table(columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect());
    let coded = Coded::new(&batch, &["y"], None, 255);
    let max_features = Some(MaxFeatures::Count(2));
    let params = ForestParams { max_features, min_samples_leaf: 20, ..ForestParams::default() };
    let space = coded.space(None);
    let mut bag = Bag::default();
    bag.take_bootstrap(1, 0, ROWS, ROWS as u64);
    let tree = grown(&coded, &space, &bag, &params);
    check(&coded, &space, &bag, &tree, &params);
    assert!(tree.nodes.len() > 1_000);
    let in_chunks = coded.in_chunks();
    assert_eq!((coded.store.chunks.len(), in_chunks.store.chunks.len()), (1, 2));
    let other = grown(&in_chunks, &in_chunks.space(None), &bag, &params);
    let splits = |tree: &TreeBuffer| {
        let of = |split: &BufferedSplit| (split.feature, split.test.clone(), split.missing_left, split.gain.to_bits());
        tree.splits.iter().map(of).collect::<Vec<_>>()
    };
    assert!(splits(&other) == splits(&tree));
}

#[test]
fn leaves_may_have_to_be_of_any_size() {
    let params = ForestParams::default().with_min_samples_leaf(u64::MAX);
    assert!(!params.may_split(1e9, 0));
}
