//! Several sources as one: the files of a data set, one after the other.
//!
//! Writers choose the types of columns file by file: a dictionary's keys by the number of its entries, floats instead of
//! integers if values are missing, the type null if all are. So types that are read in the same way are unified: texts
//! become plain strings, numbers f64.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::{ChunkSource, Chunks};
use crate::column::{is_text, is_text_list};
use ferrank_runtime::error::{Error, Result};

/// The rows of all parts, in their order.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::source::{ChunkSource, JoinedSource, TableSource};
///
/// let part = |rows| TableSource::new("part", batch.schema(), vec![batch.slice(0, rows)]);
/// let whole = JoinedSource::new("table", vec![Arc::new(part(20)?), Arc::new(part(60)?)])?;
/// let rows = whole.chunks()?.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<usize, _>>()?;
/// assert_eq!(rows, 80);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub struct JoinedSource {
    name: String,
    schema: SchemaRef,
    parts: Vec<Arc<dyn ChunkSource>>,
}

impl JoinedSource {
    /// The rows of `parts`, of which there is at least one; `name` is what messages call them together.
    ///
    /// # Errors
    /// [`Error::Data`] if there is no part, or one whose columns have other names than those of the first, or types
    /// that are read in another way.
    pub fn new(name: impl Into<String>, parts: Vec<Arc<dyn ChunkSource>>) -> Result<Self> {
        let name = name.into();
        let Some(first) = parts.first() else {
            return Err(Error::Data(format!(
                "{name}: there is no file in it; name a folder or a pattern with data files"
            )));
        };
        let mut types: Vec<DataType> = first.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        for part in &parts[1..] {
            join(&mut types, part.as_ref(), first.as_ref())?;
        }
        let schema = first.schema();
        let typed = |(field, data_type): (&Arc<Field>, DataType)| {
            // A column without nulls in one file may have nulls in another.
            field.as_ref().clone().with_data_type(data_type).with_nullable(true)
        };
        let fields: Vec<Field> = schema.fields().iter().zip(types).map(typed).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(JoinedSource { name, schema, parts })
    }
}

/// Makes `types`, those of `first` so far, fit the columns of `part`, too.
fn join(types: &mut [DataType], part: &dyn ChunkSource, first: &dyn ChunkSource) -> Result<()> {
    let (own, others) = (part.schema(), first.schema());
    let (fields, others) = (own.fields(), others.fields());
    if fields.len() != others.len() {
        return Err(Error::Data(format!(
            "{}: {} columns were found, but {} in {}; the files of a data set have the same",
            part.name(),
            fields.len(),
            others.len(),
            first.name()
        )));
    }
    for ((own, other), data_type) in fields.iter().zip(others).zip(types) {
        match common(own.data_type(), data_type).filter(|_| own.name() == other.name()) {
            Some(common) => *data_type = common,
            None => {
                return Err(Error::Data(format!(
                    "{}: column '{}' of type {} was found where {} has '{}' of type {}; the files of a data set have \
                     the same columns",
                    part.name(),
                    own.name(),
                    own.data_type(),
                    first.name(),
                    other.name(),
                    other.data_type()
                )));
            }
        }
    }
    Ok(())
}

/// A type as which values of both types are read; `None` where they are read in different ways.
fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    let both = |holds: fn(&DataType) -> bool| holds(a) && holds(b);
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        _ if both(is_text) => Some(DataType::Utf8),
        _ if both(DataType::is_numeric) => Some(DataType::Float64),
        _ if both(is_text_list) => Some(DataType::new_list(DataType::Utf8, true)),
        _ => None,
    }
}

impl ChunkSource for JoinedSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(Box::new(self.parts.iter().flat_map(|part| under(part.as_ref(), &self.schema))))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.rows_hint()).sum()
    }
}

/// The chunks of `part` with `schema`.
fn under<'a>(part: &'a dyn ChunkSource, schema: &'a SchemaRef) -> Chunks<'a> {
    let chunks = match part.chunks() {
        Ok(chunks) => chunks,
        Err(error) => return Box::new(std::iter::once(Err(error))),
    };
    Box::new(chunks.map(move |chunk| {
        let chunk = chunk?;
        let columns =
            chunk.columns().iter().zip(schema.fields()).map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<std::result::Result<_, _>>();
        let broken = |error| Error::Data(format!("{}: {error}", part.name()));
        RecordBatch::try_new(schema.clone(), columns.map_err(broken)?).map_err(broken)
    }))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        Array, ArrayRef, DictionaryArray, Float32Array, Float64Array, Int32Array, NullArray, StringArray,
    };
    use arrow_select::concat::concat;

    use super::*;
    use crate::source::TableSource;

    fn part(name: &str, column: &str, values: Vec<i32>) -> Arc<dyn ChunkSource> {
        of(name, column, Arc::new(Int32Array::from(values)))
    }

    fn of(name: &str, column: &str, array: ArrayRef) -> Arc<dyn ChunkSource> {
        let batch = RecordBatch::try_from_iter([(column, array)]).unwrap();
        Arc::new(TableSource::new(name, batch.schema(), vec![batch]).unwrap())
    }

    #[test]
    fn rows_follow_each_other_again_and_again() {
        let joined =
            JoinedSource::new("all", vec![part("1", "a", vec![1, 2]), part("2", "a", vec![]), part("3", "a", vec![3])]);
        let joined = joined.unwrap();
        assert_eq!(joined.rows_hint(), Some(3));
        for _ in 0..2 {
            let rows: usize = joined.chunks().unwrap().map(|chunk| chunk.unwrap().num_rows()).sum();
            assert_eq!(rows, 3);
        }
    }

    #[test]
    fn other_columns_are_refused_by_name() {
        let joined = JoinedSource::new("all", vec![part("one", "a", vec![1]), part("two", "b", vec![1])]);
        let message = joined.err().unwrap().to_string();
        assert!(message.contains("two: column 'b'") && message.contains("one has 'a'"), "{message}");
        assert!(JoinedSource::new("none", Vec::new()).err().unwrap().to_string().contains("none: there is no file"));
    }

    #[test]
    fn types_that_are_read_alike_go_together() {
        let strings: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
        let narrow: ArrayRef = Arc::new(["c", "b"].into_iter().collect::<DictionaryArray<Int8Type>>());
        let wide: ArrayRef = Arc::new(["a"].into_iter().collect::<DictionaryArray<Int32Type>>());
        let (nothing, floats): (ArrayRef, ArrayRef) =
            (Arc::new(NullArray::new(1)), Arc::new(Float32Array::from(vec![0.5])));
        let read = |arrays: &[&ArrayRef]| {
            let parts = arrays.iter().zip(["1", "2", "3"]).map(|(array, name)| of(name, "a", (*array).clone()));
            let joined = JoinedSource::new("all", parts.collect())?;
            let chunks = joined.chunks()?.collect::<Result<Vec<RecordBatch>>>()?;
            assert!(chunks.iter().all(|chunk| chunk.schema() == joined.schema()));
            let columns: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.column(0).as_ref()).collect();
            Ok::<ArrayRef, Error>(concat(&columns).unwrap())
        };
        let texts = read(&[&narrow, &strings, &wide]).unwrap();
        assert_eq!(texts.as_ref(), &StringArray::from(vec!["c", "b", "b", "a", "a"]) as &dyn Array);
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let numbers = read(&[&nothing, &ints, &floats]).unwrap();
        assert_eq!(numbers.as_ref(), &Float64Array::from(vec![None, Some(7.0), Some(0.5)]) as &dyn Array);
        assert_eq!(*read(&[&narrow, &narrow]).unwrap().data_type(), *narrow.data_type());
        let message = read(&[&strings, &ints]).unwrap_err().to_string();
        assert!(message.contains("2: column 'a' of type Int32 was found where 1 has 'a' of type Utf8"), "{message}");
    }
}
