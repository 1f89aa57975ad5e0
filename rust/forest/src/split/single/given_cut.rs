//! A given cut, from the sums of its left side.

use pulp::{Arch, Simd, WithSimd};

use super::node::{Node, add};
use crate::pairs::Pair;
use crate::split::gain::GainFormula;
use crate::split::{Cut, SplitConstraint};
use ferrank_data::store::Code;

/// [`left_of`], compiled for each instruction set.
struct LeftOf<'a, C> {
    codes: &'a [C],
    pairs: &'a [Pair],
    cut: C,
}

impl<C: Code> WithSimd for LeftOf<'_, C> {
    type Output = Pair;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Pair {
        left_of(self.codes, self.pairs, self.cut)
    }
}

/// The sums of the examples with codes up to `cut`.
#[inline(always)]
pub(crate) fn left_of<C: Code>(codes: &[C], pairs: &[Pair], cut: C) -> Pair {
    // Sums are exact, so the order of additions does not matter.
    let mut sums = [[0.0; 2]; 8];
    let step = |code: &C, pair: &Pair, sum: &mut Pair| {
        let mask = if *code <= cut { u64::MAX } else { 0 };
        add(sum, pair.map(|x| f64::from_bits(x.to_bits() & mask)));
    };
    let (code_groups, code_rest) = codes.as_chunks::<8>();
    let (pair_groups, pair_rest) = pairs.as_chunks::<8>();
    for (codes, pairs) in code_groups.iter().zip(pair_groups) {
        for lane in 0..8 {
            step(&codes[lane], &pairs[lane], &mut sums[lane]);
        }
    }
    for (code, pair) in code_rest.iter().zip(pair_rest) {
        step(code, pair, &mut sums[0]);
    }
    let mut total = [0.0; 2];
    sums.iter().for_each(|sum| add(&mut total, *sum));
    total
}

/// The cut above the code `cut` with its gain. `None` if the constraint forbids the cut.
pub(crate) fn given_cut<C: Code>(
    arch: Arch,
    codes: &[C],
    pairs: &[Pair],
    node: Node,
    constraint: SplitConstraint,
    cut: C,
) -> Option<Cut> {
    let left = arch.dispatch(LeftOf { codes, pairs, cut });
    let gain = GainFormula::new(node, constraint).gain(left);
    (gain >= 0.0).then(|| Cut::new(gain, cut.index() as u16))
}
