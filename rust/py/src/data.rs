//! What can be done with data besides ranking: look at them, convert them, find neighbours, close label sets.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::Error;
use ferrank::closed_sets::closed_sets as read_closed_sets;
use ferrank::inspect::inspect as inspect_source;
use ferrank::integer_targets::IntegerTargets;
use ferrank::knn;
use ferrank::source::{read_json as read_json_file, spill as spill_stream, write_ipc};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::input::Source;
use crate::reader::reader;
use crate::run::Run;
use crate::{results, roles, settings};

/// Finds the nearest rows of `train` to each row of `test`, under every ranking in the settings.
#[pyfunction]
pub(crate) fn neighbors(
    train: &Source,
    test: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
) -> PyResult<Run> {
    let (train, test) = (train.0.clone(), test.0.clone());
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::knn(settings)?);
    Run::start(
        move |monitor| knn::neighbors(&*train, &*test, &roles, &params, threads, monitor),
        |py, neighbors| Ok(results::neighbors(py, neighbors)?.into_any()),
    )
}

/// Reads the label sets of all rows of `source`, with the labels above them.
#[pyfunction]
pub(crate) fn closed_sets(source: &Source, roles: &Bound<'_, PyDict>, settings: &Bound<'_, PyDict>) -> PyResult<Run> {
    let (source, roles) = (source.0.clone(), roles::ranked_roles(roles, settings)?);
    Run::start(
        move |monitor| read_closed_sets(&*source, &roles, monitor),
        |py, sets| Ok(results::closed_sets(py, sets)?.into_any()),
    )
}

/// Describes the columns of `source`.
#[pyfunction]
pub(crate) fn inspect(source: &Source) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(
        move |monitor| inspect_source(&*source, monitor),
        |py, inspection| Ok(results::inspection(py, inspection)?.into_any()),
    )
}

/// The targets of `source`, as (name, distinct integers or None); see `class_roles`.
#[pyfunction]
pub(crate) fn integer_targets(source: &Source, roles: &Bound<'_, PyDict>) -> PyResult<Run> {
    let (source, roles) = (source.0.clone(), roles::roles(roles)?);
    Run::start(
        move |monitor| IntegerTargets::find(&*source, &roles, monitor),
        |py, found| Ok(found.targets.into_pyobject(py)?.into_any()),
    )
}

/// The names of the targets whose integers stand for classes, and whether all targets are labels, where `parts` of a
/// data set have these integers.
#[pyfunction]
pub(crate) fn class_roles(parts: Vec<Vec<(String, Option<Vec<i64>>)>>) -> (Vec<String>, bool) {
    let found = IntegerTargets::merged(parts.into_iter().map(|targets| IntegerTargets { targets }));
    (found.classes(), found.are_labels())
}

/// Writes `source` to the Arrow file at `path`; the result is the number of rows.
#[pyfunction]
pub(crate) fn convert(source: &Source, path: PathBuf) -> PyResult<Run> {
    let source = source.0.clone();
    Run::start(move |monitor| write_ipc(&*source, &path, monitor), |py, rows| Ok(rows.into_pyobject(py)?.into_any()))
}

/// Keeps a stream that can be read only once in a file in the folder `temp_dir`; the result is a `Source`.
#[pyfunction]
#[pyo3(signature = (data, name, temp_dir=None))]
pub(crate) fn spill(data: &Bound<'_, PyAny>, name: String, temp_dir: Option<PathBuf>) -> PyResult<Run> {
    let stream = reader(data)?;
    Run::start(
        move |monitor| {
            let schema = stream.schema();
            let batches = stream.map(|batch| {
                monitor.check()?;
                batch.map_err(|e| Error::Data(format!("{name}: {e}")))
            });
            spill_stream(&name, schema, batches, temp_dir.as_deref())
        },
        |py, source| Ok(Bound::new(py, Source(Arc::new(source)))?.into_any()),
    )
}

/// Keeps the rows of the JSON file at `path` in a file in the folder `temp_dir`; the result is a `Source`.
#[pyfunction]
#[pyo3(signature = (path, name, temp_dir=None))]
pub(crate) fn read_json(path: PathBuf, name: String, temp_dir: Option<PathBuf>) -> PyResult<Run> {
    Run::start(
        move |monitor| read_json_file(&path, &name, temp_dir.as_deref(), monitor),
        |py, source| Ok(Bound::new(py, Source(Arc::new(source)))?.into_any()),
    )
}

/// Returns true if a column with the categories `names` was text, and neither truth values nor numbers.
#[pyfunction]
pub(crate) fn was_text(names: Vec<String>) -> bool {
    ferrank::category_check::was_text(&names)
}
