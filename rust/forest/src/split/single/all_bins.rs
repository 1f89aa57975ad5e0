//! All cuts of a histogram at once, in vectors, where most bins are in use.

use pulp::{Arch, Simd, WithSimd};

use super::node::add;
use crate::criterion::ties;
use crate::pairs::Pair;
use crate::split::gain::{GainFormula, GainVisitor, PairGain};
use crate::split::missing::better;
use crate::split::{Cut, STEP, first_step_of_best};

/// Bins are added up in this many runs side by side, because each addition waits for the one before it.
const RUNS: usize = 4;

/// The best cut of the `bins` below `n_codes`, which are cleared; `gains` is overwritten. `missing` are the sums of the
/// examples whose value is missing.
pub(super) fn best_cut(
    arch: Arch,
    bins: &mut [Pair],
    gains: &mut [f64],
    n_codes: usize,
    gain: GainFormula,
    missing: Pair,
) -> Option<Cut> {
    let n = padded(n_codes);
    gain.visit(BestCut { arch, bins: &mut bins[..n], gains: &mut gains[..n], missing })
}

/// The first of the best cuts, whose left sides have the first `n` of the sums `lefts`; the last one has all examples. The code
/// of the cut is its position. Both slices have room for [`padded`] numbers, and are overwritten.
pub(super) fn best_left(arch: Arch, lefts: &mut [Pair], n: usize, gains: &mut [f64], gain: GainFormula) -> Option<Cut> {
    let all = lefts[n.checked_sub(1)?];
    let (lefts, gains) = (&mut lefts[..padded(n)], &mut gains[..padded(n)]);
    lefts[n..].fill(all);
    gain.visit(BestLeft { arch, lefts, gains })
}

/// The number of places for `n` left sides.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(RUNS * STEP)
}

struct BestLeft<'a> {
    arch: Arch,
    lefts: &'a mut [Pair],
    gains: &'a mut [f64],
}

impl GainVisitor for BestLeft<'_> {
    type Output = Option<Cut>;

    fn visit<G: PairGain>(self, gain: G) -> Option<Cut> {
        let BestLeft { arch, lefts, gains } = self;
        arch.dispatch(AllBins::<G, false> { bins: lefts, before: [[0.0; 2]; RUNS], gains, gain })
    }
}

struct BestCut<'a> {
    arch: Arch,
    bins: &'a mut [Pair],
    gains: &'a mut [f64],
    missing: Pair,
}

impl GainVisitor for BestCut<'_> {
    type Output = Option<Cut>;

    fn visit<G: PairGain>(self, gain: G) -> Option<Cut> {
        let BestCut { arch, bins, gains, missing } = self;
        let highest = if missing[0] > 0.0 { bins.iter().rposition(|bin| bin[0] > 0.0) } else { None };
        let before = add_up(bins);
        let Some(highest) = highest else {
            return arch.dispatch(AllBins::<G, true> { bins, before, gains, gain });
        };
        let right = arch.dispatch(AllBins::<G, false> { bins, before, gains, gain });
        let with_missing = before.map(|mut sums| {
            add(&mut sums, missing);
            sums
        });
        let left = arch.dispatch(AllBins::<G, true> { bins, before: with_missing, gains, gain });
        better(right, left, highest)
    }
}

/// Makes each bin the sum of its run up to it. Returns the sums of the bins before each run.
#[inline(never)]
fn add_up(bins: &mut [Pair]) -> [Pair; RUNS] {
    let (first, second) = bins.split_at_mut(bins.len() / 2);
    let (first, second) = (first.split_at_mut(first.len() / 2), second.split_at_mut(second.len() / 2));
    let runs = first.0.iter_mut().zip(first.1).zip(second.0.iter_mut().zip(second.1));
    let mut sums = [[0.0; 2]; RUNS];
    for ((a, b), (c, d)) in runs {
        for (sum, bin) in sums.iter_mut().zip([a, b, c, d]) {
            add(sum, *bin);
            *bin = *sum;
        }
    }
    let mut before = [0.0; 2];
    sums.map(|sum| {
        let these = before;
        add(&mut before, sum);
        these
    })
}

/// Judges the cut above each bin, empty or not, and clears all bins if `CLEAR`.
struct AllBins<'a, G, const CLEAR: bool> {
    /// Each bin with the bins before it in its run added.
    bins: &'a mut [Pair],
    /// The sums of the left side before each run.
    before: [Pair; RUNS],
    gains: &'a mut [f64],
    gain: G,
}

impl<G: PairGain, const CLEAR: bool> WithSimd for AllBins<'_, G, CLEAR> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        let AllBins { bins, before, gains, gain } = self;
        let zero = simd.splat_f64s(0.0);
        let mut most = simd.splat_f64s(-1.0);
        let length = bins.len() / RUNS;
        for (run, before) in before.into_iter().enumerate() {
            let range = run * length..(run + 1) * length;
            let before = [before; STEP];
            let before = S::as_simd_f64s(before.as_flattened()).0;
            let (twos, _) = S::as_mut_simd_f64s(bins[range.clone()].as_flattened_mut()).0.as_chunks_mut::<2>();
            for (two, out) in twos.iter_mut().zip(S::as_mut_simd_f64s(&mut gains[range]).0) {
                let left = [simd.add_f64s(two[0], before[0]), simd.add_f64s(two[1], before[1])];
                let [examples, sums] = simd.deinterleave_shfl_f64s(left);
                if CLEAR {
                    *two = [zero; 2];
                }
                *out = gain.gains(simd, examples, sums);
                most = simd.max_f64s(most, *out);
            }
        }
        let most = simd.reduce_max_f64s(most);
        // An empty bin repeats the gain of the bin before it; the first of equal gains is taken.
        let step = first_step_of_best(gains, most)?;
        let mut place = f64::INFINITY;
        for (at, &gain) in places(simd).into_iter().zip(&gains[step * STEP..]) {
            place = if ties(gain, most) { place.min(at) } else { place };
        }
        Some(Cut::new(most, (step * STEP) as u16 + place as u16))
    }
}

/// The bin within a step that each of the step's gains belongs to.
#[inline(always)]
fn places<S: Simd>(simd: S) -> [f64; STEP] {
    let pairs: [Pair; STEP] = std::array::from_fn(|bin| [bin as f64; 2]);
    let mut places = [0.0; STEP];
    let (twos, _) = S::as_simd_f64s(pairs.as_flattened()).0.as_chunks::<2>();
    for (two, out) in twos.iter().zip(S::as_mut_simd_f64s(&mut places).0) {
        [*out, _] = simd.deinterleave_shfl_f64s(*two);
    }
    places
}
