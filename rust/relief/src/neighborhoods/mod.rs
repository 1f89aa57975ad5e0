//! Rules of neighborhood: which rows count for a query, and with which share.
//!
//! A rule searches by a [`PairSink`](ferrank_neighbors::sink::PairSink) or from sparse rows, and pushes the pairs that
//! count to the blocks of their queries ([`Plan::push`](crate::plan::Plan::push)). Where a large share of all pairs counts,
//! it adds the sums of whole lists instead ([`Block::add_list`](crate::sums::Block::add_list)). A rule by a radius
//! is one more way to make thresholds in `radius`; any other implements [`Neighborhood`] in a file here and is chosen in
//! [`neighborhood`].

mod nearest;
mod radius;
mod rule;

use crate::params::{NeighborhoodRule, ReliefParams};
pub(crate) use nearest::rank_shares;
pub(crate) use rule::Neighborhood;

/// The rule that `params` choose, for `n_rows` rows.
pub(crate) fn neighborhood(params: &ReliefParams, n_rows: usize) -> Box<dyn Neighborhood> {
    match params.neighborhood {
        NeighborhoodRule::Nearest => Box::new(nearest::Nearest::new(params, n_rows)),
        rule => Box::new(radius::Radius { rule }),
    }
}
