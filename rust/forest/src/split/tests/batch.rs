use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;

use super::{Examples, arches, constraint};
use crate::criterion::{Criterion, ties};
use crate::pairs::{Pair, PairLayout};
use crate::params::Ties;
use crate::space::Block;
use crate::split::batch::{Batch, BatchCut, FewSums, SumKind};
use crate::split::few_examples::{FewCut, FewExamples};
use crate::split::gain::GainFormula;
use crate::split::gram::Gram;
use crate::split::single::Node;
use crate::split::{Cut, SplitConstraint, examples, node};
use crate::tree_buffer::{KNOWN, MissingSide};
use ferrank_data::store::Code;
use ferrank_runtime::random::{Purpose, stream};

const FEATURES: usize = 4;

/// One numeric component, with codes of several features.
fn node() -> impl Strategy<Value = (Vec<Examples>, Vec<f64>, SplitConstraint)> {
    let sizes = prop_oneof![1..=8usize, 1..=16usize, 17..=64usize];
    let n_codes = prop_oneof![Just(2u16), Just(5), Just(1000)];
    let examples = (sizes, n_codes, prop_oneof![Just(1i64), Just(500)])
        .prop_flat_map(|(n, n_codes, spread)| vec((vec(0..n_codes, FEATURES), 1..=3u32, -spread..=spread), n));
    (examples, vec(0.0..1.0f64, FEATURES)).prop_flat_map(|(examples, shares)| {
        let n = examples.len();
        let of_feature = |feature: usize| Examples {
            codes: examples.iter().map(|e| e.0[feature]).collect(),
            counts: examples.iter().map(|e| e.1).collect(),
            weights: vec![1; n],
            dense: examples.iter().map(|e| vec![Some(e.2)]).collect(),
            n_whole: 1,
            labels: vec![Vec::new(); n],
            omega: Vec::new(),
            group: Vec::new(),
        };
        (Just((0..FEATURES).map(of_feature).collect()), Just(shares), constraint(n))
    })
}

/// The pairs of examples with a single component.
fn pairs(examples: &Examples) -> Vec<Pair> {
    let pair = |(&count, y): (&u32, &Vec<Option<i64>>)| [1.0, y[0].unwrap() as f64].map(|x| x * f64::from(count));
    examples.counts.iter().zip(&examples.dense).map(pair).collect()
}

/// The best cut of the first feature with the greatest gain, found by the search for few examples. Codes above `most` are missing.
fn search_few_examples(arch: Arch, features: &[Examples], constraint: SplitConstraint, most: u16) -> Option<FewCut> {
    let pairs = pairs(&features[0]);
    let gain = GainFormula::new(Node::new(&pairs, PairLayout::Component), constraint);
    let (mut few, mut random) = (FewExamples::default(), stream(0, Purpose::Node, 0, 0));
    // A larger node before leaves nothing behind.
    for n in [64, pairs.len()] {
        few.start(n, 2 * FEATURES);
        for (feature, examples) in (0..).zip(features) {
            let codes = with_missing(&examples.codes, most);
            let all = codes.iter().copied().cycle().take(n);
            let varies = match codes.contains(&u16::MISSING) {
                true => few.add_with_missing(feature, all),
                false => few.add(feature, all),
            };
            assert_eq!(varies, codes.iter().any(|&code| code != codes[0]));
        }
    }
    few.best_cut(arch, &pairs, gain, Ties::Lowest, &mut random)
}

/// `codes`, of which those above `most` are missing.
fn with_missing(codes: &[u16], most: u16) -> Vec<u16> {
    codes.iter().map(|&code| if code > most { u16::MISSING } else { code }).collect()
}

/// What [`search_few_examples`] should find: of the first feature with the greatest gain, the lowest of the cuts that tie.
fn first_best_cut(features: &[Examples], constraint: SplitConstraint, most: u16) -> Option<FewCut> {
    let pairs = pairs(&features[0]);
    let gain = GainFormula::new(Node::new(&pairs, PairLayout::Component), constraint);
    let cut_of = |feature: u32| {
        let codes = with_missing(&features[feature as usize].codes, most);
        let known: BTreeSet<u16> = codes.iter().copied().filter(|&code| code != u16::MISSING).collect();
        let best = |missing_left: bool| {
            let goes_left = |code: u16, cut: u16| if code == u16::MISSING { missing_left } else { code <= cut };
            let gain_of = |cut: u16| {
                let left = codes.iter().zip(&pairs).filter(|&(&code, _)| goes_left(code, cut));
                gain.gain(left.fold([0.0; 2], |[a, b], (_, pair)| [a + pair[0], b + pair[1]]))
            };
            let gains: Vec<(u16, f64)> =
                known.iter().map(|&cut| (cut, gain_of(cut))).filter(|cut| cut.1 >= 0.0).collect();
            let most = gains.iter().map(|cut| cut.1).fold(f64::NEG_INFINITY, f64::max);
            let (code, _) = gains.into_iter().find(|&(_, gain)| ties(gain, most))?;
            let place = |(place, &own): (u32, &u16)| u64::from(goes_left(own, code)) << place;
            let goes_left = (0..).zip(&codes).map(place).sum();
            let next = known.range(code + 1..).next().copied().unwrap_or(u16::MISSING);
            Some(FewCut { feature, gain: most, code, next, missing: MissingSide::Left, goes_left })
        };
        if known.len() == codes.iter().collect::<BTreeSet<_>>().len() {
            return best(false).map(|cut| FewCut { missing: MissingSide::Heavier, ..cut });
        }
        let right = best(false).map(|cut| {
            let code = if Some(&cut.code) == known.last() { KNOWN } else { cut.code };
            FewCut { code, missing: MissingSide::Right, ..cut }
        });
        let left = if known.len() > 1 { best(true) } else { None };
        match (right, left) {
            (Some(right), Some(left)) if !ties(right.gain, left.gain) => Some(left),
            (right, left) => right.or(left),
        }
    };
    let cuts: Vec<FewCut> = (0..features.len() as u32).filter_map(cut_of).collect();
    let most = cuts.iter().map(|cut| cut.gain).fold(0.0, f64::max);
    cuts.into_iter().find(|cut| ties(cut.gain, most))
}

/// The cuts that a batch finds; random ones if `at_random`.
fn search(
    arch: Arch,
    features: &[Examples],
    shares: &[f64],
    constraint: SplitConstraint,
    at_random: bool,
) -> Vec<BatchCut> {
    let pairs = pairs(&features[0]);
    let mut batch = Batch::default();
    // A larger node before leaves nothing behind.
    for n in [64, pairs.len()] {
        batch.start(n, FEATURES);
        for (feature, (examples, share)) in (0..).zip(features.iter().zip(shares)) {
            let varies = batch.add(feature, |keys| {
                keys.iter_mut().zip(&examples.codes).for_each(|(key, code)| *key = f64::from(*code));
                examples.present().len() > 1
            });
            assert_eq!(varies, examples.present().len() > 1);
            if varies {
                batch.set_share(*share);
            }
        }
    }
    match at_random {
        true => batch.judge_random(arch, &pairs, Node::new(&pairs, PairLayout::Component), constraint),
        false => batch.judge(arch, &pairs, Node::new(&pairs, PairLayout::Component), constraint),
    }
    let most = batch.judged().map(|(.., gain)| gain).fold(0.0, f64::max);
    let tied = batch.judged().filter(|&(.., gain)| ties(gain, most));
    tied.map(|(candidate, ..)| batch.cut(candidate)).collect()
}

/// The naive cuts that tie with the best, with their features.
fn best(cuts: Vec<Option<Cut>>) -> Vec<(u32, Cut)> {
    let most = cuts.iter().flatten().map(|cut| cut.gain).fold(0.0, f64::max);
    (0..).zip(cuts).filter_map(|(feature, cut)| Some((feature, cut.filter(|cut| ties(cut.gain, most))?))).collect()
}

/// The highest code up to a key.
fn code_at(examples: &Examples, key: f64) -> Option<u16> {
    examples.present().into_iter().rfind(|&code| f64::from(code) <= key)
}

fn check(
    features: &[Examples],
    shares: &[f64],
    constraint: SplitConstraint,
    at_random: bool,
) -> Result<(), TestCaseError> {
    let naive = best(
        (features.iter().zip(shares))
            .map(|(examples, share)| {
                let codes = examples.present();
                let [low, high] = [codes[0], codes[codes.len() - 1]].map(f64::from);
                if !at_random || low == high {
                    return examples.best_cut(constraint);
                }
                let cut = code_at(examples, low * (1.0 - share) + high * share)?;
                examples.fits(constraint, |code| code <= cut).then(|| Cut::new(examples.gain(|code| code <= cut), cut))
            })
            .collect(),
    );
    check_best(features, &naive, |arch| search(arch, features, shares, constraint, at_random))
}

/// Checks that `search` finds the cuts that tie with the best, which are `naive`.
fn check_best(
    features: &[Examples],
    naive: &[(u32, Cut)],
    search: impl Fn(Arch) -> Vec<BatchCut>,
) -> Result<(), TestCaseError> {
    let impurity = features[0].impurity();
    let n = features[0].codes.len();
    let mut bits = Vec::new();
    for arch in arches().into_iter().filter(|&arch| n <= Batch::most_examples(arch)) {
        let found = search(arch);
        prop_assert_eq!(found.is_empty(), naive.is_empty());
        bits.push(found.iter().map(|cut| (cut.feature, cut.gain.to_bits(), cut.key.to_bits())).collect::<Vec<_>>());
        prop_assert_eq!(&bits[0], &bits[bits.len() - 1]);
        if naive.first().is_none_or(|(_, cut)| cut.gain <= 1e-3 * impurity) {
            continue;
        }
        prop_assert_eq!(found.len(), naive.len(), "{:?} {:?}", found, naive);
        for (found, (feature, cut)) in found.iter().zip(naive) {
            prop_assert_eq!(found.feature, *feature);
            let code = code_at(&features[*feature as usize], found.key);
            features[*feature as usize].check(code.map(|code| Cut::new(found.gain, code)), Some(*cut))?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn best_cuts_of_many_features_are_the_naive_ones((features, shares, constraint) in node()) {
        check(&features, &shares, constraint, false)?;
    }

    #[test]
    fn few_examples_have_the_best_cut(
        (features, _, constraint) in node(),
        most in prop_oneof![Just(u16::MISSING), Just(3), Just(0), 600..1000u16],
    ) {
        let n = features[0].codes.len();
        let expected = first_best_cut(&features, constraint, most);
        for arch in arches().into_iter().filter(|&arch| n <= Batch::most_examples(arch)) {
            prop_assert_eq!(search_few_examples(arch, &features, constraint, most), expected);
        }
    }

    #[test]
    fn random_cuts_of_many_features_are_the_naive_ones((features, shares, constraint) in node()) {
        check(&features, &shares, constraint, true)?;
    }
}

/// The best cut of examples with these keys and values, found from sums and from inner products.
fn both_ways(arch: Arch, keys: &[f64], values: &[f64]) -> [BatchCut; 2] {
    let (n, constraint) = (keys.len(), SplitConstraint { min_leaf: 1.0, missing: 0.0 });
    let mut batch = Batch::default();
    let start = |batch: &mut Batch| {
        batch.start(n, 1);
        batch.add(0, |to| {
            to.copy_from_slice(keys);
            true
        });
    };
    start(&mut batch);
    let pairs: Vec<Pair> = values.iter().map(|&value| [1.0, value]).collect();
    batch.judge(arch, &pairs, Node::new(&pairs, PairLayout::Component), constraint);
    let from_sums = batch.cut(0);

    let criterion = Criterion { n_whole: 1, ..Criterion::default() };
    let block = Block { width: 1, dense: values.to_vec(), ..Block::default() };
    let (rows, counts): (Vec<u32>, Vec<u32>) = (0..n as u32).map(|row| (row, 1)).unzip();
    let examples = examples::Examples { block: &block, rows: &rows, counts: &counts, pairs: &[] };
    let mut node = node::Node::default();
    examples.total(arch, &criterion, &mut node.total);
    node.open(&criterion);
    start(&mut batch);
    let mut gram = Gram::default();
    gram.open(arch, &criterion, examples, &node, batch.width());
    batch.judge_products(arch, &gram, node.examples(), constraint);
    [from_sums, batch.cut(0)]
}

#[test]
fn inner_products_find_the_cuts_of_sums_in_nodes_of_the_most_examples() {
    for arch in arches() {
        let n = Batch::most_examples(arch);
        // The key of the last example is just below that of the first, and the best cut is above both.
        let keys: Vec<f64> = (0..n).map(|i| if i + 1 < n { ((i + 1) % 3) as f64 } else { 0.0 }).collect();
        let value = |i: usize| ((i * i * 7 + 3) % 23) as f64 + if keys[i] == 2.0 { 50.0 } else { 0.0 };
        let values: Vec<f64> = (0..n).map(value).collect();
        let [from_sums, from_products] = both_ways(arch, &keys, &values);
        assert_eq!(from_sums.key, from_products.key);
        assert!(
            (from_sums.gain - from_products.gain).abs() <= 1e-12 * from_sums.gain,
            "{from_sums:?} {from_products:?}"
        );
    }
}

/// The keys of the best cut of eight examples with three keys, found from sums and from inner products.
///
/// The values of the three keys add up to e, −2·e and e. Both cuts have three examples on one side, whose values add up
/// to e. So both have the gain e² / 15, and the lower cut is to be taken.
fn symmetric_cuts([a, b, c]: [f64; 3], e: f64) -> [f64; 2] {
    let values = [a, b, e - a - b, c - 2.0 * e, -c, b, c, e - b - c];
    let keys = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0];
    both_ways(Arch::new(), &keys, &values).map(|cut| cut.key)
}

/// Errors of inner products are relative to the impurity, those of sums to the gain.
#[test]
fn tiny_gains_that_are_equal_tie_from_sums_but_not_from_inner_products() {
    // On a grid on which sums are exact and products are not.
    let root = |i: i32| (f64::from(i).sqrt() * 2f64.powi(40)).round() / 2f64.powi(40);
    let cuts = |e: f64| (2..40).map(|i| symmetric_cuts([i, i + 40, i + 80].map(root), e)).collect::<Vec<_>>();
    assert!(cuts(0.5).iter().all(|&cuts| cuts == [0.0, 0.0]));
    let tiny = cuts(2f64.powi(-15));
    assert!(tiny.iter().all(|cuts| cuts[0] == 0.0));
    assert!(tiny.iter().any(|cuts| cuts[1] == 1.0), "{tiny:?}");
}

/// Two or three dense components, one or two of weighted rows, or classes, with codes of several features.
fn few() -> impl Strategy<Value = (Vec<Examples>, SplitConstraint)> {
    let kinds = prop_oneof![
        Just((2usize, false, 0usize)),
        Just((3, false, 0)),
        Just((1, true, 0)),
        Just((2, true, 0)),
        (3..=12usize).prop_map(|n_classes| (0, false, n_classes)),
    ];
    let sizes = prop_oneof![1..=16usize, 17..=64usize];
    let n_codes = prop_oneof![Just(2u16), Just(5), Just(1000)];
    (kinds, sizes, n_codes).prop_flat_map(|((n_dense, is_weighted, n_classes), n, n_codes)| {
        let weights = if is_weighted { 1..=3i64 } else { 1..=1 };
        let values = vec(-50..=50i64, n_dense);
        let example = (vec(0..n_codes, FEATURES), 1..=3u32, weights, values, 0..n_classes.max(1));
        let features = vec(example, n).prop_map(move |mut examples| {
            examples[0].2 = if is_weighted { 2 } else { 1 };
            let of_feature = |feature: usize| Examples {
                codes: examples.iter().map(|e| e.0[feature]).collect(),
                counts: examples.iter().map(|e| e.1).collect(),
                weights: examples.iter().map(|e| e.2).collect(),
                dense: examples.iter().map(|e| e.3.iter().copied().map(Some).collect()).collect(),
                n_whole: n_dense,
                labels: examples.iter().map(|e| (0..n_classes).map(|class| Some(class == e.4)).collect()).collect(),
                omega: vec![0.5; n_classes],
                group: Vec::new(),
            };
            (0..FEATURES).map(of_feature).collect()
        });
        (features, constraint(n))
    })
}

/// The cuts that a batch finds from few sums.
fn search_few(arch: Arch, features: &[Examples], constraint: SplitConstraint) -> Vec<BatchCut> {
    let (criterion, block) = (features[0].criterion(), features[0].block());
    let n = features[0].codes.len();
    let rows: Vec<u32> = (0..n as u32).collect();
    let examples = examples::Examples { block: &block, rows: &rows, counts: &features[0].counts, pairs: &[] };
    let mut node = node::Node::default();
    examples.total(arch, &criterion, &mut node.total);
    node.open(&criterion);
    let kind = SumKind::new(&criterion).expect("few components");
    let (mut batch, mut sums) = (Batch::default(), FewSums::default());
    batch.start(n, FEATURES);
    for (feature, examples) in (0..).zip(features) {
        batch.add(feature, |keys| {
            keys.iter_mut().zip(&examples.codes).for_each(|(key, code)| *key = f64::from(*code));
            examples.present().len() > 1
        });
    }
    if batch.is_empty() {
        return Vec::new();
    }
    assert!(sums.open(kind, &criterion, examples, &node));
    batch.judge_sums(arch, kind, &sums, (&criterion, &node), constraint);
    let most = batch.judged().map(|(.., gain)| gain).fold(0.0, f64::max);
    let tied = batch.judged().filter(|&(.., gain)| ties(gain, most));
    tied.map(|(candidate, ..)| batch.cut(candidate)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn best_cuts_from_few_sums_are_the_naive_ones((features, constraint) in few()) {
        let constraint = SplitConstraint { missing: 0.0, ..constraint };
        let search = |arch| search_few(arch, &features, constraint);
        let naive = best(features.iter().map(|examples| examples.best_cut(constraint)).collect());
        check_best(&features, &naive, search)?;
    }
}
