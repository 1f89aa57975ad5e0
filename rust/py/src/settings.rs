//! Settings from Python: a dict is read as JSON by the engine's types, which define names, defaults and checks.

use ferrank::association::AssociationParams;
use ferrank::early_stopping::Goal;
use ferrank::forest::ForestParams;
use ferrank::knn::KnnParams;
use ferrank::relief::ReliefParams;
use ferrank::stream::StreamParams;
use ferrank::trees::TreeParams;
use ferrank::{Identity, Settings, hierarchy};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error;
use crate::json::{object, read, to_py};

/// The setting that names the ranker; the others are the ranker's own, and some that are not of rankers.
const RANKER: &str = "ranker";
/// The setting that the roles of columns take from the settings.
const HIERARCHY_DECAY: &str = "hierarchy_decay";

/// The ranker that the setting `ranker` names.
pub(crate) fn ranker(dict: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut params = object(dict, None)?;
    let name = params.remove(RANKER).unwrap_or_default();
    named(dict.py(), &name, params)
}

/// The ranker called `name` with these settings, and defaults for those left out.
fn named(py: Python<'_>, name: &Value, params: Map<String, Value>) -> PyResult<Settings> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Name {
        Forest,
        Relief,
        Association,
        Univariate,
    }
    #[derive(Deserialize)]
    struct Named {
        ranker: Name,
    }
    let params = Value::Object(params);
    match read::<Named>(py, &serde_json::json!({ RANKER: name }))?.ranker {
        Name::Forest => read(py, &params).map(Settings::Forest),
        Name::Relief => read(py, &params).map(Settings::Relief),
        Name::Association => read(py, &params).map(Settings::Association),
        Name::Univariate => read(py, &params).map(Settings::Univariate),
    }
}

pub(crate) fn forest(dict: &Bound<'_, PyDict>) -> PyResult<ForestParams> {
    parts(dict, None)
}

pub(crate) fn relief(dict: &Bound<'_, PyDict>) -> PyResult<ReliefParams> {
    parts(dict, None)
}

pub(crate) fn association(dict: &Bound<'_, PyDict>) -> PyResult<AssociationParams> {
    parts(dict, None)
}

/// The settings of a tree that splits by Relief.
pub(crate) fn tree(dict: &Bound<'_, PyDict>) -> PyResult<TreeParams> {
    parts(dict, None)
}

pub(crate) fn knn(dict: &Bound<'_, PyDict>) -> PyResult<KnnParams> {
    parts(dict, None)
}

/// How a stream is divided into blocks, and how fast it forgets.
pub(crate) fn stream(dict: &Bound<'_, PyDict>) -> PyResult<StreamParams> {
    parts(dict, None)
}

/// When a run with early stopping ends.
pub(crate) fn goal(dict: &Bound<'_, PyDict>) -> PyResult<Goal> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Until {
        Stable,
    }
    #[derive(Deserialize)]
    struct EarlyStopping {
        until: Until,
    }
    let EarlyStopping { until: Until::Stable } = parts(dict, Some(&["until"]))?;
    parts(dict, None)
}

/// The weight of a label, as a share of the mean weight of its parents.
pub(crate) fn hierarchy_decay(dict: &Bound<'_, PyDict>) -> PyResult<f64> {
    #[derive(Deserialize)]
    struct Weights {
        hierarchy_decay: f64,
    }
    parts(dict, Some(&[HIERARCHY_DECAY])).map(|Weights { hierarchy_decay }| hierarchy_decay)
}

/// The settings called `names`, or all settings, that are fields of `T`.
fn parts<T: DeserializeOwned>(dict: &Bound<'_, PyDict>, names: Option<&[&str]>) -> PyResult<T> {
    read(dict.py(), &Value::Object(object(dict, names)?))
}

/// The settings in a dict as the engine keeps them: JSON with the ranker's name.
#[pyfunction]
pub(crate) fn settings_json(settings: &Bound<'_, PyDict>) -> PyResult<String> {
    Ok(Value::Object(flat(&ranker(settings)?)).to_string())
}

/// The weights that the features called `names` have in distances by the setting `distance_features`, in their order.
#[pyfunction]
pub(crate) fn distance_weights(distance_features: &Bound<'_, PyAny>, names: Vec<String>) -> PyResult<Vec<f64>> {
    let py = distance_features.py();
    let dict = PyDict::new(py);
    dict.set_item("distance_features", distance_features)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let weights = relief(&dict)?.distance_features.weights(&names).map_err(|error| error::to_py(py, error))?;
    Ok(weights.unwrap_or_else(|| vec![1.0; names.len()]))
}

/// The default settings of a ranker as JSON, with the ranker's name.
#[pyfunction]
pub(crate) fn default_settings_json(py: Python<'_>, ranker: &str) -> PyResult<String> {
    Ok(Value::Object(flat(&named(py, &ranker.into(), Map::new())?)).to_string())
}

/// The ranker of each score, its name, and its definition in a few words.
#[pyfunction]
pub(crate) fn score_definitions() -> Vec<(&'static str, &'static str, &'static str)> {
    let scores = ferrank::settings::score_definitions();
    scores.into_iter().map(|score| (score.ranker, score.name, score.definition)).collect()
}

/// The dict that [`ranker`] and [`hierarchy_decay`] read as the settings of `run`.
pub(crate) fn to_dict<'py>(py: Python<'py>, run: &Identity) -> PyResult<Bound<'py, PyAny>> {
    let mut settings = Settings::from_run(run).as_ref().map(flat).unwrap_or_default();
    settings.insert(HIERARCHY_DECAY.into(), run.data.hierarchy_decay.unwrap_or(hierarchy::DECAY).into());
    to_py(py, &Value::Object(settings))
}

/// The settings as JSON, with the ranker's name.
fn flat(settings: &Settings) -> Map<String, Value> {
    let ranker = settings.ranker();
    let mut object = match ranker.to_json() {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    object.insert(RANKER.into(), ranker.name().into());
    object
}
