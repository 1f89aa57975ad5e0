//! How a run is carried out: threads, memory, temporary files, which contributions, and which file it resumes.
//!
//! None of this changes a contribution, except that rows which are a part of a data set grow trees and find
//! neighbours among themselves.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use ferrank_data::intake::{Counts, Intake};
use ferrank_data::profile::Profile;
use ferrank_data::schema::names;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::with_methods;
use tracing::info;

/// How a run is carried out.
///
/// ```
/// use ferrank_ranking::RunOptions;
///
/// let options = RunOptions::default().with_threads(4).with_memory(Some(1 << 30));
/// assert_eq!(options.keys(100)?, 0..100);
/// assert_eq!(options.with_keys(Some(0..50)).keys(100)?, 0..50);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions<'a> {
    /// Number of threads.
    pub threads: usize,
    /// Most bytes of memory that the process holds; `None`: half of what is free.
    pub memory: Option<u64>,
    /// Folder for scratch files; `None`: the system's temporary one.
    pub temp_dir: Option<&'a Path>,
    /// The trees or blocks of queries to contribute; `None`: all.
    pub keys: Option<Range<u64>>,
    /// The profile of the data set, where it is known. If it has more rows than the source, the source is a
    /// part of the data set; then `keys` must be given.
    pub profile: Option<&'a Profile>,
    /// True if `profile` was made of the source as it is, whose rows are then not counted again.
    pub is_profiled: bool,
    /// File that keeps contributions as they are made, and from which a killed run goes on.
    pub resume: Option<&'a Path>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            threads: 1,
            memory: None,
            temp_dir: None,
            keys: None,
            profile: None,
            is_profiled: false,
            resume: None,
        }
    }
}

/// What the first pass over a source found.
pub struct ScanSummary<'a> {
    /// Of the data set.
    pub profile: Cow<'a, Profile>,
    /// Of the source.
    pub counts: Counts,
    /// Rows of the source that take part, at least 1.
    pub rows: u64,
}

impl ScanSummary<'_> {
    /// Returns true if the source is only a part of the data set.
    pub fn is_part(&self) -> bool {
        self.counts != self.profile.counts
    }

    /// Returns true if the profile was made of the intake that was scanned, and not brought along.
    pub fn is_of_intake(&self) -> bool {
        matches!(self.profile, Cow::Owned(_))
    }
}

impl<'a> RunOptions<'a> {
    with_methods! {
        with_threads => threads: usize;
        with_memory => memory: Option<u64>;
        with_temp_dir => temp_dir: Option<&'a Path>;
        with_keys => keys: Option<Range<u64>>;
        with_profile => profile: Option<&'a Profile>;
        with_is_profiled => is_profiled: bool;
        with_resume => resume: Option<&'a Path>;
    }
}

impl RunOptions<'_> {
    /// The profile given, or that of a pass over the source.
    pub fn scan(&self, intake: &Intake<'_>, max_bins: usize) -> Result<ScanSummary<'_>> {
        let Intake { problem, unlabelled, .. } = *intake;
        let name = intake.source.name();
        let Some(profile) = self.profile else {
            if let Some(rows) = intake.source.rows_hint() {
                // What comes after a small profile knows better how much memory would do.
                let bytes = Profile::bytes(intake, max_bins, rows)?;
                Budget::check_early(self.memory, bytes, "the profile of so many columns")?;
            }
            let profile = Profile::new(intake, max_bins)?;
            let counts = profile.counts;
            log_ignored(name, counts);
            return Ok(ScanSummary {
                profile: Cow::Owned(profile),
                counts,
                rows: counts.taking_part(name, unlabelled)?,
            });
        };
        profile.same_columns(&[names(&problem.features), names(&problem.targets)].concat(), problem.features.len())?;
        profile.same_groups(problem.groups.as_ref().map(|groups| groups.name.as_str()))?;
        check(
            profile.max_bins() == max_bins,
            format!("max_bins: the profile was made for {}, not for {max_bins}", profile.max_bins()),
        )?;
        let counts = if self.is_profiled { profile.counts } else { intake.count()? };
        log_ignored(name, counts);
        let (all, own) = (profile.counts, counts);
        if own.rows > all.rows || own.unlabelled > all.unlabelled || own.weightless > all.weightless {
            return Err(Error::Data(format!(
                "{name}: {} rows, of which {} take part; the profile is of {}, of which {} do, and not of these",
                own.rows, own.kept, all.rows, all.kept
            )));
        }
        all.taking_part("the data set", unlabelled)?;
        let summary =
            ScanSummary { rows: counts.taking_part(name, unlabelled)?, profile: Cow::Borrowed(profile), counts };
        check(
            self.keys.is_some() || !summary.is_part(),
            format!("keys: {name} is a part of the data set; say which trees or blocks it contributes"),
        )?;
        Ok(summary)
    }

    /// The keys requested, of `n_keys`.
    pub fn keys(&self, n_keys: u64) -> Result<Range<u64>> {
        let keys = self.keys.clone().unwrap_or(0..n_keys);
        check(
            keys.start < keys.end && keys.end <= n_keys,
            format!("keys: {} … {} are not in 0 … {n_keys}, the trees or blocks of the run", keys.start, keys.end),
        )?;
        Ok(keys)
    }
}

/// Logs how many rows of the source called `name` take no part, if there are some.
fn log_ignored(name: &str, Counts { rows, weightless, kept, .. }: Counts) {
    let ignored = rows - kept;
    if ignored > 0 {
        let untargeted = ignored - weightless;
        info!("{name}: {ignored} of {rows} rows are ignored, {untargeted} without a target, {weightless} of weight 0");
    }
}
