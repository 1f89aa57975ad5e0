//! Myopic Relief: the estimate from all pairs of rows, drawn with replacement, instead of near ones (Robnik-Šikonja and
//! Kononenko 1999 Eq. 4). For a nominal feature that is Eq. 5, for a numeric one the same with its differences.
//!
//! A missing value has the distribution of its class, so the mean difference between two classes is that of their known
//! values. If missing values are informative, pairs of a missing and a known value differ by 1.

use rayon::prelude::*;

use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::space::{Shape, Space};
use ferrank_neighbors::table::Table;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Values of columns read together.
const VALUES: usize = 1 << 23;

/// The importances of all features, without standard errors. Without `weights` all rows have the weight 1.
pub(crate) fn importances(
    table: &Table<'_>,
    space: &Space,
    priors: &[f64],
    weights: &[f64],
    monitor: &Monitor,
) -> Result<Vec<f64>> {
    let features: Vec<usize> = (0..space.shapes.len()).collect();
    let together = (VALUES / space.classes.len().max(1)).max(1);
    let mut mean = Vec::with_capacity(features.len());
    for features in features.chunks(together) {
        let columns = table.columns(features)?;
        let parts: Vec<f64> = (columns.par_iter().zip(features))
            .map(|(column, &feature)| {
                monitor.check()?;
                Ok(of_feature(column, feature, space, (priors, weights)))
            })
            .collect::<Result<_>>()?;
        mean.extend(parts);
    }
    Ok(mean)
}

fn of_feature(column: &[f64], feature: usize, space: &Space, (priors, weights): (&[f64], &[f64])) -> f64 {
    let shape = space.shapes[feature];
    let Some(model) = (shape != Shape::Constant)
        .then(|| MissingModel::weighted(column, shape == Shape::Nominal, (&space.classes, space.n_classes), weights))
        .flatten()
    else {
        return 0.0;
    };
    let is_informative = matches!(space.missing_models[feature], Some(MissingModel::Informative));
    let missing = if is_informative { missing_shares(column, space, weights) } else { vec![0.0; priors.len()] };
    let difference = |a: usize, b: usize| {
        let [x, y] = [missing[a], missing[b]];
        (1.0 - x) * (1.0 - y) * model.two(a, b) + x * (1.0 - y) + y * (1.0 - x)
    };
    let (mut same, mut other) = (0.0, 0.0);
    for (a, p) in priors.iter().enumerate() {
        same += p * p * difference(a, a);
        other += (0..a).map(|b| 2.0 * p * priors[b] * difference(a, b)).sum::<f64>();
    }
    let alike: f64 = priors.iter().map(|p| p * p).sum();
    (if alike < 1.0 { other / (1.0 - alike) } else { 0.0 }) - same / alike
}

/// Shares of the rows of each class that miss a value; n_classes.
fn missing_shares(column: &[f64], space: &Space, weights: &[f64]) -> Vec<f64> {
    let mut counts = vec![(0.0, 0.0); space.n_classes];
    for (row, (value, &class)) in column.iter().zip(&space.classes).enumerate() {
        let weight = weights.get(row).copied().unwrap_or(1.0);
        let (missing, all) = &mut counts[usize::from(class)];
        *missing += if value.is_nan() { weight } else { 0.0 };
        *all += weight;
    }
    counts.into_iter().map(|(missing, all)| if all > 0.0 { missing / all } else { 0.0 }).collect()
}
