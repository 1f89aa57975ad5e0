//! What all parts of a store share.

use super::Chunk;
use super::bands::{BAND, Bands};
use super::targets::{Answers, TargetColumn, empty_targets};
use crate::profile::{Coding, ColumnProfile, Profile, RowCodes, Scale, is_sparse};
use crate::schema::Problem;
use ferrank_runtime::error::Result;

/// Where the codes of a feature lie.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// use ferrank_data::store::{Codebook, Slot};
///
/// # let column = |n: i32| Arc::new((0..300).map(|i| f64::from(i % n)).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("few", column(2)), ("many", column(300)), ("some", column(9)), ("y", column(7))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// // The features have 2, 300 and 9 values.
/// let profile = Profile::new(&intake, 300)?;
/// let book = Codebook::new(&profile, &problem, false, "table")?;
/// assert_eq!(book.slots, [Slot::Narrow(0), Slot::Wide(0), Slot::Narrow(1)]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Position among the features of one byte.
    Narrow(usize),
    /// Position among the features of two bytes.
    Wide(usize),
    /// Position among the sparse features, of which only the entries are kept.
    Sparse(usize),
}

/// How values become codes, and where the codes of each feature lie.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
///
/// # let column = |values: [f64; 3]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
/// # let columns = [("x", column([0.1, 0.3, 0.5])), ("y", column([1.0, 2.0, 3.0]))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let last = TableSource::new("last row", batch.schema(), vec![batch.slice(2, 1)])?;
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// // x is 0.1, 0.3 and 0.5.
/// let profile = Profile::new(&intake, 255)?;
/// let book = Codebook::new(&profile, &problem, false, "table")?;
/// assert_eq!((book.codings[0].n_codes(), book.n_targets), (3, 1));
/// // A part with 0.5 alone has the code that this value has among all rows.
/// let intake = View::new(&last, &roles, Unlabelled::Error).intake(&problem, &monitor);
/// let part = Part::new(&intake, &book, intake.count()?, Keep::Memory)?;
/// let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
/// assert_eq!(store.chunks[0].narrow.column(0).at(0), 2);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Codebook {
    /// n_features.
    pub codings: Vec<Coding>,
    /// n_features.
    pub slots: Vec<Slot>,
    /// Numbers of features of one byte and of two.
    narrow: usize,
    wide: usize,
    /// n_sparse_slots; the code of 0.
    pub(super) zeros: Vec<u16>,
    /// The features that are sparse, in slots of any kind, if they are many.
    sparse: Vec<usize>,
    /// Values of sparse features other than 0.
    n_entries: u64,
    /// The targets, then the features if their values are kept, without rows.
    columns: Vec<TargetColumn>,
    /// Number of targets.
    pub n_targets: usize,
    /// Labels of the closed sets of a row, about.
    listed: f64,
    /// True if rows have weights.
    pub(super) weighted: bool,
    /// True if rows have groups.
    pub(super) grouped: bool,
    /// n_features; the codes of the rows to be coded, where ranks gave them. May be empty.
    ranked: Vec<Option<RowCodes>>,
}

/// With fewer sparse features they are features like others.
const LEAST_SPARSE: usize = 1_000;

/// The features that are sparse, if they are many, and how many of their values are not 0. It depends on the values alone,
/// so that it is the same for all containers.
fn sparse_features(profile: &Profile) -> (Vec<usize>, u64) {
    let kept = profile.counts.kept;
    let columns = profile.features.iter().enumerate();
    let sparse = columns.filter_map(|(feature, column)| match column {
        ColumnProfile::Numeric(numeric) if is_sparse(numeric.zeros, kept) => Some((feature, kept - numeric.zeros)),
        _ => None,
    });
    let (features, entries): (Vec<usize>, Vec<u64>) = sparse.unzip();
    if features.len() < LEAST_SPARSE { (Vec::new(), 0) } else { (features, entries.iter().sum()) }
}

impl Codebook {
    /// The codes that `profile` asks for, of `problem` in the source called `name`; the values of features are kept
    /// beside them if `with_values`.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) where the labels found make no hierarchy.
    pub fn new(profile: &Profile, problem: &Problem, with_values: bool, name: &str) -> Result<Self> {
        let codings = profile.codings();
        let (sparse, n_entries) = sparse_features(profile);
        let mut columns = empty_targets(problem, profile, 0, name)?;
        let n_targets = columns.len();
        let (weighted, grouped) = (problem.weight.is_some(), problem.groups.is_some());
        let listed = (profile.targets.iter())
            .map(|column| match column {
                ColumnProfile::Labels(labels) => labels.mean_closed(profile.counts.kept),
                _ => Ok(0.0),
            })
            .sum::<Result<f64>>()?;
        if with_values {
            for column in &profile.features {
                columns.push(TargetColumn::empty(column, 0)?);
            }
        }
        let mut book = Codebook {
            codings,
            slots: Vec::new(),
            narrow: 0,
            wide: 0,
            zeros: Vec::new(),
            sparse,
            n_entries,
            columns,
            n_targets,
            listed,
            weighted,
            grouped,
            ranked: Vec::new(),
        };
        book.place(&[]);
        Ok(book)
    }

    /// The same for a part that has the rows of `profile` and no others: what the profile knows of them is not read again.
    pub fn for_rows_of(mut self, profile: &Profile) -> Self {
        // The values of features that are kept are read from batches.
        if self.n_kept() == self.n_targets {
            self.ranked = profile.row_codes();
        }
        self
    }

    /// The codes of `feature` in the rows to be coded, if ranks gave them and the feature has its codes in bands.
    pub(super) fn ranked(&self, feature: usize) -> Option<&RowCodes> {
        match self.slots[feature] {
            Slot::Sparse(_) => None,
            _ => self.ranked.get(feature)?.as_ref(),
        }
    }

    /// The codebook for a store that keeps of the features that are sparse only the entries. It is for growth in memory.
    pub fn compressed(mut self) -> Self {
        // Entries, with those of shadows, are numbered by 32 bits.
        if self.n_entries > u64::from(u32::MAX) / 2 {
            return self;
        }
        let sparse = std::mem::take(&mut self.sparse);
        self.place(&sparse);
        self.sparse = sparse;
        self
    }

    /// Gives each feature its slot, a sparse one to those in `sparse`, which ascend.
    fn place(&mut self, sparse: &[usize]) {
        let Codebook { codings, slots, narrow, wide, zeros, .. } = self;
        (*narrow, *wide) = (0, 0);
        let mut sparse = sparse.iter().peekable();
        let next = |count: &mut usize| {
            *count += 1;
            *count - 1
        };
        let slot = |(feature, coding): (usize, &Coding)| match &coding.scale {
            Scale::Numeric(cuts) if sparse.next_if_eq(&&feature).is_some() => {
                zeros.push(cuts.code(0.0));
                Slot::Sparse(zeros.len() - 1)
            }
            _ if coding.is_narrow() => Slot::Narrow(next(narrow)),
            _ => Slot::Wide(next(wide)),
        };
        *slots = codings.iter().enumerate().map(slot).collect();
    }

    /// Returns true if many features are sparse, in slots of any kind.
    pub fn is_sparse(&self) -> bool {
        !self.sparse.is_empty()
    }

    /// The features with a slot that is `wanted`, in the order of their slots.
    pub(super) fn features_at(&self, wanted: fn(&Slot) -> bool) -> Vec<usize> {
        self.slots.iter().enumerate().filter(|(_, slot)| wanted(slot)).map(|(feature, _)| feature).collect()
    }

    /// Bytes that the entries of sparse features take while they are put in order, if they alone are kept.
    pub fn entry_bytes(&self) -> usize {
        if self.zeros.is_empty() { 0 } else { 24 * self.n_entries as usize + 8 * self.zeros.len() }
    }

    /// The codebook of the same rows without their codes.
    pub(super) fn without_codes(&self) -> Self {
        let columns = self.columns.clone();
        let (codings, slots, zeros, sparse) = (Vec::new(), Vec::new(), Vec::new(), self.sparse.clone());
        Codebook { codings, slots, zeros, sparse, narrow: 0, wide: 0, columns, ranked: Vec::new(), ..*self }
    }

    /// The codebook of the same rows without their values, weights and groups.
    pub(super) fn only_codes(&self) -> Self {
        Codebook { columns: Vec::new(), n_targets: 0, weighted: false, grouped: false, ..self.clone() }
    }

    /// Bands of one byte and of two.
    pub(super) fn n_bands(&self) -> (usize, usize) {
        (self.narrow.div_ceil(BAND), self.wide.div_ceil(BAND))
    }

    /// Bytes that the codes of a row take.
    pub fn row_bytes(&self) -> usize {
        let (narrow, wide) = self.n_bands();
        BAND * (narrow + 2 * wide)
    }

    /// Number of columns whose values are kept.
    pub fn n_kept(&self) -> usize {
        self.columns.len()
    }

    /// Bytes that the labels of a row take, about: as they are, and as components.
    pub fn label_bytes(&self) -> usize {
        (self.listed * (2 * size_of::<u32>()) as f64).ceil() as usize
    }

    /// Bytes that the groups of a row take, at most, while they are numbered: the hash, the number, and where each row
    /// is a group of its own, what is known of it.
    pub fn group_bytes(&self) -> usize {
        if self.grouped { 48 } else { 0 }
    }

    /// A chunk of `rows` rows, all with code 0.
    pub(super) fn chunk(&self, rows: usize) -> Chunk {
        Chunk { rows, narrow: Bands::new(self.narrow, rows), wide: Bands::new(self.wide, rows) }
    }

    /// The values and weights of no rows.
    pub(super) fn no_answers(&self) -> Answers {
        Answers { columns: self.columns.clone(), ..Answers::default() }
    }
}
