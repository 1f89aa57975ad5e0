//! Predictions for new rows.

use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ferrank_data::category_check::CategoryCheck;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::schema::{Attribute, Kind, Problem};
use ferrank_data::source::{ChunkSource, unfinished};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;
use rayon::prelude::*;

use super::forest::KeptForest;
use super::head::{KeptFeature, KeptTarget};
use super::out_of_bag::most;
use super::router::{RoutedTrees, Router};
use super::walk::{RoutedRows, RoutedTree, rows_of_block};
use crate::paired::WalkedCode;

/// What is predicted of a row.
///
/// ```
/// use ferrank_forest::Output;
///
/// assert_eq!(Output::default(), Output::Values { threshold: 0.5 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// A column for each target: means, the most probable class, and the labels whose share is above the threshold. In
    /// multi-label tasks a row has the label if the share is.
    Values {
        /// From 0 to below 1.
        threshold: f64,
    },
    /// A column for each component: means, and shares of classes and labels.
    Shares,
    /// A column for each tree: the number of the leaf's node.
    Leaves,
}

impl Default for Output {
    fn default() -> Self {
        Output::Values { threshold: 0.5 }
    }
}

impl KeptForest {
    /// Predicts the rows of `source`, whose columns are found by name, on a pool of `threads` threads. Calls `each` with
    /// the predictions of some rows after the other, in their order.
    ///
    /// The same rows get the same bits for any number of threads and any chunks.
    ///
    /// # Errors
    /// A column is missing or of another kind, a value is infinite, the source cannot be read, or the first error of `each`;
    /// [`Interrupted`](Error::Interrupted) on request.
    pub fn predict(
        &self,
        source: &dyn ChunkSource,
        output: Output,
        threads: usize,
        monitor: &Monitor,
        mut each: impl FnMut(RecordBatch) -> Result<()> + Send,
    ) -> Result<()> {
        let schema = self.output_schema(output)?;
        let problem = self.problem().elsewhere(source)?;
        let positions: Vec<usize> = problem.features.iter().map(|feature| feature.column).collect();
        let names = self.head.features.iter().map(|feature| feature.categories.as_deref());
        let category_check = CategoryCheck::new(source, problem.features.iter().zip(names));
        let intake = Intake::new(source, &problem, Unlabelled::Error, monitor);
        pool(threads)?.install(|| {
            let router = self.router()?;
            let blocks =
                Blocks { forest: self, router, intake: &intake, positions: &positions, output, schema: &schema };
            intake.pass(Phase::Predicting, |batch| {
                category_check.check(batch)?;
                let n_rows = blocks.rows(batch.num_rows(), threads);
                let starts: Vec<usize> = (0..batch.num_rows()).step_by(n_rows).collect();
                let block = |&start: &usize| {
                    monitor.check()?;
                    blocks.predict(&batch.slice(start, n_rows.min(batch.num_rows() - start)))
                };
                let found = starts.par_iter().map(block).collect::<Result<Vec<RecordBatch>>>()?;
                found.into_iter().try_for_each(&mut each)
            })?;
            Ok(())
        })
    }

    /// Writes the predictions for the rows of `source` to an Arrow file at `path`, chunk by chunk, and returns their
    /// number. The file appears only when complete.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict), and a folder that cannot be written, or a full disk.
    pub fn predict_to(
        &self,
        source: &dyn ChunkSource,
        output: Output,
        threads: usize,
        path: &Path,
        monitor: &Monitor,
    ) -> Result<u64> {
        let failed = |error: ArrowError| match error {
            ArrowError::IoError(_, source) => Error::file(path, source),
            other => Error::Data(format!("{}: {other}", path.display())),
        };
        let schema = self.output_schema(output)?;
        let file = unfinished(path).map_err(|e| Error::file(path, e))?;
        let mut writer = FileWriter::try_new(BufWriter::new(file.as_file()), &schema).map_err(failed)?;
        let mut rows = 0;
        self.predict(source, output, threads, monitor, |batch| {
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(failed)
        })?;
        writer.finish().map_err(failed)?;
        drop(writer);
        file.persist(path).map_err(|e| Error::file(path, e.error))?;
        Ok(rows)
    }

    /// The columns of predictions.
    ///
    /// # Errors
    /// [`Error::Setting`] for a threshold out of range, or a forest without a target, which predicts leaves alone.
    pub fn output_schema(&self, output: Output) -> Result<SchemaRef> {
        let targets = &self.head.targets;
        check(
            output == Output::Leaves || !targets.is_empty(),
            "task: a forest without a target predicts nothing; its leaves can be had",
        )?;
        let fields: Vec<Field> = match output {
            Output::Values { threshold } => {
                check((0.0..1.0).contains(&threshold), format!("threshold: {threshold} is not in 0 … below 1"))?;
                targets.iter().map(|target| Field::new(&target.name, value_type(target), false)).collect()
            }
            Output::Shares => {
                let of_target = |target: &KeptTarget| match target.kind {
                    Kind::Numeric => vec![target.name.clone()],
                    _ => target.values.iter().map(|value| format!("{}={value}", target.name)).collect(),
                };
                let names = targets.iter().flat_map(of_target);
                names.map(|name| Field::new(name, DataType::Float64, false)).collect()
            }
            Output::Leaves => {
                (0..self.n_trees()).map(|tree| Field::new(format!("tree{tree}"), DataType::UInt32, false)).collect()
            }
        };
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The features as columns whose place is not known yet.
    fn problem(&self) -> Problem {
        let attribute = |feature: &KeptFeature| Attribute {
            name: feature.name.clone(),
            column: 0,
            kind: if feature.categories.is_some() { Kind::Nominal } else { Kind::Numeric },
        };
        Problem {
            task: self.head.task,
            features: self.head.features.iter().map(attribute).collect(),
            targets: Vec::new(),
            weight: None,
            groups: None,
            labels: None,
        }
    }

    /// Number of trees that predict each component.
    fn trees_of_components(&self) -> f64 {
        if self.head.per_target { self.head.n_estimators as f64 } else { self.n_trees() as f64 }
    }
}

fn value_type(target: &KeptTarget) -> DataType {
    match target.kind {
        Kind::Numeric => DataType::Float64,
        Kind::Nominal => DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)),
        Kind::Labels => DataType::new_list(DataType::Utf8, true),
    }
}

/// What the predictions of all blocks of rows share.
struct Blocks<'a> {
    forest: &'a KeptForest,
    router: &'a Router,
    intake: &'a Intake<'a>,
    /// n_features; where the features are in a batch.
    positions: &'a [usize],
    output: Output,
    schema: &'a SchemaRef,
}

impl Blocks<'_> {
    /// Number of rows of a block, of a batch of `n` rows.
    fn rows(&self, n: usize, threads: usize) -> usize {
        rows_of_block(n, self.router.coder.n_columns().max(self.forest.head.n_components()), threads)
    }

    fn predict(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        match &self.router.trees {
            RoutedTrees::Narrow(trees) => self.predict_by(trees, batch),
            RoutedTrees::Wide(trees) => self.predict_by(trees, batch),
        }
    }

    fn predict_by<C: WalkedCode>(&self, trees: &[RoutedTree<C>], batch: &RecordBatch) -> Result<RecordBatch> {
        let (coder, head) = (&self.router.coder, &self.forest.head);
        let mut codes = Vec::<C>::new();
        coder.encode(batch, self.positions, &mut codes).map_err(|(column, e)| self.intake.in_column(column, e))?;
        let (n, n_columns) = (batch.num_rows(), coder.n_columns());
        let mut routed = RoutedRows::default();
        if self.output == Output::Leaves {
            let column = |tree: &RoutedTree<C>| -> ArrayRef {
                tree.route(&codes, n_columns, n, &mut routed);
                let mut nodes = vec![0; n];
                for (&row, &leaf) in routed.rows.iter().zip(&routed.leaves) {
                    nodes[row as usize] = tree.leaf_nodes[leaf as usize];
                }
                Arc::new(UInt32Array::from(nodes))
            };
            return self.batch(n, trees.iter().map(column).collect());
        }
        let n_components = head.n_components();
        let mut sums = vec![0.0; n * n_components];
        for tree in trees {
            tree.route(&codes, n_columns, n, &mut routed);
            tree.add(&routed, n_components, &mut sums);
        }
        let n_trees = self.forest.trees_of_components();
        sums.iter_mut().for_each(|sum| *sum /= n_trees);
        let columns = match self.output {
            Output::Values { threshold } => {
                let targets = head.targets.iter().zip(head.components());
                targets.map(|(target, range)| values(target, range, threshold, &sums, n_components)).collect()
            }
            _ => (0..n_components).map(|number| component(number, &sums, n_components)).collect(),
        };
        self.batch(n, columns)
    }

    fn batch(&self, n: usize, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| Error::Data(format!("predictions: {error}")))
    }
}

/// The column of a component of `means`, n_rows x n_components.
fn component(number: usize, means: &[f64], n_components: usize) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(means.iter().skip(number).step_by(n_components).copied()))
}

/// The column of a target with the components `range`.
fn values(target: &KeptTarget, range: Range<usize>, threshold: f64, means: &[f64], n_components: usize) -> ArrayRef {
    let rows = means.chunks_exact(n_components).map(|row| &row[range.clone()]);
    match target.kind {
        Kind::Numeric => component(range.start, means, n_components),
        Kind::Nominal => {
            let class = |shares: &[f64]| match target.positive {
                None => most(shares),
                Some(positive) => {
                    let has_label = shares.get(positive as usize).is_some_and(|&share| share > threshold);
                    // Two classes, of which one may be missing.
                    if has_label { positive as usize } else { usize::from(positive == 0).min(shares.len() - 1) }
                }
            };
            let names = StringArray::from_iter_values(&target.values);
            let builder =
                StringDictionaryBuilder::<UInt16Type>::new_with_dictionary(means.len() / n_components, &names);
            let Ok(mut builder) = builder else { unreachable!("classes are checked to be different and not too many") };
            rows.for_each(|shares| builder.append_value(&target.values[class(shares)]));
            Arc::new(builder.finish())
        }
        Kind::Labels => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for shares in rows {
                for (label, _) in target.values.iter().zip(shares).filter(|(_, share)| **share > threshold) {
                    lists.values().append_value(label);
                }
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
    }
}
