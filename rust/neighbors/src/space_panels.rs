//! Rows of a distance [`Space`] in panels: the order of features, and the error of distances.
//!
//! M is the sum of the minima of numeric values and of 1/2 for each pair of equal nominal values. Features that are
//! constant in the data are left out, and so are those that have no weight in distances. Of other weights, which are at
//! most 1, numeric values and expected differences are multiples, and half the weight is in the place of 1/2.

use super::gaps::{Gaps, MOST_INTERPOLATED};
use super::missing::{INTERPOLATION_ERROR, MissingModel};
use super::rows::Rows;
use super::space::{Example, Shape, Space};
use crate::layout::{Error, Layout, MissingFeature, ROUNDING, additions};
use crate::panels::{Cells, Panels};

/// Categories whose numbers of equal ones, and halves of these, are exact in f32.
const MOST_EXACT: usize = 1 << 22;

/// Partial sums of a row's A, which need not wait for each other.
const SUMS: usize = 8;

/// The order of the features of `space` in panels.
pub fn layout_of(space: &Space) -> Layout {
    let mut layout = Layout { n_classes: space.n_classes, ..Layout::default() };
    for wanted in [Shape::Numeric, Shape::Nominal] {
        let is_nominal = wanted == Shape::Nominal;
        let features = (0..space.shapes.len()).filter(|&i| space.shapes[i] == wanted && space.weight(i) > 0.0);
        for feature in features {
            layout.is_uneven |= is_nominal && space.weight(feature) != 1.0;
            match &space.missing_models[feature] {
                None => layout.whole.push(feature as u32),
                Some(model) if model.has_few() => {
                    layout.whole.push(feature as u32);
                    layout.with_gaps.push(feature as u32);
                }
                Some(model) => {
                    let weight = space.weight(feature) as f32;
                    layout.with_missing.push(MissingFeature { feature: feature as u32, nominal: is_nominal, weight });
                    // The differences of informative missing values are the same for all classes.
                    let n_lines = if matches!(model, MissingModel::Informative) { 1 } else { space.n_classes };
                    layout.n_lines = layout.n_lines.max(n_lines);
                }
            }
        }
        if wanted == Shape::Numeric {
            layout.n_numeric = layout.whole.len();
        }
    }
    let mut numeric = space.missing_models.iter().zip(&space.shapes).filter(|(_, shape)| **shape == Shape::Numeric);
    let is_plane = numeric.any(|(model, _)| model.as_ref().is_some_and(MissingModel::is_worth_a_plane));
    layout.coordinates = if is_plane { 2 } else { 1 };
    let half = |&feature: &u32| (space.weight(feature as usize) / 2.0) as f32;
    layout.halves = layout.whole[layout.n_numeric..].iter().map(half).collect();
    layout
}

/// The error of distances from a row whose A is `sum`.
///
/// Values are rounded by at most 2⁻²⁵ each. A, A' and M are rounded by 2⁻²⁴ of themselves, and M once more for each
/// addition. M ≤ A and A + A' = distance + 2 M. Differences in features with missing values are added one by one. Between
/// categories alone there is no error.
pub fn error_of(layout: &Layout, sum: f64) -> Error {
    let all = layout.whole.len() + layout.with_missing.len();
    // Halves are added up without an error.
    if !layout.is_uneven && layout.n_numeric == 0 && layout.with_missing.is_empty() && all < MOST_EXACT {
        return Error { fixed: 0.0, relative: 0.0 };
    }
    // Two excesses, or what is beyond means, and the errors of interpolated differences.
    let (gaps, interpolated) = match layout.with_gaps.len() {
        0 => (0.0, 0.0),
        n => (4.0, n.min(MOST_INTERPOLATED) as f64 * INTERPOLATION_ERROR),
    };
    let fixed =
        interpolated + sum * (2.0 * additions(layout.whole.len()) + 4.0 * ROUNDING) + 2.0 * all as f64 * ROUNDING;
    // One tenth more for errors of second order and of sums in f64.
    Error { fixed: 1.1 * fixed, relative: 1.1 * (6.0 + gaps + layout.with_missing.len() as f64) * ROUNDING }
}

/// Writes the values of a row in features without missing values, or with few, times their weights; returns its A.
fn fill(layout: &Layout, space: &Space, example: Example<'_>, cells: &mut Cells<'_>) -> f32 {
    for (out, &feature) in cells.values.iter_mut().zip(&layout.whole) {
        *out = example.values[feature as usize] as f32;
    }
    if !layout.with_gaps.is_empty() {
        let values = cells.values.iter_mut().zip(&layout.whole).filter(|(value, _)| value.is_nan());
        values.for_each(|(value, &feature)| *value = space.mean(feature as usize, example.class) as f32);
    }
    if space.is_weighted() {
        let numeric = cells.values.iter_mut().zip(&layout.whole).take(layout.n_numeric);
        for (value, &feature) in numeric {
            let feature = feature as usize;
            let known = example.values[feature];
            let known = if known.is_nan() { space.mean(feature, example.class) } else { known };
            *value = (space.weight(feature) * known) as f32;
        }
    }
    let mut sums = [0.0; SUMS];
    for values in cells.values[..layout.n_numeric].chunks(SUMS) {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let halves = match layout.is_uneven {
        true => layout.halves.iter().map(|&half| f64::from(half)).sum(),
        false => layout.halves.len() as f64 / 2.0,
    };
    (halves + sums.iter().sum::<f64>()) as f32
}

/// Writes the values of a row in features with missing values, and its expected differences from these, times the
/// weights of the features. The features are `consecutive`, or not known to be.
fn fill_missing(
    layout: &Layout,
    space: &Space,
    example: Example<'_>,
    consecutive: Option<(usize, usize)>,
    cells: &mut Cells<'_>,
) {
    let n_missing = layout.with_missing.len();
    for (number, with_missing) in layout.with_missing.iter().enumerate() {
        let feature = with_missing.feature as usize;
        let (value, weight) = (example.values[feature], space.weight(feature));
        cells.with_missing[number] = if with_missing.nominal { value } else { weight * value } as f32;
        if !with_missing.nominal {
            let missing = || space.missing_models[feature].as_ref().map(|model| model.substitute(example.class));
            let found = if value.is_nan() { missing().unwrap_or_default() } else { [value / 2.0; 2] };
            let found = found.map(|coordinate| weight * coordinate);
            match &mut cells.points[layout.coordinates * number..][..layout.coordinates] {
                [sum] => *sum = (found[0] + found[1]) as f32,
                point => point.iter_mut().zip(found).for_each(|(point, coordinate)| *point = coordinate as f32),
            }
        }
    }
    for (line, out) in cells.expected.chunks_exact_mut(n_missing.max(1)).enumerate() {
        // With a tenth of 10,000 x 100 missing, one by one they took a twentieth of the time of a ranking.
        if let Some(values) = consecutive.and_then(|features| space.expected_of(features, example, line)) {
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = value as f32);
            continue;
        }
        for (out, with_missing) in out.iter_mut().zip(&layout.with_missing) {
            let feature = with_missing.feature as usize;
            *out = (space.weight(feature) * space.expected(feature, example, line)) as f32;
        }
    }
}

/// The first feature with missing values and their number, if they follow each other and have no weights.
fn consecutive(layout: &Layout, space: &Space) -> Option<(usize, usize)> {
    let features = layout.with_missing.iter().map(|with_missing| with_missing.feature as usize);
    let (first, n) = (features.clone().next()?, layout.with_missing.len());
    (!space.is_weighted() && features.eq(first..first + n)).then_some((first, n))
}

/// The numbers of the `rows` of each class.
pub(crate) fn members(space: &Space, rows: &Rows) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); space.n_classes];
    rows.numbers.iter().for_each(|&number| members[space.class(number)].push(number));
    members
}

/// Panels of all `rows`, by class and row number.
pub fn panels_of(layout: &Layout, space: &Space, rows: &Rows) -> Panels {
    let consecutive = consecutive(layout, space);
    let mut panels = Panels::new(layout, members(space, rows), |number, cells| {
        let example = space.example(number, rows.row(number));
        fill_missing(layout, space, example, consecutive, cells);
        fill(layout, space, example, cells)
    });
    if !layout.with_gaps.is_empty() {
        panels.gaps = Some(Gaps::new(&panels.numbers, |number| {
            let Example { values, class, .. } = space.example(number, rows.row(number));
            let missing = layout.with_gaps.iter().copied().filter(|&feature| values[feature as usize].is_nan());
            missing.map(|feature| (feature, space.excess(feature as usize, class))).collect()
        }));
    }
    panels
}
