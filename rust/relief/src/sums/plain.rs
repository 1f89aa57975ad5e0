//! The kernel that adds weighted differences of plain rows: all features numeric, no value missing.

use pulp::{Arch, Simd, WithSimd};

use ferrank_neighbors::context::DistanceContext;

/// Positions of a query and its neighbor, and the weight of their differences in each vector.
pub(super) type Position<'a> = (u32, u32, &'a [f64]);

/// Pairs and the vectors they are added to, grouped by the number of vectors that are summed together.
#[derive(Default)]
pub(super) struct Parts<'a> {
    one: Vec<Part<'a, 1>>,
    two: Vec<Part<'a, 2>>,
    four: Vec<Part<'a, 4>>,
    eight: Vec<Part<'a, 8>>,
}

/// The pairs to add to `N` vectors of a block, in order.
struct Part<'a, const N: usize> {
    terms: Vec<Term<N>>,
    /// N x n_features
    sums: &'a mut [f64],
}

/// A pair to add to `N` vectors: positions of query and row, and a weight for each vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term<const N: usize> {
    query: u32,
    row: u32,
    weights: [f64; N],
}

impl<'a, const N: usize> Part<'a, N> {
    /// Selects the weights of the vectors from number `first` on, whose sums are `sums`.
    fn new(positions: &[Position<'_>], first: usize, sums: &'a mut [f64]) -> Self {
        let terms = positions.iter().map(|&(query, row, weights)| {
            let weights = *weights[first..].first_chunk().expect("a weight for each vector");
            Term { query, row, weights }
        });
        Part { terms: terms.filter(|term| term.weights != [0.0; N]).collect(), sums }
    }
}

impl<'a> Parts<'a> {
    /// Adds the pairs at `positions` to each vector of `sums`, which are `n_features` long.
    pub(super) fn push(&mut self, positions: &[Position<'_>], sums: &'a mut [f64], n_features: usize) {
        let (mut first, n_vectors) = (0, sums.len() / n_features);
        let mut rest = sums;
        while first < n_vectors {
            let n = [8, 4, 2].into_iter().find(|&n| first + n <= n_vectors).unwrap_or(1);
            let (sums, after) = rest.split_at_mut(n * n_features);
            match n {
                8 => self.eight.push(Part::new(positions, first, sums)),
                4 => self.four.push(Part::new(positions, first, sums)),
                2 => self.two.push(Part::new(positions, first, sums)),
                _ => self.one.push(Part::new(positions, first, sums)),
            }
            (first, rest) = (first + n, after);
        }
    }

    /// Adds all pairs.
    pub(super) fn add(self, arch: Arch, context: DistanceContext<'_>) {
        let Parts { one, two, four, eight } = self;
        arch.dispatch(AddPlain { context, parts: one });
        arch.dispatch(AddPlain { context, parts: two });
        arch.dispatch(AddPlain { context, parts: four });
        arch.dispatch(AddPlain { context, parts: eight });
    }
}

/// Adds weighted differences, without fused operations: machines that have none would round differently.
///
/// The outer loop is over slices of a few features, the inner one over all pairs. The sums of a slice stay in registers,
/// and that slice of the rows, which many pairs share, in the cache.
struct AddPlain<'a, 'b, const N: usize> {
    context: DistanceContext<'a>,
    parts: Vec<Part<'b, N>>,
}

impl<const N: usize> WithSimd for AddPlain<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // Half of the registers: AVX-512 has 32, others 16.
        let most = if S::F64_LANES == 8 { 16 } else { 8 };
        let mut start = 0;
        if 16 * N <= most {
            start = self.slices::<S, 16>(simd, start);
        }
        if 8 * N <= most {
            start = self.slices::<S, 8>(simd, start);
        }
        if 4 * N <= most {
            start = self.slices::<S, 4>(simd, start);
        }
        if 2 * N <= most {
            start = self.slices::<S, 2>(simd, start);
        }
        start = self.slices::<S, 1>(simd, start);
        self.rest(simd, start);
    }
}

impl<const N: usize> AddPlain<'_, '_, N> {
    /// Adds slices of `V` vectors of features from `start` on; returns where less than a slice is left.
    #[inline(always)]
    fn slices<S: Simd, const V: usize>(&mut self, simd: S, mut start: usize) -> usize {
        let (width, wide) = (self.context.rows.width, V * S::F64_LANES);
        let (queries, rows) = (self.context.queries.values(), self.context.rows.values());
        while start + wide <= width {
            for Part { terms, sums } in &mut self.parts {
                let mut slices = [[simd.splat_f64s(0.0); V]; N];
                for n in 0..N {
                    slices[n].copy_from_slice(S::as_simd_f64s(&sums[n * width + start..][..wide]).0);
                }
                for term in terms {
                    let query = &S::as_simd_f64s(&queries[term.query as usize * width + start..][..wide]).0[..V];
                    let row = &S::as_simd_f64s(&rows[term.row as usize * width + start..][..wide]).0[..V];
                    for v in 0..V {
                        let difference = simd.abs_f64s(simd.sub_f64s(query[v], row[v]));
                        for (slice, weight) in slices.iter_mut().zip(term.weights) {
                            let weighted = simd.mul_f64s(simd.splat_f64s(weight), difference);
                            slice[v] = simd.add_f64s(slice[v], weighted);
                        }
                    }
                }
                for n in 0..N {
                    S::as_mut_simd_f64s(&mut sums[n * width + start..][..wide]).0.copy_from_slice(&slices[n]);
                }
            }
            start += wide;
        }
        start
    }

    /// Adds the features from `start` on, which are less than a vector.
    #[inline(always)]
    fn rest<S: Simd>(&mut self, simd: S, start: usize) {
        let width = self.context.rows.width;
        if start == width {
            return;
        }
        let (queries, rows) = (self.context.queries.values(), self.context.rows.values());
        for Part { terms, sums } in &mut self.parts {
            let mut rests = [simd.splat_f64s(0.0); N];
            for n in 0..N {
                rests[n] = simd.partial_load_f64s(&sums[n * width..][start..width]);
            }
            for term in terms {
                let query = simd.partial_load_f64s(&queries[term.query as usize * width..][start..width]);
                let row = simd.partial_load_f64s(&rows[term.row as usize * width..][start..width]);
                let difference = simd.abs_f64s(simd.sub_f64s(query, row));
                for (rest, weight) in rests.iter_mut().zip(term.weights) {
                    let weighted = simd.mul_f64s(simd.splat_f64s(weight), difference);
                    *rest = simd.add_f64s(*rest, weighted);
                }
            }
            for n in 0..N {
                simd.partial_store_f64s(&mut sums[n * width..][start..width], rests[n]);
            }
        }
    }
}
