//! The one map from core errors to Python exceptions.

use ferrank::Error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception for `error`. The classes are defined in Python, where one can have two bases.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Data(_) => of_class(py, "DataError", message),
        Error::Setting(_) => of_class(py, "SettingError", message),
        Error::Type(_) => of_class(py, "ColumnTypeError", message),
        Error::File { .. } | Error::Resource(_) => of_class(py, "ResourceError", message),
        _ => of_class(py, "FerrankError", message),
    }
}

/// The exception for a panic: always a fault of this library.
pub(crate) fn bug(py: Python<'_>, what: &str) -> PyErr {
    let message = format!("ferrank failed unexpectedly ({what}); this is a bug, please report it");
    of_class(py, "FerrankError", message)
}

/// The exception where the system starts no thread.
pub(crate) fn no_thread(py: Python<'_>, error: &std::io::Error) -> PyErr {
    let message = format!("n_jobs: no thread can be started ({error}); end other processes, or raise the limit");
    of_class(py, "ResourceError", message)
}

/// What to call a wrong setting.
pub(crate) fn setting(py: Python<'_>, message: String) -> PyErr {
    of_class(py, "SettingError", message)
}

fn of_class(py: Python<'_>, name: &str, message: String) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let class = MODULE
        .get_or_try_init(py, || Ok(py.import("ferrank.errors")?.unbind()))
        .and_then(|module| Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}
