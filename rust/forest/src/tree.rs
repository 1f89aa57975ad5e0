//! A grown tree with tests on values, for users.

/// The test of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Examples go left if their value is at most this number, which lies between two observed values.
    Cut(f64),
    /// Examples go left if their category is one of these. The order is that of the categories of the feature.
    Subset(Vec<String>),
}

/// A split node.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The number of the feature, in input order.
    pub feature: usize,
    /// The test.
    pub test: Test,
    /// Whether examples with a missing value go left.
    pub missing_left: bool,
    /// The impurity decrease: the impurity of the node minus the weighted mean of the impurities of its children, times
    /// the share of the weight of the node for which the feature is known.
    pub gain: f64,
    /// The positions of the left and the right child in [`Tree::nodes`].
    pub children: (usize, usize),
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The depth; 0 for the root.
    pub depth: usize,
    /// Number of examples of the bag that reach the node, counted with multiplicity.
    pub n_examples: u64,
    /// The split; `None` for a leaf.
    pub split: Option<Split>,
}

/// A grown tree with tests on values, as [`grow_tree`](crate::grow_tree) returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The nodes in preorder: the root comes first, each node before its children, left before right.
    pub nodes: Vec<Node>,
}
