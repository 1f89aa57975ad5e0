//! A forest that is given more trees, and larger bags.

use super::growth::{Case, Growth};
use super::sample::{Sampled, count_rows};
use ferrank_data::source::ChunkSource;
use ferrank_forest::{ForestParams, MaxSamples};
use ferrank_ranking::{DataShape, Ranking};
use ferrank_runtime::error::{Error, Result, check};

/// Rows of a bag in the first stage.
const FIRST_BAG: u64 = 1_000;
/// Trees of a stage with new bags.
const FIRST_TREES: u64 = 32;
/// How much larger the next bag is: each stage reads the data anew.
const LARGER: u64 = 4;
/// More trees than the standard errors ask for, so that they need not ask again.
const MARGIN: f64 = 1.2;

pub(super) struct ForestGrowth<'a> {
    case: Case<'a, ForestParams>,
    n_rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stage {
    trees: u64,
    /// Rows of a bag.
    bag: u64,
}

impl<'a> ForestGrowth<'a> {
    pub(super) fn new(case: Case<'a, ForestParams>) -> Result<Self> {
        let params = case.params;
        check(params.bootstraps(), "until: needs a bootstrap, with which trees see different rows; set bootstrap")?;
        // What is wrong with the settings is said before a row is read.
        let problem = case.problem()?;
        params.validate(&DataShape::new(&problem))?;
        let n_rows = count_rows(case.source, case.monitor)?;
        Ok(ForestGrowth { case, n_rows })
    }

    fn most_trees(&self) -> u64 {
        self.case.params.n_estimators as u64
    }

    /// Rows of the largest bags.
    fn largest(&self) -> u64 {
        self.case.params.rows_per_tree(self.n_rows).max(1)
    }

    /// Rows that the bags of a stage are drawn from.
    fn sampled(&self, stage: Stage) -> u64 {
        stage.trees.saturating_mul(stage.bag).min(self.n_rows)
    }

    fn rank_by(&self, source: &dyn ChunkSource, stage: Stage, max_samples: MaxSamples) -> Result<Ranking> {
        let Case { roles, params, options, monitor, .. } = self.case;
        let params = params.clone().with_n_estimators(stage.trees as usize).with_max_samples(max_samples);
        ferrank_forest::accumulate(source, roles, &params, options, monitor)?.ranking()
    }
}

impl Growth for ForestGrowth<'_> {
    type Stage = Stage;

    fn first(&self) -> Stage {
        Stage { trees: FIRST_TREES.min(self.most_trees()), bag: FIRST_BAG.min(self.largest()) }
    }

    fn next(&self, stage: Stage, factor: f64) -> Option<Stage> {
        let wanted = (stage.trees as f64 * factor * MARGIN).ceil();
        let most = self.most_trees();
        if stage.trees < most && (wanted <= most as f64 || stage.bag == self.largest()) {
            return Some(Stage { trees: (wanted as u64).clamp(stage.trees + 1, most), ..stage });
        }
        (stage.bag < self.largest()).then(|| Stage { bag: (LARGER * stage.bag).min(self.largest()), ..self.first() })
    }

    fn rank(&self, stage: Stage) -> Result<Ranking> {
        let Case { source, params, monitor, .. } = self.case;
        let sampled = self.sampled(stage);
        let share = MaxSamples::Share(stage.bag as f64 / self.n_rows as f64);
        if sampled == self.n_rows {
            let all = stage.bag == self.largest();
            return self.rank_by(source, stage, if all { params.max_samples } else { share });
        }
        let sample = Sampled::new(source, params.seed, sampled, self.n_rows).hold(monitor)?;
        let mut ranking = match self.rank_by(&*sample, stage, MaxSamples::Share(1.0 / stage.trees as f64)) {
            Ok(ranking) => ranking,
            // A target may be constant or missing in the sample alone. A run over all rows then succeeds, or fails with
            // the error that describes the data.
            Err(Error::Data(_)) => return self.rank_by(source, stage, share),
            Err(error) => return Err(error),
        };
        let widening = (2.0 - sampled as f64 / self.n_rows as f64).sqrt();
        for score in &mut ranking.scores {
            score.monte_carlo_error.iter_mut().for_each(|error| *error *= widening);
        }
        Ok(ranking)
    }

    fn freedom(&self, stage: Stage) -> f64 {
        stage.trees as f64 - 1.0
    }

    fn extent(&self, stage: Stage) -> (u64, Option<u64>, u64) {
        (stage.trees, Some(stage.bag), self.n_rows)
    }
}
