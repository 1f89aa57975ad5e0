//! Groups of rows: rows with the same value in one column, such as the visits of a patient.
//!
//! A group is known by a 64-bit hash of the text of its value, so that the type of the column makes no difference: the
//! integer 7, the number 7.0 and the string "7" are the same group. Groups are numbered in the order of their first
//! rows.
//!
//! Memory: eight bytes for each row while a store is assembled, then four, in memory or in scratch files; about 40 for
//! each group.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int64Array, StringArray};
//! use ferrank_data::groups::{GroupProfile, Groups, Members, group_hashes};
//! use ferrank_data::values::{Keep, Values};
//!
//! let patients: ArrayRef = Arc::new(StringArray::from(vec!["7", "3", "7", "7"]));
//! let hashes = group_hashes(&patients)?;
//! assert_eq!(hashes, group_hashes(&(Arc::new(Int64Array::from(vec![7, 3, 7, 7])) as ArrayRef))?);
//! let groups = Groups::new(&[Values::Held(hashes.clone())], "table", Keep::Memory)?;
//! assert_eq!((&groups.of_row[..], &groups.sizes[..]), (&[0, 1, 0, 0][..], &[3, 1][..]));
//! let members: Members = groups.members();
//! assert_eq!(members.of(0), [0, 2, 3]);
//!
//! // The merged profiles of the parts equal the profile of all rows.
//! let profile = |rows: std::ops::Range<usize>| {
//!     let mut profile = GroupProfile::new("patient");
//!     profile.add(&hashes[rows.clone()], rows.start as u64);
//!     profile
//! };
//! let mut merged = profile(2..4);
//! merged.merge(&profile(0..2));
//! assert_eq!(merged, profile(0..4));
//! # Ok::<(), ferrank_data::Error>(())
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{Display, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::column::numbers;
use crate::values::{Keep, Values};
use ferrank_runtime::error::{Error, Result};

/// The number of each row's group.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, StringArray};
/// use ferrank_data::groups::{Groups, group_hashes};
/// use ferrank_data::values::{Keep, Values};
///
/// let patients: ArrayRef = Arc::new(StringArray::from(vec!["Ana", "Eva", "Ana"]));
/// let groups = Groups::new(&[Values::Held(group_hashes(&patients)?)], "table", Keep::Memory)?;
/// assert_eq!(groups.of_row[..], [0, 1, 0]);
/// assert_eq!((groups.len(), &groups.sizes[..]), (2, &[2, 1][..]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Groups {
    /// n_rows.
    pub of_row: Values<u32>,
    /// n_groups; the rows of each.
    pub sizes: Vec<u64>,
}

/// What a profile says of the groups.
///
/// ```
/// use ferrank_data::groups::GroupProfile;
///
/// let of = |hashes: &[u64], first_row| {
///     let mut profile = GroupProfile::new("patient");
///     profile.add(hashes, first_row);
///     profile
/// };
/// let mut profile = of(&[3, 7], 1);
/// profile.merge(&of(&[7], 0));
/// assert_eq!(profile.digest(), of(&[7, 3, 7], 0).digest());
/// assert_ne!(profile.digest(), of(&[7, 7, 3], 0).digest());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupProfile {
    /// Name of the column.
    pub name: String,
    /// A hash of which row is of which group; those of parts add up.
    digest: u64,
}

impl GroupProfile {
    /// The groups of no rows, in the column called `name`.
    pub fn new(name: &str) -> Self {
        GroupProfile { name: name.into(), digest: 0 }
    }

    /// Takes rows from number `first_row` on, whose groups have these `hashes`.
    pub fn add(&mut self, hashes: &[u64], first_row: u64) {
        for (row, hash) in (first_row..).zip(hashes) {
            let bytes = [row.to_le_bytes(), hash.to_le_bytes()];
            self.digest = self.digest.wrapping_add(xxh3_64(bytes.as_flattened()));
        }
    }

    /// Takes the rows of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.digest = self.digest.wrapping_add(other.digest);
    }

    /// The hash of which row is of which group.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

impl Groups {
    /// Numbers the groups with these `hashes`, n_rows in any pieces, of the source called `name`.
    ///
    /// # Errors
    /// [`Error::Data`] for more groups than 32 bits can count, [`Error::File`] if the disk is full.
    pub fn new(hashes: &[Values<u64>], name: &str, keep: Keep<'_>) -> Result<Self> {
        let (mut numbers, mut sizes) = (HashMap::<u64, u32>::new(), Vec::new());
        let mut last = None;
        let mut number = |hash: u64| {
            // Rows of a group often follow each other.
            let number = match last {
                Some((known, number)) if known == hash => number,
                _ => match numbers.entry(hash) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        sizes.push(0);
                        *new.insert(sizes.len().wrapping_sub(1) as u32)
                    }
                },
            };
            last = Some((hash, number));
            sizes[number as usize] += 1u64;
            number
        };
        let pieces = hashes.iter().map(|piece| piece.iter().map(|&hash| number(hash)).collect::<Vec<u32>>());
        let of_row = match keep {
            Keep::Memory => Values::Held(pieces.flatten().collect()),
            Keep::Scratch(scratch) => Values::Mapped(scratch.values(pieces)?),
        };
        // Numbers wrap around only where this fails.
        if sizes.len() >= u32::MAX as usize {
            return Err(Error::Data(format!(
                "{name}: {} groups; at most {} can be kept together, take a part of the rows",
                sizes.len(),
                u32::MAX - 1
            )));
        }
        Ok(Groups { of_row, sizes })
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The rows, group by group.
    pub fn members(&self) -> Members {
        let mut starts = vec![0; self.len() + 1];
        for (group, &size) in self.sizes.iter().enumerate() {
            starts[group + 1] = starts[group] + size as usize;
        }
        let mut next = starts.clone();
        let mut rows = vec![0; self.of_row.len()];
        for (row, &group) in (0..).zip(self.of_row.iter()) {
            rows[next[group as usize]] = row;
            next[group as usize] += 1;
        }
        Members { rows, starts }
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }
}

/// The rows of each group, ascending until they are shuffled.
///
/// ```
/// use ferrank_data::groups::Groups;
/// use ferrank_data::values::{Keep, Values};
///
/// let hashes = Values::Held(vec![7, 3, 7, 7]);
/// let mut members = Groups::new(&[hashes], "table", Keep::Memory)?.members();
/// assert_eq!((members.of(0), members.of(1)), (&[0, 2, 3][..], &[1][..]));
/// members.of_mut(0).reverse();
/// assert_eq!((members.of(0), members.of(1)), (&[3, 2, 0][..], &[1][..]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Members {
    /// n_rows; those of a group follow each other.
    rows: Vec<u32>,
    /// n_groups + 1; where those of each group start.
    starts: Vec<usize>,
}

impl Members {
    /// Number of groups.
    pub fn n_groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a group.
    pub fn of(&self, group: usize) -> &[u32] {
        &self.rows[self.starts[group]..self.starts[group + 1]]
    }

    /// The rows of a group, to be brought into another order.
    pub fn of_mut(&mut self, group: usize) -> &mut [u32] {
        &mut self.rows[self.starts[group]..self.starts[group + 1]]
    }
}

/// Returns true if a column of this type can say which group a row is of.
pub fn can_group(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => can_group(values),
        DataType::Null => true,
        nested if nested.is_nested() => false,
        other => can_cast_types(other, &DataType::Utf8),
    }
}

/// The hash of each row's group.
///
/// # Errors
/// [`Error::Data`] if a row has none, without the column's name: the caller adds it.
pub fn group_hashes(array: &ArrayRef) -> Result<Vec<u64>> {
    let hashes = hashes(array)?;
    let missing = hashes.iter().filter(|hash| hash.is_none()).count();
    if missing > 0 {
        return Err(Error::Data(format!(
            "{missing} of {} rows that were read together have no group; leave these rows out, or give each of them a \
             group of its own",
            hashes.len()
        )));
    }
    Ok(hashes.into_iter().flatten().collect())
}

/// The hash of each row's value, `None` where it is missing.
fn hashes(array: &ArrayRef) -> Result<Vec<Option<u64>>> {
    let unreadable = |error: arrow_schema::ArrowError| Error::Data(error.to_string());
    let as_type = |wanted: &DataType| {
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, wanted, &exact).map_err(unreadable)
    };
    let mut text = Text::default();
    Ok(match array.data_type() {
        DataType::Null => vec![None; array.len()],
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(vec![None; array.len()]);
            }
            let values = hashes(dictionary.values())?;
            let keys = dictionary.normalized_keys();
            keys.into_iter().enumerate().map(|(row, key)| dictionary.is_valid(row).then(|| values[key])?).collect()
        }
        unsigned if unsigned.is_unsigned_integer() => {
            let values = as_type(&DataType::UInt64)?;
            values.as_primitive::<UInt64Type>().iter().map(|value| Some(text.hash(value?))).collect()
        }
        signed if signed.is_signed_integer() => {
            let values = as_type(&DataType::Int64)?;
            values.as_primitive::<Int64Type>().iter().map(|value| Some(text.hash(value?))).collect()
        }
        floating if floating.is_floating() => {
            let mut buffer = Vec::new();
            // Adding 0 turns -0 into 0, so that the two are one group.
            let number = |value: &f64| (!value.is_nan()).then(|| text.hash(value + 0.0));
            numbers(array, &mut buffer)?.iter().map(number).collect()
        }
        _ => {
            let texts = as_type(&DataType::LargeUtf8)?;
            texts.as_string::<i64>().iter().map(|text| Some(xxh3_64(text?.as_bytes()))).collect()
        }
    })
}

/// A buffer for the text of a number.
#[derive(Default)]
struct Text(String);

impl Text {
    fn hash(&mut self, value: impl Display) -> u64 {
        self.0.clear();
        write!(self.0, "{value}").expect("a string takes any text");
        xxh3_64(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array, ListArray, StringArray, UInt8Array,
    };
    use ferrank_runtime::scratch::Scratch;

    use super::*;

    #[test]
    fn a_group_is_the_same_in_every_type() {
        let columns: [ArrayRef; 5] = [
            Arc::new(StringArray::from(vec!["3", "0", "3"])),
            Arc::new(["3", "0", "3"].into_iter().collect::<DictionaryArray<Int8Type>>()),
            Arc::new(Int64Array::from(vec![3, 0, 3])),
            Arc::new(UInt8Array::from(vec![3, 0, 3])),
            Arc::new(Float64Array::from(vec![3.0, -0.0, 3.0])),
        ];
        let expected = [xxh3_64(b"3"), xxh3_64(b"0"), xxh3_64(b"3")];
        columns.iter().for_each(|column| assert_eq!(group_hashes(column).unwrap(), expected));
    }

    #[test]
    fn large_integers_are_told_apart_and_other_types_have_groups_too() {
        let large: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX - 1]));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![1, 2]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        for column in [large, days, flags] {
            assert!(can_group(column.data_type()));
            let found = group_hashes(&column).unwrap();
            assert_ne!(found[0], found[1]);
        }
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
        assert!(!can_group(lists.data_type()));
    }

    #[test]
    fn a_row_without_a_group_is_an_error() {
        let dictionary: DictionaryArray<Int8Type> = [Some("a"), None].into_iter().collect();
        let columns: [ArrayRef; 4] = [
            Arc::new(StringArray::from(vec![Some("a"), None])),
            Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
            Arc::new(Int64Array::from(vec![None, Some(1)])),
            Arc::new(dictionary),
        ];
        for column in columns {
            assert!(group_hashes(&column).unwrap_err().to_string().contains("1 of 2 rows"));
        }
    }

    #[test]
    fn groups_are_numbered_by_their_first_rows_in_any_pieces() {
        let hashes = [7, 7, 3, 9, 7, 3];
        let scratch = Scratch::new(None);
        for cut in 0..=hashes.len() {
            let (first, second) = hashes.split_at(cut);
            let pieces = [Values::Held(first.to_vec()), Values::Held(second.to_vec())];
            for keep in [Keep::Memory, Keep::Scratch(&scratch)] {
                let groups = Groups::new(&pieces, "table", keep).unwrap();
                assert_eq!(*groups.of_row, [0, 0, 1, 2, 0, 1]);
                assert_eq!(groups.sizes, [3, 2, 1]);
            }
        }
    }

    #[test]
    fn the_digest_adds_up_and_depends_on_every_row() {
        let digest = |hashes: &[u64]| {
            let mut profile = GroupProfile::new("g");
            profile.add(hashes, 0);
            profile.digest()
        };
        let [mut one, mut two] = [GroupProfile::new("g"), GroupProfile::new("g")];
        one.add(&[1, 2], 0);
        two.add(&[3], 2);
        two.merge(&one);
        assert_eq!(two.digest(), digest(&[1, 2, 3]));
        assert_ne!(digest(&[1, 2, 3]), digest(&[1, 3, 2]));
    }
}
