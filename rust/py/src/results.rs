//! Results for Python: plain dicts of NumPy arrays, and Arrow for tables.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_pyarrow::IntoPyArrow;
use ferrank::Result;
use ferrank::closed_sets::ClosedSets;
use ferrank::early_stopping::Stop;
use ferrank::forest::{Node, Split, Test, Tree};
use ferrank::inspect::{Column, Inspection};
use ferrank::knn::{Neighbors, Target, TargetPair};
use ferrank::ranking::{ModelError, Ranking, ScoreRanking};
use ferrank::relevance::Relevance;
use ferrank::schema::{Attribute, Kind, Problem, Roles};
use ferrank::source::ChunkSource;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn ranking<'py>(py: Python<'py>, ranking: Ranking, stopped: Option<Stop>) -> PyResult<Bound<'py, PyDict>> {
    let n_targets = ranking.targets.len();
    let scores = ranking.scores.into_iter().map(|s| score(py, s, n_targets)).collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    dict.set_item("task", ranking.task.name())?;
    dict.set_item("n_rows", ranking.n_rows)?;
    dict.set_item("n_unlabelled", ranking.n_unlabelled)?;
    dict.set_item("features", ranking.features)?;
    dict.set_item("targets", ranking.targets)?;
    dict.set_item("scores", scores)?;
    let (errors, reason) = match ranking.model_error {
        Ok(errors) => (Some(model_errors(py, errors)?), None),
        Err(reason) => (None, Some(reason)),
    };
    dict.set_item("model_error", errors)?;
    dict.set_item("no_model_error", reason)?;
    let relevance = ranking.relevance.map(|Relevance { evidence, most_evidence, .. }| {
        [evidence, most_evidence].map(|values| PyArray1::from_vec(py, values))
    });
    dict.set_item("relevance", relevance)?;
    dict.set_item("stopped", stopped.map(|stop| stop_as_dict(py, &stop)).transpose()?)?;
    Ok(dict)
}

/// The errors by target.
fn model_errors(py: Python<'_>, errors: Vec<ModelError>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for error in errors {
        let entry = PyDict::new(py);
        entry.set_item("measure", error.measure)?;
        entry.set_item("error", error.error)?;
        entry.set_item("guess", error.guess)?;
        entry.set_item("standard_error", error.standard_error)?;
        entry.set_item("squared_error", error.squared_error)?;
        entry.set_item("is_better", error.is_better)?;
        entry.set_item("n_rows", error.n_rows)?;
        dict.set_item(error.target, entry)?;
    }
    Ok(dict)
}

fn stop_as_dict<'py>(py: Python<'py>, stop: &Stop) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("reason", stop.reason.name())?;
    dict.set_item("confidence", stop.confidence)?;
    dict.set_item("top", stop.top)?;
    dict.set_item("clear", stop.clear)?;
    dict.set_item("effort", stop.effort)?;
    dict.set_item("bag", stop.bag)?;
    dict.set_item("sampled", stop.sampled)?;
    dict.set_item("of", stop.of)?;
    dict.set_item("needed", stop.needed)?;
    Ok(dict)
}

fn score<'py>(py: Python<'py>, score: ScoreRanking, n_targets: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let n_features = score.importance.len();
    let (best, worst): (Vec<u32>, Vec<u32>) = score.rank_interval.into_iter().unzip();
    dict.set_item("score", score.score)?;
    dict.set_item("importance", PyArray1::from_vec(py, score.importance))?;
    dict.set_item("standard_error", PyArray1::from_vec(py, score.standard_error))?;
    dict.set_item("monte_carlo_error", PyArray1::from_vec(py, score.monte_carlo_error))?;
    dict.set_item("freedom", score.freedom)?;
    dict.set_item("rank", PyArray1::from_vec(py, score.rank))?;
    dict.set_item("rank_best", PyArray1::from_vec(py, best))?;
    dict.set_item("rank_worst", PyArray1::from_vec(py, worst))?;
    let by_target = match score.by_target.is_empty() {
        true => None,
        false => Some(PyArray1::from_vec(py, score.by_target).reshape([n_features, n_targets])?),
    };
    dict.set_item("by_target", by_target)?;
    Ok(dict)
}

/// Columns in their roles; features and targets as (name, kind).
pub(crate) fn problem<'py>(py: Python<'py>, problem: Problem) -> PyResult<Bound<'py, PyDict>> {
    let columns = |attributes: Vec<Attribute>| -> Vec<(String, &str)> {
        let kind = |kind| match kind {
            Kind::Numeric => "numeric",
            Kind::Nominal => "nominal",
            Kind::Labels => "labels",
        };
        attributes.into_iter().map(|attribute| (attribute.name, kind(attribute.kind))).collect()
    };
    let dict = PyDict::new(py);
    dict.set_item("task", problem.task.name())?;
    dict.set_item("features", columns(problem.features))?;
    dict.set_item("targets", columns(problem.targets))?;
    Ok(dict)
}

/// Neighbours of each test row by ranking, and the targets of both sources.
pub(crate) fn neighbors<'py>(py: Python<'py>, neighbors: Neighbors) -> PyResult<Bound<'py, PyDict>> {
    let n_neighbors = neighbors.rows.first().map_or(0, |rows| rows.len() / neighbors.n_test.max(1));
    let shape = [neighbors.n_test, n_neighbors];
    let rows: PyResult<Vec<_>> =
        neighbors.rows.into_iter().map(|rows| PyArray1::from_vec(py, rows).reshape(shape)).collect();
    let distances: PyResult<Vec<_>> =
        neighbors.distances.into_iter().map(|apart| PyArray1::from_vec(py, apart).reshape(shape)).collect();
    let targets = neighbors.targets.into_iter().map(|one| target(py, one));
    let dict = PyDict::new(py);
    dict.set_item("task", neighbors.task.name())?;
    dict.set_item("n_train", neighbors.n_train)?;
    dict.set_item("n_test", neighbors.n_test)?;
    dict.set_item("targets", targets.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("rows", rows?)?;
    dict.set_item("distances", distances?)?;
    Ok(dict)
}

/// One target of both sources. Categories by number and labels as 0 and 1, -1 where missing.
fn target<'py>(py: Python<'py>, target: Target) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", target.name)?;
    dict.set_item("weight", target.weight)?;
    match target.values {
        TargetPair::Numeric { train, test } => {
            dict.set_item("kind", "numeric")?;
            dict.set_item("train", PyArray1::from_vec(py, train))?;
            dict.set_item("test", PyArray1::from_vec(py, test))?;
        }
        TargetPair::Nominal { categories, train, test } => {
            dict.set_item("kind", "nominal")?;
            dict.set_item("categories", categories)?;
            dict.set_item("train", codes(py, train))?;
            dict.set_item("test", codes(py, test))?;
        }
        TargetPair::Label { train, test } => {
            dict.set_item("kind", "label")?;
            dict.set_item("train", codes(py, train))?;
            dict.set_item("test", codes(py, test))?;
        }
    }
    Ok(dict)
}

fn codes<T: Into<i32>>(py: Python<'_>, codes: Vec<Option<T>>) -> Bound<'_, PyArray1<i32>> {
    PyArray1::from_iter(py, codes.into_iter().map(|code| code.map_or(-1, T::into)))
}

/// Labels with their shares, and the closed set of each row: offsets, numbers of labels, and true for sets that are known.
pub(crate) fn closed_sets<'py>(py: Python<'py>, sets: ClosedSets) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("names", sets.names)?;
    dict.set_item("shares", PyArray1::from_vec(py, sets.shares))?;
    dict.set_item("starts", PyArray1::from_vec(py, sets.starts))?;
    dict.set_item("labels", PyArray1::from_vec(py, sets.labels))?;
    dict.set_item("known", PyArray1::from_vec(py, sets.known))?;
    Ok(dict)
}

pub(crate) fn inspection<'py>(py: Python<'py>, inspection: Inspection) -> PyResult<Bound<'py, PyDict>> {
    let columns: PyResult<Vec<_>> = inspection.columns.into_iter().map(|c| column(py, c)).collect();
    let dict = PyDict::new(py);
    dict.set_item("rows", inspection.rows)?;
    dict.set_item("columns", PyList::new(py, columns?)?)?;
    dict.set_item("labels", inspection.labels)?;
    Ok(dict)
}

fn column<'py>(py: Python<'py>, column: Column) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", column.name)?;
    dict.set_item("type", column.data_type)?;
    dict.set_item("kind", column.kind.name())?;
    dict.set_item("missing", column.missing)?;
    dict.set_item("range", column.range)?;
    dict.set_item("distinct", column.distinct)?;
    dict.set_item("top", column.top)?;
    dict.set_item("task", column.task.map(|task| task.name()))?;
    Ok(dict)
}

/// A tree and the names of the features that it tests.
pub(crate) struct NamedTree {
    tree: Tree,
    features: Vec<String>,
}

impl NamedTree {
    pub(crate) fn new(source: &dyn ChunkSource, roles: &Roles, tree: Tree) -> Result<Self> {
        let problem = Problem::resolve(&source.schema(), roles, source.name())?;
        Ok(NamedTree { tree, features: problem.features.into_iter().map(|f| f.name).collect() })
    }

    /// One value for each node, of its split where it has one.
    fn of_splits<'a, T>(&'a self, value: impl Fn(&'a Split) -> Option<T>) -> impl Iterator<Item = Option<T>> {
        self.tree.nodes.iter().map(move |node| node.split.as_ref().and_then(&value))
    }

    fn parents(&self) -> Int64Array {
        let mut parents = vec![None; self.tree.nodes.len()];
        for (number, node) in (0..).zip(&self.tree.nodes) {
            if let Node { split: Some(Split { children: (left, right), .. }), .. } = *node {
                (parents[left], parents[right]) = (Some(number), Some(number));
            }
        }
        parents.into()
    }

    fn categories(&self) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for node in &self.tree.nodes {
            match &node.split {
                Some(Split { test: Test::Subset(names), .. }) => lists.append_value(names.iter().map(Some)),
                _ => lists.append_null(),
            }
        }
        Arc::new(lists.finish())
    }
}

/// The tree as a pyarrow record batch, a row for each node.
pub(crate) fn tree<'py>(py: Python<'py>, tree: &NamedTree) -> PyResult<Bound<'py, PyAny>> {
    let nodes = &tree.tree.nodes;
    let cut = |split: &Split| match split.test {
        Test::Cut(cut) => Some(cut),
        Test::Subset(_) => None,
    };
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("node", Arc::new(Int64Array::from_iter_values(0..nodes.len() as i64)) as ArrayRef, false),
        ("parent", Arc::new(tree.parents()), true),
        ("depth", Arc::new(nodes.iter().map(|n| Some(n.depth as i64)).collect::<Int64Array>()), false),
        ("n_examples", Arc::new(nodes.iter().map(|n| Some(n.n_examples)).collect::<UInt64Array>()), false),
        ("feature", Arc::new(tree.of_splits(|s| Some(&tree.features[s.feature])).collect::<StringArray>()), true),
        ("cut", Arc::new(tree.of_splits(cut).collect::<Float64Array>()), true),
        ("categories", tree.categories(), true),
        ("missing_left", Arc::new(tree.of_splits(|s| Some(s.missing_left)).collect::<BooleanArray>()), true),
        ("gain", Arc::new(tree.of_splits(|s| Some(s.gain)).collect::<Float64Array>()), true),
        ("left", Arc::new(tree.of_splits(|s| Some(s.children.0 as i64)).collect::<Int64Array>()), true),
        ("right", Arc::new(tree.of_splits(|s| Some(s.children.1 as i64)).collect::<Int64Array>()), true),
    ])
    .map_err(|e| PyValueError::new_err(e.to_string()))?;
    batch.into_pyarrow(py)
}
