//! A forest that is given larger bags, and more trees.

use super::growth::{Case, Growth};
use ferrank_data::source::ChunkSource;
use ferrank_data::source::{SampledSource, count_rows};
use ferrank_forest::{ForestParams, MaxSamples};
use ferrank_ranking::{DataShape, Ranking, rank_intervals};
use ferrank_runtime::error::{Error, Result, check};

/// Rows of a bag in the first stage.
const FIRST_BAG: u64 = 1_000;
/// Trees of the first stage with new bags.
const FIRST_TREES: u64 = 32;
/// How much larger the next bag is: each stage reads the data anew.
pub(super) const LARGER: u64 = 4;
/// More trees than the errors ask for, so that they need not ask again.
const MARGIN: f64 = 1.2;
/// Stages before the last one have at most this share of its trees, so that all of them cost at most half as much.
const SHARE: u64 = 4;
/// Trees are advised up to this number of times those grown.
const MOST_TIMES: u64 = 100;

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

    /// The first stage with bags of `bag` rows; with the largest ones if a sample would not be smaller than the data.
    fn with_bag(&self, bag: u64) -> Stage {
        let trees = FIRST_TREES.min(self.most_trees());
        if bag < self.largest() && trees.saturating_mul(bag) <= self.n_rows {
            return Stage { trees, bag };
        }
        let few = 2 * FIRST_TREES <= self.most_trees();
        Stage { trees: if few { FIRST_TREES } else { self.most_trees() }, bag: self.largest() }
    }

    fn rank_by(&self, source: &dyn ChunkSource, params: &ForestParams) -> Result<Ranking> {
        let Case { roles, options, monitor, .. } = self.case;
        ferrank_forest::accumulate(source, roles, params, options, monitor)?.ranking()
    }

    /// The ranking by bags of a sample of the rows, with standard errors from the spread of trees.
    fn rank_sample(&self, stage: Stage) -> Result<Ranking> {
        let Case { source, params, options, monitor, .. } = self.case;
        let drawn = stage.trees * stage.bag;
        let params = params.clone().with_n_estimators(stage.trees as usize).with_standard_errors(false);
        let by_share = |share| params.clone().with_max_samples(MaxSamples::Share(share));
        let sample = SampledSource::new(source, params.seed, drawn, self.n_rows).hold(options.memory, monitor)?;
        let (mut ranking, sampled) = match self.rank_by(&*sample, &by_share(1.0 / stage.trees as f64)) {
            Ok(ranking) => (ranking, drawn),
            // A target may be constant or missing in the sample alone. A run over all rows then succeeds, or fails with
            // the error that describes the data.
            Err(Error::Data(_)) => {
                (self.rank_by(source, &by_share(stage.bag as f64 / self.n_rows as f64))?, self.n_rows)
            }
            Err(error) => return Err(error),
        };
        let widening = (1.0 + drawn as f64 / sampled as f64).sqrt();
        for score in &mut ranking.scores {
            score.standard_error = score.monte_carlo_error.iter().map(|error| error * widening).collect();
            score.freedom = stage.trees as f64 - 1.0;
            score.rank_interval = rank_intervals(&score.importance, &score.standard_error, score.freedom);
        }
        Ok(ranking)
    }
}

impl Growth for ForestGrowth<'_> {
    type Stage = Stage;

    fn first(&self) -> Stage {
        // Bags of one size show no trend.
        match self.with_bag(LARGER * FIRST_BAG).bag == self.largest() {
            true => self.with_bag(self.largest()),
            false => self.with_bag(FIRST_BAG),
        }
    }

    fn next(&self, stage: Stage, times: Option<f64>) -> Option<Stage> {
        if stage.bag < self.largest() {
            return Some(self.with_bag(LARGER * stage.bag));
        }
        let most = self.most_trees();
        let wanted = times.map_or(most, |times| (stage.trees as f64 * (times * MARGIN).max(2.0)).ceil() as u64);
        let trees = if wanted.saturating_mul(SHARE) <= most { wanted } else { most };
        (stage.trees < most).then_some(Stage { trees, ..stage })
    }

    fn rank(&self, stage: Stage) -> Result<Ranking> {
        if stage.bag < self.largest() {
            return self.rank_sample(stage);
        }
        let params = self.case.params.clone().with_n_estimators(stage.trees as usize);
        self.rank_by(self.case.source, &params)
    }

    fn steps(&self, stage: Stage) -> f64 {
        (self.largest() as f64 / stage.bag as f64).ln() / (LARGER as f64).ln()
    }

    fn has_zero(&self) -> bool {
        self.case.params.scores[0].is_zero_by_chance()
    }

    fn most_advised(&self, stage: Stage) -> u64 {
        stage.trees.saturating_mul(MOST_TIMES)
    }

    fn freedom(&self, stage: Stage) -> f64 {
        stage.trees as f64 - 1.0
    }

    fn extent(&self, stage: Stage) -> (u64, Option<u64>, u64) {
        (stage.trees, Some(stage.bag), self.n_rows)
    }
}
