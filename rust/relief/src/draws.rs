//! Targets drawn anew: what importances are if features say nothing about the targets.
//!
//! In draw d each row has the targets of another row, chosen at random, so that targets keep their distribution and what
//! they have to do with each other, and lose what they have to do with the features. The neighbors stay. The importances
//! that follow are those of irrelevant features (Robnik-Šikonja and Kononenko 2003, §4, for random features; Le et al.
//! 2019 for a law without draws). Rows are drawn with replacement, by hashing: permutations of all rows would have to be
//! held.
//!
//! If rows have groups, all rows of a group have the targets of rows of one other group.

use ferrank_data::groups::{Groups, Members};
use ferrank_runtime::random::{Purpose, mix};

/// Draws of rows.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    n_rows: u32,
    /// The group of each row, and the rows of each group.
    groups: Option<(Vec<u32>, Members)>,
}

impl Draws {
    pub(crate) fn new(seed: u64, n_rows: usize, groups: Option<&Groups>) -> Self {
        let groups = groups.map(|groups| (groups.of_row.to_vec(), groups.members()));
        Draws { seed, n_rows: n_rows as u32, groups }
    }

    /// The row whose targets `row` has in draw number `draw`.
    pub(crate) fn row(&self, draw: usize, row: u32) -> u32 {
        let uniform = |number: u32, of: usize, step: u64| {
            let word = mix([self.seed ^ step, Purpose::Targets as u64, draw as u64, u64::from(number)]);
            ((u128::from(word) * of as u128) >> 64) as usize
        };
        match &self.groups {
            None => uniform(row, self.n_rows as usize, 0) as u32,
            Some((of_row, members)) => {
                let rows = members.of(uniform(of_row[row as usize], members.n_groups(), 0));
                rows[uniform(row, rows.len(), 1)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ferrank_data::values::{Keep, Values};

    use super::*;

    #[test]
    fn each_row_is_drawn_about_equally_often_and_draws_differ() {
        let draws = Draws::new(3, 50, None);
        let mut counts = [0; 50];
        (0..200).for_each(|draw| (0..50).for_each(|row| counts[draws.row(draw, row) as usize] += 1));
        assert!(counts.iter().all(|count| (140..=260).contains(count)), "{counts:?}");
        let rows = |draw| (0..50).map(|row| draws.row(draw, row)).collect::<Vec<_>>();
        assert_ne!(rows(0), rows(1));
        assert_eq!(rows(0), rows(0));
    }

    #[test]
    fn rows_of_a_group_have_the_targets_of_one_group() {
        let of_row = [0u64, 0, 1, 2, 1, 0, 2, 1];
        let groups = Groups::new(&[Values::Held(of_row.to_vec())], "test", Keep::Memory).unwrap();
        let draws = Draws::new(1, 8, Some(&groups));
        for draw in 0..20 {
            let group = |row: u32| of_row[draws.row(draw, row) as usize];
            assert!([1, 5].iter().all(|&row| group(row) == group(0)) && group(2) == group(4) && group(3) == group(6));
        }
    }
}
