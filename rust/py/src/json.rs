//! Python's dicts as JSON and back, and messages about settings that cannot be read.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use crate::error;

/// The entries of `dict` called `names`, or all, as a JSON object.
///
/// # Errors
/// A value has no form in JSON; the message names the setting.
pub(crate) fn object(dict: &Bound<'_, PyDict>, names: Option<&[&str]>) -> PyResult<Map<String, Value>> {
    let mut object = Map::new();
    for (name, value) in dict {
        let name: String = name.extract()?;
        if names.is_none_or(|names| names.contains(&name.as_str())) {
            let json = to_json(&value)
                .map_err(|(part, wanted)| error::setting(dict.py(), format!("{name}: {part} is not {wanted}")))?;
            object.insert(name, json);
        }
    }
    Ok(object)
}

/// `value` as JSON, or the part of it that has no form in JSON and what would have one.
fn to_json<'py>(value: &Bound<'py, PyAny>) -> Result<Value, (Bound<'py, PyAny>, &'static str)> {
    let unknown = |wanted| (value.clone(), wanted);
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().into());
    }
    if let Ok(number) = value.cast::<PyInt>() {
        let whole = number.extract::<u64>().map(Value::from).or_else(|_| number.extract::<i64>().map(Value::from));
        return whole.map_err(|_| unknown("an integer in -2^63 … 2^64 - 1"));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return serde_json::Number::from_f64(number.value())
            .map(Value::Number)
            .ok_or_else(|| unknown("a finite number"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string_lossy().into());
    }
    let parts: Vec<_> = match (value.cast::<PyList>(), value.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return Err(unknown("a number, a string, a bool, None or a list of these")),
    };
    parts.iter().map(to_json).collect::<Result<_, _>>().map(Value::Array)
}

/// `value` as a Python object.
pub(crate) fn to_py<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (_, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            _ => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(parts) => {
            let parts = parts.iter().map(|part| to_py(py, part)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, parts)?.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            entries.iter().try_for_each(|(name, value)| dict.set_item(name, to_py(py, value)?))?;
            dict.into_any()
        }
    })
}

/// Reads a `T`.
///
/// # Errors
/// A setting that `T` does not take; the message says what was found and what would do.
pub(crate) fn read<T: DeserializeOwned>(py: Python<'_>, value: &Value) -> PyResult<T> {
    serde_path_to_error::deserialize(value).map_err(|failed| match message::<T>(py, value, &failed) {
        Ok(message) => error::setting(py, message),
        Err(error) => error,
    })
}

fn message<T: DeserializeOwned>(
    py: Python<'_>,
    value: &Value,
    failed: &serde_path_to_error::Error<serde_json::Error>,
) -> PyResult<String> {
    let reason = failed.inner().to_string();
    let (pointer, setting) = place(value, failed.path());
    let (Some(setting), Some(found)) = (setting, value.pointer(&pointer)) else {
        return Ok(format!("settings: {reason}"));
    };
    // The reason why another value at the same place is refused; `None` if it is taken.
    let refused = |other: Value| {
        let mut value = value.clone();
        *value.pointer_mut(&pointer)? = other;
        let other = serde_path_to_error::deserialize::<_, T>(&value).err()?;
        (other.path().to_string() == failed.path().to_string()).then(|| other.into_inner().to_string())
    };
    let reason = match reason.ends_with(WORD) {
        // Only a word that is unknown is answered with those that are known.
        true => refused(Value::String(String::new())).unwrap_or(reason),
        false => reason,
    };
    let wanted = wanted(&reason, refused(Value::Null).is_none());
    Ok(format!("{setting}: {} is not {wanted}", to_py(py, found)?.repr()?))
}

/// What serde expects where it reads one of several words.
const WORD: &str = "string or map";

/// The JSON pointer to the place in `value` to which `path` leads, and the setting that holds it.
fn place(value: &Value, path: &Path) -> (String, Option<String>) {
    let (mut pointer, mut setting) = (String::new(), None);
    for segment in path {
        let next = match segment {
            Segment::Map { key } => {
                setting.get_or_insert_with(|| key.clone());
                format!("{pointer}/{key}")
            }
            Segment::Enum { variant } => format!("{pointer}/{variant}"),
            Segment::Seq { index } => format!("{pointer}/{index}"),
            Segment::Unknown => break,
        };
        // A variant that is a word has no value of its own.
        if value.pointer(&next).is_some() {
            pointer = next;
        }
    }
    (pointer, setting)
}

/// What serde expected, as `reason` says, in words for users of Python; `or_none`: None would do as well.
fn wanted(reason: &str, or_none: bool) -> String {
    let expected = reason.rsplit_once(", expected ").map_or(reason, |(_, expected)| expected);
    let words = match expected {
        "usize" => "a whole number of at least 0".into(),
        "u64" => "a whole number in 0 … 2^64 - 1".into(),
        "f64" => "a number".into(),
        "a boolean" => "True or False".into(),
        "a sequence" => "a list".into(),
        _ => match (expected.strip_prefix("a tuple of size "), expected.strip_prefix("one of ")) {
            (Some(size), _) => format!("a list of {size} values"),
            (_, Some(words)) => or(words),
            _ => expected.into(),
        },
    };
    let words = words.replace('`', "'");
    match words.rsplit_once(" or ") {
        _ if !or_none || words.ends_with("None") => words,
        Some((others, last)) => format!("{others}, {last} or None"),
        None => format!("{words} or None"),
    }
}

/// A list of words with "or" before the last.
fn or(words: &str) -> String {
    words.rsplit_once(", ").map_or(words.into(), |(others, last)| format!("{others} or {last}"))
}
