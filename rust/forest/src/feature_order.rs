//! A random order of features of which both a place and a feature can be asked for.
//!
//! Where most features are constant in a node, the candidates of a large node are the first of the order that vary. In a
//! small node few features vary, and those that come first of them are the same candidates, whatever the number of
//! features.
//!
//! The order is a permutation of the numbers below a power of two, of which those of features are taken: rounds of a
//! multiplication by an odd number, an addition and a shift, all of which can be undone.

use rand::Rng;

use ferrank_runtime::random::Stream;

const ROUNDS: usize = 4;

/// A random order of features.
#[derive(Clone, Copy)]
pub(crate) struct FeatureOrder {
    rounds: [Round; ROUNDS],
    mask: u32,
    /// At least half of the bits, so that the shift undoes itself.
    shift: u32,
}

#[derive(Clone, Copy)]
struct Round {
    factor: u32,
    inverse: u32,
    addend: u32,
}

impl FeatureOrder {
    /// An order of `n_features` features, at most 2^31.
    pub(crate) fn new(n_features: usize, random: &mut Stream) -> Self {
        let n_bits = (n_features.max(2) as u32).next_power_of_two().trailing_zeros();
        let rounds = std::array::from_fn(|_| {
            let bits = random.next_u64();
            let factor = bits as u32 | 1;
            Round { factor, inverse: inverse(factor), addend: (bits >> 32) as u32 }
        });
        FeatureOrder { rounds, mask: (1 << n_bits) - 1, shift: n_bits.div_ceil(2) }
    }

    /// Number of places; some may have no feature.
    pub(crate) fn len(&self) -> u32 {
        self.mask + 1
    }

    /// The number of the feature at `place`, which may be that of no feature.
    #[inline(always)]
    pub(crate) fn at(&self, place: u32) -> u32 {
        let mut number = place;
        for Round { factor, addend, .. } in self.rounds {
            number = number.wrapping_mul(factor).wrapping_add(addend) & self.mask;
            number ^= number >> self.shift;
        }
        number
    }

    /// The place of `feature`.
    #[inline(always)]
    pub(crate) fn place(&self, feature: u32) -> u32 {
        let mut number = feature;
        for Round { inverse, addend, .. } in self.rounds.into_iter().rev() {
            number ^= number >> self.shift;
            number = number.wrapping_sub(addend).wrapping_mul(inverse) & self.mask;
        }
        number
    }
}

/// The number by which the odd `factor` is 1 modulo 2^32 (Newton's method).
fn inverse(factor: u32) -> u32 {
    // Right in 3 bits; each step doubles them.
    let step = |inverse: u32, _| inverse.wrapping_mul(2u32.wrapping_sub(factor.wrapping_mul(inverse)));
    (0..4).fold(factor, step)
}

#[cfg(test)]
mod tests {
    use ferrank_runtime::random::{Purpose, stream};

    use super::*;

    #[test]
    fn places_and_features_belong_together() {
        for n_features in [1, 2, 3, 1_000, 1_024, 70_000] {
            let order = FeatureOrder::new(n_features, &mut stream(1, Purpose::Node, 0, n_features as u64));
            assert!(order.len() as usize >= n_features && order.len() as usize <= (2 * n_features).max(2));
            let mut seen = vec![false; order.len() as usize];
            for place in 0..order.len() {
                let feature = order.at(place);
                assert_eq!(order.place(feature), place);
                assert!(!std::mem::replace(&mut seen[feature as usize], true));
            }
        }
    }

    /// The variance of counts over their mean; 1 for those of independent draws.
    fn dispersion(counts: &[u32]) -> f64 {
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<u32>() as f64 / n;
        counts.iter().map(|&count| (f64::from(count) - mean).powi(2)).sum::<f64>() / n / mean
    }

    #[test]
    fn each_feature_and_each_pair_comes_first_equally_often() {
        let (n_features, wanted, n_orders) = (1_500, 39, 20_000);
        let mut single = vec![0; n_features];
        // Pairs of features at distances that a weak permutation would favour, and at others.
        let distances = [1, 2, 3, 32, 64, 500, 512, 1_024];
        let mut pairs = vec![0; distances.len()];
        for number in 0..n_orders {
            let order = FeatureOrder::new(n_features, &mut stream(7, Purpose::Node, 3, number));
            let features = (0..order.len()).map(|place| order.at(place) as usize);
            let first: Vec<usize> = features.filter(|&feature| feature < n_features).take(wanted).collect();
            let mut is_first = vec![false; n_features];
            for &feature in &first {
                single[feature] += 1;
                is_first[feature] = true;
            }
            for (pair, distance) in pairs.iter_mut().zip(distances) {
                let both = first.iter().filter(|&&feature| is_first.get(feature + distance) == Some(&true));
                *pair += both.count() as u32;
            }
        }
        let spread = dispersion(&single);
        assert!((0.9..1.1).contains(&spread), "{spread}");
        for (pair, distance) in pairs.into_iter().zip(distances) {
            let share = (wanted * (wanted - 1)) as f64 / (n_features * (n_features - 1)) as f64;
            let expected = n_orders as f64 * share * (n_features - distance) as f64;
            let error = (f64::from(pair) - expected) / expected.sqrt();
            assert!(error.abs() < 4.0, "{distance}: {pair} for {expected}");
        }
    }
}
