//! Quantiles of the laws of standardized estimates.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which on quantiles of Student's t are taken from the normal distribution.
const NORMAL: f64 = 1e5;

/// The quantile of Student's t with `freedom` degrees of freedom; infinite where there are none.
pub fn quantile(probability: f64, freedom: f64) -> f64 {
    // For many degrees of freedom statrs is slow, and the quantiles are those of the normal distribution.
    if freedom >= NORMAL {
        return Normal::standard().inverse_cdf(probability);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(probability))
}
