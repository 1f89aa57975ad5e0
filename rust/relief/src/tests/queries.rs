//! The draw of queries.

use crate::queries::draw;

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
