//! Which candidate of a node wins.

use rand::RngExt;

use super::grown::CodeTest;
use super::moments::ties;
use super::params::Ties;
use crate::rng::Stream;

/// A candidate's best test.
pub(super) struct Found<T = CodeTest> {
    pub(super) gain: f64,
    pub(super) feature: u32,
    pub(super) test: T,
}

/// Candidates that tie with the best so far, with their tests or where those are; starts anew once it has a winner.
pub(super) struct Contest<T = CodeTest> {
    most: f64,
    tied: Vec<Found<T>>,
}

impl<T> Default for Contest<T> {
    fn default() -> Self {
        Contest { most: 0.0, tied: Vec::new() }
    }
}

impl<T> Contest<T> {
    #[inline]
    pub(super) fn enter(&mut self, found: Found<T>) {
        if !ties(found.gain, self.most) {
            return;
        }
        if found.gain > self.most {
            self.most = found.gain;
            self.tied.retain(|other| ties(other.gain, found.gain));
        }
        self.tied.push(found);
    }

    /// The winner among those that tie.
    #[inline]
    pub(super) fn winner(&mut self, ties: Ties, random: &mut Stream) -> Option<Found<T>> {
        self.most = 0.0;
        if self.tied.len() > 1 {
            self.tied.sort_unstable_by_key(|found| found.feature);
        }
        let chosen = match (ties, self.tied.len()) {
            (_, 0) => return None,
            (Ties::Lowest, _) | (_, 1) => 0,
            (Ties::Random, n) => random.random_range(0..n),
        };
        let winner = self.tied.swap_remove(chosen);
        self.tied.clear();
        Some(winner)
    }
}
