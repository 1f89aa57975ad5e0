//! The distance kernel for benchmarks; not part of the stable interface.

use std::hint::black_box;

use pulp::{Arch, Simd, WithSimd};

use crate::kernel::Measure;
use crate::layout::{LANES, Layout};
use crate::panels::Panels;
use crate::rows::Rows;
use crate::space::{Shape, Space};
use crate::space_panels::{layout_of, panels_of};

/// Two panels of numeric features.
///
/// ```
/// use ferrank_neighbors::internals::Pair;
///
/// // 16 rows of zeros are in one panel, 16 rows of ones in the other.
/// let values = [vec![0.0; 16 * 3], vec![1.0; 16 * 3]].concat();
/// assert_eq!(Pair::new(values, 3).measure(), 3.0);
/// ```
#[derive(Debug)]
pub struct Pair {
    arch: Arch,
    layout: Layout,
    panels: Panels,
}

impl Pair {
    /// Creates two panels of 32 rows of `width` values in [0, 1].
    pub fn new(values: Vec<f64>, width: usize) -> Self {
        let missing_models = (0..width).map(|_| None).collect();
        let space = Space::new(vec![Shape::Numeric; width], missing_models, Vec::new(), 1);
        let layout = layout_of(&space);
        let panels = panels_of(&layout, &space, &Rows::from_values(width, &values));
        Pair { arch: Arch::new(), layout, panels }
    }

    /// Measures all distances between the two panels; returns the first.
    pub fn measure(&self) -> f32 {
        let panel = |number| self.panels.panel(&self.layout, number);
        let mut out = [[0.0; LANES]; LANES];
        self.arch.dispatch(Measure::new(&self.layout, panel(0), panel(1), &mut out));
        black_box(&out)[0][0]
    }
}

/// Sums of [`peak`]; enough that additions do not wait for each other.
const SUMS: usize = 16;

/// Runs the kernel's arithmetic, adding a minimum to a sum, `rounds` times on registers alone. Returns the number of
/// values, and their sum.
pub fn peak(rounds: usize) -> (usize, f32) {
    struct Peak(usize);
    impl WithSimd for Peak {
        type Output = (usize, f32);
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> (usize, f32) {
            let mut sums = [simd.splat_f32s(0.0); SUMS];
            let mut values = [simd.splat_f32s(0.0); SUMS / 2];
            for (n, value) in values.iter_mut().enumerate() {
                *value = simd.splat_f32s(black_box(n as f32));
            }
            // Changes in each round, or the compiler would compute the minimum once.
            let mut other = values[0];
            for _ in 0..self.0 {
                let mut next = sums;
                for n in 0..SUMS {
                    next[n] = simd.add_f32s(sums[n], simd.min_f32s(values[n % (SUMS / 2)], other));
                }
                (sums, other) = (next, sums[0]);
            }
            let mut total = 0.0;
            for sum in sums {
                total += simd.reduce_sum_f32s(sum);
            }
            (self.0 * SUMS * S::F32_LANES, total)
        }
    }
    Arch::new().dispatch(Peak(rounds))
}
