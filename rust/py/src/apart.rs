//! Forests over parts that keep their codes.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::forest::apart::{self, Parts};
use ferrank::intake::View;
use ferrank::profile::Profile;
use ferrank::{Error, Result, RunOptions};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::accumulator::{Accumulator, buffer};
use crate::error::to_py;
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// The targets and weights of a part, whose codes are `codes`, as bytes.
#[pyfunction]
pub(crate) fn answers<'py>(
    py: Python<'py>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
    codes: PyBackedBytes,
) -> PyResult<Bound<'py, PyBytes>> {
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
    let bytes = py.detach(|| {
        let profile = Profile::from_ipc(profile.to_vec())?;
        apart::answers(View::new(&*source.0, &roles, params.treatment()), &params, &profile, buffer(codes))
    });
    bytes.map(|bytes| PyBytes::new(py, &bytes)).map_err(|e| to_py(py, e))
}

/// What every worker knows of a data set in parts that keep their codes.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Apart(Arc<apart::Apart>);

#[pymethods]
impl Apart {
    /// The data set with the columns of `source`, and the targets and weights `answers` of its parts, in order.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        source: &Source,
        roles: &Bound<'_, PyDict>,
        settings: &Bound<'_, PyDict>,
        profile: PyBackedBytes,
        answers: Vec<PyBackedBytes>,
    ) -> PyResult<Self> {
        let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
        let apart = py.detach(|| {
            let view = View::new(&*source.0, &roles, params.treatment());
            let answers = answers.into_iter().map(buffer).collect();
            apart::Apart::new(view, &params, Profile::from_ipc(profile.to_vec())?, answers)
        });
        apart.map(|apart| Apart(Arc::new(apart))).map_err(|e| to_py(py, e))
    }

    /// Grows the trees from `first` up to `end` on `threads` threads, within `memory` bytes; `parts` has the methods
    /// `sums`, `collect`, `bucket` and `codes`. The result is an `Accumulator`.
    fn accumulate(&self, first: u64, end: u64, threads: usize, memory: Option<u64>, parts: Py<PyAny>) -> PyResult<Run> {
        let apart = self.0.clone();
        Accumulator::run(move |monitor| {
            let options = RunOptions::default().with_threads(threads).with_memory(memory).with_keys(Some(first..end));
            apart.accumulate(&options, &Asked(parts), monitor)
        })
    }

    /// Adds up what `request` asks for, of the part with these `codes`, whose first row is number `first`; the result is
    /// an array.
    fn sums(&self, codes: PyBackedBytes, first: usize, request: PyBackedBytes, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.sums((buffer(codes), first), &request, threads, monitor),
            |py, sums| Ok(PyArray1::from_vec(py, sums).into_any()),
        )
    }

    /// Collects the rows of the buckets that `request` asks for, of a part; the result is a list of bytes.
    fn collect(
        &self,
        codes: PyBackedBytes,
        first: usize,
        request: PyBackedBytes,
        threads: usize,
        temp_dir: Option<PathBuf>,
    ) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| {
                let options = RunOptions::default().with_threads(threads).with_temp_dir(temp_dir.as_deref());
                apart.collect((buffer(codes), first), &request, &options, monitor)
            },
            |py, buckets| {
                let buckets: Vec<_> = buckets.iter().map(|bytes| PyBytes::new(py, bytes)).collect();
                Ok(buckets.into_pyobject(py)?.into_any())
            },
        )
    }

    /// Reads the codes of those of `rows` that are in a part; the result is bytes.
    fn codes(&self, codes: PyBackedBytes, first: usize, rows: PyReadonlyArray1<'_, u64>) -> PyResult<Run> {
        let apart = self.0.clone();
        let rows: Vec<usize> = rows.as_array().iter().map(|&row| row as usize).collect();
        Run::start(
            move |monitor| apart.codes((buffer(codes), first), &rows, monitor),
            |py, bytes| Ok(PyBytes::new(py, &bytes).into_any()),
        )
    }
}

/// Parts that a Python object asks.
struct Asked(Py<PyAny>);

impl Asked {
    fn ask<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| {
            call(self.0.bind(py)).map_err(|error| Error::Data(format!("a task on the cluster: {error}")))
        })
    }
}

impl Parts for Asked {
    fn sums(&self, request: &[u8]) -> Result<Vec<f64>> {
        self.ask(|parts| {
            let sums = parts.call_method1("sums", (PyBytes::new(parts.py(), request),))?;
            Ok(sums.extract::<PyReadonlyArray1<'_, f64>>()?.as_array().to_vec())
        })
    }

    fn collect(&self, request: &[u8]) -> Result<()> {
        self.ask(|parts| parts.call_method1("collect", (PyBytes::new(parts.py(), request),)).map(drop))
    }

    fn bucket(&self, number: usize) -> Result<Vec<u8>> {
        self.ask(|parts| Ok(parts.call_method1("bucket", (number,))?.extract::<PyBackedBytes>()?.to_vec()))
    }

    fn codes(&self, rows: &[usize]) -> Result<Vec<u8>> {
        self.ask(|parts| {
            let rows = PyArray1::from_iter(parts.py(), rows.iter().map(|&row| row as u64));
            Ok(parts.call_method1("codes", (rows,))?.extract::<PyBackedBytes>()?.to_vec())
        })
    }
}
