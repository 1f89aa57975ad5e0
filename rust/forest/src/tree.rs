//! A grown tree with tests on values, for users.

/// The test of a node.
///
/// ```
/// use ferrank_forest::Test;
///
/// let goes_left = |test: &Test, value: f64| matches!(test, Test::Cut(cut) if value <= *cut);
/// assert!(goes_left(&Test::Cut(2.5), 2.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Examples go left if their value is at most this number, which lies between two observed values. It is infinite
    /// for the test whether the value is known, which sends all known values to the left.
    Cut(f64),
    /// Examples go left if their category is one of these. The order is that of the categories of the feature. These are
    /// all categories for the test whether the value is known.
    Subset(Vec<String>),
}

/// The split of a node.
///
/// ```
/// use ferrank_forest::{Split, Test};
///
/// let next = |split: &Split, value: f64| match &split.test {
///     Test::Cut(cut) if value <= *cut => split.children.0,
///     _ => split.children.1,
/// };
/// let split = Split { feature: 0, test: Test::Cut(2.5), missing_left: true, gain: 0.5, children: (1, 4) };
/// assert_eq!((next(&split, 2.0), next(&split, 3.0)), (1, 4));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The number of the feature, in input order.
    pub feature: usize,
    /// The test.
    pub test: Test,
    /// True if examples with a missing value go left.
    pub missing_left: bool,
    /// The impurity decrease: the impurity of the node minus the weighted mean of the impurities of its children. With
    /// [`Missing::Ignore`](crate::Missing::Ignore) it is computed from the examples whose value is known, times their
    /// share of the weight of the node.
    pub gain: f64,
    /// The positions of the left and the right child in [`Tree::nodes`].
    pub children: (usize, usize),
}

/// A node of a tree.
///
/// ```
/// use ferrank_forest::{Node, Tree};
///
/// let leaves = |tree: &Tree| tree.nodes.iter().filter(|node| node.split.is_none()).count();
/// let stump = Tree { nodes: vec![Node { depth: 0, n_examples: 7, split: None }] };
/// assert_eq!(leaves(&stump), 1);
/// ```
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
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_forest::{ForestParams, Test, grow_tree};
/// use ferrank_runtime::monitor::Monitor;
///
/// let column = |values: [f64; 4]| Arc::new(Float64Array::from_iter_values(values)) as ArrayRef;
/// let columns = [("x", column([1.0, 2.0, 3.0, 4.0])), ("y", column([0.0, 0.0, 9.0, 9.0]))];
/// let batch = RecordBatch::try_from_iter(columns).unwrap();
/// let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// let params = ForestParams::default().with_bootstrap(Some(false));
/// let tree = grow_tree(&source, &Roles::new(Targets::Last(1)), &params, 0, &Monitor::default())?;
/// let root = tree.nodes[0].split.as_ref().unwrap();
/// assert_eq!((tree.nodes.len(), root.feature, &root.test), (3, 0, &Test::Cut(2.5)));
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The nodes in preorder: the root comes first, each node before its children, left before right.
    pub nodes: Vec<Node>,
}
