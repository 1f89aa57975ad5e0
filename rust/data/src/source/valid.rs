//! Values that the layout of Arrow allows, and its types do not.
//!
//! The decoders check lengths, offsets, keys and UTF-8, and leave it to the reader what the numbers mean.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, GenericListViewArray, OffsetSizeTrait, RecordBatch, UnionArray};
use arrow_schema::{DataType, TimeUnit};

use super::checked::Checked;

/// Bytes of text that views may stand for, beside [`MOST_SHARED`] times of those that they share.
pub(super) const MOST_TEXT: usize = 256 << 20;
/// Items that list views may stand for, beside [`MOST_SHARED`] times of those that they share. Labels take four bytes.
const MOST_ITEMS: usize = 16 << 20;
const MOST_SHARED: usize = 64;

const DAY_IN_SECONDS: i64 = 86_400;

/// Checks the values of `batch`, which a decoder has read from foreign bytes.
pub(super) fn check(batch: &RecordBatch) -> Checked<()> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        check_array(column).map_err(|what| format!("the column '{}': {what}", field.name()))?;
    }
    Ok(())
}

fn check_array(array: &ArrayRef) -> Checked<()> {
    match array.data_type() {
        DataType::Time32(unit) => match unit {
            TimeUnit::Second => times::<Time32SecondType>(array, 1),
            _ => times::<Time32MillisecondType>(array, 1_000),
        },
        DataType::Time64(unit) => match unit {
            TimeUnit::Microsecond => times::<Time64MicrosecondType>(array, 1_000_000),
            _ => times::<Time64NanosecondType>(array, 1_000_000_000),
        },
        DataType::Date64 => {
            let is_day = |value: i64| value % (1_000 * DAY_IN_SECONDS) == 0;
            known::<Date64Type>(array, is_day, "which is no whole day")
        }
        DataType::Decimal32(..) => digits::<Decimal32Type>(array),
        DataType::Decimal64(..) => digits::<Decimal64Type>(array),
        DataType::Decimal128(..) => digits::<Decimal128Type>(array),
        DataType::Decimal256(..) => digits::<Decimal256Type>(array),
        DataType::Dictionary(..) => check_array(array.as_any_dictionary().values()),
        DataType::List(_) => check_array(array.as_list::<i32>().values()),
        DataType::LargeList(_) => check_array(array.as_list::<i64>().values()),
        DataType::ListView(_) => lists(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => lists(array.as_list_view::<i64>()),
        DataType::FixedSizeList(..) => check_array(array.as_fixed_size_list().values()),
        DataType::Map(..) => array.as_map().entries().columns().iter().try_for_each(check_array),
        DataType::Struct(_) => array.as_struct().columns().iter().try_for_each(check_array),
        DataType::Union(..) => unions(array.as_union()),
        _ => Ok(()),
    }
}

/// Checks that all known values are `valid`; the error says what an invalid one is.
fn known<T: ArrowPrimitiveType>(array: &ArrayRef, valid: impl Fn(T::Native) -> bool, what: &str) -> Checked<()> {
    match array.as_primitive::<T>().iter().flatten().find(|&value| !valid(value)) {
        Some(found) => Err(format!("{} has the value {found:?}, {what}", array.data_type())),
        None => Ok(()),
    }
}

/// Checks times, of which `in_second` are a second.
fn times<T: ArrowPrimitiveType>(array: &ArrayRef, in_second: i64) -> Checked<()>
where
    i64: From<T::Native>,
{
    known::<T>(array, |value| (0..DAY_IN_SECONDS * in_second).contains(&i64::from(value)), "which is no time of a day")
}

fn digits<T: DecimalType>(array: &ArrayRef) -> Checked<()> {
    let decimals = array.as_primitive::<T>();
    let (precision, scale) = (decimals.precision(), decimals.scale());
    known::<T>(
        array,
        |value| T::validate_decimal_precision(value, precision, scale).is_ok(),
        "which has more digits than the type",
    )
}

fn lists<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> Checked<()> {
    let all = array.sizes().iter().map(|size| size.as_usize()).sum();
    check_shared(all, array.values().len(), MOST_ITEMS, "items of lists")?;
    check_array(array.values())
}

/// Checks that what is `stored` is not used for much more, `all`.
pub(super) fn check_shared(all: usize, stored: usize, most: usize, of: &str) -> Checked<()> {
    match all > most.saturating_add(stored.saturating_mul(MOST_SHARED)) {
        true => Err(format!("its {stored} {of} are used for {all}; write each row's own")),
        false => Ok(()),
    }
}

/// Checks that the places of rows in the children of a dense union ascend, as the format has it.
fn unions(array: &UnionArray) -> Checked<()> {
    if let Some(places) = array.offsets() {
        let mut last = [i32::MIN; 256];
        for (&id, &place) in array.type_ids().iter().zip(places.iter()) {
            let last = &mut last[usize::from(id as u8)];
            if place < *last {
                return Err("the places of a union descend".into());
            }
            *last = place;
        }
    }
    let DataType::Union(fields, _) = array.data_type() else { return Ok(()) };
    fields.iter().try_for_each(|(id, _)| check_array(array.child(id)))
}
