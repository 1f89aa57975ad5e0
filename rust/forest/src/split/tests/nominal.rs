use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;

use super::scan::{examples, kinds};
use super::{Examples, arches, constraint, single};
use crate::criterion::{TIE, ties};
use crate::pairs::{Pair, PairLayout};
use crate::split::SplitConstraint;
use crate::split::batch::Batch;
use crate::split::examples;
use crate::split::nominal::{PresentCategories, Subset, in_order, noise};
use crate::split::single::{Bins, Categories, Node, best_subset};

const ANY: SplitConstraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };

fn open(examples: &Examples, n_codes: usize) -> PresentCategories {
    let (criterion, block) = (examples.criterion(), examples.block());
    let rows: Vec<u32> = (0..examples.codes.len() as u32).collect();
    let in_node = examples::Examples { block: &block, rows: &rows, counts: &examples.counts, pairs: &[] };
    let mut present = PresentCategories::default();
    present.open(&criterion, in_node, &examples.codes, n_codes);
    present
}

/// The subset of the categories `codes`, or of all others if those weigh less.
fn lighter(examples: &Examples, gain: f64, codes: &[u16]) -> Subset {
    let others: Vec<u16> = examples.present().into_iter().filter(|code| !codes.contains(code)).collect();
    let side = |codes: &[u16]| {
        let own = || (0..examples.codes.len()).filter(|&i| codes.contains(&examples.codes[i]));
        let weight = own().map(|i| i64::from(examples.counts[i]) * examples.weights[i]).sum::<i64>();
        [weight as f64, own().map(|i| f64::from(examples.counts[i])).sum()]
    };
    Subset::new(gain, [side(codes), side(&others)], codes, &others)
}

/// Gain and codes of the subset that grows category by category while the gain rises.
fn greedy(examples: &Examples, constraint: SplitConstraint) -> Option<Subset> {
    let mut rest = examples.present();
    let (mut taken, mut reached, mut best) = (Vec::new(), 0.0, None);
    while rest.len() > 1 {
        let gain = |&code: &u16| examples.gain(|other| other == code || taken.contains(&other));
        let gains: Vec<f64> = rest.iter().map(gain).collect();
        let most = gains.iter().copied().fold(0.0, f64::max);
        if most * TIE <= reached {
            break;
        }
        taken.push(rest.remove(gains.iter().position(|&gain| ties(gain, most)).unwrap()));
        reached = most;
        if examples.fits(constraint, |code| taken.contains(&code)) {
            best = Some(lighter(examples, most, &taken));
        }
    }
    best
}

/// The first best prefix of the categories in the order of their means.
fn best_prefix(examples: &Examples, constraint: SplitConstraint) -> Option<Subset> {
    let mean = |&code: &u16| {
        let of_code = || (0..examples.codes.len()).filter(|&i| examples.codes[i] == code);
        let known = || of_code().filter_map(|i| Some((i, examples.dense[i][0]? as f64)));
        let weight = |i: usize| (i64::from(examples.counts[i]) * examples.weights[i]) as f64;
        let all: f64 = known().map(|(i, _)| weight(i)).sum();
        if all > 0.0 { known().map(|(i, y)| weight(i) * y).sum::<f64>() / all } else { 0.0 }
    };
    let mut order = examples.present();
    order.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    let prefixes: Vec<Subset> = (1..order.len())
        .map(|n| order[..n].to_vec())
        .filter(|codes| examples.fits(constraint, |code| codes.contains(&code)))
        .map(|codes| lighter(examples, examples.gain(|code| codes.contains(&code)), &codes))
        .collect();
    let most = prefixes.iter().map(|subset| subset.gain).fold(0.0, f64::max);
    prefixes.into_iter().find(|subset| ties(subset.gain, most))
}

fn check(examples: &Examples, found: Option<Subset>, naive: Option<Subset>) -> Result<(), TestCaseError> {
    let impurity = examples.impurity();
    let gain = |subset: &Option<Subset>| subset.as_ref().map_or(0.0, |subset| subset.gain);
    prop_assert!((gain(&found) - gain(&naive)).abs() <= 1e-13 * impurity, "{found:?} {naive:?} {impurity}");
    if gain(&naive) > 1e-3 * impurity {
        prop_assert_eq!(found.map(|found| found.codes), naive.map(|naive| naive.codes));
    }
    Ok(())
}

/// The gain and the codes of the subset that a batch finds, by the ranks that it gives to the categories.
fn subset_of_ranks(
    arch: Arch,
    examples: &Examples,
    pairs: &[Pair],
    node: Node,
    constraint: SplitConstraint,
) -> Option<(f64, Vec<u16>)> {
    let (mut batch, codes) = (Batch::default(), &examples.codes);
    batch.start(codes.len(), 2);
    // The first row is numeric, and stays so.
    for is_nominal in [false, true] {
        batch.add(u32::from(is_nominal), |keys| {
            keys.iter_mut().zip(codes).for_each(|(key, &code)| *key = f64::from(code));
            true
        });
        if is_nominal {
            batch.set_nominal();
        }
    }
    batch.judge(arch, pairs, node, constraint);
    batch.choose(0);
    assert!(batch.keys(0).unwrap().iter().zip(codes).all(|(&key, &code)| key == f64::from(code)));
    let (candidate, _, gain) = batch.judged().nth(1).filter(|&(.., gain)| gain >= 0.0)?;
    batch.choose(candidate);
    let (ranks, highest) = (batch.keys(1).unwrap(), batch.cut(candidate).key);
    let goes_left = |&(_, &rank): &(&u16, &f64)| rank <= highest;
    let left: BTreeSet<u16> = codes.iter().zip(ranks).filter(goes_left).map(|(&code, _)| code).collect();
    Some((gain, lighter(examples, gain, &Vec::from_iter(left)).codes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn subsets_are_the_naive_ones(
        (examples, constraint) in (kinds(), 1..=9u16, 1..=60usize)
            .prop_flat_map(|(kinds, n_codes, n)| (examples(kinds, n_codes, n), constraint(n / 2))),
    ) {
        let criterion = examples.criterion();
        let found = open(&examples, 12).best(&criterion, constraint);
        let naive = if criterion.is_ordered() { best_prefix(&examples, constraint) } else { greedy(&examples, constraint) };
        check(&examples, found, naive)?;
    }

    #[test]
    fn with_one_component_no_subset_is_better(
        (examples, n_codes) in (kinds(), 2..=7u16, 2..=40usize)
            .prop_flat_map(|(kinds, n_codes, n)| (examples(kinds.only_one(), n_codes, n), Just(n_codes))),
    ) {
        let criterion = examples.criterion();
        let found = open(&examples, n_codes.into()).best(&criterion, ANY);
        let subsets = 1..(1u16 << n_codes) - 1;
        let most = subsets.map(|subset| examples.gain(|code| subset >> code & 1 == 1)).fold(0.0, f64::max);
        let gain = found.map_or(0.0, |found| found.gain);
        prop_assert!((gain - most).abs() <= 1e-13 * examples.impurity(), "{gain} {most}");
    }

    #[test]
    fn subsets_from_pairs_are_the_same(
        (n_codes, (examples, constraint)) in prop_oneof![2..=12u16, Just(255u16), Just(5_000u16)]
            .prop_flat_map(|n_codes| (Just(n_codes), single::examples(n_codes))),
    ) {
        let constraint = SplitConstraint { missing: 0.0, ..constraint };
        let expected = open(&examples, n_codes.into()).best(&examples.criterion(), constraint);
        let pairs = single::pairs(&examples);
        let node = Node::new(&pairs, PairLayout::Component);
        let (mut bins, mut categories) = (Bins::new(n_codes.into()), Categories::default());
        for arch in arches() {
            let codes = (examples.codes.iter().copied(), n_codes.into());
            let found = best_subset(arch, codes, pairs.iter().copied(), node, constraint, &mut bins, (&mut categories, 0.0));
            prop_assert!(found.iter().all(|found| found.n_present == examples.present().len()));
            check(&examples, found.clone(), expected.clone())?;
            if pairs.len() <= Batch::most_examples(arch) {
                let of_ranks = subset_of_ranks(arch, &examples, &pairs, node, constraint);
                prop_assert_eq!(of_ranks, found.map(|found| (found.gain, found.codes)));
            }
        }
    }

    #[test]
    fn a_given_subset_gains_what_the_formula_says(
        (examples, constraint, chosen) in (kinds(), 2..=9u16, 1..=60usize)
            .prop_flat_map(|(kinds, n_codes, n)| (examples(kinds, n_codes, n), constraint(n / 2), any::<u16>())),
    ) {
        let codes = examples.present();
        let positions: Vec<usize> = (0..codes.len()).filter(|position| chosen >> position & 1 == 1).collect();
        let subset: Vec<u16> = positions.iter().map(|&position| codes[position]).collect();
        let found = open(&examples, 12).given(&examples.criterion(), constraint, &positions);
        let has_room = examples.fits(constraint, |code| subset.contains(&code));
        prop_assert_eq!(found.is_some(), has_room);
        if let Some(found) = found {
            let gain = examples.gain(|code| subset.contains(&code));
            prop_assert!((found.gain - gain).abs() <= 1e-13 * examples.impurity());
            prop_assert_eq!(found.codes, lighter(&examples, gain, &subset).codes);
        }
    }
}

#[test]
fn among_many_categories_two_groups_are_told_apart() {
    let n_codes = 400u16;
    let group = |code: u16| code * 7 % 11 < 5;
    let codes: Vec<u16> = (0..n_codes).chain(0..n_codes).collect();
    let n = codes.len();
    let mut examples = Examples {
        counts: vec![1; n],
        weights: vec![1; n],
        dense: codes
            .iter()
            .map(|&code| if group(code) { vec![Some(3), Some(-1)] } else { vec![Some(-2), Some(4)] })
            .collect(),
        n_whole: 2,
        labels: vec![Vec::new(); n],
        omega: Vec::new(),
        group: Vec::new(),
        codes,
    };
    let check = |examples: &Examples| {
        let found = open(examples, n_codes.into()).best(&examples.criterion(), ANY).unwrap();
        assert!((found.gain - examples.impurity()).abs() < 1e-12);
        let side = group(found.codes[0]);
        assert_eq!(found.codes, (0..n_codes).filter(|&code| group(code) == side).collect::<Vec<_>>());
    };
    check(&examples);
    (examples.dense, examples.n_whole) = (vec![Vec::new(); n], 0);
    examples.labels =
        examples.codes.iter().map(|&code| vec![Some(group(code)), Some(!group(code)), Some(false)]).collect();
    examples.omega = vec![1.0, 0.5, 2.0];
    check(&examples);
}

#[test]
fn among_many_categories_labels_count_as_much_as_they_weigh() {
    // By its share of categories and its weight, the first label gains 0.25 and the second 2 · 0.09.
    let n_codes = 400u16;
    let (first, second) = (|code: u16| code.is_multiple_of(2), |code: u16| (code / 2).is_multiple_of(10));
    let n = usize::from(n_codes);
    let examples = Examples {
        codes: (0..n_codes).collect(),
        counts: vec![1; n],
        weights: vec![1; n],
        dense: vec![Vec::new(); n],
        n_whole: 0,
        labels: (0..n_codes).map(|code| vec![Some(first(code)), Some(second(code))]).collect(),
        omega: vec![1.0, 2.0],
        group: Vec::new(),
    };
    let found = open(&examples, n).best(&examples.criterion(), ANY).unwrap();
    let side = first(found.codes[0]);
    assert_eq!(found.codes, (0..n_codes).filter(|&code| first(code) == side).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn positions_are_ordered_by_keys_and_those_of_keys_that_tie_by_their_numbers(
        keys in vec((-3..3i32, prop_oneof![Just(0), -4..4i32, -10_000..10_000i32]), 0..300),
        relative in any::<bool>(),
    ) {
        // The other numbers are steps of rounding errors.
        let key = |&(value, steps): &(i32, i32)| match relative {
            true => f64::from(value) * (1.0 + f64::from(steps) * f64::EPSILON),
            false => f64::from(value) + f64::from(steps) * 1e-12,
        };
        let keys: Vec<f64> = keys.iter().map(key).collect();
        let mut expected: Vec<u64> = (0..keys.len() as u64).collect();
        let at = |position: u64| keys[position as usize];
        expected.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
        let noise = noise(keys.iter().fold(0.0, |most: f64, key| most.max(key.abs())));
        expected.chunk_by_mut(|&a, &b| at(b) - at(a) <= noise).for_each(<[u64]>::sort_unstable);
        let mut order = vec![7];
        in_order(&keys, &mut order);
        prop_assert_eq!(order, expected);
    }
}
