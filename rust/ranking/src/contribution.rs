//! What one tree or one block of queries adds to the importances.

use xxhash_rust::xxh3::Xxh3;

/// Numbers for some features, or for all, or of something else.
///
/// ```
/// use ferrank_ranking::Vector;
///
/// // Trees of which each uses some features only.
/// let (one, other) = (Vector::sparse(vec![(0, 2.0), (3, 1.0)]), Vector::sparse(vec![(3, 0.5)]));
/// assert_eq!(one.plus(&other), Vector::sparse(vec![(0, 2.0), (3, 1.5)]));
/// assert_eq!(Vector::dense(vec![4.0, 1.0]).entries().collect::<Vec<_>>(), [(0, 4.0), (1, 1.0)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vector {
    /// The features that have a value, ascending; `None`: there is one for each, in their order.
    pub features: Option<Vec<u32>>,
    /// One value for each of `features`, or for all.
    pub values: Vec<f64>,
}

/// Its vectors; which these are, the ranker says with [`Form`].
pub type Contribution = Vec<Vector>;

/// Contributions added up.
///
/// ```
/// use ferrank_ranking::{Estimate, Part, Vector};
///
/// // The sum over three trees, and a tree alone.
/// let (three, one) = (vec![Vector::dense(vec![6.0, 3.0])], vec![Vector::dense(vec![2.0, 5.0])]);
/// let parts = [Part { key: 0, weight: 3.0, sums: &three }, Part { key: 3, weight: 1.0, sums: &one }];
/// assert_eq!(Estimate::mean(&parts, 0, 2).mean, [2.0, 2.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The key of the contribution, or of the first of those added up.
    pub key: u64,
    /// How many they count for; 1 for one as it was made.
    pub weight: f64,
    /// The sums of the contributions.
    pub sums: &'a Contribution,
}

/// What a vector of a contribution must look like.
///
/// ```
/// use ferrank_ranking::{Form, Vector};
///
/// let vector = Vector::sparse(vec![(0, 2.0), (3, 1.0)]);
/// assert!(vector.has(Form::Sparse(4)) && vector.has(Form::Entries));
/// // Three features have the numbers 0 to 2.
/// assert!(!vector.has(Form::Sparse(3)));
/// assert!(Vector::dense(vec![2.0, 1.0]).has(Form::Dense(2)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Values of some of so many features.
    Sparse(usize),
    /// So many values.
    Dense(usize),
    /// Values at any places, which are numbers of something else than features.
    Entries,
}

impl Vector {
    /// Of (feature, value) by ascending feature.
    pub fn sparse(entries: Vec<(u32, f64)>) -> Self {
        let (features, values) = entries.into_iter().unzip();
        Vector { features: Some(features), values }
    }

    /// A value for each feature.
    pub fn dense(values: Vec<f64>) -> Self {
        Vector { features: None, values }
    }

    /// (feature, value)
    pub fn entries(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let feature = |place: usize| self.features.as_ref().map_or(place, |features| features[place] as usize);
        self.values.iter().enumerate().map(move |(place, &value)| (feature(place), value))
    }

    /// The sum of both; a feature that is not in a sparse vector counts as 0.
    pub fn plus(&self, other: &Vector) -> Vector {
        if self.features.is_none() && other.features.is_none() {
            return Vector::dense(self.values.iter().zip(&other.values).map(|(a, b)| a + b).collect());
        }
        let (mut own, mut others) = (self.entries().peekable(), other.entries().peekable());
        let mut sums = Vec::with_capacity(self.values.len().max(other.values.len()));
        loop {
            let next = match (own.peek(), others.peek()) {
                (None, None) => return Vector::sparse(sums),
                (Some(&(a, _)), Some(&(b, _))) => a.min(b),
                (Some(&(feature, _)), None) | (None, Some(&(feature, _))) => feature,
            };
            let one = own.next_if(|(feature, _)| *feature == next).map(|(_, value)| value);
            let two = others.next_if(|(feature, _)| *feature == next).map(|(_, value)| value);
            sums.push((next as u32, one.unwrap_or(0.0) + two.unwrap_or(0.0)));
        }
    }

    /// Returns true if the vector has the shape `form`.
    pub fn has(&self, form: Form) -> bool {
        match (form, &self.features) {
            (Form::Dense(count), None) => self.values.len() == count,
            (Form::Entries, Some(places)) => places.len() == self.values.len() && places.is_sorted_by(|a, b| a < b),
            (Form::Sparse(n_features), Some(features)) => {
                features.len() == self.values.len()
                    && features.is_sorted_by(|a, b| a < b)
                    && features.last().is_none_or(|&last| (last as usize) < n_features)
            }
            _ => false,
        }
    }
}

/// A hash of all bits of the contribution of `key` to the run with the hash `run`.
pub fn checksum(run: u64, key: u64, contribution: &[Vector]) -> u64 {
    let mut hash = Xxh3::with_seed(run);
    hash.update(&key.to_le_bytes());
    let mut bytes = Vec::new();
    for vector in contribution {
        bytes.clear();
        let features = vector.features.as_ref().map_or(u64::MAX, |features| features.len() as u64);
        bytes.extend(features.to_le_bytes());
        bytes.extend((vector.values.len() as u64).to_le_bytes());
        bytes.extend(vector.features.iter().flatten().flat_map(|feature| feature.to_le_bytes()));
        bytes.extend(vector.values.iter().flat_map(|value| value.to_le_bytes()));
        hash.update(&bytes);
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_vector_has_each_feature_once_in_order() {
        let sparse = |features: &[u32]| Vector::sparse(features.iter().map(|&feature| (feature, 1.0)).collect());
        assert!(sparse(&[]).has(Form::Sparse(3)));
        assert!(sparse(&[0, 2]).has(Form::Sparse(3)));
        for wrong in [&[1, 1][..], &[2, 0], &[3]] {
            assert!(!sparse(wrong).has(Form::Sparse(3)), "{wrong:?}");
        }
        assert!(!sparse(&[0, 1, 2]).has(Form::Dense(3)));
    }
}
