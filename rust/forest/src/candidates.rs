//! The candidate splits of a node, and the choice among them.

use rand::RngExt;

use super::criterion;
use super::params::Ties;
use super::tree_buffer::NodeTest;
use ferrank_runtime::random::Stream;

/// The best test of a feature in a node.
#[derive(Debug)]
pub(super) struct Candidate<T = NodeTest> {
    pub(super) gain: f64,
    pub(super) feature: u32,
    pub(super) test: T,
}

impl<T> Candidate<T> {
    /// The candidate with another form of the test.
    pub(super) fn map<U>(self, to: impl FnOnce(T) -> U) -> Candidate<U> {
        let Candidate { gain, feature, test } = self;
        Candidate { gain, feature, test: to(test) }
    }
}

/// The candidates of a node, with their tests or references to tests. [`best`](Self::best) leaves it empty.
pub(super) struct SplitCandidates<T = NodeTest> {
    /// The greatest gain; 0 if no gain is positive.
    greatest: f64,
    candidates: Vec<Candidate<T>>,
}

impl<T> Default for SplitCandidates<T> {
    fn default() -> Self {
        SplitCandidates { greatest: 0.0, candidates: Vec::new() }
    }
}

impl<T> SplitCandidates<T> {
    #[inline(always)]
    pub(super) fn push(&mut self, candidate: Candidate<T>) {
        self.greatest = if candidate.gain > self.greatest { candidate.gain } else { self.greatest };
        self.candidates.push(candidate);
    }

    /// A gain below which no test of a further candidate matters: it neither ties with the greatest gain, nor with a gain
    /// that does.
    #[inline(always)]
    pub(super) fn floor(&self) -> f64 {
        /// Beyond rounding errors of the product.
        const LOOSE: f64 = 1.0 - 1e-12;
        self.greatest * (criterion::TIE * criterion::TIE * LOOSE)
    }

    /// Removes all candidates and returns the one with the greatest gain. `ties` and `random` decide between equal
    /// gains.
    #[inline(always)]
    pub(super) fn best(&mut self, ties: Ties, random: &mut Stream) -> Option<Candidate<T>> {
        let greatest = std::mem::take(&mut self.greatest);
        // Counted without branches, because mostly a single candidate has the greatest gain.
        let (mut n_tied, mut one) = (0, 0);
        for (i, candidate) in self.candidates.iter().enumerate() {
            let is_tied = criterion::ties(candidate.gain, greatest);
            n_tied += usize::from(is_tied);
            one = if is_tied { i } else { one };
        }
        if n_tied > 1 {
            self.candidates.retain(|candidate| criterion::ties(candidate.gain, greatest));
            self.candidates.sort_unstable_by_key(|candidate| candidate.feature);
        }
        let chosen = match (ties, n_tied) {
            (_, 0) => None,
            (_, 1) => Some(one),
            (Ties::Lowest, _) => Some(0),
            (Ties::Random, n) => Some(random.random_range(0..n)),
        };
        let best = chosen.map(|chosen| self.candidates.swap_remove(chosen));
        self.candidates.clear();
        best
    }
}
