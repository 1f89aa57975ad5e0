//! Bins with equal shares of many numbers, and what else cut points ask of these, of numbers in order or in cells.
//!
//! Cells of one width hold few numbers each. Only those in which a bin may end are put in order.
//!
//! Gain in speed: 1.3x on the set-up of 100,000 x 200 (CPU time).

use super::lookup::Grid;
use super::range::Range;

/// The middle of `low < high`, never `high` itself.
///
/// ```
/// use ferrank_data::profile::between;
///
/// assert_eq!(between(1.0, 2.0), 1.5);
/// assert_eq!(between(1.0, 1.0f64.next_up()), 1.0);
/// ```
pub fn between(low: f64, high: f64) -> f64 {
    let middle = f64::midpoint(low, high);
    if middle < high { middle } else { low }
}

/// What cut points ask of a sample of a column.
pub(super) trait Ordered {
    /// The least and the greatest number.
    fn ends(&self) -> [f64; 2];

    /// True if `value` is one of the numbers.
    fn holds(&self, value: f64) -> bool;

    /// The numbers next to `value`, which is none of them.
    fn next_to(&self, value: f64) -> [Option<f64>; 2];

    /// The cuts between at most `n_bins` bins with as equal shares as ties allow, and the middle of each bin.
    fn bins(&mut self, n_bins: usize) -> (Vec<f64>, Vec<f64>);
}

/// Bins that are closed one after the other.
struct Bins {
    n_bins: usize,
    n_numbers: usize,
    cuts: Vec<f64>,
    middles: Vec<f64>,
    /// The least number of the bin that is open.
    first: f64,
    /// The bin is closed above a number if the counts of numbers up to it, and up to the next one, have at least this sum.
    enough: usize,
}

impl Bins {
    fn new(n_bins: usize, n_numbers: usize, least: f64) -> Self {
        let (cuts, middles) = (Vec::with_capacity(n_bins), Vec::with_capacity(n_bins));
        let mut bins = Bins { n_bins, n_numbers, cuts, middles, first: least, enough: 0 };
        bins.open(least, 0);
        bins
    }

    /// Opens a bin with `first` as its least number, and `begin` numbers below.
    fn open(&mut self, first: f64, begin: usize) {
        let wanted = (self.n_numbers - begin) as f64 / (self.n_bins - self.middles.len()) as f64;
        self.first = first;
        // Where stopping misses the share by less than going on would.
        self.enough = 2 * begin + (2.0 * wanted).ceil() as usize;
    }

    /// True if only the last bin is left.
    fn is_last(&self) -> bool {
        self.n_bins - self.middles.len() == 1
    }

    /// Whether the bin is closed above a number, if there are `end` numbers up to it, and `next_end` up to the next one.
    fn closes(&self, end: usize, next_end: usize) -> bool {
        end + next_end >= self.enough
    }

    /// Closes the bin between `value` and the `next` number; there are `end` numbers up to `value`.
    fn close(&mut self, value: f64, next: f64, end: usize) {
        self.cuts.push(between(value, next));
        self.middles.push(f64::midpoint(self.first, value));
        self.open(next, end);
    }

    fn finish(mut self, greatest: f64) -> (Vec<f64>, Vec<f64>) {
        self.middles.push(f64::midpoint(self.first, greatest));
        (self.cuts, self.middles)
    }
}

/// Distinct numbers in ascending order, and how many numbers are up to each of them.
pub(super) struct Sorted<'a> {
    pub(super) distinct: &'a [f64],
    pub(super) ends: &'a [usize],
}

impl Ordered for Sorted<'_> {
    fn ends(&self) -> [f64; 2] {
        [self.distinct[0], self.distinct[self.distinct.len() - 1]]
    }

    fn holds(&self, value: f64) -> bool {
        self.distinct.binary_search_by(|other| other.partial_cmp(&value).expect("known")).is_ok()
    }

    fn next_to(&self, value: f64) -> [Option<f64>; 2] {
        let place = self.distinct.partition_point(|&other| other < value);
        [place.checked_sub(1).map(|place| self.distinct[place]), self.distinct.get(place).copied()]
    }

    fn bins(&mut self, n_bins: usize) -> (Vec<f64>, Vec<f64>) {
        let &mut Sorted { distinct, ends } = self;
        let mut bins = Bins::new(n_bins, ends[ends.len() - 1], distinct[0]);
        for (ends, values) in ends.windows(2).zip(distinct.windows(2)) {
            let ([end, next_end], [value, next]) = ([ends[0], ends[1]], [values[0], values[1]]);
            if bins.is_last() {
                break;
            }
            if bins.closes(end, next_end) {
                bins.close(value, next, end);
            }
        }
        bins.finish(distinct[distinct.len() - 1])
    }
}

/// Numbers in the order of their cells.
#[derive(Default)]
pub(super) struct InCells {
    /// The numbers, ordered by cell; within a cell in any order.
    numbers: Vec<f64>,
    /// The cells that hold numbers, and where these begin; at last, how many numbers there are.
    filled: Vec<(u32, u32)>,
    grid: Grid,
    /// n_numbers; the cell of each, in the order in which they came.
    cells: Vec<u32>,
    /// n_cells; where the next number of each goes.
    starts: Vec<u32>,
    least: f64,
    greatest: f64,
}

impl InCells {
    /// Fewer numbers for each bin are sorted as fast.
    const LEAST: usize = 32;
    /// Numbers for each cell, at least, if they are spread evenly.
    const SPREAD: usize = 4;

    /// Puts `numbers` into cells. Returns false if there are few, if some are missing, if fewer than `more_than` cells and
    /// one are filled, or if cells are so crowded that it takes as long to sort all.
    pub(super) fn fill(&mut self, numbers: &[f64], more_than: usize) -> bool {
        if numbers.len() < Self::LEAST * more_than.max(64) {
            return false;
        }
        let Range { low, high, missing, .. } = Range::of(numbers);
        if missing > 0 {
            return false;
        }
        let n_cells = (numbers.len() / Self::SPREAD).next_power_of_two();
        (self.least, self.greatest) = (low + 0.0, high + 0.0);
        self.grid = Grid::over(low, high, n_cells);
        self.cells.resize(numbers.len(), 0);
        self.grid.cells_of(numbers, &mut self.cells);
        self.starts.clear();
        self.starts.resize(n_cells, 0);
        self.cells.iter().for_each(|&cell| self.starts[cell as usize] += 1);
        // A bin ends in a cell, or between two.
        let crowded = (numbers.len() / more_than.max(1)).max(Self::SPREAD);
        if self.starts.iter().any(|&count| count as usize > 4 * crowded) {
            return false;
        }
        self.filled.clear();
        let mut start = 0;
        for (cell, count) in (0..).zip(&mut self.starts) {
            if *count > 0 {
                self.filled.push((cell, start));
            }
            start += std::mem::replace(count, start);
        }
        if self.filled.len() <= more_than {
            return false;
        }
        self.filled.push((n_cells as u32, start));
        self.numbers.resize(numbers.len(), 0.0);
        for (&value, &cell) in numbers.iter().zip(&self.cells) {
            let place = &mut self.starts[cell as usize];
            // -0 is 0.
            self.numbers[*place as usize] = value + 0.0;
            *place += 1;
        }
        true
    }

    /// Numbers of the filled cell at `position`, and how many come before; none behind the last.
    fn cell(&self, position: usize) -> (&[f64], usize) {
        match self.filled.get(position..position + 2) {
            Some(&[(_, start), (_, end)]) => (&self.numbers[start as usize..end as usize], start as usize),
            _ => (&[], self.numbers.len()),
        }
    }

    fn sort(&mut self, position: usize) {
        if let Some(&[(_, start), (_, end)]) = self.filled.get(position..position + 2) {
            self.numbers[start as usize..end as usize].sort_unstable_by(f64::total_cmp);
        }
    }

    /// The first filled cell that is `cell` or above.
    fn position(&self, cell: u32) -> usize {
        self.filled.partition_point(|&(other, _)| other < cell)
    }
}

/// How many of `sorted` are equal to the first.
fn ties(sorted: &[f64]) -> usize {
    sorted.iter().take_while(|&&value| value == sorted[0]).count()
}

impl Ordered for InCells {
    fn ends(&self) -> [f64; 2] {
        [self.least, self.greatest]
    }

    fn holds(&self, value: f64) -> bool {
        let cell = self.grid.cell(value);
        let position = self.position(cell);
        self.filled[position].0 == cell && self.cell(position).0.contains(&value)
    }

    fn next_to(&self, value: f64) -> [Option<f64>; 2] {
        let position = self.position(self.grid.cell(value));
        let around = position.saturating_sub(1)..position + 2;
        let numbers = || around.clone().flat_map(|position| self.cell(position).0).copied();
        let below = numbers().filter(|&other| other < value).reduce(f64::max);
        let above = numbers().filter(|&other| other > value).reduce(f64::min);
        [below, above]
    }

    fn bins(&mut self, n_bins: usize) -> (Vec<f64>, Vec<f64>) {
        let mut bins = Bins::new(n_bins, self.numbers.len(), self.least);
        for position in 0..self.filled.len() - 1 {
            let (here, start) = self.cell(position);
            let (end, n_next) = (start + here.len(), self.cell(position + 1).0.len());
            // No number of the cell closes it if not even all of them and the next do.
            if !bins.closes(end, end + n_next) {
                continue;
            }
            self.sort(position);
            self.sort(position + 1);
            let (here, _) = self.cell(position);
            let (next_cell, _) = self.cell(position + 1);
            let mut done = 0;
            while done < here.len() {
                if bins.is_last() {
                    return bins.finish(self.greatest);
                }
                let value = here[done];
                done += ties(&here[done..]);
                let next = if done < here.len() { &here[done..] } else { next_cell };
                if !next.is_empty() && bins.closes(start + done, start + done + ties(next)) {
                    bins.close(value, next[0], start + done);
                }
            }
        }
        bins.finish(self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::coding::{Cuts, Sample, Scratch};
    use super::*;

    /// The cuts of `numbers` in cells, and in order.
    fn both(numbers: &[f64], apart: &[f64], max_bins: usize) -> (bool, [Cuts; 2]) {
        let mut other = Scratch::default();
        let sorted = other.sort(Sample::new(numbers));
        let cuts = |scratch: &mut Scratch| Cuts::with_rare(Sample::new(numbers), apart, &[], max_bins, scratch);
        let mut scratch = Scratch::default();
        // The buffers of another column are left in it.
        cuts(&mut scratch);
        let is_in_cells = InCells::default().fill(numbers, max_bins);
        (is_in_cells, [cuts(&mut scratch), Cuts::of_sorted(sorted, apart, &[], max_bins)])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn numbers_in_cells_have_the_cuts_of_numbers_in_order(
            values in prop_oneof![
                vec(-1.0..1.0f64, 2_000..12_000),
                vec((-500..500i32).prop_map(|value| f64::from(value) / 8.0), 2_000..12_000),
                vec((0.0..1.0f64, 0.0..1.0f64).prop_map(|(a, b)| a.ln() * b), 2_000..12_000),
            ],
            apart in vec(-1.5..1.5f64, 0..4),
            max_bins in prop_oneof![Just(255), 2..300usize],
        ) {
            let (_, [found, expected]) = both(&values, &apart, max_bins);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn even_numbers_are_not_sorted_and_crowded_ones_are() {
        let even: Vec<f64> = (0..9_000).map(|i| f64::from(i * 2_741 % 9_000) - 1_000.0).collect();
        let (is_in_cells, [found, expected]) = both(&even, &[-2_000.0, 0.5, 0.0, 7_000.0], 255);
        assert!(is_in_cells);
        assert_eq!(found, expected);
        let with = |value: f64| even.iter().copied().chain([value]).collect::<Vec<f64>>();
        for crowded in [&with(1e9)[..], &with(f64::NAN), &with(f64::MAX), &[3.0; 9_000], &even[..8_000]] {
            let (is_in_cells, [found, expected]) = both(crowded, &[], 255);
            assert!(!is_in_cells);
            assert_eq!(found, expected);
        }
    }
}
