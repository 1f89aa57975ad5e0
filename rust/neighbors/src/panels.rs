//! Rows as the kernel reads them: panels of 16 rows, feature by feature, in f32.
//!
//! The rows of a panel are of one class, so that one threshold and one expected difference serve them
//! all; a class's last panel is filled up with rows that are infinitely far away. Features stand in the
//! order numeric, nominal, and then those that miss values.
//!
//! The distance of two rows is A + A' − 2 M: A belongs to one row and A' to the other, and M sums up, feature
//! by feature, what they have in common. A nominal value in common counts half its feature's weight; of
//! numeric ones either the smaller or the product does (see [`Common`]). So a value takes one or two
//! operations, where |a − b| or (a − b)² would take three or two.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::coarse::{Coarse, CoarsePanel};

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
    pub lacking: Vec<Lacking>,
    /// n_lacking x n_classes; where the differences expected from the class's unknown value stand.
    pub slots: Vec<u32>,
    /// Lines of expected differences in a panel.
    pub n_slots: usize,
    /// Number of classes of the rows.
    pub n_classes: usize,
}

/// A feature that misses values.
#[derive(Debug, Clone, Copy)]
pub struct Lacking {
    /// Number of the feature.
    pub feature: u32,
    /// True for a nominal feature.
    pub nominal: bool,
}

/// Rows, in panels.
#[derive(Debug)]
pub struct Panels {
    /// Panel after panel: n_whole x LANES; made when first asked for where rows are held otherwise.
    values: OnceLock<Vec<f32>>,
    /// Panel after panel: n_lacking x LANES; NaN where missing.
    lacking: Vec<f32>,
    /// Panel after panel: n_slots x LANES
    expected: Vec<f32>,
    /// Panel after panel: LANES; A of each row, infinite for nobody.
    sums: Vec<f32>,
    coarse: Coarse,
    /// Panel after panel: LANES
    pub numbers: Vec<u32>,
    /// n_panels
    pub classes: Vec<u16>,
}

/// One panel.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    /// Values of the features without missing values.
    pub values: Values<'a>,
    /// n_missing x LANES; values of the features with missing values, NaN where missing.
    pub lacking: &'a [f32],
    /// n_slots x LANES; expected differences.
    pub expected: &'a [f32],
    /// A of each row, infinite where there is no row.
    pub sums: &'a [f32; LANES],
    /// The values rounded to bytes.
    pub coarse: CoarsePanel<'a>,
    /// Numbers of the rows.
    pub numbers: &'a [u32; LANES],
    /// The class of all rows of the panel.
    pub class: usize,
}

/// The values of a panel in features without missing ones.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    all: &'a OnceLock<Vec<f32>>,
    coarse: &'a Coarse,
    layout: &'a Layout,
    number: usize,
}

impl<'a> Values<'a> {
    /// n_whole x LANES
    pub fn get(self) -> &'a [f32] {
        cut(self.all.get_or_init(|| self.coarse.turned(self.layout)), self.number, self.layout.whole.len())
    }
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

/// Where a row of a panel is written to: features that miss values at its lane of every line.
#[derive(Debug)]
pub struct Cells<'a> {
    /// Position of the row in its panel.
    pub lane: usize,
    /// n_whole
    pub values: &'a mut [f32],
    /// n_lacking x LANES
    pub lacking: &'a mut [f32],
    /// n_slots x LANES
    pub expected: &'a mut [f32],
    /// n_stand_ins
    pub stand_ins: &'a mut [f32],
}

impl Layout {
    /// Where the differences expected from an unknown value of `class` stand in [`Panel::expected`],
    /// for the feature number `lacking` of those that miss values.
    pub fn slot(&self, lacking: usize, class: usize) -> Option<usize> {
        Some(self.slots[lacking * self.n_classes + class]).filter(|slot| *slot != NONE).map(|slot| slot as usize)
    }

    /// How many numeric features miss values; they stand before nominal ones that do.
    ///
    /// In what bounds distances from below, the mean of its class may stand in for a missing value: it is no
    /// farther from any other than the values it could have are on average (Jensen's inequality).
    pub fn n_stand_ins(&self) -> usize {
        self.lacking.iter().take_while(|lacking| !lacking.nominal).count()
    }

    /// Bytes of a row in a panel.
    pub fn row_bytes(&self) -> usize {
        self.kernel_bytes() + Coarse::row_bytes(self)
    }

    fn kernel_bytes(&self) -> usize {
        4 * (self.whole.len() + self.lacking.len() + self.n_slots + 2)
    }
}

impl Panels {
    /// The rows called `members`, by class; `fill` writes one row and gives its A. Panels in parallel on the
    /// current pool.
    pub fn of(layout: &Layout, members: Vec<Vec<u32>>, fill: impl Fn(u32, &mut Cells<'_>) -> f32 + Sync) -> Self {
        let (mut numbers, mut classes) = (Vec::new(), Vec::new());
        for (class, mut members) in members.into_iter().enumerate() {
            members.resize(members.len().next_multiple_of(LANES), NOBODY);
            classes.resize(classes.len() + members.len() / LANES, class as u16);
            numbers.append(&mut members);
        }
        let n = numbers.len();
        let mut coarse = Coarse::new(layout, n);
        let n_whole = layout.whole.len();
        let is_turned = !coarse.has_rows();
        let turned_width = if is_turned { n_whole } else { 0 };
        let mut values = vec![0.0; n * turned_width];
        let mut lacking = vec![0.0; n * layout.lacking.len()];
        let mut expected = vec![0.0; n * layout.n_slots];
        let mut sums = vec![f32::INFINITY; n];
        // A chunk of no width cannot be told from none.
        let width = |n: usize| (n * LANES).max(1);
        let pad = |part: &mut Vec<f32>| part.resize(part.len().max(n / LANES), 0.0);
        [&mut values, &mut lacking, &mut expected].into_iter().for_each(pad);
        let stride = (n_whole + layout.n_stand_ins()).max(1);
        values
            .par_chunks_mut(width(turned_width))
            .zip(lacking.par_chunks_mut(width(layout.lacking.len())))
            .zip(expected.par_chunks_mut(width(layout.n_slots)))
            .zip(sums.par_chunks_mut(LANES))
            .zip(coarse.panels_mut(layout, n / LANES))
            .zip(numbers.par_chunks(LANES))
            .for_each_init(
                || vec![0.0; LANES * stride],
                |rows, (((((values, lacking), expected), sums), mut coarse), numbers)| {
                    let numbers = &numbers[..numbers.iter().take_while(|number| **number != NOBODY).count()];
                    for ((lane, &number), row) in numbers.iter().enumerate().zip(rows.chunks_exact_mut(stride)) {
                        let (values, stand_ins) = row.split_at_mut(n_whole);
                        sums[lane] = fill(number, &mut Cells { lane, values, lacking, expected, stand_ins });
                    }
                    let rows = &rows[..numbers.len() * stride];
                    turn(rows, stride, &mut values[..turned_width * LANES]);
                    coarse.fill(layout, rows, stride, lacking);
                },
            );
        let values = if is_turned { OnceLock::from(values) } else { OnceLock::new() };
        Panels { values, lacking, expected, sums, coarse, numbers, classes }
    }

    /// A of every row, infinite for nobody.
    pub fn sums(&self) -> impl Iterator<Item = f32> {
        self.sums.iter().copied()
    }

    /// Number of panels.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Panel number `number`.
    pub fn panel<'a>(&'a self, layout: &'a Layout, number: usize) -> Panel<'a> {
        Panel {
            values: Values { all: &self.values, coarse: &self.coarse, layout, number },
            lacking: cut(&self.lacking, number, layout.lacking.len()),
            expected: cut(&self.expected, number, layout.n_slots),
            sums: cut(&self.sums, number, 1).try_into().expect("LANES of them"),
            coarse: self.coarse.panel(layout, number),
            numbers: cut(&self.numbers, number, 1).try_into().expect("LANES of them"),
            class: usize::from(self.classes[number]),
        }
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
