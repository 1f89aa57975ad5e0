//! Kept forests as Arrow files, and back.

use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, SchemaRef};
use ferrank_data::schema::Kind;
use ferrank_data::source::{ChunkSource, IpcSource, is_sealed, unfinished, write_sealed};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::files::regular;

use super::forest::KeptForest;
use super::head::{FORMAT, Head, KEY};
use super::nodes::{Nodes, fields};
use super::tree_tables::Trees;

/// The most classes of a target and categories of a feature.
const MOST_VALUES: usize = u16::MAX as usize;

impl KeptForest {
    /// Writes the forest to an Arrow file at `path`, which appears, or replaces its predecessor, only when complete.
    ///
    /// # Errors
    /// The folder cannot be written, or the disk is full.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |error: ArrowError| match error {
            ArrowError::IoError(_, source) => Error::file(path, source),
            other => Error::Data(format!("{}: {other}", path.display())),
        };
        let file = unfinished(path).map_err(|e| Error::file(path, e))?;
        self.write(BufWriter::new(file.as_file())).map_err(failed)?;
        file.persist(path).map_err(|e| Error::file(path, e.error))?;
        Ok(())
    }

    /// The forest as the bytes of an Arrow file.
    ///
    /// # Errors
    /// [`Error::Data`] if it is too large for one.
    pub fn to_ipc(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).map_err(|error| Error::Data(format!("forest: {error}")))?;
        Ok(bytes)
    }

    fn write(&self, to: impl Write) -> std::result::Result<(), ArrowError> {
        write_sealed(to, &self.trees.schema(), self.batches())
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not a sound forest.
    pub fn open(path: &Path) -> Result<Self> {
        regular(path)?;
        KeptForest::read(&IpcSource::open(path)?.with_whole_batches())
    }

    /// Reads what [`KeptForest::to_ipc`] wrote.
    ///
    /// # Errors
    /// [`Error::Data`] for anything else.
    pub fn from_ipc(bytes: Vec<u8>) -> Result<Self> {
        KeptForest::read(&IpcSource::from_buffer("forest".into(), Buffer::from_vec(bytes))?)
    }

    fn read(source: &IpcSource) -> Result<Self> {
        let wrong = |what: String| Error::Data(format!("{}: no forest of ferrank: {what}", source.name()));
        let schema = source.schema();
        let head = read_head(&schema).map_err(wrong)?;
        if *schema.fields() != fields() {
            return Err(wrong("its columns are not those of the nodes of trees".into()));
        }
        if !is_sealed(source)? {
            return Err(wrong("it was changed or damaged after it was written; write it anew".into()));
        }
        let batches = source.batches().collect::<Result<Vec<_>>>()?;
        if head.n_trees() != Some(batches.len()) || batches.is_empty() {
            return Err(wrong(format!(
                "it has {} trees, and says that it has {} for {} targets; write it anew",
                batches.len(),
                head.n_estimators,
                head.targets.len()
            )));
        }
        for (tree, batch) in batches.iter().enumerate() {
            Nodes::new(batch)
                .check(tree, &head)
                .map_err(|what| wrong(format!("tree {tree}: {what}; write it anew")))?;
        }
        let no_rows = "the forest was read from a file or a pickle, which has no rows".into();
        Ok(KeptForest::new(head, Trees::Read(batches), Err(no_rows)))
    }
}

fn read_head(schema: &SchemaRef) -> std::result::Result<Head, String> {
    let text = schema.metadata().get(KEY).ok_or("it has no description; name a file that keep or save_trees wrote")?;
    let format = serde_json::from_str::<serde_json::Value>(text).ok().and_then(|head| head["format"].as_u64());
    if format.is_some_and(|format| format != u64::from(FORMAT)) {
        return Err(format!("its format is {}, this version reads format {FORMAT}", format.unwrap_or_default()));
    }
    let head: Head = serde_json::from_str(text).map_err(|error| format!("its description is damaged: {error}"))?;
    let ascend = |names: &[String]| names.windows(2).all(|pair| pair[0] < pair[1]) && names.len() <= MOST_VALUES;
    if let Some(feature) = head.features.iter().find(|one| !one.categories.as_deref().is_none_or(ascend)) {
        return Err(format!("the categories of '{}' do not ascend, or are too many", feature.name));
    }
    let mut names: Vec<&String> = head.features.iter().map(|feature| &feature.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two of its features are called '{}'", pair[0]));
    }
    for target in &head.targets {
        let is_sound = match target.kind {
            Kind::Numeric => target.values.is_empty(),
            Kind::Nominal => ascend(&target.values) && !target.values.is_empty(),
            Kind::Labels => target.values.windows(2).all(|pair| pair[0] < pair[1]),
        };
        if !is_sound || target.positive.is_some_and(|class| class as usize >= target.values.len()) {
            return Err(format!(
                "the values of the target '{}' do not ascend, or are none, too many or too few",
                target.name
            ));
        }
    }
    Ok(head)
}
