//! The distance space: how values become numbers that differ by at most 1, and by how much rows differ
//! (Robnik-Šikonja and Kononenko 1999 Eq. 1, 2, 7, 8; Petković et al. 2020a Eq. 5, 6).
//!
//! A numeric value is scaled to [0, 1] by the minimum and maximum of its feature, a nominal one is the number of its
//! category, a missing one is NaN. Features that are constant in the data are 0 everywhere.

use pulp::{Arch, Simd, WithSimd};

use super::missing::MissingModel;
use super::sink::{DECIMALS, distance_key};
use ferrank_data::groups::Groups;
use ferrank_data::profile::{Categories, ColumnProfile};

/// How the values of a feature become numbers.
#[derive(Debug)]
pub enum Scale {
    /// All values become 0.
    Constant,
    /// (value − low) / (high − low)
    Numeric {
        /// Lowest value.
        low: f64,
        /// Highest value.
        high: f64,
    },
    /// The value itself, until all rows are read and [`ranks`](crate::ranks) replace it.
    Ranked {
        /// Lowest value.
        low: f64,
        /// Highest value.
        high: f64,
    },
    /// The number of the category.
    Nominal(Categories),
}

impl Scale {
    /// The scale of a column with this profile.
    pub fn from_profile(profile: &ColumnProfile) -> Self {
        match profile {
            ColumnProfile::Numeric(numeric) if numeric.min < numeric.max => {
                Scale::Numeric { low: numeric.min, high: numeric.max }
            }
            ColumnProfile::Nominal(nominal) if nominal.counts.len() > 1 => {
                Scale::Nominal(Categories::new(nominal.counts.keys().cloned()))
            }
            _ => Scale::Constant,
        }
    }

    /// Scales `value` to its position between `low` and `high`; halves them first where high − low overflows.
    pub fn normalize(value: f64, low: f64, high: f64) -> f64 {
        let range = high - low;
        if range.is_finite() { (value - low) / range } else { (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) }
    }
}

/// How two values of a feature differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 0: all values are equal.
    Constant,
    /// 0: none of the rows has a value, but other rows of the data set do.
    Unknown,
    /// |a − b|
    Numeric,
    /// a ≠ b
    Nominal,
}

impl Shape {
    /// How values on `scale` differ.
    pub fn from_scale(scale: &Scale) -> Self {
        match scale {
            Scale::Constant => Shape::Constant,
            Scale::Numeric { .. } | Scale::Ranked { .. } => Shape::Numeric,
            Scale::Nominal(_) => Shape::Nominal,
        }
    }
}

/// The features, and how they contribute to distances.
#[derive(Debug)]
pub struct Space {
    /// n_features
    pub shapes: Vec<Shape>,
    /// n_features; `None` where no value is missing, or none is known.
    pub missing_models: Vec<Option<MissingModel>>,
    /// n_rows; the class that a missing value is conditional on. Empty unless in classification.
    pub classes: Vec<u16>,
    /// At least 1.
    pub n_classes: usize,
    /// The groups of the rows, which are no neighbors within a group; `None`: each row is on its own.
    groups: Option<Groups>,
    /// True if all features are numeric and no value is missing.
    plain: bool,
}

/// A row: its values, and its class, on which the distribution of missing values is conditional.
#[derive(Debug, Clone, Copy)]
pub struct Example<'a> {
    /// n_features
    pub values: &'a [f64],
    /// Number of the class.
    pub class: usize,
}

/// Rows measured together: a single sum in the order of features would wait for each of its additions.
const TOGETHER: usize = 8;

impl Space {
    /// Creates the space of features with these shapes and models of missing values.
    pub fn new(
        shapes: Vec<Shape>,
        missing_models: Vec<Option<MissingModel>>,
        classes: Vec<u16>,
        n_classes: usize,
    ) -> Self {
        let plain = shapes.iter().all(|shape| matches!(shape, Shape::Constant | Shape::Numeric))
            && missing_models.iter().all(Option::is_none);
        Space { shapes, missing_models, classes, n_classes, groups: None, plain }
    }

    /// The same space of rows with these groups.
    pub fn with_groups(self, groups: Option<Groups>) -> Self {
        Space { groups, ..self }
    }

    /// The groups of the rows, if there are some.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Returns true if `row` is no neighbor of row `query` however near it is: the same row, or of the same group.
    #[inline]
    pub fn excludes(&self, query: u32, row: u32) -> bool {
        match &self.groups {
            None => query == row,
            Some(groups) => groups.of_row[query as usize] == groups.of_row[row as usize],
        }
    }

    /// Number of rows that are excluded for row `query`.
    pub fn n_excluded(&self, query: u32) -> usize {
        self.groups.as_ref().map_or(1, |groups| groups.sizes[groups.of_row[query as usize] as usize] as usize)
    }

    /// The class of a row.
    pub fn class(&self, row: u32) -> usize {
        self.classes.get(row as usize).map_or(0, |&class| usize::from(class))
    }

    /// The difference of `a` and `b` in feature `i`, in [0, 1].
    #[inline]
    pub fn difference(&self, i: usize, a: Example<'_>, b: Example<'_>) -> f64 {
        self.apart(i, (a.values[i], a.class), (b.values[i], b.class))
    }

    /// The difference between two values of feature `i`, each with the class of its row.
    #[inline]
    pub fn apart(&self, i: usize, (x, a): (f64, usize), (y, b): (f64, usize)) -> f64 {
        match (&self.missing_models[i], x.is_nan(), y.is_nan()) {
            (Some(model), true, true) => model.two(a, b),
            (Some(model), true, false) => model.one(y, a),
            (Some(model), false, true) => model.one(x, b),
            _ => match self.shapes[i] {
                Shape::Constant | Shape::Unknown => 0.0,
                Shape::Numeric => (x - y).abs(),
                Shape::Nominal => f64::from(x != y),
            },
        }
    }

    /// Returns true if all features are numeric and no value is missing.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Sets `out` to the difference of `a` and `b` in each feature.
    pub fn differences(&self, arch: Arch, a: Example<'_>, b: Example<'_>, out: &mut [f64]) {
        if self.plain {
            arch.dispatch(AbsDifferences { a: a.values, b: b.values, out });
        } else {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = self.difference(i, a, b));
        }
    }

    /// Sets `out` to the sums of differences, in the order of features, between `a` and each of `others`.
    pub fn distances(&self, a: Example<'_>, others: &[Example<'_>], out: &mut Vec<f64>) {
        out.clear();
        for group in others.chunks(TOGETHER) {
            let rows: [Example<'_>; TOGETHER] = std::array::from_fn(|n| group[n.min(group.len() - 1)]);
            let mut sums = [0.0; TOGETHER];
            if self.plain {
                let mut columns = rows.map(|row| row.values.iter());
                for x in a.values {
                    for (sum, column) in sums.iter_mut().zip(&mut columns) {
                        *sum += column.next().map_or(0.0, |value| (x - value).abs());
                    }
                }
            } else {
                for i in 0..a.values.len() {
                    for (sum, row) in sums.iter_mut().zip(rows) {
                        *sum += self.difference(i, a, row);
                    }
                }
            }
            out.extend_from_slice(&sums[..group.len()]);
        }
    }
}

/// |a − b|, element by element.
struct AbsDifferences<'a> {
    a: &'a [f64],
    b: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for AbsDifferences<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ((a, a_tail), (b, b_tail)) = (S::as_simd_f64s(self.a), S::as_simd_f64s(self.b));
        let (out, out_tail) = S::as_mut_simd_f64s(self.out);
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = simd.abs_f64s(simd.sub_f64s(*a, *b));
        }
        for ((out, a), b) in out_tail.iter_mut().zip(a_tail).zip(b_tail) {
            *out = (a - b).abs();
        }
    }
}

/// Adds `weight` times `by` to `sums`, element by element. Without fused operations: machines that have none would round
/// differently.
pub struct AddTimes<'a> {
    /// The sums, changed in place.
    pub sums: &'a mut [f64],
    /// The factor.
    pub weight: f64,
    /// Values to add, times `weight`.
    pub by: &'a [f64],
}

impl WithSimd for AddTimes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let weight = simd.splat_f64s(self.weight);
        let (sums, sums_tail) = S::as_mut_simd_f64s(self.sums);
        let (by, by_tail) = S::as_simd_f64s(self.by);
        for (sum, by) in sums.iter_mut().zip(by) {
            *sum = simd.add_f64s(*sum, simd.mul_f64s(weight, *by));
        }
        for (sum, by) in sums_tail.iter_mut().zip(by_tail) {
            *sum += self.weight * by;
        }
    }
}

/// The mean of `n_features` differences with sum `sum`, rounded to 12 decimals.
pub fn rounded(sum: f64, n_features: usize) -> f64 {
    distance_key(sum, n_features) as f64 / DECIMALS
}
