//! Values of one column of one batch, whatever its Arrow type.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use ferrank_runtime::error::{Error, Result};

/// Position of a missing category.
pub const MISSING: u32 = u32::MAX;

/// The numbers of `array`, appended to `out`; NaN where missing. Booleans are 0 and 1, dates are days since 1970-01-01,
/// times are seconds: since then, since midnight, or of a duration.
///
/// # Errors
/// [`Error::Data`] where a value does not convert, without the column's name: the caller adds it.
pub fn numeric_values(array: &ArrayRef, out: &mut Vec<f64>) -> Result<()> {
    if *array.data_type() == DataType::Null {
        out.resize(out.len() + array.len(), f64::NAN);
        return Ok(());
    }
    let start = out.len();
    if let Some((counts, unit)) = counted(array.data_type()) {
        numeric_values(&cast(array, &counts).map_err(unreadable)?, out)?;
        out[start..].iter_mut().for_each(|value| *value /= unit);
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
    Error::Data(format!("the value {found} was found; use finite numbers, leave it missing, or drop the column"))
}

/// True for dates, times and durations.
pub fn is_time(data_type: &DataType) -> bool {
    counted(data_type).is_some()
}

/// The integers that a date, time or duration is kept as, and how many of them are a day (dates) or a second.
fn counted(data_type: &DataType) -> Option<(DataType, f64)> {
    let unit = match data_type {
        DataType::Date32 => return Some((DataType::Int32, 1.0)),
        DataType::Date64 => return Some((DataType::Int64, 86_400_000.0)),
        DataType::Time32(unit) => return Some((DataType::Int32, in_second(unit))),
        DataType::Time64(unit) | DataType::Timestamp(unit, _) | DataType::Duration(unit) => unit,
        _ => return None,
    };
    Some((DataType::Int64, in_second(unit)))
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
#[derive(Debug)]
pub struct Categories<'a> {
    /// The texts that occur, each once, in the order of their first row.
    pub texts: Vec<Cow<'a, str>>,
    /// n_rows; position in `texts`, or [`MISSING`].
    pub index: Vec<u32>,
}

/// The categories of `array`: strings as they are, numbers and booleans by their shortest text.
pub fn categories(array: &ArrayRef) -> Result<Categories<'_>> {
    match array.data_type() {
        DataType::Utf8 => Ok(collect(array.as_string::<i32>().iter().map(|text| text.map(Cow::Borrowed)))),
        DataType::LargeUtf8 => Ok(collect(array.as_string::<i64>().iter().map(|text| text.map(Cow::Borrowed)))),
        DataType::Utf8View => Ok(collect(array.as_string_view().iter().map(|text| text.map(Cow::Borrowed)))),
        DataType::Dictionary(..) => dictionary(array),
        DataType::Boolean => Ok(collect(
            array.as_boolean().iter().map(|value| value.map(|v| Cow::Borrowed(if v { "true" } else { "false" }))),
        )),
        _ => {
            let mut buffer = Vec::new();
            let values = numbers(array, &mut buffer)?;
            // Adding 0 turns -0 into 0, so that the two are one category.
            let number = |v: &f64| (!v.is_nan()).then(|| Cow::Owned((v + 0.0).to_string()));
            Ok(collect(values.iter().map(number)))
        }
    }
}

fn dictionary(array: &ArrayRef) -> Result<Categories<'_>> {
    let dictionary = array.as_any_dictionary();
    if dictionary.values().is_empty() {
        return Ok(Categories { texts: Vec::new(), index: vec![MISSING; array.len()] });
    }
    let entries = categories(dictionary.values())?;
    let mut position = vec![MISSING; entries.texts.len()];
    let mut order = Vec::new();
    let keys = dictionary.normalized_keys();
    let index = keys
        .into_iter()
        .enumerate()
        .map(|(row, key)| {
            if dictionary.is_null(row) || entries.index[key] == MISSING {
                return MISSING;
            }
            let entry = entries.index[key] as usize;
            if position[entry] == MISSING {
                position[entry] = order.len() as u32;
                order.push(entry);
            }
            position[entry]
        })
        .collect();
    let mut texts: Vec<Option<Cow<'_, str>>> = entries.texts.into_iter().map(Some).collect();
    let texts = order.into_iter().filter_map(|entry| texts[entry].take()).collect();
    Ok(Categories { texts, index })
}

fn collect<'a>(values: impl Iterator<Item = Option<Cow<'a, str>>>) -> Categories<'a> {
    let mut position: HashMap<Cow<'a, str>, u32> = HashMap::new();
    let mut texts = Vec::new();
    let index = values
        .map(|value| {
            let Some(text) = value else { return MISSING };
            if let Some(&found) = position.get(&text) {
                return found;
            }
            let next = texts.len() as u32;
            texts.push(text.clone());
            position.insert(text, next);
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
        BooleanArray, Date32Array, Date64Array, DictionaryArray, DurationNanosecondArray, Float32Array, Int64Array,
        NullArray, StringArray, Time32SecondArray, TimestampMillisecondArray,
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
    fn dates_are_days_and_times_are_seconds() {
        assert_eq!(numbers(Arc::new(Date32Array::from(vec![3]))), [3.0]);
        assert_eq!(numbers(Arc::new(Date64Array::from(vec![3 * 86_400_000]))), [3.0]);
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
    fn equal_numbers_are_one_category_whatever_their_type() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![0, 2]));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, 2.0]));
        assert_eq!(categories(&ints).unwrap().texts, categories(&floats).unwrap().texts);
    }
}
