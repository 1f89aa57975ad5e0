use proptest::collection::vec;
use proptest::prelude::*;

use super::{Examples, GONE, arches, code, constraint, on_every_arch};
use crate::pairs::{Pair, PairLayout};
use crate::split::single::{Bins, Histograms, Node, SIDE_BY_SIDE, best_cut, best_sparse_cut, given_cut, left_of};
use crate::split::{Cut, SplitConstraint};
use ferrank_data::store::Code;
use ferrank_data::store::bands::Bands;

/// One numeric component, no weights.
pub(super) fn examples(n_codes: u16) -> impl Strategy<Value = (Examples, SplitConstraint)> {
    // Sizes for batches of every vector width, for bitmaps of bins, and for all bins at once.
    let sizes = prop_oneof![1..=9usize, 1..=70usize, 71..=600usize, 512..=600usize];
    let values = prop_oneof![-1000..=1000i64, -2..=2i64, 0..=1i64];
    let example = move |spread: i64| (0..n_codes, 1..=3u32, -spread..=spread);
    let examples = (sizes, values).prop_flat_map(move |(n, spread)| vec(example(spread.abs()), n));
    examples.prop_flat_map(|examples| {
        let n = examples.len();
        let examples = Examples {
            codes: examples.iter().map(|e| e.0).collect(),
            counts: examples.iter().map(|e| e.1).collect(),
            weights: vec![1; n],
            dense: examples.iter().map(|e| vec![Some(e.2)]).collect(),
            n_whole: 1,
            labels: vec![Vec::new(); n],
            omega: Vec::new(),
            group: Vec::new(),
        };
        (Just(examples), constraint(n))
    })
}

pub(super) fn pairs(examples: &Examples) -> Vec<Pair> {
    let pair =
        |(&count, values): (&u32, &Vec<Option<i64>>)| [1.0, values[0].unwrap() as f64].map(|x| x * f64::from(count));
    examples.counts.iter().zip(&examples.dense).map(pair).collect()
}

/// The cut where the code of the second example is that of 0, the entries of which are left out.
fn sparse_cut(examples: &Examples, constraint: SplitConstraint) -> Option<Cut> {
    let codes: Vec<u16> = examples.codes.iter().map(|&of| code(of)).collect();
    let zero = codes.get(1).copied().filter(|&code| code != u16::MISSING).unwrap_or(0);
    let pairs = pairs(examples);
    let mut entries: Vec<_> = codes.into_iter().zip(pairs.iter().copied()).filter(|&(code, _)| code != zero).collect();
    entries.sort_by_key(|&(code, _)| code);
    let node = Node::new(&pairs, PairLayout::Component);
    let found = best_sparse_cut(entries.iter().copied(), zero, node, constraint, 0.0);
    // A lower limit of gains leaves out nothing above it.
    if let Some(cut) = found {
        let above = best_sparse_cut(entries.into_iter(), zero, node, constraint, cut.gain * (1.0 - 1e-9));
        assert_eq!(above, found);
    }
    found
}

fn check<C: Code>(examples: &Examples, constraint: SplitConstraint, n_codes: u16) -> Result<(), TestCaseError> {
    let codes: Vec<C> = examples.codes.iter().map(|&code| C::from_u16(code)).collect();
    let pairs = pairs(examples);
    let node = Node::new(&pairs, PairLayout::Component);
    prop_assert_eq!(node.examples(), examples.counts.iter().map(|&count| f64::from(count)).sum::<f64>());
    prop_assert_eq!(node.sum(), pairs.iter().map(|pair| pair[1]).sum::<f64>());

    let mut bins = Bins::new(n_codes.into());
    let found = on_every_arch(|arch| {
        best_cut(arch, (codes.iter().copied(), n_codes.into()), pairs.iter().copied(), node, constraint, &mut bins)
    })?;
    examples.check(found, examples.best_cut(constraint))?;
    // Searches leave the bins clear.
    let again = on_every_arch(|arch| {
        best_cut(arch, (codes.iter().copied(), n_codes.into()), pairs.iter().copied(), node, constraint, &mut bins)
    })?;
    prop_assert_eq!(found, again);

    prop_assert_eq!(sparse_cut(examples, constraint), found);

    let cuts = examples.present();
    for &cut in [cuts[0], cuts[cuts.len() / 2], cuts[cuts.len() - 1], n_codes - 1].iter() {
        let naive = examples.fits(constraint, |code| code <= cut);
        let naive = naive.then(|| Cut::new(examples.gain(|code| code <= cut), cut));
        let found = on_every_arch(|arch| given_cut(arch, &codes, &pairs, node, constraint, C::from_u16(cut)))?;
        examples.check(found, naive)?;
        prop_assert_eq!(found.map(|found| found.code), naive.map(|naive| naive.code));
        let is_left = |i: &usize| examples.codes[*i] <= cut;
        let left = (0..codes.len()).filter(is_left).map(|i| pairs[i]).fold([0.0; 2], |[a, b], [x, y]| [a + x, b + y]);
        prop_assert_eq!(left_of(&codes, &pairs, C::from_u16(cut)), left);
    }
    Ok(())
}

/// Cuts with missing values on either side.
fn check_missing<C: Code>(examples: &Examples, constraint: SplitConstraint, n_codes: u16) -> Result<(), TestCaseError> {
    let codes: Vec<C> = examples.codes.iter().map(|&of| code(of)).collect();
    let pairs = pairs(examples);
    let node = Node::new(&pairs, PairLayout::Component);
    let mut bins = Bins::new(n_codes.into());
    for _ in 0..2 {
        let found = on_every_arch(|arch| {
            best_cut(arch, (codes.iter().copied(), n_codes.into()), pairs.iter().copied(), node, constraint, &mut bins)
        })?;
        examples.check(found, examples.best_sided_cut(constraint))?;
        prop_assert_eq!(sparse_cut(examples, constraint), found);
    }
    Ok(())
}

/// Columns that go together have the cuts that they have alone.
fn check_together(examples: &Examples, constraint: SplitConstraint, n_codes: u16) -> Result<(), TestCaseError> {
    let pairs = pairs(examples);
    let node = Node::new(&pairs, PairLayout::Component);
    let n = pairs.len();
    // Examples in another order of rows, codes turned by another number for each column.
    let rows: Vec<u32> = (0..n as u32).map(|i| 2 * i + 1).collect();
    let turned = |column: usize, i: usize| match examples.codes[i] {
        GONE => usize::from(u8::MISSING),
        code => (usize::from(code) + 7 * column) % usize::from(n_codes),
    };
    let mut bands = Bands::<u8>::new(SIDE_BY_SIDE, 2 * n);
    for cells in bands.iter_mut() {
        for (i, &row) in rows.iter().enumerate() {
            cells[row as usize] = std::array::from_fn(|column| turned(column, i) as u8);
        }
    }
    let mut histograms = Histograms::new();
    let mut bins = Bins::new(n_codes.into());
    for together in 1..=SIDE_BY_SIDE {
        let columns: Vec<_> = (0..together).map(|slot| bands.column(slot)).collect();
        for arch in arches() {
            histograms.start(n, node.layout);
            histograms.fill(&columns, &rows, |i, _| pairs[i]);
            for column in 0..together {
                let codes = (0..n).map(|i| turned(column, i) as u8);
                let alone = best_cut(arch, (codes, n_codes.into()), pairs.iter().copied(), node, constraint, &mut bins);
                prop_assert_eq!(histograms.best_cut(arch, column, n_codes.into(), node, constraint), alone);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cuts_on_one_byte_are_the_naive_ones(
        (n_codes, (examples, constraint)) in prop_oneof![2..=4u16, 2..=40u16, Just(255u16)].prop_flat_map(|n| (Just(n), examples(n))),
        gone in vec(prop::bool::weighted(0.3), 1..20),
    ) {
        check::<u8>(&examples, constraint, n_codes)?;
        check_together(&examples, constraint, n_codes)?;
        let (examples, constraint) = (examples.without(&gone), SplitConstraint { missing: 0.0, ..constraint });
        check_missing::<u8>(&examples, constraint, n_codes)?;
        check_together(&examples, constraint, n_codes)?;
    }

    #[test]
    fn cuts_on_two_bytes_are_the_naive_ones(
        (n_codes, (examples, constraint)) in prop_oneof![2..=4u16, 200..=600u16, Just(5_000u16), Just(u16::MAX)]
            .prop_flat_map(|n| (Just(n), examples(n))),
        gone in vec(prop::bool::weighted(0.3), 1..20),
    ) {
        check::<u16>(&examples, constraint, n_codes)?;
        let constraint = SplitConstraint { missing: 0.0, ..constraint };
        check_missing::<u16>(&examples.without(&gone), constraint, n_codes)?;
    }
}

#[test]
fn the_lower_of_equal_cuts_is_taken() {
    // By symmetry the first and the last cut gain as much, and more than those between.
    for n in [4u16, 40, 64, 65, 600] {
        let half = n / 2;
        let codes: Vec<u16> = (0..n).collect();
        let value = |code: u16| match code {
            0 => 1.0,
            code if code == n - 1 => 1.0,
            code if code == half => -2.0,
            _ => 0.0,
        };
        let pairs: Vec<Pair> = codes.iter().map(|&code| [1.0, value(code)]).collect();
        let constraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };
        let mut bins = Bins::new(n.into());
        let found = on_every_arch(|arch| {
            best_cut(
                arch,
                (codes.iter().copied(), n.into()),
                pairs.iter().copied(),
                Node::new(&pairs, PairLayout::Component),
                constraint,
                &mut bins,
            )
        })
        .unwrap();
        assert_eq!(found.unwrap().code, 0, "{n}");
    }
}

#[test]
fn rounding_noise_does_not_choose_between_equal_cuts() {
    // The first and the last cut gain as much, from means that are rounded. Both are at the same place of a step.
    for n in (42u16..126).step_by(8) {
        let codes: Vec<u16> = (0..n).collect();
        let is_end = |code: u16| code == 0 || code == n - 1;
        for value in [1.0, 3.0, 5.0, 7.0] {
            let pairs: Vec<Pair> = codes.iter().map(|&code| [1.0, if is_end(code) { value } else { 0.0 }]).collect();
            let node = Node::new(&pairs, PairLayout::Component);
            let constraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };
            let mut bins = Bins::new(255);
            let codes = || (codes.iter().copied(), 255);
            let found =
                on_every_arch(|arch| best_cut(arch, codes(), pairs.iter().copied(), node, constraint, &mut bins));
            assert_eq!(found.unwrap().unwrap().code, 0, "{n} {value}");
        }
    }
}
