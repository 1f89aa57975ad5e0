//! Distances of 16 rows from 16 others, with the widest vectors that the machine has.
//!
//! ```text
//! for each feature:                     the inner loop, over the features of two panels
//!     row := 16 values of one panel     one vector, two, or four
//!     for each query of a group:        as many as registers hold sums for
//!         M[query] += min(row, value of the other panel's row, to all lanes)
//! ```
//!
//! Nothing is added up across a vector, and a value loaded serves as many rows as a vector is wide.

use pulp::{Arch, Simd, WithSimd};

use super::panels::{LANES, Layout, Panel, RUN};

/// Distances between the rows of two panels: a line for each row of the first.
pub(crate) type Block = [[f32; LANES]; LANES];

/// The work on two panels.
pub(crate) struct Measure<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) one: Panel<'a>,
    pub(crate) other: Panel<'a>,
    /// For each row of `one`, the distance that a row of `other` may have at most to matter.
    pub(crate) gates: &'a [f32; LANES],
    /// The same for the rows of `other`; `None` if they do not ask.
    pub(crate) other_gates: Option<&'a [f32; LANES]>,
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

/// The vectors of a panel's line.
#[inline(always)]
fn line<S: Simd, const V: usize>(values: &[f32]) -> [S::f32s; V] {
    let vectors = S::as_simd_f32s(values).0;
    std::array::from_fn(|v| vectors[v])
}

impl Measure<'_> {
    /// `V` vectors hold a line; `Q` rows of the first panel are measured together.
    #[inline(always)]
    fn vectors<S: Simd, const V: usize, const Q: usize>(&mut self, simd: S) -> u16 {
        let n_whole = self.one.values.len() / LANES;
        let mut passed = 0;
        for first in (0..LANES).step_by(Q) {
            let mut common = [[simd.splat_f32s(0.0); V]; Q];
            for start in (0..n_whole).step_by(RUN) {
                let run = self.run_of::<S, V, Q>(simd, first, start, (start + RUN).min(n_whole));
                for (common, run) in common.iter_mut().flatten().zip(run.iter().flatten()) {
                    *common = simd.add_f32s(*common, *run);
                }
            }
            let expected = self.lacking_of::<S, V, Q>(simd, first);
            for query in 0..Q {
                let sum = simd.splat_f32s(self.one.sums[first + query]);
                let sums = line::<S, V>(self.other.sums);
                let minus_two = simd.splat_f32s(-2.0);
                let distances: [S::f32s; V] = std::array::from_fn(|v| {
                    let apart = simd.mul_add_f32s(common[query][v], minus_two, simd.add_f32s(sums[v], sum));
                    simd.add_f32s(apart, expected[query][v])
                });
                passed |= u16::from(self.passes(simd, first + query, distances)) << (first + query);
                let out = S::as_mut_simd_f32s(&mut self.block[first + query]).0;
                out.iter_mut().zip(distances).for_each(|(out, distance)| *out = distance);
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
    ) -> [[S::f32s; V]; Q] {
        let n_numeric = self.layout.n_numeric.clamp(start, end);
        let mut common = [[simd.splat_f32s(0.0); V]; Q];
        let numeric = start * LANES..n_numeric * LANES;
        let lines = self.other.values[numeric.clone()].chunks_exact(LANES);
        for (others, ones) in lines.zip(self.one.values[numeric].chunks_exact(LANES)) {
            let (others, ones) = (line::<S, V>(others), &ones[first..first + Q]);
            for query in 0..Q {
                let one = simd.splat_f32s(ones[query]);
                for v in 0..V {
                    common[query][v] = simd.add_f32s(common[query][v], simd.min_f32s(others[v], one));
                }
            }
        }
        let (half, nothing) = (simd.splat_f32s(0.5), simd.splat_f32s(0.0));
        let nominal = n_numeric * LANES..end * LANES;
        let lines = self.other.values[nominal.clone()].chunks_exact(LANES);
        for (others, ones) in lines.zip(self.one.values[nominal].chunks_exact(LANES)) {
            let (others, ones) = (line::<S, V>(others), &ones[first..first + Q]);
            for query in 0..Q {
                let one = simd.splat_f32s(ones[query]);
                for v in 0..V {
                    let same = simd.equal_f32s(others[v], one);
                    common[query][v] = simd.add_f32s(common[query][v], simd.select_f32s(same, half, nothing));
                }
            }
        }
        common
    }

    /// The part of the distance that features make which miss values.
    #[inline(always)]
    fn lacking_of<S: Simd, const V: usize, const Q: usize>(&self, simd: S, first: usize) -> [[S::f32s; V]; Q] {
        let zero = simd.splat_f32s(0.0);
        let mut apart = [[zero; V]; Q];
        for (number, lacking) in self.layout.lacking.iter().enumerate() {
            let at = number * LANES..(number + 1) * LANES;
            let (others, ones) = (line::<S, V>(&self.other.lacking[at.clone()]), &self.one.lacking[at]);
            // What a missing value of one side is expected to differ by from those of the other.
            let slot = |panel: &Panel<'_>, class: usize| {
                self.layout.slot(number, class).map(|slot| slot * LANES..panel.expected.len()).unwrap_or(0..0)
            };
            let of_ones = &self.one.expected[slot(&self.one, self.other.class)];
            let of_others = &self.other.expected[slot(&self.other, self.one.class)];
            for query in 0..Q {
                let value = ones[first + query];
                let differences = if value.is_nan() {
                    line::<S, V>(&of_others[..LANES])
                } else {
                    let one = simd.splat_f32s(value);
                    let expected = simd.splat_f32s(of_ones.get(first + query).copied().unwrap_or(0.0));
                    std::array::from_fn(|v| {
                        let known = simd.equal_f32s(others[v], others[v]);
                        let difference = if lacking.nominal {
                            let same = simd.equal_f32s(others[v], one);
                            simd.select_f32s(same, zero, simd.splat_f32s(1.0))
                        } else {
                            simd.abs_f32s(simd.sub_f32s(others[v], one))
                        };
                        simd.select_f32s(known, difference, expected)
                    })
                };
                for v in 0..V {
                    apart[query][v] = simd.add_f32s(apart[query][v], differences[v]);
                }
            }
        }
        apart
    }

    /// Whether some of `distances`, which are those of row `row` of the first panel, passes a gate.
    #[inline(always)]
    fn passes<S: Simd, const V: usize>(&self, simd: S, row: usize, distances: [S::f32s; V]) -> bool {
        let gate = simd.splat_f32s(self.gates[row]);
        let others = self.other_gates.map(|gates| line::<S, V>(gates));
        (0..V).any(|v| {
            let gate = others.map_or(gate, |others| simd.max_f32s(others[v], gate));
            simd.first_true_m32s(simd.less_than_or_equal_f32s(distances[v], gate)) < S::F32_LANES
        })
    }

    /// The same without vectors of a known width: loops over lanes that the compiler may widen.
    #[inline(always)]
    fn lanes(&mut self) -> u16 {
        let n_whole = self.one.values.len() / LANES;
        let mut passed = 0;
        for row in 0..LANES {
            let mut common = [0f32; LANES];
            for start in (0..n_whole).step_by(RUN) {
                let mut run = [0f32; LANES];
                for feature in start..(start + RUN).min(n_whole) {
                    let one = self.one.values[feature * LANES + row];
                    let numeric = feature < self.layout.n_numeric;
                    let others: &[f32; LANES] =
                        self.other.values[feature * LANES..][..LANES].try_into().expect("LANES of them");
                    for (sum, &other) in run.iter_mut().zip(others) {
                        *sum += if numeric {
                            if other < one { other } else { one }
                        } else if other == one {
                            0.5
                        } else {
                            0.0
                        };
                    }
                }
                common.iter_mut().zip(run).for_each(|(sum, run)| *sum += run);
            }
            let expected = self.lacking_lanes(row);
            let gate = self.gates[row];
            for lane in 0..LANES {
                let distance = (self.other.sums[lane] + self.one.sums[row]) - 2.0 * common[lane] + expected[lane];
                self.block[row][lane] = distance;
                let gate = self.other_gates.map_or(gate, |gates| gate.max(gates[lane]));
                passed |= u16::from(distance <= gate) << row;
            }
        }
        passed
    }

    #[inline(always)]
    fn lacking_lanes(&self, row: usize) -> [f32; LANES] {
        let mut apart = [0f32; LANES];
        for (number, lacking) in self.layout.lacking.iter().enumerate() {
            let one = self.one.lacking[number * LANES + row];
            for (lane, apart) in apart.iter_mut().enumerate() {
                let other = self.other.lacking[number * LANES + lane];
                let expected = |panel: &Panel<'_>, class: usize, lane: usize| {
                    self.layout.slot(number, class).map_or(0.0, |slot| panel.expected[slot * LANES + lane])
                };
                *apart += if one.is_nan() {
                    expected(&self.other, self.one.class, lane)
                } else if other.is_nan() {
                    expected(&self.one, self.other.class, row)
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
