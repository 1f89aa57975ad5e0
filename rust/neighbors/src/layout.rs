//! The order of features in panels, and the error of distances computed from panels.

/// Rows of a panel.
pub const LANES: usize = 16;
/// Row number of padding.
pub const NO_ROW: u32 = u32::MAX;
/// Features in a partial sum; partial sums keep rounding errors small.
pub const RUN: usize = 32;
/// Features in a sum of partial sums, the level above [`RUN`]. With it, measuring pairs again in f64 takes a third less
/// time on 500 rows x 60,000 features.
pub const LONG_RUN: usize = 32 * RUN;
/// Relative rounding error of f32: half a unit in the last place of a number in [1, 2).
pub const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;

/// What two numeric values contribute to M, the common part of a distance A + A' − 2 M.
///
/// ```
/// # use ferrank_neighbors::kernel::Measure;
/// # use ferrank_neighbors::panels::Panels;
/// # use pulp::Arch;
/// use ferrank_neighbors::layout::{Common, LANES, Layout};
///
/// // Rows 0 and 1 have the values 1 and 4 in the only feature.
/// let distance = |common: Common, a: fn(f32) -> f32| {
///     let layout = Layout { common, whole: vec![0], n_numeric: 1, n_classes: 1, ..Layout::default() };
///     let panels = Panels::new(&layout, vec![vec![0, 1]], |number, cells| {
///         cells.values[0] = [1.0, 4.0][number as usize];
///         a(cells.values[0])
///     });
///     let (panel, mut lines) = (panels.panel(&layout, 0), [[0.0; LANES]; LANES]);
///     Arch::new().dispatch(Measure::new(&layout, panel, panel, &mut lines));
///     lines[0][1]
/// };
/// assert_eq!(distance(Common::Least, |value| value), 3.0);
/// assert_eq!(distance(Common::Product, |value| value * value), 9.0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// The smaller, for the sum of |a − b|; A is then the sum of a row's values.
    #[default]
    Least,
    /// The product, for the sum of (a − b)²; A is then the sum of a row's squared values.
    Product,
}

/// The order of features in a panel.
///
/// ```
/// # use ferrank_neighbors::missing::MissingModel;
/// # use ferrank_neighbors::space::{Shape, Space};
/// use ferrank_neighbors::layout::Layout;
/// use ferrank_neighbors::space_panels::layout_of;
///
/// // Constant features are left out.
/// let shapes = vec![Shape::Nominal, Shape::Numeric, Shape::Constant, Shape::Numeric];
/// let models = vec![None, None, None, Some(MissingModel::Informative)];
/// let layout: Layout = layout_of(&Space::new(shapes, models, Vec::new(), 1));
/// assert_eq!((&layout.whole[..], layout.n_numeric, &layout.halves[..]), (&[1, 0][..], 1, &[0.5][..]));
/// assert_eq!((layout.with_missing[0].feature, layout.n_expected()), (3, 1));
/// ```
#[derive(Debug, Default)]
pub struct Layout {
    /// How two values contribute to M.
    pub common: Common,
    /// Features without missing values, or numeric with few; numeric ones first.
    pub whole: Vec<u32>,
    /// The features among `whole` that have missing values, which are few.
    pub with_gaps: Vec<u32>,
    /// How many of `whole` are numeric.
    pub n_numeric: usize,
    /// n_whole − n_numeric; half the weight of each nominal feature.
    pub halves: Vec<f32>,
    /// The other features with missing values.
    pub with_missing: Vec<MissingFeature>,
    /// Bytes of a value of a numeric feature with missing values: 2 for a point of a plane, or 1.
    pub coordinates: usize,
    /// Lines of expected differences of a row, each n_with_missing long: from missing values of each class, or of all.
    pub n_lines: usize,
    /// Number of classes of the rows.
    pub n_classes: usize,
    /// True if rows have no byte codes because it takes longer to make these than it would save.
    pub is_short: bool,
    /// True if categories of some features differ by less than 1, for which there are no byte codes.
    pub is_uneven: bool,
}

/// A feature with missing values.
///
/// ```
/// # use ferrank_neighbors::missing::MissingModel;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::layout_of;
/// use ferrank_neighbors::layout::MissingFeature;
///
/// // Numeric features come first; they alone have substitutes.
/// let models = vec![Some(MissingModel::Informative), Some(MissingModel::Informative)];
/// let layout = layout_of(&Space::new(vec![Shape::Nominal, Shape::Numeric], models, Vec::new(), 1));
/// let order = layout.with_missing.iter().map(|&MissingFeature { feature, nominal, .. }| (feature, nominal));
/// assert_eq!(order.collect::<Vec<_>>(), [(1, false), (0, true)]);
/// assert_eq!(layout.n_substituted(), 1);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MissingFeature {
    /// Number of the feature.
    pub feature: u32,
    /// True for a nominal feature.
    pub nominal: bool,
    /// By how much two categories of it differ, in (0, 1]; values of numeric features are scaled themselves.
    pub weight: f32,
}

/// The `width` lines of panel `number` in `all`.
pub(super) fn cut<T>(all: &[T], number: usize, width: usize) -> &[T] {
    &all[number * width * LANES..(number + 1) * width * LANES]
}

/// Bound on the error of a distance computed from panels: `fixed` plus `relative` times the distance.
///
/// ```
/// use ferrank_neighbors::layout::Error;
///
/// let error = Error { fixed: 0.25, relative: 0.5 };
/// assert_eq!((error.lowest(1.0), error.highest(1.0)), (0.5, 1.875));
/// // A row measured at 1.0 may be as near as 0.5, so it is within the threshold of 0.5.
/// assert!(error.threshold(0.5) >= 1.0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Error {
    /// Absolute part.
    pub fixed: f64,
    /// Share of the distance.
    pub relative: f64,
}

impl Error {
    /// Upper bound of the true distance, a sum of differences, of a row whose distance in f32 is `distance`.
    #[inline]
    pub fn highest(self, distance: f32) -> f64 {
        (f64::from(distance) + self.fixed) * (1.0 + self.relative)
    }

    /// Lower bound of the true distance of a row whose distance in f32 is `distance`.
    #[inline]
    pub fn lowest(self, distance: f32) -> f64 {
        (f64::from(distance) - self.fixed) / (1.0 + self.relative)
    }

    /// Returns true if distances are exact, so that equal ones are of rows that are equally far.
    #[inline]
    pub fn is_zero(self) -> bool {
        self.fixed == 0.0 && self.relative == 0.0
    }

    /// Upper bound of the distance in f32 of rows whose true distance is at most `most`.
    #[inline]
    pub fn threshold(self, most: f64) -> f32 {
        ((most * (1.0 + self.relative) + self.fixed) as f32).next_up()
    }
}

/// Relative error of a sum of `n` numbers as the kernel adds them up.
pub fn additions(n: usize) -> f64 {
    (n.min(RUN) + n.min(LONG_RUN).div_ceil(RUN) + n.div_ceil(LONG_RUN) + 1) as f64 * ROUNDING
}

impl Layout {
    /// The line of the expected differences from missing values of `class`.
    pub fn line(&self, class: usize) -> usize {
        class.min(self.n_lines.saturating_sub(1))
    }

    /// Number of expected differences of a row.
    pub fn n_expected(&self) -> usize {
        self.n_lines * self.with_missing.len()
    }

    /// Number of numeric features with missing values; they come before the nominal ones.
    ///
    /// Lower bounds of distances replace their missing values by
    /// [substitutes](crate::missing::MissingModel::substitute).
    pub fn n_substituted(&self) -> usize {
        self.with_missing.iter().take_while(|with_missing| !with_missing.nominal).count()
    }

    /// The same layout for searches among `n_rows` rows.
    ///
    /// Byte codes of 500 rows of 20,000 features took 1.2 times the time that a ranking takes without them; of 1,000 rows
    /// of 2,000 features they take 0.8 of it.
    pub fn for_rows(self, n_rows: usize) -> Self {
        const FEW: usize = 768;
        const MANY: usize = 1_024;
        Layout { is_short: n_rows < FEW && self.whole.len() + self.with_missing.len() >= MANY, ..self }
    }

    /// Bytes of a row as the kernel reads it.
    pub fn kernel_bytes(&self) -> usize {
        4 * (self.whole.len() + self.with_missing.len() + self.n_expected() + 2)
    }
}

/// Transposes `rows`, at most LANES, each `stride` values after the one before, into the lines of a panel.
pub(super) fn transpose(rows: &[f32], stride: usize, panel: &mut [f32]) {
    for (start, lines) in (0..).step_by(LANES).zip(panel.chunks_mut(LANES * LANES)) {
        for (lane, row) in rows.chunks(stride).enumerate() {
            for (line, value) in lines.chunks_exact_mut(LANES).zip(&row[start..]) {
                line[lane] = *value;
            }
        }
    }
}
