//! Mid-ranks: values replaced by their places in the order of all rows (Conover and Iman 1981).
//!
//! Equal values share the mean of their ranks. Ranks are scaled so that their range is 1, and missing values stay
//! missing. One wild value then no longer makes all other differences of its feature small.
//!
//! Twice a mid-rank is an integer, so ranks have the same bits however the rows were held. Where rows have weights, a rank
//! is the weight of the rows with lower values and half of that of the rows with the same value, added up in the order of
//! the rows: a row of weight 2 counts as two rows.

use super::space::Scale;

/// An integer with the order of `value`; equal for 0 and −0.
fn order_of(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The weights of rows; empty, which stands for 1 each, where all are 1.
///
/// ```
/// use ferrank_neighbors::ranks::without_ones;
///
/// assert_eq!(without_ones(vec![1.0, 2.0]), [1.0, 2.0]);
/// assert!(without_ones(vec![1.0, 1.0]).is_empty());
/// ```
pub fn without_ones(weights: Vec<f64>) -> Vec<f64> {
    if weights.iter().all(|weight| *weight == 1.0) { Vec::new() } else { weights }
}

/// Bytes of a value while its column is ranked, beside the column.
pub const RANKING_BYTES: usize = size_of::<(u64, u32)>();

/// Replaces the known values of a column by their mid-ranks, scaled to [0, 1]; 0 where all are equal.
///
/// `count` more rows have the value `usual`. Returns its rank.
pub fn to_mid_ranks(values: &mut [f64], (usual, count): (f64, usize)) -> f64 {
    let known = (0..).zip(&*values).filter(|(_, value)| !value.is_nan());
    let mut order: Vec<(u64, u32)> = known.map(|(place, &value)| (order_of(value), place)).collect();
    order.sort_unstable();
    // Ranks are doubled: equal values after `below` others have the ranks below … below + n − 1.
    let mut below = 0;
    let mut next = |n: usize| {
        let doubled = (2 * below + n - 1) as f64;
        below += n;
        doubled
    };
    let usual = order_of(usual);
    let mut usual_rank = None;
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for run in order.chunk_by(|a, b| a.0 == b.0) {
        let value = run[0].0;
        if usual_rank.is_none() && count > 0 && usual < value {
            let rank = next(count);
            (usual_rank, low) = (Some(rank), low.min(rank));
        }
        let is_usual = value == usual;
        high = next(if is_usual { run.len() + count } else { run.len() });
        low = low.min(high);
        if is_usual {
            usual_rank = Some(high);
        }
        run.iter().for_each(|&(_, place)| values[place as usize] = high);
    }
    if usual_rank.is_none() && count > 0 {
        high = next(count);
        (usual_rank, low) = (Some(high), low.min(high));
    }
    let scaled = |rank: f64| if low < high { Scale::normalize(rank, low, high) } else { rank - low };
    values.iter_mut().filter(|value| !value.is_nan()).for_each(|value| *value = scaled(*value));
    usual_rank.map_or(0.0, scaled)
}

/// Replaces the known values of a column as [`to_mid_ranks`] does, where rows count with these `weights`, or 1 each without
/// weights.
pub fn to_weighted_mid_ranks(values: &mut [f64], weights: &[f64]) {
    if weights.is_empty() {
        to_mid_ranks(values, (0.0, 0));
        return;
    }
    let known = (0..).zip(&*values).filter(|(_, value)| !value.is_nan());
    let mut order: Vec<(u64, u32)> = known.map(|(place, &value)| (order_of(value), place)).collect();
    order.sort_unstable();
    let (mut below, mut low, mut high) = (0.0, 0.0, 0.0);
    for (number, run) in order.chunk_by(|a, b| a.0 == b.0).enumerate() {
        let equal: f64 = run.iter().map(|&(_, place)| weights[place as usize]).sum();
        high = below + equal / 2.0;
        below += equal;
        low = if number == 0 { high } else { low };
        run.iter().for_each(|&(_, place)| values[place as usize] = high);
    }
    let scaled = |rank: f64| if low < high { Scale::normalize(rank, low, high) } else { 0.0 };
    values.iter_mut().filter(|value| !value.is_nan()).for_each(|value| *value = scaled(*value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(values: &[f64]) -> Vec<f64> {
        let mut ranked = values.to_vec();
        to_mid_ranks(&mut ranked, (0.0, 0));
        ranked
    }

    #[test]
    fn equal_values_share_the_mean_of_their_ranks() {
        // Ranks 1, 2, 3.5, 3.5, 5: from 0 to 1.
        assert_eq!(ranked(&[7.0, -1e300, 1e300, 7.0, 0.0]), [0.625, 0.0, 1.0, 0.625, 0.25]);
        // Ranks 1.5, 1.5, 3.5, 3.5.
        assert_eq!(ranked(&[-0.0, 0.0, 2.0, 2.0]), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(ranked(&[3.0, 3.0]), [0.0, 0.0]);
        assert!(ranked(&[]).is_empty());
    }

    #[test]
    fn a_row_of_weight_two_ranks_as_two_rows() {
        let (values, weights) = ([3.0, -1.0, f64::NAN, 3.0, 0.5, 7.0], [2.0, 1.0, 5.0, 1.0, 4.0, 3.0]);
        let mut found = values.to_vec();
        to_weighted_mid_ranks(&mut found, &weights);
        let rows = (0..values.len()).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize));
        let rows: Vec<usize> = rows.collect();
        let expected = ranked(&rows.iter().map(|&row| values[row]).collect::<Vec<f64>>());
        for (&row, expected) in rows.iter().zip(&expected) {
            assert!((found[row] - expected).abs() < 1e-15 || values[row].is_nan(), "{found:?} {expected}");
        }
        let mut one = vec![4.0, f64::NAN, 4.0];
        to_weighted_mid_ranks(&mut one, &[1.0, 2.0, 3.0]);
        assert!(one[0] == 0.0 && one[1].is_nan() && one[2] == 0.0);
    }

    #[test]
    fn missing_values_stay_missing_and_have_no_rank() {
        let found = ranked(&[f64::NAN, 5.0, 1.0, f64::NAN, 3.0]);
        assert!(found[0].is_nan() && found[3].is_nan());
        assert_eq!([found[1], found[2], found[4]], [1.0, 0.0, 0.5]);
        assert!(ranked(&[f64::NAN])[0].is_nan());
    }

    #[test]
    fn rows_with_the_usual_value_count_as_if_they_were_there() {
        for others in [vec![-2.0, 1.0, 3.0, 1.0], vec![1.0, 2.0], vec![-1.0], vec![-1.0, -2.0], vec![0.0, 1.0], vec![]]
        {
            for count in 0..4 {
                let mut alone = others.clone();
                let usual = to_mid_ranks(&mut alone, (0.0, count));
                let mut all = others.clone();
                all.resize(others.len() + count, 0.0);
                let all = ranked(&all);
                assert_eq!(alone, all[..others.len()], "{others:?} and {count} zeros");
                assert!(count == 0 || usual == all[others.len()], "{others:?} and {count} zeros");
            }
        }
    }
}
