//! Copies of rows under one schema, whatever containers they came in.
//!
//! Batches of one stream may give a column different types: one without any value has none of its own, one with
//! missing values may hold integers as floats, and categories come with a dictionary of their batch. Text is held
//! as text, and numbers whose types differ as 64-bit floats, which is how they are read anyway.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use ferrank_data::column::{is_text, is_text_list};
use ferrank_runtime::error::{Error, Result};

/// The schema that rows of `schema` are held in.
pub(super) fn plain(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let field =
        |field: &Arc<Field>| field.as_ref().clone().with_data_type(held_type(field.data_type())).with_nullable(true);
    Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
}

fn held_type(data_type: &DataType) -> DataType {
    match data_type {
        t if is_text(t) => DataType::LargeUtf8,
        t if is_text_list(t) => DataType::LargeList(Arc::new(Field::new_list_field(DataType::LargeUtf8, true))),
        DataType::Dictionary(_, values) => held_type(values),
        other => other.clone(),
    }
}

/// The schema that holds the rows of `own` and those of `other`, a [`plain`] one of the batch called `name`.
///
/// # Errors
/// [`Error::Data`] where the columns, or [`Error::Type`] where the types of one do not go together.
pub(super) fn united(own: &SchemaRef, other: &SchemaRef, name: &str) -> Result<SchemaRef> {
    let (columns, others) = (own.fields(), other.fields());
    if let Some((own, other)) = columns.iter().zip(others).find(|(own, other)| own.name() != other.name()) {
        return Err(Error::Data(format!(
            "{name}: it has the column '{}' where the batches before have '{}'; give all batches the same columns in the \
             same order",
            other.name(),
            own.name()
        )));
    }
    if columns.len() != others.len() {
        return Err(Error::Data(format!(
            "{name}: it has {} columns, the batches before have {}; give all batches the same columns",
            others.len(),
            columns.len()
        )));
    }
    if own == other {
        return Ok(own.clone());
    }
    let field = |(own, other): (&Arc<Field>, &Arc<Field>)| {
        let data_type = match (own.data_type(), other.data_type()) {
            (a, b) if a == b => a.clone(),
            (DataType::Null, known) | (known, DataType::Null) => known.clone(),
            (a, b) if a.is_numeric() && b.is_numeric() => DataType::Float64,
            (a, b) => {
                return Err(Error::Type(format!(
                    "{name}: column '{}' is of type {b}, in the batches before of type {a}; give it one type",
                    own.name()
                )));
            }
        };
        Ok(own.as_ref().clone().with_data_type(data_type))
    };
    let fields = columns.iter().zip(others).map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// `batch` under `schema`, whose columns it has.
pub(super) fn held(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |(array, field): (&ArrayRef, &Arc<Field>)| {
        cast(array, field.data_type()).map_err(|e| Error::Type(format!("column '{}': {e}", field.name())))
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(failed)
}

/// A copy of the rows `rows` of `batch`.
pub(super) fn copy(batch: &RecordBatch, rows: impl IntoIterator<Item = u32>) -> Result<RecordBatch> {
    take_record_batch(batch, &UInt32Array::from_iter_values(rows)).map_err(failed)
}

/// The rows of `batches`, in one.
pub(super) fn join(batches: &[RecordBatch]) -> Result<RecordBatch> {
    concat_batches(&batches[0].schema(), batches).map_err(failed)
}

fn failed(error: ArrowError) -> Error {
    Error::Data(format!("rows: {error}"))
}

/// Rows in few batches.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    batches: Vec<RecordBatch>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub(super) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Appends a copy of `rows` of `batch`. Each batch held has more rows than the one after it, so that rows
    /// which come one by one are joined now and then.
    pub(super) fn append(&mut self, batch: &RecordBatch, rows: Range<usize>) -> Result<()> {
        self.batches.push(copy(batch, rows.start as u32..rows.end as u32)?);
        while let [.., older, newer] = self.batches.as_slice()
            && older.num_rows() <= newer.num_rows()
        {
            let joined = join(&self.batches[self.batches.len() - 2..])?;
            self.batches.truncate(self.batches.len() - 2);
            self.batches.push(joined);
        }
        Ok(())
    }

    /// Brings the rows to `schema`.
    pub(super) fn hold_as(&mut self, schema: &SchemaRef) -> Result<()> {
        self.batches = self.batches.iter().map(|batch| held(batch, schema)).collect::<Result<_>>()?;
        Ok(())
    }
}

impl FromIterator<RecordBatch> for Rows {
    fn from_iter<I: IntoIterator<Item = RecordBatch>>(batches: I) -> Self {
        Rows { batches: batches.into_iter().collect() }
    }
}
