//! Distances of 16 rows from 16 others, with the widest vectors that the machine has.
//!
//! ```text
//! for each feature:                     the inner loop, over the features of two panels
//!     row := 16 values of one panel     one vector, two, or four
//!     for each query of a group:        as many as registers hold sums for
//!         M[query] += what it has in common with the value of the other panel's row, to all lanes
//! ```
//!
//! Nothing is added up across a vector, and a value loaded serves as many rows as a vector is wide.

use pulp::{Arch, Simd, WithSimd};

use super::coarse::Outlook;
use super::panels::{Common, LANES, Layout, Panel, RUN};

/// What was measured between the rows of two panels: a line for each row of the first.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Set where something passed a gate; elsewhere what was there before.
    pub(crate) distances: [[f32; LANES]; LANES],
    /// Lanes that pass the gate of the line's row.
    pub(crate) hits: [u16; LANES],
    /// Lanes whose own gate the line's row passes.
    pub(crate) other_hits: [u16; LANES],
    pub(super) outlook: Outlook,
}

/// Numbers of the bits that are set.
pub(crate) fn bits(mut word: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// Two panels, and the distances that matter.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) one: Panel<'a>,
    pub(crate) other: Panel<'a>,
    /// For each row of `one`, the distance that a row of `other` may have at most to matter.
    pub(crate) gates: &'a [f32; LANES],
    /// The same for the rows of `other`; `None` if they do not ask.
    pub(crate) other_gates: Option<&'a [f32; LANES]>,
}

/// The work on all pairs of two panels.
pub(crate) struct Measure<'a> {
    pub(crate) sight: Sight<'a>,
    pub(crate) block: &'a mut Block,
}

impl Measure<'_> {
    /// Fills the block; gives a bit for each of its lines in which some distance passes a gate.
    pub(crate) fn run(self, arch: Arch) -> u16 {
        arch.dispatch(self)
    }
}

impl WithSimd for Measure<'_> {
    type Output = u16;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> u16 {
        match S::F32_LANES {
            16 => self.vectors::<S, 1, 16>(simd),
            8 => self.vectors::<S, 2, 4>(simd),
            4 => self.vectors::<S, 4, 2>(simd),
            _ => self.lanes(),
        }
    }
}

/// A panel's line as vectors.
#[inline(always)]
pub(super) fn line<S: Simd, const V: usize>(simd: S, values: &[f32]) -> [S::f32s; V] {
    let vectors = S::as_simd_f32s(values).0;
    let mut line = [simd.splat_f32s(0.0); V];
    line.copy_from_slice(&vectors[..V]);
    line
}

/// The lanes of `mask`, a bit for each.
#[inline(always)]
pub(super) fn word<S: Simd>(simd: S, mask: S::m32s) -> u32 {
    /// 1, 2, 4 …: a sum of distinct ones is the word with these bits, which f32 holds exactly.
    const POWERS: [f32; LANES] = {
        let mut powers = [1.0; LANES];
        let mut lane = 1;
        while lane < LANES {
            powers[lane] = 2.0 * powers[lane - 1];
            lane += 1;
        }
        powers
    };
    if size_of::<S::m32s>() == size_of::<u16>() {
        return u32::from(pulp::bytemuck::cast::<S::m32s, u16>(mask));
    }
    if simd.first_true_m32s(mask) >= S::F32_LANES {
        return 0;
    }
    let powers = S::as_simd_f32s(&POWERS).0[0];
    simd.reduce_sum_f32s(simd.select_f32s(mask, powers, simd.splat_f32s(0.0))) as u32
}

/// Sums for `Q` rows of one panel and all of another, in `V` vectors each.
pub(super) type Table<S, const V: usize, const Q: usize> = [[<S as Simd>::f32s; V]; Q];

#[inline(always)]
fn add<S: Simd, const V: usize, const Q: usize>(simd: S, a: Table<S, V, Q>, b: Table<S, V, Q>) -> Table<S, V, Q> {
    let mut sums = a;
    for q in 0..Q {
        for v in 0..V {
            sums[q][v] = simd.add_f32s(a[q][v], b[q][v]);
        }
    }
    sums
}

/// M of the rows `first .. first + Q` of `ones` and those of `others`, over numeric features.
///
/// It goes from one whole table of sums to the next, with nothing in between that can fail: so they stay
/// in registers. (Changed in place, each sum is also stored to memory, which takes 4 times as long.)
#[inline(always)]
fn common<S: Simd, const V: usize, const Q: usize, const PRODUCT: bool>(
    simd: S,
    others: &[f32],
    ones: &[f32],
    first: usize,
) -> Table<S, V, Q> {
    let mut sums = [[simd.splat_f32s(0.0); V]; Q];
    for (others, ones) in others.as_chunks::<LANES>().0.iter().zip(ones.as_chunks::<LANES>().0) {
        let others = line::<S, V>(simd, others);
        let Some(ones) = ones[first..].first_chunk::<Q>() else { break };
        let mut next = sums;
        for q in 0..Q {
            let one = simd.splat_f32s(ones[q]);
            for v in 0..V {
                next[q][v] = if PRODUCT {
                    simd.mul_add_e_f32s(others[v], one, sums[q][v])
                } else {
                    simd.add_f32s(sums[q][v], simd.min_f32s(others[v], one))
                };
            }
        }
        sums = next;
    }
    sums
}

/// The same over nominal features, with half the weight of each.
#[inline(always)]
fn alike<S: Simd, const V: usize, const Q: usize>(
    simd: S,
    others: &[f32],
    ones: &[f32],
    halves: &[f32],
    first: usize,
) -> Table<S, V, Q> {
    let mut sums = [[simd.splat_f32s(0.0); V]; Q];
    let nothing = simd.splat_f32s(0.0);
    for ((others, ones), half) in others.as_chunks::<LANES>().0.iter().zip(ones.as_chunks::<LANES>().0).zip(halves) {
        let (others, half) = (line::<S, V>(simd, others), simd.splat_f32s(*half));
        let Some(ones) = ones[first..].first_chunk::<Q>() else { break };
        let mut next = sums;
        for q in 0..Q {
            let one = simd.splat_f32s(ones[q]);
            for v in 0..V {
                let both = simd.select_f32s(simd.equal_f32s(others[v], one), half, nothing);
                next[q][v] = simd.add_f32s(sums[q][v], both);
            }
        }
        sums = next;
    }
    sums
}

impl Measure<'_> {
    /// `V` vectors hold a line; `Q` rows of the first panel are measured together.
    #[inline(always)]
    fn vectors<S: Simd, const V: usize, const Q: usize>(&mut self, simd: S) -> u16 {
        let n_whole = self.sight.one.values.len() / LANES;
        let minus_two = simd.splat_f32s(-2.0);
        let sums = line::<S, V>(simd, self.sight.other.sums);
        let mut passed = 0;
        for first in (0..LANES).step_by(Q) {
            let mut common = [[simd.splat_f32s(0.0); V]; Q];
            for start in (0..n_whole).step_by(RUN) {
                let run = self.run_of::<S, V, Q>(simd, first, start, (start + RUN).min(n_whole));
                common = add::<S, V, Q>(simd, common, run);
            }
            let lacks = !self.sight.layout.lacking.is_empty();
            let expected = if lacks { self.lacking_of::<S, V, Q>(simd, first) } else { common };
            for q in 0..Q {
                let sum = simd.splat_f32s(self.sight.one.sums[first + q]);
                let mut distances = sums;
                for v in 0..V {
                    let apart = simd.mul_add_f32s(common[q][v], minus_two, simd.add_f32s(sums[v], sum));
                    distances[v] = if lacks { simd.add_f32s(apart, expected[q][v]) } else { apart };
                }
                passed |= u16::from(self.passes::<S, V>(simd, first + q, distances)) << (first + q);
            }
        }
        passed
    }

    /// M of the features from `start` to `end`.
    #[inline(always)]
    fn run_of<S: Simd, const V: usize, const Q: usize>(
        &self,
        simd: S,
        first: usize,
        start: usize,
        end: usize,
    ) -> Table<S, V, Q> {
        let n_numeric = self.sight.layout.n_numeric.clamp(start, end);
        let (numeric, nominal) = (start * LANES..n_numeric * LANES, n_numeric * LANES..end * LANES);
        let (others, ones) = (self.sight.other.values, self.sight.one.values);
        let sums = match self.sight.layout.common {
            Common::Least => common::<S, V, Q, false>(simd, &others[numeric.clone()], &ones[numeric], first),
            Common::Product => common::<S, V, Q, true>(simd, &others[numeric.clone()], &ones[numeric], first),
        };
        if nominal.is_empty() {
            return sums;
        }
        let halves = &self.sight.layout.halves[n_numeric - self.sight.layout.n_numeric..];
        let same = alike::<S, V, Q>(simd, &others[nominal.clone()], &ones[nominal], halves, first);
        add::<S, V, Q>(simd, sums, same)
    }

    /// The part of the distance that features make which miss values.
    #[inline(always)]
    fn lacking_of<S: Simd, const V: usize, const Q: usize>(&self, simd: S, first: usize) -> Table<S, V, Q> {
        let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
        let mut apart = [[zero; V]; Q];
        for (number, lacking) in self.sight.layout.lacking.iter().enumerate() {
            let at = number * LANES..(number + 1) * LANES;
            let (others, ones) =
                (line::<S, V>(simd, &self.sight.other.lacking[at.clone()]), &self.sight.one.lacking[at]);
            // What a missing value of one side is expected to differ by from those of the other.
            let of_ones = self.expected(self.sight.one, number, self.sight.other.class);
            let of_others = line::<S, V>(simd, self.expected(self.sight.other, number, self.sight.one.class));
            for q in 0..Q {
                let value = simd.splat_f32s(ones[first + q]);
                let expected = simd.splat_f32s(of_ones[first + q]);
                for v in 0..V {
                    let difference = match (ones[first + q].is_nan(), lacking.nominal) {
                        (true, _) => of_others[v],
                        (false, true) => simd.select_f32s(simd.equal_f32s(others[v], value), zero, one),
                        (false, false) => simd.abs_f32s(simd.sub_f32s(others[v], value)),
                    };
                    let known = simd.equal_f32s(others[v], others[v]);
                    let expected = if ones[first + q].is_nan() { difference } else { expected };
                    let difference = simd.select_f32s(known, difference, expected);
                    apart[q][v] = simd.add_f32s(apart[q][v], difference);
                }
            }
        }
        apart
    }

    /// Whether some of `distances`, which are those of row `row` of the first panel, passes a gate; if so,
    /// writes down which.
    #[inline(always)]
    fn passes<S: Simd, const V: usize>(&mut self, simd: S, row: usize, distances: [S::f32s; V]) -> bool {
        let gate = simd.splat_f32s(self.sight.gates[row]);
        let others = line::<S, V>(simd, self.sight.other_gates.unwrap_or(&[f32::MIN; LANES]));
        let (mut hits, mut other_hits) = (0u32, 0u32);
        for v in 0..V {
            let hit = simd.less_than_or_equal_f32s(distances[v], gate);
            let other_hit = simd.less_than_or_equal_f32s(distances[v], others[v]);
            hits |= word(simd, hit) << (v * S::F32_LANES);
            other_hits |= word(simd, other_hit) << (v * S::F32_LANES);
        }
        let any = hits | other_hits != 0;
        if any {
            (self.block.hits[row], self.block.other_hits[row]) = (hits as u16, other_hits as u16);
            let out = S::as_mut_simd_f32s(&mut self.block.distances[row]).0;
            out.copy_from_slice(&distances);
        }
        any
    }

    /// The differences of a panel's rows from an unknown value of `class`, for the feature number
    /// `lacking` of those that miss values; zeros if no row of the class misses it.
    #[inline(always)]
    fn expected<'b>(&self, panel: Panel<'b>, lacking: usize, class: usize) -> &'b [f32] {
        const NOTHING: &[f32] = &[0.0; LANES];
        match self.sight.layout.slot(lacking, class) {
            Some(slot) => &panel.expected[slot * LANES..(slot + 1) * LANES],
            None => NOTHING,
        }
    }

    /// The same without vectors of a known width: loops over lanes that the compiler may widen.
    #[inline(always)]
    fn lanes(&mut self) -> u16 {
        let n_whole = self.sight.one.values.len() / LANES;
        let mut passed = 0;
        for row in 0..LANES {
            let mut common = [0f32; LANES];
            for start in (0..n_whole).step_by(RUN) {
                let mut run = [0f32; LANES];
                for feature in start..(start + RUN).min(n_whole) {
                    let one = self.sight.one.values[feature * LANES + row];
                    let half = feature
                        .checked_sub(self.sight.layout.n_numeric)
                        .map(|nominal| self.sight.layout.halves[nominal]);
                    let others: &[f32; LANES] =
                        self.sight.other.values[feature * LANES..][..LANES].try_into().expect("LANES of them");
                    for (sum, &other) in run.iter_mut().zip(others) {
                        *sum += match (half, self.sight.layout.common) {
                            (Some(half), _) if other == one => half,
                            (Some(_), _) => 0.0,
                            (None, Common::Product) => other * one,
                            (None, Common::Least) if other < one => other,
                            (None, Common::Least) => one,
                        };
                    }
                }
                common.iter_mut().zip(run).for_each(|(sum, run)| *sum += run);
            }
            let expected = self.lacking_lanes(row);
            let gate = self.sight.gates[row];
            let (mut hits, mut other_hits) = (0u16, 0u16);
            for lane in 0..LANES {
                let distance =
                    (self.sight.other.sums[lane] + self.sight.one.sums[row]) - 2.0 * common[lane] + expected[lane];
                self.block.distances[row][lane] = distance;
                hits |= u16::from(distance <= gate) << lane;
                other_hits |= u16::from(self.sight.other_gates.is_some_and(|gates| distance <= gates[lane])) << lane;
            }
            (self.block.hits[row], self.block.other_hits[row]) = (hits, other_hits);
            passed |= u16::from(hits | other_hits != 0) << row;
        }
        passed
    }

    #[inline(always)]
    fn lacking_lanes(&self, row: usize) -> [f32; LANES] {
        let mut apart = [0f32; LANES];
        for (number, lacking) in self.sight.layout.lacking.iter().enumerate() {
            let one = self.sight.one.lacking[number * LANES + row];
            for (lane, apart) in apart.iter_mut().enumerate() {
                let other = self.sight.other.lacking[number * LANES + lane];
                *apart += if one.is_nan() {
                    self.expected(self.sight.other, number, self.sight.one.class)[lane]
                } else if other.is_nan() {
                    self.expected(self.sight.one, number, self.sight.other.class)[row]
                } else if lacking.nominal {
                    f32::from(u8::from(one != other))
                } else {
                    (one - other).abs()
                };
            }
        }
        apart
    }
}
