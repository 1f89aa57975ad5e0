use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;

use super::{Examples, N_GROUPS, arches, code, constraint};
use crate::split::dense::LeftSides;
use crate::split::examples;
use crate::split::kernel::{Kernel, Kernels};
use crate::split::missing::replace;
use crate::split::multi_feature::MultiFeatureHistogram;
use crate::split::node::Node;
use crate::split::random_thresholds::RandomThresholds;
use crate::split::scan::Scratch;
use crate::split::search::Search;
use crate::split::values;
use crate::split::{Cut, SplitConstraint};
use crate::tree_buffer::MissingSide;
use ferrank_data::store::Code;

/// The kinds of components of a space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    n_dense: usize,
    n_labels: usize,
    /// Rows have weights.
    weighted: bool,
    /// The second half of the dense components and of the labels may be missing.
    partial: bool,
}

impl Kinds {
    /// The same with a single numeric component.
    pub(super) fn only_one(self) -> Self {
        Kinds { n_dense: 1, n_labels: 0, ..self }
    }
}

pub(super) fn kinds() -> impl Strategy<Value = Kinds> {
    let dense = (prop_oneof![1..=4usize, 5..=40usize], Just(0usize), any::<bool>());
    let indicators = (Just(0usize), 2..=40usize, any::<bool>());
    let mixed = (1..=3usize, 2..=6usize, any::<bool>());
    let partial = (prop_oneof![Just(0usize), 1..=4usize, 5..=40usize], 0..=9usize, any::<bool>())
        .prop_filter("some component", |(n_dense, n_labels, _)| n_dense + n_labels > 0);
    let kinds = |partial| move |(n_dense, n_labels, weighted)| Kinds { n_dense, n_labels, weighted, partial };
    prop_oneof![
        dense.prop_map(kinds(false)),
        indicators.prop_map(kinds(false)),
        mixed.prop_map(kinds(false)),
        partial.prop_map(kinds(true)),
    ]
}

pub(super) fn examples(kinds: Kinds, n_codes: u16, n: usize) -> impl Strategy<Value = Examples> {
    let Kinds { n_dense, n_labels, partial, .. } = kinds;
    let (n_whole, n_listed) = if partial { (n_dense / 2, n_labels / 2) } else { (n_dense, n_labels) };
    let value = prop::option::weighted(0.7, -5..=5i64);
    let weight = if kinds.weighted { 1..=4i64 } else { 1..=1 };
    let example = (
        0..n_codes,
        1..=3u32,
        weight,
        vec(value, n_dense),
        vec(prop::bool::weighted(0.2), n_labels),
        any::<[bool; N_GROUPS]>(),
    );
    let dense = move |values: &Vec<Option<i64>>| -> Vec<Option<i64>> {
        values.iter().enumerate().map(|(c, value)| if c < n_whole { value.or(Some(0)) } else { *value }).collect()
    };
    let labels = move |has: &Vec<bool>, gone: [bool; N_GROUPS]| -> Vec<Option<bool>> {
        let label = |(l, &has): (usize, &bool)| (l < n_listed || !gone[l % N_GROUPS]).then_some(has);
        has.iter().enumerate().map(label).collect()
    };
    (vec(example, n), vec(0.1..3.0f64, n_labels)).prop_map(move |(examples, omega)| Examples {
        codes: examples.iter().map(|e| e.0).collect(),
        counts: examples.iter().map(|e| e.1).collect(),
        weights: examples.iter().map(|e| e.2).collect(),
        dense: examples.iter().map(|e| dense(&e.3)).collect(),
        n_whole,
        labels: examples.iter().map(|e| labels(&e.4, e.5)).collect(),
        omega,
        group: (n_listed..n_labels).map(|label| (label % N_GROUPS) as u32).collect(),
    })
}

fn case() -> impl Strategy<Value = (Examples, SplitConstraint)> {
    let n_codes = prop_oneof![1..=4u16, 2..=30u16, Just(250u16)];
    let sizes = prop_oneof![1..=30usize, 20..=200usize];
    (kinds(), n_codes, sizes).prop_flat_map(|(kinds, n_codes, n)| (examples(kinds, n_codes, n), constraint(n)))
}

fn check<C: Code>(examples: &Examples, constraint: SplitConstraint, n_codes: usize) -> Result<(), TestCaseError> {
    let (criterion, block) = (examples.criterion(), examples.block());
    let codes: Vec<C> = examples.codes.iter().map(|&code| C::from_u16(code)).collect();
    let rows: Vec<u32> = (0..codes.len() as u32).collect();
    let in_node = examples::Examples { block: &block, rows: &rows, counts: &examples.counts, pairs: &[] };
    let mut node = Node::default();
    in_node.total(Arch::new(), &criterion, &mut node.total);
    node.open(&criterion);
    let (criterion, node) = (&criterion, &node);
    let search = Search { criterion, examples: in_node, codes: &codes, n_codes, missing: None, node, constraint };
    let mut scratch = Scratch::new(criterion);
    // Squares are added up as many at a time as vectors are wide, so gains differ in their last bits.
    let naive = examples.best_cut(constraint);
    for arch in arches() {
        for kernel in best_cut_kernels(search, arch) {
            examples.check(search.best_cut(kernel, arch, &mut scratch), naive)?;
        }
    }

    let cuts = examples.present();
    for &cut in [cuts[0], cuts[cuts.len() / 2], cuts[cuts.len() - 1]].iter() {
        let naive = examples.fits(constraint, |code| code <= cut);
        let naive = naive.then(|| Cut::new(examples.gain(|code| code <= cut), cut));
        for arch in arches() {
            for kernel in [Kernels::new(arch, criterion, true).for_cut(), Kernel::InOrder] {
                let found = search.given_cut(kernel, arch, C::from_u16(cut), &mut scratch);
                examples.check(found, naive)?;
                prop_assert_eq!(found.map(|found| found.code), naive.map(|naive| naive.code));
            }
        }
    }
    for arch in arches().into_iter().filter(|&arch| values::width(arch, criterion).is_some()) {
        cuts_found_together_are_those_found_alone(search, arch, &mut scratch)?;
    }
    // Searches leave the buffers clear.
    for kernel in best_cut_kernels(search, Arch::new()) {
        examples.check(search.best_cut(kernel, Arch::new(), &mut scratch), naive)?;
    }
    Ok(())
}

/// Cuts with missing values on either side.
fn check_missing<C: Code>(
    examples: &Examples,
    constraint: SplitConstraint,
    n_codes: usize,
) -> Result<(), TestCaseError> {
    let (criterion, block) = (examples.criterion(), examples.block());
    let codes: Vec<C> = examples.codes.iter().map(|&of| code(of)).collect();
    let rows: Vec<u32> = (0..codes.len() as u32).collect();
    let in_node = examples::Examples { block: &block, rows: &rows, counts: &examples.counts, pairs: &[] };
    let mut node = Node::default();
    in_node.total(Arch::new(), &criterion, &mut node.total);
    node.open(&criterion);
    let (criterion, node) = (&criterion, &node);
    let search = Search { criterion, examples: in_node, codes: &codes, n_codes, missing: None, node, constraint };
    // A feature that all examples miss is constant.
    let Some(highest) = examples.known().pop() else { return Ok(()) };
    let missing = codes.contains(&C::MISSING).then_some(highest + 1);
    let mut replaced = codes.clone();
    replace(&mut replaced, C::MISSING, C::from_u16(highest + 1));
    let with_missing = Search { codes: &replaced, n_codes: n_codes + 1, missing, ..search };
    let mut scratch = Scratch::new(criterion);
    let naive = examples.best_sided_cut(constraint);
    for arch in arches() {
        for kernel in best_cut_kernels(with_missing, arch) {
            examples.check(with_missing.best_cut(kernel, arch, &mut scratch), naive)?;
        }
        if values::width(arch, criterion).is_some() {
            let mut together = MultiFeatureHistogram::default();
            together.take(criterion, 0, &codes, n_codes, missing.is_some());
            let mut lefts = LeftSides::default();
            let found: Vec<_> =
                together.best_cuts(arch, criterion, in_node, node, constraint, Some(&mut lefts)).collect();
            examples.check(found.first().map(|&(_, cut)| cut), naive)?;
            left_sides_are_summed_up(search, &found, |_| codes.clone(), &lefts)?;
        }
    }
    Ok(())
}

/// The kernel that is chosen for the node, and the general ones.
fn best_cut_kernels<C: Code>(search: Search<'_, C>, arch: Arch) -> Vec<Kernel> {
    let Search { criterion, examples, node, n_codes, .. } = search;
    let special = match Kernels::new(arch, criterion, false).for_feature(criterion, examples, node, n_codes) {
        // Examples are no pairs here.
        Kernel::Single => Kernel::Dense,
        kernel => kernel,
    };
    let sums = (n_codes < 300).then_some(Kernel::NodeSums);
    [special, Kernel::InOrder].into_iter().chain(sums).collect()
}

/// Rotated codes are those of other features, which are more than are searched at once.
fn cuts_found_together_are_those_found_alone<C: Code>(
    search: Search<'_, C>,
    arch: Arch,
    scratch: &mut Scratch,
) -> Result<(), TestCaseError> {
    let Search { criterion, examples, codes, n_codes, node, constraint, .. } = search;
    let (n, has_missing) = (codes.len(), codes.contains(&C::MISSING));
    let of_feature = |feature: u32| {
        let mut codes = codes.to_vec();
        codes.rotate_left(feature as usize % n);
        codes
    };
    let (mut given, mut together, mut lefts) =
        (RandomThresholds::default(), MultiFeatureHistogram::default(), LeftSides::default());
    for features in [0..7u32, 7..8, 8..11] {
        lefts.clear();
        let (mut given_alone, mut best_alone) = (Vec::new(), Vec::new());
        for feature in features.clone() {
            let codes = of_feature(feature);
            let cut = codes[n / 2];
            let search = Search { codes: &codes, ..search };
            given_alone.extend(search.given_cut(Kernel::Dense, arch, cut, scratch).map(|cut| (feature, cut)));
            prop_assert_eq!(given.take(arch, feature, &codes, cut.index() as u16, MissingSide::Heavier), feature == 6);
            let mut one = MultiFeatureHistogram::default();
            one.take(criterion, feature, &codes, n_codes, has_missing);
            best_alone.extend(one.best_cuts(arch, criterion, examples, node, constraint, None));
            together.take(criterion, feature, &codes, n_codes, has_missing);
        }
        let mut found: Vec<_> = given.judge(arch, criterion, examples, node, constraint, &mut lefts).collect();
        found.sort_by_key(|&(feature, _)| feature);
        prop_assert_eq!(&found, &given_alone);
        left_sides_are_summed_up(search, &found, of_feature, &lefts)?;

        lefts.clear();
        let found: Vec<_> = together.best_cuts(arch, criterion, examples, node, constraint, Some(&mut lefts)).collect();
        prop_assert_eq!(&found, &best_alone);
        left_sides_are_summed_up(search, &found, of_feature, &lefts)?;
    }
    Ok(())
}

fn left_sides_are_summed_up<C: Code>(
    search: Search<'_, C>,
    found: &[(u32, Cut)],
    codes: impl Fn(u32) -> Vec<C>,
    lefts: &LeftSides,
) -> Result<(), TestCaseError> {
    for &(feature, cut) in found {
        let mut sums = vec![0.0; search.criterion.len()];
        for (i, code) in codes(feature).iter().enumerate() {
            if if *code == C::MISSING { cut.missing == MissingSide::Left } else { code.index() <= cut.code.into() } {
                search.examples.add(search.criterion, &mut sums, i);
            }
        }
        prop_assert_eq!(lefts.get(feature), Some(&sums[..]));
    }
    prop_assert_eq!(lefts.get(u32::MAX), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cuts_are_the_naive_ones((examples, constraint) in case()) {
        // With few codes sums are taken by code, with many in the order of codes, which are sorted by
        // counting them or their bytes.
        let n_codes = usize::from(*examples.codes.iter().max().unwrap()) + 1;
        check::<u8>(&examples, constraint, n_codes)?;
        check::<u16>(&examples, constraint, 4 * examples.codes.len().max(n_codes))?;
        check::<u16>(&examples, constraint, 60_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cuts_with_missing_values_on_either_side_are_the_naive_ones(
        (examples, constraint) in case(),
        gone in vec(prop::bool::weighted(0.3), 1..20),
    ) {
        let n_codes = usize::from(*examples.codes.iter().max().unwrap()) + 1;
        let constraint = SplitConstraint { missing: 0.0, ..constraint };
        let examples = examples.without(&gone);
        check_missing::<u8>(&examples, constraint, n_codes)?;
        check_missing::<u16>(&examples, constraint, 4 * examples.codes.len().max(n_codes))?;
        check_missing::<u16>(&examples, constraint, 60_000)?;
    }
}

#[test]
fn what_all_examples_have_gains_nothing() {
    let constraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };
    for (first, second) in (1..=9u32).flat_map(|first| (1..=9).map(move |second| (first, second))) {
        for group in [Vec::new(), vec![0]] {
            let examples = Examples {
                codes: vec![0, 1],
                counts: vec![first, second],
                weights: vec![1; 2],
                dense: vec![Vec::new(); 2],
                n_whole: 0,
                labels: vec![vec![Some(true)]; 2],
                omega: vec![0.1],
                group,
            };
            check::<u8>(&examples, constraint, 2).unwrap();
            check::<u16>(&examples, constraint, 60_000).unwrap();
        }
    }
}
