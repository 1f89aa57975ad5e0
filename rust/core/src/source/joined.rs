//! Several sources as one: the files of a data set, one after the other.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::chunking::conform;
use super::{ChunkSource, Chunks};
use crate::error::{Error, Result};

/// The rows of all parts, in their order.
pub struct JoinedSource {
    name: String,
    parts: Vec<Arc<dyn ChunkSource>>,
}

impl JoinedSource {
    /// The rows of `parts`, of which there is at least one; `name` is what messages call them together.
    ///
    /// # Errors
    /// [`Error::Data`] if there is no part, or one whose columns have other names or types than those of the first.
    pub fn new(name: impl Into<String>, parts: Vec<Arc<dyn ChunkSource>>) -> Result<Self> {
        let name = name.into();
        let Some(first) = parts.first() else {
            return Err(Error::Data(format!(
                "{name}: there is no file in it; name a folder or a pattern with data files"
            )));
        };
        let schema = first.schema();
        for part in &parts[1..] {
            let (have, fields) = (part.schema(), schema.fields());
            if have.fields().len() != fields.len() {
                let (n, others) = (have.fields().len(), fields.len());
                return Err(Error::Data(format!(
                    "{}: {n} columns were found, but {others} in {}; the files of a data set have the same",
                    part.name(),
                    first.name()
                )));
            }
            for (own, other) in have.fields().iter().zip(fields) {
                if own.name() != other.name() || own.data_type() != other.data_type() {
                    return Err(Error::Data(format!(
                        "{}: column '{}' of type {} was found where {} has '{}' of type {}; the files of a data set \
                         have the same columns",
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
        Ok(JoinedSource { name, parts })
    }
}

impl ChunkSource for JoinedSource {
    fn schema(&self) -> SchemaRef {
        self.parts[0].schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let schema = self.schema();
        Ok(Box::new(self.parts.iter().flat_map(move |part| under(part.as_ref(), schema.clone()))))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.rows_hint()).sum()
    }
}

/// The chunks of `part` with `schema`, from which its own differs in metadata at most.
fn under(part: &dyn ChunkSource, schema: SchemaRef) -> Chunks<'_> {
    let chunks = match part.chunks() {
        Ok(chunks) => chunks,
        Err(error) => return Box::new(std::iter::once(Err(error))),
    };
    Box::new(chunks.map(move |chunk| {
        conform(chunk?, &schema).ok_or_else(|| Error::Data(format!("{}: its columns changed", part.name())))
    }))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array, RecordBatch};

    use super::*;
    use crate::source::TableSource;

    fn part(name: &str, column: &str, values: Vec<i32>) -> Arc<dyn ChunkSource> {
        let array: ArrayRef = Arc::new(Int32Array::from(values));
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
}
