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
        self.greatest = 0.0;
        let candidates = self.candidates.iter().enumerate();
        let chosen = choose(candidates.map(|(number, of)| (number, of.feature, of.gain)), ties, random);
        let best = chosen.map(|number| self.candidates.swap_remove(number));
        self.candidates.clear();
        best
    }
}

/// The most candidates with equal gains of which each is compared with each.
const MOST_COMPARED: usize = 16;

/// The number of the candidate with the greatest gain, of candidates with their numbers, features and gains; no two have the
/// same feature. `ties` and `random` decide between equal gains.
#[inline(always)]
pub(super) fn choose(
    candidates: impl Iterator<Item = (usize, u32, f64)> + Clone,
    ties: Ties,
    random: &mut Stream,
) -> Option<usize> {
    let greatest = candidates.clone().fold(0.0, |most, (.., gain)| if gain > most { gain } else { most });
    let is_tied = |&(.., gain): &(usize, u32, f64)| criterion::ties(gain, greatest);
    // Which candidates tie is unpredictable: all are written, the others to a place that the next one takes.
    let (mut numbers, mut features, mut n_tied) = ([0; MOST_COMPARED + 1], [0; MOST_COMPARED + 1], 0);
    for candidate in candidates.clone() {
        if n_tied > MOST_COMPARED {
            let mut tied: Vec<_> = candidates.filter(is_tied).map(|(number, feature, _)| (feature, number)).collect();
            let place = place_of_tie(tied.len(), ties, random)?;
            return Some(tied.select_nth_unstable(place).1.1);
        }
        (numbers[n_tied], features[n_tied]) = (candidate.0, candidate.1);
        n_tied += usize::from(is_tied(&candidate));
    }
    let place = place_of_tie(n_tied, ties, random)?;
    let features = &features[..n_tied];
    let n_before = |feature| features.iter().map(|&other| usize::from(other < feature)).sum::<usize>();
    features.iter().position(|&feature| n_before(feature) == place).map(|position| numbers[position])
}

/// The place of the candidate to take among `n` with equal gains, in the order of their features; `None` if there is none. It
/// must be the last draw of a node.
#[inline(always)]
pub(super) fn place_of_tie(n: usize, ties: Ties, random: &mut Stream) -> Option<usize> {
    // A draw among one is faster than a branch that is unpredictable in small nodes.
    match ties {
        _ if n == 0 => None,
        Ties::Lowest => Some(0),
        Ties::Random => Some(random.random_range(0..n)),
    }
}

/// The feature at `place` in the ascending order of `features`, which all differ and may be put into another order.
#[inline(always)]
pub(super) fn at_place(features: &mut [u32], place: usize) -> u32 {
    if features.len() > MOST_COMPARED {
        return *features.select_nth_unstable(place).1;
    }
    let mut padded = [u32::MAX; MOST_COMPARED];
    padded[..features.len()].copy_from_slice(features);
    let mut chosen = 0;
    for &feature in &*features {
        let before: u32 = padded.iter().map(|&other| u32::from(other < feature)).sum();
        chosen = if before as usize == place { feature } else { chosen };
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrank_runtime::random::{Purpose, stream};

    fn chosen(ties: Ties, candidates: &[(u32, f64)], seed: u64) -> Option<u32> {
        let numbered = candidates.iter().enumerate().map(|(number, &(feature, gain))| (number, feature, gain));
        choose(numbered, ties, &mut stream(seed, Purpose::Node, 0, 0)).map(|number| candidates[number].0)
    }

    #[test]
    fn equal_gains_are_in_the_order_of_their_features_however_many_they_are() {
        for n in [1, 2, 15, 16, 17, 40] {
            // All features below 97, each once, in an order of their own.
            let features: Vec<u32> = (1..=n).map(|i| i * 31 % 97).collect();
            let mut sorted = features.clone();
            sorted.sort_unstable();
            for seed in 0..20 {
                let mut random = stream(seed, Purpose::Node, 0, 0);
                let place = place_of_tie(features.len(), Ties::Random, &mut random).unwrap();
                assert_eq!(at_place(&mut features.clone(), place), sorted[place]);
                let gains: Vec<_> = features.iter().map(|&feature| (feature, 0.5)).collect();
                assert_eq!(chosen(Ties::Random, &gains, seed), Some(sorted[place]));
            }
        }
    }

    #[test]
    fn one_of_the_greatest_gains_is_chosen() {
        let noise = 1.0 + f64::EPSILON;
        let tied = [(9, 1.0), (2, 0.5), (4, noise), (7, -1.0), (3, 1.0)];
        assert_eq!(chosen(Ties::Lowest, &tied, 0), Some(3));
        let mut times = [0; 10];
        (0..3_000)
            .filter_map(|seed| chosen(Ties::Random, &tied, seed))
            .for_each(|feature| times[feature as usize] += 1);
        assert!([3, 4, 9].map(|feature| times[feature]).iter().all(|times| (850..1_150).contains(times)), "{times:?}");
        assert_eq!(times.iter().sum::<i32>(), 3_000);
        for ties in [Ties::Lowest, Ties::Random] {
            assert_eq!(chosen(ties, &[(5, 0.2), (1, 0.3)], 0), Some(1));
            assert_eq!((chosen(ties, &[], 0), chosen(ties, &[(5, -1.0)], 0)), (None, None));
        }
    }
}
