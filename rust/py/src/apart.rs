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

use crate::accumulator::Accumulator;
use crate::error::to_py;
use crate::exit::detach;
use crate::held_bytes::{HeldBytes, buffer};
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// Codes the parts of a data set for a forest.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Coder(Arc<ferrank::forest::Coder>);

#[pymethods]
impl Coder {
    /// Derives the codes of the data set of `profile` with the columns of `source`; of the rows that have the target
    /// `alone`, if that is given.
    #[staticmethod]
    #[pyo3(signature = (source, roles, settings, profile, alone=None))]
    fn of(
        py: Python<'_>,
        source: &Source,
        roles: &Bound<'_, PyDict>,
        settings: &Bound<'_, PyDict>,
        profile: PyBackedBytes,
        alone: Option<usize>,
    ) -> PyResult<Self> {
        let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
        let coder = detach(py, || {
            let view = View::new(&*source.0, &roles, params.treatment()).with_alone(alone);
            ferrank::forest::Coder::new(view, &params, &Profile::from_ipc(profile.to_vec())?)
        });
        coder.map(|coder| Coder(Arc::new(coder))).map_err(|e| to_py(py, e))
    }

    /// Codes a part; the result is an array of bytes, which are not copied.
    fn code(&self, part: &Source, threads: usize) -> PyResult<Run> {
        let (coder, part) = (self.0.clone(), part.0.clone());
        Run::start(
            move |monitor| coder.code(&*part, threads, monitor),
            |py, bytes| Ok(PyArray1::from_vec(py, bytes).into_any()),
        )
    }

    /// The targets and weights of a part, whose codes are `codes`, as bytes.
    #[staticmethod]
    fn answers<'py>(py: Python<'py>, codes: HeldBytes) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detach(py, || ferrank::forest::Coder::answers(buffer(codes)));
        bytes.map(|bytes| PyBytes::new(py, &bytes)).map_err(|e| to_py(py, e))
    }
}

/// The trees of a run in ranges, each to be grown over parts by calls of their own.
#[pyfunction]
pub(crate) fn rounds(
    py: Python<'_>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
) -> PyResult<Vec<(u64, u64)>> {
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
    let rounds = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        apart::rounds(View::new(&*source.0, &roles, params.treatment()), &params, &profile)
    });
    let rounds = rounds.map_err(|e| to_py(py, e))?;
    Ok(rounds.into_iter().map(|round| (round.start, round.end)).collect())
}

/// Bytes that a worker needs to grow trees: with the codes of all rows, and where parts keep them.
#[pyfunction]
pub(crate) fn needs(
    py: Python<'_>,
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    profile: PyBackedBytes,
) -> PyResult<(u64, u64)> {
    let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::forest(settings)?);
    let needs = detach(py, || {
        let profile = Profile::from_ipc(profile.to_vec())?;
        apart::needs(View::new(&*source.0, &roles, params.treatment()), &params, &profile)
    });
    let needs = needs.map_err(|e| to_py(py, e))?;
    Ok((needs.in_memory as u64, needs.over_parts as u64))
}

/// The codes of a part, those of its shadows if there are some, and the number of its first row.
type PartCodes = (HeldBytes, Option<HeldBytes>, usize);

fn part_codes((codes, shadows, first): PartCodes) -> apart::PartCodes {
    apart::PartCodes { codes: buffer(codes), shadows: shadows.map(buffer), first }
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
        let apart = detach(py, || {
            let view = View::new(&*source.0, &roles, params.treatment());
            let answers = answers.into_iter().map(buffer).collect();
            apart::Apart::new(view, &params, &Profile::from_ipc(profile.to_vec())?, answers)
        });
        apart.map(|apart| Apart(Arc::new(apart))).map_err(|e| to_py(py, e))
    }

    /// Grows the trees from `first` up to `end`, of one round, on `threads` threads, within `memory` bytes; `parts` has
    /// the methods `sums`, `collect` and `rows`. The result is an `Accumulator`.
    fn accumulate(
        &self,
        first: u64,
        end: u64,
        threads: usize,
        memory: Option<u64>,
        temp_dir: Option<PathBuf>,
        parts: Py<PyAny>,
    ) -> PyResult<Run> {
        let apart = self.0.clone();
        Accumulator::run(move |monitor| {
            let options = RunOptions::default()
                .with_threads(threads)
                .with_memory(memory)
                .with_temp_dir(temp_dir.as_deref())
                .with_keys(Some(first..end));
            apart.accumulate(&options, &Asked(parts), monitor)
        })
    }

    /// Adds up what `request` asks for, of a part; the result is an array.
    fn sums(&self, part: PartCodes, request: PyBackedBytes, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.sums(part_codes(part), &request, threads, monitor),
            |py, sums| Ok(PyArray1::from_vec(py, sums).into_any()),
        )
    }

    /// Collects the rows of the buckets that `request` asks for, of a part; the result is a list of arrays of bytes, which
    /// are neither copied here nor where they arrive.
    fn collect(&self, part: PartCodes, request: PyBackedBytes, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.collect(part_codes(part), &request, threads, monitor),
            |py, pieces| {
                let pieces: Vec<_> = pieces.into_iter().map(|bytes| PyArray1::from_vec(py, bytes)).collect();
                Ok(pieces.into_pyobject(py)?.into_any())
            },
        )
    }

    /// Reads what `request` asks for of the rows of a part; the result is an array of bytes, as for `collect`.
    fn rows(&self, part: PartCodes, request: PyBackedBytes, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.rows(part_codes(part), &request, threads, monitor),
            |py, bytes| Ok(PyArray1::from_vec(py, bytes).into_any()),
        )
    }

    /// Reads the codes that the shadows of each part have from part number `number`, in the round that starts with tree
    /// number `tree`; `firsts` are the first rows of all parts. The result is a list of bytes.
    fn spread(&self, part: PartCodes, tree: u64, firsts: Vec<usize>, number: usize, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.spread(part_codes(part), (tree, &firsts, number), threads, monitor),
            list_of_bytes,
        )
    }

    /// Puts together the codes of the shadows of part number `number` from the `pieces` that all parts spread for it; the
    /// result is an array of bytes.
    fn shadows(
        &self,
        part: PartCodes,
        tree: u64,
        firsts: Vec<usize>,
        number: usize,
        pieces: Vec<PyBackedBytes>,
    ) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| {
                let pieces: Vec<_> = pieces.into_iter().map(buffer).collect();
                apart.shadows(part_codes(part), (tree, &firsts, number), &pieces, monitor)
            },
            |py, bytes| Ok(PyArray1::from_vec(py, bytes).into_any()),
        )
    }
}

fn list_of_bytes<'py>(py: Python<'py>, pieces: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyAny>> {
    let pieces: Vec<_> = pieces.iter().map(|bytes| PyBytes::new(py, bytes)).collect();
    Ok(pieces.into_pyobject(py)?.into_any())
}

/// Parts that a Python object asks.
struct Asked(Py<PyAny>);

impl Asked {
    fn ask<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| {
            call(self.0.bind(py)).map_err(|error| Error::Data(format!("a task on the cluster: {error}")))
        })
    }

    /// Calls `each` with what the iterator that `call` returns gives, which `take` converts.
    fn one_by_one<T>(
        &self,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
        take: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<T>,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let found = self.ask(|parts| Ok(call(parts)?.try_iter()?.unbind()))?;
        let next = || self.ask(|parts| found.bind(parts.py()).clone().next().map(|found| take(&found?)).transpose());
        while let Some(found) = next()? {
            each(found)?;
        }
        Ok(())
    }
}

impl Asked {
    fn rows_by(&self, method: &str, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.one_by_one(
            |parts| parts.call_method1(method, (PyBytes::new(parts.py(), request),)),
            |rows| rows.extract::<HeldBytes>(),
            |rows| each(&rows),
        )
    }
}

impl Parts for Asked {
    fn sums(&self, request: &[u8]) -> Result<Vec<f64>> {
        self.ask(|parts| {
            let sums = parts.call_method1("sums", (PyBytes::new(parts.py(), request),))?;
            Ok(sums.extract::<PyReadonlyArray1<'_, f64>>()?.as_array().to_vec())
        })
    }

    fn collect(&self, request: &[u8], each: &mut dyn FnMut(&[&[u8]]) -> Result<()>) -> Result<()> {
        self.one_by_one(
            |parts| parts.call_method1("collect", (PyBytes::new(parts.py(), request),)),
            |pieces| pieces.extract::<Vec<HeldBytes>>(),
            |pieces| each(&pieces.iter().map(|piece| &piece[..]).collect::<Vec<&[u8]>>()),
        )
    }

    fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.rows_by("rows", request, each)
    }

    fn few_rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.rows_by("few_rows", request, each)
    }
}
