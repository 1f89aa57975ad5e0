//! Ranks the features of an SVMlight file, through a source that is defined here.
//!
//! A new source is one implementation of [`ChunkSource`]: a schema, and the same rows on every pass.
//!
//! `cargo run --release -p ferrank --example svmlight_source -- FILE`

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ferrank::prelude::*;
use ferrank::source::Chunks;

const ROWS_PER_BATCH: usize = 4096;

/// Rows of a file with lines `target index:value …`; an index that a line leaves out has the value 0.
struct SvmlightSource {
    path: String,
    schema: SchemaRef,
}

impl SvmlightSource {
    /// Reads the file once to find the largest index.
    fn open(path: String) -> Result<Self> {
        let mut n_features = 0;
        for line in lines(&path)? {
            n_features = parse(&path, &line?)?.1.iter().map(|&(index, _)| index).fold(n_features, usize::max);
        }
        let names = std::iter::once("target".to_owned()).chain((1..=n_features).map(|index| format!("x{index}")));
        let fields: Vec<Field> = names.map(|name| Field::new(name, DataType::Float64, true)).collect();
        Ok(SvmlightSource { path, schema: Arc::new(Schema::new(fields)) })
    }

    fn batch(&self, lines: Vec<Result<String>>) -> Result<RecordBatch> {
        let mut columns = vec![vec![0.0; lines.len()]; self.schema.fields().len()];
        for (row, line) in lines.into_iter().enumerate() {
            let (target, values) = parse(&self.path, &line?)?;
            columns[0][row] = target;
            for (index, value) in values {
                columns[index][row] = value;
            }
        }
        let columns = columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::Data(format!("{}: {error}", self.path)))
    }
}

impl ChunkSource for SvmlightSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let mut lines = lines(&self.path)?;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch: Vec<_> = lines.by_ref().take(ROWS_PER_BATCH).collect();
            (!batch.is_empty()).then(|| self.batch(batch))
        })))
    }

    fn name(&self) -> &str {
        &self.path
    }
}

fn lines(path: &str) -> Result<impl Iterator<Item = Result<String>> + Send + use<>> {
    let named = |path: String| move |error: std::io::Error| Error::Data(format!("{path}: {error}"));
    let file = File::open(path).map_err(named(path.to_owned()))?;
    let path = path.to_owned();
    Ok(BufReader::new(file).lines().map(move |line| line.map_err(named(path.clone()))))
}

/// Target, and indices (from 1) with their values.
fn parse(path: &str, line: &str) -> Result<(f64, Vec<(usize, f64)>)> {
    let mut words = line.split_whitespace();
    let target = words.next().and_then(|word| word.parse().ok());
    let values = words.map(|word| {
        let (index, value) = word.split_once(':')?;
        Some((index.parse().ok().filter(|&index| index > 0)?, value.parse().ok()?))
    });
    target
        .zip(values.collect())
        .ok_or_else(|| Error::Data(format!("{path}: '{line}' is not of the form 'target index:value …'")))
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::Setting("give an SVMlight file".into()))?;
    let source = SvmlightSource::open(path)?;
    let roles = Roles::new(Targets::Named(vec!["target".into()]));
    let settings = Settings::from(ForestParams::default());
    let ranking = rank(&source, &roles, &settings, &RunOptions::default(), &Monitor::default())?;
    for (feature, rank) in ranking.features.iter().zip(&ranking.scores[0].rank) {
        println!("{rank:4} {feature}");
    }
    Ok(())
}
