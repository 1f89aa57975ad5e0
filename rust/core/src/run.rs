//! How a run is carried out: with how many threads, how much of it, and from where it goes on. None of it
//! changes what a contribution holds, except that rows which are a part of a data set make trees and find
//! neighbours among themselves.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use crate::accumulate::{Accumulator, Identity, Settings};
use crate::budget::Budget;
use crate::error::{Error, Result, check};
use crate::intake::{Counts, Intake, Unlabelled};
use crate::monitor::Monitor;
use crate::profile::Profile;
use crate::ranking::Ranking;
use crate::schema::{Problem, Roles, names};
use crate::source::ChunkSource;
use crate::{forest, relief};

/// A part of a data set, seen through roles.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The rows.
    pub source: &'a dyn ChunkSource,
    /// What its columns are.
    pub roles: &'a Roles,
    /// What becomes of rows without any target.
    pub unlabelled: Unlabelled,
    /// Number of the target that alone counts, so that rows without it take no part, and the other targets
    /// neither; `None`: all count.
    pub alone: Option<usize>,
}

impl View<'_> {
    /// # Errors
    /// Those of [`Problem::resolve`].
    pub(crate) fn problem(&self) -> Result<Problem> {
        let problem = Problem::resolve(&self.source.schema(), self.roles, self.source.name())?;
        match self.alone {
            None => Ok(problem),
            Some(target) if target < problem.targets.len() => Ok(problem.alone(target)),
            Some(target) => Err(Error::Setting(format!(
                "target: there is no target number {target}; there are {}",
                problem.targets.len()
            ))),
        }
    }
}

impl<'a> View<'a> {
    /// The rows that take part in `problem`, the one of this view.
    pub(crate) fn intake(self, problem: &'a Problem, monitor: &'a Monitor) -> Intake<'a> {
        let unlabelled = if self.alone.is_some() { Unlabelled::Ignore } else { self.unlabelled };
        Intake { source: self.source, problem, unlabelled, monitor }
    }
}

/// How a run is carried out.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Number of threads.
    pub threads: usize,
    /// Most bytes of memory that the process holds; `None`: half of what is free.
    pub memory: Option<u64>,
    /// Folder for scratch files; `None`: the system's temporary one.
    pub scratch: Option<&'a Path>,
    /// The trees or blocks of queries to contribute; `None`: all.
    pub keys: Option<Range<u64>>,
    /// The profile of the data set, where it is known. If it has more rows than the source, the source is a
    /// part of the data set; then it must be told which `keys` are its own.
    pub profile: Option<&'a Profile>,
    /// File that keeps contributions as they are made, and from which a killed run goes on.
    pub resume: Option<&'a Path>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { threads: 1, memory: None, scratch: None, keys: None, profile: None, resume: None }
    }
}

/// Contributions of the features of `source` by the ranker that `settings` name.
///
/// # Errors
/// What is wrong with a setting, a column, a value or a file; [`Error::Interrupted`] once `monitor` was
/// asked to stop.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    settings: &Settings,
    options: &Options<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    match settings {
        Settings::Forest(params) => forest::accumulate(source, roles, params, options, monitor),
        Settings::Relief(params) => relief::accumulate(source, roles, params, options, monitor),
    }
}

/// Number of contributions of a complete run over the data set of `profile`, whose columns are those of `source`.
///
/// # Errors
/// What is wrong with a role or a setting, also in view of the rows.
pub fn n_keys(source: &dyn ChunkSource, roles: &Roles, settings: &Settings, profile: &Profile) -> Result<u64> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    let rows = profile.counts.taking_part(source.name(), settings.unlabelled())?;
    match settings {
        Settings::Forest(params) => {
            params.validate(rows, problem.features.len(), problem.targets.len(), problem.task)?;
        }
        Settings::Relief(params) => {
            relief::validate(params, &problem)?;
            params.queries(profile.counts.kept)?;
        }
    }
    Ok(Identity::new(settings.clone(), &problem, profile).n_keys())
}

/// Ranks the features of `source` by the ranker that `settings` name.
///
/// # Errors
/// Those of [`accumulate`].
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    settings: &Settings,
    options: &Options<'_>,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, settings, options, monitor)?.ranking()
}

/// What is known of a source before its rows are kept.
pub(crate) struct Met<'a> {
    /// Of the data set.
    pub(crate) profile: Cow<'a, Profile>,
    /// Of the source.
    pub(crate) counts: Counts,
    /// Rows of the source that take part, at least 1.
    pub(crate) rows: u64,
}

impl Met<'_> {
    /// Whether the source is not the whole data set.
    pub(crate) fn is_part(&self) -> bool {
        self.counts != self.profile.counts
    }
}

impl Options<'_> {
    /// The profile given, or that of a pass over the source.
    pub(crate) fn meet(&self, intake: &Intake<'_>, max_bins: usize) -> Result<Met<'_>> {
        let Intake { problem, unlabelled, .. } = *intake;
        let name = intake.source.name();
        let Some(profile) = self.profile else {
            if let Some(rows) = intake.source.rows_hint() {
                // What comes after a small profile knows better how much memory would do.
                let bytes = Profile::bytes(problem, max_bins, rows);
                Budget::check_early(self.memory, bytes, "the profile of so many columns")?;
            }
            let profile = Profile::of(intake, max_bins)?;
            let counts = profile.counts;
            return Ok(Met { profile: Cow::Owned(profile), counts, rows: counts.taking_part(name, unlabelled)? });
        };
        profile.same_columns(&[names(&problem.features), names(&problem.targets)].concat(), problem.features.len())?;
        check(
            profile.max_bins() == max_bins,
            format!("max_bins: the profile was made for {}, not for {max_bins}", profile.max_bins()),
        )?;
        let counts = intake.count()?;
        let (all, own) = (profile.counts, counts);
        if own.rows > all.rows || own.unlabelled > all.unlabelled || own.weightless > all.weightless {
            return Err(Error::Data(format!(
                "{name}: {} rows, of which {} take part; the profile is of {}, of which {} do, and not of these",
                own.rows, own.kept, all.rows, all.kept
            )));
        }
        all.taking_part("the data set", unlabelled)?;
        let met = Met { rows: counts.taking_part(name, unlabelled)?, profile: Cow::Borrowed(profile), counts };
        check(
            self.keys.is_some() || !met.is_part(),
            format!("keys: {name} is a part of the data set; say which trees or blocks it contributes"),
        )?;
        Ok(met)
    }

    /// The keys asked for, of `n_keys`.
    pub(crate) fn keys(&self, n_keys: u64) -> Result<Range<u64>> {
        let keys = self.keys.clone().unwrap_or(0..n_keys);
        check(
            keys.start < keys.end && keys.end <= n_keys,
            format!("keys: {} … {} are not in 0 … {n_keys}, the trees or blocks of the run", keys.start, keys.end),
        )?;
        Ok(keys)
    }
}
