//! The inputs shared by all trees of an ensemble.

use ferrank_data::profile::{Coding, Scale};
use ferrank_data::store::{CodeStore, TargetColumn};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

use crate::bag::BagPlan;
use crate::companions;
use crate::criterion::Criterion;
use crate::params::{Ensemble, ForestParams, Missing, Ties};
use crate::space::Space;
use crate::split::batch::BatchCut;
use crate::tree_buffer::{CodeTest, KNOWN, NodeTest};

/// Nodes with more examples check for an interrupt after each feature, smaller nodes from time to time.
pub(crate) const LARGE_NODE: usize = 4096;

/// The inputs shared by all trees of an ensemble.
#[derive(Clone, Copy)]
pub(crate) struct GrowContext<'a> {
    pub(crate) store: &'a CodeStore,
    pub(crate) space: &'a Space,
    pub(crate) params: &'a ForestParams,
    pub(crate) monitor: &'a Monitor,
}

impl GrowContext<'_> {
    /// Number of non-constant features to look at in a node.
    pub(crate) fn features_per_node(self) -> usize {
        let are_numbers = self.store.targets.iter().all(|target| matches!(target, TargetColumn::Numeric(_)));
        self.params.features_per_node(self.store.codings.len(), are_numbers)
    }

    /// Checks for an interrupt before a step in a node with this number of `examples`, if the node is large.
    pub(crate) fn check_large(self, examples: usize) -> Result<()> {
        match examples > LARGE_NODE {
            true => self.monitor.check(),
            false => Ok(()),
        }
    }

    /// The numbers of the companions of tree number `tree`.
    pub(crate) fn companions(&self, tree: u64) -> impl Iterator<Item = u64> + use<> {
        let has_companions = companions::has_companions(tree, self.params);
        let n = if has_companions { companions::COMPANIONS } else { 0 };
        (0..n).map(move |which| companions::companion(tree, which))
    }

    /// The part of each target in the gain of a split, times `share`.
    pub(crate) fn gains_by_target(self, criterion: &Criterion, left: &[f64], total: &[f64], share: f64) -> Vec<f64> {
        let mut parts = vec![0.0; self.store.targets.len()];
        criterion.gains(left, total, |component, gain| {
            if let Some(target) = self.space.target_of(component) {
                parts[target] += share * gain;
            }
        });
        parts
    }
}

impl GrowContext<'_> {
    /// Returns true if missing values of features are information.
    pub(crate) fn is_informative(self) -> bool {
        self.params.missing == Missing::Informative
    }

    /// For each feature, true if it is constant in the whole data.
    pub(crate) fn constant_features(self) -> impl Iterator<Item = bool> {
        let is_informative = self.is_informative();
        let n_values = move |coding: &Coding| coding.n_codes() + usize::from(is_informative && coding.has_missing);
        self.store.codings.iter().map(move |coding| n_values(coding) < 2)
    }
}

impl<'a> GrowContext<'a> {
    /// How the bags of the trees are drawn.
    pub(crate) fn bags(self) -> BagPlan<'a> {
        BagPlan::new(self.store, self.params)
    }

    /// The values of the codes of `feature`, if cuts are random. Random cuts are drawn among values, not codes.
    pub(crate) fn values(self, feature: u32) -> Option<&'a [f64]> {
        match (&self.store.codings[feature as usize].scale, self.params.ensemble) {
            (Scale::Numeric(cuts), Ensemble::ExtraTrees) => Some(&cuts.values),
            _ => None,
        }
    }

    /// The key of `code` in a batch.
    pub(crate) fn key_of(self, feature: u32, code: u16) -> f64 {
        self.values(feature).map_or(f64::from(code), |values| values[usize::from(code)])
    }

    /// Moves the cut of `test` with [`CodeTest::center`] if ties are broken at random. With [`Ties::Lowest`] the lowest cut
    /// stays, and with extra trees the random cut.
    #[inline(always)]
    pub(crate) fn place_cut(self, test: &mut CodeTest, next: impl FnOnce(u16) -> u16) {
        if self.params.ties == Ties::Random && self.params.ensemble != Ensemble::ExtraTrees {
            test.center(next);
        }
    }

    /// The test of a cut that a batch found.
    pub(crate) fn test_of(self, cut: &BatchCut) -> NodeTest {
        let code = match self.values(cut.feature) {
            _ if cut.key == f64::INFINITY => KNOWN,
            Some(values) => values.partition_point(|&value| value <= cut.key) as u16 - 1,
            None => cut.key as u16,
        };
        NodeTest { test: CodeTest::Cut(code), missing: cut.missing }
    }
}
