//! Rankings and the steps that they consist of: profile, codes, contributions, trees.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::forest;
use ferrank::intake::View;
use ferrank::profile::{Place, Profile};
use ferrank::relevance::{Dependence, Relevance, Verdict};
use ferrank::{RunOptions, Settings, early_stopping};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::accumulator::Accumulator;
use crate::input::Source;
use crate::results::{self, NamedTree};
use crate::run::Run;
use crate::{roles, settings};

/// Computes contributions with the ranker that the settings name, on `threads` threads, within `memory` bytes and with
/// temporary files in the folder `temp_dir`; the result is an `Accumulator`.
///
/// `keys`: range of the trees or blocks wanted; `profile`: bytes of the profile of the data set; `resume`: file that
/// keeps contributions; `is_profiled`: the profile was made of `source` as it is.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory=None, temp_dir=None, keys=None, profile=None, resume=None, is_profiled=false))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn accumulate(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    keys: Option<(u64, u64)>,
    profile: Option<PyBackedBytes>,
    resume: Option<PathBuf>,
    is_profiled: bool,
) -> PyResult<Run> {
    let (source, roles, ranker) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Accumulator::run(move |monitor| {
        let profile = profile.map(|bytes| Profile::from_ipc(bytes.to_vec())).transpose()?;
        let options = RunOptions::default()
            .with_threads(threads)
            .with_memory(memory)
            .with_temp_dir(temp_dir.as_deref())
            .with_keys(keys.map(|(first, end)| first..end))
            .with_profile(profile.as_ref())
            .with_is_profiled(is_profiled)
            .with_resume(resume.as_deref());
        ferrank::run::accumulate(&*source, &roles, &ranker, &options, monitor)
    })
}

/// Ranks the features of `source` with as many trees or queries as the goal in the settings needs, on `threads`
/// threads, within `memory` bytes and with temporary files in the folder `temp_dir`.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory=None, temp_dir=None))]
pub(crate) fn rank_until(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
) -> PyResult<Run> {
    let (source, roles, goal) = (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::goal(settings)?);
    let ranker = settings::ranker(settings)?;
    Run::start(
        move |monitor| {
            let options =
                RunOptions::default().with_threads(threads).with_memory(memory).with_temp_dir(temp_dir.as_deref());
            early_stopping::rank(&*source, &roles, &ranker, &goal, &options, monitor)
        },
        |py, (ranking, stop)| Ok(results::ranking(py, ranking, Some(stop))?.into_any()),
    )
}

/// Draws the rows of `source` that Relief's setting `max_samples` asks for, within `memory` bytes; the result is a
/// `Source`, or `None` where all rows take part or the drawn ones are too many to be held.
#[pyfunction]
#[pyo3(signature = (source, settings, memory=None))]
pub(crate) fn sample(source: &Source, settings: &Bound<'_, PyDict>, memory: Option<u64>) -> PyResult<Run> {
    let (source, settings) = (source.0.clone(), settings::ranker(settings)?);
    Run::start(
        move |monitor| {
            let Settings::Relief(params) = &settings else { return Ok(None) };
            let sample = ferrank::relief::sample(&*source, params, monitor)?;
            sample.map_or(Ok(None), |sample| sample.read(memory, monitor))
        },
        |py, held| held.map(|held| Source(Arc::new(held))).into_pyobject(py),
    )
}

/// Profiles `source`, whose rows that take part are numbered from `first_row`, of `of_rows` rows in all, where that is
/// known; the result is bytes.
///
/// `alone`: number of the only target that counts.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, first_row, threads, alone=None, of_rows=None))]
pub(crate) fn profile(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    first_row: u64,
    threads: usize,
    alone: Option<usize>,
    of_rows: Option<u64>,
) -> PyResult<Run> {
    let (source, roles, settings) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(
        move |monitor| {
            let ranker = settings.ranker();
            let view = View::new(&*source, &roles, ranker.unlabelled()).with_alone(alone);
            let place = Place { first_row, of_rows };
            ferrank::profile::profile(view, ranker.max_bins(), place, threads, monitor)?.to_ipc()
        },
        to_bytes,
    )
}

/// Counts the rows of `source`; the result is how many there are, and how many take part.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, alone=None))]
pub(crate) fn count(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    alone: Option<usize>,
) -> PyResult<Run> {
    let (source, roles, settings) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(
        move |monitor| {
            let unlabelled = settings.ranker().unlabelled();
            ferrank::profile::count(View::new(&*source, &roles, unlabelled).with_alone(alone), monitor)
        },
        |py, counts| Ok((counts.rows, counts.kept).into_pyobject(py)?.into_any()),
    )
}

/// Grows tree number `tree` of a forest.
#[pyfunction]
pub(crate) fn grow_tree(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    tree: usize,
) -> PyResult<Run> {
    let (source, roles, params) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
    Run::start(
        move |monitor| {
            let tree = forest::grow_tree(&*source, &roles, &params, tree, monitor)?;
            NamedTree::new(&*source, &roles, tree)
        },
        |py, tree| results::tree(py, &tree),
    )
}

fn to_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyBytes::new(py, &bytes).into_any())
}

/// The least false discovery rate at which each feature is relevant; `any_dependence`: whatever the dependence of p-values.
#[pyfunction]
pub(crate) fn q_values<'py>(
    py: Python<'py>,
    evidence: PyReadonlyArray1<'py, f64>,
    any_dependence: bool,
) -> Bound<'py, PyArray1<f64>> {
    let evidence = evidence.as_array().to_vec();
    PyArray1::from_vec(py, Relevance::new(evidence.clone(), evidence).q_values(dependence(any_dependence)))
}

/// The verdict about each feature at the false discovery rate `rate`.
#[pyfunction]
pub(crate) fn verdicts(
    evidence: PyReadonlyArray1<'_, f64>,
    most_evidence: PyReadonlyArray1<'_, f64>,
    rate: f64,
    any_dependence: bool,
) -> Vec<&'static str> {
    let relevance = Relevance::new(evidence.as_array().to_vec(), most_evidence.as_array().to_vec());
    relevance.verdicts(rate, dependence(any_dependence)).into_iter().map(Verdict::name).collect()
}

/// The evidence of several p-values together; each part is the evidence, and the most that more trees may bring.
#[pyfunction]
pub(crate) fn join_evidence<'py>(
    py: Python<'py>,
    parts: Vec<[PyReadonlyArray1<'py, f64>; 2]>,
) -> Option<[Bound<'py, PyArray1<f64>>; 2]> {
    let part = |[evidence, most]: &[PyReadonlyArray1<'py, f64>; 2]| {
        Relevance::new(evidence.as_array().to_vec(), most.as_array().to_vec())
    };
    let joined = Relevance::joined(&parts.iter().map(part).collect::<Vec<Relevance>>())?;
    Some([joined.evidence, joined.most_evidence].map(|values| PyArray1::from_vec(py, values)))
}

fn dependence(any: bool) -> Dependence {
    if any { Dependence::Any } else { Dependence::Positive }
}

/// The best and the worst rank that standard errors with `freedom` degrees of freedom allow, n_features x 2.
#[pyfunction]
pub(crate) fn rank_intervals<'py>(
    py: Python<'py>,
    importance: PyReadonlyArray1<'py, f64>,
    standard_error: PyReadonlyArray1<'py, f64>,
    freedom: f64,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let (importance, standard_error) = (importance.as_array().to_vec(), standard_error.as_array().to_vec());
    if importance.len() != standard_error.len() {
        let (n, found) = (importance.len(), standard_error.len());
        return Err(PyValueError::new_err(format!("standard_errors: {found} errors for {n} importances")));
    }
    let intervals = ferrank::rank_intervals(&importance, &standard_error, freedom);
    let flat = intervals.iter().flat_map(|&(best, worst)| [best, worst]).collect();
    PyArray1::from_vec(py, flat).reshape([intervals.len(), 2])
}
