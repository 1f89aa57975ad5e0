//! Contributions without end, added up so that they stay few.
//!
//! Once there are too many, two that follow each other are added up, of all such pairs the one that counts
//! least. The sums are those of batches of contributions, and standard errors come from the spread of the
//! batches' means (Schmeiser 1982), as they come from that of single contributions. Contributions that were
//! made from the same rows are alike, which the means of batches longer than that account for.
//!
//! With what is old counting for less, the old batches are the long ones.

use std::sync::Arc;

use crate::accumulator::Accumulator;
use crate::contribution::{Contribution, Form, Part, Vector};
use crate::identity::Identity;
use crate::ranking::Ranking;
use ferrank_runtime::error::Result;

/// Parts take up to this many bytes, where they are not too few then.
const BYTES: usize = 64 << 20;
/// Parts whose number is good enough for standard errors.
const PARTS: std::ops::RangeInclusive<usize> = 16..=128;

/// Number of parts to add up contributions in, each of which has so many values.
pub fn most_parts(n_values: usize) -> usize {
    (BYTES / (8 * n_values.max(1))).clamp(*PARTS.start(), *PARTS.end())
}

/// Contributions added up in a bounded number of parts.
///
/// ```
/// use ferrank_ranking::{Accumulator, Condensed, Vector};
#[doc = include_str!("example_run.txt")]
///
/// let mut stream = Condensed::new(identity.clone());
/// for importance in [[3.0, 1.0], [0.0, 4.0]] {
///     let mut run = Accumulator::new(identity.clone());
///     run.insert(0, vec![Vector::dense(importance.to_vec())])?;
///     stream.add(run, 0.5);
/// }
/// // The first run counts half: (0.5 · 3 + 0) / 1.5 and (0.5 · 1 + 4) / 1.5.
/// assert_eq!(stream.ranking()?.scores[0].importance, [1.0, 3.0]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Condensed {
    /// Of the run whose contributions came last.
    pub(crate) identity: Identity,
    /// By population, in the order in which they were made.
    pub(crate) populations: Vec<Vec<Sum>>,
}

/// A part of the contributions.
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    pub(crate) key: u64,
    pub(crate) weight: f64,
    pub(crate) sums: Arc<Contribution>,
}

impl Sum {
    fn part(&self) -> Part<'_> {
        Part { key: self.key, weight: self.weight, sums: &self.sums }
    }
}

impl Condensed {
    /// Nothing yet of runs such as that of `identity`.
    pub fn new(identity: Identity) -> Self {
        let populations = vec![Vec::new(); identity.populations().len()];
        Condensed { identity, populations }
    }

    /// Takes the contributions of a run after those that came before; they count `fade` times what they did.
    pub fn add(&mut self, run: Accumulator, fade: f64) {
        self.fade(fade);
        self.identity = run.identity().clone();
        let populations = self.identity.populations();
        let most = self.most();
        for (key, mut sums) in run.contributions {
            // Entries are of the rows of a run, and these are others in the next one.
            let entries = sums.iter_mut().zip(self.identity.forms(key)).filter(|(_, form)| *form == Form::Entries);
            entries.for_each(|(vector, _)| *vector = Vector::sparse(Vec::new()));
            if let Some(place) = populations.iter().position(|keys| keys.contains(&key)) {
                self.populations[place].push(Sum { key, weight: 1.0, sums: Arc::new(sums) });
                condense(&mut self.populations[place], most);
            }
        }
    }

    /// The ranking that all contributions give.
    pub fn ranking(&self) -> Result<Ranking> {
        let populations: Vec<Vec<Part<'_>>> =
            self.populations.iter().map(|sums| sums.iter().map(Sum::part).collect()).collect();
        self.identity.ranking(&populations)
    }

    fn fade(&mut self, factor: f64) {
        if factor == 1.0 {
            return;
        }
        for sum in self.populations.iter_mut().flatten() {
            sum.weight *= factor;
            let vectors = Arc::make_mut(&mut sum.sums);
            vectors.iter_mut().flat_map(|vector| &mut vector.values).for_each(|value| *value *= factor);
        }
    }

    /// Most parts of a population.
    fn most(&self) -> usize {
        let of_form = |form| match form {
            Form::Sparse(n_values) | Form::Dense(n_values) => n_values,
            Form::Entries => 0,
        };
        let of_key = |key| self.identity.forms(key).into_iter().map(of_form).sum::<usize>();
        let keys = self.identity.populations();
        most_parts(keys.iter().filter(|keys| !keys.is_empty()).map(|keys| of_key(keys.start)).sum())
    }
}

/// Adds up pairs of `sums` until there are at most `most`.
fn condense(sums: &mut Vec<Sum>, most: usize) {
    while sums.len() > most {
        let weight = |place: &usize| sums[*place].weight + sums[place + 1].weight;
        let least = (0..sums.len() - 1).min_by(|a, b| weight(a).total_cmp(&weight(b)));
        let Some(place) = least else { return };
        let newer = sums.remove(place + 1);
        let older = &mut sums[place];
        older.weight += newer.weight;
        older.sums = Arc::new(older.sums.iter().zip(&*newer.sums).map(|(a, b)| a.plus(b)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(weights: &[f64]) -> Vec<Sum> {
        let sum = |&weight: &f64| Sum { key: 0, weight, sums: Arc::new(vec![Vector::dense(vec![weight])]) };
        weights.iter().map(sum).collect()
    }

    fn weights(sums: &[Sum]) -> Vec<f64> {
        sums.iter().map(|sum| sum.weight).collect()
    }

    #[test]
    fn the_pair_that_counts_least_is_added_up_first() {
        let mut found = sums(&[1.0, 3.0, 2.0, 1.5, 4.0]);
        condense(&mut found, 4);
        assert_eq!(weights(&found), [1.0, 3.0, 3.5, 4.0]);
        condense(&mut found, 2);
        assert_eq!(weights(&found), [7.5, 4.0]);
        assert_eq!(found[0].sums[0].values, [7.5]);
    }

    #[test]
    fn parts_without_forgetting_stay_about_equal() {
        let mut found = Vec::new();
        for _ in 0..5_000 {
            found.extend(sums(&[1.0]));
            condense(&mut found, 16);
        }
        let weights = weights(&found);
        assert_eq!(weights.iter().sum::<f64>(), 5_000.0);
        let all: f64 = weights.iter().map(|weight| weight * weight).sum();
        assert!(5_000.0 * 5_000.0 / all > 8.0, "{weights:?}");
    }

    #[test]
    fn what_fades_keeps_enough_parts_of_recent_ones() {
        let mut found = Vec::new();
        for _ in 0..2_000 {
            found.iter_mut().for_each(|sum: &mut Sum| sum.weight *= 0.99);
            found.extend(sums(&[1.0]));
            condense(&mut found, 32);
        }
        let weights = weights(&found);
        let (total, all) =
            weights.iter().fold((0.0, 0.0), |(total, all), weight| (total + weight, all + weight * weight));
        assert!(total * total / all > 16.0, "{weights:?}");
        assert!(weights.iter().all(|weight| *weight > 1e-3));
    }
}
