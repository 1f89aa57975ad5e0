//! Accumulators as Arrow IPC streams.
//!
//! One record batch for each contribution, one row for each of its vectors:
//!
//! | column | type | what |
//! |---|---|---|
//! | `key` | uint64 | number of the tree or of the block of queries |
//! | `vector` | uint32 | which vector, see below |
//! | `features` | list of uint32 | features that have a value, ascending; null: all of them, or none |
//! | `values` | list of float64 | the values |
//! | `checksum` | uint64 | XXH3-64 of the contribution, seeded by the checksum of the run; the same in all its rows |
//!
//! Forest: the vectors are the scores in the order of the settings, then with `by_target` those of `genie3` for
//! each target; `per_target`, tree `t` of target `i` has the key `i * n_estimators + t`. Relief: the first
//! vector holds the number of queries of the block, the second for each scheme (k, sigma) the sums of the
//! distances of the targets, and then come for each scheme the sums of the differences of the features, and
//! for each way to tell targets apart those of the differences times the distance of the targets. The
//! contribution of `myopic` has the key after those of the blocks, and one vector.
//!
//! The metadata key `ferrank:run` holds a JSON object: `format` (3), `run`, what makes the run, and `checksum`, the
//! XXH3-64 of both. A stream needs no end marker, so a file can grow. It is never compressed.
//!
//! What is [condensed](super::condensed) has the same form, its parts numbered through all populations, and the
//! weights of these by population as `parts` in the JSON object.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::accumulator::Accumulator;
use crate::condensed::{Condensed, Sum};
use crate::contribution::{Contribution, Vector, checksum};
use crate::identity::Identity;
use crate::ranker::ParseRanker;
use ferrank_data::source::{ChunkSource, IpcSource};
use ferrank_runtime::error::{Error, Result};

const KEY: &str = "ferrank:run";
const FORMAT: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    run: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Vec<f64>>>,
    checksum: u64,
}

impl Head {
    fn new(run: serde_json::Value, parts: Option<Vec<Vec<f64>>>) -> Self {
        let mut head = Head { format: FORMAT, run, parts, checksum: 0 };
        head.checksum = head.sum();
        head
    }

    /// The checksum of the other fields.
    fn sum(&self) -> u64 {
        xxh3_64(serde_json::json!([self.format, self.run, self.parts]).to_string().as_bytes())
    }
}

fn schema(head: String) -> SchemaRef {
    let list = |of: DataType| DataType::List(Arc::new(Field::new_list_field(of, true)));
    let fields = vec![
        Field::new("key", DataType::UInt64, false),
        Field::new("vector", DataType::UInt32, false),
        Field::new("features", list(DataType::UInt32), true),
        Field::new("values", list(DataType::Float64), false),
        Field::new("checksum", DataType::UInt64, false),
    ];
    Arc::new(Schema::new_with_metadata(fields, HashMap::from([(KEY.to_string(), head)])))
}

/// A stream that is written piece by piece.
pub(crate) struct Stream {
    schema: SchemaRef,
    /// The checksum of the run.
    run: u64,
    writer: StreamWriter<Vec<u8>>,
}

impl Stream {
    /// The stream of a run, and its first bytes.
    pub(crate) fn new(identity: &Identity) -> Result<(Self, Vec<u8>)> {
        Stream::from_parts(identity, None)
    }

    /// The layout of parts with these weights.
    fn from_parts(identity: &Identity, parts: Option<Vec<Vec<f64>>>) -> Result<(Self, Vec<u8>)> {
        let head = Head::new(identity.to_json(), parts);
        let run = head.checksum;
        let schema = schema(serde_json::to_string(&head).map_err(|e| unwritable(&e))?);
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(|e| unwritable(&e))?;
        let begin = std::mem::take(writer.get_mut());
        Ok((Stream { schema, run, writer }, begin))
    }

    /// The bytes of a contribution.
    pub(crate) fn record(&mut self, key: u64, contribution: &Contribution) -> Result<Vec<u8>> {
        self.batch(key, contribution).and_then(|batch| self.writer.write(&batch)).map_err(|e| unwritable(&e))?;
        Ok(std::mem::take(self.writer.get_mut()))
    }

    fn batch(&self, key: u64, contribution: &Contribution) -> std::result::Result<RecordBatch, ArrowError> {
        let n = contribution.len();
        let mut keys = UInt64Builder::new();
        keys.append_slice(&vec![key; n]);
        let mut checksums = UInt64Builder::new();
        checksums.append_slice(&vec![checksum(self.run, key, contribution); n]);
        let mut numbers = UInt32Builder::new();
        numbers.append_slice(&(0..n as u32).collect::<Vec<u32>>());
        let mut features = ListBuilder::new(UInt32Builder::new());
        let mut values = ListBuilder::new(Float64Builder::new());
        for vector in contribution {
            features.values().append_slice(vector.features.as_deref().unwrap_or_default());
            features.append(vector.features.is_some());
            values.values().append_slice(&vector.values);
            values.append(true);
        }
        RecordBatch::try_new(
            self.schema.clone(),
            vec![
                Arc::new(keys.finish()),
                Arc::new(numbers.finish()),
                Arc::new(features.finish()),
                Arc::new(values.finish()),
                Arc::new(checksums.finish()),
            ],
        )
    }

    /// The bytes of the end marker.
    fn end(mut self) -> Result<Vec<u8>> {
        self.writer.finish().and_then(|()| self.writer.into_inner()).map_err(|e| unwritable(&e))
    }
}

fn unwritable(what: &impl std::fmt::Display) -> Error {
    Error::Data(format!("accumulator: it cannot be written as Arrow: {what}"))
}

impl Accumulator {
    /// The accumulator as an Arrow IPC stream.
    ///
    /// # Errors
    /// [`Error::Data`] if a contribution is too large for a batch.
    pub fn to_ipc(&self) -> Result<Vec<u8>> {
        let (mut stream, mut bytes) = Stream::new(&self.identity)?;
        for (&key, contribution) in &self.contributions {
            bytes.extend(stream.record(key, contribution)?);
        }
        bytes.extend(stream.end()?);
        Ok(bytes)
    }

    /// The accumulator in `bytes`, which messages call `name`.
    ///
    /// # Errors
    /// [`Error::Data`] if they are something else, damaged, or cut off.
    pub fn from_ipc(bytes: Vec<u8>, name: &str, parse: ParseRanker<'_>) -> Result<Self> {
        let bytes = Buffer::from(bytes);
        let source = IpcSource::from_buffer(name.to_string(), bytes.clone())?;
        let identity = identity(&source, parse)?;
        check_begin(&source, &bytes, &identity, None)?;
        let mut accumulator = Accumulator::new(identity);
        for record in records(&source, &accumulator.identity.clone())? {
            let (key, contribution) = record?;
            accumulator.insert(key, contribution).map_err(|error| Error::Data(format!("{name}: {error}")))?;
        }
        Ok(accumulator)
    }
}

impl Condensed {
    /// The parts as an Arrow IPC stream.
    ///
    /// # Errors
    /// [`Error::Data`] if one is too large for a batch.
    pub fn to_ipc(&self) -> Result<Vec<u8>> {
        let weights = |sums: &Vec<Sum>| sums.iter().map(|sum| sum.weight).collect();
        let weights = self.populations.iter().map(weights).collect();
        let (mut stream, mut bytes) = Stream::from_parts(&self.identity, Some(weights))?;
        for (key, sum) in (0..).zip(self.populations.iter().flatten()) {
            bytes.extend(stream.record(key, &sum.sums)?);
        }
        bytes.extend(stream.end()?);
        Ok(bytes)
    }

    /// The parts in `bytes`, which messages call `name`.
    ///
    /// # Errors
    /// [`Error::Data`] if they are something else, damaged, or cut off.
    pub fn from_ipc(bytes: Vec<u8>, name: &str, parse: ParseRanker<'_>) -> Result<Self> {
        let bytes = Buffer::from(bytes);
        let source = IpcSource::from_buffer(name.to_string(), bytes.clone())?;
        let (identity, weights) = head(&source, parse)?;
        check_begin(&source, &bytes, &identity, weights.clone())?;
        let damaged = || Error::Data(format!("{name}: what was added up is damaged"));
        let (weights, keys) = (weights.ok_or_else(damaged)?, identity.populations());
        let run = raw_head(&source)?.checksum;
        let mut batches = source.batches();
        let mut sum = |place: usize, number: u64, weight: f64| -> Result<Sum> {
            let (key, sums) = record(run, &batches.next().ok_or_else(damaged)??).ok_or_else(damaged)?;
            let fits = key == number && weight > 0.0 && identity.allows(keys[place].start, &sums);
            if fits { Ok(Sum { key, weight, sums: Arc::new(sums) }) } else { Err(damaged()) }
        };
        if weights.len() != keys.len() {
            return Err(damaged());
        }
        let mut number = 0..;
        let mut populations = Vec::new();
        for (place, weights) in weights.into_iter().enumerate() {
            let sums = weights.into_iter().zip(&mut number).map(|(weight, number)| sum(place, number, weight));
            populations.push(sums.collect::<Result<Vec<_>>>()?);
        }
        Ok(Condensed { identity, populations })
    }
}

/// The identity of the run whose stream this is.
pub(crate) fn identity(source: &IpcSource, parse: ParseRanker<'_>) -> Result<Identity> {
    head(source, parse).map(|(identity, _)| identity)
}

/// The identity of the run whose stream this is, which must be of the same ranker as `own`.
pub(crate) fn identity_like(source: &IpcSource, own: &Identity, own_name: &str) -> Result<Identity> {
    let run = raw_head(source)?.run;
    own.check_kind(&run, own_name, source.name())?;
    own.parse_same_kind(run).ok_or_else(|| invalid_settings(source))
}

/// Ok if `bytes`, those of `source`, begin as is written for the run: no bit may be another, also where it says nothing.
pub(crate) fn check_begin(
    source: &IpcSource,
    bytes: &[u8],
    identity: &Identity,
    parts: Option<Vec<Vec<f64>>>,
) -> Result<()> {
    let first = source.ends().next().unwrap_or(bytes.len());
    let (_, begin) = Stream::from_parts(identity, parts)?;
    if bytes[..first] == begin { Ok(()) } else { Err(foreign(source, "its head is damaged")) }
}

/// The identity, and the weights of parts where there are some.
fn head(source: &IpcSource, parse: ParseRanker<'_>) -> Result<(Identity, Option<Vec<Vec<f64>>>)> {
    let head = raw_head(source)?;
    let identity = Identity::from_json(head.run, parse).ok_or_else(|| invalid_settings(source))?;
    Ok((identity, head.parts))
}

fn raw_head(source: &IpcSource) -> Result<Head> {
    let found = source.schema();
    let text = found.metadata().get(KEY).ok_or_else(|| foreign(source, "no metadata ferrank:run"))?;
    let head: Head = serde_json::from_str(text).map_err(|_| foreign(source, "its metadata are damaged"))?;
    if head.format != FORMAT {
        return Err(foreign(source, &format!("format {}, this version reads {FORMAT}", head.format)));
    }
    if head.checksum != head.sum() {
        return Err(foreign(source, "its head is damaged"));
    }
    // What is ours is not, and memory for what it unpacks to has no bound.
    if source.is_compressed() {
        return Err(foreign(source, "it is compressed"));
    }
    if found.fields() != schema(String::new()).fields() {
        return Err(foreign(source, "it has other columns"));
    }
    Ok(head)
}

fn foreign(source: &IpcSource, why: &str) -> Error {
    Error::Data(format!("{}: not an accumulator of ferrank: {why}", source.name()))
}

fn invalid_settings(source: &IpcSource) -> Error {
    foreign(source, "the settings of its run make no sense")
}

/// The contributions of a stream, batch by batch.
///
/// # Errors
/// [`Error::Data`] if it is no accumulator.
pub(crate) fn records<'a>(
    source: &'a IpcSource,
    identity: &'a Identity,
) -> Result<impl Iterator<Item = Result<(u64, Contribution)>> + 'a> {
    let run = raw_head(source)?.checksum;
    Ok((1..).zip(source.batches()).map(move |(number, batch)| {
        let damaged = || Error::Data(format!("{}: batch {number} is damaged, or of another run", source.name()));
        record(run, &batch?).filter(|(key, contribution)| identity.allows(*key, contribution)).ok_or_else(damaged)
    }))
}

/// The contribution in `batch`, if it is whole and of the run with the checksum `run`.
fn record(run: u64, batch: &RecordBatch) -> Option<(u64, Contribution)> {
    let (keys, checksums) = (batch["key"].as_primitive::<UInt64Type>(), batch["checksum"].as_primitive::<UInt64Type>());
    let numbers = batch["vector"].as_primitive::<UInt32Type>();
    let (features, values) = (batch["features"].as_list::<i32>(), batch["values"].as_list::<i32>());
    let key = *keys.values().first()?;
    let vector = |row: usize| Vector {
        features: features.is_valid(row).then(|| features.value(row).as_primitive::<UInt32Type>().values().to_vec()),
        values: values.value(row).as_primitive::<Float64Type>().values().to_vec(),
    };
    let contribution: Contribution = (0..batch.num_rows()).map(vector).collect();
    let sum = checksum(run, key, &contribution);
    let whole = (0..batch.num_rows())
        .all(|row| keys.value(row) == key && checksums.value(row) == sum && numbers.value(row) as usize == row);
    whole.then_some((key, contribution))
}
