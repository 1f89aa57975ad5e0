//! MULAN's label files: XML that names the columns which are labels.
//!
//! Labels may be nested (a label hierarchy); only their names are read.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use super::{ChunkSource, Chunks, LABEL, ROLE};
use ferrank_runtime::error::nearest;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::files::regular;

/// Largest label file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// Bytes from one element to the next: the time to parse one grows with the square of its attributes.
const LONGEST: usize = 4 << 10;

/// A source whose labels are marked.
pub(super) struct Labelled {
    inner: Box<dyn ChunkSource>,
    schema: SchemaRef,
}

impl Labelled {
    /// Marks the columns of `inner` that the label file at `path` names.
    ///
    /// # Errors
    /// The file cannot be read, is not a label file, or names what is not a column.
    pub(super) fn new(inner: Box<dyn ChunkSource>, path: &Path) -> Result<Self> {
        let names = read(path)?;
        let schema = inner.schema();
        let columns: HashSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some(unknown) = names.iter().find(|name| !columns.contains(name.as_str())) {
            return Err(Error::Data(format!(
                "{}: label '{unknown}' is not a column of {}; the nearest are {}",
                path.display(),
                inner.name(),
                nearest(unknown, columns.into_iter()).join(", ")
            )));
        }
        let mark = |field: &Arc<Field>| {
            if !names.contains(field.name()) {
                return field.clone();
            }
            let mut metadata = field.metadata().clone();
            metadata.insert(ROLE.into(), LABEL.into());
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        };
        let fields: Vec<_> = schema.fields().iter().map(mark).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Labelled { inner, schema })
    }
}

impl ChunkSource for Labelled {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let marked = self.inner.chunks()?.map(|chunk| {
            chunk?.with_schema(self.schema.clone()).map_err(|e| Error::Data(format!("{}: {e}", self.inner.name())))
        });
        Ok(Box::new(marked))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rows_hint(&self) -> Option<u64> {
        self.inner.rows_hint()
    }
}

fn read(path: &Path) -> Result<HashSet<String>> {
    let wrong = |what: String| Error::Data(format!("{}: {what}", path.display()));
    let size = regular(path)?.len();
    if size > LARGEST {
        return Err(wrong(format!("{size} bytes are too many for a label file; is it the data?")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    if text.split('<').any(|element| element.len() > LONGEST) {
        return Err(wrong(format!("an element or text of more than {LONGEST} bytes; a label file has none")));
    }
    let tree = roxmltree::Document::parse(text.trim_start_matches('\u{feff}'))
        .map_err(|e| wrong(format!("this is not XML: {e}; a label file names the labels of a data set")))?;
    let mut names = HashSet::new();
    for label in tree.descendants().filter(|node| node.tag_name().name() == "label") {
        let name = label
            .attribute("name")
            .ok_or_else(|| wrong("a label has no name; write <label name=\"…\"></label>".into()))?;
        names.insert(name.to_string());
    }
    if names.is_empty() {
        return Err(wrong("no <label name=\"…\"> is in this file; is it a MULAN label file?".into()));
    }
    Ok(names)
}
