//! Targets drawn anew: what importances are if features say nothing about the targets.
//!
//! In draw d the targets of the rows are permuted, so that they keep their distribution and what they have to do with
//! each other, and lose what they have to do with the features. The neighbors stay. The importances that follow are those
//! of irrelevant features (Robnik-Šikonja and Kononenko 2003, §4, for random features; Le et al. 2019 for a law without
//! draws). Rows drawn with replacement would not do: where a class has a row or two, more rows would have the same class
//! in a draw than in the data.
//!
//! If rows have groups, the groups are permuted, and all rows of a group have the targets of rows of one other group,
//! drawn with replacement.
//!
//! Memory: up to 16 KB for each draw. A permutation of many rows is computed, not held: a Feistel network over the numbers
//! of so many bits, walked until a number is one of a row (Black and Rogaway 2002). Of few numbers such permutations would
//! not be equally likely.

use ferrank_data::groups::{Groups, Members};
use ferrank_runtime::random::{Purpose, mix, stream};
use rand::seq::SliceRandom;

/// Draws of rows.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    /// n_draws; the permutation of the rows, or of the groups.
    permutations: Vec<Permutation>,
    /// The group of each row, and the rows of each group.
    groups: Option<(Vec<u32>, Members)>,
}

impl Draws {
    pub(crate) fn new(seed: u64, n_draws: usize, n_rows: usize, groups: Option<&Groups>) -> Self {
        let groups = groups.map(|groups| (groups.of_row.to_vec(), groups.members()));
        let n = groups.as_ref().map_or(n_rows, |(_, members)| members.n_groups());
        let permutations = (0..n_draws as u64).map(|draw| Permutation::new(n as u32, seed, draw)).collect();
        Draws { seed, permutations, groups }
    }

    /// The row whose targets `row` has in draw number `draw`.
    pub(crate) fn row(&self, draw: usize, row: u32) -> u32 {
        match &self.groups {
            None => self.permutations[draw].of(row),
            Some((of_row, members)) => {
                let rows = members.of(self.permutations[draw].of(of_row[row as usize]) as usize);
                let word = mix([self.seed, Purpose::Targets as u64, draw as u64, u64::from(row)]);
                rows[((u128::from(word) * rows.len() as u128) >> 64) as usize]
            }
        }
    }
}

/// Permutations of up to so many numbers are held.
const MOST_HELD: u32 = 1 << 12;
/// Rounds of the network; even, so that both halves of a number come back to their places.
const ROUNDS: usize = 4;

/// A permutation of the numbers from 0.
#[derive(Debug)]
enum Permutation {
    Held(Vec<u32>),
    Computed(Network),
}

impl Permutation {
    fn new(n: u32, seed: u64, draw: u64) -> Self {
        if n > MOST_HELD {
            return Permutation::Computed(Network::new(n, seed, draw));
        }
        let mut numbers: Vec<u32> = (0..n).collect();
        numbers.shuffle(&mut stream(seed, Purpose::Targets, draw, 0));
        Permutation::Held(numbers)
    }

    fn of(&self, number: u32) -> u32 {
        match self {
            Permutation::Held(numbers) => numbers[number as usize],
            Permutation::Computed(network) => network.of(number),
        }
    }
}

/// A Feistel network for the numbers below `n`.
#[derive(Debug)]
struct Network {
    n: u32,
    /// Bits of the upper and of the lower half of a number.
    bits: [u32; 2],
    keys: [u64; ROUNDS],
}

impl Network {
    fn new(n: u32, seed: u64, draw: u64) -> Self {
        let bits = u32::BITS - (n - 1).leading_zeros();
        let keys = std::array::from_fn(|round| mix([seed, Purpose::Targets as u64, draw, 1 << 32 | round as u64]));
        Network { n, bits: [bits / 2, bits - bits / 2], keys }
    }

    fn of(&self, mut number: u32) -> u32 {
        loop {
            number = self.walk(number);
            if number < self.n {
                return number;
            }
        }
    }

    fn walk(&self, number: u32) -> u32 {
        let mask = self.bits.map(|bits| (1u32 << bits) - 1);
        let (mut upper, mut lower) = (number >> self.bits[1], number & mask[1]);
        for (round, key) in self.keys.iter().enumerate() {
            let word = (u64::from(lower) ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // The second product depends on all bits of the key, so that a round is not linear.
            let word = (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (upper, lower) = (lower, upper ^ ((word >> 32) as u32 & mask[round % 2]));
        }
        upper << self.bits[1] | lower
    }
}

#[cfg(test)]
mod tests {
    use ferrank_data::values::{Keep, Values};

    use super::*;

    #[test]
    fn each_row_is_drawn_about_equally_often_and_draws_differ() {
        let draws = Draws::new(3, 200, 50, None);
        let mut counts = [0; 50];
        (0..200).for_each(|draw| (0..50).for_each(|row| counts[draws.row(draw, row) as usize] += 1));
        assert!(counts.iter().all(|count| (140..=260).contains(count)), "{counts:?}");
        let rows = |draw| (0..50).map(|row| draws.row(draw, row)).collect::<Vec<_>>();
        assert_ne!(rows(0), rows(1));
        assert_eq!(rows(0), rows(0));
    }

    #[test]
    fn a_draw_of_rows_is_a_permutation() {
        for n in [1, 2, 5, 1_000, 4_097, 10_000, 65_536] {
            let draws = Draws::new(7, 3, n, None);
            for draw in 0..3 {
                let mut rows: Vec<u32> = (0..n as u32).map(|row| draws.row(draw, row)).collect();
                rows.sort_unstable();
                assert!(rows.into_iter().eq(0..n as u32), "{n}");
            }
        }
    }

    #[test]
    fn two_rows_have_the_targets_of_any_two_rows_about_equally_often() {
        for n in [6, 5_000] {
            // 6 x 6 classes of the pairs; in the second case a pair may be of a class twice.
            let draws = Draws::new(11, 6_000, n, None);
            let mut counts = [0u32; 36];
            let class = |draw, row| draws.row(draw, row) as usize * 6 / n;
            (0..6_000).for_each(|draw| counts[6 * class(draw, 1) + class(draw, 4)] += 1);
            let expected = if n == 6 { 200 } else { 167 };
            let of_pair = |(pair, count): (usize, u32)| n == 6 && pair / 6 == pair % 6 || count.abs_diff(expected) < 65;
            assert!(counts.into_iter().enumerate().all(of_pair), "{n} {counts:?}");
        }
    }

    #[test]
    fn rows_of_a_group_have_the_targets_of_one_group() {
        let of_row = [0u64, 0, 1, 2, 1, 0, 2, 1];
        let groups = Groups::new(&[Values::Held(of_row.to_vec())], "test", Keep::Memory).unwrap();
        let draws = Draws::new(1, 20, 8, Some(&groups));
        for draw in 0..20 {
            let group = |row: u32| of_row[draws.row(draw, row) as usize];
            assert!([1, 5].iter().all(|&row| group(row) == group(0)) && group(2) == group(4) && group(3) == group(6));
        }
    }
}
