//! Measures of multi-label prediction.

use ferrank::Error;
use ferrank::measures::{self, Conventions, Judge, LabelSets, Measure, Predictions};
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::to_py;
use crate::exit::detach;

/// The name and the value of each measure, and for each label the areas under its precision-recall and ROC curves.
type Figures<'py> = (Vec<(&'static str, f64)>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// The fifteen measures of predictions `scores` for label sets `has`, n_rows x n_labels. With weights of the labels, also
/// the area under the pooled precision-recall curve without them.
#[pyfunction]
pub(crate) fn multilabel_measures<'py>(
    py: Python<'py>,
    has: PyReadonlyArray2<'py, bool>,
    scores: PyReadonlyArray2<'py, f64>,
    label_weights: Option<PyReadonlyArray1<'py, f64>>,
    conventions: &str,
    threshold: f64,
) -> PyResult<Figures<'py>> {
    let conventions = parse(conventions).map_err(|error| to_py(py, error))?;
    let (has, scores) = (has.as_array(), scores.as_array());
    check_shapes(has.shape(), scores.shape()).map_err(|error| to_py(py, error))?;
    let n_labels = has.ncols();
    let weights = label_weights.map(|weights| weights.as_array().to_vec());
    check_shapes(&[n_labels], &[weights.as_ref().map_or(n_labels, Vec::len)]).map_err(|error| to_py(py, error))?;
    let (mut sets, mut predictions) = (LabelSets::default(), Predictions::new(n_labels));
    for (has, scores) in has.rows().into_iter().zip(scores.rows()) {
        check_scores(scores).map_err(|error| to_py(py, error))?;
        sets.push((0..).zip(has).filter(|(_, has)| **has).map(|(label, _)| label));
        let said = (0..).zip(scores).filter(|(_, score)| **score >= threshold).map(|(label, _)| label);
        predictions.push((0..).zip(scores.iter().copied()), said);
    }
    let (values, (auprc, auroc)) = detach(py, || {
        let mut judge = Judge::new(&sets, &predictions, &Measure::ALL, conventions);
        if let Some(weights) = &weights {
            judge = judge.with_label_weights(weights.clone());
        }
        let values = judge.judge(&(0..predictions.len() as u32).collect::<Vec<u32>>());
        let mut values: Vec<_> = Measure::ALL.iter().map(|measure| measure.name()).zip(values).collect();
        if weights.is_some() {
            values.extend(judge.unweighted_pooled_area().map(|area| ("unweighted_pooled_auprc", area)));
        }
        (values, judge.areas_by_label().unwrap_or_default())
    });
    Ok((values, PyArray1::from_vec(py, auprc), PyArray1::from_vec(py, auroc)))
}

/// The area under the precision-recall curve of rows, n_rows, with these `scores` and weights.
#[pyfunction]
pub(crate) fn precision_recall_area(
    py: Python<'_>,
    has: PyReadonlyArray1<'_, bool>,
    scores: PyReadonlyArray1<'_, f64>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<f64> {
    let (has, scores) = (has.as_array(), scores.as_array());
    let weights = weights.map_or_else(|| vec![1.0; has.len()], |weights| weights.as_array().to_vec());
    check_shapes(has.shape(), scores.shape()).map_err(|error| to_py(py, error))?;
    check_shapes(has.shape(), &[weights.len()]).map_err(|error| to_py(py, error))?;
    let rows = has.iter().zip(scores).zip(weights).map(|((&has, &score), weight)| (score, weight, has)).collect();
    Ok(detach(py, || measures::precision_recall_area(measures::groups_by_score(rows))))
}

fn parse(conventions: &str) -> Result<Conventions, Error> {
    match conventions {
        "textbook" => Ok(Conventions::Textbook),
        "clus" => Ok(Conventions::Clus),
        other => Err(Error::Setting(format!("conventions: '{other}' is not 'textbook' or 'clus'"))),
    }
}

fn check_shapes(labels: &[usize], others: &[usize]) -> Result<(), Error> {
    if labels == others {
        return Ok(());
    }
    Err(Error::Data(format!("labels of shape {labels:?}, scores or weights of shape {others:?}; give each label one")))
}

fn check_scores(scores: ArrayView1<'_, f64>) -> Result<(), Error> {
    match scores.iter().find(|score| !(score.is_finite() && **score >= 0.0)) {
        None => Ok(()),
        Some(score) => Err(Error::Data(format!("scores: {score} is not a share; use finite numbers of at least 0"))),
    }
}
