//! Shadows that are the same for all trees: with many features, one permutation shows the law.
//!
//! An irrelevant feature and its shadow then change places without anybody noticing: both have one draw of chance
//! correlations with the targets, and the same noise of trees. The importances of the shadows of all features are a
//! sample from the law of irrelevant features, from which p-values follow without an assumption about its shape; only
//! beyond the most important shadows is a tail fitted. That tail is heavy where features are many and rows few, because
//! a feature counts for something at a node only if its chance correlation is the greatest of all candidates.
//!
//! Importances are standardized by the mean and the standard deviation of the shadows of features with like values. Those
//! of less than some ten features are not known well: their variance is drawn to that of all shadows if that is greater,
//! and widened by the error of their mean.

use super::Relevance;
use super::classes::Classes;
use super::means::Means;
use super::tails::{IMPOSSIBLE, SampleTail};
use crate::contribution::Part;
use crate::data::RunData;

/// The variance of a class counts as much as that of all shadows if it is from so many features.
const PRIOR: f64 = 10.0;
/// Batches of trees, for the Monte Carlo error.
const BATCHES: usize = 40;

/// The p-values of one score: vector number `own` of each part has the importances of the features, number `shadow` those
/// of their shadows, which are the same for all parts. `None` with fewer than `2 * 40` parts.
pub fn from_one_permutation(data: &RunData, parts: &[Part<'_>], [own, shadow]: [usize; 2]) -> Option<Relevance> {
    let size = parts.len() / BATCHES;
    if size < 2 {
        return None;
    }
    let n_features = data.features.len();
    let batches: Vec<&[Part<'_>]> = parts.chunks_exact(size).collect();
    let own = Means::new(&batches, own, n_features);
    let shadows = Means::new(&batches, shadow, n_features).mean;
    let classes = Classes::new(data, None);
    let mean = classes.pooled(&classes.means(shadows.iter().copied()));
    let deviation = |feature: usize| shadows[feature] - mean[classes.of_feature[feature]];
    let squares = || (0..n_features).map(|feature| deviation(feature).powi(2));
    let of_all = squares().sum::<f64>() / n_features as f64;
    let widened = |(variance, size): (f64, f64)| {
        (size * variance + PRIOR * variance.max(of_all)) / (size + PRIOR) * (1.0 + 1.0 / size)
    };
    let scale: Vec<f64> = classes
        .pooled(&classes.means(squares()))
        .into_iter()
        .zip(classes.effective_sizes())
        .map(|class| widened(class).sqrt())
        .collect();
    if of_all <= 0.0 {
        // No shadow is ever used.
        let p_values = |above: f64| if above > 0.0 { IMPOSSIBLE } else { 0.0 };
        let p_values = || own.mean.iter().zip(&shadows).map(|(own, shadow)| p_values(own - shadow));
        return Some(Relevance::from_ln(p_values(), p_values()));
    }
    let of_class = |feature: usize| (mean[classes.of_feature[feature]], scale[classes.of_feature[feature]]);
    let tail = SampleTail::new((0..n_features).map(|feature| deviation(feature) / of_class(feature).1).collect());
    let p_values = |raised: f64| {
        let (own, tail) = (&own, &tail);
        (0..n_features).map(move |feature| {
            let (mean, scale) = of_class(feature);
            tail.ln((own.mean[feature] + raised * own.variance_of_mean[feature].sqrt() - mean) / scale)
        })
    };
    Some(Relevance::from_ln(p_values(0.0), p_values(2.0)))
}
