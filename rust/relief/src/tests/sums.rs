//! Rank weights, the draw of queries, and sums of a small case by hand.

use crate::queries::draw;
use crate::sums::rank_weights;

#[test]
fn rank_weights_sum_up_to_one() {
    assert_eq!(rank_weights(2, None), [0.5, 0.5]);
    let raw: Vec<f64> = [1.0f64, 4.0, 9.0].iter().map(|square| (-square / 4.0).exp()).collect();
    let total: f64 = raw.iter().sum();
    for (found, raw) in rank_weights(3, Some(2.0)).iter().zip(&raw) {
        assert!((found - raw / total).abs() < 1e-15);
    }
    assert_eq!(rank_weights(3, Some(1e-3)), [1.0, 0.0, 0.0]);
    assert!(rank_weights(0, None).is_empty());
}

#[test]
fn queries_are_drawn_without_replacement_and_uniformly() {
    let mut all = draw(0, 100, 100);
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<u32>>());
    assert_eq!(draw(0, 100, 10), draw(0, 100, 100)[..10]);
    assert_ne!(draw(0, 100, 10), draw(1, 100, 10));
    let mut counts = [0; 10];
    (0..2_000).flat_map(|seed| draw(seed, 10, 3)).for_each(|row| counts[row as usize] += 1);
    assert!(counts.iter().all(|&count| (520..=680).contains(&count)), "{counts:?}");
}
