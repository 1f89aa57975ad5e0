//! Tests of association over parts that keep their codes.

use std::sync::Arc;

use ferrank::association;
use ferrank::intake::View;
use ferrank::profile::Profile;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::accumulator::Accumulator;
use crate::error::to_py;
use crate::exit::detach;
use crate::held_bytes::{HeldBytes, buffer};
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// Most bytes of the sums that a task adds up.
const SUMS_BYTES: usize = 64 << 20;

/// What every worker knows of a data set in parts whose features are tested.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct TestsApart(Arc<association::Apart>);

#[pymethods]
impl TestsApart {
    /// The data set with the columns of `source`, and the targets `answers` of its parts, in order.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        source: &Source,
        roles: &Bound<'_, PyDict>,
        settings: &Bound<'_, PyDict>,
        profile: PyBackedBytes,
        answers: Vec<PyBackedBytes>,
    ) -> PyResult<Self> {
        let (roles, params) = (roles::ranked_roles(roles, settings)?, settings::association(settings)?);
        let apart = detach(py, || {
            let view = View::new(&*source.0, &roles, params.unlabelled);
            let answers = answers.into_iter().map(buffer).collect();
            association::Apart::new(view, &params, &Profile::from_ipc(profile.to_vec())?, answers)
        });
        apart.map(|apart| TestsApart(Arc::new(apart))).map_err(|e| to_py(py, e))
    }

    /// The features in ranges, whose sums tasks add up together.
    fn ranges(&self) -> Vec<(usize, usize)> {
        self.0.ranges(SUMS_BYTES).into_iter().map(|range| (range.start, range.end)).collect()
    }

    /// The sums of a range of features over the rows of a part, the first of which is `first`; the result is an array.
    fn sums(&self, codes: HeldBytes, first: usize, features: (usize, usize), threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.sums(buffer(codes), first, features.0..features.1, threads, monitor),
            |py, sums| Ok(PyArray1::from_vec(py, sums).into_any()),
        )
    }

    /// The features that are given to linear model number `number`, from the sums of all ranges and the model before, without
    /// features if there was none; the result is `None` if there is no further model.
    fn next_given(
        &self,
        sums: PyReadonlyArray1<'_, i64>,
        number: usize,
        last: (Vec<usize>, PyReadonlyArray1<'_, i64>),
    ) -> PyResult<Run> {
        let (apart, sums, last) = (self.0.clone(), sums.as_array().to_vec(), model(&last));
        Run::start(
            move |monitor| apart.next_given(&sums, number, last.as_ref(), monitor),
            |py, given| Ok(given.into_pyobject(py)?.into_any()),
        )
    }

    /// The sums of a linear model in which features are given, over the rows of a part, the first of which is `first`; the result is
    /// an array.
    fn model(&self, codes: HeldBytes, first: usize, given: Vec<usize>, threads: usize) -> PyResult<Run> {
        let apart = self.0.clone();
        Run::start(
            move |monitor| apart.model(buffer(codes), first, &given, threads, monitor),
            |py, sums| Ok(PyArray1::from_vec(py, sums).into_any()),
        )
    }

    /// The contribution of all rows, from the sums of all ranges and the last linear model, without features if there is none;
    /// the result is an `Accumulator`.
    fn accumulate(
        &self,
        sums: PyReadonlyArray1<'_, i64>,
        last: (Vec<usize>, PyReadonlyArray1<'_, i64>),
    ) -> PyResult<Run> {
        let (apart, sums, last) = (self.0.clone(), sums.as_array().to_vec(), model(&last));
        Accumulator::run(move |monitor| apart.accumulate(&sums, last.as_ref(), monitor))
    }
}

/// A linear model; `None` without features that are given.
fn model((given, sums): &(Vec<usize>, PyReadonlyArray1<'_, i64>)) -> Option<association::LinearModel> {
    (!given.is_empty()).then(|| (given.clone(), sums.as_array().to_vec()))
}
