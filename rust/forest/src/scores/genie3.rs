//! Genie3: the sum of the impurity decreases of a feature's splits, each weighted by the share of the bag that
//! reaches it (Huynh-Thu et al. 2010; Petković et al. 2020a, Eq. 2).
//!
//! The gain is a sum over components, so the importances can be reported by target.

use super::observer::{FeatureSums, Harvest, Observer, ScoreMethod, ScoreSize, SplitEvent, TargetSums};
use crate::params::ForestParams;

pub(super) struct Genie3;

impl ScoreMethod for Genie3 {
    fn is_share_of_impurity(&self) -> bool {
        true
    }

    fn is_by_target(&self) -> bool {
        true
    }

    fn observer(&self, _: &ForestParams, size: ScoreSize) -> Box<dyn Observer> {
        let sums = FeatureSums::new(size.n_features);
        Box::new(Decreases { sums, n_targets: size.n_targets, by_target: TargetSums::default() })
    }
}

struct Decreases {
    sums: FeatureSums,
    n_targets: usize,
    by_target: TargetSums,
}

impl Observer for Decreases {
    fn on_split(&mut self, split: &SplitEvent<'_>) {
        let &SplitEvent { feature, share, gain, gain_by_target, .. } = split;
        self.sums.add(feature, share * gain);
        if self.n_targets > 0 {
            self.by_target.add(feature, gain_by_target.iter().map(|gain| share * gain));
        }
    }

    fn harvest(self: Box<Self>) -> Vec<Harvest> {
        let by_target = self.by_target.into_vectors(self.n_targets);
        vec![Harvest { importances: self.sums.into_vector(), by_target }]
    }
}
