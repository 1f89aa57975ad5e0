//! The symbolic score: the sum of `decay^depth` over a feature's splits (Petković et al. 2020a, Eq. 1).

use ferrank_runtime::error::{Result, check};

use super::{FeatureSums, Harvest, Observer, ScoreMethod, ScoreSize, SplitEvent};

pub(super) struct Symbolic {
    pub(super) decay: f64,
}

impl ScoreMethod for Symbolic {
    fn name(&self) -> &'static str {
        "symbolic"
    }

    fn validate_setting(&self) -> Result<()> {
        check(self.decay > 0.0 && self.decay <= 1.0, format!("decay: {} is not in (0, 1]", self.decay))
    }

    fn observer(&self, size: ScoreSize) -> Box<dyn Observer> {
        Box::new(Depths { decay: self.decay, sums: FeatureSums::new(size.n_features) })
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
