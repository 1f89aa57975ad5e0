//! Roles of columns from Python.

use ferrank::schema::{Roles, Targets, Task};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{error, settings};

/// The roles of the columns, for a ranker with these settings.
pub(crate) fn ranked_roles(roles: &Bound<'_, PyDict>, ranker: &Bound<'_, PyDict>) -> PyResult<Roles> {
    let hierarchy_decay = settings::hierarchy_decay(ranker)?;
    Ok(self::roles(roles)?.with_hierarchy_decay(hierarchy_decay))
}

/// The roles of the columns.
pub(crate) fn roles(dict: &Bound<'_, PyDict>) -> PyResult<Roles> {
    let named: Option<Vec<String>> = get(dict, "target", "a list of column names")?;
    let last: Option<usize> = get(dict, "target_last", "a number of columns")?;
    let task: Option<String> = get(dict, "task", "the name of a task")?;
    let targets = match (named, last) {
        (Some(names), _) => Targets::Named(names),
        (None, Some(count)) => Targets::Last(count),
        (None, None) => Targets::Labels,
    };
    Ok(Roles::new(targets)
        .with_task(task.map(|name| Task::parse(&name)).transpose().map_err(|e| error::to_py(dict.py(), e))?)
        .with_classes(get(dict, "classes", "a list of column names")?)
        .with_categorical_features(get(dict, "categorical_features", "a list of column names")?)
        .with_drop(get(dict, "drop", "a list of column names")?)
        .with_weight(get(dict, "weight", "the name of a column")?)
        .with_groups(get(dict, "groups", "the name of a column")?)
        .with_hierarchy(get(dict, "hierarchy", "a list of pairs: the parent's name or None, the label's name")?))
}

/// The role called `name`; `wanted` describes its values.
fn get<'py, T>(dict: &Bound<'py, PyDict>, name: &str, wanted: &str) -> PyResult<T>
where
    T: for<'b> FromPyObject<'b, 'py>,
{
    let value = dict.as_any().get_item(name)?;
    let wrong = |_| {
        let found = value.repr().map_or_else(|_| "the value".into(), |text| text.to_string());
        error::setting(dict.py(), format!("{name}: {found} is not {wanted}"))
    };
    value.extract().map_err(wrong)
}
