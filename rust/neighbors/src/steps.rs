//! Sums of the differences of many pairs in fixed point: whole numbers, which have exact sums in any order.
//!
//! A number in [0, 1] is rounded to a multiple of 2⁻³⁰, a category is its number. So a difference of two numbers is off by at
//! most 2⁻³⁰, and usually by less than a rounding error of its own: sums are as of the rounded values, which are the same in all
//! pairs.
//!
//! ```text
//! for each slice of features, list and three rows of it:
//!     d := the sum of the differences of the three from the query           below 2³², as each is at most 2³⁰
//!     sum += d                                                              modulo 2³²
//!     high += ⌊d / 2¹⁶⌋                                                     exact for as many rows as a list is cut into
//! ```
//!
//! Both determine the sum, which is between 2¹⁶ `high` and less than 2³² beyond. MultiSURF of 5,000 x 100 takes 0.8 of the time
//! that it takes with sums in f64: a vector has twice the values, and twice the rows fit a cache.

use pulp::{Arch, Simd, WithSimd};

use ferrank_runtime::pages::Large;

/// Steps in a difference of 1.
pub(super) const STEPS: f64 = (1u64 << 30) as f64;
/// Values of the widest vector; rows are padded to multiples of it.
const WIDEST: usize = 16;
/// Rows whose differences together fit 32 bits.
const TOGETHER: usize = 3;
/// Most rows for which the high halves of sums fit 32 bits.
pub(super) const RUN: usize = 1 << 16;
/// Bits of the low halves.
const LOW: u32 = 16;

/// A query and rows, the differences of which are added up; see [`AllPairs`](crate::all_pairs::AllPairs).
#[derive(Debug)]
pub struct Differences<'a> {
    /// Position of the query.
    pub query: usize,
    /// Positions of the rows.
    pub rows: &'a [u32],
    /// n_rows x n_units, or n_units for all rows.
    pub weights: &'a [f64],
    /// n_units x length of a row
    pub sums: &'a mut [f64],
}

/// The features without missing values of all rows, in fixed point.
#[derive(Debug)]
pub(super) struct StepRows {
    /// Features of a row, without padding.
    width: usize,
    stride: usize,
    /// n_rows x stride
    values: Large<u32>,
    /// stride; the largest difference of each feature.
    most: Vec<u32>,
    /// width; what a step of each feature is worth.
    units: Vec<f64>,
    /// True if there are no categories, whose numbers may differ by more than 1.
    is_numeric: bool,
}

impl StepRows {
    /// Bytes of a row of `width` features.
    pub(super) fn bytes(width: usize) -> usize {
        size_of::<u32>() * width.next_multiple_of(WIDEST)
    }

    /// Rounds the first `is_nominal.len()` values of each of the `rows`, which are `row_width` long.
    pub(super) fn new(rows: &[f64], row_width: usize, is_nominal: &[bool]) -> Self {
        let (width, n) = (is_nominal.len(), rows.len() / row_width);
        let stride = width.next_multiple_of(WIDEST);
        let mut values = Large::<u32>::zeros(n * stride);
        let units: Vec<f64> = is_nominal.iter().map(|&nominal| if nominal { 1.0 } else { 1.0 / STEPS }).collect();
        let mut most: Vec<u32> = units.iter().map(|unit| (1.0 / unit) as u32).collect();
        most.resize(stride, 0);
        for (row, out) in rows.chunks_exact(row_width).zip(values.chunks_exact_mut(stride.max(1))) {
            for ((out, value), &most) in out.iter_mut().zip(&row[..width]).zip(&most) {
                *out = (value * f64::from(most)).round_ties_even() as u32;
            }
        }
        StepRows { width, stride, values, most, units, is_numeric: !is_nominal.contains(&true) }
    }

    /// Adds the differences of each of `lists`, which has one weight, to its sums.
    pub(super) fn add(&self, arch: Arch, lists: &mut [Differences<'_>]) {
        match self.is_numeric {
            true => arch.dispatch(Add::<true> { rows: self, lists }),
            false => arch.dispatch(Add::<false> { rows: self, lists }),
        }
    }
}

/// Adds differences in slices of features, whose sums stay in registers; see the module.
struct Add<'a, 'b, const NUMERIC: bool> {
    rows: &'a StepRows,
    lists: &'a mut [Differences<'b>],
}

impl<const NUMERIC: bool> WithSimd for Add<'_, '_, NUMERIC> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut start = 0;
        // Half of the registers are for sums: AVX-512 has 32, others 16.
        if S::U32_LANES == WIDEST {
            start = self.slices::<S, 8>(simd, start);
            // What is left at once.
            match (self.rows.stride - start) / WIDEST {
                7 => start = self.slices::<S, 7>(simd, start),
                6 => start = self.slices::<S, 6>(simd, start),
                5 => start = self.slices::<S, 5>(simd, start),
                3 => start = self.slices::<S, 3>(simd, start),
                _ => {}
            }
        }
        start = self.slices::<S, 4>(simd, start);
        start = self.slices::<S, 2>(simd, start);
        self.slices::<S, 1>(simd, start);
    }
}

impl<const NUMERIC: bool> Add<'_, '_, NUMERIC> {
    /// Adds slices of `V` vectors from `start` on; returns where less than a slice is left.
    #[inline(always)]
    fn slices<S: Simd, const V: usize>(&mut self, simd: S, mut start: usize) -> usize {
        while start + V * S::U32_LANES <= self.rows.stride {
            for list in &mut *self.lists {
                let columns = start.min(self.rows.width)..(start + V * S::U32_LANES).min(self.rows.width);
                for rows in list.rows.chunks(RUN) {
                    let [sums, high] = self.rows.slice::<S, V, NUMERIC>(simd, (list.query, rows), start);
                    let [sums, high] = [&sums, &high].map(|sums| pulp::bytemuck::cast_slice::<S::u32s, u32>(sums));
                    let units = &self.rows.units[columns.clone()];
                    finish(&mut list.sums[columns.clone()], (list.weights[0], units), sums, high);
                }
            }
            start += V * S::U32_LANES;
        }
        start
    }
}

/// Adds sums, given modulo 2³² and with their high halves, times a weight and the unit of each feature.
#[inline(always)]
fn finish(out: &mut [f64], (weight, units): (f64, &[f64]), sums: &[u32], high: &[u32]) {
    let n = out.len();
    let (units, sums, high) = (&units[..n], &sums[..n], &high[..n]);
    for feature in 0..n {
        let low = sums[feature].wrapping_sub(high[feature] << LOW);
        // Both products are exact, and so is their sum.
        let sum = f64::from(high[feature]) * f64::from(1u32 << LOW) + f64::from(low);
        out[feature] += weight * (sum * units[feature]);
    }
}

impl StepRows {
    /// `V` vectors from `start` on of the row at a position.
    #[inline(always)]
    fn vectors<S: Simd, const V: usize>(&self, position: usize, start: usize) -> &[S::u32s; V] {
        S::as_simd_u32s(&self.values[position * self.stride + start..]).0.first_chunk().expect("V vectors")
    }

    /// The sums of the differences between a query and rows in `V` vectors of features from `start` on, modulo 2³², and the
    /// sums of their high halves.
    #[inline(always)]
    fn slice<S: Simd, const V: usize, const NUMERIC: bool>(
        &self,
        simd: S,
        (query, rows): (usize, &[u32]),
        start: usize,
    ) -> [[S::u32s; V]; 2] {
        let of_query = self.vectors::<S, V>(query, start);
        let most: &[S::u32s; V] = S::as_simd_u32s(&self.most[start..]).0.first_chunk().expect("V vectors");
        let mut sums = [[simd.splat_u32s(0); V]; 2];
        let (together, rest) = rows.as_chunks::<TOGETHER>();
        for rows in together {
            sums = self.add_rows::<S, V, NUMERIC, TOGETHER>(simd, (of_query, most), rows, start, sums);
        }
        for rows in rest.as_chunks::<1>().0 {
            sums = self.add_rows::<S, V, NUMERIC, 1>(simd, (of_query, most), rows, start, sums);
        }
        sums
    }

    /// Adds the differences between a query and `N` rows to sums and high halves.
    #[inline(always)]
    fn add_rows<S: Simd, const V: usize, const NUMERIC: bool, const N: usize>(
        &self,
        simd: S,
        (of_query, most): (&[S::u32s; V], &[S::u32s; V]),
        rows: &[u32; N],
        start: usize,
        [mut sums, mut high]: [[S::u32s; V]; 2],
    ) -> [[S::u32s; V]; 2] {
        let of_rows = rows.map(|row| self.vectors::<S, V>(row as usize, start));
        for v in 0..V {
            let mut together = simd.splat_u32s(0);
            for values in of_rows {
                // |a − b|, of numbers below 2³¹: a single instruction beside the difference.
                let apart = simd.sub_u32s(of_query[v], values[v]);
                let apart = simd.min_u32s(apart, simd.sub_u32s(simd.splat_u32s(0), apart));
                together = simd.add_u32s(together, if NUMERIC { apart } else { simd.min_u32s(apart, most[v]) });
            }
            sums[v] = simd.add_u32s(sums[v], together);
            high[v] = simd.add_u32s(high[v], simd.wrapping_dyn_shr_u32s(together, simd.splat_u32s(LOW)));
        }
        [sums, high]
    }
}
