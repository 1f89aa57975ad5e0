//! A uniform sample of rows that does not depend on the order in which they are seen: the rows
//! whose number hashes lowest ("bottom-k").

use ferrank_runtime::random::mix;

/// Keys of the sampled rows. Values are kept beside it, in the same order, by the columns.
#[derive(Debug, Clone)]
pub(super) struct RowSample {
    pub(super) size: usize,
    /// Hashes of the rows held; up to 5/4 of `size` between prunings.
    pub(super) hashes: Vec<u64>,
    /// Rows that hash to this or above are not drawn any more.
    pub(super) limit: u64,
}

/// An order of the sampled rows.
#[derive(Debug)]
pub(super) struct SampleOrder {
    /// n_sampled; the position of each row, in this order.
    pub(super) positions: Vec<u32>,
    /// n_sampled; the place of each row in this order.
    pub(super) places: Vec<u32>,
}

impl SampleOrder {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }
}

impl RowSample {
    pub(super) fn new(size: usize) -> Self {
        RowSample { size, hashes: Vec::new(), limit: if size > 0 { u64::MAX } else { 0 } }
    }

    /// Does not draw rows that are not of the sample of `rows` rows, of which these are some.
    ///
    /// Hashes are uniform: of those below the limit there are `size` and 8 standard deviations more on average.
    pub(super) fn expect(&mut self, rows: u64) {
        let most = self.size as f64 + 8.0 * (self.size as f64).sqrt() + 64.0;
        // Shares of 1 and above become the greatest number.
        self.limit = self.limit.min((most / rows as f64 * u64::MAX as f64) as u64);
    }

    /// Draws from the rows `first .. first + count`; returns their positions counted from `first`.
    pub(super) fn draw(&mut self, first: u64, count: usize) -> Vec<u32> {
        let mut drawn = Vec::new();
        for position in 0..count {
            let hash = hash(first + position as u64);
            if hash < self.limit {
                self.hashes.push(hash);
                drawn.push(position as u32);
            }
        }
        drawn
    }

    /// Returns true if the row with number `row`, which was drawn from, is in the sample.
    pub(super) fn holds(&self, row: u64) -> bool {
        hash(row) < self.limit
    }

    /// Takes the rows that `other` holds, after its own; returns the positions of those that stay in the sample,
    /// counted over both.
    pub(super) fn merge(&mut self, other: &RowSample) -> Vec<u32> {
        self.hashes.extend(&other.hashes);
        self.limit = self.limit.min(other.limit);
        let stays: Vec<u32> = (0..).zip(&self.hashes).filter(|(_, hash)| **hash < self.limit).map(|(p, _)| p).collect();
        self.hashes.retain(|&hash| hash < self.limit);
        match self.prune(0) {
            Some(keep) => keep.into_iter().map(|position| stays[position as usize]).collect(),
            None => stays,
        }
    }

    /// The order of the rows by their hashes, which is the same for all ways to the sample.
    pub(super) fn order(&self) -> SampleOrder {
        let mut positions: Vec<u32> = (0..self.hashes.len() as u32).collect();
        positions.sort_unstable_by_key(|&position| self.hashes[position as usize]);
        let mut places = vec![0; positions.len()];
        (0..).zip(&positions).for_each(|(place, &position)| places[position as usize] = place);
        SampleOrder { positions, places }
    }

    /// Returns true if no row was left out.
    pub(super) fn holds_all(&self) -> bool {
        self.limit == u64::MAX
    }

    /// Rows beyond the size that are worth holding, so that pruning is rare.
    pub(super) fn slack(&self) -> usize {
        self.size / 4
    }

    /// Rows that are held at most, about, if as many are drawn from at a time as there is [`room`](Self::room).
    pub(super) fn most_held(&self) -> usize {
        self.size + self.slack() + self.slack() / 2
    }

    /// Rows that can be drawn from, on average, until the sample outgrows its size by its slack, or by half of that again.
    pub(super) fn room(&self) -> usize {
        let room = (self.size + self.slack()).saturating_sub(self.hashes.len()).max(self.slack() / 2);
        let share = self.limit as f64 / u64::MAX as f64;
        (room as f64 / share) as usize
    }

    /// When the sample has outgrown its size by more than `slack`: the positions to keep, in order.
    pub(super) fn prune(&mut self, slack: usize) -> Option<Vec<u32>> {
        if self.hashes.len() <= self.size + slack {
            return None;
        }
        let mut ordered = self.hashes.clone();
        self.limit = *ordered.select_nth_unstable(self.size).1;
        let keep: Vec<u32> =
            (0..self.hashes.len() as u32).filter(|&position| self.hashes[position as usize] < self.limit).collect();
        self.hashes.retain(|&hash| hash < self.limit);
        Some(keep)
    }
}

fn hash(row: u64) -> u64 {
    mix([row])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_the_same_for_any_chunking() {
        let sample = |chunk: usize| {
            let mut sample = RowSample::new(100);
            for first in (0..5_000).step_by(chunk) {
                sample.draw(first as u64, chunk.min(5_000 - first));
                sample.prune(sample.slack());
            }
            sample.prune(0);
            let mut hashes = sample.hashes;
            hashes.sort_unstable();
            hashes
        };
        let whole = sample(5_000);
        assert_eq!(whole.len(), 100);
        assert_eq!(whole, sample(1));
        assert_eq!(whole, sample(77));
    }

    #[test]
    fn parts_that_know_of_all_rows_hold_little_and_make_the_same_sample() {
        for rows in [50, 5_000, 100_000] {
            let part = |of: u64, first: u64, count: u64| {
                let mut sample = RowSample::new(100);
                sample.expect(of);
                sample.draw(first, count as usize);
                sample
            };
            let mut whole = part(0, 0, rows);
            whole.prune(0);
            let parts: Vec<RowSample> = (0..10).map(|n| part(rows, n * rows / 10, rows / 10)).collect();
            assert!(parts.iter().map(|part| part.hashes.len()).sum::<usize>() < 400);
            let mut merged = RowSample::new(100);
            parts.iter().for_each(|part| drop(merged.merge(part)));
            let [mut one, mut other] = [whole.hashes, merged.hashes];
            one.sort_unstable();
            other.sort_unstable();
            assert_eq!(one, other, "{rows} rows");
        }
    }
}
