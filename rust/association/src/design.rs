//! The columns of linear models of the targets, and the sums of their products over the rows.
//!
//! The base of a model are a column of ones, the columns of the features that are given, and the targets. Each other feature is
//! tested beside it. A numeric feature is one column, its codes, which rise with its ranks; a missing value is in the middle. A
//! nominal one has a column for each category but the first, missing values being a category more. Values are integers, and so
//! are the sums of products of parts of the rows, which add up to those of all, in any order.
//!
//! Of many rows every s-th is taken: the sums take at most [`MOST_PRODUCTS`] multiplications.

use std::ops::Range;

use ferrank_data::profile::{Coding, MISSING_U16, Scale};
use ferrank_data::store::{Chunk, CodeStore, Slot, SparseCodes, Stored};
use ferrank_ranking::relevance::{Dependence, Relevance};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use nalgebra::DMatrix;
use rayon::prelude::*;

use crate::answers::Answer;
use crate::tables::Table;
use crate::tested::Tested;

/// The false discovery rate of the features that are given.
const GIVEN_RATE: f64 = 0.01;
/// Most columns of the features that are given.
const MOST_GIVEN: usize = 200;
/// Most columns of the targets.
const MOST_TARGETS: usize = 500;
/// A nominal feature with more categories has no columns.
const MOST_CATEGORIES: usize = 32;
/// Most sums of products with the columns of features: 64 MiB.
const MOST_SUMS: usize = 1 << 23;
/// Most multiplications; some seconds.
const MOST_PRODUCTS: u64 = 1 << 36;
/// Rows whose products are added up as f64: each is below 2^34, so that their sum is exact.
const TILE: usize = 256;
/// Columns of features whose products a thread adds up together, and sparse features.
const BLOCK: (usize, usize) = (256, 4096);

/// The columns of a model.
#[derive(Debug)]
pub(crate) struct Design {
    /// n_features + 1; where the columns of each feature start.
    starts: Vec<usize>,
    /// The features that are given, ascending.
    pub(crate) given: Vec<usize>,
    /// Number of their columns.
    pub(crate) n_given: usize,
    /// The answer of each column of a target, and which of its components it is.
    pub(crate) targets: Vec<(usize, usize)>,
    /// Of every `stride` rows the first is taken.
    stride: usize,
    /// Number of rows that are taken.
    pub(crate) n_rows: usize,
}

/// Sums of products over rows.
pub(crate) struct Products<'a> {
    /// width x width; the sums of the columns of the base with each other.
    pub(crate) base: &'a [i64],
    /// n_columns x (width + 1); the sums of each column of a feature with the columns of the base, then with itself.
    columns: &'a [i64],
}

impl Products<'_> {
    /// Those of a column of a feature.
    pub(crate) fn of(&self, column: usize, width: usize) -> &[i64] {
        &self.columns[column * (width + 1)..(column + 1) * (width + 1)]
    }
}

impl Design {
    /// The model in which the features of `given` are given, in any order, and the targets of the rows of `store`. `None` if there
    /// are too many targets, or all are missing in some rows or have heavy tails.
    pub(crate) fn new(store: &CodeStore, tested: &Tested, mut given: Vec<usize>) -> Option<Self> {
        let starts = starts(&store.codings);
        let targets = targets(tested, store.rows)?;
        given.sort_unstable();
        let n_given = given.iter().map(|&feature| starts[feature + 1] - starts[feature]).sum();
        let mut design = Design { starts, given, n_given, targets, stride: 1, n_rows: store.rows };
        let products = (design.width() * (design.width() + design.n_columns())) as u64;
        design.stride = (store.rows as u64 * products).div_ceil(MOST_PRODUCTS).max(1) as usize;
        design.n_rows = store.rows.div_ceil(design.stride);
        Some(design)
    }

    /// The model in which the features are given that are relevant by what was `found`, beside those that were `given` before.
    /// `None` if these are no more.
    pub(crate) fn next(store: &CodeStore, tested: &Tested, found: &Relevance, given: &[usize]) -> Option<Self> {
        let starts = starts(&store.codings);
        let n_columns = |feature: usize| starts[feature + 1] - starts[feature];
        let others = 1 + targets(tested, store.rows)?.len();
        let most = (MOST_SUMS / starts[store.codings.len()].max(1)).saturating_sub(others);
        let mut left = most.min(MOST_GIVEN).min(store.rows / 4);
        left = left.saturating_sub(given.iter().map(|&feature| n_columns(feature)).sum());
        let q_values = found.q_values(Dependence::Positive);
        let is_new =
            |&feature: &usize| q_values[feature] <= GIVEN_RATE && n_columns(feature) > 0 && !given.contains(&feature);
        let mut relevant: Vec<usize> = (0..q_values.len()).filter(is_new).collect();
        relevant.sort_by(|&a, &b| found.evidence[b].total_cmp(&found.evidence[a]));
        let mut all = given.to_vec();
        for feature in relevant {
            if n_columns(feature) <= left {
                left -= n_columns(feature);
                all.push(feature);
            }
        }
        if all.len() == given.len() { None } else { Design::new(store, tested, all) }
    }

    /// The columns of a feature.
    pub(crate) fn columns(&self, feature: usize) -> Range<usize> {
        self.starts[feature]..self.starts[feature + 1]
    }

    /// Number of columns of all features.
    fn n_columns(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Number of columns of the base.
    pub(crate) fn width(&self) -> usize {
        1 + self.n_given + self.targets.len()
    }

    /// Number of sums.
    pub(crate) fn n_sums(&self) -> usize {
        self.width() * self.width() + self.n_columns() * (self.width() + 1)
    }

    /// The sums as [`Design::sums`] gives them.
    pub(crate) fn products<'a>(&self, sums: &'a [i64]) -> Products<'a> {
        let (base, columns) = sums.split_at(self.width() * self.width());
        Products { base, columns }
    }

    /// The sums of products over the rows of `store`, the first of which is row `first` of the targets.
    ///
    /// # Errors
    /// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn sums(&self, store: &CodeStore, tested: &Tested, first: usize, monitor: &Monitor) -> Result<Vec<i64>> {
        let rows = Rows { design: self, store, tested, first };
        let chunks = store.chunks.iter().zip(&store.firsts);
        let tiles: Vec<_> = chunks.flat_map(|(chunk, &own)| rows.tiles(chunk, own)).collect();
        let mut sums = vec![0; self.n_sums()];
        let (base, columns) = sums.split_at_mut(self.width() * self.width());
        base.copy_from_slice(&rows.block(&tiles, 0..0, monitor)?);
        let (mut blocks, mut rest, mut start) = (Vec::new(), columns, 0);
        let is_sparse = |feature: usize| matches!(store.slots[feature], Slot::Sparse(_));
        while start + 1 < self.starts.len() {
            let same = (start..self.starts.len() - 1).take_while(|&feature| is_sparse(feature) == is_sparse(start));
            let most = if is_sparse(start) { BLOCK.1 } else { BLOCK.0 };
            let fits = |&feature: &usize| feature == start || self.starts[feature + 1] - self.starts[start] <= most;
            let end = start + same.take_while(fits).count();
            let n_sums = (self.starts[end] - self.starts[start]) * (self.width() + 1);
            let (own, others) = rest.split_at_mut(n_sums);
            blocks.push((start..end, own));
            (start, rest) = (end, others);
        }
        blocks.into_par_iter().try_for_each(|(features, sums)| {
            match &store.sparse {
                Some(sparse) if is_sparse(features.start) => {
                    rows.sparse_block(&tiles, sparse, features, sums, monitor)?
                }
                _ => sums.copy_from_slice(&rows.block(&tiles, features, monitor)?),
            }
            Ok(())
        })?;
        Ok(sums)
    }
}

/// Where the columns of each feature start, n_features + 1.
fn starts(codings: &[Coding]) -> Vec<usize> {
    let n_columns = |coding: &Coding| {
        let n_codes = coding.n_codes() + usize::from(coding.has_missing);
        match &coding.scale {
            Scale::Numeric(_) => usize::from(coding.n_codes() > 1),
            Scale::Nominal(_) if n_codes > MOST_CATEGORIES => 0,
            Scale::Nominal(_) => n_codes.saturating_sub(1),
        }
    };
    let mut starts = vec![0];
    starts.extend(codings.iter().scan(0, |end, coding| {
        *end += n_columns(coding);
        Some(*end)
    }));
    starts
}

/// The answer of each column of a target, and which of its components it is; `None` if there is none, or too many.
fn targets(tested: &Tested, n_rows: usize) -> Option<Vec<(usize, usize)>> {
    let of_answer = |(number, answer): (usize, &Answer)| {
        answer.components(n_rows).into_iter().map(move |component| (number, component))
    };
    let targets: Vec<_> = tested.answers.iter().enumerate().flat_map(of_answer).take(MOST_TARGETS + 1).collect();
    (!targets.is_empty() && targets.len() <= MOST_TARGETS).then_some(targets)
}

/// The most excess kurtosis of the columns of a feature, for each row.
///
/// The F distribution holds for sums over few rows only if the residuals of the target have light tails as well. The variance of
/// the statistic grows by about the product of the excess kurtosis of both over the number of rows: by a tenth where that of the
/// target is 100.
const EXCESS_PER_ROW: f64 = 1e-3;

/// Returns true if the columns of a feature, which has these sums by code, have light tails: with the fourth moment m₄ of a
/// numeric one, m₄ − 3 is at most 0.001 n; of k columns, with P the projection on them, n Σ P_ii² − k (k + 2) is at most 0.001 n k.
pub(crate) fn has_light_tails(coding: &Coding, table: &Table) -> bool {
    let (known, missing) = table.split();
    let counts: Vec<f64> = known.iter().map(|sums| sums[0]).chain([missing[0]]).map(|count| count as f64).collect();
    let n: f64 = counts.iter().sum();
    match &coding.scale {
        Scale::Numeric(_) => {
            let value = |code| numeric(coding, if code == known.len() { MISSING_U16 } else { code as u16 });
            let moment = |center: f64, power: i32| {
                counts.iter().enumerate().map(|(code, count)| count * (value(code) - center).powi(power)).sum::<f64>()
                    / n
            };
            let mean = moment(0.0, 1);
            moment(mean, 4) <= (3.0 + EXCESS_PER_ROW * n) * moment(mean, 2).powi(2)
        }
        Scale::Nominal(_) => {
            let present = counts.iter().filter(|&&count| count > 0.0);
            let (k, inverse) = present.fold((-1.0, 0.0), |(k, sum), count| (k + 1.0, sum + 1.0 / count));
            n * inverse - (2.0 * k + 1.0) <= k * (k + 2.0) + EXCESS_PER_ROW * n * k
        }
    }
}

/// The rows of a store.
struct Rows<'a> {
    design: &'a Design,
    store: &'a CodeStore,
    tested: &'a Tested,
    /// The first of them among those of the targets.
    first: usize,
}

/// Some rows of a chunk.
struct Tile<'a> {
    chunk: &'a Chunk,
    /// The first row of the chunk in its store.
    own: usize,
    rows: Vec<usize>,
}

/// The sums of a block, and buffers for a tile.
struct BlockSums {
    sums: Vec<i64>,
    /// [`TILE`] x (width + n_columns)
    values: DMatrix<f64>,
    /// [`TILE`] x width, and turned.
    base: DMatrix<f64>,
    turned: DMatrix<f64>,
    products: DMatrix<f64>,
}

impl Rows<'_> {
    /// The rows of `chunk` that are taken, [`TILE`] at a time; `own` is its first row in the store.
    fn tiles<'a>(&self, chunk: &'a Chunk, own: usize) -> Vec<Tile<'a>> {
        let start = self.first + own;
        let skipped = start.next_multiple_of(self.design.stride) - start;
        let rows: Vec<usize> = (skipped..chunk.rows).step_by(self.design.stride).collect();
        rows.chunks(TILE).map(|rows| Tile { chunk, own, rows: rows.to_vec() }).collect()
    }

    /// The sums of the columns of `features`; without any, those of the base.
    fn block(&self, tiles: &[Tile<'_>], features: Range<usize>, monitor: &Monitor) -> Result<Vec<i64>> {
        let (width, starts) = (self.design.width(), &self.design.starts);
        let is_base = features.is_empty();
        let n_columns = if is_base { width } else { starts[features.end] - starts[features.start] };
        let height = if is_base { width } else { width + 1 };
        let zeros = || {
            let [values, base, turned, products] =
                [(TILE, n_columns), (TILE, width), (width, TILE), (width, n_columns)]
                    .map(|(n, m)| DMatrix::zeros(n, m));
            BlockSums { sums: vec![0; height * n_columns], values, base, turned, products }
        };
        let add = |mut block: BlockSums, tile: &Tile<'_>| {
            monitor.check()?;
            self.fill_base(tile, &mut block.base);
            block.base.transpose_to(&mut block.turned);
            let values = if is_base {
                &block.base
            } else {
                block.values.fill(0.0);
                let mut rest = block.values.as_mut_slice();
                for feature in features.clone() {
                    let (own, others) = rest.split_at_mut(self.design.columns(feature).len() * TILE);
                    self.fill(tile, feature, own);
                    rest = others;
                }
                &block.values
            };
            block.products.gemm(1.0, &block.turned, values, 0.0);
            for ((sums, products), values) in
                block.sums.chunks_exact_mut(height).zip(block.products.column_iter()).zip(values.column_iter())
            {
                sums.iter_mut().zip(&products).for_each(|(sum, &product)| *sum += product as i64);
                if !is_base {
                    sums[width] += values.iter().map(|value| value * value).sum::<f64>() as i64;
                }
            }
            Ok(block)
        };
        tiles.par_iter().try_fold(zeros, add).map(|done| done.map(|block| block.sums)).try_reduce(
            || vec![0; height * n_columns],
            |mut sums, others| {
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
                Ok(sums)
            },
        )
    }

    /// Adds up the sums of the columns of sparse `features`, entry by entry.
    fn sparse_block(
        &self,
        tiles: &[Tile<'_>],
        sparse: &SparseCodes,
        features: Range<usize>,
        sums: &mut [i64],
        monitor: &Monitor,
    ) -> Result<()> {
        let (width, starts) = (self.design.width(), &self.design.starts);
        let number = |feature: usize| match self.store.slots[feature] {
            Slot::Sparse(number) => number,
            _ => unreachable!("all features of the block are sparse"),
        };
        let value = |feature: usize, code: u16| numeric(&self.store.codings[feature], code) as i64;
        // Sparse features are numbered in their order.
        let numbers = number(features.start) as u32..number(features.end - 1) as u32 + 1;
        let mut base = DMatrix::zeros(TILE, width);
        let mut of_base = vec![0; width];
        for tile in tiles {
            monitor.check()?;
            self.fill_base(tile, &mut base);
            base.column_iter().zip(&mut of_base).for_each(|(column, sum)| *sum += column.sum() as i64);
            for (position, row) in tile.rows.iter().enumerate() {
                let (own, codes) = sparse.by_row.of(tile.own + row);
                let [start, end] = [numbers.start, numbers.end].map(|number| own.partition_point(|&own| own < number));
                for (&number, &code) in own[start..end].iter().zip(&codes[start..end]) {
                    let feature = features.start + (number - numbers.start) as usize;
                    let column = starts[feature] - starts[features.start];
                    if starts[feature + 1] == starts[feature] {
                        continue;
                    }
                    let zero = value(feature, sparse.zeros[number as usize]);
                    let more = value(feature, code) - zero;
                    let sums = &mut sums[column * (width + 1)..][..width + 1];
                    base.row(position).iter().zip(&mut *sums).for_each(|(value, sum)| *sum += more * *value as i64);
                    sums[width] += more * (more + 2 * zero);
                }
            }
        }
        // All other rows have the value of 0.
        for feature in features.clone() {
            let column = starts[feature] - starts[features.start];
            if starts[feature + 1] > starts[feature] {
                let zero = value(feature, sparse.zeros[number(feature)]);
                let sums = &mut sums[column * (width + 1)..][..width + 1];
                of_base.iter().zip(&mut *sums).for_each(|(of_base, sum)| *sum += zero * of_base);
                sums[width] += zero * zero * of_base[0];
            }
        }
        Ok(())
    }

    /// Writes the columns of the base.
    fn fill_base(&self, tile: &Tile<'_>, base: &mut DMatrix<f64>) {
        base.fill(0.0);
        let (ones, values) = base.as_mut_slice().split_at_mut(TILE);
        ones[..tile.rows.len()].fill(1.0);
        let (mut of_features, of_targets) = values.split_at_mut(self.design.n_given * TILE);
        for &feature in &self.design.given {
            let (own, others) = of_features.split_at_mut(self.design.columns(feature).len() * TILE);
            self.fill(tile, feature, own);
            of_features = others;
        }
        for (&(answer, component), out) in self.design.targets.iter().zip(of_targets.chunks_exact_mut(TILE)) {
            let answer = &self.tested.answers[answer];
            let of_rows = answer.kind.values(&self.tested.targets[answer.target]);
            let rows = tile.rows.iter().map(|row| self.first + tile.own + row);
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = of_rows.component(component, row));
        }
    }

    /// Writes the columns of a feature into `out`, [`TILE`] x n_columns, which is 0.
    fn fill(&self, tile: &Tile<'_>, feature: usize, out: &mut [f64]) {
        let coding = &self.store.codings[feature];
        let n_columns = out.len() / TILE;
        let (mut codes, n) = ([0; TILE], tile.rows.len());
        if n_columns == 0 {
            return;
        }
        tile.codes(self.store, feature, &mut codes[..n]);
        match &coding.scale {
            Scale::Numeric(_) => out.iter_mut().zip(&codes[..n]).for_each(|(out, &code)| *out = numeric(coding, code)),
            Scale::Nominal(_) => {
                for (row, &code) in codes[..n].iter().enumerate() {
                    let category = if code == MISSING_U16 { n_columns } else { usize::from(code) };
                    if category > 0 {
                        out[(category - 1) * TILE + row] = 1.0;
                    }
                }
            }
        }
    }
}

/// The value of a numeric feature: twice the code, so that the middle is an integer as well.
fn numeric(coding: &Coding, code: u16) -> f64 {
    if code == MISSING_U16 { (coding.n_codes() - 1) as f64 } else { 2.0 * f64::from(code) }
}

impl Tile<'_> {
    /// Writes the codes of a feature of `store` into `out`.
    fn codes(&self, store: &CodeStore, feature: usize, out: &mut [u16]) {
        match store.slots[feature] {
            Slot::Narrow(slot) => self.stored::<u8>(slot, out),
            Slot::Wide(slot) => self.stored::<u16>(slot, out),
            Slot::Sparse(slot) => {
                let sparse = store.sparse.as_ref().expect("a feature with a sparse slot has entries");
                sparse.fill(slot, self.rows.len(), |position| self.own + self.rows[position], out);
            }
        }
    }

    fn stored<C: Stored>(&self, slot: usize, out: &mut [u16]) {
        let column = C::of(self.chunk).column(slot);
        for (out, &row) in out.iter_mut().zip(&self.rows) {
            let code = column.at(row);
            *out = if code == C::MISSING { MISSING_U16 } else { code.index() as u16 };
        }
    }
}
