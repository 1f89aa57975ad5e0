//! The profile of all rows without its samples, which many machines need and which is to be small.
//!
//! The samples are needed for three things alone: for cut points, for numbers of distinct values, and for the hash by which
//! runs know their data. All three are derived from them once. Of 50 features and 4,000,000 rows 26 MB of samples become
//! 0.2 MB of cut points.

use rayon::prelude::*;

use super::coding::{Cuts, Scratch};
use super::derived_column::Derived;
use super::ranked::{ABREAST, Numbers, Ranked, Ranker};
use super::sample::{RowSample, SampleOrder};
use super::sampled::SampledValues;
use super::{ColumnProfile, NumericProfile, Profile};

impl Profile {
    /// The profile with the cut points that follow from its samples in the place of these, once it is of all rows: no
    /// others can be merged into it.
    ///
    /// Codes, and the [`digest`](Self::digest), stay as they are.
    #[must_use]
    pub fn derive_cuts(mut self) -> Self {
        if self.derived.is_some() {
            return self;
        }
        let order = self.sample.order();
        let max_bins = self.max_bins;
        let columns = self.features.par_iter_mut().chain(&mut self.targets);
        let derive = |scratch: &mut Scratch, column: &mut ColumnProfile| column.derive(max_bins, &order, scratch);
        let digests = columns.map_init(Scratch::default, derive).collect();
        self.forget_samples(&order, digests);
        self
    }

    /// Derives cut points and the codes of all rows from the ranks of the values. All rows were sampled, and they are as many
    /// as can be ranked.
    pub(super) fn derive_ranks(&mut self) {
        let (order, max_bins) = (self.sample.order(), self.max_bins);
        let derive = |(ranker, scratch): &mut (Ranker, Scratch), columns: &mut [ColumnProfile]| {
            let numbers: Vec<Numbers<'_>> = columns.iter().filter_map(ColumnProfile::sampled_numbers).collect();
            let mut ranked = ranker.rank(&numbers, &order, max_bins.into()).into_iter();
            let digest = |column: &mut ColumnProfile| match (column.sampled_numbers().is_some(), column) {
                (true, ColumnProfile::Numeric(numeric)) => numeric.take_ranked(ranked.next().expect("one of each")),
                (_, column) => column.derive(max_bins, &order, scratch),
            };
            columns.iter_mut().map(digest).collect::<Vec<u128>>()
        };
        let features = self.features.par_chunks_mut(ABREAST).map_init(Default::default, derive);
        let features: Vec<Vec<u128>> = features.collect();
        let targets = self.targets.iter_mut().map(|target| target.derive(max_bins, &order, &mut Scratch::default()));
        let digests = features.into_iter().flatten().chain(targets).collect();
        self.forget_samples(&order, digests);
    }

    /// Marks the profile as one of cut points without samples. `digests` has the digest of each feature, then of each target.
    pub(super) fn forget_samples(&mut self, order: &SampleOrder, digests: Vec<u128>) {
        self.derived = Some(self.digest_of(order, digests));
        self.sample = RowSample::new(0);
    }
}

impl ColumnProfile {
    /// Replaces the samples by cut points. Returns the digest of the column, which is computed from the samples.
    pub(super) fn derive(&mut self, max_bins: usize, order: &SampleOrder, scratch: &mut Scratch) -> u128 {
        let digest = self.digest(order);
        if let ColumnProfile::Numeric(numeric) = self {
            numeric.derive(max_bins, scratch);
        }
        digest
    }
}

impl NumericProfile {
    fn derive(&mut self, max_bins: usize, scratch: &mut Scratch) {
        let cuts = if max_bins > 0 { self.cuts(max_bins, scratch) } else { Cuts::default() };
        let n_distinct = self.n_distinct(usize::MAX);
        self.derived = Some(Derived { cuts, n_distinct, codes: None });
        (self.sample, self.distinct) = (SampledValues::default(), None);
    }

    /// Replaces the sample, which was of all rows, by the cut points and codes in `Ranked`. Returns the digest of the column.
    pub(super) fn take_ranked(&mut self, Ranked { derived, hash }: Ranked) -> u128 {
        self.derived = Some(derived);
        self.sample = SampledValues::default();
        self.digest_of(hash)
    }
}
