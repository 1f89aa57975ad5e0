//! The kernel that adds weighted differences of rows.

use pulp::{Arch, Simd, WithSimd, bytemuck};

use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::space::{Example, difference};
use ferrank_runtime::pages::prefetch;

/// A query and its neighbor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position<'a> {
    pub(super) query: u32,
    pub(super) row: u32,
    /// True if no value of both is missing, as far as that is known.
    pub(super) is_complete: bool,
    /// n_vectors; the weight of the differences in each sum.
    pub(super) weights: &'a [f64],
    /// What the differences add to other sums.
    pub(super) changes: &'a [(u32, f64)],
}

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
    changes: Changes<'a>,
}

/// A pair to add to `N` vectors: positions of query and row, and a weight for each vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term<const N: usize> {
    query: u32,
    row: u32,
    weights: [f64; N],
    /// True if no value of both is missing, as far as that is known.
    is_complete: bool,
    /// End of what the pair adds to other sums.
    end: usize,
}

/// What pairs add to other sums, of which each pair reaches few.
#[derive(Default)]
struct Changes<'a> {
    /// The number among those that are reached, and the weight.
    terms: Vec<(u32, f64)>,
    /// Numbers of the sums that are reached.
    reached: Vec<u32>,
    /// n_others x n_features
    sums: &'a mut [f64],
}

impl<'a> Changes<'a> {
    /// The changes of the pairs at `positions`, to some of `n_others` sums.
    fn new(positions: &[Position<'_>], sums: &'a mut [f64], n_others: usize) -> Self {
        const NOT_REACHED: u32 = u32::MAX;
        let mut places = vec![NOT_REACHED; n_others];
        let mut reached = Vec::new();
        let mut terms = Vec::with_capacity(positions.iter().map(|position| position.changes.len()).sum());
        for &(number, weight) in positions.iter().flat_map(|position| position.changes) {
            let place = &mut places[number as usize];
            if *place == NOT_REACHED {
                *place = reached.len() as u32;
                reached.push(number);
            }
            terms.push((*place, weight));
        }
        Changes { terms, reached, sums }
    }
}

impl<'a, const N: usize> Part<'a, N> {
    /// Selects the weights of the vectors from number `first` on, whose sums are `sums`.
    fn new(positions: &[Position<'_>], first: usize, sums: &'a mut [f64], changes: Changes<'a>) -> Self {
        let with_changes = !changes.terms.is_empty();
        let mut end = 0;
        let terms = positions.iter().filter_map(|position| {
            let weights = *position.weights[first..].first_chunk().expect("a weight for each vector");
            let n_changes = if with_changes { position.changes.len() } else { 0 };
            end += n_changes;
            let counts = n_changes > 0 || weights != [0.0; N];
            let Position { query, row, is_complete, .. } = *position;
            counts.then_some(Term { query, row, weights, is_complete, end })
        });
        Part { terms: terms.collect(), sums, changes }
    }
}

impl<'a> Parts<'a> {
    /// Adds the pairs at `positions` to each vector of `sums`, and their changes to those of `others`; vectors are
    /// `n_features` long.
    pub(super) fn push(
        &mut self,
        positions: &[Position<'_>],
        sums: &'a mut [f64],
        others: &'a mut [f64],
        n_features: usize,
    ) {
        let (mut first, n_vectors) = (0, sums.len() / n_features);
        let mut rest = sums;
        let n_others = others.len() / n_features;
        let mut changes = Changes::new(positions, others, n_others);
        while first < n_vectors {
            let n = [8, 4, 2].into_iter().find(|&n| first + n <= n_vectors).unwrap_or(1);
            let (sums, after) = rest.split_at_mut(n * n_features);
            let changes = std::mem::take(&mut changes);
            match n {
                8 => self.eight.push(Part::new(positions, first, sums, changes)),
                4 => self.four.push(Part::new(positions, first, sums, changes)),
                2 => self.two.push(Part::new(positions, first, sums, changes)),
                _ => self.one.push(Part::new(positions, first, sums, changes)),
            }
            (first, rest) = (first + n, after);
        }
    }

    /// Adds all pairs.
    pub(super) fn add(self, arch: Arch, context: DistanceContext<'_>) {
        let Parts { one, two, four, eight } = self;
        add(arch, context, one);
        add(arch, context, two);
        add(arch, context, four);
        add(arch, context, eight);
    }
}

fn add<const N: usize>(arch: Arch, context: DistanceContext<'_>, parts: Vec<Part<'_, N>>) {
    match parts.iter().any(|part| !part.changes.terms.is_empty()) {
        true => arch.dispatch(Add::<N, true> { context, parts, changed: Vec::new() }),
        false => arch.dispatch(Add::<N, false> { context, parts, changed: Vec::new() }),
    }
}

/// Pairs between the one that is added and the one whose row is prefetched, if values are missing.
const AHEAD: usize = 4;
/// Bytes of the sums that pairs change in a slice: half of the smallest first-level cache.
const CHANGED_BYTES: usize = 16 << 10;

/// Adds weighted differences, without fused operations: machines that have none would round differently.
///
/// The outer loop is over slices of a few features, the inner one over all pairs. The sums of a slice stay in registers,
/// and that slice of the rows, which many pairs share, in the cache. There stand the sums that pairs change, too: a pass
/// of its own for these measures every difference again, which took 1.25 times as long for all of Relief.
///
/// `CHANGES` is true if pairs change other sums. A loop that could do so leaves fewer registers to others: these took up to
/// 1.08 times as long for all of Relief.
struct Add<'a, 'b, const N: usize, const CHANGES: bool> {
    context: DistanceContext<'a>,
    parts: Vec<Part<'b, N>>,
    /// A slice of the sums that the pairs of a part change.
    changed: Vec<f64>,
}

impl<const N: usize, const CHANGES: bool> WithSimd for Add<'_, '_, N, CHANGES> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // Half of the registers: AVX-512 has 32, others 16. Changes need some, too.
        let most = if S::F64_LANES == 8 && !CHANGES { 16 } else { 8 } / N;
        let reached = self.parts.iter().map(|part| part.changes.reached.len()).max().unwrap_or(0);
        let most = most.min(CHANGED_BYTES / (reached.max(1) * S::F64_LANES * size_of::<f64>()));
        let width = self.context.rows.width;
        let mut start = 0;
        if 16 <= most {
            start = self.slices::<S, 16>(simd, start);
        }
        if 8 <= most {
            start = self.slices::<S, 8>(simd, start);
        }
        if 4 <= most {
            start = self.slices::<S, 4>(simd, start);
        }
        if 2 <= most {
            start = self.slices::<S, 2>(simd, start);
        }
        start = self.slices::<S, 1>(simd, start);
        match width.checked_sub(S::F64_LANES) {
            _ if start == width => {}
            // The last vector, of which only the features from `start` on are kept.
            Some(last) => self.slice::<S, 1>(simd, last, start - last),
            None => self.features(start),
        }
    }
}

impl<const N: usize, const CHANGES: bool> Add<'_, '_, N, CHANGES> {
    /// Adds slices of `V` vectors of features from `start` on; returns where less than a slice is left.
    #[inline(always)]
    fn slices<S: Simd, const V: usize>(&mut self, simd: S, mut start: usize) -> usize {
        let wide = V * S::F64_LANES;
        while start + wide <= self.context.rows.width {
            self.slice::<S, V>(simd, start, 0);
            start += wide;
        }
        start
    }

    /// Adds a slice of `V` vectors of features from `start` on, without its first `skipped` features.
    #[inline(always)]
    fn slice<S: Simd, const V: usize>(&mut self, simd: S, start: usize, skipped: usize) {
        let DistanceContext { space, queries, rows } = self.context;
        let (width, wide) = (rows.width, V * S::F64_LANES);
        let (query_values, row_values) = (queries.values(), rows.values());
        for Part { terms, sums, changes } in &mut self.parts {
            let changed = aligned(&mut self.changed, changes.reached.len() * wide);
            for (&number, changed) in changes.reached.iter().zip(changed.chunks_exact_mut(wide)) {
                changed.copy_from_slice(&changes.sums[number as usize * width + start..][..wide]);
            }
            let mut first = 0;
            let mut slices = [[simd.splat_f64s(0.0); V]; N];
            for n in 0..N {
                slices[n].copy_from_slice(S::as_simd_f64s(&sums[n * width + start..][..wide]).0);
            }
            for (number, term) in terms.iter().enumerate() {
                // With a tenth of 10,000 x 100 missing, waiting for expected differences took a twentieth of the time.
                if let Some(next) = terms.get(number + AHEAD)
                    && !next.is_complete
                {
                    let (query, row) = (queries.numbers[next.query as usize], rows.numbers[next.row as usize]);
                    let row = space.example(row, &row_values[next.row as usize * width..][..width]);
                    prefetch(&row.values[start..][..wide]);
                    if let Some(expected) = space.expected_of((start, wide), row, space.class(query)) {
                        prefetch(expected);
                    }
                }
                let query = &S::as_simd_f64s(&query_values[term.query as usize * width + start..][..wide]).0[..V];
                let row = &S::as_simd_f64s(&row_values[term.row as usize * width + start..][..wide]).0[..V];
                let mut differences = [simd.splat_f64s(0.0); V];
                for v in 0..V {
                    differences[v] = difference(simd, query[v], row[v]);
                }
                if !term.is_complete {
                    let mut sum = differences[0];
                    for other in &differences[1..] {
                        sum = simd.add_f64s(sum, *other);
                    }
                    if simd.reduce_sum_f64s(sum).is_nan() {
                        let [a, b] = examples(self.context, [term.query, term.row]);
                        let of_a = space.expected_of((start, wide), a, b.class);
                        let of_b = space.expected_of((start, wide), b, a.class);
                        differences = match of_a.zip(of_b) {
                            Some(expected) => with_missing::<S, V>(simd, [query, row], expected, differences),
                            None => replaced::<S, V>(self.context, [a, b], start, differences),
                        };
                    }
                }
                for (slice, weight) in slices.iter_mut().zip(term.weights) {
                    let weight = simd.splat_f64s(weight);
                    for v in 0..V {
                        slice[v] = simd.add_f64s(slice[v], simd.mul_f64s(weight, differences[v]));
                    }
                }
                let changed_here = if CHANGES { &changes.terms[first..term.end] } else { &[] };
                for &(place, weight) in changed_here {
                    let weight = simd.splat_f64s(weight);
                    let changed = &mut S::as_mut_simd_f64s(&mut changed[place as usize * wide..][..wide]).0[..V];
                    for v in 0..V {
                        changed[v] = simd.add_f64s(changed[v], simd.mul_f64s(weight, differences[v]));
                    }
                }
                first = term.end;
            }
            for (&number, changed) in changes.reached.iter().zip(changed.chunks_exact(wide)) {
                let sums = &mut changes.sums[number as usize * width + start..][..wide];
                sums[skipped..].copy_from_slice(&changed[skipped..]);
            }
            for (n, slice) in slices.iter().enumerate() {
                let found: &[f64] = bytemuck::cast_slice(slice);
                sums[n * width + start..][..wide][skipped..].copy_from_slice(&found[skipped..]);
            }
        }
    }

    /// Adds the features from `start` on, one by one.
    fn features(&mut self, start: usize) {
        let width = self.context.rows.width;
        for Part { terms, sums, changes } in &mut self.parts {
            let mut first = 0;
            for term in terms {
                let [query, row] = examples(self.context, [term.query, term.row]);
                for feature in start..width {
                    let difference = self.context.space.difference(feature, query, row);
                    for n in 0..N {
                        sums[n * width + feature] += term.weights[n] * difference;
                    }
                    for &(place, weight) in &changes.terms[first..term.end] {
                        changes.sums[changes.reached[place as usize] as usize * width + feature] += weight * difference;
                    }
                }
                first = term.end;
            }
        }
    }
}

/// The first `n` values of a buffer from the start of a cache line on, which is made long enough.
fn aligned(buffer: &mut Vec<f64>, n: usize) -> &mut [f64] {
    const LINE: usize = 64;
    buffer.resize(buffer.len().max(n + LINE / size_of::<f64>()), 0.0);
    let first = buffer.as_ptr().align_offset(LINE);
    &mut buffer[first..][..n]
}

/// The query and the row at two positions.
fn examples(context: DistanceContext<'_>, [query, row]: [u32; 2]) -> [Example<'_>; 2] {
    let DistanceContext { queries, rows, .. } = context;
    context.pair(queries.numbers[query as usize], rows.numbers[row as usize])
}

/// The `differences` of two rows, where NaN stands for a missing value, with expected differences in the place of NaN: first
/// those of the values of row `a`, then those of row `b`.
///
/// One by one they take three times as long where a tenth of all values is missing.
#[inline(always)]
fn with_missing<S: Simd, const V: usize>(
    simd: S,
    [a, b]: [&[S::f64s]; 2],
    (of_a, of_b): (&[f64], &[f64]),
    mut differences: [S::f64s; V],
) -> [S::f64s; V] {
    let [of_a, of_b] = [of_a, of_b].map(|expected| &S::as_simd_f64s(expected).0[..V]);
    for v in 0..V {
        let known = simd.select_f64s(simd.equal_f64s(b[v], b[v]), differences[v], of_a[v]);
        differences[v] = simd.select_f64s(simd.equal_f64s(a[v], a[v]), known, of_b[v]);
    }
    differences
}

/// The differences of two rows in features from number `first` on, with those of missing values.
#[inline(never)]
fn replaced<S: Simd, const V: usize>(
    context: DistanceContext<'_>,
    [query, row]: [Example<'_>; 2],
    first: usize,
    mut differences: [S::f64s; V],
) -> [S::f64s; V] {
    context.space.replace_missing((query, row), first, bytemuck::cast_slice_mut(&mut differences));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrank_neighbors::missing::MissingModel;
    use ferrank_neighbors::rows::Rows;
    use ferrank_neighbors::space::{Shape, Space};

    fn uniform(n: u64) -> f64 {
        (ferrank_runtime::random::mix([n]) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Rows of numbers and categories, with and without missing values.
    fn data(n: usize, width: usize, missing: f64) -> (Rows, Space) {
        let shapes: Vec<Shape> = (0..width).map(|i| [Shape::Numeric, Shape::Nominal][i % 3 / 2]).collect();
        let value = |at: usize| match shapes[at % width] {
            _ if at >= width && uniform(at as u64 + 9_000_000) < missing => f64::NAN,
            Shape::Nominal => (uniform(at as u64) * 4.0).floor(),
            _ => uniform(at as u64),
        };
        let values: Vec<f64> = (0..n * width).map(value).collect();
        let mut rows = Rows::with_capacity(n, width);
        rows.add(0..n as u32).copy_from_slice(&values);
        let classes: Vec<u16> = (0..n as u16).map(|row| row % 2).collect();
        let model = |i: usize| {
            let column: Vec<f64> = values.iter().skip(i).step_by(width).copied().collect();
            let is_missing = column.iter().any(|value| value.is_nan());
            is_missing.then(|| MissingModel::new(&column, shapes[i] == Shape::Nominal, &classes, 2)).flatten()
        };
        let models = (0..width).map(model).collect();
        (rows, Space::new(shapes, models, classes, 2))
    }

    #[test]
    fn sums_have_the_bits_of_single_additions_on_all_vectors() {
        let mut archs = vec![Arch::new(), Arch::Scalar];
        #[cfg(target_arch = "x86_64")]
        archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
        let cases = |width| [(width, 0.0, false), (width, 0.2, false), (width, 0.2, true), (width, 0.6, true)];
        for (width, missing, beforehand) in (1..=20).chain([100, 131]).flat_map(cases) {
            let (rows, mut space) = data(12, width, missing);
            if beforehand {
                space = space.with_expected(rows.values());
            }
            for n_vectors in [1, 3, 15] {
                let weights: Vec<f64> = (0..12 * n_vectors).map(|n| uniform(n as u64 + 77) - 0.5).collect();
                // Pairs 0, 3, … change nothing; others change one sum or two of five.
                let changes: Vec<Vec<(u32, f64)>> = (0..12u32)
                    .map(|n| (0..n % 3).map(|i| ((n + 2 * i) % 5, uniform(u64::from(n + i)) - 0.5)).collect())
                    .collect();
                let pairs: Vec<Position<'_>> = (0..12u32)
                    .zip(weights.chunks_exact(n_vectors))
                    .zip(&changes)
                    .map(|((row, weights), changes)| Position {
                        query: row * 5 % 12,
                        row,
                        is_complete: [row * 5 % 12, row].into_iter().all(|row| space.is_complete_row(row)),
                        weights,
                        changes,
                    })
                    .collect();
                let mut expected = vec![0.0; n_vectors * width];
                let mut expected_changes = vec![0.0; 5 * width];
                for &Position { query, row, weights, changes, .. } in &pairs {
                    for feature in 0..width {
                        let [a, b] = [query, row].map(|row| (rows.row(row)[feature], space.class(row)));
                        let apart = space.apart(feature, a, b);
                        for (sums, weight) in expected.chunks_exact_mut(width).zip(weights) {
                            sums[feature] += weight * apart;
                        }
                        for &(number, weight) in changes {
                            expected_changes[number as usize * width + feature] += weight * apart;
                        }
                    }
                }
                for &arch in &archs {
                    let (mut sums, mut others) = (vec![0.0; n_vectors * width], vec![0.0; 5 * width]);
                    let mut parts = Parts::default();
                    parts.push(&pairs, &mut sums, &mut others, width);
                    parts.add(arch, DistanceContext { space: &space, queries: &rows, rows: &rows });
                    let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>();
                    assert_eq!(
                        bits(&sums),
                        bits(&expected),
                        "{width} features, {missing} missing, {n_vectors} vectors, {beforehand}"
                    );
                    assert_eq!(bits(&others), bits(&expected_changes), "changes, {width} features");
                }
            }
        }
    }
}
