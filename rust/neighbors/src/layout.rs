//! Where features stand in panels, and how far distances computed from panels may be off.

/// Rows of a panel.
pub const LANES: usize = 16;
/// Number of the rows that fill up a panel.
pub const NOBODY: u32 = u32::MAX;
/// Features summed up before their sum goes to the total, which keeps rounding errors small.
pub const RUN: usize = 32;
/// No rows miss the feature.
pub const NONE: u32 = u32::MAX;
/// Half a unit in the last place of a number in [1, 2).
pub const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;

/// What two numeric values have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Common {
    /// The smaller, for the sum of |a − b|; A is then the sum of a row's values.
    #[default]
    Least,
    /// The product, for the sum of (a − b)²; A is then the sum of a row's squared values.
    Product,
}

/// Where the features stand in a panel.
#[derive(Debug, Default)]
pub struct Layout {
    /// How two values contribute to M.
    pub common: Common,
    /// Features without missing values, numeric ones first.
    pub whole: Vec<u32>,
    /// How many of `whole` are numeric.
    pub n_numeric: usize,
    /// The others; half the weight of each.
    pub halves: Vec<f32>,
    /// Features that miss values.
    pub with_missing: Vec<MissingFeature>,
    /// n_lacking x n_classes; where the differences expected from the class's unknown value stand.
    pub slots: Vec<u32>,
    /// Lines of expected differences in a panel.
    pub n_slots: usize,
    /// Number of classes of the rows.
    pub n_classes: usize,
}

/// A feature that misses values.
#[derive(Debug, Clone, Copy)]
pub struct MissingFeature {
    /// Number of the feature.
    pub feature: u32,
    /// True for a nominal feature.
    pub nominal: bool,
}

/// The part of a panel, `width` lines, of those of all panels.
pub(super) fn cut<T>(all: &[T], number: usize, width: usize) -> &[T] {
    &all[number * width * LANES..(number + 1) * width * LANES]
}

/// How far a distance computed from panels may be from the true one: by `fixed` for the row and by the
/// share `relative` of the distance itself.
#[derive(Debug, Clone, Copy)]
pub struct Error {
    /// Largest error of a row, whatever the distance.
    pub fixed: f64,
    /// Largest error as a share of the distance.
    pub relative: f64,
}

/// By how much, as a share of it, a sum of `n` numbers that the kernel adds up may be off.
pub fn additions(n: usize) -> f64 {
    (n.min(RUN) + n.div_ceil(RUN) + 2) as f64 * ROUNDING
}

impl Layout {
    /// Where the differences expected from an unknown value of `class` stand among the expected differences of a panel,
    /// for the feature number `with_missing` of those that miss values.
    pub fn slot(&self, with_missing: usize, class: usize) -> Option<usize> {
        Some(self.slots[with_missing * self.n_classes + class]).filter(|slot| *slot != NONE).map(|slot| slot as usize)
    }

    /// How many numeric features miss values; they stand before nominal ones that do.
    ///
    /// In what bounds distances from below, the mean of its class may stand in for a missing value: it is no
    /// farther from any other than the values it could have are on average (Jensen's inequality).
    pub fn n_substitutes(&self) -> usize {
        self.with_missing.iter().take_while(|with_missing| !with_missing.nominal).count()
    }

    /// Bytes that the kernel needs for a row.
    pub fn kernel_bytes(&self) -> usize {
        4 * (self.whole.len() + self.with_missing.len() + self.n_slots + 2)
    }
}

/// Writes the first values of `rows`, LANES at most, one every `stride` values, into the lanes of a panel.
pub(super) fn turn(rows: &[f32], stride: usize, panel: &mut [f32]) {
    for (start, lines) in (0..).step_by(LANES).zip(panel.chunks_mut(LANES * LANES)) {
        for (lane, row) in rows.chunks(stride).enumerate() {
            for (line, value) in lines.chunks_exact_mut(LANES).zip(&row[start..]) {
                line[lane] = *value;
            }
        }
    }
}
