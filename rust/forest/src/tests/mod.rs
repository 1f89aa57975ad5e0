//! Tests across modules, on tables small enough for naive implementations.

pub(crate) mod grow;
pub(crate) mod measured;
mod permutation;
mod scores;
mod space;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;

use super::bag::Bag;
use super::criterion::Criterion;
use super::space::{Block, Plan, Space};
use super::tree_buffer::{BufferedSplit, CodeTest};
use ferrank_data::hierarchy::Hierarchy;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::{MISSING_U8, MISSING_U16, Profile};
use ferrank_data::schema::{Problem, Roles, Targets, Task};
use ferrank_data::source::{ChunkSource, TableSource};
use ferrank_data::store::{CodeStore, Codebook, Keep, Part, Slot, TargetColumn};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::{Purpose, stream};
use rand::RngExt;

/// A coded table.
pub(crate) struct Coded {
    batch: RecordBatch,
    profile: Profile,
    problem: Problem,
    pub(crate) store: CodeStore,
}

impl Coded {
    /// `batch` with these targets; a column `w` holds row weights, a column `g` groups.
    pub(crate) fn new(batch: &RecordBatch, targets: &[&str], task: Option<Task>, max_bins: usize) -> Self {
        Coded::read(batch, targets, task, max_bins, false)
    }

    /// The same; rows without any target are kept if `use_all`, with the values of the features.
    pub(crate) fn read(
        batch: &RecordBatch,
        targets: &[&str],
        task: Option<Task>,
        max_bins: usize,
        use_all: bool,
    ) -> Self {
        let targets = Targets::Named(targets.iter().map(|name| name.to_string()).collect());
        let weight = batch.column_by_name("w").map(|_| "w".to_string());
        let source = TableSource::new("table", batch.schema(), vec![batch.clone()]).unwrap();
        let groups = batch.column_by_name("g").map(|_| "g".to_string());
        let roles = Roles::new(targets).with_task(task).with_weight(weight).with_groups(groups);
        let problem = Problem::resolve(&source.schema(), &roles, "table").unwrap();
        let monitor = Monitor::default();
        let unlabelled = if use_all { Unlabelled::Use } else { Unlabelled::Ignore };
        let intake = Intake::new(&source, &problem, unlabelled, &monitor);
        let profile = Profile::new(&intake, max_bins).unwrap();
        let store = CodeStore::new(&intake, &profile, profile.counts, use_all, Keep::Memory).unwrap();
        Coded { batch: batch.clone(), profile, problem, store }
    }

    /// The labelled rows of `source`, which has the columns of this table.
    fn intake<'a>(&'a self, source: &'a TableSource, monitor: &'a Monitor) -> Intake<'a> {
        Intake::new(source, &self.problem, Unlabelled::Ignore, monitor)
    }

    /// The same table, of whose sparse features only the entries are kept.
    pub(crate) fn compressed(&self) -> Self {
        let source = TableSource::new("table", self.batch.schema(), vec![self.batch.clone()]).unwrap();
        let monitor = Monitor::default();
        let intake = self.intake(&source, &monitor);
        let book = Codebook::new(&self.profile, &self.problem, false, "table").unwrap().compressed();
        let part = Part::new(&intake, &book, self.profile.counts, Keep::Memory).unwrap();
        let store = CodeStore::from_parts(book, vec![part], Keep::Memory).unwrap();
        let (batch, profile, problem) = (self.batch.clone(), self.profile.clone(), self.problem.clone());
        Coded { batch, profile, problem, store }
    }

    /// The same table, all of whose rows take part, in two chunks.
    pub(crate) fn in_chunks(&self) -> Self {
        let (n_rows, monitor) = (self.batch.num_rows(), Monitor::default());
        let book = Codebook::new(&self.profile, &self.problem, false, "table").unwrap();
        let part = |(first, end): (usize, usize)| {
            let batch = self.batch.slice(first, end - first);
            let source = TableSource::new("part", batch.schema(), vec![batch]).unwrap();
            let intake = self.intake(&source, &monitor);
            Part::new(&intake, &book, intake.count().unwrap(), Keep::Memory).unwrap()
        };
        let parts = [(0, n_rows / 3), (n_rows / 3, n_rows)].map(part).into();
        let store = CodeStore::from_parts(book, parts, Keep::Memory).unwrap();
        let (batch, profile, problem) = (self.batch.clone(), self.profile.clone(), self.problem.clone());
        Coded { batch, profile, problem, store }
    }

    /// The rows that take part, in up to `n_parts` parts, each a store of its own with the number of its first row.
    pub(crate) fn cut(&self, n_parts: usize) -> Vec<(usize, CodeStore)> {
        let (n_rows, monitor) = (self.batch.num_rows(), Monitor::default());
        let mut first = 0;
        let part = |part: usize| {
            let rows = part * n_rows / n_parts..(part + 1) * n_rows / n_parts;
            let batch = self.batch.slice(rows.start, rows.len());
            let source = TableSource::new("part", batch.schema(), vec![batch]).unwrap();
            let intake = self.intake(&source, &monitor);
            let counts = intake.count().unwrap();
            let start = first;
            first += counts.kept as usize;
            let store = CodeStore::new(&intake, &self.profile, counts, false, Keep::Memory).unwrap();
            (start, store)
        };
        (0..n_parts).map(part).filter(|(_, store)| store.rows > 0).collect()
    }

    pub(crate) fn space(&self, weights: Option<&[f64]>) -> Space {
        self.space_of(weights, 1.0)
    }

    pub(crate) fn space_of(&self, weights: Option<&[f64]>, supervision: f64) -> Space {
        self.bare_space(weights, supervision).hold(&self.store)
    }

    /// The space without the values.
    pub(crate) fn bare_space(&self, weights: Option<&[f64]>, supervision: f64) -> Space {
        let names: Vec<String> = self.problem.targets.iter().map(|target| target.name.clone()).collect();
        let subset: Vec<usize> = (0..names.len()).collect();
        let plan = Plan {
            task: self.problem.task,
            subset: &subset,
            names: &names,
            weights,
            supervision,
            feature_weights: None,
        };
        Space::new(&self.store, &plan).unwrap()
    }

    /// Code of a feature in a row; `None` where missing.
    fn code(&self, feature: usize, row: usize) -> Option<u16> {
        let number = self.store.firsts.partition_point(|&first| first <= row) - 1;
        let (chunk, row) = (&self.store.chunks[number], row - self.store.firsts[number]);
        match self.store.slots[feature] {
            Slot::Narrow(slot) => Some(chunk.narrow.column(slot).at(row)).filter(|&c| c != MISSING_U8).map(u16::from),
            Slot::Wide(slot) => Some(chunk.wide.column(slot).at(row)).filter(|&code| code != MISSING_U16),
            Slot::Sparse(number) => {
                let codes = self.store.sparse.as_ref().unwrap();
                Some(codes.code(number, row)).filter(|&code| code != MISSING_U16)
            }
        }
    }
}

fn goes_left(split: &BufferedSplit, code: Option<u16>) -> bool {
    match (code, &split.test) {
        (None, _) => split.missing_left,
        (Some(code), CodeTest::Cut(cut)) => code <= *cut,
        (Some(code), CodeTest::Subset(codes)) => codes.contains(&code),
    }
}

/// Closed label sets of a hierarchy of `n_labels` roots with a child each; some rows miss theirs.
pub(crate) fn label_sets(rows: usize, n_labels: usize, missing: bool) -> TargetColumn {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        let has = |label: &usize| (row * row + 3 * row * label).is_multiple_of(label + 2);
        let labels = (0..n_labels).filter(has).map(|label| Some(format!("l{label}{}", ["", "/x"][row % 2])));
        lists.append_option((!missing || row % 5 > 0).then_some(labels));
    }
    let paths: Vec<String> = (0..n_labels).map(|label| format!("l{label}/x")).collect();
    let hierarchy = Hierarchy::from_paths(paths.iter().map(String::as_str), 0.75).unwrap();
    let mut column = LabelColumn::new(Arc::new(hierarchy), rows);
    column.add(&(Arc::new(lists.finish()) as ArrayRef), None).unwrap();
    TargetColumn::Labels(column)
}

/// `batch` with a column of up to `n_groups` groups, in no order.
pub(crate) fn with_groups(batch: &RecordBatch, n_groups: usize) -> RecordBatch {
    let names = (0..batch.num_rows()).map(|row| format!("g{}", (row * row * 7 + row) % n_groups));
    let mut columns: Vec<(&str, ArrayRef)> = vec![("g", Arc::new(StringArray::from_iter_values(names)))];
    let schema = batch.schema();
    columns.extend(
        schema.fields().iter().zip(batch.columns()).map(|(field, column)| (field.name().as_str(), column.clone())),
    );
    table(columns)
}

pub(crate) fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

pub(crate) fn numbers(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Features of both kinds with ties and missing values, and targets `y`, `t` and `class`; missing
/// targets where `gaps`, row weights where `weighted`.
pub(crate) fn batches(rows: std::ops::Range<usize>, gaps: bool, weighted: bool) -> impl Strategy<Value = RecordBatch> {
    let word = || prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")];
    let row = (
        prop::option::weighted(0.9, -100..100i32),
        0..4i32,
        prop::option::weighted(0.9, word()),
        (-50..50i32, prop::option::weighted(0.8, 0..3i32)),
        prop::option::weighted(0.8, word()),
        1..=3i32,
    );
    vec(row, rows).prop_map(move |rows| {
        let number = |value: Option<i32>| value.map(f64::from);
        let filled = |value: Option<i32>| if gaps { value } else { value.or(Some(3)) };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("many", Arc::new(rows.iter().map(|row| number(row.0)).collect::<Float64Array>())),
            ("few", numbers(rows.iter().map(|row| f64::from(row.1)))),
            ("word", Arc::new(rows.iter().map(|row| row.2).collect::<StringArray>())),
            ("y", numbers(rows.iter().map(|row| f64::from(row.3.0 + 20 * row.1)))),
            ("t", Arc::new(rows.iter().map(|row| number(filled(row.3.1))).collect::<Float64Array>())),
            (
                "class",
                Arc::new(
                    rows.iter().map(|row| if gaps { row.4 } else { row.4.or(Some("e")) }).collect::<StringArray>(),
                ),
            ),
        ];
        if weighted {
            columns.push(("w", numbers(rows.iter().map(|row| f64::from(row.5)))));
        }
        table(columns)
    })
}

/// A table of `n_rows` rows and `n_features` sparse features, one that is not, and the targets `y`, `t` and `class`.
pub(crate) fn sparse_batch(n_rows: usize, n_features: usize, seed: u64) -> RecordBatch {
    let mut random = stream(seed, Purpose::Sample, 0, 0);
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    let mut y = vec![0.0; n_rows];
    for feature in 0..n_features {
        let share = if feature % 4 == 0 { 0.02 } else { 0.01 * random.random::<f64>() };
        let values: Vec<Option<f64>> = (0..n_rows)
            .map(|row| match random.random::<f64>() {
                _ if feature % 5 == 1 || row == 3 => Some(0.0),
                other if other < share => {
                    let value = f64::from(random.random_range(-3..6)) / 2.0;
                    y[row] += value * (feature as f64).sqrt();
                    // Some values are missing, and some are 0.
                    (feature % 6 > 0 || value < 2.0).then_some(value)
                }
                _ => Some(0.0),
            })
            .collect();
        columns.push((format!("x{feature}"), Arc::new(Float64Array::from_iter(values))));
    }
    columns.push(("full".into(), numbers((0..n_rows).map(|row| (row * row % 17) as f64))));
    let class = |y: &f64| if *y > 20.0 { "a" } else { "b" };
    columns.push(("class".into(), texts(y.iter().map(class))));
    columns.push(("t".into(), numbers(y.iter().map(|y| (y / 7.0).sin()))));
    columns.push(("y".into(), numbers(y)));
    table(columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect())
}

/// A table of [`sparse_batch`] with the target `y`, of whose sparse features only the entries are kept.
pub(crate) fn sparse_table(n_rows: usize, n_features: usize, seed: u64) -> Coded {
    Coded::new(&sparse_batch(n_rows, n_features, seed), &["y"], None, 255).compressed()
}

/// The sums of `rows` of `block` with the multiplicities `counts`.
fn total(criterion: &Criterion, block: &Block, rows: &[u32], counts: &[u32]) -> Vec<f64> {
    let mut sums = vec![0.0; criterion.len()];
    for (&row, &count) in rows.iter().zip(counts) {
        criterion.add(&mut sums, block, row as usize, f64::from(count));
    }
    sums
}

/// A bag in which some rows are missing and others occur several times.
fn bag(counts: &[u32]) -> Bag {
    let rows = (0..).zip(counts).filter(|(_, count)| **count > 0);
    let (rows, counts) = rows.map(|(row, &count)| (row, count)).unzip();
    Bag { rows, counts, ..Bag::default() }
}
