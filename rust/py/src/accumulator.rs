//! Profiles and accumulators in Python: as bytes where they travel, as an object where contributions are read.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::Accumulator as Core;
use ferrank::budget::default_limit;
use ferrank::forest;
use ferrank::intake::View;
use ferrank::monitor::Monitor;
use ferrank::profile::Profile;
use ferrank::run::read_accumulator;
use ferrank::{Result, RunOptions};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::error::to_py;
use crate::exit::detach;
use crate::held_bytes::{HeldBytes, buffer};
use crate::input::Source;
use crate::run::Run;
use crate::{results, roles, settings};

/// Contributions of a run or of a part of it.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Accumulator(pub(crate) Core);

impl Accumulator {
    pub(crate) fn new(accumulator: Core) -> Self {
        Accumulator(accumulator)
    }

    /// Starts `work`; the result of the run is an `Accumulator`.
    pub(crate) fn run(work: impl FnOnce(&Monitor) -> Result<Core> + Send + 'static) -> PyResult<Run> {
        Run::start(work, |py, accumulator| Ok(Bound::new(py, Accumulator(accumulator))?.into_any()))
    }
}

#[pymethods]
impl Accumulator {
    /// The accumulator in `data`, an Arrow IPC stream; messages call it `name`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], name: &str) -> PyResult<Self> {
        let bytes = data.to_vec();
        detach(py, || read_accumulator(bytes, name)).map(Accumulator).map_err(|e| to_py(py, e))
    }

    /// The accumulator as an Arrow IPC stream.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detach(py, || self.0.to_ipc()).map_err(|e| to_py(py, e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The union of this one and `others`.
    fn union(&self, py: Python<'_>, others: Vec<PyRef<'_, Accumulator>>) -> PyResult<Self> {
        let mut all = self.0.clone();
        for other in &others {
            all.merge(&other.0).map_err(|e| to_py(py, e))?;
        }
        Ok(Accumulator(all))
    }

    /// The ranking that the contributions give.
    fn ranking<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranking = detach(py, || self.0.ranking()).map_err(|e| to_py(py, e))?;
        results::ranking(py, ranking, None)
    }

    /// Keys of the contributions, ascending.
    #[getter]
    fn keys(&self) -> Vec<u64> {
        self.0.keys().collect()
    }

    /// Number of contributions of a complete run.
    #[getter]
    fn n_keys(&self) -> u64 {
        self.0.identity().n_keys()
    }

    /// Hash of settings, columns and profile.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.identity().fingerprint()
    }

    /// Settings of the ranker.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        settings::to_dict(py, self.0.identity())
    }
}

/// A data set made of the codes of its parts, on which trees are grown.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Coded(Arc<forest::Coded>);

#[pymethods]
impl Coded {
    /// The data set with the columns of `source` and the rows of `parts`, in order, for `threads` threads, within
    /// `memory` bytes and with temporary files in the folder `temp_dir`; `own`: profile of the rows that have the
    /// target `alone`.
    #[staticmethod]
    #[pyo3(signature = (source, roles, settings, profile, parts, threads, memory=None, temp_dir=None, alone=None, own=None))]
    #[allow(clippy::too_many_arguments)]
    fn of(
        py: Python<'_>,
        source: &Source,
        roles: &Bound<'_, PyDict>,
        settings: &Bound<'_, PyDict>,
        profile: PyBackedBytes,
        parts: Vec<HeldBytes>,
        threads: usize,
        memory: Option<u64>,
        temp_dir: Option<PathBuf>,
        alone: Option<usize>,
        own: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
        let coded = detach(py, || {
            let options =
                RunOptions::default().with_threads(threads).with_memory(memory).with_temp_dir(temp_dir.as_deref());
            let parts = parts.into_iter().map(buffer).collect();
            let (profile, own) =
                (Profile::from_ipc(profile.to_vec())?, own.map(|bytes| Profile::from_ipc(bytes.to_vec())).transpose()?);
            let view = View::new(&*source.0, &roles, params.treatment()).with_alone(alone);
            forest::Coded::new(view, &params, &profile, own.as_ref(), parts, &options)
        });
        coded.map(|coded| Coded(Arc::new(coded))).map_err(|e| to_py(py, e))
    }

    /// Grows the trees from `first` up to `end` on `threads` threads; the result is an `Accumulator`.
    fn accumulate(&self, first: u64, end: u64, threads: usize) -> PyResult<Run> {
        let coded = self.0.clone();
        Accumulator::run(move |monitor| {
            let options = RunOptions::default().with_threads(threads).with_keys(Some(first..end));
            coded.accumulate(&options, monitor)
        })
    }
}

/// Bytes that each of `processes` processes of a machine may hold if nothing is said, or `None` where the system
/// does not tell.
#[pyfunction]
pub(crate) fn default_memory(processes: usize) -> Option<usize> {
    default_limit(processes)
}

/// Cores that this process may use, by its affinity and its control group.
#[pyfunction]
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Number of contributions of a complete run over the data set of `profile`, whose columns are those of `source`.
#[pyfunction]
pub(crate) fn n_keys(
    py: Python<'_>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
) -> PyResult<u64> {
    let (roles, ranker) = (roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    let n_keys = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        ferrank::run::n_keys(&*source.0, &roles, &ranker, &profile)
    });
    n_keys.map_err(|e| to_py(py, e))
}

/// The profile of all of which `parts` are profiles.
#[pyfunction]
pub(crate) fn merge_profiles<'py>(py: Python<'py>, parts: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
    let merged = detach(py, || {
        let mut parts = parts.iter().map(|part| Profile::from_ipc(part.to_vec()));
        let first = parts.next().unwrap_or_else(|| Profile::from_ipc(Vec::new()))?;
        let merged = parts.try_fold(first, |mut merged, part| merged.merge(&part?).map(|()| merged));
        merged?.to_ipc()
    });
    Ok(PyBytes::new(py, &merged.map_err(|e| to_py(py, e))?))
}

/// The `profile` of all rows with cut points in the place of its samples.
#[pyfunction]
pub(crate) fn derive_cuts(py: Python<'_>, profile: PyBackedBytes) -> PyResult<Bound<'_, PyBytes>> {
    let derived = detach(py, || Profile::from_ipc(profile.to_vec())?.derive_cuts().to_ipc());
    Ok(PyBytes::new(py, &derived.map_err(|e| to_py(py, e))?))
}
