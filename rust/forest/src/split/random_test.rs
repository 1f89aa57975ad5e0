//! Random tests, as extra trees draw them (Geurts et al. 2006, Table 1).

use rand::{Rng, RngExt};

use crate::tree_buffer::{KNOWN, MissingSide};
use ferrank_runtime::random::Stream;

/// The number at `share` of the way from `low` to `high`, at least `low` and below `high`.
#[inline(always)]
pub(crate) fn threshold(low: f64, high: f64, share: f64) -> f64 {
    (low * (1.0 - share) + high * share).clamp(low, high.next_down())
}

/// A cut uniform between the values of the codes `low` and `high`. Returns the highest code on the left; `values` are
/// those of all codes.
fn random_cut(values: &[f64], low: usize, high: usize, random: &mut Stream) -> usize {
    let at = threshold(values[low], values[high], random.random());
    low + values[low..high].partition_point(|&value| value <= at) - 1
}

/// The side of the missing values in a random test of a feature; `None` for the test whether the value is known, which is
/// the only one unless the known values vary.
///
/// The three are equally likely. A rarer test whether the value is known finds less where few values are missing and tell
/// the target; with a tenth instead of a third, AUC falls from 0.985 to 0.972 (2,000 x 50, 2 % missing, three times as
/// many in one class). Where missing values tell nothing, it is the other way round: 0.909 and 0.923 (500 x 50, 40 %
/// missing).
pub(crate) fn random_side(known_vary: bool, random: &mut Stream) -> Option<MissingSide> {
    if !known_vary {
        return None;
    }
    match random.random_range(0..3) {
        0 => None,
        1 => Some(MissingSide::Left),
        _ => Some(MissingSide::Right),
    }
}

/// A random test of a numeric feature whose known codes in the node are between `low` and `high`: the highest code on the
/// left, and the side of the missing values, if the node `has_missing` ones.
pub(crate) fn random_sided_cut(
    values: &[f64],
    (low, high): (usize, usize),
    has_missing: bool,
    random: &mut Stream,
) -> (u16, MissingSide) {
    let side = if has_missing { random_side(low < high, random) } else { Some(MissingSide::Heavier) };
    match side {
        None => (KNOWN, MissingSide::Right),
        Some(side) => (random_cut(values, low, high, random) as u16, side),
    }
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
