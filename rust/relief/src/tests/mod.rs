//! The Relief ranker on small cases by hand, and laws that its rankings obey.

mod laws;
mod near_pairs;
mod queries;
mod sample;
mod selection;
mod sparse;
mod weights;

/// A random number in [0, 1), another one for each `n`.
pub(crate) fn uniform(n: u64) -> f64 {
    (ferrank_runtime::random::mix([n]) >> 11) as f64 / (1u64 << 53) as f64
}
