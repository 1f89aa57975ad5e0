//! The symbolic score: the sum of `decay^depth` over a feature's splits (Petković et al. 2020a, Eq. 1).

use super::observer::{FeatureSums, Harvest, Observer, ScoreMethod, ScoreSize, SplitEvent};
use crate::params::ForestParams;

pub(super) struct Symbolic;

impl ScoreMethod for Symbolic {
    fn suffixes(&self, params: &ForestParams) -> Vec<String> {
        match &params.decay[..] {
            [_] => vec![String::new()],
            several => several.iter().map(|decay| format!("_decay{decay}")).collect(),
        }
    }

    fn observer(&self, params: &ForestParams, size: ScoreSize) -> Box<dyn Observer> {
        let sums = |&decay: &f64| (decay, FeatureSums::new(size.n_features));
        Box::new(Depths(params.decay.iter().map(sums).collect()))
    }
}

/// The sums of each decay.
struct Depths(Vec<(f64, FeatureSums)>);

impl Observer for Depths {
    fn on_split(&mut self, split: &SplitEvent<'_>) {
        for (decay, sums) in &mut self.0 {
            sums.add(split.feature, decay.powi(split.depth as i32));
        }
    }

    fn harvest(self: Box<Self>) -> Vec<Harvest> {
        self.0.into_iter().map(|(_, sums)| sums.into_vector().into()).collect()
    }
}
