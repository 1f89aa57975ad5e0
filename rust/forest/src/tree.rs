//! A grown tree with tests on values, for users.

/// The test of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Left if the value is at most this. A value between two observed ones, on the feature's scale.
    Cut(f64),
    /// Left if the category is one of these, in category order.
    Subset(Vec<String>),
}

/// A split node.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Number of the feature, in input order.
    pub feature: usize,
    /// The test.
    pub test: Test,
    /// Whether examples that miss the feature go left.
    pub missing_left: bool,
    /// Impurity decrease: impurity of the node minus the weighted mean of its children's, times the
    /// share of the node's weight whose value is known.
    pub gain: f64,
    /// The nodes to the left and right, as positions in [`Tree::nodes`].
    pub children: (usize, usize),
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Distance from the root, which is at 0.
    pub depth: usize,
    /// Examples of the bag that reach the node, counted with multiplicity.
    pub n_examples: u64,
    /// The split; `None` for a leaf.
    pub split: Option<Split>,
}

/// A tree; the root comes first, each node before its children, left before right.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// All nodes in preorder.
    pub nodes: Vec<Node>,
}
