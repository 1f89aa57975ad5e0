//! Random tests, as extra trees draw them (Geurts et al. 2006, Table 1).

use rand::{Rng, RngExt};

use ferrank_runtime::random::Stream;

/// The number at `share` of the way from `low` to `high`, at least `low` and below `high`.
#[inline(always)]
pub(crate) fn threshold(low: f64, high: f64, share: f64) -> f64 {
    (low * (1.0 - share) + high * share).clamp(low, high.next_down())
}

/// A cut uniform between the values of the codes `low` and `high`. Returns the highest code on the left; `values` are
/// those of all codes.
pub(crate) fn random_cut(values: &[f64], low: usize, high: usize, random: &mut Stream) -> usize {
    let at = threshold(values[low], values[high], random.random());
    low + values[low..high].partition_point(|&value| value <= at) - 1
}

/// A random subset of `n` positions, neither none nor all.
pub(crate) fn random_subset(n: usize, random: &mut Stream) -> Vec<usize> {
    loop {
        let chosen: Vec<usize> = (0..n).filter(|_| random.next_u32() & 1 == 1).collect();
        if !chosen.is_empty() && chosen.len() < n {
            return chosen;
        }
    }
}
