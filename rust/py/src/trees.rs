//! Trees that split by Relief.

use std::sync::Arc;

use ferrank::trees::{self, TreeParams};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::to_py;
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// A decision or regression tree.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Tree(Arc<trees::Tree>);

#[pymethods]
impl Tree {
    /// The tree that `to_json` wrote.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Ok(Tree(Arc::new(trees::Tree::from_json(text).map_err(|e| to_py(py, e))?)))
    }

    /// All of the tree as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.0.to_json().map_err(|e| to_py(py, e))
    }

    /// The decrease of impurity by feature, as a share of the root's.
    fn importances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.0.importances())
    }

    /// Predicts the rows of `source` on `threads` threads; the result is the leaves and the values.
    fn predict(&self, source: &Source, threads: usize) -> PyResult<Run> {
        let (tree, source) = (self.0.clone(), source.0.clone());
        Run::start(
            move |monitor| tree.predict(&*source, threads, monitor),
            |py, found| {
                let leaves = PyArray1::from_vec(py, found.leaves);
                Ok((leaves, PyArray1::from_vec(py, found.values)).into_pyobject(py)?.into_any())
            },
        )
    }
}

/// Grows and prunes a tree on `threads` threads; the result is a `Tree`.
#[pyfunction]
pub(crate) fn grow_relief_tree(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
) -> PyResult<Run> {
    let (source, roles, params) = (source.0.clone(), roles::roles(roles)?, settings::tree(settings)?);
    Run::start(
        move |monitor| trees::grow(&*source, &roles, &params, threads, monitor),
        |py, tree| Ok(Bound::new(py, Tree(Arc::new(tree)))?.into_any()),
    )
}

/// The settings of a tree in a dict as the engine keeps them, with defaults for those left out: JSON.
#[pyfunction]
pub(crate) fn tree_settings_json(settings: &Bound<'_, PyDict>) -> PyResult<String> {
    let params: TreeParams = settings::tree(settings)?;
    serde_json::to_string(&params).map_err(|e| to_py(settings.py(), ferrank::Error::Setting(format!("settings: {e}"))))
}
