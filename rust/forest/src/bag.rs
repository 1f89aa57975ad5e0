//! The bag of a tree: its rows and their multiplicities.
//!
//! A bootstrap draws an exact number of rows with replacement. The number of draws in each half of the row blocks is
//! binomial, and so on down to a single block, whose rows are drawn one by one. Each level has its own random stream,
//! so that any block can be drawn without the others.
//!
//! If rows have groups, groups are drawn the same way instead of rows, and each row of a group has the multiplicity of
//! the group (the cluster bootstrap; Field and Welsh 2007). A group is then either in the bag or out of it, as
//! a whole. With a group for each row, the bags are those of the rows without groups.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Binomial, Distribution};

use ferrank_data::groups::Groups;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::CodeStore;
use ferrank_runtime::random::{Purpose, Stream, stream};

use crate::companions;
use crate::params::ForestParams;

/// How the bags of all trees are drawn from the rows of a store, or from their groups.
#[derive(Clone, Copy)]
pub(crate) struct BagPlan<'a> {
    params: &'a ForestParams,
    n_rows: usize,
    groups: Option<&'a Groups>,
    /// Draws of rows, or of groups; `None`: each row is taken once.
    draws: Option<u64>,
}

impl<'a> BagPlan<'a> {
    pub(crate) fn new(store: &'a CodeStore, params: &'a ForestParams) -> Self {
        let groups = store.groups.as_deref();
        let units = groups.map_or(store.rows, Groups::len);
        let draws = params.bootstraps().then(|| params.rows_per_tree(units as u64));
        BagPlan { params, n_rows: store.rows, groups, draws }
    }

    /// Bags of `n_rows` rows without groups.
    #[cfg(test)]
    pub(crate) fn of_rows(n_rows: usize, params: &'a ForestParams) -> Self {
        let draws = params.bootstraps().then(|| params.rows_per_tree(n_rows as u64));
        BagPlan { params, n_rows, groups: None, draws }
    }

    /// Fills `bag` with the rows of tree number `tree`.
    pub(crate) fn take(&self, tree: u64, bag: &mut Bag) {
        self.take_rows(tree, 0..self.n_rows, bag);
    }

    /// Fills `bag` with those of `rows` that are in tree number `tree`, numbered from the first of `rows`.
    pub(crate) fn take_rows(&self, tree: u64, rows: Range<usize>, bag: &mut Bag) {
        let seed = self.params.seed;
        match (self.draws, self.groups) {
            _ if companions::is_companion(tree) => {
                self.draw_companion(tree, bag);
                match self.groups {
                    None => bag.keep(rows),
                    Some(groups) => bag.take_rows_of_units(groups, rows),
                }
            }
            (None, _) => bag.take_all(rows.len()),
            (Some(draws), None) => {
                let blocks = rows.start / CHUNK_ROWS..rows.end.div_ceil(CHUNK_ROWS);
                let base = blocks.start * CHUNK_ROWS;
                bag.take_blocks(seed, tree, self.n_rows, draws, blocks.clone());
                if rows != (base..self.n_rows.min(blocks.end * CHUNK_ROWS)) {
                    bag.keep(rows.start - base..rows.end - base);
                }
            }
            (Some(draws), Some(groups)) => bag.take_groups(seed, tree, groups, draws, rows),
        }
    }

    /// Number of examples in the bag of tree number `tree`.
    pub(crate) fn n_examples(&self, tree: u64) -> u64 {
        let mut bag = Bag::default();
        match (self.draws, self.groups) {
            _ if companions::is_companion(tree) => self.draw_companion(tree, &mut bag),
            (None, _) => return self.n_rows as u64,
            (Some(draws), None) => return draws,
            (Some(draws), Some(groups)) => {
                bag.take_bootstrap(self.params.seed, tree, groups.len(), draws);
            }
        }
        let size = |unit: u32| self.groups.map_or(1, |groups| groups.sizes[unit as usize]);
        bag.rows.iter().zip(&bag.counts).map(|(&unit, &count)| size(unit) * u64::from(count)).sum()
    }

    /// Number of rows of the store.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The rows of the subsample of companion number `tree`, ascending.
    pub(crate) fn subsample(&self, tree: u64) -> Vec<u32> {
        let mut bag = Bag::default();
        bag.take_each(self.subsample_units(tree));
        if let Some(groups) = self.groups {
            bag.take_rows_of_units(groups, 0..self.n_rows);
        }
        bag.rows
    }

    /// The rows, or groups, of the subsample of companion number `tree`, ascending.
    fn subsample_units(&self, tree: u64) -> Vec<u32> {
        let n_units = self.groups.map_or(self.n_rows, Groups::len);
        let share = companions::subsample_rows(self.n_rows) as f64 / self.n_rows as f64;
        let n_drawn = (n_units as f64 * share).round().max(1.0) as usize;
        companions::draw_subsample(tree, self.params, n_units, n_drawn)
    }

    /// Draws rows, or groups, for companion number `tree`: the same share of its subsample as trees draw of all.
    fn draw_companion(&self, tree: u64, bag: &mut Bag) {
        let units = self.subsample_units(tree);
        match self.draws {
            None => bag.take_each(units),
            Some(draws) => {
                let n_units = self.groups.map_or(self.n_rows, Groups::len);
                let draws = (draws as f64 / n_units as f64 * units.len() as f64).round().max(1.0) as u64;
                bag.take_draws(&units, draws, &mut stream(self.params.seed, Purpose::Bag, tree, 0));
            }
        }
    }
}

/// Rows of one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bag {
    /// Row numbers, ascending.
    pub(crate) rows: Vec<u32>,
    /// The multiplicity of each row.
    pub(crate) counts: Vec<u32>,
    /// Number of draws of each row of a block, or of each group.
    pub(super) drawn: Vec<u32>,
}

impl Bag {
    /// Puts every row into the bag once.
    fn take_all(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.extend(0..rows as u32);
        self.counts.clear();
        self.counts.resize(rows, 1);
    }

    /// Puts each of `rows`, which ascend, into the bag once.
    fn take_each(&mut self, rows: Vec<u32>) {
        self.counts.clear();
        self.counts.resize(rows.len(), 1);
        self.rows = rows;
    }

    /// Draws `draws` times from `rows`, which ascend, with replacement.
    fn take_draws(&mut self, rows: &[u32], draws: u64, random: &mut Stream) {
        self.rows.clear();
        self.counts.clear();
        self.draw_block(0, rows.len(), draws, random);
        self.rows.iter_mut().for_each(|row| *row = rows[*row as usize]);
    }

    /// Keeps the rows in `kept`, numbered from the first of them.
    fn keep(&mut self, kept: Range<usize>) {
        let place = |row| self.rows.partition_point(|&other| (other as usize) < row);
        let range = place(kept.start)..place(kept.end);
        self.counts = self.counts[range.clone()].to_vec();
        self.rows = self.rows[range].iter().map(|row| row - kept.start as u32).collect();
    }

    /// Draws the bootstrap replicate of tree number `tree`: `draws` draws from `rows` rows.
    pub(crate) fn take_bootstrap(&mut self, seed: u64, tree: u64, rows: usize, draws: u64) {
        self.take_blocks(seed, tree, rows, draws, 0..rows.div_ceil(CHUNK_ROWS));
    }

    /// Draws the part of the bootstrap replicate in `blocks` of [`CHUNK_ROWS`] rows. Rows are numbered from the first
    /// of these blocks.
    fn take_blocks(&mut self, seed: u64, tree: u64, rows: usize, draws: u64, blocks: Range<usize>) {
        self.rows.clear();
        self.counts.clear();
        let base = blocks.start * CHUNK_ROWS;
        let mut pending = vec![(0, rows.div_ceil(CHUNK_ROWS), 1u64, draws)];
        while let Some((first, last, place, draws)) = pending.pop() {
            if draws == 0 || first >= blocks.end || last <= blocks.start {
                continue;
            }
            let mut random = stream(seed, Purpose::Bag, tree, place);
            if last - first == 1 {
                let first = first * CHUNK_ROWS;
                self.draw_block(first - base, rows.min(first + CHUNK_ROWS) - first, draws, &mut random);
                continue;
            }
            let middle = first.midpoint(last);
            let rows_of = |a: usize, b: usize| (rows.min(b * CHUNK_ROWS) - a * CHUNK_ROWS) as f64;
            let share = rows_of(first, middle) / rows_of(first, last);
            let left = Binomial::new(draws, share).expect("a share is in [0, 1]").sample(&mut random);
            pending.push((middle, last, 2 * place + 1, draws - left));
            pending.push((first, middle, 2 * place, left));
        }
    }

    /// Replaces the groups in the bag by those of `rows` that belong to them. Rows are numbered from the first of `rows`.
    fn take_rows_of_units(&mut self, groups: &Groups, rows: Range<usize>) {
        let mut drawn = vec![0; groups.len()];
        self.rows.iter().zip(&self.counts).for_each(|(&group, &count)| drawn[group as usize] = count);
        let counts = (0..).zip(&groups.of_row[rows]).map(|(row, &group)| (row, drawn[group as usize]));
        (self.rows, self.counts) = counts.filter(|&(_, count)| count > 0).unzip();
    }

    /// Draws groups, and takes those of `rows` whose groups were drawn. Rows are numbered from the first of `rows`.
    fn take_groups(&mut self, seed: u64, tree: u64, groups: &Groups, draws: u64, rows: Range<usize>) {
        let of_row = &groups.of_row[rows];
        let (first, last) = of_row.iter().fold((u32::MAX, 0), |(low, high), &group| (low.min(group), high.max(group)));
        // Groups are numbered by their first rows, so that a block of sorted rows needs few of them.
        let blocks = first as usize / CHUNK_ROWS..last as usize / CHUNK_ROWS + 1;
        self.take_blocks(seed, tree, groups.len(), draws, blocks.clone());
        self.drawn.clear();
        self.drawn.resize(blocks.len() * CHUNK_ROWS, 0);
        self.rows.iter().zip(&self.counts).for_each(|(&group, &count)| self.drawn[group as usize] = count);
        self.rows.clear();
        self.counts.clear();
        for (row, &group) in (0..).zip(of_row) {
            let count = self.drawn[group as usize - blocks.start * CHUNK_ROWS];
            if count > 0 {
                self.rows.push(row);
                self.counts.push(count);
            }
        }
    }

    /// Draws from the `size` rows that start at row `first`.
    fn draw_block(&mut self, first: usize, size: usize, draws: u64, random: &mut Stream) {
        let size = size as u32;
        self.drawn.clear();
        self.drawn.resize(size as usize, 0);
        for _ in 0..draws {
            self.drawn[random.random_range(0..size) as usize] += 1;
        }
        let Bag { rows, counts, drawn, .. } = self;
        let mut end = rows.len();
        rows.resize(end + drawn.len(), 0);
        counts.resize(end + drawn.len(), 0);
        for (row, &count) in (first as u32..).zip(&*drawn) {
            // Written in any case, which avoids an unpredictable branch.
            (rows[end], counts[end]) = (row, count);
            end += usize::from(count > 0);
        }
        rows.truncate(end);
        counts.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oob::OutOfBagRows;
    use ferrank_data::values::{Keep, Values};

    #[test]
    fn a_bootstrap_has_exactly_the_requested_draws_spread_evenly() {
        let rows = 3 * CHUNK_ROWS + 1000;
        let mut bag = Bag::default();
        for draws in [1, 1000, rows as u64] {
            bag.take_bootstrap(7, 3, rows, draws);
            assert_eq!(bag.counts.iter().map(|&c| u64::from(c)).sum::<u64>(), draws);
            assert!(bag.rows.is_sorted_by(|a, b| a < b));
            assert!((*bag.rows.last().unwrap() as usize) < rows);
        }
        bag.take_bootstrap(7, 3, rows, rows as u64);
        let share = bag.rows.len() as f64 / rows as f64;
        assert!((share - 0.632).abs() < 0.003, "{share}");
        let last_block = bag.rows.iter().filter(|&&row| row as usize >= 3 * CHUNK_ROWS).count();
        assert!((500..750).contains(&last_block), "{last_block}");
    }

    #[test]
    fn any_rows_drawn_alone_are_those_of_the_whole_bag() {
        let (n_rows, params) = (3 * CHUNK_ROWS + 77, ForestParams::default());
        let bags = BagPlan::of_rows(n_rows, &params);
        let (mut whole, mut part) = (Bag::default(), Bag::default());
        bags.take(2, &mut whole);
        let mut joined = Vec::new();
        let ends = [0, 1, 500, CHUNK_ROWS - 1, CHUNK_ROWS + 3, 3 * CHUNK_ROWS, 3 * CHUNK_ROWS + 70, n_rows];
        for rows in ends.windows(2) {
            bags.take_rows(2, rows[0]..rows[1], &mut part);
            joined.extend(part.rows.iter().map(|row| rows[0] as u32 + row).zip(part.counts.iter().copied()));
        }
        assert!(joined.into_iter().eq(whole.rows.into_iter().zip(whole.counts)));
    }

    #[test]
    fn blocks_drawn_alone_are_those_of_the_whole_bag() {
        let rows = 5 * CHUNK_ROWS + 77;
        let (mut bag, mut block) = (Bag::default(), Bag::default());
        bag.take_bootstrap(3, 1, rows, 100_000);
        let mut joined = Vec::new();
        for number in 0..6 {
            block.take_blocks(3, 1, rows, 100_000, number..number + 1);
            let base = (number * CHUNK_ROWS) as u32;
            joined.extend(block.rows.iter().map(|row| base + row).zip(block.counts.iter().copied()));
        }
        assert!(joined.into_iter().eq(bag.rows.into_iter().zip(bag.counts)));
    }

    /// The plan of `draws` draws from these groups.
    fn plan<'a>(groups: &'a Groups, draws: u64, params: &'a ForestParams) -> BagPlan<'a> {
        BagPlan { params, n_rows: groups.of_row.len(), groups: Some(groups), draws: Some(draws) }
    }

    fn groups(of_row: impl Iterator<Item = u64>) -> Groups {
        Groups::new(&[Values::Held(of_row.collect())], "table", Keep::Memory).unwrap()
    }

    #[test]
    fn a_group_is_drawn_as_a_whole_and_the_same_block_by_block() {
        let n_rows = 2 * CHUNK_ROWS + 500;
        let scattered = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 47;
        let params = ForestParams::default().with_seed(5);
        let cases: [fn(u64) -> u64; 4] = [|row| row / 7, |row| row % 60, scattered, |row| row / 2];
        for of_row in cases {
            let groups = groups((0..n_rows as u64).map(of_row));
            let plan = plan(&groups, groups.len() as u64 - 1, &params);
            let (mut bag, mut block) = (Bag::default(), Bag::default());
            plan.take(3, &mut bag);
            let mut drawn = Bag::default();
            drawn.take_bootstrap(5, 3, groups.len(), groups.len() as u64 - 1);
            let mut of_group = vec![0; groups.len()];
            drawn.rows.iter().zip(&drawn.counts).for_each(|(&group, &count)| of_group[group as usize] = count);
            let expected: Vec<u32> = groups.of_row.iter().map(|&group| of_group[group as usize]).collect();
            let mut found = vec![0; n_rows];
            bag.rows.iter().zip(&bag.counts).for_each(|(&row, &count)| found[row as usize] = count);
            assert!(found == expected);
            assert_eq!(plan.n_examples(3), bag.counts.iter().map(|&count| u64::from(count)).sum::<u64>());
            let mut joined = Vec::new();
            for number in 0..3 {
                let rows = number * CHUNK_ROWS..plan.n_rows().min((number + 1) * CHUNK_ROWS);
                plan.take_rows(3, rows, &mut block);
                let base = (number * CHUNK_ROWS) as u32;
                joined.extend(block.rows.iter().map(|row| base + row).zip(block.counts.iter().copied()));
            }
            assert!(joined.into_iter().eq(bag.rows.into_iter().zip(bag.counts)));
        }
    }

    #[test]
    fn companions_have_whole_groups_of_half_of_the_data() {
        let groups = groups((0..1_200).map(|row| row % 60));
        let params = ForestParams::default().with_seed(5);
        let plan = plan(&groups, 60, &params);
        let (number, mut bag) = (companions::companion(2, 0), Bag::default());
        plan.take(number, &mut bag);
        let subsample = plan.subsample(number);
        assert_eq!(subsample.len(), 600);
        assert!((0..20).all(|round| subsample[..30].iter().zip(&subsample[30 * round..]).all(|(a, b)| b % 60 == *a)));
        let out = OutOfBagRows::outside(plan, number, &bag);
        assert_eq!(out.len() + bag.rows.len(), 600);
        let of = |row: usize| row % 60;
        assert!(out.iter().all(|row| bag.rows.iter().all(|&other| of(other as usize) != of(row))));
        assert_eq!(plan.n_examples(number), bag.counts.iter().map(|&count| u64::from(count)).sum::<u64>());
    }

    #[test]
    fn a_single_group_is_its_own_subsample() {
        let groups = groups([7, 7, 7].into_iter());
        let params = ForestParams::default();
        let mut bag = Bag::default();
        plan(&groups, 1, &params).take(companions::companion(0, 0), &mut bag);
        assert_eq!((bag.rows, bag.counts), (vec![0, 1, 2], vec![1; 3]));
    }

    #[test]
    fn with_a_group_for_each_row_the_bags_are_those_without_groups() {
        let n_rows = CHUNK_ROWS + 300;
        let groups = groups((0..n_rows as u64).map(|row| row * row));
        let (mut with, mut without) = (Bag::default(), Bag::default());
        let params = ForestParams::default().with_seed(5);
        plan(&groups, 30_000, &params).take(9, &mut with);
        without.take_bootstrap(5, 9, n_rows, 30_000);
        assert_eq!((with.rows, with.counts), (without.rows, without.counts));
    }
}
