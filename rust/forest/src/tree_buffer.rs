//! A tree during growth: tests on codes, nodes in preorder.

use crate::contrasts::Contrasts;
use ferrank_data::profile::Cuts;

/// A test on codes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CodeTest {
    /// Codes up to this code go left; all that are known if it is [`KNOWN`].
    Cut(u16),
    /// These codes, ascending, go left.
    Subset(Vec<u16>),
}

/// The cut of the test whether a value is known: at least as high as all codes, and below that of missing values, in one
/// byte and in two.
pub(crate) const KNOWN: u16 = u16::MAX - 1;

/// The cut of a test on values that is one at `code` on codes; infinite for [`KNOWN`].
pub(crate) fn cut_on_values(cuts: &Cuts, code: u16) -> f64 {
    if code == KNOWN { f64::INFINITY } else { cuts.cut(usize::from(code)) }
}

/// The side of the examples whose value is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingSide {
    Left,
    Right,
    /// The side with the greater weight; the left one if both weigh the same.
    Heavier,
}

/// A test of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeTest {
    pub(crate) test: CodeTest,
    /// The side of the examples whose value is missing.
    pub(crate) missing: MissingSide,
}

impl NodeTest {
    /// A test whose missing values, if any, go to the heavier side.
    pub(crate) fn new(test: CodeTest) -> Self {
        NodeTest { test, missing: MissingSide::Heavier }
    }

    /// Returns true if missing values go left, where the sides have these weights without them.
    pub(crate) fn missing_left(&self, left: f64, right: f64) -> bool {
        match self.missing {
            MissingSide::Left => true,
            MissingSide::Right => false,
            MissingSide::Heavier => left >= right,
        }
    }
}

/// A split of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct BufferedSplit {
    pub(crate) feature: u32,
    pub(crate) test: CodeTest,
    pub(crate) missing_left: bool,
    /// Impurity decrease due to the split.
    pub(crate) gain: f64,
    /// Positions of the left and the right child.
    pub(crate) children: [u32; 2],
}

/// A node of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct BufferedNode {
    pub(crate) depth: u32,
    pub(crate) examples: f64,
    pub(crate) weight: f64,
    pub(crate) split: Option<BufferedSplit>,
}

/// A grown tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeBuffer {
    /// Nodes in preorder, left before right.
    pub(crate) nodes: Vec<BufferedNode>,
    /// n_splits x n_targets; the part of each target in the gain of each split, in preorder. Empty unless requested.
    pub(crate) gain_by_target: Vec<f64>,
    /// The contrasts of the splits, in preorder. Empty unless some score reads them.
    pub(crate) contrasts: Contrasts,
    /// The rows of the bag in each leaf, ascending, with their multiplicities; leaves in preorder. Empty unless some
    /// score reads predictions.
    pub(super) members: Vec<(u32, u32)>,
    /// The end of the members of each leaf.
    pub(super) member_ends: Vec<u32>,
}

impl TreeBuffer {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.gain_by_target.clear();
        self.contrasts.clear();
        self.members.clear();
        self.member_ends.clear();
    }

    /// The members of each leaf, in preorder.
    pub(crate) fn leaf_members(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        let starts = std::iter::once(0).chain(self.member_ends.iter().copied());
        starts.zip(&self.member_ends).map(|(start, &end)| &self.members[start as usize..end as usize])
    }
}
