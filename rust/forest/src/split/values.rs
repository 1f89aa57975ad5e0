//! The values of the examples of a node, copied together in whole vectors.

use pulp::{Arch, Simd, WithSimd};

use super::examples::Examples;
use crate::criterion::Criterion;

/// The number of vectors that hold the sums, if components are dense, known for all rows, and few.
#[inline(always)]
pub(super) fn vectors_of<S: Simd>(criterion: &Criterion) -> Option<usize> {
    let vectors = criterion.n_whole.div_ceil(S::F64_LANES).next_power_of_two();
    (criterion.indicator_weight.is_empty() && !criterion.is_partial() && vectors <= 4).then_some(vectors)
}

/// The number of lanes of the vectors that hold the sums, if components are dense, known for all rows, and few.
pub(super) fn width(arch: Arch, criterion: &Criterion) -> Option<usize> {
    struct Width<'a>(&'a Criterion);
    impl WithSimd for Width<'_> {
        type Output = Option<usize>;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
            vectors_of::<S>(self.0).map(|vectors| vectors * S::F64_LANES)
        }
    }
    arch.dispatch(Width(criterion))
}

/// The component values of each example of a node, times its count, in whole vectors.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) width: usize,
    /// n_examples x width; zeros beyond the components.
    pub(super) cells: Vec<f64>,
}

impl Values {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
    }

    /// Returns true if the values are set.
    pub(super) fn is_set(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Sets the values of `examples`, if components are dense, known for all rows, and few.
    pub(super) fn set(&mut self, arch: Arch, criterion: &Criterion, examples: Examples<'_>) {
        self.clear();
        let Some(width) = width(arch, criterion) else { return };
        self.width = width;
        self.cells.reserve(examples.rows.len() * width);
        for (end, (&row, &count)) in (width..).step_by(width).zip(examples.rows.iter().zip(examples.counts)) {
            let count = f64::from(count);
            self.cells.extend(examples.block.dense(row as usize).iter().map(|value| count * value));
            self.cells.resize(end, 0.0);
        }
    }

    #[inline(always)]
    pub(super) fn at<S: Simd, const VECTORS: usize>(&self, position: usize) -> [S::f64s; VECTORS] {
        let (vectors, _) = S::as_simd_f64s(&self.cells[position * self.width..(position + 1) * self.width]);
        std::array::from_fn(|v| vectors[v])
    }
}
