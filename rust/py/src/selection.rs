//! Relief where no process holds all rows: which rows count for the queries, and contributions from those that do.

use std::path::PathBuf;

use ferrank::forest::apart;
use ferrank::intake::View;
use ferrank::profile::Profile;
use ferrank::relief::selection::{self, Selection};
use ferrank::{Result, RunOptions, Settings};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::accumulator::Accumulator;
use crate::error::to_py;
use crate::exit::detach;
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// For each row of `source` whether it takes part; the result is an array.
#[pyfunction]
pub(crate) fn taking_part(source: &Source, roles: &Bound<'_, PyDict>, settings: &Bound<'_, PyDict>) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    Run::start(
        move |monitor| {
            let view = View::new(&*source, &roles, params.unlabelled);
            let problem = view.problem()?;
            view.intake(&problem, monitor).taking_part()
        },
        |py, rows| Ok(PyArray1::from_vec(py, rows).into_any()),
    )
}

/// Why a worker must hold all rows, or their codes, of the data set of `profile`, whose columns are those of `source`;
/// `None` if none must.
#[pyfunction]
pub(crate) fn obstacle(
    py: Python<'_>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
) -> PyResult<Option<&'static str>> {
    let (roles, ranker) = (roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    let found = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        let problem = View::new(&*source.0, &roles, ranker.ranker().unlabelled()).problem()?;
        Ok(match &ranker {
            Settings::Forest(params) => apart::obstacle(&problem, params),
            Settings::Relief(params) => selection::obstacle(&problem, params, &profile),
            _ => Some("ranker: it has no way to leave rows where they are"),
        })
    });
    found.map_err(|e| to_py(py, e))
}

/// The numbers of the rows that are queries of the blocks `keys`, ascending.
#[pyfunction]
pub(crate) fn queries<'py>(
    py: Python<'py>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
    keys: (u64, u64),
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    let found: Result<Vec<u32>> = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        let problem = View::new(&*source.0, &roles, params.unlabelled).problem()?;
        let options = RunOptions::default().with_keys(Some(keys.0..keys.1));
        selection::queries(&problem, &params, &options, &profile)
    });
    found.map(|rows| PyArray1::from_vec(py, rows)).map_err(|e| to_py(py, e))
}

/// The names of the columns that must be known of all rows, beside those of a selection, and of the features in whose
/// place rows have ranks among all rows.
#[pyfunction]
pub(crate) fn beside(
    py: Python<'_>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    let found = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        let problem = View::new(&*source.0, &roles, params.unlabelled).problem()?;
        Ok(selection::beside(&problem, &params, &profile))
    });
    found.map(|selection::Beside { targets, ranked }| (targets, ranked)).map_err(|e| to_py(py, e))
}

/// Reads the values of the numeric features called `names`; the result is a list of arrays, NaN where missing.
#[pyfunction]
pub(crate) fn values(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    names: Vec<String>,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    Run::start(
        move |monitor| selection::values(View::new(&*source, &roles, params.unlabelled), &names, monitor),
        |py, columns| {
            let columns: Vec<_> = columns.into_iter().map(|column| PyArray1::from_vec(py, column)).collect();
            Ok(columns.into_pyobject(py)?.into_any())
        },
    )
}

/// Finds the places of `queries` and of the rows that count for them, among rows with these `numbers`; the result is an
/// array.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory, temp_dir, profile, numbers, queries))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn nearest(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    profile: PyBackedBytes,
    numbers: PyReadonlyArray1<'_, u32>,
    queries: PyReadonlyArray1<'_, u32>,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    let (numbers, queries) = (numbers.as_array().to_vec(), queries.as_array().to_vec());
    Run::start(
        move |monitor| {
            let profile = Profile::from_ipc(profile.to_vec())?;
            let options = RunOptions::default()
                .with_threads(threads)
                .with_memory(memory)
                .with_temp_dir(temp_dir.as_deref())
                .with_keys(Some(0..1))
                .with_profile(Some(&profile));
            selection::nearest(&*source, &roles, &params, &options, (&numbers, &queries), monitor)
        },
        |py, rows| Ok(PyArray1::from_vec(py, rows).into_any()),
    )
}

/// Computes the contributions of the blocks of queries `keys`, from rows with these `numbers` and the `targets` of all
/// rows, where these are needed; the result is an `Accumulator`.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory, temp_dir, profile, numbers, keys, targets))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn search(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    profile: PyBackedBytes,
    numbers: PyReadonlyArray1<'_, u32>,
    keys: (u64, u64),
    targets: Option<&Source>,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::relief(settings)?);
    let (numbers, targets) = (numbers.as_array().to_vec(), targets.map(|source| source.0.clone()));
    Accumulator::run(move |monitor| {
        let profile = Profile::from_ipc(profile.to_vec())?;
        let options = RunOptions::default()
            .with_threads(threads)
            .with_memory(memory)
            .with_temp_dir(temp_dir.as_deref())
            .with_keys(Some(keys.0..keys.1))
            .with_profile(Some(&profile));
        let selection = Selection { numbers: &numbers, targets: targets.as_ref().map(|targets| &**targets as _) };
        selection::accumulate(&*source, &roles, &params, &options, selection, monitor)
    })
}
