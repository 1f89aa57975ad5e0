//! Rules of neighborhood: which rows count for a query, and with which share.
//!
//! A rule searches by a [`PairSink`](ferrank_neighbors::sink::PairSink) or from sparse rows, and pushes the pairs that
//! count to the blocks of their queries ([`Plan::push`](crate::plan::Plan::push)). A new rule implements
//! [`Neighborhood`] in a file here and is chosen in [`neighborhood`].

mod nearest;
mod rule;

use crate::params::ReliefParams;
pub(crate) use rule::Neighborhood;

/// The rule that `params` choose, for `n_rows` rows.
pub(crate) fn neighborhood(params: &ReliefParams, n_rows: usize) -> Box<dyn Neighborhood> {
    Box::new(nearest::Nearest::new(params, n_rows))
}
