//! P-values from targets that were drawn anew, which have nothing to do with the features.

use super::Relevance;
use super::tails::SampleTail;

/// The standard deviation of draws below which they differ by rounding alone; importances are in [−1, 1].
const ROUNDING: f64 = 1e-9;

/// The p-values of one score whose importances are `own`: `drawn` are the importances of the same features for targets that
/// have nothing to do with them, a vector for each draw; at least two.
///
/// Each feature is standardized by the mean and the variance of its own draws. The law of a standardized importance is
/// that of the draws themselves, each standardized by the others of the same feature, over all features. A feature whose
/// draws are all the same, such as one that differs between any two rows, can say nothing: its p-value is 1.
pub fn from_draws(own: &[f64], drawn: &[&[f64]]) -> Relevance {
    let (n_draws, n_features) = (drawn.len() as f64, own.len());
    let sum = |feature: usize, of: fn(f64) -> f64| drawn.iter().map(|draw| of(draw[feature])).sum::<f64>();
    let mean: Vec<f64> = (0..n_features).map(|feature| sum(feature, |x| x) / n_draws).collect();
    let squares: Vec<f64> =
        (0..n_features).map(|feature| drawn.iter().map(|draw| (draw[feature] - mean[feature]).powi(2)).sum()).collect();
    // Among `n` draws, one value that is `above` their mean, with the sum of squares about it.
    let standardized = |above: f64, squares: f64, n: f64| above / (squares / (n - 1.0) * (1.0 + 1.0 / n)).sqrt();
    let left_out = |draw: &&[f64], feature: usize| {
        // What mean and sum of squares are without this draw.
        let above = draw[feature] - mean[feature];
        let rest = (squares[feature] - above * above * n_draws / (n_draws - 1.0)).max(0.0);
        standardized(above * n_draws / (n_draws - 1.0), rest, n_draws - 1.0)
    };
    let varies = |feature: usize| squares[feature] > n_draws * ROUNDING * ROUNDING;
    let varying = (0..n_features).filter(|&feature| varies(feature));
    let sample: Vec<f64> = varying.flat_map(|feature| drawn.iter().map(move |draw| left_out(draw, feature))).collect();
    let tail = (!sample.is_empty()).then(|| SampleTail::new(sample));
    let p_value = |feature: usize| {
        let above = own[feature] - mean[feature];
        match &tail {
            Some(tail) if varies(feature) => tail.ln(standardized(above, squares[feature], n_draws)),
            _ => 0.0,
        }
    };
    let Relevance { evidence, .. } = Relevance::from_ln((0..n_features).map(p_value), std::iter::empty());
    Relevance::new(evidence.clone(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_above_all_draws_is_relevant_and_one_among_them_is_not() {
        let drawn: Vec<Vec<f64>> = (0..60).map(|draw| vec![f64::from(draw * 37 % 60) / 60.0; 3]).collect();
        let drawn: Vec<&[f64]> = drawn.iter().map(|draw| &draw[..]).collect();
        let p = from_draws(&[0.5, 3.0, -1.0], &drawn).p_values();
        assert!((p[0] - 0.5).abs() < 0.05 && p[1] < 1e-4 && p[2] > 0.99, "{p:?}");
    }

    #[test]
    fn features_that_vary_by_rounding_alone_say_nothing() {
        let rounded = |draw: i32| f64::from(draw % 7) * 1e-17;
        let drawn: Vec<Vec<f64>> = (0..60).map(|draw| vec![f64::from(draw) / 60.0, 0.0, rounded(draw)]).collect();
        let drawn: Vec<&[f64]> = drawn.iter().map(|draw| &draw[..]).collect();
        let p = from_draws(&[0.5, 0.0, 2e-15], &drawn).p_values();
        assert!((p[0] - 0.5).abs() < 0.05 && p[1] == 1.0 && p[2] == 1.0, "{p:?}");
    }

    #[test]
    fn the_scale_of_a_feature_does_not_count() {
        // The second feature is the first a thousand times smaller.
        let values = |scale: f64, draw: i32| scale * f64::from(draw * 37 % 60) / 60.0;
        let drawn: Vec<Vec<f64>> = (0..60).map(|draw| vec![values(1.0, draw), values(1e-3, draw)]).collect();
        let drawn: Vec<&[f64]> = drawn.iter().map(|draw| &draw[..]).collect();
        let p = from_draws(&[1.1, 1.1e-3], &drawn).p_values();
        assert!((p[0] / p[1] - 1.0).abs() < 1e-9 && p[0] < 0.05, "{p:?}");
    }
}
