//! Coverage: the sum over a feature's splits of the share of the bag that reaches them (Petković et al. 2023, Eq. 2).

use super::observer::{FeatureSums, Harvest, Observer, ScoreMethod, ScoreSize, SplitEvent};
use crate::params::ForestParams;

pub(super) struct Coverage;

impl ScoreMethod for Coverage {
    fn observer(&self, _: &ForestParams, size: ScoreSize) -> Box<dyn Observer> {
        Box::new(Shares { sums: FeatureSums::new(size.n_features) })
    }
}

struct Shares {
    sums: FeatureSums,
}

impl Observer for Shares {
    fn on_split(&mut self, split: &SplitEvent<'_>) {
        self.sums.add(split.feature, split.share);
    }

    fn harvest(self: Box<Self>) -> Vec<Harvest> {
        vec![self.sums.into_vector().into()]
    }
}
