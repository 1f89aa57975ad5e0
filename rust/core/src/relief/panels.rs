//! Rows as the kernel reads them: panels of 16 rows, feature by feature, in f32.
//!
//! The rows of a panel are of one class, so that one threshold and one expected difference serve them
//! all; a class's last panel is filled up with rows that are infinitely far away. Features stand in the
//! order numeric, nominal, and then those that miss values. Constant ones are left out.
//!
//! With A the sum of a row's numeric values plus half the number of its nominal ones, the distance of
//! two rows is A + A' − 2 M, where M sums up the smaller of two numeric values and 1/2 for each nominal
//! value in common. M takes two operations a value, |a − b| would take three.

use rayon::prelude::*;

use super::rows::Rows;
use super::space::{Example, Shape, Space};

/// Rows of a panel.
pub(crate) const LANES: usize = 16;
/// Number of the rows that fill up a panel.
pub(crate) const NOBODY: u32 = u32::MAX;
/// Features summed up before their sum goes to the total, which keeps rounding errors small.
pub(crate) const RUN: usize = 64;
/// No rows miss the feature.
const NONE: u32 = u32::MAX;
/// Half a unit in the last place of a number in [1, 2).
const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;

/// Where the features stand in a panel.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Features without missing values, numeric ones first.
    whole: Vec<u32>,
    /// How many of `whole` are numeric.
    pub(crate) n_numeric: usize,
    /// Features that miss values.
    pub(crate) lacking: Vec<Lacking>,
    /// n_lacking x n_classes; where the differences expected from the class's unknown value stand.
    slots: Vec<u32>,
    n_slots: usize,
    n_classes: usize,
}

/// A feature that misses values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lacking {
    feature: u32,
    pub(crate) nominal: bool,
}

/// Rows, in panels.
#[derive(Debug)]
pub(crate) struct Panels {
    /// Panel after panel: n_whole x LANES
    values: Vec<f32>,
    /// Panel after panel: n_lacking x LANES; NaN where missing.
    lacking: Vec<f32>,
    /// Panel after panel: n_slots x LANES
    expected: Vec<f32>,
    /// Panel after panel: LANES; A of each row, infinite for nobody.
    sums: Vec<f32>,
    /// Panel after panel: LANES
    pub(crate) numbers: Vec<u32>,
    /// n_panels
    pub(crate) classes: Vec<u16>,
}

/// One panel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) lacking: &'a [f32],
    pub(crate) expected: &'a [f32],
    pub(crate) sums: &'a [f32; LANES],
    pub(crate) numbers: &'a [u32; LANES],
    pub(crate) class: usize,
}

/// How far a distance computed from panels may be from the true one: by `fixed` for the row and by the
/// share `relative` of the distance itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Error {
    pub(crate) fixed: f64,
    pub(crate) relative: f64,
}

impl Layout {
    pub(crate) fn new(space: &Space) -> Self {
        let mut layout = Layout { n_classes: space.n_classes, ..Layout::default() };
        for wanted in [Shape::Numeric, Shape::Nominal] {
            let features = (0..space.shapes.len()).filter(|&i| space.shapes[i] == wanted);
            for feature in features {
                match &space.lacks[feature] {
                    None => layout.whole.push(feature as u32),
                    Some(lack) => layout.add_lacking(feature, wanted, &lack.missed),
                }
            }
            if wanted == Shape::Numeric {
                layout.n_numeric = layout.whole.len();
            }
        }
        layout
    }

    fn add_lacking(&mut self, feature: usize, shape: Shape, missed: &[bool]) {
        self.lacking.push(Lacking { feature: feature as u32, nominal: shape == Shape::Nominal });
        for missed in missed {
            self.slots.push(if *missed { self.n_slots as u32 } else { NONE });
            self.n_slots += usize::from(*missed);
        }
    }

    /// Where the differences expected from an unknown value of `class` stand in [`Panel::expected`],
    /// for the feature number `lacking` of those that miss values.
    pub(crate) fn slot(&self, lacking: usize, class: usize) -> Option<usize> {
        Some(self.slots[lacking * self.n_classes + class]).filter(|slot| *slot != NONE).map(|slot| slot as usize)
    }

    /// The error of distances from a row whose A is `sum`.
    ///
    /// Values are rounded by at most 2⁻²⁵ each; A, A' and M by 2⁻²⁴ of themselves, and M once more for
    /// each addition on its way; M ≤ A and A + A' = distance + 2 M.
    pub(crate) fn error(&self, sum: f64) -> Error {
        let additions = |n: usize| (n.min(RUN) + n.div_ceil(RUN) + 2) as f64 * ROUNDING;
        let all = self.whole.len() + self.lacking.len();
        let fixed = sum * (2.0 * additions(self.whole.len()) + 4.0 * ROUNDING) + 2.0 * all as f64 * ROUNDING;
        // A tenth for the errors of errors, and of sums in f64.
        Error { fixed: 1.1 * fixed, relative: 1.1 * (4.0 * ROUNDING + additions(self.lacking.len())) }
    }

    /// Bytes of a row in a panel.
    pub(crate) fn row_bytes(&self) -> usize {
        4 * (self.whole.len() + self.lacking.len() + self.n_slots + 2)
    }
}

impl Panels {
    /// All of `rows`, by class and number; panels in parallel on the current pool.
    pub(crate) fn new(layout: &Layout, space: &Space, rows: &Rows) -> Self {
        let mut by_class: Vec<Vec<u32>> = vec![Vec::new(); space.n_classes];
        rows.numbers.iter().for_each(|&number| by_class[space.class(number)].push(number));
        let (mut numbers, mut classes) = (Vec::new(), Vec::new());
        for (class, mut members) in by_class.into_iter().enumerate() {
            members.resize(members.len().next_multiple_of(LANES), NOBODY);
            classes.resize(classes.len() + members.len() / LANES, class as u16);
            numbers.append(&mut members);
        }
        let n = numbers.len();
        let mut panels = Panels {
            values: vec![0.0; n * layout.whole.len()],
            lacking: vec![0.0; n * layout.lacking.len()],
            expected: vec![0.0; n * layout.n_slots],
            sums: vec![f32::INFINITY; n],
            numbers,
            classes,
        };
        // A chunk of no width cannot be told from none.
        let width = |n: usize| (n * LANES).max(1);
        let pad = |part: &mut Vec<f32>| part.resize(part.len().max(n / LANES), 0.0);
        [&mut panels.values, &mut panels.lacking, &mut panels.expected].into_iter().for_each(pad);
        panels
            .values
            .par_chunks_mut(width(layout.whole.len()))
            .zip(panels.lacking.par_chunks_mut(width(layout.lacking.len())))
            .zip(panels.expected.par_chunks_mut(width(layout.n_slots)))
            .zip(panels.sums.par_chunks_mut(LANES))
            .zip(panels.numbers.par_chunks(LANES))
            .for_each(|((((values, lacking), expected), sums), numbers)| {
                for (lane, &number) in numbers.iter().enumerate().take_while(|(_, number)| **number != NOBODY) {
                    let example = Example { values: rows.row(number), class: space.class(number) };
                    sums[lane] = layout.fill(example, lane, values);
                    layout.fill_lacking(space, example, lane, lacking, expected);
                }
            });
        panels
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn panel(&self, layout: &Layout, number: usize) -> Panel<'_> {
        fn cut<T>(all: &[T], number: usize, width: usize) -> &[T] {
            &all[number * width * LANES..(number + 1) * width * LANES]
        }
        Panel {
            values: cut(&self.values, number, layout.whole.len()),
            lacking: cut(&self.lacking, number, layout.lacking.len()),
            expected: cut(&self.expected, number, layout.n_slots),
            sums: cut(&self.sums, number, 1).try_into().expect("LANES of them"),
            numbers: cut(&self.numbers, number, 1).try_into().expect("LANES of them"),
            class: usize::from(self.classes[number]),
        }
    }
}

impl Layout {
    /// Writes the whole values of a row; gives its A.
    fn fill(&self, example: Example<'_>, lane: usize, out: &mut [f32]) -> f32 {
        let mut sum = (self.whole.len() - self.n_numeric) as f64 / 2.0;
        let places = out.chunks_exact_mut(LANES).map(|lanes| &mut lanes[lane]);
        for ((place, out), &feature) in places.enumerate().zip(&self.whole) {
            *out = example.values[feature as usize] as f32;
            if place < self.n_numeric {
                sum += f64::from(*out);
            }
        }
        sum as f32
    }

    fn fill_lacking(&self, space: &Space, example: Example<'_>, lane: usize, out: &mut [f32], expected: &mut [f32]) {
        for (number, lacking) in self.lacking.iter().enumerate() {
            let feature = lacking.feature as usize;
            let (value, lack) = (example.values[feature], space.lacks[feature].as_ref().expect("it misses values"));
            out[number * LANES + lane] = value as f32;
            for class in 0..self.n_classes {
                if let Some(slot) = self.slot(number, class) {
                    let difference =
                        if value.is_nan() { lack.two(example.class, class) } else { lack.one(value, class) };
                    expected[slot * LANES + lane] = difference as f32;
                }
            }
        }
    }
}
