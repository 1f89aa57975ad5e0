//! Profiles of parts made into one of the whole.

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::distinct::Distinct;
use super::hashes::hash_words;
use super::sample::SampleOrder;
use super::{ColumnProfile, LabelProfile, NominalProfile, NumericProfile, Profile};
use crate::intake::Counts;
use ferrank_runtime::error::{Error, Result};

impl Profile {
    /// Takes what `other` knows, a profile of other rows of the same data set.
    ///
    /// The bits do not depend on the order or the grouping in which parts are merged.
    ///
    /// # Errors
    /// [`Error::Data`] if the two are of different columns, or of different settings, if one is
    /// [without samples](Self::derive_cuts), or if a column comes to have too many categories.
    pub fn merge(&mut self, other: &Profile) -> Result<()> {
        if self.derived.or(other.derived).is_some() {
            return Err(Error::Data("a profile without samples is of all rows; it cannot be merged".into()));
        }
        if self.max_bins != other.max_bins {
            return Err(Error::Data(format!(
                "max_bins: the profiles are for {} and {} bins; make them with the same setting",
                self.max_bins, other.max_bins
            )));
        }
        self.same_columns(&other.names, other.features.len())?;
        self.same_groups(other.groups.as_ref().map(|groups| groups.name.as_str()))?;
        self.counts.rows += other.counts.rows;
        self.counts.unlabelled += other.counts.unlabelled;
        self.counts.weightless += other.counts.weightless;
        self.counts.kept += other.counts.kept;
        let stay = self.sample.merge(&other.sample);
        let columns = self.features.par_iter_mut().chain(&mut self.targets);
        let others = other.features.par_iter().chain(&other.targets);
        columns.zip(others).zip(&self.names).try_for_each(|((column, other), name)| {
            let merged = match (column, other) {
                (ColumnProfile::Numeric(numeric), ColumnProfile::Numeric(other)) => {
                    numeric.merge(other);
                    Ok(())
                }
                (ColumnProfile::Nominal(nominal), ColumnProfile::Nominal(other)) => nominal.merge(other),
                (ColumnProfile::Labels(labels), ColumnProfile::Labels(other)) => labels.merge(other),
                (column, other) => Err(Error::Data(format!(
                    "{} in one part, {} in another; give it one type in all of them",
                    other.kind(),
                    column.kind()
                ))),
            };
            merged.map_err(|error| Error::Data(format!("column '{name}': {error}")))
        })?;
        self.take_sampled(&stay);
        if let Some((own, other)) = self.groups.as_mut().zip(other.groups.as_ref()) {
            own.merge(other);
        }
        Ok(())
    }

    /// That `names`, of which the first `n_features` are features, are those of this profile.
    pub fn same_columns(&self, names: &[String], n_features: usize) -> Result<()> {
        if n_features != self.features.len() || names.len() != self.names.len() {
            return Err(Error::Data(format!(
                "the profile is of {} features and {} targets, the data have {n_features} and {}",
                self.features.len(),
                self.targets.len(),
                names.len() - n_features.min(names.len())
            )));
        }
        match self.names.iter().zip(names).find(|(own, other)| own != other) {
            None => Ok(()),
            Some((own, other)) => Err(Error::Data(format!(
                "the profile is of other columns: it has '{own}' where the data have '{other}'"
            ))),
        }
    }

    /// That `name` is the column of groups of this profile.
    pub fn same_groups(&self, name: Option<&str>) -> Result<()> {
        let own = self.groups.as_ref().map(|groups| groups.name.as_str());
        let quoted = |name: Option<&str>| name.map_or("none".into(), |name| format!("'{name}'"));
        match own == name {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "groups: the profile was made for {}, not for {}; make it with the same groups",
                quoted(own),
                quoted(name)
            ))),
        }
    }

    /// A hash of all that the profile says, the same for all ways to it.
    pub fn digest(&self) -> u128 {
        if let Some(digest) = self.derived {
            return digest;
        }
        let order = self.sample.order();
        let columns = self.features.par_iter().chain(&self.targets);
        self.digest_of(&order, columns.map(|column| column.digest(&order)).collect())
    }

    /// The digest of the profile. `columns` has the digest of each feature, then of each target.
    pub(super) fn digest_of(&self, order: &SampleOrder, columns: Vec<u128>) -> u128 {
        let sampled: Vec<u64> = order.positions.iter().map(|&position| self.sample.hashes[position as usize]).collect();
        let Counts { rows, unlabelled, weightless, kept } = self.counts;
        let groups = self.groups.iter().map(|groups| hash_words(&[groups.digest()])).collect();
        let parts = [
            vec![hash_words(&[rows, unlabelled, weightless, kept, self.max_bins as u64]), hash_words(&sampled)],
            columns,
            groups,
        ]
        .concat();
        xxh3_128(&parts.iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<u8>>())
    }
}

impl ColumnProfile {
    fn kind(&self) -> &'static str {
        match self {
            ColumnProfile::Numeric(_) => "numeric",
            ColumnProfile::Nominal(_) => "nominal",
            ColumnProfile::Labels(_) => "of label sets",
        }
    }

    pub(super) fn digest(&self, order: &SampleOrder) -> u128 {
        match self {
            ColumnProfile::Numeric(numeric) => numeric.digest_of(numeric.sample.hash(order, &mut Vec::new())),
            ColumnProfile::Nominal(nominal) => {
                let mut bytes = nominal.missing.to_le_bytes().to_vec();
                for (name, count) in &nominal.counts {
                    bytes.extend((name.len() as u64).to_le_bytes());
                    bytes.extend(name.as_bytes());
                    bytes.extend(count.to_le_bytes());
                }
                xxh3_128(&bytes)
            }
            ColumnProfile::Labels(labels) => {
                let mut bytes = labels.missing.to_le_bytes().to_vec();
                let mut add = |text: &str| {
                    bytes.extend((text.len() as u64).to_le_bytes());
                    bytes.extend(text.as_bytes());
                };
                labels.found.iter().for_each(|label| add(label));
                for (parent, child) in labels.plan.edges() {
                    add(parent.as_deref().unwrap_or(""));
                    add(&child);
                }
                bytes.extend(labels.plan.decay.to_le_bytes());
                xxh3_128(&bytes)
            }
        }
    }
}

impl NumericProfile {
    /// The digest of the column. `hash` is the hash of its sampled values.
    pub(super) fn digest_of(&self, hash: u128) -> u128 {
        let mut all = Vec::with_capacity(8);
        all.extend([self.missing, self.zeros, self.min.to_bits(), self.max.to_bits()]);
        all.push(self.distinct.as_ref().map_or(u64::MAX, |distinct| distinct.limit));
        let distinct = self.distinct.as_ref().map(Distinct::sorted).unwrap_or_default();
        all.push(distinct.len() as u64);
        all.extend(distinct.iter().map(|value| value.to_bits()));
        all.extend([hash as u64, (hash >> u64::BITS) as u64]);
        hash_words(&all)
    }

    fn merge(&mut self, other: &NumericProfile) {
        self.missing += other.missing;
        self.zeros += other.zeros;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        match &other.distinct {
            Some(others) => self.sample_distinct().merge(others),
            None => self.distinct.iter_mut().for_each(|own| own.extend(&other.sample.distinct())),
        }
        self.distinct.iter_mut().for_each(|own| own.prune(0));
        self.sample.as_mut().extend(&other.sample.all()[..]);
    }
}

impl NominalProfile {
    fn merge(&mut self, other: &NominalProfile) -> Result<()> {
        self.missing += other.missing;
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        self.check()
    }
}

impl LabelProfile {
    fn merge(&mut self, other: &LabelProfile) -> Result<()> {
        if self.plan != other.plan {
            return Err(Error::Data("its hierarchy differs between the parts; give them the same".into()));
        }
        self.missing += other.missing;
        self.listed += other.listed;
        self.found.extend(other.found.iter().cloned());
        self.check()
    }
}
