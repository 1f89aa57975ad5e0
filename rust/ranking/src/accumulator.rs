//! Accumulators: contributions of trees or of blocks of queries, by key.
//!
//! A contribution is keyed by the number of its tree or block. Merging is set union: the same key twice with the
//! same content is a retry and harmless; with other content it is an error. Sums are taken in the order of the
//! keys, so they do not depend on who computed what, or when.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrank_runtime::error::{Error, Result};

use crate::contribution::{Contribution, Part, checksum};
use crate::identity::Identity;
use crate::ranking::Ranking;

/// Contributions of one run, or of a part of it.
///
/// ```
/// use ferrank_ranking::{Accumulator, Vector};
#[doc = include_str!("example_run.txt")]
///
/// // A run on two features; its parts may be computed anywhere.
/// let (mut whole, mut part) = (Accumulator::new(identity.clone()), Accumulator::new(identity));
/// whole.insert(0, vec![Vector::dense(vec![3.0, 1.0])])?;
/// part.insert(1, vec![Vector::dense(vec![1.0, 1.0])])?;
/// whole.merge(&part)?;
/// whole.merge(&part)?;
/// assert_eq!(whole.keys().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(whole.ranking()?.scores[0].importance, [2.0, 1.0]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Accumulator {
    pub(crate) identity: Arc<Identity>,
    pub(crate) contributions: BTreeMap<u64, Contribution>,
}

impl Accumulator {
    /// An accumulator without contributions.
    pub fn new(identity: Identity) -> Self {
        Accumulator { identity: Arc::new(identity), contributions: BTreeMap::new() }
    }

    /// The run that the contributions belong to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The keys whose contributions are here, ascending.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.contributions.keys().copied()
    }

    /// The contributions by key, in ascending order.
    pub fn contributions(&self) -> impl Iterator<Item = (u64, &Contribution)> {
        self.contributions.iter().map(|(&key, contribution)| (key, contribution))
    }

    /// Adds the contributions of `other`, a part of the same run.
    ///
    /// # Errors
    /// [`Error::Data`] if it is of another run, or has another contribution under the same key; nothing is
    /// added then.
    pub fn merge(&mut self, other: &Accumulator) -> Result<()> {
        self.identity.same(&other.identity, "this accumulator", "the other one")?;
        if let Some(key) = other.keys().find(|&key| self.clashes(key, &other.contributions[&key])) {
            return Err(Error::Data(format!(
                "contribution {key} is in both accumulators, with different content; one of them is damaged or of \
                 other data"
            )));
        }
        for (&key, contribution) in &other.contributions {
            self.contributions.entry(key).or_insert_with(|| contribution.clone());
        }
        Ok(())
    }

    /// The ranking that the contributions give, be they all of a run or some.
    ///
    /// # Errors
    /// [`Error::Data`] if a score has no contribution at all.
    pub fn ranking(&self) -> Result<Ranking> {
        let part = |(&key, sums)| Part { key, weight: 1.0, sums };
        let among = |keys| self.contributions.range(keys).map(part).collect();
        let populations: Vec<Vec<Part<'_>>> = self.identity.populations().into_iter().map(among).collect();
        self.identity.ranking(&populations)
    }

    /// Adds the contribution of `key`.
    ///
    /// # Errors
    /// [`Error::Data`] if there is one already, with other content.
    pub fn insert(&mut self, key: u64, contribution: Contribution) -> Result<()> {
        if self.clashes(key, &contribution) {
            return Err(Error::Data(format!("contribution {key} was made twice, with different content")));
        }
        self.contributions.insert(key, contribution);
        Ok(())
    }

    fn clashes(&self, key: u64, contribution: &Contribution) -> bool {
        self.contributions.get(&key).is_some_and(|own| checksum(0, key, own) != checksum(0, key, contribution))
    }
}
