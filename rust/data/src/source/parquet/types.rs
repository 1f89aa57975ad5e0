//! The Arrow types of the columns of a Parquet file.
//!
//! Parquet has no type for categories, durations, and some others. Arrow's writers keep the types that columns had as a
//! schema in the metadata. That schema may belong to another file, so that where the two contradict each other, the types
//! of the file decide; the schema says which columns were categories, and what integers and text stand for.

use std::mem::discriminant;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, FieldLevels, ProjectionMask, encode_arrow_schema, parquet_to_arrow_field_levels,
    parquet_to_arrow_schema,
};
use parquet::file::metadata::{FileMetaData, KeyValue};
use parquet::schema::types::SchemaDescriptor;
use tracing::warn;

use super::super::checked::{Checked, catch_decoder_panic};
use super::bytes::said;
use crate::row_labels::PANDAS;

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) schema: SchemaRef,
    /// How the decoder is asked to read them.
    asked: Fields,
}

impl Columns {
    /// The columns of the file that messages call `name`.
    pub(super) fn new(file: &FileMetaData, name: &str) -> Checked<Self> {
        let own = parquet_to_arrow_schema(file.schema_descr(), None).map_err(said)?;
        let schema_written = schema_written(file, name);
        let written = |place: usize, own: &Field| {
            schema_written
                .as_ref()
                .and_then(|schema| schema.fields().get(place))
                .filter(|field| field.name() == own.name())
        };
        let asked = own.fields().iter().enumerate().map(|(place, own)| match written(place, own) {
            Some(field) => Arc::new(
                Field::new(own.name(), asked(own.data_type(), field.data_type()), own.is_nullable())
                    .with_metadata(field.metadata().clone()),
            ),
            None => own.clone(),
        });
        let asked: Fields = asked.collect();
        let hint = encode_arrow_schema(&Schema::new(asked.clone()));
        let hint = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_string(), hint)];
        let read = parquet_to_arrow_schema(file.schema_descr(), Some(&hint)).map_err(said)?;
        let fields = read.fields().iter().enumerate().map(|(place, field)| {
            let were_categories =
                written(place, field).is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)));
            match were_categories && is_plain(field.data_type()) {
                true => Arc::new(field.as_ref().clone().with_data_type(categories(field.data_type()))),
                false => field.clone(),
            }
        });
        let fields: Fields = fields.collect();
        let frame = noted(file, PANDAS).or_else(|| schema_written.as_ref()?.metadata().get(PANDAS));
        let metadata = frame.map(|text| (PANDAS.to_string(), text.clone())).into_iter().collect();
        Ok(Columns { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), asked })
    }

    /// What the decoder needs to read the columns at `places`.
    pub(super) fn levels(&self, file: &SchemaDescriptor, places: &[usize]) -> Checked<FieldLevels> {
        let mask = ProjectionMask::roots(file, places.iter().copied());
        parquet_to_arrow_field_levels(file, mask, Some(&self.asked)).map_err(said)
    }
}

/// What the metadata of the file say under `key`.
fn noted<'a>(file: &'a FileMetaData, key: &str) -> Option<&'a String> {
    file.key_value_metadata()?.iter().find(|pair| pair.key == key)?.value.as_ref()
}

/// The schema that an Arrow writer has kept in the metadata. It may have types that only its writer knows, such as
/// integers of 128 bits; then the columns have the types of the file, and a warning says so.
fn schema_written(file: &FileMetaData, name: &str) -> Option<Schema> {
    let text = noted(file, ARROW_SCHEMA_META_KEY)?;
    let decoded = catch_decoder_panic(|| {
        let bytes = BASE64_STANDARD.decode(text).map_err(|error| error.to_string())?;
        try_schema_from_ipc_buffer(&bytes).map_err(|error| error.to_string())
    });
    decoded.map_err(|what| warn!("{name}: the types that its writer notes beside the data are not used: {what}")).ok()
}

/// As what a column of type `own` is read that was `written` as another. The decoder takes what it can of it.
fn asked(own: &DataType, written: &DataType) -> DataType {
    match written {
        written if discriminant(own) != discriminant(written) && (own.is_nested() || written.is_nested()) => {
            own.clone()
        }
        DataType::Dictionary(_, values) if is_text(values) => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        DataType::Dictionary(_, values) => asked(own, values),
        written => written.clone(),
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_plain(kind: &DataType) -> bool {
    kind.is_primitive() || *kind == DataType::Boolean
}

/// The type of categories whose values are of the type `values`. Times are in UTC, because there is no table of
/// time zones.
fn categories(values: &DataType) -> DataType {
    let values = match values {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    };
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(values))
}

/// A column as it is handed out, with the type `kind`.
pub(super) fn stored(column: &ArrayRef, kind: &DataType) -> Checked<ArrayRef> {
    match kind {
        kind if column.data_type() == kind => Ok(column.clone()),
        DataType::Dictionary(_, values) => encoded(column, values).map_err(|error| error.to_string()),
        other => Err(format!("a column of type {other} was read as {}", column.data_type())),
    }
}

/// The dictionary of a column; its values are of the type `kind`.
fn encoded(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    // Those that Arrow makes no dictionaries of, and times, whose zones would shift them.
    let by = match kind {
        DataType::Boolean => DataType::Int8,
        DataType::Duration(_) | DataType::Timestamp(..) => DataType::Int64,
        other => other.clone(),
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(by.clone()));
    let encoded = cast(&cast(column, &by)?, &dictionary)?;
    let encoded = encoded.as_dictionary::<Int32Type>();
    Ok(Arc::new(encoded.with_values(cast(encoded.values(), kind)?)))
}
