//! Cuts of nodes whose examples are [pairs](crate::pairs).
//!
//! One vector addition updates both sums of a pair. A histogram adds up pairs by code; the histograms of several features with codes of one byte are filled in one pass. If most bins stay empty, a
//! bitmap marks the non-empty bins, and only those are visited and cleared. Otherwise all cuts are judged in vectors.
//! Without the bitmap a fit with exact codes takes 10 times as long (100k x 50), without the vectors one with 255 codes
//! 1.2 times (100k x 50, 20k x 200).
//!
//! Rankings from this kernel can differ from those of the searches for any components, because small nodes are searched
//! there with inner products ([`gram`](super::gram)). The rounding errors of inner products are relative to the impurity
//! of the node, those of the exact sums here are relative to the gain. If a gain is below about 1e-5 of the impurity, the
//! errors of inner products exceed the tolerance of ties, and another of several equal cuts can be chosen. A test shows
//! such nodes.
//!
//! Categories are a few bins in the order of their means ([`Categories`]).
//!
//! Missing values have a bin of their own, which is added to the left side for the search with them on the left.
//!
//! Memory: 24 bytes for each code.

mod all_bins;
mod bins;
mod categories;
mod given_cut;
mod histograms;
mod in_order;
mod node;

pub(crate) use bins::{Bins, best_cut, is_dense};
pub(crate) use categories::{Categories, best_subset};
pub(crate) use given_cut::given_cut;
#[cfg(test)]
pub(crate) use given_cut::left_of;
pub(crate) use histograms::{Histograms, SIDE_BY_SIDE};
pub(crate) use in_order::best_sparse_cut;
pub(crate) use node::Node;
