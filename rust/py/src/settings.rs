//! Settings from Python: one dict each for the roles of the columns and for the ranker.

use ferrank::early_stopping::Goal;
use ferrank::forest::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Score, Ties};
use ferrank::hierarchy;
use ferrank::intake::Unlabelled;
use ferrank::knn::{Conventions, KnnParams};
use ferrank::relief::{Iterations, ReliefParams, ReliefScore, TargetDistance};
use ferrank::schema::{Roles, Targets, Task};
use ferrank::stream::StreamParams;
use ferrank::{Identity, Settings as Ranker};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// The decay of a forest that is not asked for `symbolic`.
const DECAY: f64 = 0.5;

/// A dict of settings, read with messages that name the setting.
struct Settings<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Settings<'_, 'py> {
    /// The setting called `name`; `wanted` says what would do.
    fn get<T: for<'b> FromPyObject<'b, 'py>>(&self, name: &str, wanted: &str) -> PyResult<T> {
        let py = self.0.py();
        let value = self.0.as_any().get_item(name)?;
        value.extract().map_err(|_| error::setting(py, format!("{name}: {} is not {wanted}", repr(&value))))
    }
}

fn repr(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "the value".into(), |text| text.to_string())
}

/// A number of things or a share of them.
#[derive(FromPyObject)]
enum Amount {
    Count(usize),
    Share(f64),
    Word(String),
}

/// What the columns are, from `roles`, for a ranker whose settings say what labels weigh.
pub(crate) fn ranked_roles(roles: &Bound<'_, PyDict>, ranker: &Bound<'_, PyDict>) -> PyResult<Roles> {
    let hierarchy_decay = Settings(ranker).get("hierarchy_decay", "a number in (0, 1]")?;
    Ok(Roles { hierarchy_decay, ..self::roles(roles)? })
}

/// What the columns are.
pub(crate) fn roles(dict: &Bound<'_, PyDict>) -> PyResult<Roles> {
    let settings = Settings(dict);
    let named: Option<Vec<String>> = settings.get("target", "a list of column names")?;
    let last: Option<usize> = settings.get("target_last", "a number of columns")?;
    let task: Option<String> = settings.get("task", "the name of a task")?;
    let targets = match (named, last) {
        (Some(names), _) => Targets::Named(names),
        (None, Some(count)) => Targets::Last(count),
        (None, None) => Targets::Labels,
    };
    Ok(Roles {
        task: task.map(|name| Task::parse(&name)).transpose().map_err(|e| error::to_py(dict.py(), e))?,
        drop: settings.get("drop", "a list of column names")?,
        weight: settings.get("weight", "the name of a column")?,
        hierarchy: settings.get("hierarchy", "a list of pairs: the parent's name or None, the label's name")?,
        ..Roles::of(targets)
    })
}

/// When to end, if not with the last tree or query.
pub(crate) fn goal(dict: &Bound<'_, PyDict>) -> PyResult<Goal> {
    let settings = Settings(dict);
    match settings.get::<String>("until", "'stable'")?.as_str() {
        "stable" => Ok(Goal {
            top: settings.get("stable_top", "a number of features above 0")?,
            confidence: settings.get("confidence", "a number between 0 and 1")?,
        }),
        word => Err(error::setting(dict.py(), format!("until: '{word}' is not 'stable' or None"))),
    }
}

/// How a stream is parted, and how fast it forgets.
pub(crate) fn stream(dict: &Bound<'_, PyDict>) -> PyResult<StreamParams> {
    let settings = Settings(dict);
    Ok(StreamParams {
        block_rows: settings.get("block_rows", "a number of rows above 0")?,
        reservoir_rows: settings.get("reservoir_rows", "a number of rows")?,
        half_life: settings.get("half_life", "a number of rows or None")?,
    })
}

/// The ranker that the setting `ranker` names.
pub(crate) fn ranker(dict: &Bound<'_, PyDict>) -> PyResult<Ranker> {
    match Settings(dict).get::<String>("ranker", "'forest' or 'relief'")?.as_str() {
        "forest" => forest(dict).map(Ranker::Forest),
        "relief" => relief(dict).map(Ranker::Relief),
        word => Err(error::setting(dict.py(), format!("ranker: '{word}' is not 'forest' or 'relief'"))),
    }
}

pub(crate) fn forest(dict: &Bound<'_, PyDict>) -> PyResult<ForestParams> {
    let settings = Settings(dict);
    let core = |e| error::to_py(dict.py(), e);
    let decay: f64 = settings.get("decay", "a number in (0, 1]")?;
    let names: Vec<String> = settings.get("scores", "a list of scores")?;
    let scores = names.iter().map(|name| Score::parse(name, decay)).collect::<Result<_, _>>().map_err(core)?;
    Ok(ForestParams::default()
        .with_ensemble(Ensemble::parse(&settings.get::<String>("ensemble", "the name of an ensemble")?).map_err(core)?)
        .with_n_estimators(settings.get("n_estimators", "a number of trees")?)
        .with_max_features(max_features(&settings)?)
        .with_min_samples_leaf(settings.get("min_samples_leaf", "a number of examples")?)
        .with_max_depth(settings.get("max_depth", "a depth or None")?)
        .with_bootstrap(settings.get("bootstrap", "True, False or None")?)
        .with_max_samples(max_samples(&settings)?)
        .with_max_bins(settings.get("max_bins", "a number in 2 … 65535")?)
        .with_ties(Ties::parse(&settings.get::<String>("ties", "'random' or 'lowest'")?).map_err(core)?)
        .with_scores(scores)
        .with_per_target(settings.get("per_target", "True or False")?)
        .with_by_target(settings.get("by_target", "True or False")?)
        .with_target_weights(settings.get("target_weights", "a list of numbers or None")?)
        .with_supervision(settings.get("supervision", "a number in 0 … 1 or None")?)
        .with_unlabelled(unlabelled(&settings)?)
        .with_seed(settings.get("seed", "an integer in 0 … 2^64 - 1")?))
}

fn relief(dict: &Bound<'_, PyDict>) -> PyResult<ReliefParams> {
    let settings = Settings(dict);
    let core = |e| error::to_py(dict.py(), e);
    let scores: Vec<String> = settings.get("scores", "a list of scores")?;
    let distances: Vec<String> = settings.get("target_distance", "a list of distances")?;
    Ok(ReliefParams {
        scores: scores.iter().map(|name| ReliefScore::parse(name)).collect::<Result<_, _>>().map_err(core)?,
        n_neighbors: settings.get("n_neighbors", "a number of neighbours above 0, or a list of them")?,
        sigma: settings.get("sigma", "a number above 0 or None, or a list of them")?,
        n_iterations: n_iterations(&settings)?,
        target_distance: distances
            .iter()
            .map(|name| TargetDistance::parse(name))
            .collect::<Result<_, _>>()
            .map_err(core)?,
        per_target: settings.get("per_target", "True or False")?,
        target_weights: settings.get("target_weights", "a list of numbers or None")?,
        unlabelled: unlabelled(&settings)?,
        influence: settings.get::<[f64; 2]>("influence", "two numbers in 0 … 1, the lower one first")?.into(),
        seed: settings.get("seed", "an integer in 0 … 2^64 - 1")?,
    })
}

pub(crate) fn knn(dict: &Bound<'_, PyDict>) -> PyResult<KnnParams> {
    let settings = Settings(dict);
    let conventions: String = settings.get("conventions", "'textbook' or 'clus'")?;
    Ok(KnnParams {
        n_neighbors: settings.get("n_neighbors", "a number of neighbours above 0")?,
        rankings: settings.get("rankings", "a list of importances for each ranking")?,
        conventions: Conventions::parse(&conventions).map_err(|e| error::to_py(dict.py(), e))?,
        unlabelled: unlabelled(&settings)?,
    })
}

fn n_iterations(settings: &Settings<'_, '_>) -> PyResult<Iterations> {
    let wanted = "a number of rows, a share in (0, 1] or None";
    match settings.get::<Option<Amount>>("n_iterations", wanted)? {
        None => Ok(Iterations::All),
        Some(Amount::Count(count)) => Ok(Iterations::Count(count as u64)),
        Some(Amount::Share(share)) => Ok(Iterations::Share(share)),
        Some(Amount::Word(word)) => {
            Err(error::setting(settings.0.py(), format!("n_iterations: '{word}' is not {wanted}")))
        }
    }
}

fn max_features(settings: &Settings<'_, '_>) -> PyResult<Option<MaxFeatures>> {
    let wanted = "a number of features, a share in (0, 1], 'sqrt', 'log2', 'all' or None";
    let amount: Option<Amount> = settings.get("max_features", wanted)?;
    Ok(match amount {
        None => None,
        Some(Amount::Count(count)) => Some(MaxFeatures::Count(count)),
        Some(Amount::Share(share)) => Some(MaxFeatures::Share(share)),
        Some(Amount::Word(word)) => Some(match word.as_str() {
            "sqrt" => MaxFeatures::Sqrt,
            "log2" => MaxFeatures::Log2,
            "all" => MaxFeatures::All,
            _ => return Err(error::setting(settings.0.py(), format!("max_features: '{word}' is not {wanted}"))),
        }),
    })
}

fn max_samples(settings: &Settings<'_, '_>) -> PyResult<MaxSamples> {
    let wanted = "a number of rows, a share in (0, 1] or None";
    let amount: Option<Amount> = settings.get("max_samples", wanted)?;
    match amount {
        None => Ok(MaxSamples::All),
        Some(Amount::Count(count)) => Ok(MaxSamples::Count(count as u64)),
        Some(Amount::Share(share)) => Ok(MaxSamples::Share(share)),
        Some(Amount::Word(word)) => {
            Err(error::setting(settings.0.py(), format!("max_samples: '{word}' is not {wanted}")))
        }
    }
}

fn unlabelled(settings: &Settings<'_, '_>) -> PyResult<Unlabelled> {
    let wanted = "'error', 'ignore' or 'use'";
    match settings.get::<String>("unlabelled", wanted)?.as_str() {
        "error" => Ok(Unlabelled::Error),
        "ignore" => Ok(Unlabelled::Ignore),
        "use" => Ok(Unlabelled::Use),
        word => Err(error::setting(settings.0.py(), format!("unlabelled: '{word}' is not {wanted}"))),
    }
}

/// The settings in a dict as the engine keeps them: JSON with the ranker's name.
#[pyfunction]
pub(crate) fn settings_json(settings: &Bound<'_, PyDict>) -> PyResult<String> {
    Ok(to_json(&ranker(settings)?))
}

/// The default settings of a ranker as JSON; tests hold the Python classes and the command line against it.
#[pyfunction]
pub(crate) fn default_settings_json(py: Python<'_>, ranker: &str) -> PyResult<String> {
    match ranker {
        "forest" => Ok(to_json(&Ranker::from(ForestParams::default()))),
        "relief" => Ok(to_json(&Ranker::from(ReliefParams::default()))),
        word => Err(error::setting(py, format!("ranker: '{word}' is not 'forest' or 'relief'"))),
    }
}

fn to_json(settings: &Ranker) -> String {
    let ranker = settings.ranker();
    let mut object = ranker.to_json();
    object["ranker"] = ranker.name().into();
    object.to_string()
}

/// The dict that [`ranker`] and [`ranked_roles`] read as those of a run.
pub(crate) fn told<'py>(py: Python<'py>, run: &Identity) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    match Ranker::of_run(run) {
        Some(Ranker::Forest(params)) => told_forest(&dict, &params)?,
        Some(Ranker::Relief(params)) => told_relief(&dict, &params)?,
        _ => {}
    }
    dict.set_item("hierarchy_decay", run.data.hierarchy_decay.unwrap_or(hierarchy::DECAY))?;
    Ok(dict)
}

fn told_forest(dict: &Bound<'_, PyDict>, params: &ForestParams) -> PyResult<()> {
    let ForestParams {
        ensemble,
        n_estimators,
        max_features,
        min_samples_leaf,
        max_depth,
        bootstrap,
        max_samples,
        max_bins,
        ties,
        scores,
        per_target,
        by_target,
        target_weights,
        supervision,
        unlabelled,
        seed,
        ..
    } = params;
    let decay = scores.iter().find_map(|score| if let Score::Symbolic { decay } = score { Some(*decay) } else { None });
    dict.set_item("ranker", "forest")?;
    dict.set_item("ensemble", ensemble.name())?;
    dict.set_item("scores", scores.iter().map(|score| score.name()).collect::<Vec<_>>())?;
    dict.set_item("n_estimators", n_estimators)?;
    match max_features {
        None => dict.set_item("max_features", dict.py().None())?,
        Some(MaxFeatures::Sqrt) => dict.set_item("max_features", "sqrt")?,
        Some(MaxFeatures::Log2) => dict.set_item("max_features", "log2")?,
        Some(MaxFeatures::All) => dict.set_item("max_features", "all")?,
        Some(MaxFeatures::Count(count)) => dict.set_item("max_features", count)?,
        Some(MaxFeatures::Share(share)) => dict.set_item("max_features", share)?,
    }
    dict.set_item("min_samples_leaf", min_samples_leaf)?;
    dict.set_item("max_depth", max_depth)?;
    dict.set_item("bootstrap", bootstrap)?;
    match max_samples {
        MaxSamples::All => dict.set_item("max_samples", dict.py().None())?,
        MaxSamples::Count(count) => dict.set_item("max_samples", count)?,
        MaxSamples::Share(share) => dict.set_item("max_samples", share)?,
    }
    dict.set_item("max_bins", max_bins)?;
    dict.set_item("ties", ties.name())?;
    dict.set_item("decay", decay.unwrap_or(DECAY))?;
    dict.set_item("per_target", per_target)?;
    dict.set_item("by_target", by_target)?;
    dict.set_item("target_weights", target_weights)?;
    dict.set_item("supervision", supervision)?;
    dict.set_item("unlabelled", word(*unlabelled))?;
    dict.set_item("seed", seed)
}

fn told_relief(dict: &Bound<'_, PyDict>, params: &ReliefParams) -> PyResult<()> {
    let ReliefParams {
        scores,
        n_neighbors,
        sigma,
        n_iterations,
        target_distance,
        per_target,
        target_weights,
        unlabelled,
        influence,
        seed,
    } = params;
    dict.set_item("ranker", "relief")?;
    dict.set_item("scores", scores.iter().map(|score| score.name()).collect::<Vec<_>>())?;
    dict.set_item("n_neighbors", n_neighbors)?;
    dict.set_item("sigma", sigma)?;
    match n_iterations {
        Iterations::All => dict.set_item("n_iterations", dict.py().None())?,
        Iterations::Count(count) => dict.set_item("n_iterations", count)?,
        Iterations::Share(share) => dict.set_item("n_iterations", share)?,
    }
    dict.set_item("target_distance", target_distance.iter().map(|distance| distance.name()).collect::<Vec<_>>())?;
    dict.set_item("per_target", per_target)?;
    dict.set_item("target_weights", target_weights)?;
    dict.set_item("unlabelled", word(*unlabelled))?;
    dict.set_item("influence", [influence.0, influence.1])?;
    dict.set_item("seed", seed)
}

fn word(unlabelled: Unlabelled) -> &'static str {
    match unlabelled {
        Unlabelled::Error => "error",
        Unlabelled::Ignore => "ignore",
        Unlabelled::Use => "use",
    }
}
