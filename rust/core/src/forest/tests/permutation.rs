use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;
use rand::RngExt;

use super::{Coded, bag, batches, goes_left, numbers, table};
use crate::forest::bag::Bag;
use crate::forest::grow::{Ground, Grower};
use crate::forest::grown::Grown;
use crate::forest::params::{Ensemble, ForestParams, Score};
use crate::forest::permutation::of_tree;
use crate::monitor::Monitor;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, stream};
use crate::store::TargetColumn;

const TREE: u64 = 5;

/// The leaf of a row whose codes are given by feature.
fn leaf(tree: &Grown, code: impl Fn(usize) -> Option<u16>) -> usize {
    let mut node = 0;
    while let Some(split) = &tree.nodes[node].split {
        node = split.children[usize::from(!goes_left(split, code(split.feature as usize)))] as usize;
    }
    node
}

/// A target's value or class in a row.
fn value(target: &TargetColumn, row: usize) -> Option<f64> {
    match target {
        TargetColumn::Numeric(values) => Some(values[row]).filter(|value| !value.is_nan()),
        TargetColumn::Nominal { codes, .. } => Some(codes[row]).filter(|&code| code != MISSING_U16).map(f64::from),
    }
}

/// The mean of (value, weight) pairs, or the class of most weight.
fn prediction(target: &TargetColumn, known: &[(f64, f64)]) -> Option<f64> {
    if let TargetColumn::Numeric(_) = target {
        let all: f64 = known.iter().map(|(_, weight)| weight).sum();
        return (all > 0.0).then(|| known.iter().map(|(y, weight)| weight * y).sum::<f64>() / all);
    }
    let mut classes = BTreeMap::new();
    known.iter().for_each(|(y, weight)| *classes.entry(*y as u16).or_insert(0.0) += weight);
    let most = classes.values().copied().fold(0.0, f64::max);
    classes.into_iter().find(|(_, weight)| *weight == most).map(|(class, _)| f64::from(class))
}

/// Mean over the targets of relative root squared errors and error rates, where the out-of-bag row
/// number i is predicted by leaf `leaves[i]`.
fn error(coded: &Coded, tree: &Grown, bag: &Bag, oob: &[u32], leaves: &[usize]) -> f64 {
    let weight = |row: usize| if coded.store.weights.is_empty() { 1.0 } else { coded.store.weights[row] };
    let (mut sum, mut n) = (0.0, 0.0);
    for target in &coded.store.targets {
        let members = |node: Option<usize>| -> Vec<(f64, f64)> {
            let in_bag = bag.rows.iter().zip(&bag.counts).map(|(&row, &count)| (row as usize, f64::from(count)));
            let here = in_bag.filter(|(row, _)| node.is_none_or(|node| leaf(tree, |f| coded.code(f, *row)) == node));
            here.filter_map(|(row, count)| Some((value(target, row)?, count * weight(row)))).collect()
        };
        let whole = prediction(target, &members(None)).unwrap_or(0.0);
        let of_leaf: Vec<f64> =
            (0..tree.nodes.len()).map(|node| prediction(target, &members(Some(node))).unwrap_or(whole)).collect();
        let known = || {
            oob.iter()
                .zip(leaves)
                .filter_map(|(&row, &leaf)| Some((value(target, row as usize)?, weight(row as usize), of_leaf[leaf])))
        };
        let all: f64 = known().map(|(_, weight, _)| weight).sum();
        if let TargetColumn::Numeric(_) = target {
            let mean = known().map(|(y, weight, _)| weight * y).sum::<f64>() / all;
            let spread: f64 = known().map(|(y, weight, _)| weight * (y - mean).powi(2)).sum();
            if spread > 1e-9 {
                sum += (known().map(|(y, weight, p)| weight * (y - p).powi(2)).sum::<f64>() / spread).sqrt();
                n += 1.0;
            }
        } else if all > 0.0 {
            sum += known().filter(|(y, _, p)| y != p).map(|(_, weight, _)| weight).sum::<f64>() / all;
            n += 1.0;
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Predicts all out-of-bag rows anew for each feature.
fn naive(coded: &Coded, tree: &Grown, bag: &Bag, seed: u64) -> Vec<f64> {
    let oob: Vec<u32> = (0..coded.store.rows as u32).filter(|row| !bag.rows.contains(row)).collect();
    let leaves = |changed: Option<(usize, &[Option<u16>])>| -> Vec<usize> {
        let code = |i: usize, feature: usize| match changed {
            Some((other, codes)) if other == feature => codes[i],
            _ => coded.code(feature, oob[i] as usize),
        };
        (0..oob.len()).map(|i| leaf(tree, |feature| code(i, feature))).collect()
    };
    let base = error(coded, tree, bag, &oob, &leaves(None));
    let importance = |feature: usize| {
        let mut codes: Vec<Option<u16>> = oob.iter().map(|&row| coded.code(feature, row as usize)).collect();
        let mut random = stream(seed, Purpose::Permutation, TREE, feature as u64);
        (1..codes.len()).rev().for_each(|last| codes.swap(last, random.random_range(0..=last as u32) as usize));
        let increase = error(coded, tree, bag, &oob, &leaves(Some((feature, &codes)))) - base;
        if base > 1e-12 { increase / base } else { increase }
    };
    (0..coded.store.slots.len()).map(importance).collect()
}

fn grown(coded: &Coded, bag: &Bag, seed: u64) -> (Grown, Vec<(u32, f64)>) {
    let params = ForestParams {
        ensemble: Ensemble::Bagging,
        min_samples_leaf: 1,
        seed,
        scores: vec![Score::Permutation],
        ..ForestParams::default()
    };
    let (space, monitor) = (coded.space(None), Monitor::default());
    let ground = Ground { store: &coded.store, space: &space, params: &params, monitor: &monitor };
    let tree = Grower::new(ground, Arch::new()).grow(bag, TREE).unwrap().clone();
    let subset: Vec<usize> = (0..coded.store.targets.len()).collect();
    let importances = of_tree(ground, &subset, &tree, bag, TREE).unwrap();
    (tree, importances)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn permutation_scores_are_those_of_predicting_anew(
        batch in (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(10..60, gaps, weighted)),
        counts in vec(0..3u32, 60),
        max_bins in prop_oneof![Just(4usize), Just(255)],
        seed in any::<u64>(),
    ) {
        let coded = Coded::new(&batch, &["y", "t", "class"], None, max_bins);
        let bag = bag(&counts[..coded.store.rows]);
        prop_assume!(!bag.rows.is_empty() && bag.rows.len() < coded.store.rows);
        let (tree, found) = grown(&coded, &bag, seed);
        let naive = naive(&coded, &tree, &bag, seed);
        let mut dense = vec![0.0; naive.len()];
        found.iter().for_each(|&(feature, value)| dense[feature as usize] = value);
        for (found, naive) in dense.iter().zip(&naive) {
            prop_assert!((found - naive).abs() < 1e-9, "{dense:?} {naive:?}");
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
    let (tree, found) = grown(&coded, &bag(&counts), 1);
    let naive = naive(&coded, &tree, &bag(&counts), 1);
    assert_eq!(found.len(), 1);
    // Twenty rows in random order: far from all predicted well.
    assert!(found[0].1 > 0.3 && (found[0].1 - naive[0]).abs() < 1e-12, "{found:?} {naive:?}");
}

#[test]
fn nothing_out_of_bag_says_nothing() {
    let batch = table(vec![("x", numbers([1.0, 2.0, 3.0, 4.0])), ("y", numbers([1.0, 0.0, 5.0, 2.0]))]);
    let coded = Coded::new(&batch, &["y"], None, 255);
    let (tree, found) = grown(&coded, &bag(&[1, 1, 1, 1]), 0);
    assert!(tree.nodes.len() > 1 && found.is_empty());
}
