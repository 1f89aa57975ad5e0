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

    fn observer(&self, params: &ForestParams, size: ScoreSize, variant: usize) -> Box<dyn Observer> {
        Box::new(Depths { decay: params.decay[variant], sums: FeatureSums::new(size.n_features) })
    }
}

struct Depths {
    decay: f64,
    sums: FeatureSums,
}

impl Observer for Depths {
    fn on_split(&mut self, split: &SplitEvent<'_>) {
        self.sums.add(split.feature, self.decay.powi(split.depth as i32));
    }

    fn harvest(self: Box<Self>) -> Harvest {
        self.sums.into_vector().into()
    }
}
