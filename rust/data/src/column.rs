//! Values of one column of one batch, whatever its Arrow type.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, UInt64Array, downcast_dictionary_array};
use arrow_buffer::ArrowNativeType;
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use rustc_hash::FxHashMap;

use ferrank_runtime::error::{Error, Result};

/// Position of a missing category.
pub const MISSING: u32 = u32::MAX;
/// Texts that are compared one by one.
const COMPARED: usize = 8;
/// Entries of a dictionary that have a table of places, however few the rows are.
const TABLE_ENTRIES: usize = 256;

/// The numbers of `array`, appended to `out`; NaN where missing. Booleans are 0 and 1. Dates and times are seconds: since
/// 1970-01-01, since midnight, or of a duration.
///
/// # Errors
/// [`Error::Data`] where a value does not convert, without the column's name: the caller adds it.
pub fn numeric_values(array: &ArrayRef, out: &mut Vec<f64>) -> Result<()> {
    if *array.data_type() == DataType::Null {
        out.resize(out.len() + array.len(), f64::NAN);
        return Ok(());
    }
    let start = out.len();
    if let Some((integers, [factor, divisor])) = counted(array.data_type()) {
        numeric_values(&cast(array, &integers).map_err(unreadable)?, out)?;
        out[start..].iter_mut().for_each(|value| *value = *value * factor / divisor);
        return Ok(());
    }
    let nulls = if let Some(floats) = array.as_primitive_opt::<Float32Type>() {
        // The usual type; a column of it is gone through once.
        out.extend(floats.values().iter().map(|&value| f64::from(value)));
        floats.nulls().cloned()
    } else {
        let floats = cast(array, &DataType::Float64).map_err(unreadable)?;
        let floats = floats.as_primitive::<Float64Type>();
        out.extend_from_slice(floats.values());
        floats.nulls().cloned()
    };
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        for (value, known) in out[start..].iter_mut().zip(&nulls) {
            if !known {
                *value = f64::NAN;
            }
        }
    }
    Ok(())
}

/// The numbers of `array`, as [`numeric_values`] gives them: without a copy if they are f64 without nulls, otherwise
/// converted into `buffer`.
pub fn numbers<'a>(array: &'a ArrayRef, buffer: &'a mut Vec<f64>) -> Result<&'a [f64]> {
    if let Some(floats) = array.as_primitive_opt::<Float64Type>().filter(|floats| floats.null_count() == 0) {
        return Ok(floats.values());
    }
    buffer.clear();
    numeric_values(array, buffer)?;
    Ok(buffer)
}

/// Rows whose numbers are converted at a time. So many f64, 64 KiB, stay in the cache of a core. The C library's allocator
/// reuses blocks of this size; larger ones it may take from the system each time, as it does in workers of dask from
/// 128 KiB on, and their pages have to be cleared.
const PIECE: usize = 8_192;

/// Calls `each` with the numbers of `array`, as [`numeric_values`] gives them, piece by piece, and the row where the
/// piece begins.
pub(crate) fn for_pieces(array: &ArrayRef, mut each: impl FnMut(usize, &[f64]) -> Result<()>) -> Result<()> {
    let mut buffer = Vec::new();
    for first in (0..array.len()).step_by(PIECE) {
        let piece = array.slice(first, PIECE.min(array.len() - first));
        each(first, numbers(&piece, &mut buffer)?)?;
    }
    Ok(())
}

/// # Errors
/// [`Error::Data`] if one of `values` is infinite, without the column's name: the caller adds it.
pub fn check_finite(values: &[f64]) -> Result<()> {
    match values.iter().find(|value| value.is_infinite()) {
        Some(&found) => Err(not_finite(found)),
        None => Ok(()),
    }
}

/// The error of a column in which `found` was found.
pub(crate) fn not_finite(found: f64) -> Error {
    Error::Data(format!("the value {found} was found; use finite numbers, or leave it missing"))
}

/// True for dates, times and durations.
pub fn is_time(data_type: &DataType) -> bool {
    counted(data_type).is_some()
}

/// The integer type that a date, time or duration is stored as, and a factor and a divisor that turn the integer into seconds.
fn counted(data_type: &DataType) -> Option<(DataType, [f64; 2])> {
    let unit = match data_type {
        DataType::Date32 => return Some((DataType::Int32, [86_400.0, 1.0])),
        DataType::Date64 => &TimeUnit::Millisecond,
        DataType::Time32(unit) => return Some((DataType::Int32, [1.0, in_second(unit)])),
        DataType::Time64(unit) | DataType::Timestamp(unit, _) | DataType::Duration(unit) => unit,
        _ => return None,
    };
    Some((DataType::Int64, [1.0, in_second(unit)]))
}

fn in_second(unit: &TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

/// For each row, true if its value is known: neither null nor NaN.
pub fn known_rows(array: &ArrayRef) -> Result<Vec<bool>> {
    if array.data_type().is_floating() {
        let mut buffer = Vec::new();
        return Ok(numbers(array, &mut buffer)?.iter().map(|v| !v.is_nan()).collect());
    }
    let nulls = array.logical_nulls();
    Ok((0..array.len()).map(|row| nulls.as_ref().is_none_or(|n| n.is_valid(row))).collect())
}

/// A column read as categories.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, StringArray};
/// use ferrank_data::column::{Categories, MISSING, categories};
///
/// let colors: ArrayRef = Arc::new(StringArray::from(vec![Some("red"), None, Some("blue"), Some("red")]));
/// let Categories { texts, index } = categories(&colors)?;
/// assert_eq!(texts, ["red", "blue"]);
/// assert_eq!(index, [0, MISSING, 1, 0]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Categories<'a> {
    /// The texts that occur, each once, in the order of their first row.
    pub texts: Vec<Cow<'a, str>>,
    /// n_rows; position in `texts`, or [`MISSING`].
    pub index: Vec<u32>,
}

/// The categories of `array`: strings as they are, numbers and booleans by their shortest text. Strings stay where they
/// are; what is taken is in proportion to the rows, however large a dictionary is.
pub fn categories(array: &ArrayRef) -> Result<Categories<'_>> {
    categories_in(array, 0..array.len())
}

/// The categories of the `rows` of `array`.
pub(crate) fn categories_in(array: &ArrayRef, rows: Range<usize>) -> Result<Categories<'_>> {
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => Ok(texts_of(array, rows)),
        DataType::Dictionary(..) => dictionary(array, rows),
        _ => {
            let (array, mut buffer) = (array.slice(rows.start, rows.len()), Vec::new());
            if let Some(texts) = exact_texts(&array)? {
                return Ok(collect(texts.into_iter().map(|text| text.map(Cow::Owned))));
            }
            let values = numbers(&array, &mut buffer)?;
            // Adding 0 turns -0 into 0, so that the two are one category.
            let number = |v: &f64| (!v.is_nan()).then(|| Cow::Owned((v + 0.0).to_string()));
            Ok(collect(values.iter().map(number)))
        }
    }
}

/// The texts of numbers of which f64 may not hold all digits; `None` for those of other types. A number that f64 holds
/// has the same text in all types.
fn exact_texts(array: &ArrayRef) -> Result<Option<Vec<Option<String>>>> {
    let integers = |array: &ArrayRef, text: &dyn Fn(i64) -> String| {
        array.as_primitive::<Int64Type>().iter().map(|value| value.map(text)).collect()
    };
    Ok(Some(match array.data_type() {
        DataType::Int64 => integers(array, &|value| value.to_string()),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().iter().map(|v| v.map(|v| v.to_string())).collect(),
        DataType::Time64(unit) | DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            let counts = cast(array, &DataType::Int64).map_err(unreadable)?;
            integers(&counts, &|value| in_seconds(value, in_second(unit) as u64))
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let texts = cast(array, &DataType::Utf8).map_err(unreadable)?;
            texts.as_string::<i32>().iter().map(|text| text.map(|text| without_zeros(text).to_string())).collect()
        }
        _ => return Ok(None),
    }))
}

/// The text of a time of `count` parts of a second, of which it has `in_second`.
fn in_seconds(count: i64, in_second: u64) -> String {
    let (whole, rest) = (count.unsigned_abs() / in_second, count.unsigned_abs() % in_second);
    let (sign, width) = (if count < 0 { "-" } else { "" }, in_second.ilog10() as usize);
    if rest == 0 { format!("{sign}{whole}") } else { without_zeros(&format!("{sign}{whole}.{rest:0width$}")).into() }
}

/// `text` without the zeros behind its last decimal.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A column of few categories: a dictionary of texts, most often.
#[derive(Debug)]
pub struct FewCategories<'a> {
    /// The text of each entry; `None` where it is missing. Entries may be equal, and some may occur in no row.
    pub texts: Vec<Option<&'a str>>,
    /// n_rows; number of the entry, or [`NO_ENTRY`].
    pub entries: Vec<u8>,
}

/// What stands in the place of the entry where a category is missing.
pub const NO_ENTRY: u8 = u8::MAX;

/// The categories of a dictionary of less than [`NO_ENTRY`] texts; `None` for other columns.
///
/// One pass over the keys, where [`categories`] takes several.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::types::Int8Type;
/// use arrow_array::{ArrayRef, DictionaryArray};
/// use ferrank_data::column::{NO_ENTRY, few_categories};
///
/// let colors: DictionaryArray<Int8Type> = [Some("red"), None, Some("blue"), Some("red")].into_iter().collect();
/// let colors: ArrayRef = Arc::new(colors);
/// let found = few_categories(&colors).expect("a dictionary");
/// assert_eq!(found.texts, [Some("red"), Some("blue")]);
/// assert_eq!(found.entries, [0, NO_ENTRY, 1, 0]);
/// ```
pub fn few_categories(array: &ArrayRef) -> Option<FewCategories<'_>> {
    let values = array.as_any_dictionary_opt()?.values();
    if values.is_empty() || values.len() >= usize::from(NO_ENTRY) {
        return None;
    }
    let texts = match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => values.as_string::<i64>().iter().collect(),
        DataType::Utf8View => values.as_string_view().iter().collect(),
        _ => return None,
    };
    fn entries<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> Vec<u8> {
        let (keys, last) = (array.keys(), array.values().len() - 1);
        let mut entries: Vec<u8> = keys.values().iter().map(|key| key.as_usize().min(last) as u8).collect();
        if let Some(nulls) = keys.nulls().filter(|nulls| nulls.null_count() > 0) {
            let missing = entries.iter_mut().zip(nulls).filter(|(_, known)| !known);
            missing.for_each(|(entry, _)| *entry = NO_ENTRY);
        }
        entries
    }
    let entries = downcast_dictionary_array!(
        array => entries(array),
        _ => unreachable!("a dictionary, as was seen")
    );
    Some(FewCategories { texts, entries })
}

/// The entries of a dictionary that the `rows` have, in the order of their first row, and for each row where its entry is
/// among these, or [`MISSING`].
fn used_entries<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, rows: Range<usize>) -> (Vec<usize>, Vec<u32>) {
    let (keys, n_entries) = (array.keys(), array.values().len());
    let mut used = Vec::new();
    let mut places = Vec::with_capacity(rows.len());
    // What is taken is in proportion to the rows.
    let mut table = vec![MISSING; if n_entries <= TABLE_ENTRIES.max(rows.len()) { n_entries } else { 0 }];
    let mut map: FxHashMap<usize, u32> = FxHashMap::default();
    for row in rows {
        if keys.is_null(row) {
            places.push(MISSING);
            continue;
        }
        let entry = keys.value(row).as_usize().min(n_entries - 1);
        let mut add = || {
            used.push(entry);
            used.len() as u32 - 1
        };
        places.push(match table.get_mut(entry) {
            Some(place) if *place == MISSING => {
                *place = add();
                *place
            }
            Some(place) => *place,
            None => *map.entry(entry).or_insert_with(add),
        });
    }
    (used, places)
}

fn dictionary(array: &ArrayRef, rows: Range<usize>) -> Result<Categories<'_>> {
    let values = array.as_any_dictionary().values();
    if values.is_empty() {
        return Ok(Categories { texts: Vec::new(), index: vec![MISSING; rows.len()] });
    }
    let (used, places) = downcast_dictionary_array!(
        array => used_entries(array, rows),
        _ => unreachable!("a dictionary, as the caller saw")
    );
    let Categories { texts, index } = match values.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
            texts_of(values, used.into_iter())
        }
        _ => {
            let used: UInt64Array = used.into_iter().map(|entry| entry as u64).collect();
            let values = take(values, &used, None).map_err(unreadable)?;
            let Categories { texts, index } = categories(&values)?;
            Categories { texts: texts.into_iter().map(|text| Cow::Owned(text.into_owned())).collect(), index }
        }
    };
    let entry = |place: u32| if place == MISSING { MISSING } else { index[place as usize] };
    Ok(Categories { texts, index: places.into_iter().map(entry).collect() })
}

/// The categories of the `rows` of an array of strings or booleans.
fn texts_of(array: &ArrayRef, rows: impl Iterator<Item = usize>) -> Categories<'_> {
    fn of<'a>(
        array: &'a ArrayRef,
        rows: impl Iterator<Item = usize>,
        text: impl Fn(usize) -> &'a str,
    ) -> Categories<'a> {
        collect(rows.map(|row| array.is_valid(row).then(|| Cow::Borrowed(text(row)))))
    }
    match array.data_type() {
        DataType::Utf8 => of(array, rows, |row| array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => of(array, rows, |row| array.as_string::<i64>().value(row)),
        DataType::Utf8View => of(array, rows, |row| array.as_string_view().value(row)),
        _ => of(array, rows, |row| if array.as_boolean().value(row) { "true" } else { "false" }),
    }
}

fn collect<'a>(values: impl Iterator<Item = Option<Cow<'a, str>>>) -> Categories<'a> {
    let mut position: HashMap<Cow<'a, str>, u32> = HashMap::new();
    let mut texts: Vec<Cow<'a, str>> = Vec::new();
    let index = values
        .map(|value| {
            let Some(text) = value else { return MISSING };
            // A few are compared in less time than they are hashed.
            let known = match position.is_empty() {
                true => texts.iter().position(|known| *known == text).map(|place| place as u32),
                false => position.get(&text).copied(),
            };
            if let Some(known) = known {
                return known;
            }
            let next = texts.len() as u32;
            if texts.len() == COMPARED {
                position.extend(texts.iter().cloned().zip(0..));
            }
            if texts.len() >= COMPARED {
                position.insert(text.clone(), next);
            }
            texts.push(text);
            next
        })
        .collect();
    Categories { texts, index }
}

fn unreadable(error: arrow_schema::ArrowError) -> Error {
    Error::Data(error.to_string())
}

/// Returns true for a type of strings, also as a dictionary.
pub fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Returns true for a type of lists of strings. Lists that are all empty have no item type, and count as well.
pub fn is_text_list(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => is_text(item.data_type()) || *item.data_type() == DataType::Null,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray, DurationNanosecondArray,
        Float32Array, Float64Array, Int64Array, NullArray, StringArray, Time32SecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray,
    };

    use super::*;

    fn numbers(array: ArrayRef) -> Vec<f64> {
        let mut out = Vec::new();
        numeric_values(&array, &mut out).unwrap();
        out
    }

    #[test]
    fn numbers_of_every_kind_become_f64_with_nan_for_null() {
        assert_eq!(numbers(Arc::new(Int64Array::from(vec![3, -1]))), [3.0, -1.0]);
        assert_eq!(numbers(Arc::new(BooleanArray::from(vec![true, false]))), [1.0, 0.0]);
        let floats = numbers(Arc::new(Float32Array::from(vec![Some(0.5), None])));
        assert!(floats[0] == 0.5 && floats[1].is_nan());
        assert!(numbers(Arc::new(NullArray::new(2))).iter().all(|v| v.is_nan()));
    }

    #[test]
    fn pieces_are_the_numbers_of_all_rows() {
        let known = |row: usize| (!row.is_multiple_of(7)).then_some(row as f32);
        let floats: ArrayRef = Arc::new((0..2 * PIECE + 5).map(known).collect::<Float32Array>());
        let (mut found, mut firsts) = (Vec::new(), Vec::new());
        for_pieces(&floats, |first, values| {
            firsts.push(first);
            found.extend(values.iter().map(|value| value.to_bits()));
            Ok(())
        })
        .unwrap();
        assert_eq!(firsts, [0, PIECE, 2 * PIECE]);
        assert_eq!(found, numbers(floats).iter().map(|value| value.to_bits()).collect::<Vec<_>>());
    }

    #[test]
    fn dates_and_times_are_seconds() {
        assert_eq!(numbers(Arc::new(Date32Array::from(vec![3]))), [3.0 * 86_400.0]);
        assert_eq!(numbers(Arc::new(Date64Array::from(vec![3 * 86_400_000]))), [3.0 * 86_400.0]);
        assert_eq!(numbers(Arc::new(TimestampMillisecondArray::from(vec![1_500]).with_timezone("+02:00"))), [1.5]);
        assert_eq!(numbers(Arc::new(DurationNanosecondArray::from(vec![-2_000_000_000]))), [-2.0]);
        assert_eq!(numbers(Arc::new(Time32SecondArray::from(vec![7]))), [7.0]);
        assert!(numbers(Arc::new(Date32Array::from(vec![None])))[0].is_nan());
    }

    #[test]
    fn strings_and_dictionaries_give_the_same_categories() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]));
        let dictionary: ArrayRef =
            Arc::new([Some("b"), None, Some("a"), Some("b")].into_iter().collect::<DictionaryArray<Int8Type>>());
        for array in [plain, dictionary] {
            let read = categories(&array).unwrap();
            assert_eq!(read.texts, ["b", "a"]);
            assert_eq!(read.index, [0, MISSING, 1, 0]);
        }
    }

    #[test]
    fn dictionary_entries_that_no_row_uses_are_no_categories() {
        let whole: DictionaryArray<Int8Type> = ["x", "y", "z"].into_iter().collect();
        let part: ArrayRef = Arc::new(whole.slice(1, 1));
        let read = categories(&part).unwrap();
        assert_eq!((read.texts, read.index), (vec![Cow::Borrowed("y")], vec![0]));
    }

    #[test]
    fn equal_entries_of_a_dictionary_are_one_category() {
        let keys = Int64Array::from(vec![Some(3), None, Some(0), Some(2), Some(1)]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("a"), Some("c")]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(8), Some(7), Some(9)]));
        for (values, want) in [(texts, ["a", "b"]), (numbers, ["7", "8"])] {
            let array: ArrayRef = Arc::new(DictionaryArray::new(keys.clone(), values));
            let read = categories(&array).unwrap();
            assert_eq!(read.texts, want);
            assert_eq!(read.index, [0, MISSING, 0, 1, MISSING]);
        }
    }

    #[test]
    fn equal_numbers_are_one_category_whatever_their_type() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![0, 2]));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, 2.0]));
        assert_eq!(categories(&ints).unwrap().texts, categories(&floats).unwrap().texts);
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_500, -250, 3_000]));
        let decimals: ArrayRef =
            Arc::new(Decimal128Array::from(vec![150, -25, 300]).with_precision_and_scale(9, 2).unwrap());
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.5, -0.25, 3.0]));
        for array in [times, decimals] {
            assert_eq!(categories(&array).unwrap().texts, categories(&floats).unwrap().texts);
        }
    }

    #[test]
    fn numbers_that_differ_are_two_categories_where_f64_holds_one() {
        let large = 1 << 53;
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![large, large + 1]));
        let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX - 1, u64::MAX]));
        let times: ArrayRef =
            Arc::new(TimestampNanosecondArray::from(vec![1_700_000_000_000_000_000, 1_700_000_000_000_000_001]));
        let decimals = Decimal128Array::from(vec![123_456_789_012_345_678_901, 123_456_789_012_345_678_902]);
        let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(38, 1).unwrap());
        for array in [ids, unsigned, times, decimals] {
            assert_eq!(categories(&array).unwrap().texts.len(), 2, "{}", array.data_type());
        }
    }
}
