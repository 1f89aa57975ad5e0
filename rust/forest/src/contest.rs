//! Which candidate of a node wins.

use rand::RngExt;

use super::grown::CodeTest;
use super::moments;
use super::params::Ties;
use ferrank_runtime::random::Stream;

/// A candidate's best test.
pub(super) struct Found<T = CodeTest> {
    pub(super) gain: f64,
    pub(super) feature: u32,
    pub(super) test: T,
}

/// Candidates, with their tests or where those are; starts anew once it has a winner.
pub(super) struct Contest<T = CodeTest> {
    /// The greatest gain, 0 if there is none above.
    most: f64,
    entered: Vec<Found<T>>,
}

impl<T> Default for Contest<T> {
    fn default() -> Self {
        Contest { most: 0.0, entered: Vec::new() }
    }
}

impl<T> Contest<T> {
    #[inline(always)]
    pub(super) fn enter(&mut self, found: Found<T>) {
        self.most = if found.gain > self.most { found.gain } else { self.most };
        self.entered.push(found);
    }

    /// The winner among those that tie for the greatest gain.
    #[inline(always)]
    pub(super) fn winner(&mut self, ties: Ties, random: &mut Stream) -> Option<Found<T>> {
        let most = std::mem::take(&mut self.most);
        // Counted without a guess at each: most often there is one.
        let (mut n_tied, mut one) = (0, 0);
        for (i, found) in self.entered.iter().enumerate() {
            let is_tied = moments::ties(found.gain, most);
            n_tied += usize::from(is_tied);
            one = if is_tied { i } else { one };
        }
        if n_tied > 1 {
            self.entered.retain(|found| moments::ties(found.gain, most));
            self.entered.sort_unstable_by_key(|found| found.feature);
        }
        let chosen = match (ties, n_tied) {
            (_, 0) => None,
            (_, 1) => Some(one),
            (Ties::Lowest, _) => Some(0),
            (Ties::Random, n) => Some(random.random_range(0..n)),
        };
        let winner = chosen.map(|chosen| self.entered.swap_remove(chosen));
        self.entered.clear();
        winner
    }
}
