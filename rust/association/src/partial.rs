//! What each feature adds to a linear model of the ranks of a target in features that are given: partial association.
//!
//! With Z the centered columns of the given features, X those of a feature, y the target, and M = 1 − Z (Z'Z)⁺ Z' what is left
//! of a column beside the given features,
//!
//! ```text
//! F = y'MX (X'MX)⁺ X'My / k  /  (|M y|² − y'MX (X'MX)⁺ X'My) / (n − 1 − rank Z − k)         k = rank X'MX
//! ```
//!
//! A feature that is given is tested beside the others that are: with b = (Z'Z)⁺ Z'y,
//!
//! ```text
//! F = b_j' ((Z'Z)⁺_jj)⁺ b_j / k  /  |M y|² / (n − 1 − rank Z)
//! ```
//!
//! By the pseudo-inverse, given features that say the same share their coefficients. Of ranks, the tests hold their level for
//! most laws (Conover and Iman 1981). To the test of a feature alone, the effects of all others are noise; what is given is not.

use ferrank_ranking::relevance::PartialTest;
use nalgebra::{DMatrix, SymmetricEigen};

use crate::design::Design;

/// Directions with less than this share of the variance of a column are left out.
const RANK_TOLERANCE: f64 = 1e-9;

/// The tests of each of `n_features` features, one for each target, from the sums of products. Features without columns, that do
/// not vary, or that are sums of the given ones have none.
pub(crate) fn tests(design: &Design, sums: &[i64], n_features: usize) -> Vec<Vec<PartialTest>> {
    let model = Model::new(design, sums);
    let mut found = vec![Vec::new(); n_features];
    let mut place = 0;
    for &feature in &design.given {
        let columns = place..place + design.columns(feature).len();
        place = columns.end;
        found[feature] = model.tests_of_given(columns);
    }
    for (feature, tests) in found.iter_mut().enumerate() {
        if design.given.binary_search(&feature).is_err() {
            *tests = model.tests_of_other(feature);
        }
    }
    found
}

/// The linear models of all targets in the given features.
struct Model<'a> {
    design: &'a Design,
    sums: &'a [i64],
    /// width; of each column of the base, its centered length times the root of the number of rows.
    lengths: Vec<f64>,
    inverse: PseudoInverse,
    targets: Vec<TargetModel>,
}

/// The linear model of a target, in the given features; columns have length 1.
struct TargetModel {
    /// Its column of the base.
    column: usize,
    /// rank; the target along each root of the inverse.
    along: Vec<f64>,
    /// n_given
    coefficients: Vec<f64>,
    /// The square of what is left, above 0.
    error: f64,
}

impl<'a> Model<'a> {
    fn new(design: &'a Design, sums: &'a [i64]) -> Self {
        let (width, q) = (design.width(), design.n_given);
        let base = design.products(sums).base;
        let centered = |i: usize, j: usize| centered(base[0], base[i * width + j], base[i], base[j]);
        let lengths: Vec<f64> = (0..width).map(|i| centered(i, i).sqrt()).collect();
        let correlation = |i: usize, j: usize| over(centered(i, j), lengths[i] * lengths[j]);
        let inverse = PseudoInverse::new(DMatrix::from_fn(q, q, |i, j| correlation(1 + i, 1 + j)));
        let target = |column: usize| {
            let with_given: Vec<f64> = (1..=q).map(|given| correlation(given, column)).collect();
            let along = inverse.along(&with_given);
            let explained: f64 = along.iter().map(|value| value * value).sum();
            // Where a target is a sum of columns, rounding decides what is left.
            let error = (1.0 - explained).max(f64::EPSILON);
            TargetModel { column, coefficients: inverse.across(&along), along, error }
        };
        let targets = (1 + q..width).filter(|&column| lengths[column] > 0.0).map(target).collect();
        Model { design, sums, lengths, inverse, targets }
    }

    /// The degrees of freedom that are left.
    fn rest(&self) -> f64 {
        (self.design.n_rows - 1 - self.inverse.rank()) as f64
    }

    /// The tests of the given feature with these columns among the given ones.
    fn tests_of_given(&self, columns: std::ops::Range<usize>) -> Vec<PartialTest> {
        let root = |i: usize| self.inverse.roots.row(columns.start + i);
        let own = DMatrix::from_fn(columns.len(), columns.len(), |i, j| root(i).dot(&root(j)));
        let inverse = PseudoInverse::new(own);
        let test = |target: &TargetModel| {
            let along = inverse.along(&target.coefficients[columns.clone()]);
            let added: f64 = along.iter().map(|value| value * value).sum();
            let columns = inverse.rank() as f64;
            PartialTest { unexplained: target.error / (target.error + added), columns, rest: self.rest() }
        };
        self.targets.iter().filter(|_| inverse.rank() > 0).map(test).collect()
    }

    /// The tests of a feature that is not given.
    fn tests_of_other(&self, feature: usize) -> Vec<PartialTest> {
        let (width, n) = (self.design.width(), self.sums[0]);
        let products = self.design.products(self.sums);
        let columns = self.design.columns(feature);
        let of: Vec<&[i64]> = columns.map(|column| products.of(column, width)).collect();
        // The columns of a nominal feature have no row in common.
        let product = |i: usize, j: usize| centered(n, if i == j { of[i][width] } else { 0 }, of[i][0], of[j][0]);
        let lengths: Vec<f64> = (0..of.len()).map(|i| product(i, i).sqrt()).collect();
        let with_base = |i: usize, column: usize| {
            over(centered(n, of[i][column], of[i][0], products.base[column]), lengths[i] * self.lengths[column])
        };
        let along: Vec<Vec<f64>> = (0..of.len())
            .map(|i| {
                self.inverse.along(&(1..=self.design.n_given).map(|given| with_base(i, given)).collect::<Vec<_>>())
            })
            .collect();
        let left = DMatrix::from_fn(of.len(), of.len(), |i, j| {
            over(product(i, j), lengths[i] * lengths[j]) - dot(&along[i], &along[j])
        });
        let inverse = PseudoInverse::new(left);
        let (columns, rest) = (inverse.rank() as f64, self.rest() - inverse.rank() as f64);
        let test = |target: &TargetModel| {
            let left: Vec<f64> =
                (0..of.len()).map(|i| with_base(i, target.column) - dot(&along[i], &target.along)).collect();
            let added: f64 = inverse.along(&left).iter().map(|value| value * value).sum();
            let unexplained = (1.0 - added / target.error).max(f64::EPSILON);
            PartialTest { unexplained, columns, rest }
        };
        self.targets.iter().filter(|_| inverse.rank() > 0 && rest > 0.0).map(test).collect()
    }
}

/// n times the sum of the products of differences from the mean of two columns, exact before it is rounded.
fn centered(n: i64, product: i64, first: i64, second: i64) -> f64 {
    let [n, product, first, second] = [n, product, first, second].map(i128::from);
    (n * product - first * second) as f64
}

/// A quotient; 0 for columns that do not vary.
fn over(product: f64, lengths: f64) -> f64 {
    if lengths > 0.0 { product / lengths } else { 0.0 }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The pseudo-inverse of a symmetric matrix without negative eigenvalues, whose diagonal is at most 1.
struct PseudoInverse {
    /// n x rank; eigenvectors divided by the roots of their eigenvalues. The inverse is `roots` times itself turned.
    roots: DMatrix<f64>,
}

impl PseudoInverse {
    fn new(matrix: DMatrix<f64>) -> Self {
        let n = matrix.nrows();
        if n == 0 {
            return PseudoInverse { roots: matrix };
        }
        let greatest = matrix.diagonal().iter().copied().fold(0.0, f64::max);
        let SymmetricEigen { eigenvectors, eigenvalues } = SymmetricEigen::new(matrix);
        let is_kept = |&i: &usize| eigenvalues[i] > RANK_TOLERANCE * greatest.max(1.0);
        let kept: Vec<usize> = (0..n).filter(is_kept).collect();
        let root = |row: usize, i: usize| eigenvectors[(row, kept[i])] / eigenvalues[kept[i]].sqrt();
        PseudoInverse { roots: DMatrix::from_fn(n, kept.len(), root) }
    }

    fn rank(&self) -> usize {
        self.roots.ncols()
    }

    /// `vector` along each root: the square is that of `vector` by the inverse.
    fn along(&self, vector: &[f64]) -> Vec<f64> {
        self.roots.column_iter().map(|root| root.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
    }

    /// The sum of the roots, each `along` times: the inverse by the vector.
    fn across(&self, along: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.roots.nrows()];
        for (root, along) in self.roots.column_iter().zip(along) {
            sum.iter_mut().zip(&root).for_each(|(sum, value)| *sum += along * value);
        }
        sum
    }
}
