//! Profiles as Arrow IPC streams, to be sent from where a part lies to where profiles are merged.
//!
//! One row for each column:
//!
//! | column | type | what |
//! |---|---|---|
//! | `name` | utf8 | name of the column |
//! | `role` | utf8 | `feature` or `target` |
//! | `missing` | uint64 | rows that miss a value |
//! | `zeros`, `min`, `max` | uint64, float64, float64 | of a numeric column; null for a nominal one |
//! | `drawn` | list of float64 | a sample of its distinct values, ascending; null where the sampled rows are all rows |
//! | `distinct_limit` | uint64 | greatest hash of a value in `drawn`; null where that is |
//! | `sample` | list of float64 | its values in the sampled rows, NaN where missing |
//! | `cuts`, `values` | list of float64 | cut points between codes, none where these are the middles between values, and a value of each code; null where there are samples |
//! | `n_distinct` | uint64 | number of its distinct values; null where there are samples, or more values than `max_bins` |
//! | `categories`, `counts` | list of utf8, list of uint64 | of a nominal column; null for a numeric one. For label sets the labels found; no counts |
//! | `listed` | uint64 | of label sets: labels of all rows together; null for others |
//!
//! The metadata key `ferrank:profile` holds a JSON object: `format` (4), `rows`, `unlabelled`,
//! `weightless`, `kept`, `max_bins`, the `decay` and the `edges` (or null) of the target's hierarchy if it has one
//! in `labels`, of the groups of rows the `name` and the `digest` in `groups` if there are some, and of the sample of rows `sample_size`, `sample_limit` and `sample_hashes`,
//! ascending. `digest` is null where there are samples, or else the hash of the profile with its samples, in hexadecimal
//! digits. Behind the end of the stream are eight bytes: the XXH3-64 of all before, lowest byte first.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::coding::Cuts;
use super::derived_column::Derived;
use super::distinct::Distinct;
use super::sample::RowSample;
use super::sampled::SampledValues;
use super::{ColumnProfile, LabelProfile, NominalProfile, NumericProfile, Profile};
use crate::groups::GroupProfile;
use crate::hierarchy::{Edge, Hierarchy};
use crate::intake::Counts;
use crate::schema::LabelPlan;
use crate::source::{ChunkSource, IpcSource};
use ferrank_runtime::error::{Error, Result};

const KEY: &str = "ferrank:profile";
const FORMAT: u32 = 4;
const NAME: &str = "profile";

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    rows: u64,
    unlabelled: u64,
    weightless: u64,
    kept: u64,
    labels: Option<Labels>,
    groups: Option<GroupProfile>,
    max_bins: usize,
    sample_size: usize,
    sample_limit: u64,
    sample_hashes: Vec<u64>,
    digest: Option<String>,
}

/// What was known of the target's hierarchy.
#[derive(Serialize, Deserialize)]
struct Labels {
    edges: Option<Vec<Edge>>,
    decay: f64,
}

impl Labels {
    fn of(column: &ColumnProfile) -> Option<Self> {
        let ColumnProfile::Labels(LabelProfile { plan, .. }) = column else { return None };
        Some(Labels { edges: plan.hierarchy.is_some().then(|| plan.edges()), decay: plan.decay })
    }

    fn plan(&self) -> Result<LabelPlan> {
        let hierarchy = self.edges.as_ref().map(|edges| Hierarchy::from_edges(edges, self.decay)).transpose()?;
        Ok(LabelPlan { hierarchy: hierarchy.map(Arc::new), decay: self.decay })
    }
}

fn schema(head: &str) -> SchemaRef {
    let list = |of: DataType| DataType::List(Arc::new(Field::new_list_field(of, true)));
    let fields = vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("role", DataType::Utf8, false),
        Field::new("missing", DataType::UInt64, false),
        Field::new("zeros", DataType::UInt64, true),
        Field::new("min", DataType::Float64, true),
        Field::new("max", DataType::Float64, true),
        Field::new("drawn", list(DataType::Float64), true),
        Field::new("distinct_limit", DataType::UInt64, true),
        Field::new("sample", list(DataType::Float64), true),
        Field::new("cuts", list(DataType::Float64), true),
        Field::new("values", list(DataType::Float64), true),
        Field::new("n_distinct", DataType::UInt64, true),
        Field::new("categories", list(DataType::Utf8), true),
        Field::new("counts", list(DataType::UInt64), true),
        Field::new("listed", DataType::UInt64, true),
    ];
    Arc::new(Schema::new_with_metadata(fields, HashMap::from([(KEY.to_string(), head.to_string())])))
}

/// The columns of the batch, filled row by row.
#[derive(Default)]
struct Rows {
    name: StringBuilder,
    role: StringBuilder,
    missing: UInt64Builder,
    zeros: UInt64Builder,
    min: Float64Builder,
    max: Float64Builder,
    drawn: ListBuilder<Float64Builder>,
    distinct_limit: UInt64Builder,
    sample: ListBuilder<Float64Builder>,
    cuts: ListBuilder<Float64Builder>,
    values: ListBuilder<Float64Builder>,
    n_distinct: UInt64Builder,
    categories: ListBuilder<StringBuilder>,
    counts: ListBuilder<UInt64Builder>,
    listed: UInt64Builder,
}

impl Rows {
    fn add(&mut self, name: &str, role: &str, column: &ColumnProfile, order: &[u32]) {
        self.name.append_value(name);
        self.role.append_value(role);
        self.missing.append_value(column.missing());
        let numeric = if let ColumnProfile::Numeric(numeric) = column { Some(numeric) } else { None };
        let nominal = if let ColumnProfile::Nominal(nominal) = column { Some(nominal) } else { None };
        let labels = if let ColumnProfile::Labels(labels) = column { Some(labels) } else { None };
        let categories: Option<Vec<&String>> = match column {
            ColumnProfile::Numeric(_) => None,
            ColumnProfile::Nominal(nominal) => Some(nominal.counts.keys().collect()),
            ColumnProfile::Labels(labels) => Some(labels.found.iter().collect()),
        };
        self.zeros.append_option(numeric.map(|numeric| numeric.zeros));
        self.min.append_option(numeric.map(|numeric| numeric.min));
        self.max.append_option(numeric.map(|numeric| numeric.max));
        let distinct = numeric.and_then(|numeric| numeric.distinct.as_ref());
        self.drawn.append_option(distinct.map(|distinct| distinct.sorted().into_owned().into_iter().map(Some)));
        self.distinct_limit.append_option(distinct.map(|distinct| distinct.limit));
        let sampled = |numeric: &'_ NumericProfile| -> Vec<f64> {
            let values = numeric.sample.all();
            order.iter().map(|&position| values[position as usize]).collect()
        };
        let derived = numeric.and_then(|numeric| numeric.derived.as_ref());
        let with_sample = numeric.filter(|_| derived.is_none());
        self.sample.append_option(with_sample.map(|numeric| sampled(numeric).into_iter().map(Some)));
        self.cuts.append_option(derived.map(|derived| derived.cuts.stored().0.iter().copied().map(Some)));
        self.values.append_option(derived.map(|derived| derived.cuts.stored().1.iter().copied().map(Some)));
        self.n_distinct
            .append_option(derived.and_then(|derived| derived.n_distinct).map(|n_distinct| n_distinct as u64));
        self.categories.append_option(categories.map(|names| names.into_iter().map(Some)));
        self.counts.append_option(nominal.map(|nominal| nominal.counts.values().copied().map(Some)));
        self.listed.append_option(labels.map(|labels| labels.listed));
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.name.finish()),
            Arc::new(self.role.finish()),
            Arc::new(self.missing.finish()),
            Arc::new(self.zeros.finish()),
            Arc::new(self.min.finish()),
            Arc::new(self.max.finish()),
            Arc::new(self.drawn.finish()),
            Arc::new(self.distinct_limit.finish()),
            Arc::new(self.sample.finish()),
            Arc::new(self.cuts.finish()),
            Arc::new(self.values.finish()),
            Arc::new(self.n_distinct.finish()),
            Arc::new(self.categories.finish()),
            Arc::new(self.counts.finish()),
            Arc::new(self.listed.finish()),
        ]
    }
}

impl Profile {
    /// The profile as an Arrow IPC stream.
    ///
    /// # Errors
    /// [`Error::Data`] if it is too large for one batch.
    pub fn to_ipc(&self) -> Result<Vec<u8>> {
        let failed = |error: ArrowError| Error::Data(format!("{NAME}: {error}"));
        let order = self.sample.order().positions;
        let Counts { rows, unlabelled, weightless, kept } = self.counts;
        let head = Head {
            format: FORMAT,
            rows,
            unlabelled,
            weightless,
            kept,
            labels: self.targets.iter().find_map(Labels::of),
            groups: self.groups.clone(),
            max_bins: self.max_bins,
            sample_size: self.sample.size,
            sample_limit: self.sample.limit,
            sample_hashes: order.iter().map(|&position| self.sample.hashes[position as usize]).collect(),
            digest: self.derived.map(|digest| format!("{digest:032x}")),
        };
        let schema = schema(&serde_json::to_string(&head).expect("plain numbers and names"));
        let mut rows = Rows::default();
        let roles = [("feature", &self.features), ("target", &self.targets)];
        let columns = roles.into_iter().flat_map(|(role, columns)| columns.iter().map(move |column| (role, column)));
        for (name, (role, column)) in self.names.iter().zip(columns) {
            rows.add(name, role, column, &order);
        }
        let batch = RecordBatch::try_new(schema.clone(), rows.finish()).map_err(failed)?;
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &schema).map_err(failed)?;
        writer.write(&batch).and_then(|()| writer.finish()).map_err(failed)?;
        drop(writer);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// The profile that [`to_ipc`](Self::to_ipc) made `bytes` of.
    ///
    /// # Errors
    /// [`Error::Data`] if they are damaged, or something else.
    pub fn from_ipc(bytes: Vec<u8>) -> Result<Self> {
        let damaged = || Error::Data(format!("{NAME}: these bytes are not a profile, or are damaged"));
        let (stream, checksum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        if xxh3_64(stream) != u64::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        let source = IpcSource::from_buffer(NAME.to_string(), bytes.into())?;
        if source.is_compressed() {
            return Err(damaged());
        }
        let found = source.schema();
        let text = found.metadata().get(KEY).ok_or_else(damaged)?;
        let head: Head = serde_json::from_str(text).map_err(|_| damaged())?;
        if head.format != FORMAT || found.fields() != schema("").fields() {
            return Err(damaged());
        }
        let Head { rows, unlabelled, weightless, kept, .. } = head;
        let derived = head.digest.map(|digest| u128::from_str_radix(&digest, 16)).transpose().map_err(|_| damaged())?;
        let plan = head.labels.map(|labels| labels.plan()).transpose()?;
        let mut profile = Profile {
            names: Vec::new(),
            counts: Counts { rows, unlabelled, weightless, kept },
            features: Vec::new(),
            targets: Vec::new(),
            groups: head.groups,
            sample: RowSample { size: head.sample_size, hashes: head.sample_hashes, limit: head.sample_limit },
            max_bins: head.max_bins,
            derived,
        };
        for batch in source.chunks()? {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let column = profile.column(&batch, row, plan.as_ref()).ok_or_else(damaged)?;
                profile.names.push(batch["name"].as_string::<i32>().value(row).to_string());
                match batch["role"].as_string::<i32>().value(row) {
                    "feature" if profile.targets.is_empty() => profile.features.push(column),
                    "target" => profile.targets.push(column),
                    _ => return Err(damaged()),
                }
            }
        }
        Ok(profile)
    }

    /// Row `row` of `batch`; `None` if it makes no sense.
    fn column(&self, batch: &RecordBatch, row: usize, plan: Option<&LabelPlan>) -> Option<ColumnProfile> {
        let list = |name: &str| {
            let column = batch[name].as_list::<i32>();
            column.is_valid(row).then(|| column.value(row))
        };
        let floats = |name: &str| list(name).map(|list| list.as_primitive::<Float64Type>().values().to_vec());
        let missing = batch["missing"].as_primitive::<UInt64Type>().value(row);
        if let Some(categories) = list("categories") {
            let names = categories.as_string::<i32>().iter().map(|name| name.map(str::to_string));
            let Some(counts) = list("counts") else {
                let (plan, found) = (plan?.clone(), names.collect::<Option<_>>()?);
                let listed = batch["listed"].as_primitive::<UInt64Type>().value(row);
                return Some(ColumnProfile::Labels(LabelProfile { missing, listed, plan, found }));
            };
            if counts.len() != categories.len() {
                return None;
            }
            let counts = names.zip(counts.as_primitive::<UInt64Type>()).map(|(name, count)| Some((name?, count?)));
            return Some(ColumnProfile::Nominal(NominalProfile { missing, counts: counts.collect::<Option<_>>()? }));
        }
        let sample = floats("sample").filter(|sample| sample.len() == self.sample.hashes.len());
        let cuts = floats("cuts").zip(floats("values"));
        let cuts = cuts.and_then(|(cuts, values)| Cuts::from_stored(cuts, values, self.max_bins));
        let derived = cuts.map(|cuts| {
            let n_distinct = batch["n_distinct"].as_primitive::<UInt64Type>();
            let n_distinct = n_distinct.is_valid(row).then(|| n_distinct.value(row) as usize);
            Derived { cuts, n_distinct, codes: None }
        });
        if sample.is_some() != self.derived.is_none() || derived.is_some() != self.derived.is_some() {
            return None;
        }
        Some(ColumnProfile::Numeric(NumericProfile {
            missing,
            zeros: batch["zeros"].as_primitive::<UInt64Type>().value(row),
            min: batch["min"].as_primitive::<Float64Type>().value(row),
            max: batch["max"].as_primitive::<Float64Type>().value(row),
            max_bins: self.max_bins,
            distinct: floats("drawn").map(|values| {
                let limit = batch["distinct_limit"].as_primitive::<UInt64Type>().value(row);
                Distinct::from_sorted(self.max_bins, limit, &values)
            }),
            sample: SampledValues::All(sample.unwrap_or_default()),
            derived,
        }))
    }
}
