//! Random orders of the numbers below n that tell each place on its own: no other has to be drawn for it.
//!
//! A generalised Feistel network on a grid of a x b ≥ n cells, walked on as long as it leads beyond n (Black
//! and Rogaway 2002, "Ciphers with arbitrary finite domains"). The grid has few cells too many, so that hardly
//! any number walks on.

/// Rounds after which all orders are as likely, as far as many draws can tell: of few numbers, and of many.
const ROUNDS: [u32; 2] = [24, 6];
/// Numbers that are many.
const MANY: u32 = 1024;
/// Constants of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// The orders of the numbers below n, one for each key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders {
    n: u32,
    /// Columns of the grid: an even number, since shifts by columns and rows of odd lengths reach even orders alone.
    a: u32,
    b: u32,
    /// 2^64 / a, rounded up.
    by_a: u64,
    rounds: u32,
}

impl Orders {
    pub(crate) fn of(n: u32) -> Self {
        let a = ((n - 1).isqrt() + 1).next_multiple_of(2);
        let rounds = ROUNDS[usize::from(n >= MANY)];
        Orders { n, a, b: n.div_ceil(a), by_a: u64::MAX / u64::from(a) + 1, rounds }
    }

    /// What stands at `place` in the order of `key`.
    #[inline(always)]
    pub(crate) fn at(self, key: u64, place: u32) -> u32 {
        debug_assert!(place < self.n);
        let mut number = place;
        loop {
            // Exact for all numbers of 32 bits, and no division.
            let mut row = ((u128::from(number) * u128::from(self.by_a)) >> 64) as u32;
            let mut column = number - row * self.a;
            let mut key = key;
            for _ in 0..self.rounds / 2 {
                key = key.wrapping_add(STEP);
                column = shifted(column, shift(row, key, self.a), self.a);
                key = key.wrapping_add(STEP);
                row = shifted(row, shift(column, key, self.b), self.b);
            }
            number = row * self.a + column;
            if number < self.n {
                return number;
            }
        }
    }
}

/// A number below `end` that `from` and `key` draw.
#[inline(always)]
fn shift(from: u32, key: u64, end: u32) -> u32 {
    let mut word = (u64::from(from) ^ key).wrapping_mul(FACTORS[0]);
    word ^= word >> 32;
    word = word.wrapping_mul(FACTORS[1]);
    (((word >> 32) * u64::from(end)) >> 32) as u32
}

#[inline(always)]
fn shifted(number: u32, by: u32, end: u32) -> u32 {
    let sum = number + by;
    // The lesser of the two is the one below `end`.
    sum.min(sum.wrapping_sub(end))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::rng::mix;

    fn order(n: u32, key: u64) -> Vec<u32> {
        (0..n).map(|place| Orders::of(n).at(key, place)).collect()
    }

    /// How many standard deviations chi-squared of the counts of `draws`, of `n` outcomes, is from what is expected.
    fn surprise<T: Eq + std::hash::Hash>(draws: impl Iterator<Item = T>, n: usize) -> f64 {
        let (mut counts, mut all) = (HashMap::new(), 0.0);
        for draw in draws {
            *counts.entry(draw).or_insert(0.0) += 1.0;
            all += 1.0;
        }
        let expected = all / n as f64;
        let missed = (n - counts.len()) as f64 * expected;
        let chi = counts.values().map(|count| (count - expected).powi(2) / expected).sum::<f64>() + missed;
        (chi - (n as f64 - 1.0)) / (2.0 * (n as f64 - 1.0)).sqrt().max(1.0)
    }

    proptest! {
        #[test]
        fn each_number_stands_at_one_place(n in prop_oneof![1u32..40, 1000u32..1100, 1u32..5000], key in any::<u64>()) {
            let mut order = order(n, key);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..n));
        }
    }

    #[test]
    fn all_orders_of_few_are_as_likely() {
        for (n, factorial) in [(1, 1), (2, 2), (3, 6), (4, 24), (5, 120), (7, 5040)] {
            let draws = (0..40 * factorial as u64 + 5_000).map(|draw| order(n, mix([draw])));
            let surprise = surprise(draws, factorial);
            assert!(surprise.abs() < 4.0, "{n}: {surprise}");
        }
    }

    #[test]
    fn places_of_many_know_nothing_of_each_other() {
        for n in [MANY, 1500] {
            let orders = Orders::of(n);
            for (one, other) in [(0, 1), (7, 7 + orders.a), (3, n - 1)] {
                let apart = |draw: u64| {
                    let [one, other] = [one, other].map(|place| orders.at(mix([draw]), place));
                    (other + n - one) % n
                };
                assert!(surprise((0..60_000).map(apart), n as usize - 1).abs() < 4.0, "{n} {one} {other}");
            }
        }
    }

    #[test]
    fn numbers_of_32_bits_have_places() {
        let orders = Orders::of(u32::MAX);
        for place in [0, 1, 65_535, 65_536, 4_000_000_000, u32::MAX - 1] {
            assert!(orders.at(5, place) < u32::MAX);
        }
    }
}
