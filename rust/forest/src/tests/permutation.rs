use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};
use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;
use rand::RngExt;

use super::{Coded, bag, batches, goes_left, label_sets, numbers, table, texts};
use crate::bag::Bag;
use crate::context::GrowContext;
use crate::grow::Grower;
use crate::oob::{OobContext, OobPlace, OobView, OutOfBagRows};
use crate::params::{Ensemble, ForestParams};
use crate::score::Score;
use crate::scores::{oob_needs, permutation};
use crate::tree_buffer::TreeBuffer;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::{Slot, TargetColumn};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::{Purpose, Stream, stream};

pub(super) const TREE: u64 = 5;

/// The nodes on the path of a row whose codes are given by feature, the leaf last.
pub(super) fn path(tree: &TreeBuffer, code: impl Fn(usize) -> Option<u16>) -> Vec<usize> {
    let (splits, children): (Vec<_>, _) = (tree.splits_of_nodes().collect(), tree.children());
    let (mut path, mut node) = (vec![0], 0);
    while let (Some(split), Some(children)) = (splits[node], children[node]) {
        node = children[usize::from(!goes_left(split, code(split.feature as usize)))] as usize;
        path.push(node);
    }
    path
}

/// A target, or a label of a hierarchy.
struct Part<'a> {
    /// Value or class in a row.
    value: Box<dyn Fn(usize) -> Option<f64> + 'a>,
    numeric: bool,
    /// Its part of a target.
    share: f64,
}

fn parts(target: &TargetColumn) -> Vec<Part<'_>> {
    match target {
        TargetColumn::Numeric(values) => {
            let value = |row: usize| Some(values[row]).filter(|value| !value.is_nan());
            vec![Part { value: Box::new(value), numeric: true, share: 1.0 }]
        }
        TargetColumn::Nominal { codes, .. } => {
            let value = |row: usize| Some(codes[row]).filter(|&code| code != MISSING_U16).map(f64::from);
            vec![Part { value: Box::new(value), numeric: false, share: 1.0 }]
        }
        TargetColumn::Labels(labels) => {
            let part = |(label, share): (u32, f64)| {
                let value = move |row: usize| labels.has(row, label).map(f64::from);
                Part { value: Box::new(value), numeric: false, share }
            };
            (0..).zip(labels.shares()).map(part).collect()
        }
    }
}

/// The mean of (value, weight) pairs, or the class of most weight.
fn prediction(numeric: bool, known: &[(f64, f64)]) -> Option<f64> {
    if numeric {
        let all: f64 = known.iter().map(|(_, weight)| weight).sum();
        return (all > 0.0).then(|| known.iter().map(|(y, weight)| weight * y).sum::<f64>() / all);
    }
    let mut classes = BTreeMap::new();
    known.iter().for_each(|(y, weight)| *classes.entry(*y as u16).or_insert(0.0) += weight);
    let most = classes.values().copied().fold(0.0, f64::max);
    classes.into_iter().find(|(_, weight)| *weight == most).map(|(class, _)| f64::from(class))
}

/// Mean over the targets of relative root squared errors and error rates, of labels by their shares, where the
/// out-of-bag row number i is predicted by leaf `leaves[i]`.
fn error(coded: &Coded, tree: &TreeBuffer, bag: &Bag, oob: &[u32], leaves: &[usize]) -> f64 {
    let weight = |row: usize| if coded.store.weights.is_empty() { 1.0 } else { coded.store.weights[row] };
    let (mut sum, mut n) = (0.0, 0.0);
    for Part { value, numeric, share } in coded.store.targets.iter().flat_map(parts) {
        let mut members: Vec<Vec<(f64, f64)>> = vec![Vec::new(); tree.nodes.len()];
        for (row, &count) in bag.rows.iter().map(|&row| row as usize).zip(&bag.counts) {
            if let Some(value) = value(row) {
                let example = (value, f64::from(count) * weight(row));
                path(tree, |feature| coded.code(feature, row)).into_iter().for_each(|node| members[node].push(example));
            }
        }
        // Parents come before their children.
        let mut of_leaf = vec![0.0; tree.nodes.len()];
        of_leaf[0] = prediction(numeric, &members[0]).unwrap_or(0.0);
        for (parent, children) in tree.children().into_iter().enumerate() {
            for child in children.into_iter().flatten().map(|child| child as usize) {
                of_leaf[child] = prediction(numeric, &members[child]).unwrap_or(of_leaf[parent]);
            }
        }
        let known = || {
            oob.iter()
                .zip(leaves)
                .filter_map(|(&row, &leaf)| Some((value(row as usize)?, weight(row as usize), of_leaf[leaf])))
        };
        let all: f64 = known().map(|(_, weight, _)| weight).sum();
        if numeric {
            let mean = known().map(|(y, weight, _)| weight * y).sum::<f64>() / all;
            let spread: f64 = known().map(|(y, weight, _)| weight * (y - mean).powi(2)).sum();
            if spread > 1e-9 {
                sum += (known().map(|(y, weight, p)| weight * (y - p).powi(2)).sum::<f64>() / spread).sqrt();
                n += 1.0;
            }
        } else if all > 0.0 {
            sum += share * known().filter(|(y, _, p)| y != p).map(|(_, weight, _)| weight).sum::<f64>() / all;
            n += share;
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// The numbers below `n`, every order being as likely.
fn in_random_order(n: usize, mut random: Stream) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|last| numbers.swap(last, random.random_range(0..=last as u32) as usize));
    numbers
}

/// For each of `n` rows the row whose value of `feature` it takes, as the rows of a ring do.
pub(super) fn in_a_ring(seed: u64) -> impl Fn(usize, usize) -> Vec<usize> {
    move |feature, n| {
        let random = |place| stream(seed, Purpose::Permutation, TREE, place);
        let positions = in_random_order(n, random(0));
        let turn = if n > 1 { random(1 + feature as u64).random_range(1..n as u32) as usize } else { 0 };
        let row_at = |position: usize| positions.iter().position(|&other| other == position).unwrap();
        positions.iter().map(|&position| row_at((position + turn) % n)).collect()
    }
}

/// Predicts all out-of-bag rows anew for each feature; `others` gives for it and the number of these rows the row whose
/// value each takes.
fn naive(coded: &Coded, tree: &TreeBuffer, bag: &Bag, others: impl Fn(usize, usize) -> Vec<usize>) -> Vec<f64> {
    let labelled = |row: &u32| coded.store.targets.iter().any(|target| target.is_known(*row as usize));
    let oob: Vec<u32> = (0..coded.store.rows as u32).filter(|row| !bag.rows.contains(row)).filter(labelled).collect();
    let leaves = |changed: Option<(usize, &[Option<u16>])>| -> Vec<usize> {
        let code = |i: usize, feature: usize| match changed {
            Some((other, codes)) if other == feature => codes[i],
            _ => coded.code(feature, oob[i] as usize),
        };
        (0..oob.len()).filter_map(|i| path(tree, |feature| code(i, feature)).pop()).collect()
    };
    let base = error(coded, tree, bag, &oob, &leaves(None));
    let importance = |feature: usize| {
        let others = others(feature, oob.len()).into_iter();
        let codes: Vec<Option<u16>> = others.map(|other| coded.code(feature, oob[other] as usize)).collect();
        let increase = error(coded, tree, bag, &oob, &leaves(Some((feature, &codes)))) - base;
        if base > 1e-12 { increase / base } else { increase }
    };
    (0..coded.store.slots.len()).map(importance).collect()
}

fn grown(coded: &Coded, bag: &Bag, seed: u64, supervision: f64) -> (TreeBuffer, Vec<(u32, f64)>) {
    let (tree, mut importances) = judged(coded, bag, seed, supervision, [TREE]);
    (tree, importances.remove(0))
}

/// A tree, and the importances that it gives under each of these numbers.
fn judged(
    coded: &Coded,
    bag: &Bag,
    seed: u64,
    supervision: f64,
    numbers: impl IntoIterator<Item = u64>,
) -> (TreeBuffer, Vec<Vec<(u32, f64)>>) {
    let importances = |view: &OobView<'_>| permutation::importances(view).unwrap();
    viewed(coded, bag, &params(seed), supervision, numbers, importances)
}

pub(super) fn params(seed: u64) -> ForestParams {
    ForestParams {
        ensemble: Ensemble::Bagging,
        min_samples_leaf: 1,
        seed,
        scores: vec![Score::Permutation],
        ..ForestParams::default()
    }
}

/// A tree, and what `each` makes of it under each of these numbers.
pub(super) fn viewed<T>(
    coded: &Coded,
    bag: &Bag,
    params: &ForestParams,
    supervision: f64,
    numbers: impl IntoIterator<Item = u64>,
    each: impl Fn(&OobView<'_>) -> T,
) -> (TreeBuffer, Vec<T>) {
    let (space, monitor) = (coded.space_of(None, supervision), Monitor::default());
    let context = GrowContext { store: &coded.store, space: &space, params, monitor: &monitor };
    let tree = Grower::new(context, Arch::new()).grow(bag, TREE).unwrap().clone();
    let subset: Vec<usize> = (0..coded.store.targets.len()).collect();
    let oob = OobContext::new(context, oob_needs(params).unwrap(), &subset, OobPlace::Memory);
    let rows = OutOfBagRows::outside(context.bags(), TREE, bag);
    let found = |number| {
        let mut complete = oob.tree();
        complete.add_tree(None, &tree, &oob.targets);
        complete.finish(context.store);
        each(&oob.view(number, &complete, &rows, None))
    };
    let found = numbers.into_iter().map(found).collect();
    (tree, found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn permutation_scores_are_those_of_predicting_anew(
        batch in (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(10..60, gaps, weighted)),
        counts in vec(0..3u32, 60),
        max_bins in prop_oneof![Just(4usize), Just(255)],
        seed in any::<u64>(),
        semi_supervised in any::<bool>(),
    ) {
        // Rows without a target help to grow the tree and have no error.
        let (targets, supervision) = if semi_supervised { (&["t", "class"][..], 0.5) } else { (&["y", "t", "class"][..], 1.0) };
        let coded = Coded::read(&batch, targets, None, max_bins, semi_supervised);
        let bag = bag(&counts[..coded.store.rows]);
        prop_assume!(!bag.rows.is_empty() && bag.rows.len() < coded.store.rows);
        let (tree, found) = grown(&coded, &bag, seed, supervision);
        let naive = naive(&coded, &tree, &bag, in_a_ring(seed));
        let mut dense = vec![0.0; naive.len()];
        found.iter().for_each(|&(feature, value)| dense[feature as usize] = value);
        for (found, naive) in dense.iter().zip(&naive) {
            prop_assert!((found - naive).abs() < 1e-9, "{dense:?} {naive:?}");
        }
    }
}

#[test]
fn codes_of_one_byte_and_of_two_are_permuted_alike() {
    let number = |row: u32, factor: u32, modulus: u32| f64::from(row * factor % modulus);
    let gaps = |factor: u32, modulus: u32, gap: u32| -> ArrayRef {
        let value = |row: u32| (!row.is_multiple_of(gap)).then(|| number(row, factor, modulus));
        Arc::new((0..600).map(value).collect::<Float64Array>())
    };
    // Missing values go along with low ones of `narrow` and with high ones of `wide`.
    let y = (0..600).map(|row| {
        let low = if row % 5 > 0 { number(row, 7, 20) } else { 0.0 };
        let high = if row % 7 > 0 { number(row, 269, 599) } else { 600.0 };
        5.0 * low + high / 3.0 + number(row, row, 31)
    });
    let batch = table(vec![("narrow", gaps(7, 20, 5)), ("wide", gaps(269, 599, 7)), ("y", numbers(y))]);
    let coded = Coded::new(&batch, &["y"], None, 65_535);
    assert!(matches!(coded.store.slots[..], [Slot::Narrow(_), Slot::Wide(_)]));
    let bag = bag(&(0..600).map(|row| row * row / 3 % 3).collect::<Vec<_>>());
    let (tree, found) = grown(&coded, &bag, 1, 1.0);
    let naive = naive(&coded, &tree, &bag, in_a_ring(1));
    assert!((0..2).all(|feature| tree.splits.iter().any(|split| split.feature == feature && split.missing_left)));
    assert_eq!(found.len(), 2);
    for (feature, importance) in found {
        assert!((importance - naive[feature as usize]).abs() < 1e-9, "{importance} {naive:?}");
    }
}

#[test]
fn labels_of_a_hierarchy_count_with_their_weight() {
    for (seed, n_labels, missing) in [(0, 2, false), (1, 12, false), (2, 12, true)] {
        let row = || (0..60).map(f64::from);
        let batch = table(vec![
            ("x", numbers(row().map(|x| x % 12.0))),
            ("z", numbers(row().map(|x| x * 7.0 % 11.0))),
            ("y", numbers(row())),
        ]);
        let mut coded = Coded::new(&batch, &["y"], None, 255);
        coded.store.targets = vec![label_sets(60, n_labels, missing)].into();
        let counts: Vec<u32> = (0..60).map(|row| row * row / 3 % 3).collect();
        let (tree, found) = grown(&coded, &bag(&counts), seed, 1.0);
        let naive = naive(&coded, &tree, &bag(&counts), in_a_ring(seed));
        assert!(found.iter().any(|(_, importance)| *importance != 0.0), "{found:?} {naive:?}");
        for (feature, importance) in found {
            assert!((importance - naive[feature as usize]).abs() < 1e-9, "{importance} {naive:?}");
        }
    }
}

#[test]
fn without_errors_the_increase_itself_counts() {
    let rows = || (0..40).map(|row| f64::from(row % 4));
    let batch =
        table(vec![("x", numbers(rows())), ("z", numbers(rows().map(|_| 1.0))), ("y", numbers(rows().map(|x| x * x)))]);
    let coded = Coded::new(&batch, &["y"], None, 255);
    let counts: Vec<u32> = (0..40).map(|row| u32::from(row < 20)).collect();
    let (tree, found) = grown(&coded, &bag(&counts), 1, 1.0);
    let naive = naive(&coded, &tree, &bag(&counts), in_a_ring(1));
    assert_eq!(found.len(), 1);
    // Twenty rows in random order: far from all predicted well.
    assert!(found[0].1 > 0.3 && (found[0].1 - naive[0]).abs() < 1e-12, "{found:?} {naive:?}");
}

#[test]
fn members_of_leaves_ascend() {
    // Their sums would be other numbers out of memory. Weighted means of equal values differ by rounding, so tests look
    // as if they gained something.
    let rows = || 0..80u32;
    let feature = |factor: u32| numbers(rows().map(|row| f64::from(row * factor % 83)));
    let y = numbers(rows().map(|row| f64::from(row % 4)));
    let weights = numbers(rows().map(|row| f64::from(1 + row * row % 3)));
    let batch = table(vec![("x", feature(37)), ("z", feature(59)), ("y", y), ("w", weights)]);
    let coded = Coded::new(&batch, &["y"], None, 255);
    for seed in 0..20 {
        let counts: Vec<u32> = rows().map(|row| 1 + row * (row + seed) / 3 % 3).collect();
        let (tree, _) = grown(&coded, &bag(&counts), u64::from(seed), 1.0);
        assert!(tree.leaf_members().all(|members| members.is_sorted()));
    }
}

/// Mean, variance, and correlation with the next feature, of the importances in each draw.
fn moments(draws: &[Vec<f64>]) -> Vec<[f64; 3]> {
    let (n, n_features) = (draws.len() as f64, draws[0].len());
    let means: Vec<f64> = (0..n_features).map(|f| draws.iter().map(|draw| draw[f]).sum::<f64>() / n).collect();
    let covariance = |f: usize, g: usize| {
        draws.iter().map(|draw| (draw[f] - means[f]) * (draw[g] - means[g])).sum::<f64>() / (n - 1.0)
    };
    let of = |f: usize| {
        let g = (f + 1) % n_features;
        [means[f], covariance(f, f), covariance(f, g) / (covariance(f, f) * covariance(g, g)).sqrt()]
    };
    (0..n_features).map(of).collect()
}

#[test]
fn a_ring_is_as_good_as_uniform_permutations() {
    // Consecutive rows are similar; `x` determines most of the class, `z` and `u` some of it.
    let rows = || 0..160u32;
    let parts = |row: u32| [row / 16, row * 7 % 11, row * row % 13];
    let class = rows().map(|row| ["a", "b", "c"][(parts(row).iter().sum::<u32>() / 8 % 3) as usize]);
    let feature = |part: usize| numbers(rows().map(|row| f64::from(parts(row)[part])));
    let batch = table(vec![("x", feature(0)), ("z", feature(1)), ("u", feature(2)), ("class", texts(class))]);
    let coded = Coded::new(&batch, &["class"], None, 255);
    let bag = bag(&rows().map(|row| row % 2).collect::<Vec<_>>());
    let n_rows = 80.0;
    let n_draws = 1000;
    let (tree, found) = judged(&coded, &bag, 0, 1.0, 0..n_draws);
    let found: Vec<Vec<f64>> =
        found.into_iter().map(|draw| draw.into_iter().map(|(_, importance)| importance).collect()).collect();
    let uniform = |draw: u64| {
        let others = |feature: usize, n: usize| in_random_order(n, stream(1, Purpose::Sample, draw, feature as u64));
        naive(&coded, &tree, &bag, others)
    };
    let uniform: Vec<Vec<f64>> = (0..n_draws).map(uniform).collect();
    for ([mean, variance, correlation], [wanted, spread, _]) in moments(&found).into_iter().zip(moments(&uniform)) {
        let error = ((variance + spread) / n_draws as f64).sqrt();
        // A uniform permutation leaves one row in n as it is.
        assert!((mean * (n_rows - 1.0) / n_rows - wanted).abs() < 4.0 * error, "{mean} {wanted} +- {error}");
        let error = (4.0 / n_draws as f64).sqrt();
        assert!((variance / spread).ln().abs() < 4.0 * error, "{variance} {spread}");
        assert!(correlation.abs() < 4.0 / (n_draws as f64).sqrt(), "{correlation}");
    }
}

#[test]
fn nothing_out_of_bag_says_nothing() {
    let batch = table(vec![("x", numbers([1.0, 2.0, 3.0, 4.0])), ("y", numbers([1.0, 0.0, 5.0, 2.0]))]);
    let coded = Coded::new(&batch, &["y"], None, 255);
    let (tree, found) = grown(&coded, &bag(&[1, 1, 1, 1]), 0, 1.0);
    assert!(tree.nodes.len() > 1 && found.is_empty());
}

#[test]
fn equal_targets_out_of_bag_say_nothing() {
    let rows = || (0..23).map(f64::from);
    let y = rows().map(|row| if row < 20.0 { row } else { 0.1 });
    // The weighted mean of equal values may be another.
    let weights = numbers(rows().map(|row| 0.1 + row % 3.0 / 7.0));
    let batch = table(vec![("x", numbers(rows().map(|row| row * 7.0 % 23.0))), ("y", numbers(y)), ("w", weights)]);
    let coded = Coded::new(&batch, &["y"], None, 255);
    let counts: Vec<u32> = (0..23).map(|row| u32::from(row < 20)).collect();
    let (tree, found) = grown(&coded, &bag(&counts), 0, 1.0);
    assert!(tree.nodes.len() > 1);
    assert_eq!(found, [(0, 0.0)]);
}
