//! The code store: features as small integers, in bands of features within chunks of rows, and the
//! raw values of the targets, and of the features where trees cluster by them.
//!
//! A store consists of [`Part`]s: consecutive rows that were coded by the same [`Codebook`], in this process or in
//! another. A part is in memory or in a mapped Arrow file, which makes no difference to readers of codes.
//!
//! Where many features are mostly 0, a store in memory keeps only the other values of these ([`entries`]).
//!
//! Memory: one byte for each value of a feature with at most 255 codes, two for the others, twelve for each value other than
//! 0 of a sparse feature; eight for each value of a numeric target, two of a nominal one; label sets are `labels`' own. The values of features,
//! where they are kept, are as those of targets. What lies in scratch files takes nothing.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
//! # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
//! # use ferrank_runtime::monitor::Monitor;
//! use ferrank_data::store::{Chunk, Code, CodeStore, Codebook, Columns, Keep, Origin, Part, Slot, Stored, TargetColumn};
//!
//! # let x: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), Some(0.1), None, Some(0.5)]));
//! # let y: ArrayRef = Arc::new(StringArray::from(vec!["b", "a", "b", "b"]));
//! # let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
//! # let table = TableSource::new("table", batch.schema(), vec![batch])?;
//! # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
//! # let view = View::new(&table, &roles, Unlabelled::Error);
//! # let problem = view.problem()?;
//! # let intake = view.intake(&problem, &monitor);
//! // x is 0.5, 0.1, missing and 0.5; y is b, a, b and b.
//! let profile = Profile::new(&intake, 255)?;
//! let book = Codebook::new(&profile, &problem, false, "table")?;
//! let part = Part::new(&intake, &book, profile.counts, Keep::Memory)?;
//! let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
//!
//! /// The codes of a feature of one byte, in the first chunk of rows.
//! fn codes<C: Stored>(store: &CodeStore, slot: usize) -> Vec<C> {
//!     let chunk: &Chunk = &store.chunks[0];
//!     let column = C::of(chunk).column(slot);
//!     (0..chunk.rows).map(|row| column.at(row)).collect()
//! }
//! let Slot::Narrow(slot) = store.slots[0] else { unreachable!("few values have codes of one byte") };
//! assert_eq!(codes::<u8>(&store, slot), [1, 0, u8::MISSING, 1]);
//!
//! // Targets are kept as they are.
//! let columns: Columns<'_> = store.columns();
//! let TargetColumn::Nominal { categories, codes } = columns.of(Origin::Target(0)) else { unreachable!("a class") };
//! assert_eq!((&categories.names[..], &codes[..]), (&["a".into(), "b".into()][..], &[1, 0, 1, 1][..]));
//! # Ok::<(), ferrank_data::Error>(())
//! ```

pub mod bands;
mod code;
mod codebook;
mod coder;
pub mod entries;
mod matrix;
mod part;
mod shadows;
mod targets;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use bands::{BAND, Bands};
pub use code::Code;
pub use codebook::{Codebook, Slot};
pub use coder::encode;
pub use entries::SparseCodes;
pub use part::Part;
pub use targets::{Columns, Origin, TargetColumn, add_values, empty_targets, label_code};

use crate::groups::Groups;
use crate::intake::{Counts, Intake};
use crate::profile::Coding;
use crate::profile::Profile;
use ferrank_runtime::error::Result;
use targets::Answers;

pub use crate::values::{Keep, Values};

/// A type of codes that a chunk holds.
///
/// ```
/// use ferrank_data::store::bands::Bands;
/// use ferrank_data::store::{Chunk, Stored};
///
/// fn row_bytes<C: Stored>(chunk: &Chunk) -> usize {
///     C::of(chunk).row_bytes()
/// }
/// // Three features of one byte are in one band, nine of two bytes in two.
/// let chunk = Chunk { rows: 4, narrow: Bands::new(3, 4), wide: Bands::new(9, 4) };
/// assert_eq!((row_bytes::<u8>(&chunk), row_bytes::<u16>(&chunk)), (8, 32));
/// ```
pub trait Stored: Code {
    /// The codes of this type.
    fn of(chunk: &Chunk) -> &Bands<Self>;
}

impl Stored for u8 {
    fn of(chunk: &Chunk) -> &Bands<u8> {
        &chunk.narrow
    }
}

impl Stored for u16 {
    fn of(chunk: &Chunk) -> &Bands<u16> {
        &chunk.wide
    }
}

/// Codes of consecutive rows.
///
/// ```
/// use ferrank_data::store::Chunk;
/// use ferrank_data::store::bands::Bands;
///
/// // Four rows of three features with few values each.
/// let chunk = Chunk { rows: 4, narrow: Bands::new(3, 4), ..Chunk::default() };
/// assert_eq!(chunk.narrow.band(0).len(), chunk.rows);
/// assert!(chunk.wide.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Chunk {
    /// Number of rows.
    pub rows: usize,
    /// Codes of one byte.
    pub narrow: Bands<u8>,
    /// Codes of two bytes.
    pub wide: Bands<u16>,
}

/// The codes of consecutive rows of a chunk, to be written.
struct RowsMut<'a> {
    /// Number of rows.
    rows: usize,
    /// n_bands; the cells of the rows.
    narrow: Vec<&'a mut [[u8; BAND]]>,
    wide: Vec<&'a mut [[u16; BAND]]>,
}

impl Chunk {
    fn rows_mut(&mut self, rows: Range<usize>) -> RowsMut<'_> {
        RowsMut {
            rows: rows.len(),
            narrow: self.narrow.rows_mut(rows.clone()).collect(),
            wide: self.wide.rows_mut(rows).collect(),
        }
    }
}

/// Every row that takes part, as codes.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// use ferrank_data::store::{CodeStore, Keep, Slot};
///
/// # let x: ArrayRef = Arc::new(Float64Array::from(vec![7.0, 2.0, 5.0]));
/// # let y: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(0.5)]));
/// # let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Ignore);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// // x is 7, 2 and 5; the second row has no target and takes no part.
/// let profile = Profile::new(&intake, 255)?;
/// let store = CodeStore::new(&intake, &profile, profile.counts, false, Keep::Memory)?;
/// assert_eq!((store.rows, &store.slots[..]), (2, &[Slot::Narrow(0)][..]));
/// let x = store.chunks[0].narrow.column(0);
/// assert_eq!([x.at(0), x.at(1)], [1, 0]);
/// // Shadows, here with the codes of the rows in reverse order, are features beside the others.
/// assert_eq!(store.with_shadows(&[1, 0], Keep::Memory, store.rows)?.codings.len(), 2);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct CodeStore {
    /// Rows in all chunks.
    pub rows: usize,
    /// Of any numbers of rows above 0.
    pub chunks: Vec<Chunk>,
    /// n_chunks; the first row of each.
    pub firsts: Vec<usize>,
    /// n_features, and as many again for their shadows, if there are some.
    pub codings: Vec<Coding>,
    /// As many as `codings`.
    pub slots: Vec<Slot>,
    /// The codes of the features in sparse slots, if there are some.
    pub sparse: Option<Arc<SparseCodes>>,
    /// True if many features are sparse, in slots of any kind.
    pub is_sparse: bool,
    /// n_targets.
    pub targets: Arc<Vec<TargetColumn>>,
    /// n_features; empty where they are not requested.
    pub values: Arc<Vec<TargetColumn>>,
    /// n_rows; empty without weights.
    pub weights: Arc<Values<f64>>,
    /// The groups, if rows have some.
    pub groups: Option<Arc<Groups>>,
}

impl CodeStore {
    /// Codes the rows of `intake` in a second pass; the first pass has counted `expected`. Keeps the values of features,
    /// too, if `with_values`.
    ///
    /// # Errors
    /// The errors of [`Codebook::new`] and [`Part::new`].
    pub fn new(
        intake: &Intake<'_>,
        profile: &Profile,
        expected: Counts,
        with_values: bool,
        keep: Keep<'_>,
    ) -> Result<Self> {
        let book = Codebook::new(profile, intake.problem, with_values, intake.source.name())?;
        let part = Part::new(intake, &book, expected, keep)?;
        CodeStore::from_parts(book, vec![part], keep)
    }

    /// The rows of `parts`, one part after the other, all coded by `book`.
    ///
    /// # Errors
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full,
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for more labels than can be counted.
    pub fn from_parts(book: Codebook, parts: Vec<Part>, keep: Keep<'_>) -> Result<Self> {
        let (none, n_targets, is_sparse) = (book.no_answers(), book.n_targets, book.is_sparse());
        let (mut chunks, mut answers, mut entries) = (Vec::<Chunk>::new(), Vec::new(), Vec::new());
        let mut rows = 0;
        for part in parts {
            entries.extend(part.entries.map(|entries| (rows, entries)));
            rows += part.chunks.iter().map(|chunk| chunk.rows).sum::<usize>();
            chunks.extend(part.chunks);
            answers.extend(part.answers);
        }
        let hashes: Vec<_> = answers.iter_mut().map(|answers| std::mem::take(&mut answers.groups)).collect();
        let groups = book.grouped.then(|| Groups::new(&hashes, "the data set", keep)).transpose()?;
        drop(hashes);
        let Answers { columns: mut targets, weights, .. } = Answers::joined(none, answers, keep)?;
        let values = targets.split_off(n_targets);
        let next = |first: &mut usize, chunk: &Chunk| Some(std::mem::replace(first, *first + chunk.rows));
        let firsts = chunks.iter().scan(0, next).collect();
        let Codebook { codings, slots, zeros, .. } = book;
        let sparse = (!entries.is_empty()).then(|| Arc::new(SparseCodes::new(&slots, zeros, entries, rows)));
        Ok(CodeStore {
            rows,
            chunks,
            firsts,
            codings,
            slots,
            sparse,
            is_sparse,
            targets: Arc::new(targets),
            values: Arc::new(values),
            weights: Arc::new(weights),
            groups: groups.map(Arc::new),
        })
    }

    /// The values and weights of the rows of `parts`, which were read without codes. A single row shows how codes lie.
    ///
    /// # Errors
    /// As for [`CodeStore::from_parts`].
    pub fn without_codes(book: Codebook, parts: Vec<Part>) -> Result<Self> {
        let store = CodeStore::from_parts(book.without_codes(), parts, Keep::Memory)?;
        let chunks = vec![book.chunk(1)];
        Ok(CodeStore { chunks, firsts: vec![0], codings: book.codings, slots: book.slots, ..store })
    }

    /// The values and weights of all rows.
    pub fn columns(&self) -> Columns<'_> {
        Columns { targets: &self.targets, values: &self.values, weights: &self.weights }
    }

    /// Bytes that the codes of a row take, or would take if all features were in bands.
    pub fn full_row_bytes(&self) -> usize {
        match self.is_sparse {
            true => self.codings.iter().map(|coding| if coding.is_narrow() { 1 } else { 2 }).sum(),
            false => self.row_bytes(),
        }
    }

    /// Bytes that the codes of all rows take.
    pub fn code_bytes(&self) -> usize {
        self.rows * self.row_bytes() + self.sparse.as_ref().map_or(0, |codes| codes.n_bytes())
    }

    /// Bytes that the codes of a row take in bands.
    pub fn row_bytes(&self) -> usize {
        self.chunks.first().map_or(0, |chunk| chunk.narrow.row_bytes() + chunk.wide.row_bytes())
    }
}
