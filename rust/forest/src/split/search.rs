//! The inputs of a search of a cut.

use super::SplitConstraint;
use super::examples::Examples;
use super::node::Node;
use crate::criterion::Criterion;

/// The inputs of a search of a cut.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a, C> {
    pub(crate) criterion: &'a Criterion,
    pub(crate) examples: Examples<'a>,
    /// The code of each example, none missing.
    pub(crate) codes: &'a [C],
    /// All codes are below this number.
    pub(crate) n_codes: usize,
    pub(crate) node: &'a Node,
    pub(crate) constraint: SplitConstraint,
}
