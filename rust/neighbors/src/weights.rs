//! Weights of features in the distance of two rows.

/// How much each feature counts in the distance of two rows, Σ w · difference / Σ w.
///
/// ```
/// use ferrank_neighbors::weights::DistanceWeights;
///
/// // Weights are relative to the largest, so that no difference is above 1.
/// let weights = DistanceWeights::new(&[0.0, 2.0, 4.0]).expect("they differ");
/// assert_eq!((weights.of(1), weights.of(2), weights.total()), (0.5, 1.0, 1.5));
/// assert_eq!(weights.terms().collect::<Vec<_>>(), [(1, 0.5), (2, 1.0)]);
/// // Equal weights are no weights.
/// assert!(DistanceWeights::new(&[3.7, 3.7]).is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceWeights {
    /// n_features; the largest is 1.
    of: Vec<f64>,
    /// Features of a weight above 0, ascending, with their weights.
    terms: Vec<(u32, f64)>,
    /// Sum of the weights.
    total: f64,
}

impl DistanceWeights {
    /// Creates the weights of all features from numbers up to a common factor, finite, not negative and not all 0. `None`
    /// where they are equal.
    pub fn new(weights: &[f64]) -> Option<Self> {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if weights.iter().all(|&weight| weight == largest) {
            return None;
        }
        let of: Vec<f64> = weights.iter().map(|weight| weight / largest).collect();
        let terms: Vec<(u32, f64)> = (0..).zip(of.iter().copied()).filter(|(_, weight)| *weight > 0.0).collect();
        let total = terms.iter().map(|(_, weight)| weight).sum();
        Some(DistanceWeights { of, terms, total })
    }

    /// The weight of feature `i`, in [0, 1].
    #[inline]
    pub fn of(&self, i: usize) -> f64 {
        self.of[i]
    }

    /// The features of a weight above 0, ascending, with their weights.
    pub fn terms(&self) -> impl Iterator<Item = (usize, f64)> {
        self.terms.iter().map(|&(feature, weight)| (feature as usize, weight))
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.total
    }
}
