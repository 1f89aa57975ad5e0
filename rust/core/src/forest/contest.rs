//! Which candidate of a node wins.

use rand::RngExt;

use super::grown::CodeTest;
use super::moments::ties;
use super::params::Ties;
use crate::rng::Stream;

/// The best test found so far in a node.
pub(super) struct Found {
    pub(super) gain: f64,
    pub(super) feature: u32,
    pub(super) test: CodeTest,
    /// The random threshold that the code of `test` still has to be found for.
    pub(super) threshold: Option<f64>,
}

/// Candidates that tie with the best so far; starts anew once it has a winner.
#[derive(Default)]
pub(super) struct Contest {
    most: f64,
    tied: Vec<Found>,
}

impl Contest {
    pub(super) fn enter(&mut self, found: Found) {
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
    pub(super) fn winner(&mut self, ties: Ties, random: &mut Stream) -> Option<Found> {
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
