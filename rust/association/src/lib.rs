//! The association ranker: how much each feature says about the targets by itself, and whether that may be chance.
//!
//! ```text
//! ranks, classes or labels of the targets      answers
//! sums of them by the codes of a feature       tables
//! association, and its moments by chance       association
//! columns of linear models, their products     design    (only with `partial`)
//! what features add to such a model            partial
//! p-values                                     ferrank_ranking::relevance
//! ```
//!
//! | term | here |
//! |---|---|
//! | association of two numbers, of a number and categories, of categories | `association`: Spearman's ρ², the statistics of Kruskal and Wallis and of Pearson |
//! | p-value | the upper tail of the law with the mean and variance of the statistic over all permutations |
//!
//! Decisions where there is a choice:
//!
//! - Numeric features are ranked by their codes: values in one of the (255) bins share a rank. Targets are ranked exactly.
//! - A feature with missing values is tested twice, by its known values, and by whether they are known. All tests of a
//!   feature, of all targets and labels, are joined by Cauchy's combination (Liu and Xie 2020).
//! - With `partial`, the p-value of a feature is the better of two, by Bonferroni's correction: that of the feature by itself, and
//!   that of what it adds to a linear model of the targets in the features found so far. These are found in rounds, at a false
//!   discovery rate of 1 %: what is given to a model is almost never noise, which would explain targets too well. There is no
//!   model of targets that are missing in some rows or have heavy tails, such as rare classes, and no test of features with heavy
//!   tails, such as rare flags.
//! - Importance is the association as a share of the greatest that is possible, less what is to be expected by chance: the
//!   greatest over the tests of a feature and a target, of labels that with the label it says most about; averaged over
//!   targets by their weights.
//!
//! Memory: the codes of all features, one or two bytes each, and eight bytes a row for each numeric target; codes that do
//! not fit are kept in temporary files. With `partial`, at most 64 MiB of sums.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{Float64Array, RecordBatch};
//! use ferrank_data::schema::{Roles, Targets};
//! use ferrank_data::source::TableSource;
//! use ferrank_ranking::RunOptions;
//! use ferrank_runtime::monitor::Monitor;
//! use ferrank_association::{AssociationParams, accumulate};
//!
//! let column = |f: fn(u32) -> u32| Arc::new((0..60).map(|i| f64::from(f(i))).collect::<Float64Array>());
//! let batch = RecordBatch::try_from_iter([
//!     ("signal", column(|i| i) as _),
//!     ("noise", column(|i| i * 37 % 60) as _),
//!     ("y", column(|i| i * i) as _),
//! ])?;
//! let source = TableSource::new("example", batch.schema(), vec![batch])?;
//! let roles = Roles::new(Targets::Named(vec!["y".into()]));
//! let found =
//!     accumulate(&source, &roles, &AssociationParams::default(), &RunOptions::default(), &Monitor::default())?.ranking()?;
//! assert_eq!(found.scores[0].importance[0], 1.0);
//! let p_values = found.relevance.expect("there are p-values").p_values();
//! assert!(p_values[0] < 1e-9 && p_values[1] > 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod association;
mod design;
mod params;
mod partial;
mod parts;
mod ranker;
mod tables;
mod tested;
#[cfg(test)]
mod tests;

pub use params::AssociationParams;
pub use parts::{Apart, LinearModel};
pub use ranker::SCORE;

use association::{Association, associations};
use design::{Design, has_light_tails};
use ferrank_data::intake::{Intake, numbered};
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
use ferrank_ranking::relevance::{PermutationTest, Relevance, from_tests};
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity, RunOptions, ScanSummary};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;
use rayon::prelude::*;
use tables::Table;
use tested::Tested;
use tracing::info;

/// Tests the features of `source`; the result is a single contribution.
///
/// The same arguments give the same bits for any number of threads, any chunking of the rows and any container.
///
/// # Errors
/// An invalid setting, column, value or option;
/// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted) when `monitor` requests a stop.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &AssociationParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    pool(options.threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.unlabelled, monitor).with_memory(options.memory);
        let scan = options.scan(&intake, params.max_bins)?;
        numbered(scan.rows, source.name(), "tests of association")?;
        check(
            !scan.is_part(),
            "ranker: tests of association are not for parts of the rows; rank all rows together, or take another ranker",
        )?;
        let identity = Identity::new(params.clone(), &problem, &scan.profile);
        let requested = options.keys(identity.n_keys())?;
        let checkpoint = Checkpoint::open(identity, options.resume, options.memory, monitor)?;
        if !checkpoint.missing(requested).is_empty() {
            let store = coded(&intake, &scan, options)?;
            drop(scan);
            let tested = Tested::new(&store);
            let single = single(&store, &tested, params, monitor, |feature| tested.tables(&store, feature, 0))?;
            let mut relevance = single.relevance.clone();
            let mut given = Vec::new();
            for _ in 0..params.rounds() {
                let Some(design) = Design::next(&store, &tested, &relevance, &given) else { break };
                let sums = design.sums(&store, &tested, 0, monitor)?;
                relevance = single.with_partial(&design, &sums);
                given = design.given;
            }
            checkpoint.add(0, ranker::contribution(single.strengths, relevance))?;
        }
        checkpoint.close()
    })
}

/// The codes of the rows of `intake`, in memory if they fit, else in temporary files.
fn coded(intake: &Intake<'_>, scan: &ScanSummary<'_>, options: &RunOptions<'_>) -> Result<CodeStore> {
    let book = Codebook::new(&scan.profile, intake.problem, false, intake.source.name())?;
    let compressed = book.clone().compressed();
    let row_bytes = compressed.row_bytes() + compressed.label_bytes();
    let bytes = compressed.entry_bytes() + scan.rows as usize * row_bytes;
    let (scratch, fits) = (Scratch::new(options.temp_dir), bytes <= Budget::new(options.memory).left());
    let (book, keep) = if fits { (compressed, Keep::Memory) } else { (book, Keep::Scratch(&scratch)) };
    info!("memory plan: {bytes} bytes of codes {}", if fits { "in memory" } else { "in temporary files" });
    let part = Part::new(intake, &book, scan.counts, keep)?;
    CodeStore::from_parts(book, vec![part], keep)
}

/// What tests say about each feature by itself.
struct Single {
    /// n_features; the importances.
    strengths: Vec<f64>,
    relevance: Relevance,
    /// n_features; whether the columns of each in linear models have light tails.
    are_light: Vec<bool>,
}

impl Single {
    /// The p-values, joined with those of the second tests in the model `design`, whose sums are `sums`.
    ///
    /// Features whose columns have heavy tails, such as rare flags, are not tested again: what the given features leave of a target
    /// may have heavy tails, too, and sums of few of its values do not hold the F law.
    fn with_partial(&self, design: &Design, sums: &[i64]) -> Relevance {
        let mut tests = partial::tests(design, sums, self.are_light.len());
        tests.iter_mut().zip(&self.are_light).filter(|(_, is_light)| !**is_light).for_each(|(tests, _)| tests.clear());
        self.relevance.clone().or_partial(&tests)
    }
}

/// The tests of each feature by itself; `tables` are those of a feature.
fn single(
    store: &CodeStore,
    tested: &Tested,
    params: &AssociationParams,
    monitor: &Monitor,
    tables: impl Fn(usize) -> Vec<Table> + Sync,
) -> Result<Single> {
    monitor.enter(Phase::Testing, store.codings.len() as u64);
    let test = |feature: usize| {
        monitor.check()?;
        let mut found: Vec<Vec<Association>> = vec![Vec::new(); tested.targets.len()];
        let tables = tables(feature);
        for (table, answer) in tables.iter().zip(&tested.answers) {
            found[answer.target].extend(associations(&store.codings[feature].scale, table, answer));
        }
        monitor.advance(1);
        let tests: Vec<PermutationTest> = found.iter().flatten().map(|association| association.test).collect();
        // Models are of targets that all rows have.
        let is_light = tables.iter().all(|table| has_light_tails(&store.codings[feature], table));
        Ok(((strength(&found, params), is_light), tests))
    };
    let found = (0..store.codings.len()).into_par_iter().map(test).collect::<Result<Vec<_>>>()?;
    let (of_features, tests): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let (strengths, are_light) = of_features.into_iter().unzip();
    Ok(Single { strengths, relevance: from_tests(&tests), are_light })
}

/// The importance of a feature that has these associations with each target.
fn strength(found: &[Vec<Association>], params: &AssociationParams) -> f64 {
    let weight = |target: usize| params.target_weights.as_ref().map_or(1.0, |weights| weights[target]);
    let total: f64 = (0..found.len()).map(weight).sum();
    let of_target = |(target, found): (usize, &Vec<Association>)| {
        weight(target) * found.iter().map(Association::strength).reduce(f64::max).unwrap_or(0.0)
    };
    found.iter().enumerate().map(of_target).sum::<f64>() / total
}
