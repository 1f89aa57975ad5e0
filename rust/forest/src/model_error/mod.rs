//! The forest's own error: how well its out-of-bag predictions are, beside a constant prediction.
//!
//! The error of single trees would mislead, because a forest is better than its trees. The prediction of the forest for
//! a row is the mean over the trees that have the row out of bag: of the means of their leaves, and of the shares of the
//! classes or labels there. For this, the residuals of each tree are a part of its contribution. They are computed for a
//! sample of up to [`MOST_ROWS`] rows, the same for all trees ([`RowSample`]), so that sums over any set of trees are
//! the residuals of the forest that they make, without the data ([`estimate`]).
//!
//! Rows of the sample that are out of bag go down the tree while it grows ([`TrackedRows`]), which costs little: no
//! nodes are kept. Their values and the predictions are components of the impurity, in growth in external memory too.
//! A tree without splits makes no prediction. A leaf in which no example has a known target predicts what the nearest
//! node above it does.
//!
//! | target | error | constant prediction |
//! |---|---|---|
//! | numeric | sum of squares relative to that of the constant, i.e. 1 − R² | mean |
//! | classes | error rate | most frequent class |
//! | label sets | Hamming loss, labels weighted by their shares | labels of more than half of the rows |
//!
//! If two classes have the same share, or a label has half of it, the error is that of a random choice.
//!
//! Memory: the codes of the sampled rows, and for each tree about three numbers for each of these rows and target.

mod estimate;
mod sample;
mod tracked;

use ferrank_ranking::{Form, RunData};

use crate::params::ForestParams;

pub(crate) use estimate::estimate;
pub(crate) use sample::RowSample;
pub(crate) use tracked::TrackedRows;

/// The most rows of a sample.
const MOST_ROWS: usize = 1000;

/// Rows by which an entry of a vector moves on to the next: entry `number` of a row is at `number * STRIDE + row`, with
/// the number of the row in the sample.
const STRIDE: u32 = 1024;

const _: () = assert!(MOST_ROWS <= STRIDE as usize);

/// The forms of the vectors of a tree: the weights of the tracked rows, and the residuals for each target.
pub(crate) fn forms(data: &RunData, params: &ForestParams) -> Vec<Form> {
    let n_targets = if params.per_target { data.targets.len().min(1) } else { data.targets.len() };
    let is_measured = params.bootstraps() && n_targets > 0;
    vec![Form::Entries; if is_measured { 1 + n_targets } else { 0 }]
}
