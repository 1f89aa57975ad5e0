use proptest::collection::vec;
use proptest::prelude::*;
use pulp::Arch;

use super::{NodeSums, SumLayout};
use crate::criterion::Criterion;
use crate::pairs::Pair;
use crate::space::{Block, Space};
use crate::split::examples::Examples;
use crate::tests::{Coded, batches, label_sets};

/// Number of codes; the code of a missing value is above them.
const N_CODES: usize = 5;
const ROWS: usize = 60;

/// A row in the bag: its number, its multiplicity, and its code.
type Draw = (u32, u32, u8);

/// The sums of `draws`, added in as many calls as there are slices.
fn sums(space: &Space, draws: &[&[Draw]]) -> NodeSums {
    let criterion = Criterion::new(space);
    let mut sums = NodeSums::new(SumLayout::new(&criterion), N_CODES);
    for draws in draws {
        let (rows, counts): (Vec<u32>, Vec<u32>) = draws.iter().map(|&(row, count, _)| (row, count)).unzip();
        let codes: Vec<u8> = draws.iter().map(|draw| draw.2).collect();
        let pairs = if criterion.is_single() { pairs(&space.block, draws) } else { Vec::new() };
        let examples = Examples { block: &space.block, rows: &rows, counts: &counts, pairs: &pairs };
        sums.add(Arch::new(), &criterion, examples, &codes);
    }
    sums
}

fn pairs(block: &Block, draws: &[Draw]) -> Vec<Pair> {
    let pair = |&(row, count, _): &Draw| [1.0, block.dense(row as usize)[0]].map(|x| x * f64::from(count));
    draws.iter().map(pair).collect()
}

fn bits(sums: &NodeSums) -> Vec<u64> {
    sums.cells.iter().map(|cell| cell.to_bits()).collect()
}

/// Spaces with a single component, with several, with weights, with missing values and with indicators.
fn spaces() -> impl Strategy<Value = Space> {
    let batch =
        (any::<bool>(), any::<bool>()).prop_flat_map(|(gaps, weighted)| batches(ROWS..ROWS + 1, gaps, weighted));
    (batch, 0..5usize, prop_oneof![Just(1.0), Just(0.5)]).prop_map(|(batch, which, supervision)| {
        let targets: &[&str] = [&["y"][..], &["class", "y"], &["y", "t"], &["y", "t", "class"], &["y"]][which];
        let mut coded = Coded::read(&batch, targets, None, 255, true);
        if which == 4 {
            coded.store.targets = vec![label_sets(ROWS, 20, supervision < 1.0)].into();
        }
        coded.space_of(None, supervision)
    })
}

/// At most as many draws as there are rows, each with a number to sort by and the part it belongs to.
fn draws() -> impl Strategy<Value = Vec<(Draw, u64, usize)>> {
    vec(((0..ROWS as u32, 1..=2u32, 0..=N_CODES as u8), any::<u64>(), 0..4usize), 2..ROWS / 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_of_parts_add_up_to_the_bits_of_the_whole(space in spaces(), mut drawn in draws()) {
        let all: Vec<Draw> = drawn.iter().map(|draw| draw.0).collect();
        let whole = bits(&sums(&space, &[&all]));

        // The rows in another order, part by part: into the same sums, as passes over a store add blocks.
        drawn.sort_by_key(|&(_, key, _)| key);
        let part = |number: usize| drawn.iter().filter(|draw| draw.2 == number).map(|draw| draw.0).collect::<Vec<Draw>>();
        let parts: Vec<Vec<Draw>> = (0..4).map(part).collect();
        prop_assert_eq!(&whole, &bits(&sums(&space, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>())));

        // Into sums of their own, whose cells are then added up.
        for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
            let mut merged = sums(&space, &[]);
            for number in order {
                let own = sums(&space, &[&parts[number]]);
                merged.cells.iter_mut().zip(own.cells).for_each(|(cell, own)| *cell += own);
            }
            prop_assert_eq!(&whole, &bits(&merged));
        }
    }
}
