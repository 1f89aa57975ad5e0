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
//! Beside it stands the squared error of the shares (Brier 1950), relative to that of the shares in all rows. The forest
//! is better than the constant prediction if one of the two errors is, by Student's one-sided test at the level 0.05, or
//! 0.025 for each of two. Rows of a group count as one observation.
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
    let n_vectors = if unknown(data, params).is_none() { 1 + n_targets } else { 0 };
    vec![Form::Entries; n_vectors]
}

/// Why trees predict no rows; `None` if they do.
pub(crate) fn unknown(data: &RunData, params: &ForestParams) -> Option<&'static str> {
    match (data.targets.is_empty(), params.bootstraps(), params.supervision) {
        (true, ..) => Some("there is no target"),
        (_, false, _) => Some("no row is out of bag without a bootstrap"),
        (_, _, Some(0.0)) => Some("targets take no part with a supervision of 0"),
        _ => None,
    }
}
