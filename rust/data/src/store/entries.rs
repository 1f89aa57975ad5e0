//! Codes of features that are mostly 0: the entries, which are the codes other than that of 0, by feature and by row.
//!
//! A node of many rows looks at the entries of a few features, a node of few rows at those of all features in its rows.
//!
//! Memory: 12 bytes for each entry, and 8 for each feature and row.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
//! # use ferrank_runtime::monitor::Monitor;
//! use ferrank_data::store::entries::Entries;
//! use ferrank_data::store::{Codebook, Keep, Part, Slot, SparseCodes, CodeStore};
//!
//! // Of 40 rows, row n has 1 in every 40th of 1,000 features, from feature n on.
//! # let column = |feature: usize| (0..40).map(|row| f64::from(row == feature % 40)).collect::<Float64Array>();
//! # let columns = (0..=1_000).map(|feature| (feature.to_string(), Arc::new(column(feature)) as ArrayRef));
//! # let batch = RecordBatch::try_from_iter(columns).unwrap();
//! # let table = TableSource::new("table", batch.schema(), vec![batch])?;
//! # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
//! # let view = View::new(&table, &roles, Unlabelled::Error);
//! # let problem = view.problem()?;
//! # let intake = view.intake(&problem, &monitor);
//! let profile = Profile::new(&intake, 255)?;
//! let book = Codebook::new(&profile, &problem, false, "table")?.compressed();
//! let part = Part::new(&intake, &book, profile.counts, Keep::Memory)?;
//! let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
//! assert_eq!(store.slots[3], Slot::Sparse(3));
//! let sparse: &SparseCodes = store.sparse.as_deref().expect("many features are sparse");
//! let (by_feature, by_row): (&Entries, &Entries) = (&sparse.by_feature, &sparse.by_row);
//! assert_eq!(by_feature.of(43).0, [3]);
//! assert_eq!(by_row.of(3).0[..2], [3, 43]);
//! assert_eq!((sparse.code(43, 2), sparse.code(43, 3)), (0, 1));
//! # Ok::<(), ferrank_data::Error>(())
//! ```

use rayon::prelude::*;

use super::RowsMut;
use super::bands::BAND;
use super::code::Code;
use super::codebook::{Codebook, Slot};
use crate::profile::{MISSING_U16, Scale};
use crate::sparse::SparseIntake;
use ferrank_runtime::error::Result;
use ferrank_runtime::pages::prefetch;

/// The entries of one feature.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryList {
    rows: Vec<u32>,
    codes: Vec<u16>,
}

impl EntryList {
    fn reserve(&mut self, n: usize) {
        self.rows.reserve(n);
        self.codes.reserve(n);
    }

    pub(super) fn push(&mut self, row: u32, code: u16) {
        self.rows.push(row);
        self.codes.push(code);
    }
}

/// Fewer than 2^32 entries in lists: of each feature with their rows, or of each row with their features.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// use ferrank_data::store::entries::Entries;
/// # use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
///
/// # let value = |row, n: usize| f64::from(u8::from(row == n % 40) * 2 + u8::from(row == (n + 1) % 40));
/// # let column = |n| Arc::new((0..40).map(|row| value(row, n)).collect::<Float64Array>()) as ArrayRef;
/// # let columns = (0..=1_000).map(|n| (n.to_string(), column(n)));
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// # let profile = Profile::new(&intake, 255)?;
/// # let book = Codebook::new(&profile, &problem, false, "table")?.compressed();
/// # let part = Part::new(&intake, &book, profile.counts, Keep::Memory)?;
/// # let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
/// # let sparse = store.sparse.as_deref().expect("many features are sparse");
/// // Of 40 rows, feature n of 1,000 has 2 in row n % 40, 1 in row (n + 1) % 40 and 0 elsewhere.
/// let (by_feature, by_row): (&Entries, &Entries) = (&sparse.by_feature, &sparse.by_row);
/// assert_eq!((by_feature.n_lists(), by_row.n_lists()), (1_000, 40));
/// assert_eq!((by_feature.len(), by_row.len()), (2_000, 2_000));
/// // The entries of a feature are sorted by code, the entries of a row by feature.
/// assert_eq!(by_feature.of(3), (&[4, 3][..], &[1, 2][..]));
/// let (features, codes) = by_row.of(3);
/// assert_eq!((&features[..4], &codes[..4]), (&[2, 3, 42, 43][..], &[1, 2, 1, 2][..]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// n_lists + 1
    starts: Vec<u32>,
    places: Vec<u32>,
    codes: Vec<u16>,
}

impl Entries {
    fn from_lists(lists: &[EntryList]) -> Self {
        let n_entries = lists.iter().map(|list| list.rows.len()).sum();
        let mut starts = Vec::with_capacity(lists.len() + 1);
        starts.push(0);
        let mut all = Entries { starts, places: Vec::with_capacity(n_entries), codes: Vec::with_capacity(n_entries) };
        for list in lists {
            all.places.extend_from_slice(&list.rows);
            all.codes.extend_from_slice(&list.codes);
            all.starts.push(all.places.len() as u32);
        }
        all
    }

    /// The places and codes of list number `number`.
    #[inline(always)]
    pub fn of(&self, number: usize) -> (&[u32], &[u16]) {
        let range = self.starts[number] as usize..self.starts[number + 1] as usize;
        (&self.places[range.clone()], &self.codes[range])
    }

    /// Asks the memory for the begin of list number `number`, without waiting for it.
    #[inline(always)]
    pub fn prefetch(&self, number: usize) {
        /// What comes after so many entries is fetched while these are read.
        const BEGIN: usize = 32;
        let (places, codes) = self.of(number);
        let n = places.len().min(BEGIN);
        prefetch(&places[..n]);
        prefetch(&codes[..n]);
    }

    /// Number of lists.
    pub fn n_lists(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The same entries in `n_lists` lists by what was their place.
    fn transposed(&self, n_lists: usize) -> Self {
        let mut starts = vec![0; n_lists + 1];
        self.places.iter().for_each(|&place| starts[place as usize + 1] += 1);
        (0..n_lists).for_each(|list| starts[list + 1] += starts[list]);
        let mut next = starts.clone();
        let mut all = Entries { starts, places: vec![0; self.len()], codes: vec![0; self.len()] };
        for list in 0..self.n_lists() {
            let (places, codes) = self.of(list);
            for (&place, &code) in places.iter().zip(codes) {
                let to = &mut next[place as usize];
                (all.places[*to as usize], all.codes[*to as usize]) = (list as u32, code);
                *to += 1;
            }
        }
        all
    }

    /// Puts the entries of each list in the order of their codes, and of their places where codes are equal.
    fn sort_by_code(&mut self) {
        let mut list = Vec::new();
        for ends in self.starts.windows(2) {
            let range = ends[0] as usize..ends[1] as usize;
            let (places, codes) = (&mut self.places[range.clone()], &mut self.codes[range]);
            if codes.is_sorted() {
                continue;
            }
            list.clear();
            let joined = |(&code, &place): (&u16, &u32)| u64::from(code) << 32 | u64::from(place);
            list.extend(codes.iter().zip(places.iter()).map(joined));
            list.sort_unstable();
            for ((place, code), &entry) in places.iter_mut().zip(codes).zip(&list) {
                (*code, *place) = ((entry >> 32) as u16, entry as u32);
            }
        }
    }

    /// The entries of all `parts`, by feature, each with the number of its first row.
    fn joined(mut parts: Vec<(usize, Entries)>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0).1;
        }
        let n_lists = parts.first().map_or(0, |(_, entries)| entries.n_lists());
        let mut lists = vec![EntryList::default(); n_lists];
        for (first_row, entries) in &parts {
            for (number, list) in lists.iter_mut().enumerate() {
                let (rows, codes) = entries.of(number);
                list.rows.extend(rows.iter().map(|row| row + *first_row as u32));
                list.codes.extend_from_slice(codes);
            }
        }
        Entries::from_lists(&lists)
    }
}

/// The codes of the sparse features of a store.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
/// use ferrank_data::store::SparseCodes;
///
/// # let value = |row, n: usize| if n == 0 { row as f64 } else { f64::from(row == n % 40) };
/// # let column = |n| Arc::new((0..40).map(|row| value(row, n)).collect::<Float64Array>()) as ArrayRef;
/// # let columns = (0..=1_001).map(|n| (n.to_string(), column(n)));
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// # let profile = Profile::new(&intake, 255)?;
/// # let book = Codebook::new(&profile, &problem, false, "table")?.compressed();
/// # let part = Part::new(&intake, &book, profile.counts, Keep::Memory)?;
/// # let store = CodeStore::from_parts(book, vec![part], Keep::Memory)?;
/// # let sparse: &SparseCodes = store.sparse.as_deref().expect("many features are sparse");
/// // Feature 0 has 40 values in 40 rows; feature n of 1,000 others has 1 in row n % 40 and 0 elsewhere.
/// assert_eq!(sparse.number(0), None);
/// let number = sparse.number(4).expect("feature 4 is sparse");
/// assert_eq!((sparse.code(number, 4), sparse.code(number, 5)), (1, sparse.zeros[number]));
/// let mut codes = [0; 3];
/// sparse.fill(number, 3, |position| 3 + position, &mut codes);
/// assert_eq!(codes, [0, 1, 0]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SparseCodes {
    /// n_sparse; the code of 0.
    pub zeros: Vec<u16>,
    /// n_features; the number of each sparse feature, [`NONE`] for others.
    numbers: Vec<u32>,
    /// n_sparse lists, each in the order of the codes.
    pub by_feature: Entries,
    /// n_rows lists, each in the order of the features.
    pub by_row: Entries,
}

impl SparseCodes {
    /// The codes of `n_rows` rows in `parts`, each with the number of its first row; `slots` are those of all features.
    pub(super) fn new(slots: &[Slot], zeros: Vec<u16>, parts: Vec<(usize, Entries)>, n_rows: usize) -> Self {
        let mut by_feature = Entries::joined(parts);
        let by_row = by_feature.transposed(n_rows);
        by_feature.sort_by_code();
        SparseCodes { zeros, numbers: numbers(slots), by_feature, by_row }
    }

    /// Bytes that they take, about.
    pub fn n_bytes(&self) -> usize {
        (self.by_feature.len() + self.by_row.len()) * (size_of::<u32>() + size_of::<u16>())
    }

    /// The number of `feature` among the sparse ones, if it is one.
    #[inline(always)]
    pub fn number(&self, feature: u32) -> Option<usize> {
        let number = self.numbers[feature as usize];
        (number != NONE).then_some(number as usize)
    }

    /// The code of sparse feature number `number` in `row`.
    pub fn code(&self, number: usize, row: usize) -> u16 {
        let (features, codes) = self.by_row.of(row);
        match features.binary_search(&(number as u32)) {
            Ok(place) => codes[place],
            Err(_) => self.zeros[number],
        }
    }

    /// Writes the codes of sparse feature number `number` in `n` rows into `out`; `row` gives the row at each position, and
    /// rows ascend.
    pub fn fill(&self, number: usize, n: usize, row: impl Fn(usize) -> usize, out: &mut [u16]) {
        out.fill(self.zeros[number]);
        let (rows, codes) = self.by_feature.of(number);
        if n < rows.len() {
            return out.iter_mut().enumerate().for_each(|(position, out)| *out = self.code(number, row(position)));
        }
        for (&entry_row, &code) in rows.iter().zip(codes) {
            if let Some(position) = position_of(entry_row as usize, n, &row) {
                out[position] = code;
            }
        }
    }

    /// The codes followed by those of as many shadows, which have the codes of the rows `sources`.
    /// `slots` are those of features and shadows.
    pub(super) fn with_shadows(&self, slots: &[Slot], sources: &[u32]) -> Self {
        let n_features = self.zeros.len() as u32;
        let mut by_row = Entries { starts: vec![0], ..Entries::default() };
        for (row, &source) in sources.iter().enumerate() {
            for (row, first) in [(row, 0), (source as usize, n_features)] {
                let (features, codes) = self.by_row.of(row);
                by_row.places.extend(features.iter().map(|feature| first + feature));
                by_row.codes.extend_from_slice(codes);
            }
            by_row.starts.push(by_row.places.len() as u32);
        }
        let zeros = [&self.zeros[..], &self.zeros[..]].concat();
        let mut by_feature = by_row.transposed(zeros.len());
        by_feature.sort_by_code();
        SparseCodes { zeros, numbers: numbers(slots), by_feature, by_row }
    }
}

/// The number of a feature that is not sparse.
const NONE: u32 = u32::MAX;

/// For each feature its number among those with a sparse slot.
fn numbers(slots: &[Slot]) -> Vec<u32> {
    slots.iter().map(|slot| if let Slot::Sparse(number) = slot { *number as u32 } else { NONE }).collect()
}

/// The position of the row `wanted` among `n` rows, which ascend.
fn position_of(wanted: usize, n: usize, row: impl Fn(usize) -> usize) -> Option<usize> {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low.midpoint(high);
        (low, high) = if row(middle) < wanted { (middle + 1, high) } else { (low, middle) };
    }
    (low < n && row(low) == wanted).then_some(low)
}

/// The coded entries of the features that a source keeps sparse, those with slots in bands apart.
pub(super) struct CodedEntries {
    /// n_sparse_slots
    pub(super) sparse: Vec<EntryList>,
    /// The features in bands: slot, code of 0, entries.
    bands: Vec<(Slot, u16, EntryList)>,
}

impl CodedEntries {
    /// Room for the entries of the sparse features of `book`.
    pub(super) fn empty(book: &Codebook) -> Self {
        CodedEntries { sparse: vec![EntryList::default(); book.zeros.len()], bands: Vec::new() }
    }

    /// Codes the entries of `sparse` by `book`.
    pub(super) fn new(sparse: &SparseIntake<'_>, book: &Codebook) -> Result<Self> {
        let values = sparse.by_feature()?;
        let first = sparse.first_feature();
        let coded = |number: usize| {
            let mut list = EntryList::default();
            let Scale::Numeric(cuts) = &book.codings[first + number].scale else { return (0, list) };
            let (rows, values) = values.of(number);
            list.reserve(rows.len());
            let zero = cuts.code(0.0);
            cuts.encode(values, MISSING_U16, |entry, code| {
                if code != zero {
                    list.push(rows[entry], code);
                }
            });
            (zero, list)
        };
        let lists: Vec<_> = (0..sparse.n_features()).into_par_iter().map(coded).collect();
        let mut all = CodedEntries::empty(book);
        for ((zero, list), &slot) in lists.into_iter().zip(&book.slots[first..]) {
            match slot {
                Slot::Sparse(number) => all.sparse[number] = list,
                _ => all.bands.push((slot, zero, list)),
            }
        }
        Ok(all)
    }

    /// Writes the codes of features in bands into `cells`, the first row of which is `first_row`.
    pub(super) fn fill_bands(&self, cells: &mut RowsMut<'_>, first_row: usize) {
        fn fill<C: Code>(
            bands: &mut [&mut [[C; BAND]]],
            slot: usize,
            zero: u16,
            rows: &[u32],
            codes: &[u16],
            first_row: usize,
        ) {
            let Some(cells) = bands.get_mut(slot / BAND) else { return };
            cells.iter_mut().for_each(|cell| cell[slot % BAND] = C::from_u16(zero));
            for (&row, &code) in rows.iter().zip(codes) {
                let code = if code == MISSING_U16 { C::MISSING } else { C::from_u16(code) };
                cells[row as usize - first_row][slot % BAND] = code;
            }
        }
        let end = first_row + cells.rows;
        for (slot, zero, EntryList { rows, codes }) in &self.bands {
            let place = |row: usize| rows.partition_point(|&other| (other as usize) < row);
            let range = place(first_row)..place(end);
            let (rows, codes) = (&rows[range.clone()], &codes[range]);
            match *slot {
                Slot::Narrow(slot) => fill(&mut cells.narrow, slot, *zero, rows, codes, first_row),
                Slot::Wide(slot) => fill(&mut cells.wide, slot, *zero, rows, codes, first_row),
                Slot::Sparse(_) => {}
            }
        }
    }

    /// The entries of the features with sparse slots.
    pub(super) fn into_entries(self) -> Entries {
        Entries::from_lists(&self.sparse)
    }
}
