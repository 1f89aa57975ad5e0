//! The univariate ranker: scores of each feature alone, from its table of codes and targets.
//!
//! ```text
//! source ──▶ profile: codes of n_bins quantiles, and categories ──▶ tables ──▶ scores
//!            (pass 1)                                  (pass 2, streamed)
//! ```
//!
//! | score | of | formula |
//! |---|---|---|
//! | `information_gain` | classes, labels | H(y) − H(y \| x), in bits |
//! | `gain_ratio` | classes, labels | information gain / H(x) (Quinlan 1986) |
//! | `chi2` | classes, labels | Pearson's χ² of the table |
//! | `accuracy` | classes, labels | the share of rows of the majority classes of a split in two, less that without (Robnik-Šikonja and Kononenko 1999, Eq. 16) |
//! | `mse` | numbers | the share of the variance that a split in two explains (1999, Eq. 17, 18 with the mean) |
//! | `mutual_information` | all | Σ p(x, y) ln p(x, y) / (p(x) p(y)), in nats; numbers are cut at `n_bins` quantiles |
//!
//! Scores are over the rows in which the feature is known, times the share of their weight. Over several targets they
//! are averaged. A split in two is a cut between codes, or two groups of categories, each time the best one: of classes,
//! each category goes to the one of two classes that has more of its rows, for the best pair of classes; of numbers,
//! categories are split by their means (Breiman et al. 1984, Theorem 4.5).
//!
//! The same bits for any threads, batches and containers: each table adds up rows in their order.
//!
//! Memory: a table of 8 bytes for each code and class of a feature and target.

mod params;
mod ranker;
mod score;
mod tables;
#[cfg(test)]
mod tests;

pub use params::{UnivariateParams, UnivariateScore};

use ferrank_data::intake::Intake;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity, RunOptions, Vector};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::threads::pool;
use tables::Tables;

/// Scores the features of `source`. The one contribution has a vector for each score.
///
/// # Errors
/// An error that describes the invalid setting, column or value; `Interrupted` on request of `monitor`.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &UnivariateParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    params.validate_targets(&problem)?;
    pool(options.threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.unlabelled, monitor).with_memory(options.memory);
        let scan = options.scan(&intake, params.n_bins)?;
        check(!scan.is_part(), "ranker: univariate scores are of all rows; rank them together")?;
        let identity = Identity::new(params.clone(), &problem, &scan.profile);
        let requested = options.keys(identity.n_keys())?;
        let checkpoint = Checkpoint::open(identity, options.resume, options.memory, monitor)?;
        if !checkpoint.missing(requested).is_empty() {
            let tables = Tables::read(&intake, &scan.profile, params, &Budget::new(options.memory))?;
            let vectors = params.scores.iter().map(|&score| Vector::dense(tables.scores(score)));
            checkpoint.add(0, vectors.collect())?;
        }
        checkpoint.close()
    })
}
