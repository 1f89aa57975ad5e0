//! The importances of companion trees, relative to the impurity of their subsample.

use ferrank_ranking::Contribution;

use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::scores::variants;
use crate::space::Block;

/// The vectors of companion number `tree` that its tree keeps: one for each score.
///
/// Shares of the impurity of the training data become shares of the impurity of the subsample.
pub(crate) fn kept(mut vectors: Contribution, tree: u64, context: GrowContext<'_>) -> Contribution {
    let GrowContext { space, params, .. } = context;
    let variants = variants(params);
    vectors.truncate(variants.len());
    let own = impurity(context, &context.bags().subsample(tree));
    let factor = if own > 0.0 { space.impurity / own } else { 1.0 };
    let shares = vectors.iter_mut().zip(&variants).filter(|(_, variant)| variant.score.method().is_share_of_impurity());
    for (vector, _) in shares {
        vector.values.iter_mut().for_each(|value| *value *= factor);
    }
    vectors
}

/// The impurity of `rows`.
fn impurity(context: GrowContext<'_>, rows: &[u32]) -> f64 {
    let GrowContext { store, space, .. } = context;
    let criterion = Criterion::new(space);
    let (mut sums, mut squares) = (vec![0.0; criterion.len()], vec![0.0; criterion.n_dense()]);
    let mut one = Block::default();
    for &row in rows {
        let (block, place) = space.block_with(store.columns(), row as usize, &mut one);
        criterion.add(&mut sums, block, place, 1.0);
        // A component is a value times the weight of the row, which is 0 where the value is missing.
        let weight = block.weight(place);
        if weight > 0.0 {
            let add = |(sum, value): (&mut f64, &f64)| *sum += value * value / weight;
            squares.iter_mut().zip(block.dense(place)).for_each(add);
        }
    }
    let variance =
        |sum: f64, square: f64, weight: f64| if weight > 0.0 { square / weight - (sum / weight).powi(2) } else { 0.0 };
    let dense = (0..criterion.n_dense())
        .map(|c| variance(criterion.dense(&sums)[c], squares[c], criterion.weight_of_dense(&sums, c)));
    let indicators = (0..).zip(criterion.indicators(&sums)).zip(&criterion.indicator_weight);
    let indicators =
        indicators.map(|((i, &sum), omega)| omega * variance(sum, sum, criterion.weight_of_indicator(&sums, i)));
    dense.chain(indicators).sum()
}
