//! Columns of values that are held row by row.

/// Appends the values of `features` in rows of `width` features to `columns`.
///
/// Few rows at a time: their lines of the cache serve all features that share them.
pub(crate) fn append_columns((rows, width): (&[f64], usize), features: &[usize], columns: &mut [Vec<f64>]) {
    const ROWS: usize = 256;
    for rows in rows.chunks(ROWS * width.max(1)) {
        for (column, &feature) in columns.iter_mut().zip(features) {
            column.extend(rows[feature..].iter().step_by(width));
        }
    }
}
