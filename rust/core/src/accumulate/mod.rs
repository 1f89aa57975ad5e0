//! Accumulators: contributions of trees or of blocks of queries, by key, and what makes their run.
//!
//! A contribution is keyed by the number of its tree or block. Merging is set union: the same key twice
//! with the same content is fine, with other content an error. Sums are taken in the order of keys, so
//! they do not depend on who made what, or when.
//!
//! | room | what |
//! |---|---|
//! | `contribution` | the numbers of one tree or block |
//! | [`Identity`] | settings, columns and profile, which must be the same for what is merged |
//! | `ipc` | the Arrow form, in bytes and in files |
//! | `ledger` | contributions as they are made; with a file, a run that is killed can be resumed |
//! | `estimate` | importances with standard errors, and ranks |

mod contribution;
mod estimate;
mod identity;
mod ipc;
mod ledger;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use contribution::{Contribution, Form, Vector};
pub(crate) use estimate::{Estimate, rank_intervals};
pub use identity::{Column, Identity, Settings};
pub(crate) use ledger::Ledger;

use crate::error::{Error, Result};
use crate::ranking::Ranking;
use crate::{forest, relief};
use contribution::checksum;

/// Contributions of one run, or of a part of it.
#[derive(Debug, Clone)]
pub struct Accumulator {
    identity: Arc<Identity>,
    contributions: BTreeMap<u64, Contribution>,
}

impl Accumulator {
    pub(crate) fn new(identity: Identity) -> Self {
        Accumulator { identity: Arc::new(identity), contributions: BTreeMap::new() }
    }

    /// What makes the run.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The keys whose contributions are here, ascending.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.contributions.keys().copied()
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
        let identity = self.identity();
        let scores = match &identity.settings {
            Settings::Forest(params) => forest::scores(self, params)?,
            Settings::Relief(params) => relief::scores(self, params)?,
        };
        let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect();
        Ok(Ranking {
            task: identity.task,
            n_rows: identity.rows,
            n_unlabelled: identity.unlabelled,
            features: names(&identity.features),
            targets: names(&identity.targets),
            scores,
        })
    }

    /// Those contributions whose keys are in `keys`, in the order of these.
    pub(crate) fn among(&self, keys: Range<u64>) -> Vec<&Contribution> {
        self.contributions.range(keys).map(|(_, contribution)| contribution).collect()
    }

    /// Takes the contribution of `key`.
    fn insert(&mut self, key: u64, contribution: Contribution) -> Result<()> {
        if self.clashes(key, &contribution) {
            return Err(Error::Data(format!("contribution {key} was made twice, with different content")));
        }
        self.contributions.insert(key, contribution);
        Ok(())
    }

    fn clashes(&self, key: u64, contribution: &Contribution) -> bool {
        self.contributions.get(&key).is_some_and(|own| checksum(key, own) != checksum(key, contribution))
    }
}
