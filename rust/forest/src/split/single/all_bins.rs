//! All cuts of a histogram at once, in vectors, where most bins are in use.

use pulp::{Arch, Simd, WithSimd};

use super::node::add;
use crate::criterion::TIE;
use crate::pairs::Pair;
use crate::split::gain::{Fractions, GainFormula, GainVisitor, PairGain};
use crate::split::missing::better;
use crate::split::{Cut, STEP};

/// Bins are added up in this many runs side by side, because each addition waits for the one before it.
const RUNS: usize = 4;

/// The best cut of the `bins` below `n_codes`, which are cleared. `missing` are the sums of the examples whose value is
/// missing.
pub(super) fn best_cut(arch: Arch, bins: &mut [Pair], n_codes: usize, gain: GainFormula, missing: Pair) -> Option<Cut> {
    gain.visit(BestCut { arch, bins: &mut bins[..padded(n_codes)], missing })
}

/// The first of the best cuts, whose left sides have the first `n` of the sums `lefts`; the last one has all examples. The code
/// of the cut is its position. `lefts` has room for [`padded`] sums, and is overwritten.
pub(super) fn best_left(arch: Arch, lefts: &mut [Pair], n: usize, gain: GainFormula) -> Option<Cut> {
    let all = lefts[n.checked_sub(1)?];
    let lefts = &mut lefts[..padded(n)];
    lefts[n..].fill(all);
    gain.visit(BestLeft { arch, lefts })
}

/// The number of places for `n` left sides.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(RUNS * STEP)
}

struct BestLeft<'a> {
    arch: Arch,
    lefts: &'a mut [Pair],
}

impl GainVisitor for BestLeft<'_> {
    type Output = Option<Cut>;

    fn visit<G: PairGain>(self, gain: G) -> Option<Cut> {
        let BestLeft { arch, lefts } = self;
        arch.dispatch(AllBins::<G, false> { bins: lefts, before: [[0.0; 2]; RUNS], gain })
    }
}

struct BestCut<'a> {
    arch: Arch,
    bins: &'a mut [Pair],
    missing: Pair,
}

impl GainVisitor for BestCut<'_> {
    type Output = Option<Cut>;

    fn visit<G: PairGain>(self, gain: G) -> Option<Cut> {
        let BestCut { arch, bins, missing } = self;
        let highest = if missing[0] > 0.0 { bins.iter().rposition(|bin| bin[0] > 0.0) } else { None };
        let before = add_up(bins);
        let Some(highest) = highest else {
            return arch.dispatch(AllBins::<G, true> { bins, before, gain });
        };
        let right = arch.dispatch(AllBins::<G, false> { bins, before, gain });
        let with_missing = before.map(|mut sums| {
            add(&mut sums, missing);
            sums
        });
        let left = arch.dispatch(AllBins::<G, true> { bins, before: with_missing, gain });
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
    gain: G,
}

impl<G: PairGain, const CLEAR: bool> WithSimd for AllBins<'_, G, CLEAR> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        match STEP / S::F64_LANES {
            1 => self.best::<S, 1>(simd),
            2 => self.best::<S, 2>(simd),
            4 => self.best::<S, 4>(simd),
            _ => self.best::<S, STEP>(simd),
        }
    }
}

impl<G: PairGain, const CLEAR: bool> AllBins<'_, G, CLEAR> {
    /// The best cut; a step has this number of vectors.
    #[inline(always)]
    fn best<S: Simd, const VECTORS: usize>(self, simd: S) -> Option<Cut> {
        let AllBins { bins, before, gain } = self;
        let mut halves = [Leaders::<S, VECTORS>::new(simd); 2];
        let steps = bins.len() / (RUNS * STEP);
        let (bins, _) = bins.as_chunks_mut::<STEP>();
        let (first, second) = bins.split_at_mut(RUNS / 2 * steps);
        for run in 0..RUNS / 2 {
            let range = run * steps..(run + 1) * steps;
            let before = [before[run], before[RUNS / 2 + run]].map(|pair| [pair; STEP]);
            for (first, second) in first[range.clone()].iter_mut().zip(&mut second[range]) {
                for ((half, before), bins) in halves.iter_mut().zip(&before).zip([first, second]) {
                    let before = S::as_simd_f64s(before.as_flattened()).0;
                    let (twos, _) = S::as_mut_simd_f64s(bins.as_flattened_mut()).0.as_chunks_mut::<2>();
                    for (v, two) in twos.iter_mut().enumerate().take(VECTORS) {
                        let left = [simd.add_f64s(two[0], before[0]), simd.add_f64s(two[1], before[1])];
                        let [examples, sums] = simd.deinterleave_shfl_f64s(left);
                        if CLEAR {
                            *two = [simd.splat_f64s(0.0); 2];
                        }
                        half.offer(simd, v, gain.fractions(simd, examples, sums));
                    }
                    half.step = simd.add_f64s(half.step, simd.splat_f64s(1.0));
                }
            }
        }
        let [first, second] = halves;
        let gains = [first.gains(simd), second.gains(simd)];
        let most = gains.as_flattened().iter().fold(simd.splat_f64s(-1.0), |most, &gains| simd.max_f64s(most, gains));
        let most = simd.reduce_max_f64s(most);
        if most < 0.0 {
            return None;
        }
        let second_starts = simd.splat_f64s((RUNS / 2 * steps * STEP) as f64);
        let cuts = [first.cuts(simd), second.cuts(simd).map(|cuts| simd.add_f64s(cuts, second_starts))];
        let (tied, none) = (simd.splat_f64s(most * TIE), simd.splat_f64s(f64::INFINITY));
        let cuts = cuts.as_flattened().iter().zip(gains.as_flattened()).fold(none, |first, (&cuts, &gains)| {
            let is_tied = simd.greater_than_or_equal_f64s(gains, tied);
            simd.min_f64s(first, simd.select_f64s(is_tied, cuts, none))
        });
        Some(Cut::new(most, simd.reduce_min_f64s(cuts) as u16))
    }
}

/// For each place of a step the first of its best cuts.
///
/// Two of them side by side, because each comparison waits for the one before it, take 0.78 of the cycles of two loops, one that
/// divides and keeps all gains, and one for the first that ties with the greatest.
#[derive(Clone, Copy)]
struct Leaders<S: Simd, const VECTORS: usize> {
    /// The number of the step that is offered, in each lane.
    step: S::f64s,
    /// The gains of the cuts, as fractions; −1 over 1 at first.
    numerators: [S::f64s; VECTORS],
    denominators: [S::f64s; VECTORS],
    /// The steps of the cuts.
    steps: [S::f64s; VECTORS],
}

impl<S: Simd, const VECTORS: usize> Leaders<S, VECTORS> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let [zero, one, none] = [0.0, 1.0, -1.0].map(|x| simd.splat_f64s(x));
        Leaders { step: zero, numerators: [none; VECTORS], denominators: [one; VECTORS], steps: [zero; VECTORS] }
    }

    /// Takes the `cuts` in vector `v` of the step that are better.
    #[inline(always)]
    fn offer(&mut self, simd: S, v: usize, cuts: Fractions<S>) {
        let Fractions { allowed, numerators, denominators } = cuts;
        let own = simd.mul_f64s(simd.mul_f64s(numerators, simd.splat_f64s(TIE)), self.denominators[v]);
        let most = simd.mul_f64s(self.numerators[v], denominators);
        let is_better = simd.and_m64s(allowed, simd.greater_than_f64s(own, most));
        self.numerators[v] = simd.select_f64s(is_better, numerators, self.numerators[v]);
        self.denominators[v] = simd.select_f64s(is_better, denominators, self.denominators[v]);
        self.steps[v] = simd.select_f64s(is_better, self.step, self.steps[v]);
    }

    /// The greatest gain of each place.
    #[inline(always)]
    fn gains(&self, simd: S) -> [S::f64s; VECTORS] {
        std::array::from_fn(|v| simd.div_f64s(self.numerators[v], self.denominators[v]))
    }

    /// The bin of the cut with this gain, for each place.
    #[inline(always)]
    fn cuts(&self, simd: S) -> [S::f64s; VECTORS] {
        let places = places(simd);
        let (places, _) = S::as_simd_f64s(&places);
        std::array::from_fn(|v| simd.mul_add_e_f64s(self.steps[v], simd.splat_f64s(STEP as f64), places[v]))
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
