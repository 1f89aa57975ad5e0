//! How a run is carried out: threads, memory, temporary files, which contributions, and which file it resumes.
//!
//! None of this changes a contribution, except that rows which are a part of a data set grow trees and find
//! neighbours among themselves.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use ferrank_data::intake::{Counts, Intake};
use ferrank_data::profile::{CodePlan, Profile};
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
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: fn(i32) -> i32| Arc::new((0..40).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i / 20)), ("z", column(|i| i % 4)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # use ferrank_data::intake::{Intake, Unlabelled};
/// # use ferrank_data::profile::Profile;
/// # use ferrank_data::schema::{Problem, Roles, Targets};
/// # use ferrank_data::source::TableSource;
/// # use ferrank_runtime::monitor::Monitor;
/// # let monitor = Monitor::default();
/// # let problem = Problem::resolve(&batch.schema(), &Roles::new(Targets::Last(1)), "table")?;
/// # let all_rows = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
/// # let some_rows = TableSource::new("part", batch.schema(), vec![batch.slice(0, 15)])?;
/// # let all = Intake::new(&all_rows, &problem, Unlabelled::Error, &monitor);
/// # let part = Intake::new(&some_rows, &problem, Unlabelled::Error, &monitor);
/// use ferrank_ranking::{RunOptions, ScanSummary};
///
/// // 15 of the 40 rows of a data set, with the profile of all.
/// let profile = Profile::new(&all, 255)?;
/// let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(0..10));
/// let scan: ScanSummary<'_> = options.scan(&part, 255)?;
/// assert_eq!((scan.rows, scan.profile.counts.rows), (15, 40));
/// assert!(scan.is_part() && !scan.is_of_intake());
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
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
    pub fn scan(&self, intake: &Intake<'_>, plan: impl Into<CodePlan>) -> Result<ScanSummary<'_>> {
        let plan = plan.into();
        let max_bins = plan.max_bins;
        let Intake { problem, unlabelled, .. } = *intake;
        let name = intake.source.name();
        let Some(profile) = self.profile else {
            if let Some(rows) = intake.source.rows_hint() {
                // What comes after a small profile knows better how much memory would do.
                let bytes = Profile::bytes(intake, max_bins, rows)?;
                Budget::check_early(self.memory, bytes, "the profile of so many columns")?;
            }
            let profile = Profile::new(intake, plan)?;
            let counts = profile.counts;
            log_ignored(name, counts);
            return Ok(ScanSummary {
                profile: Cow::Owned(profile),
                counts,
                rows: counts.taking_part(name, unlabelled)?,
            });
        };
        profile.same_columns(&problem.names(), problem.features.len())?;
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

fn log_ignored(name: &str, counts: Counts) {
    if let Some(ignored) = ignored(counts) {
        info!("{name}: {ignored}");
    }
}

/// How many rows take no part, in words, if there are some.
fn ignored(Counts { rows, weightless, kept, .. }: Counts) -> Option<String> {
    let ignored = rows - kept;
    let untargeted = ignored - weightless;
    let text =
        || format!("{ignored} of {rows} rows are ignored, {untargeted} without a target, {weightless} of weight 0");
    (ignored > 0).then(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch};
    use ferrank_data::intake::Unlabelled;
    use ferrank_data::schema::{Problem, Roles, Targets};
    use ferrank_data::source::{ChunkSource, TableSource};
    use ferrank_runtime::monitor::Monitor;

    use super::*;

    /// Rows of a feature, a target that may be missing, and a weight.
    type Row = (f64, Option<f64>, f64);

    /// What a run of `options` finds in `rows`, and asks of the source.
    fn scan<T>(rows: &[Row], options: &RunOptions<'_>, then: impl FnOnce(ScanSummary<'_>) -> T) -> Result<T> {
        let column = |of: fn(&Row) -> Option<f64>| Arc::new(rows.iter().map(of).collect::<Float64Array>()) as ArrayRef;
        let columns = [("x", column(|row| Some(row.0))), ("y", column(|row| row.1)), ("w", column(|row| Some(row.2)))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let source = TableSource::new("table", batch.schema(), vec![batch]).unwrap();
        let roles = Roles::new(Targets::Named(vec!["y".into()])).with_weight(Some("w".into()));
        let problem = Problem::resolve(&source.schema(), &roles, "table")?;
        let monitor = Monitor::default();
        let unlabelled = Unlabelled::Ignore;
        let intake = Intake::new(&source, &problem, unlabelled, &monitor);
        options.scan(&intake, 255).map(then)
    }

    /// Of 6 rows one has no target, and two have the weight 0.
    const ROWS: [Row; 6] = [
        (1.0, Some(1.0), 1.0),
        (2.0, None, 1.0),
        (3.0, Some(2.0), 0.0),
        (4.0, Some(5.0), 2.0),
        (5.0, Some(4.0), 0.0),
        (6.0, Some(3.0), 1.0),
    ];

    fn profile(rows: &[Row]) -> Profile {
        scan(rows, &RunOptions::default(), |scan| scan.profile.into_owned()).unwrap()
    }

    #[test]
    fn a_source_is_a_part_of_a_profile_of_more_rows() {
        let profile = profile(&ROWS);
        let given = RunOptions::default().with_profile(Some(&profile));
        let found = |scan: ScanSummary<'_>| (scan.rows, scan.is_part(), scan.is_of_intake());
        assert_eq!(scan(&ROWS, &RunOptions::default(), found).unwrap(), (3, false, true));
        assert_eq!(scan(&ROWS, &given, found).unwrap(), (3, false, false));
        let error = scan(&ROWS[..4], &given, found).unwrap_err().to_string();
        assert!(error.contains("keys: table is a part of the data set"), "{error}");
        assert_eq!(scan(&ROWS[..4], &given.clone().with_keys(Some(0..1)), found).unwrap(), (2, true, false));
        let error = scan(&ROWS[1..3], &given.with_keys(Some(0..1)), found).unwrap_err().to_string();
        assert!(error.contains("none of 2 rows has a target value and a weight above 0"), "{error}");
    }

    #[test]
    fn a_profile_of_other_rows_is_refused() {
        let refused = |rows: &[Row], all: &[Row]| {
            let profile = profile(all);
            let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(0..1));
            let error = scan(rows, &options, |_| ()).unwrap_err().to_string();
            assert!(error.contains("and not of these"), "{error}");
        };
        // More rows, more without a target, more of weight 0.
        refused(&[ROWS[0], ROWS[3]], &[ROWS[0]]);
        refused(&[ROWS[0], ROWS[1]], &[ROWS[0], ROWS[3]]);
        refused(&[ROWS[0], ROWS[2]], &[ROWS[0], ROWS[3]]);
    }

    #[test]
    fn rows_that_are_ignored_are_counted_by_reason() {
        let counts = profile(&ROWS).counts;
        let expected = "3 of 6 rows are ignored, 1 without a target, 2 of weight 0";
        assert_eq!(ignored(counts).as_deref(), Some(expected));
        let one = ignored(profile(&[ROWS[0], ROWS[4]]).counts);
        assert_eq!(one.as_deref(), Some("1 of 2 rows are ignored, 0 without a target, 1 of weight 0"));
        assert_eq!(ignored(profile(&[ROWS[0], ROWS[3]]).counts), None);
    }

    #[test]
    fn keys_are_those_of_the_run() {
        let keys = |range: Range<u64>| RunOptions::default().with_keys(Some(range)).keys(10).ok();
        assert_eq!((keys(0..10), keys(9..10)), (Some(0..10), Some(9..10)));
        assert_eq!((keys(3..3), keys(3..11)), (None, None));
    }
}
