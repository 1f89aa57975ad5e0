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
    /// The code of each example.
    pub(crate) codes: &'a [C],
    /// All codes are below this number.
    pub(crate) n_codes: usize,
    /// The code of missing values, above all others, if there are some and the best cut is searched with them on either
    /// side.
    pub(crate) missing: Option<u16>,
    pub(crate) node: &'a Node,
    pub(crate) constraint: SplitConstraint,
}

impl<C> Search<'_, C> {
    /// All codes of known values are below this number.
    pub(crate) fn n_known(&self) -> usize {
        self.missing.map_or(self.n_codes, usize::from)
    }
}
