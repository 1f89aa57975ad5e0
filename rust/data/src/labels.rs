//! Label sets: as a column holds them, and closed and numbered as the rankers take them.
//!
//! A set is a list of strings, or text with `@` between the labels, as in ARFF files of CLUS. An empty
//! list, or an empty text, is the set of a row that has no label; a row without a list is one of which
//! nothing is known.
//!
//! Memory: four bytes for each label of a closed set, and four for each row; nothing for what lies in scratch
//! files.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, StringArray};
//! use ferrank_data::hierarchy::Hierarchy;
//! use ferrank_data::labels::LabelColumn;
//!
//! let cells: ArrayRef = Arc::new(StringArray::from(vec![Some("koala@plant"), None, Some("")]));
//! // Sets are closed upwards: a row with the label koala also has the label animal.
//! let edges = [(None, "animal".into()), (None, "plant".into()), (Some("animal".into()), "koala".into())];
//! let mut column = LabelColumn::new(Arc::new(Hierarchy::from_edges(&edges, 0.75)?), 3);
//! column.add(&cells, None)?;
//! let names = |row: usize| column.of(row).map(|set| set.iter().map(|&label| &*column.hierarchy.names()[label as usize]));
//! assert_eq!(names(0).unwrap().collect::<Vec<_>>(), ["animal", "koala", "plant"]);
//! assert_eq!((column.of(1), column.of(2)), (None, Some(&[][..])));
//! # Ok::<(), ferrank_data::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericListViewArray, LargeListArray, OffsetSizeTrait, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};

use crate::column::{Categories, MISSING, categories, categories_in};
use crate::hierarchy::{Closure, Hierarchy};
use crate::reservation::Reservation;
use crate::values::{Keep, Values};
use ferrank_runtime::error::{Error, Result};

/// What parts the labels of a text.
const BETWEEN: char = '@';
/// What asks for memory.
pub(crate) const WHAT: &str = "the label sets of rows";
/// Bytes of a label that is found in texts: as it is listed, and as it is looked up.
const LABEL_BYTES: usize = 2 * size_of::<(Cow<'_, str>, u64)>() + size_of::<Cow<'_, str>>();

/// A column read as label sets.
#[derive(Debug, Default)]
pub(crate) struct LabelSets<'a> {
    /// The labels that rows have, each once, in the order of their first row.
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Positions in `texts`.
    positions: Vec<u32>,
    /// n_rows; where the positions of each row are, which equal texts share; `None` where the row is unknown.
    spans: Vec<Option<Range<usize>>>,
}

impl<'a> LabelSets<'a> {
    /// The sets in `array`, of a type of strings or of lists of strings.
    ///
    /// # Errors
    /// [`Error::Data`] for a list that misses a label, [`Error::Resource`] if there is no memory for the labels listed.
    pub(crate) fn from_array(array: &'a ArrayRef, reservation: &Reservation) -> Result<Self> {
        match lists(array) {
            Some(lists) => Self::from_lists(array, lists, reservation),
            None => Self::from_texts(&categories(array)?, reservation),
        }
    }

    fn from_lists(array: &ArrayRef, (values, ranges): Lists<'a>, reservation: &Reservation) -> Result<Self> {
        let known = || ranges.iter().enumerate().filter(|&(row, range)| array.is_valid(row) && !range.is_empty());
        let first = known().map(|(_, range)| range.start).min().unwrap_or(0);
        let end = known().map(|(_, range)| range.end).max().unwrap_or(0);
        // Views may have labels in common.
        let listed: usize = known().map(|(_, range)| range.len()).sum();
        reservation.check((listed + (end - first)).saturating_mul(size_of::<u32>()), WHAT)?;
        // Rows of a long column share its values; only their own are read.
        let Categories { texts, index } = categories_in(values, first..end)?;
        let mut sets = LabelSets { positions: Vec::with_capacity(listed), ..LabelSets::default() };
        let mut position = vec![MISSING; texts.len()];
        for (row, range) in ranges.iter().enumerate() {
            if array.is_null(row) {
                sets.spans.push(None);
                continue;
            }
            let start = sets.positions.len();
            let entries = if range.is_empty() { &[] } else { &index[range.start - first..range.end - first] };
            for &entry in entries {
                if entry == MISSING {
                    return Err(Error::Data("a list of labels misses one; leave it out, or the whole list".into()));
                }
                let position = &mut position[entry as usize];
                if *position == MISSING {
                    *position = sets.texts.len() as u32;
                    sets.texts.push(texts[entry as usize].clone());
                }
                sets.positions.push(*position);
            }
            sets.spans.push(Some(start..sets.positions.len()));
        }
        Ok(sets)
    }

    fn from_texts(cells: &Categories<'a>, reservation: &Reservation) -> Result<Self> {
        let mut sets = LabelSets::default();
        let mut positions: HashMap<Cow<'a, str>, u32> = HashMap::new();
        let mut of_cell = Vec::with_capacity(cells.texts.len());
        for cell in &cells.texts {
            let start = sets.positions.len();
            let n_labels = 1 + cell.matches(BETWEEN).count();
            reservation.reserve(&mut sets.positions, n_labels, WHAT)?;
            let mut add = |label: Cow<'a, str>| {
                if let Some(&position) = positions.get(&label) {
                    sets.positions.push(position);
                    return Ok(());
                }
                let next = sets.texts.len();
                if next == sets.texts.capacity() {
                    reservation.check((2 * next).saturating_mul(LABEL_BYTES), WHAT)?;
                }
                positions.insert(label.clone(), next as u32);
                sets.positions.push(next as u32);
                sets.texts.push(label);
                Ok(())
            };
            match cell {
                Cow::Borrowed(cell) => labels_in(cell).map(Cow::Borrowed).try_for_each(&mut add)?,
                Cow::Owned(cell) => {
                    labels_in(cell).map(|label| Cow::Owned(label.to_string())).try_for_each(&mut add)?
                }
            }
            of_cell.push(start..sets.positions.len());
        }
        let span = |&cell: &u32| (cell != MISSING).then(|| Range::clone(&of_cell[cell as usize]));
        sets.spans.extend(cells.index.iter().map(span));
        Ok(sets)
    }

    /// The set of each row as positions in `texts`, `None` where it is unknown.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Option<&[u32]>> {
        self.spans.iter().map(|span| Some(&self.positions[span.clone()?]))
    }
}

/// The values of lists, and for each row where its own are.
type Lists<'a> = (&'a ArrayRef, Vec<Range<usize>>);

/// The lists in `array`; `None` if its type is none of lists.
fn lists(array: &ArrayRef) -> Option<Lists<'_>> {
    fn of<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Lists<'_> {
        let ranges = lists.offsets().windows(2).map(|pair| pair[0].as_usize()..pair[1].as_usize());
        (lists.values(), ranges.collect())
    }
    fn of_views<O: OffsetSizeTrait>(views: &GenericListViewArray<O>) -> Lists<'_> {
        let rows = views.offsets().iter().zip(views.sizes());
        let ranges = rows.map(|(start, size)| start.as_usize()..start.as_usize() + size.as_usize());
        (views.values(), ranges.collect())
    }
    Some(match array.data_type() {
        DataType::List(_) => of(array.as_list::<i32>()),
        DataType::LargeList(_) => of(array.as_list::<i64>()),
        DataType::ListView(_) => of_views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => of_views(array.as_list_view::<i64>()),
        DataType::FixedSizeList(..) => {
            let lists = array.as_fixed_size_list();
            let ranges = (0..lists.len()).map(|row| {
                let start = lists.value_offset(row) as usize;
                start..start + lists.value_length() as usize
            });
            (lists.values(), ranges.collect())
        }
        _ => return None,
    })
}

/// The labels of a text.
fn labels_in(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(BETWEEN).map(str::trim).filter(|_| !cell.trim().is_empty())
}

/// Stands alone in the set of a row of which nothing is known.
const UNKNOWN: u32 = u32::MAX;

/// The closed label sets of all rows.
///
/// ```
/// # use std::sync::Arc;
/// use arrow_array::{ArrayRef, StringArray};
/// use ferrank_data::hierarchy::Hierarchy;
/// use ferrank_data::labels::LabelColumn;
///
/// let edges = [(None, "animal".into()), (Some("animal".into()), "koala".into()), (None, "plant".into())];
/// let sets: ArrayRef = Arc::new(StringArray::from(vec!["koala", "plant"]));
/// let mut column = LabelColumn::new(Arc::new(Hierarchy::from_edges(&edges, 0.75)?), sets.len());
/// column.add(&sets, None)?;
/// let animal = column.hierarchy.number("animal")?;
/// assert_eq!((column.has(0, animal), column.has(1, animal)), (Some(true), Some(false)));
/// let turned = column.gather([1, 0].into_iter())?;
/// assert_eq!((turned.of(0), turned.of(1)), (column.of(1), column.of(0)));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelColumn {
    /// The labels.
    pub hierarchy: Arc<Hierarchy>,
    /// n_rows + 1 offsets into `labels`.
    starts: Values<u32>,
    /// Numbers of labels, row after row, ascending within a row.
    labels: Values<u32>,
}

impl LabelColumn {
    /// Label sets of no rows, with a capacity of `rows`.
    pub fn new(hierarchy: Arc<Hierarchy>, rows: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        LabelColumn { hierarchy, starts: Values::Held(starts), labels: Values::default() }
    }

    /// Appends the rows of `array` as far as a limit of `memory` bytes allows.
    ///
    /// # Errors
    /// [`Error::Data`] for a label that the hierarchy does not have, or too many labels, [`Error::Resource`] if there is
    /// not enough memory.
    pub fn add(&mut self, array: &ArrayRef, memory: Option<u64>) -> Result<()> {
        let reservation = Reservation::new(memory);
        let (hierarchy, starts, labels) = (&self.hierarchy, self.starts.held(), self.labels.held());
        let sets = LabelSets::from_array(array, &reservation)?;
        let numbers: Vec<u32> = sets.texts.iter().map(|label| hierarchy.number(label)).collect::<Result<_>>()?;
        let mut closure = Closure::new(hierarchy);
        let mut closed = Vec::new();
        for set in sets.rows() {
            closed.clear();
            match set {
                Some(set) => {
                    closed.extend(set.iter().map(|&position| numbers[position as usize]));
                    closure.close(&mut closed);
                }
                None => closed.push(UNKNOWN),
            }
            // Few labels in a text may be many for all the rows that share it.
            reservation.reserve(labels, closed.len(), WHAT)?;
            labels.extend_from_slice(&closed);
            starts.push(offset(labels.len())?);
        }
        Ok(())
    }

    /// How Arrow holds the numbers of labels.
    pub fn data_type() -> DataType {
        DataType::LargeList(Self::item())
    }

    fn item() -> FieldRef {
        Arc::new(Field::new_list_field(DataType::UInt32, false))
    }

    /// The rows `first .. first + count`, as Arrow holds them.
    pub fn slice(&self, first: usize, count: usize) -> ArrayRef {
        let starts = &self.starts[first..=first + count];
        let (start, end) = (starts[0] as usize, starts[count] as usize);
        let lengths = starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let labels = UInt32Array::new(self.labels.slice(start, end - start), None);
        Arc::new(LargeListArray::new(Self::item(), OffsetBuffer::from_lengths(lengths), Arc::new(labels), None))
    }

    /// The rows that [`slice`](Self::slice) gave, of the same hierarchy as this column.
    ///
    /// # Errors
    /// [`Error::Data`] if they are not.
    pub fn read(&self, lists: &LargeListArray) -> Result<Self> {
        let first = lists.offsets()[0];
        let starts =
            lists.offsets().iter().map(|start| offset((start - first) as usize)).collect::<Result<Vec<_>>>()?;
        let count = starts[lists.len()] as usize;
        let labels = lists.values().as_primitive::<UInt32Type>().values().slice(first as usize, count);
        let column = LabelColumn {
            hierarchy: self.hierarchy.clone(),
            starts: Values::Held(starts),
            labels: Values::Mapped(labels),
        };
        let n_labels = self.hierarchy.names().len();
        let is_set =
            |set: &[u32]| set.is_sorted_by(|a, b| a < b) && set.last().is_none_or(|&last| (last as usize) < n_labels);
        match (0..column.len()).all(|row| column.of(row).is_none_or(is_set)) {
            true => Ok(column),
            false => {
                Err(Error::Data(format!("label sets: they are damaged, or not of a hierarchy of {n_labels} labels")))
            }
        }
    }

    /// The rows of `pieces`, one after the other, all of the same hierarchy as this column.
    ///
    /// # Errors
    /// [`Error::Data`] for too many labels, [`Error::File`] if the disk is full.
    pub fn joined(&self, pieces: Vec<LabelColumn>, keep: Keep<'_>) -> Result<Self> {
        let mut starts = vec![0];
        let mut before = 0;
        for piece in &pieces {
            for &start in &piece.starts[1..] {
                starts.push(offset(before + start as usize)?);
            }
            before += piece.labels.len();
        }
        let starts = Values::Held(starts).kept(keep)?;
        let labels = Values::joined(pieces.into_iter().map(|piece| piece.labels).collect(), keep)?;
        Ok(LabelColumn { hierarchy: self.hierarchy.clone(), starts, labels })
    }

    /// No rows, of the same hierarchy.
    pub fn none(&self) -> Self {
        LabelColumn::new(self.hierarchy.clone(), 0)
    }

    /// `rows`, in that order.
    pub fn gather(&self, rows: impl Iterator<Item = usize>) -> Result<Self> {
        let (mut starts, mut labels) = (vec![0], Vec::new());
        for row in rows {
            labels.extend_from_slice(&self.labels[self.starts[row] as usize..self.starts[row + 1] as usize]);
            starts.push(offset(labels.len())?);
        }
        Ok(LabelColumn {
            hierarchy: self.hierarchy.clone(),
            starts: Values::Held(starts),
            labels: Values::Held(labels),
        })
    }

    /// The labels of a row, ascending; `None` where they are unknown.
    #[inline(always)]
    pub fn of(&self, row: usize) -> Option<&[u32]> {
        match &self.labels[self.starts[row] as usize..self.starts[row + 1] as usize] {
            [UNKNOWN] => None,
            labels => Some(labels),
        }
    }

    /// Returns true if a row has a label; `None` where that is unknown.
    pub fn has(&self, row: usize, label: u32) -> Option<bool> {
        self.of(row).map(|labels| labels.binary_search(&label).is_ok())
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the labels of some row are unknown.
    pub fn has_missing(&self) -> bool {
        (0..self.len()).any(|row| self.of(row).is_none())
    }

    /// Lets clones have the sets in common.
    pub fn share(&mut self) {
        self.starts.share();
        self.labels.share();
    }

    /// Bytes of the numbers of labels.
    pub fn label_bytes(&self) -> usize {
        size_of_val(&self.labels[..])
    }

    /// The largest mean number of labels of a row over `rows` consecutive rows, rounded up.
    pub fn most_mean_len(&self, rows: usize) -> usize {
        let of_block = |first: usize| {
            let end = self.len().min(first + rows);
            (self.starts[end] - self.starts[first]) as usize
        };
        (0..self.len()).step_by(rows).map(of_block).max().unwrap_or(0).div_ceil(rows.min(self.len().max(1)))
    }

    /// Labels of a row, on average, rounded up.
    pub fn mean_len(&self) -> usize {
        self.labels.len().div_ceil(self.len().max(1))
    }

    /// For each label its share of the weight of all labels that rows have; 0 for one that no row has.
    pub fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.hierarchy.names().len()];
        for &label in self.labels.iter().filter(|label| **label != UNKNOWN) {
            shares[label as usize] = self.hierarchy.weights()[label as usize];
        }
        let total: f64 = shares.iter().sum();
        shares.iter_mut().filter(|share| **share > 0.0).for_each(|share| *share /= total);
        shares
    }
}

/// `labels` as an offset.
fn offset(labels: usize) -> Result<u32> {
    u32::try_from(labels).map_err(|_| {
        Error::Data(format!(
            "the rows have more than {} labels together, those above them counted; take a part of the rows",
            u32::MAX
        ))
    })
}

/// The weight of the labels that one of two ascending sets has and the other has not, and of those that
/// both have.
pub fn compare(a: &[u32], b: &[u32], weights: &[f64]) -> (f64, f64) {
    let (mut one, mut both) = (0.0, 0.0);
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (x, y) = (a.get(i).copied().unwrap_or(u32::MAX), b.get(j).copied().unwrap_or(u32::MAX));
        let sum = if x == y { &mut both } else { &mut one };
        *sum += weights[x.min(y) as usize];
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    (one, both)
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int32Array, ListViewArray, StringArray};
    use arrow_cast::cast;

    use super::*;

    type Row<'a> = Option<Vec<&'a str>>;

    fn lists(rows: &[Row<'_>]) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        rows.iter().for_each(|row| lists.append_option(row.as_ref().map(|row| row.iter().map(Some))));
        Arc::new(lists.finish())
    }

    fn read(array: &ArrayRef) -> Vec<Option<Vec<String>>> {
        let sets = LabelSets::from_array(array, &Reservation::new(None)).unwrap();
        let set = |set: &[u32]| set.iter().map(|&position| sets.texts[position as usize].to_string()).collect();
        sets.rows().map(|row| row.map(set)).collect()
    }

    fn owned(rows: &[Row<'_>]) -> Vec<Option<Vec<String>>> {
        rows.iter().map(|row| row.as_ref().map(|row| row.iter().map(|label| label.to_string()).collect())).collect()
    }

    fn hierarchy() -> Arc<Hierarchy> {
        Arc::new(Hierarchy::from_paths(["a/b", "a/c", "d"], 0.5).unwrap())
    }

    #[test]
    fn lists_and_texts_hold_the_same_sets() {
        let rows = [Some(vec!["d", "a/b"]), None, Some(vec![]), Some(vec!["d"]), Some(vec!["a"])];
        let texts = [Some("d@a/b"), None, Some(""), Some(" d "), Some("a")];
        let plain: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let dictionary: ArrayRef = Arc::new(texts.into_iter().collect::<DictionaryArray<Int8Type>>());
        let short = lists(&rows);
        let DataType::List(item) = short.data_type() else { panic!() };
        let long = cast(&short, &DataType::LargeList(item.clone())).unwrap();
        for array in [&short, &long, &plain, &dictionary] {
            assert_eq!(read(array), owned(&rows), "{}", array.data_type());
            assert_eq!(read(&array.slice(2, 2)), owned(&rows[2..4]), "a slice of {}", array.data_type());
        }
        assert_eq!(
            LabelSets::from_array(&short.slice(3, 1), &Reservation::new(None)).unwrap().texts,
            ["d"],
            "labels of other rows are none"
        );
        let rows = [Some(vec!["a", "d"])];
        for other in [DataType::FixedSizeList(item.clone(), 2), DataType::ListView(item.clone())] {
            let array = cast(&lists(&rows), &other).unwrap();
            assert!(crate::column::is_text_list(&other));
            assert_eq!(read(&array), owned(&rows), "{other}");
        }
    }

    #[test]
    fn a_list_must_not_miss_a_label() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), None]);
        let error =
            LabelSets::from_array(&(Arc::new(lists.finish()) as ArrayRef), &Reservation::new(None)).unwrap_err();
        assert!(error.to_string().contains("misses one"), "{error}");
    }

    #[test]
    fn sets_are_closed_and_labels_that_occur_share_the_weight() {
        let mut column = LabelColumn::new(hierarchy(), 3);
        column.add(&lists(&[Some(vec!["a/b", "a/b"]), Some(vec![])]), None).unwrap();
        column.add(&lists(&[None, Some(vec!["d", "a"])]), None).unwrap();
        let rows: Vec<Option<&[u32]>> = (0..4).map(|row| column.of(row)).collect();
        assert_eq!(rows, [Some(&[0, 1][..]), Some(&[]), None, Some(&[0, 3])]);
        assert_eq!(
            [(0, 1), (1, 1), (2, 1)].map(|(row, label)| column.has(row, label)),
            [Some(true), Some(false), None]
        );
        assert_eq!(column.shares(), [0.4, 0.2, 0.0, 0.4]);
        // Of the row that is not known, too.
        assert_eq!([1, 2, 4, 9].map(|rows| column.most_mean_len(rows)), [2, 2, 2, 2]);
        assert_eq!((column.mean_len(), column.label_bytes()), (2, 20));
        let error = column.add(&lists(&[Some(vec!["a/d"])]), None).unwrap_err().to_string();
        assert!(error.contains("'a/d' is not one of the 4") && error.contains("'a/b'"), "{error}");
    }

    #[test]
    fn rows_that_share_their_labels_are_counted_before_they_are_held() {
        // A text of 2,000 labels, of which each is one of 5,000 rows' own.
        let names: Vec<String> = (0..2_000).map(|n| format!("{n:04}")).collect();
        let hierarchy = Arc::new(Hierarchy::from_paths(names.iter().map(String::as_str), 0.5).unwrap());
        let text: ArrayRef = Arc::new(StringArray::from(vec![names.join("@")]));
        let keys = Int32Array::from(vec![0; 5_000]);
        let shared: ArrayRef = Arc::new(DictionaryArray::new(keys, text));
        let add = |memory| LabelColumn::new(hierarchy.clone(), 0).add(&shared, Some(memory));
        let error = add(1).unwrap_err().to_string();
        assert!(error.contains("do not do for the label sets of rows"), "{error}");
        add(1 << 40).unwrap();
        // Views of the same labels are not copied one by one.
        let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let (starts, sizes) = (vec![0i32; 5_000].into(), vec![2_000i32; 5_000].into());
        let names: ArrayRef = Arc::new(StringArray::from(names));
        let views: ArrayRef = Arc::new(ListViewArray::new(field, starts, sizes, names, None));
        assert!(matches!(LabelSets::from_array(&views, &Reservation::new(Some(1))), Err(Error::Resource(_))));
        assert_eq!(
            LabelSets::from_array(&views, &Reservation::new(Some(1 << 40))).unwrap().positions.len(),
            10_000_000
        );
    }

    #[test]
    fn sets_are_compared_by_weight() {
        let weights = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(compare(&[0, 2], &[1, 2, 3], &weights), (11.0, 4.0));
        assert_eq!(compare(&[], &[], &weights), (0.0, 0.0));
        assert_eq!(compare(&[3], &[], &weights), (8.0, 0.0));
    }
}
