//! The distance kernel: 16 rows by 16 rows, on the widest vectors of the machine.
//!
//! ```text
//! for each feature:                     the inner loop, over the features of two panels
//!     row := 16 values of one panel     one vector, two, or four
//!     for each query of a group:        as many as registers hold sums for
//!         M[query] += common(row, value of the query)
//! ```
//!
//! There are no sums across a vector, and each value loaded is used for all rows of a vector.
//!
//! ```
//! use ferrank_neighbors::kernel::{Lines, Measure};
//! use ferrank_neighbors::layout::{LANES, Layout};
//! use ferrank_neighbors::panels::{Cells, Panel, Panels};
//! use pulp::Arch;
//!
//! // Rows 0, 1 and 2, all of class 0, have the values 0, 2 and 4 in the only feature. A is their sum.
//! let layout = Layout { whole: vec![0], n_numeric: 1, n_classes: 1, ..Layout::default() };
//! let panels = Panels::new(&layout, vec![vec![0, 1, 2]], |number, cells: &mut Cells<'_>| {
//!     cells.values[0] = 2.0 * number as f32;
//!     cells.values[0]
//! });
//! let panel: Panel<'_> = panels.panel(&layout, 0);
//! assert_eq!(panel.values.get().values[..3], [0.0, 2.0, 4.0]);
//! let mut lines: Lines = [[0.0; LANES]; LANES];
//! Arch::new().dispatch(Measure::new(&layout, panel, panel, &mut lines));
//! assert_eq!(lines[2][..3], [4.0, 2.0, 0.0]);
//! // The rest of the panel is padding.
//! assert_eq!(lines[2][3], f32::INFINITY);
//! ```

use pulp::{Simd, WithSimd};

use super::layout::{Common, LANES, LONG_RUN, Layout, RUN};
use super::panels::{ByFeature, Panel};
use super::vectors::{Table, line};

/// Distances between the rows of two panels: a line for each row of the first.
pub type Lines = [[f32; LANES]; LANES];

/// Measures all pairs of two panels.
///
/// ```
/// use ferrank_neighbors::kernel::Measure;
/// use ferrank_neighbors::layout::{Common, LANES, Layout};
/// use ferrank_neighbors::panels::Panels;
/// use pulp::Arch;
///
/// // With products, distances are sums of squared differences; A is the sum of a row's squares.
/// let points = [[0.0, 1.0], [3.0, 5.0]];
/// let layout = Layout { common: Common::Product, whole: vec![0, 1], n_numeric: 2, n_classes: 1, ..Layout::default() };
/// let panels = Panels::new(&layout, vec![vec![0, 1]], |number, cells| {
///     cells.values.copy_from_slice(&points[number as usize]);
///     cells.values.iter().map(|value| value * value).sum()
/// });
/// let (panel, mut lines) = (panels.panel(&layout, 0), [[0.0; LANES]; LANES]);
/// Arch::new().dispatch(Measure::new(&layout, panel, panel, &mut lines));
/// assert_eq!((lines[0][1], lines[1][1]), (25.0, 0.0));
/// ```
pub struct Measure<'a> {
    layout: &'a Layout,
    one: Panel<'a>,
    other: Panel<'a>,
    /// Values of both.
    values: [&'a [f32]; 2],
    by_feature: [ByFeature<'a>; 2],
    /// Receives the distances; infinite for padding.
    out: &'a mut Lines,
}

impl<'a> Measure<'a> {
    /// Prepares the distances between the rows of panels `one` and `other`, to be written to `out`.
    pub fn new(layout: &'a Layout, one: Panel<'a>, other: Panel<'a>, out: &'a mut Lines) -> Self {
        let by_feature = [one.values.get(), other.values.get()];
        Measure { layout, one, other, values: by_feature.map(|values| values.values), by_feature, out }
    }
}

impl WithSimd for Measure<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match S::F32_LANES {
            16 => self.vectors::<S, 1, 16>(simd),
            8 => self.vectors::<S, 2, 4>(simd),
            4 => self.vectors::<S, 4, 2>(simd),
            _ => self.lanes(),
        }
    }
}

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

/// M of the rows `first .. first + Q` of `ones` and all rows of `others`, over numeric features.
///
/// Each step makes a new table of sums and nothing in it can panic, so the sums stay in registers. Sums changed in place
/// are also stored to memory, which takes 4 times as long.
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

/// M over nominal features: half the weight of each feature with equal values.
#[inline(always)]
fn common_nominal<S: Simd, const V: usize, const Q: usize>(
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
    /// Measures `Q` rows of the first panel at a time; `V` vectors hold a line.
    #[inline(always)]
    fn vectors<S: Simd, const V: usize, const Q: usize>(&mut self, simd: S) {
        let n_whole = self.values[0].len() / LANES;
        let minus_two = simd.splat_f32s(-2.0);
        let sums = line::<S, V>(simd, self.other.sums);
        for first in (0..LANES).step_by(Q) {
            let mut common = [[simd.splat_f32s(0.0); V]; Q];
            for start in (0..n_whole).step_by(LONG_RUN) {
                let (mut group, end) = ([[simd.splat_f32s(0.0); V]; Q], (start + LONG_RUN).min(n_whole));
                for start in (start..end).step_by(RUN) {
                    let run = self.run_of::<S, V, Q>(simd, first, start, (start + RUN).min(end));
                    group = add::<S, V, Q>(simd, group, run);
                }
                common = add::<S, V, Q>(simd, common, group);
            }
            let has_missing = !self.layout.with_missing.is_empty();
            let expected = if has_missing { self.missing_lines::<S, V, Q>(simd, first) } else { common };
            for q in 0..Q {
                let sum = simd.splat_f32s(self.one.sums[first + q]);
                let out = S::as_mut_simd_f32s(&mut self.out[first + q]).0;
                for v in 0..V {
                    let difference = simd.mul_add_f32s(common[q][v], minus_two, simd.add_f32s(sums[v], sum));
                    out[v] = if has_missing { simd.add_f32s(difference, expected[q][v]) } else { difference };
                }
            }
        }
    }

    /// M over the features `start .. end`.
    #[inline(always)]
    fn run_of<S: Simd, const V: usize, const Q: usize>(
        &self,
        simd: S,
        first: usize,
        start: usize,
        end: usize,
    ) -> Table<S, V, Q> {
        let n_numeric = self.layout.n_numeric.clamp(start, end);
        let (numeric, nominal) = (start * LANES..n_numeric * LANES, n_numeric * LANES..end * LANES);
        let [ones, others] = self.values;
        let sums = match self.layout.common {
            Common::Least => common::<S, V, Q, false>(simd, &others[numeric.clone()], &ones[numeric], first),
            Common::Product => common::<S, V, Q, true>(simd, &others[numeric.clone()], &ones[numeric], first),
        };
        if nominal.is_empty() {
            return sums;
        }
        let halves = &self.layout.halves[n_numeric - self.layout.n_numeric..];
        let same = common_nominal::<S, V, Q>(simd, &others[nominal.clone()], &ones[nominal], halves, first);
        add::<S, V, Q>(simd, sums, same)
    }

    /// Differences in the features with missing values.
    #[inline(always)]
    fn missing_lines<S: Simd, const V: usize, const Q: usize>(&self, simd: S, first: usize) -> Table<S, V, Q> {
        let zero = simd.splat_f32s(0.0);
        // All bits but the sign; `abs_f32s` is not inlined.
        let magnitude = simd.splat_f32s(f32::from_bits(u32::MAX >> 1));
        let (mut sums, all) = ([[zero; V]; Q], self.by_feature);
        for (number, with_missing) in self.layout.with_missing.iter().enumerate() {
            let at = number * LANES..(number + 1) * LANES;
            let (others, ones) = (line::<S, V>(simd, &all[1].with_missing[at.clone()]), &all[0].with_missing[at]);
            // Expected differences from a missing value of the other side.
            let of_ones = self.expected(0, number);
            let of_others = line::<S, V>(simd, self.expected(1, number));
            let weight = simd.splat_f32s(with_missing.weight);
            for q in 0..Q {
                let value = simd.splat_f32s(ones[first + q]);
                let expected = simd.splat_f32s(of_ones[first + q]);
                for v in 0..V {
                    let difference = match (ones[first + q].is_nan(), with_missing.nominal) {
                        (true, _) => of_others[v],
                        (false, true) => simd.select_f32s(simd.equal_f32s(others[v], value), zero, weight),
                        (false, false) => simd.and_f32s(magnitude, simd.sub_f32s(others[v], value)),
                    };
                    let known = simd.equal_f32s(others[v], others[v]);
                    let expected = if ones[first + q].is_nan() { difference } else { expected };
                    let difference = simd.select_f32s(known, difference, expected);
                    sums[q][v] = simd.add_f32s(sums[q][v], difference);
                }
            }
        }
        sums
    }

    /// Expected differences between the rows of the first panel (`which` = 0) or the second (1) and missing values of the
    /// other, for feature number `with_missing` of the features with missing values.
    #[inline(always)]
    fn expected(&self, which: usize, with_missing: usize) -> &[f32] {
        let class = [self.other.class, self.one.class][which];
        let line = self.layout.line(class) * self.layout.with_missing.len() + with_missing;
        &self.by_feature[which].expected[line * LANES..(line + 1) * LANES]
    }

    /// Measures without vectors of a known width: loops over lanes that the compiler may vectorize.
    #[inline(always)]
    fn lanes(&mut self) {
        let n_whole = self.values[0].len() / LANES;
        for row in 0..LANES {
            let mut common = [0f32; LANES];
            let mut group = [0f32; LANES];
            for start in (0..n_whole).step_by(RUN) {
                let (mut run, end) = ([0f32; LANES], (start + RUN).min(n_whole));
                for feature in start..end {
                    let one = self.values[0][feature * LANES + row];
                    let half = feature.checked_sub(self.layout.n_numeric).map(|nominal| self.layout.halves[nominal]);
                    let others: &[f32; LANES] =
                        self.values[1][feature * LANES..][..LANES].try_into().expect("LANES of them");
                    for (sum, &other) in run.iter_mut().zip(others) {
                        *sum += match (half, self.layout.common) {
                            (Some(half), _) if other == one => half,
                            (Some(_), _) => 0.0,
                            (None, Common::Product) => other * one,
                            (None, Common::Least) if other < one => other,
                            (None, Common::Least) => one,
                        };
                    }
                }
                group.iter_mut().zip(run).for_each(|(sum, run)| *sum += run);
                if end.is_multiple_of(LONG_RUN) || end == n_whole {
                    common.iter_mut().zip(group).for_each(|(sum, group)| *sum += group);
                    group = [0.0; LANES];
                }
            }
            let expected = self.missing_lanes(row);
            for lane in 0..LANES {
                self.out[row][lane] =
                    (self.other.sums[lane] + self.one.sums[row]) - 2.0 * common[lane] + expected[lane];
            }
        }
    }

    #[inline(always)]
    fn missing_lanes(&self, row: usize) -> [f32; LANES] {
        let mut sums = [0f32; LANES];
        for (number, with_missing) in self.layout.with_missing.iter().enumerate() {
            let [ones, others] = self.by_feature.map(|values| &values.with_missing[number * LANES..][..LANES]);
            let one = ones[row];
            for (lane, sum) in sums.iter_mut().enumerate() {
                let other = others[lane];
                *sum += if one.is_nan() {
                    self.expected(1, number)[lane]
                } else if other.is_nan() {
                    self.expected(0, number)[row]
                } else if with_missing.nominal {
                    if one == other { 0.0 } else { with_missing.weight }
                } else {
                    (one - other).abs()
                };
            }
        }
        sums
    }
}
