//! The profile: everything one pass over the data must know before values become codes.
//!
//! Profiles merge: ranges are a minimum and maximum, counts add up, the rows sampled for quantiles are
//! those whose number hashes lowest, and where the sample does not hold all rows, the distinct values sampled
//! beside it are those whose bits hash lowest. None of these depends on the
//! order in which rows were seen, so a profile of parts, merged in any grouping, has the bits of a
//! profile of the whole. A part must know the number of its first row for that, counted over those
//! that take part; [`count`] says how many those of a part are.
//!
//! Quantiles come from the sampled rows. Where these have fewer values than there are codes, the sampled distinct
//! values have a code as well, as have the minimum, the maximum and 0 in any case: a value that few rows have is found.

mod coding;
mod derived;
mod derived_column;
mod distinct;
mod hashes;
mod ipc;
mod lookup;
mod matrix;
mod merge;
mod range;
mod ranked;
mod sample;
mod sampled;
mod shares;
mod sparse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use rayon::prelude::*;

use coding::Scratch;
pub(crate) use coding::is_sparse;
pub use coding::{Categories, CodePlan, Coding, Cuts, MISSING_U8, MISSING_U16, Scale};
use derived_column::Derived;
pub(crate) use derived_column::RowCodes;
use distinct::{Distinct, count_distinct};
use range::Range;
use ranked::{Numbers, Ranker};
use sample::RowSample;
use sampled::SampledValues;
pub use shares::between;

use crate::column::{FewCategories, MISSING, NO_ENTRY, categories, few_categories, for_pieces, not_finite};
use crate::groups::GroupProfile;
use crate::hierarchy::{Hierarchy, MAX_LABELS};
use crate::intake::View;
use crate::intake::{Counts, Intake};
use crate::labels::LabelSets;
use crate::reservation::Reservation;
use crate::schema::{Attribute, Kind, LabelPlan, Problem};
use crate::sparse::SparseIntake;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;

/// Most categories that a nominal feature or target may have.
pub const MAX_CATEGORIES: usize = 65_535;

/// Sampled values are kept below this many bytes while features are few enough.
const SAMPLE_BYTES: usize = 72 << 20;

/// Rows sampled of any number of features: tables that have fewer are held whole.
const LEAST_SAMPLE: usize = 4_096;

/// Counts the rows of a part of a data set.
///
/// # Errors
/// What is wrong with a role, a target or a weight.
pub fn count(part: View<'_>, monitor: &Monitor) -> Result<Counts> {
    part.intake(&part.problem()?, monitor).count()
}

/// Where the rows of a part that take part stand among those of the data set.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let of = |batch: RecordBatch, first_row| {
///     let place = Place { first_row, of_rows: Some(60) };
///     profile(View::new(&table(batch)?, &roles, Unlabelled::Error), 255, place, 1, &monitor)
/// };
/// let mut whole = of(batch.slice(0, 20), 0)?;
/// whole.merge(&of(batch.slice(20, 40), 20)?)?;
/// assert_eq!(whole.counts.rows, 60);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Number of the first.
    pub first_row: u64,
    /// How many there are in all parts, where that is known. No row is sampled then that is not of the sample of
    /// all, so that parts have small profiles.
    pub of_rows: Option<u64>,
}

/// Profiles a part of a data set in one pass on a pool of `threads` threads.
///
/// `max_bins` is that of the forest, or 0 where no codes are wanted.
///
/// # Errors
/// What is wrong with a role, a column or a value.
pub fn profile(part: View<'_>, max_bins: usize, place: Place, threads: usize, monitor: &Monitor) -> Result<Profile> {
    let problem = part.problem()?;
    let intake = part.intake(&problem, monitor);
    pool(threads)?.install(|| Profile::new_part(&intake, max_bins, place))
}

/// Everything one pass must know.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{Place, Profile, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let of = |batch: RecordBatch, first_row| {
///     let place = Place { first_row, of_rows: Some(60) };
///     profile(View::new(&table(batch)?, &roles, Unlabelled::Error), 255, place, 1, &monitor)
/// };
/// let profile: Profile = of(batch, 0)?;
/// assert_eq!(profile.names, ["x", "z", "y"]);
/// assert_eq!(profile.codings()[0].n_codes(), 60);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Profile {
    /// Names of the features, then of the targets.
    pub names: Vec<String>,
    /// Numbers of rows that were read and left out.
    pub counts: Counts,
    /// One for each feature.
    pub features: Vec<ColumnProfile>,
    /// One for each target.
    pub targets: Vec<ColumnProfile>,
    /// The groups, if rows have some.
    pub groups: Option<GroupProfile>,
    sample: RowSample,
    max_bins: usize,
    /// The hash of the samples and all else, where cut points stand in the place of the samples.
    derived: Option<u128>,
}

/// One column.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{ColumnProfile, Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let of = |batch: RecordBatch, first_row| {
///     let place = Place { first_row, of_rows: Some(60) };
///     profile(View::new(&table(batch)?, &roles, Unlabelled::Error), 255, place, 1, &monitor)
/// };
/// let profile = of(batch, 0)?;
/// assert!(matches!(profile.features[0], ColumnProfile::Numeric(_)));
/// assert_eq!(profile.features[0].missing(), 0);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum ColumnProfile {
    /// Numbers.
    Numeric(NumericProfile),
    /// Categories with the number of rows of each.
    Nominal(NominalProfile),
    /// Sets of labels.
    Labels(LabelProfile),
}

/// A column of numbers.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{ColumnProfile, Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let of = |batch: RecordBatch, first_row| {
///     let place = Place { first_row, of_rows: Some(60) };
///     profile(View::new(&table(batch)?, &roles, Unlabelled::Error), 255, place, 1, &monitor)
/// };
/// let profile = of(batch, 0)?;
/// let ColumnProfile::Numeric(x) = &profile.features[0] else { panic!("x is a number") };
/// assert_eq!((x.missing, x.zeros, x.min, x.max), (0, 1, 0.0, 59.0));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NumericProfile {
    /// Rows whose value is missing.
    pub missing: u64,
    /// Rows whose value is 0.
    pub zeros: u64,
    /// Smallest value; infinite where all are missing.
    pub min: f64,
    /// Largest value; negative infinite where all are missing.
    pub max: f64,
    max_bins: usize,
    /// A sample of the distinct values; `None` while the sampled rows are all rows.
    distinct: Option<Distinct>,
    sample: SampledValues,
    /// What stands in the place of both samples, which are empty then.
    derived: Option<Derived>,
}

/// A column of categories.
///
/// ```
/// use ferrank_data::profile::NominalProfile;
///
/// let colours = NominalProfile { missing: 2, counts: [("blue".to_string(), 5), ("red".to_string(), 3)].into() };
/// assert_eq!(colours.counts.values().sum::<u64>(), 8);
/// ```
#[derive(Debug, Clone, Default)]
pub struct NominalProfile {
    /// Rows whose value is missing.
    pub missing: u64,
    /// Rows of each category.
    pub counts: BTreeMap<String, u64>,
}

/// A column of label sets.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::builder::{ListBuilder, StringBuilder};
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{ColumnProfile, Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// # let mut sets = ListBuilder::new(StringBuilder::new());
/// # sets.append_value([Some("animal/koala")]);
/// # let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
/// # let batch = RecordBatch::try_from_iter([("x", x), ("y", Arc::new(sets.finish()) as _)]).unwrap();
/// // The only row has the label `animal/koala`.
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let view = View::new(&table, &roles, Unlabelled::Error);
/// let profile = profile(view, 0, Place::default(), 1, &Monitor::default())?;
/// let ColumnProfile::Labels(y) = &profile.targets[0] else { panic!("y is a column of label sets") };
/// assert_eq!(y.hierarchy()?.names(), ["animal", "animal/koala"]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelProfile {
    /// Rows whose value is missing.
    pub missing: u64,
    /// Labels of all rows together, as they are written.
    listed: u64,
    plan: LabelPlan,
    /// The labels that rows have, as they are written; empty where the hierarchy is known.
    found: BTreeSet<String>,
}

impl Profile {
    /// Profiles what `intake` gives, in one pass, columns in parallel on the current pool.
    ///
    /// `plan` says what is wanted of codes. With `max_bins` of 0 it learns ranges, categories and counts, and nothing for
    /// codes.
    pub fn new(intake: &Intake<'_>, plan: impl Into<CodePlan>) -> Result<Self> {
        let plan = plan.into();
        let max_bins = plan.max_bins;
        if let Some(profile) = Profile::with_matrix(intake, plan)? {
            return Ok(profile);
        }
        let mut profile = Profile::new_part(intake, max_bins, Place::default())?;
        if max_bins > 0 && profile.sample.holds_all() && Ranker::supports(profile.sample.hashes.len()) {
            profile.derive_ranks();
        }
        Ok(profile)
    }

    /// The codes of each feature that were derived from ranks.
    pub(crate) fn row_codes(&self) -> Vec<Option<RowCodes>> {
        let codes = |column: &ColumnProfile| match column {
            ColumnProfile::Numeric(numeric) => numeric.derived.as_ref()?.codes.clone(),
            _ => None,
        };
        self.features.iter().map(codes).collect()
    }

    /// The same for a part of the data set.
    fn new_part(intake: &Intake<'_>, max_bins: usize, place: Place) -> Result<Self> {
        let reservation = Reservation::new(intake.memory);
        match SparseIntake::new(intake)? {
            Some(sparse) => Profile::with_sparse(&sparse, max_bins, place, &reservation),
            None => Profile::by_batch(intake, max_bins, place, intake.problem.features.len(), &reservation),
        }
    }

    /// The profile of the columns in the batches of `intake`, with the rows sampled of a table with `n_features` features.
    fn by_batch(
        intake: &Intake<'_>,
        max_bins: usize,
        place: Place,
        n_features: usize,
        reservation: &Reservation,
    ) -> Result<Self> {
        let mut profile = Profile::empty(intake.problem, max_bins);
        profile.sample = RowSample::new(sampled_rows(n_features, max_bins));
        let Place { mut first_row, of_rows } = place;
        of_rows.into_iter().for_each(|rows| profile.sample.expect(rows));
        // The values of a column that grows would be moved again and again.
        let most = profile.sample.most_held();
        let rows = intake.source.rows_hint().map_or(0, |rows| (rows as usize).min(most));
        profile.features.iter_mut().for_each(|column| column.reserve(rows));
        let is_sampled = profile.features.iter().any(|column| matches!(column, ColumnProfile::Numeric(_)));
        let least = match is_sampled {
            true => (LEAST_CELLS / profile.names.len().max(1)).max(LEAST_ROWS),
            // Of categories nothing is held that a smaller slice would bound.
            false => usize::MAX,
        };
        let mut most = profile.sample.room().max(least);
        let counts = intake.pass(Phase::Profiling, |batch| {
            let mut add = |part: &RecordBatch| {
                first_row += part.num_rows() as u64;
                profile.add(intake, part, first_row - part.num_rows() as u64, reservation)?;
                Ok(profile.sample.room().max(least))
            };
            // A slice costs an allocation for each column.
            if batch.num_rows() <= most {
                most = add(batch)?;
                return Ok(());
            }
            let mut done = 0;
            while done < batch.num_rows() {
                let rows = (batch.num_rows() - done).min(most);
                most = add(&batch.slice(done, rows))?;
                done += rows;
            }
            Ok(())
        })?;
        profile.counts = counts;
        profile.prune(0);
        Ok(profile)
    }

    /// The profile of no rows, without a sample.
    fn empty(problem: &Problem, max_bins: usize) -> Self {
        let Problem { features, targets, labels, .. } = problem;
        let new = |attribute: &Attribute| match (attribute.kind, labels) {
            (Kind::Numeric, _) => ColumnProfile::Numeric(NumericProfile::new(max_bins)),
            (Kind::Labels, Some(plan)) => ColumnProfile::Labels(LabelProfile::new(plan.clone())),
            _ => ColumnProfile::Nominal(NominalProfile::default()),
        };
        Profile {
            names: problem.names(),
            counts: Counts::default(),
            features: features.iter().map(new).collect(),
            targets: targets.iter().map(new).collect(),
            groups: problem.groups.as_ref().map(|groups| GroupProfile::new(&groups.name)),
            sample: RowSample::new(0),
            max_bins,
            derived: None,
        }
    }

    /// Bytes that a profile of up to `n_rows` rows of `intake` takes, and the codes that are made of it.
    ///
    /// # Errors
    /// Those of reading sparse columns.
    pub fn bytes(intake: &Intake<'_>, max_bins: usize, n_rows: u64) -> Result<usize> {
        let n_rows = usize::try_from(n_rows).unwrap_or(usize::MAX);
        let Problem { features, targets, .. } = intake.problem;
        let sample = RowSample::new(sampled_rows(features.len(), max_bins));
        let n_numeric = |columns: &[Attribute]| columns.iter().filter(|column| column.kind == Kind::Numeric).count();
        // A number as it is sampled, as one of few, and as a cut point with its value.
        let (sampled, codes) = (n_rows.min(sample.most_held()), 16 + 16);
        let column = 8 * sampled + codes * n_rows.min(max_bins);
        let Some(sparse) = SparseIntake::new(intake)? else {
            return Ok((n_numeric(features) + n_numeric(targets)) * column);
        };
        let (rest, n_features, n_entries) = (sparse.rest().problem, sparse.n_features(), sparse.n_entries());
        let share = sampled as f64 / n_rows.max(1) as f64;
        // Entries as they are read by feature, and as they are sampled.
        let entries = n_entries * 12 + (share * n_entries as f64) as usize * 16;
        let values = 1 + max_bins.min(n_entries.div_ceil(n_features.max(1)));
        let entries = entries + n_features * (size_of::<NumericProfile>() + codes * values);
        Ok((n_numeric(&rest.features) + n_numeric(&rest.targets)) * column + entries)
    }

    fn add(
        &mut self,
        intake: &Intake<'_>,
        batch: &RecordBatch,
        first_row: u64,
        reservation: &Reservation,
    ) -> Result<()> {
        let problem = intake.problem;
        let holds_all = self.sample.holds_all();
        let sampled = self.sample.draw(first_row, batch.num_rows());
        let add = |(column, attribute): (&mut ColumnProfile, &Attribute), sampled: &[u32]| {
            column
                .add(batch.column(attribute.column), sampled, holds_all, reservation)
                .map_err(|error| intake.in_column(attribute.column, error))
        };
        self.features.par_iter_mut().zip(&problem.features).try_for_each(|pair| add(pair, &sampled))?;
        self.targets.iter_mut().zip(&problem.targets).try_for_each(|pair| add(pair, &sampled))?;
        if let Some((profile, groups)) = self.groups.as_mut().zip(problem.groups.as_ref()) {
            profile.add(&intake.groups(batch, groups)?, first_row);
        }
        self.prune(self.sample.slack());
        Ok(())
    }

    /// Brings the sample back to its size once it has outgrown it by more than `slack` rows.
    fn prune(&mut self, slack: usize) {
        if let Some(keep) = self.sample.prune(slack) {
            self.take_sampled(&keep);
        }
        if slack == 0 {
            self.features.par_iter_mut().chain(&mut self.targets).for_each(ColumnProfile::prune);
        }
    }

    /// Leaves of the sampled values those at the positions `keep`, which ascend.
    fn take_sampled(&mut self, keep: &[u32]) {
        self.features.par_iter_mut().chain(&mut self.targets).for_each(|column| {
            if let ColumnProfile::Numeric(numeric) = column {
                if keep.len() < numeric.sample.len() {
                    numeric.sample_distinct().prune(0);
                }
                numeric.sample.keep(keep);
            }
        });
    }

    /// Greatest number of codes of a numeric feature that it was made for; 0: for none.
    pub fn max_bins(&self) -> usize {
        self.max_bins
    }

    /// How each feature's values become codes.
    pub fn codings(&self) -> Vec<Coding> {
        (self.features.par_iter())
            .map_init(Scratch::default, |scratch, column| column.coding(self.max_bins, scratch))
            .collect()
    }

    /// How each target's values become codes; `None` for label sets.
    pub fn target_codings(&self) -> Vec<Option<Coding>> {
        let coding = |column: &ColumnProfile| match column {
            ColumnProfile::Labels(_) => None,
            _ => Some(column.coding(self.max_bins, &mut Scratch::default())),
        };
        self.targets.iter().map(coding).collect()
    }
}

/// The factor by which the sample is smaller if no codes are made: it then serves only to compare distributions.
const FEWER: usize = 64;

/// Values of a slice that is worth handing to all columns.
const LEAST_CELLS: usize = 1 << 18;
/// Rows of such a slice, which is made column by column. With a twentieth of them, the profile of 500 rows of 20,000
/// dictionaries took five times as long.
const LEAST_ROWS: usize = 256;

/// Rows sampled for quantiles where memory allows: the share of a bin of 255 then errs by 6 %.
const CHUNK_SAMPLE: usize = 65_536;

/// Rows sampled of a table with so many features.
fn sampled_rows(n_features: usize, max_bins: usize) -> usize {
    let most = SAMPLE_BYTES / (8 * n_features.max(1));
    match max_bins {
        0 => most / FEWER,
        _ => {
            let least = LEAST_SAMPLE.max(4 * max_bins);
            most.clamp(least, CHUNK_SAMPLE.max(least))
        }
    }
}

impl ColumnProfile {
    /// The sampled numbers, if they are kept one by one and are of all rows.
    fn sampled_numbers(&self) -> Option<Numbers<'_>> {
        match self {
            ColumnProfile::Numeric(NumericProfile {
                missing,
                zeros,
                min,
                max,
                sample: SampledValues::All(values),
                ..
            }) => {
                let (n_missing, n_zeros) = (*missing as usize, *zeros as usize);
                Some(Numbers { values, n_missing, n_zeros, low: *min, high: *max })
            }
            _ => None,
        }
    }

    fn add(&mut self, array: &ArrayRef, sampled: &[u32], holds_all: bool, reservation: &Reservation) -> Result<()> {
        match self {
            ColumnProfile::Numeric(numeric) => numeric.add(array, sampled, holds_all),
            ColumnProfile::Nominal(nominal) => nominal.add(array, reservation),
            ColumnProfile::Labels(labels) => labels.add(array, reservation),
        }
    }

    /// Makes room for `rows` sampled rows.
    fn reserve(&mut self, rows: usize) {
        if let ColumnProfile::Numeric(numeric) = self {
            numeric.sample.as_mut().reserve(rows);
        }
    }

    /// Brings samples to their sizes.
    fn prune(&mut self) {
        if let ColumnProfile::Numeric(NumericProfile { distinct: Some(distinct), .. }) = self {
            distinct.prune(0);
        }
    }

    fn coding(&self, max_bins: usize, scratch: &mut Scratch) -> Coding {
        match self {
            ColumnProfile::Numeric(numeric) => Coding::numeric(numeric.cuts(max_bins, scratch), numeric.missing > 0),
            ColumnProfile::Nominal(nominal) => {
                Coding::nominal(Categories::new(nominal.counts.keys().cloned()), nominal.missing > 0)
            }
            ColumnProfile::Labels(_) => unreachable!("a feature is no label set"),
        }
    }
}

impl ColumnProfile {
    /// Rows that miss a value.
    pub fn missing(&self) -> u64 {
        match self {
            ColumnProfile::Numeric(numeric) => numeric.missing,
            ColumnProfile::Nominal(nominal) => nominal.missing,
            ColumnProfile::Labels(labels) => labels.missing,
        }
    }

    /// The entropy of the values in `rows` rows, in bits, a multiple of 1/16. A missing value counts as a value. Of
    /// numbers, all but 0 are taken for equally frequent, and for at most 32.
    pub fn entropy(&self, rows: u64) -> f64 {
        const MOST: usize = 32;
        let bits = |count: f64| if count > 0.0 { -count / rows as f64 * (count / rows as f64).log2() } else { 0.0 };
        let entropy = match self {
            ColumnProfile::Numeric(numeric) => {
                let zeros = numeric.zeros as f64;
                let others = rows as f64 - zeros - numeric.missing as f64;
                let beside_zero = usize::from(numeric.zeros > 0 && others > 0.0);
                let distinct = numeric.n_distinct(MOST).unwrap_or(MOST).saturating_sub(beside_zero);
                let distinct = distinct.clamp(1, MOST) as f64;
                bits(zeros) + distinct * bits(others / distinct)
            }
            ColumnProfile::Nominal(nominal) => nominal.counts.values().map(|&count| bits(count as f64)).sum(),
            ColumnProfile::Labels(_) => unreachable!("a feature is no label set"),
        };
        ((entropy + bits(self.missing() as f64)) * 16.0).round() / 16.0
    }

    /// Categories; 0 for numbers and label sets.
    pub fn n_categories(&self) -> usize {
        match self {
            ColumnProfile::Numeric(_) | ColumnProfile::Labels(_) => 0,
            ColumnProfile::Nominal(nominal) => nominal.counts.len(),
        }
    }
}

impl NumericProfile {
    fn new(max_bins: usize) -> Self {
        NumericProfile {
            missing: 0,
            zeros: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            max_bins,
            distinct: None,
            sample: SampledValues::default(),
            derived: None,
        }
    }

    /// Begins the sample of distinct values, if it was not begun, with those of the sampled rows, which are all rows.
    fn sample_distinct(&mut self) -> &mut Distinct {
        self.distinct.get_or_insert_with(|| Distinct::of(self.max_bins, &self.sample.distinct()))
    }

    /// The number of distinct values; `None` if there are more than codes. A number above `enough` may be any such
    /// number, and may be `None` where no value is 0.
    fn n_distinct(&self, enough: usize) -> Option<usize> {
        if let Some(derived) = &self.derived {
            return derived.n_distinct;
        }
        let sample = match (&self.distinct, &self.sample) {
            (Some(distinct), _) => return distinct.len(),
            (None, sample) => sample,
        };
        // So few rows have no more values than codes.
        let fit = sample.len() <= self.max_bins;
        let most = match fit || self.zeros == 0 {
            true => self.max_bins.min(enough.saturating_add(1)),
            false => self.max_bins,
        };
        count_distinct(&sample.distinct(), most).or(fit.then_some(most + 1))
    }

    /// The cut points of at most `max_bins` codes.
    fn cuts(&self, max_bins: usize, scratch: &mut Scratch) -> Cuts {
        if let Some(derived) = &self.derived {
            return derived.cuts.clone();
        }
        if let Some(distinct) = self.distinct.as_ref().filter(|distinct| distinct.len().is_some()) {
            return Cuts::exact(&distinct.sorted());
        }
        let mut buffer = Vec::new();
        let sample = self.sample.unordered(&mut buffer);
        let Some(distinct) = &self.distinct else {
            return Cuts::with_rare(sample, &[], &[], max_bins, scratch);
        };
        let mut apart = vec![self.max, self.min];
        apart.truncate(if self.min > self.max { 0 } else { 2 });
        apart.extend((self.zeros > 0).then_some(0.0));
        Cuts::with_rare(sample, &apart, &distinct.sorted(), max_bins, scratch)
    }

    /// Adds the values of `array`; those of the rows `sampled`, which ascend, to the sample.
    fn add(&mut self, array: &ArrayRef, mut sampled: &[u32], holds_all: bool) -> Result<()> {
        for_pieces(array, |first, values| {
            self.add_range(values)?;
            if !holds_all {
                self.sample_distinct().extend(values);
            }
            let (here, after) = sampled.split_at(sampled.partition_point(|&row| (row as usize) < first + values.len()));
            sampled = after;
            self.sample.as_mut().extend(here.iter().map(|&row| known(values[row as usize - first])));
            Ok(())
        })
    }

    /// Adds what all `values` say, besides those of the samples.
    fn add_range(&mut self, values: &[f64]) -> Result<()> {
        let range = Range::of(values);
        self.extend_range(range, values.len() as u64 - range.missing)
    }

    /// Adds the `range` of `n_known` values and others, which are missing.
    fn extend_range(&mut self, range: Range, n_known: u64) -> Result<()> {
        let Range { low, high, missing, zeros } = range;
        if n_known > 0 && !(low.is_finite() && high.is_finite()) {
            let found = if high.is_finite() { low } else { high };
            return Err(not_finite(found));
        }
        self.missing += missing;
        self.zeros += zeros;
        // Adding 0 turns -0 into 0: which of the two is the lower depends on the order otherwise.
        self.min = self.min.min(low) + 0.0;
        self.max = self.max.max(high) + 0.0;
        Ok(())
    }
}

/// One NaN for all, since which bits a missing value has depends on the container; and 0 for -0.
fn known(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// How often each of `n_entries` entries occurs, and [`NO_ENTRY`].
fn counts(entries: &[u8], n_entries: usize) -> [u64; 1 + NO_ENTRY as usize] {
    /// So few are counted one after the other in less time: counts that are raised in turn wait for each other.
    const FEW: usize = 8;
    let mut counts = [0; 1 + NO_ENTRY as usize];
    if n_entries > FEW {
        entries.iter().for_each(|&entry| counts[usize::from(entry)] += 1);
        return counts;
    }
    let mut others = entries.len() as u64;
    for (entry, count) in (0..n_entries as u8).zip(&mut counts) {
        *count = entries.iter().filter(|&&found| found == entry).count() as u64;
        others -= *count;
    }
    counts[usize::from(NO_ENTRY)] = others;
    counts
}

impl NominalProfile {
    fn add(&mut self, array: &ArrayRef, reservation: &Reservation) -> Result<()> {
        if let Some(FewCategories { texts, entries }) = few_categories(array) {
            let counts = counts(&entries, texts.len());
            self.missing += counts[usize::from(NO_ENTRY)];
            for (text, &count) in texts.into_iter().zip(&counts).filter(|(_, count)| **count > 0) {
                match text {
                    Some(text) => self.count(Cow::Borrowed(text), count, reservation)?,
                    None => self.missing += count,
                }
            }
            return self.check();
        }
        let read = categories(array)?;
        let mut counts = vec![0u64; read.texts.len()];
        for &position in &read.index {
            match position {
                MISSING => self.missing += 1,
                _ => counts[position as usize] += 1,
            }
        }
        for (text, count) in read.texts.into_iter().zip(counts) {
            self.count(text, count, reservation)?;
        }
        self.check()
    }

    /// Counts `count` more rows of the category called `text`.
    fn count(&mut self, text: Cow<'_, str>, count: u64, reservation: &Reservation) -> Result<()> {
        match self.counts.get_mut(text.as_ref()) {
            Some(total) => *total += count,
            None => {
                reservation.take(text.len())?;
                self.counts.insert(text.into_owned(), count);
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.counts.len() > MAX_CATEGORIES {
            return Err(Error::Data(format!(
                "more than {MAX_CATEGORIES} categories were found; merge rare ones, drop the column, or give it as numbers"
            )));
        }
        Ok(())
    }
}

impl LabelProfile {
    fn new(plan: LabelPlan) -> Self {
        LabelProfile { missing: 0, listed: 0, plan, found: BTreeSet::new() }
    }

    /// The profile of the rows of both, whose plans are the same.
    pub fn union(&self, other: &Self) -> Self {
        let found = self.found.union(&other.found).cloned().collect();
        LabelProfile {
            missing: self.missing + other.missing,
            listed: self.listed + other.listed,
            plan: self.plan.clone(),
            found,
        }
    }

    fn add(&mut self, array: &ArrayRef, reservation: &Reservation) -> Result<()> {
        let sets = LabelSets::from_array(array, reservation)?;
        self.missing += sets.rows().filter(Option::is_none).count() as u64;
        self.listed += sets.rows().flatten().map(|set| set.len() as u64).sum::<u64>();
        match &self.plan.hierarchy {
            Some(hierarchy) => sets.texts.iter().try_for_each(|label| hierarchy.number(label).map(drop))?,
            None => {
                for text in sets.texts {
                    if !self.found.contains(text.as_ref()) {
                        reservation.take(text.len())?;
                        self.found.insert(text.into_owned());
                    }
                }
            }
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        if self.found.len() > MAX_LABELS {
            return Err(Error::Data(format!(
                "more than {MAX_LABELS} labels were found; is it a column of label sets?"
            )));
        }
        Ok(())
    }

    /// About how many labels the closed set of one of `rows` rows has.
    ///
    /// # Errors
    /// The errors of [`hierarchy`](Self::hierarchy).
    pub fn mean_closed(&self, rows: u64) -> Result<f64> {
        Ok(self.listed as f64 / rows.max(1) as f64 * self.hierarchy()?.mean_closed())
    }

    /// The hierarchy that was given, or that of the labels found.
    ///
    /// # Errors
    /// [`Error::Data`] where a path has an empty part, or too many.
    pub fn hierarchy(&self) -> Result<Arc<Hierarchy>> {
        match &self.plan.hierarchy {
            Some(hierarchy) => Ok(hierarchy.clone()),
            None => Hierarchy::from_paths(self.found.iter().map(String::as_str), self.plan.decay).map(Arc::new),
        }
    }
}
