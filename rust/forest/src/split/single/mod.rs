//! Cuts for a single dense component, known for all rows, where rows weigh 1.
//!
//! An example is a pair {count, count · value}, so that both sums grow by one vector addition. A
//! histogram adds pairs up by code; histograms of several features of one byte are filled in one pass. Where most
//! bins stay empty, a bitmap marks the bins in use, and only those are visited and cleared; else all cuts are judged
//! at once, in vectors.
//!
//! This kernel does not have the bits of the general way. Small nodes are the reason: for any components they are
//! searched with inner products ([`gram`](super::gram)), whose rounding errors are relative to the node's impurity;
//! here sums are exact and errors are relative to the gain. Where a gain is below about 1e-5 of the impurity, two equal
//! gains may then differ by more than ties allow, and another of the tied tests is taken. With inner products switched
//! off, both ways grow the same trees.
//!
//! Memory: 24 bytes for each code.

mod all_bins;
mod bins;
mod given_cut;
mod histograms;
mod node;

pub(crate) use bins::{Bins, best_cut, is_dense};
pub(crate) use given_cut::given_cut;
#[cfg(test)]
pub(crate) use given_cut::left_of;
pub(crate) use histograms::{Histograms, SIDE_BY_SIDE};
pub(crate) use node::{Node, Pair};
