//! A tree: nodes in the order of a walk, the left branch first.

use serde::{Deserialize, Serialize};

use crate::model::LinearModel;
use crate::params::Selector;
use ferrank_data::schema::Task;

/// A question about a value; rows of which it holds go left.
///
/// ```
/// use ferrank_trees::Test;
///
/// assert_eq!(Test::groups(vec![2, 0], vec![1]), Test::In { left: vec![0, 2], right: vec![1] });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// value ≤ cut
    AtMost(f64),
    /// The value is one of some categories.
    In {
        /// Numbers of the categories that go left, ascending.
        left: Vec<u16>,
        /// Of those that go right, ascending. Rows of others go where rows with a missing value go.
        right: Vec<u16>,
    },
}

impl Test {
    /// The test of two groups of categories.
    pub fn groups(mut left: Vec<u16>, mut right: Vec<u16>) -> Self {
        left.sort_unstable();
        right.sort_unstable();
        Test::In { left, right }
    }

    /// True if a row with this number goes left; `None` if it is missing or the test is about categories.
    fn of_number(&self, value: f64) -> Option<bool> {
        match self {
            Test::AtMost(cut) if !value.is_nan() => Some(value <= *cut),
            _ => None,
        }
    }

    /// True if a row of this category goes left; `None` if it is of neither side, or the test is about numbers.
    fn of_category(&self, code: u16) -> Option<bool> {
        match self {
            Test::In { left, .. } if left.binary_search(&code).is_ok() => Some(true),
            Test::In { right, .. } if right.binary_search(&code).is_ok() => Some(false),
            _ => None,
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    /// NaN is missing.
    Number(f64),
    /// The number of a category; those that the tree does not know have numbers of none.
    Category(u16),
}

/// What a node asks, and how that was chosen.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let class = (0..40).map(|row| Some(if row < 20 { "low" } else { "high" })).collect::<StringArray>();
/// # let columns = [("x", column(f64::from)), ("noise", column(|row| f64::from(row * 7 % 5))), ("y", Arc::new(class) as _)];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let tree = ferrank_trees::grow(&source, &roles, &Default::default(), 1, &monitor)?;
/// let split = tree.nodes[0].split.as_ref().expect("the root is split");
/// assert_eq!((tree.features[split.feature as usize].name.as_str(), split.left), ("x", 1));
/// assert_eq!(split.test, ferrank_trees::Test::AtMost(19.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Split {
    /// Number of the feature.
    pub feature: u32,
    /// The question.
    pub test: Test,
    /// True if rows with a missing value, or one that the node did not see, go left.
    pub missing_left: bool,
    /// Rows of the node whose value is missing.
    pub n_missing: u64,
    /// What chose the feature and its test.
    pub selector: Selector,
    /// Its estimate of the feature at the node.
    pub estimate: f64,
    /// Correlation of the estimates of Relief and the other selector, where they were compared.
    pub correlation: Option<f64>,
    /// Number of the left child.
    pub left: u32,
    /// Number of the right child.
    pub right: u32,
}

impl Split {
    /// True if a row with this value goes left.
    pub(crate) fn goes_left(&self, value: Value) -> bool {
        let found = match value {
            Value::Number(value) => self.test.of_number(value),
            Value::Category(code) => self.test.of_category(code),
        };
        found.unwrap_or(self.missing_left)
    }
}

/// A node.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let class = (0..40).map(|row| Some(if row < 20 { "low" } else { "high" })).collect::<StringArray>();
/// # let columns = [("x", column(f64::from)), ("noise", column(|row| f64::from(row * 7 % 5))), ("y", Arc::new(class) as _)];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let tree = ferrank_trees::grow(&source, &roles, &Default::default(), 1, &monitor)?;
/// let root = &tree.nodes[0];
/// assert_eq!((root.n_rows, &root.class_counts[..], root.impurity), (40, &[20, 20][..], 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// Rows that reach it.
    pub n_rows: u64,
    /// n_classes; rows by class. Empty for numbers.
    pub class_counts: Vec<u64>,
    /// The number of the majority class, the first of equal ones, or the mean.
    pub prediction: f64,
    /// Gini index, or variance.
    pub impurity: f64,
    /// The linear model of a leaf that has one.
    pub model: Option<LinearModel>,
    /// `None` for leaves.
    pub split: Option<Split>,
}

/// A feature as the tree knows it.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let class = (0..40).map(|row| Some(if row < 20 { "low" } else { "high" })).collect::<StringArray>();
/// # let columns = [("x", column(f64::from)), ("noise", column(|row| f64::from(row * 7 % 5))), ("y", Arc::new(class) as _)];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let tree = ferrank_trees::grow(&source, &roles, &Default::default(), 1, &monitor)?;
/// assert_eq!(tree.features[1].name, "noise");
/// assert_eq!(tree.features[1].categories, None); // it is numeric
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// Name of its column.
    pub name: String,
    /// Names of the categories of a nominal feature, in byte order.
    pub categories: Option<Vec<String>>,
}

/// A decision or regression tree.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let class = (0..40).map(|row| Some(if row < 20 { "low" } else { "high" })).collect::<StringArray>();
/// # let columns = [("x", column(f64::from)), ("noise", column(|row| f64::from(row * 7 % 5))), ("y", Arc::new(class) as _)];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let tree = ferrank_trees::grow(&source, &roles, &Default::default(), 1, &monitor)?;
/// assert_eq!((tree.target.as_str(), &tree.classes[..]), ("y", &["high".to_string(), "low".to_string()][..]));
/// assert_eq!(tree.nodes.len(), 3);
/// assert_eq!(tree.importances(), [1.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tree {
    /// Classification or regression.
    pub task: Task,
    /// Name of the target's column.
    pub target: String,
    /// Names of the classes, in byte order; empty for numbers.
    pub classes: Vec<String>,
    /// In the order of the columns.
    pub features: Vec<Feature>,
    /// The root first; each node is followed by its left branch, then by its right one.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The decrease of impurity that each feature brings, weighted by the share of rows that reach the node and divided
    /// by the impurity of the root, as Genie3 (Huynh-Thu et al. 2010) for one tree; n_features.
    ///
    /// Impurity is the Gini index or the variance, whatever selector chose, and whatever leaves predict.
    pub fn importances(&self) -> Vec<f64> {
        let mut importances = vec![0.0; self.features.len()];
        let Some(root) = self.nodes.first() else { return importances };
        let total = |node: &Node| node.n_rows as f64 * node.impurity;
        for node in &self.nodes {
            let Some(split) = &node.split else { continue };
            let [left, right] = [split.left, split.right].map(|child| total(&self.nodes[child as usize]));
            importances[split.feature as usize] += total(node) - left - right;
        }
        let all = total(root);
        importances.iter_mut().for_each(|importance| *importance = if all > 0.0 { *importance / all } else { 0.0 });
        importances
    }

    /// The leaf of a row with these values by feature.
    pub(crate) fn leaf(&self, value: impl Fn(u32) -> Value) -> u32 {
        let mut number = 0;
        while let Some(split) = &self.nodes[number as usize].split {
            number = if split.goes_left(value(split.feature)) { split.left } else { split.right };
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n_rows: u64, impurity: f64, split: Option<(u32, Test, u32, u32)>) -> Node {
        let split = split.map(|(feature, test, left, right)| Split {
            feature,
            test,
            missing_left: false,
            n_missing: 0,
            selector: Selector::Mse,
            estimate: 0.0,
            correlation: None,
            left,
            right,
        });
        Node { n_rows, class_counts: Vec::new(), prediction: 0.0, impurity, model: None, split }
    }

    fn tree(nodes: Vec<Node>) -> Tree {
        let feature = |name: &str, categories: &[&str]| Feature {
            name: name.into(),
            categories: (!categories.is_empty()).then(|| categories.iter().map(|name| name.to_string()).collect()),
        };
        let features = vec![feature("x", &[]), feature("color", &["blue", "green", "red"]), feature("noise", &[])];
        Tree { task: Task::Regression, target: "y".into(), classes: Vec::new(), features, nodes }
    }

    /// Eight rows: those with x ≤ 0.5 are split again, green on the left.
    fn of_two_splits(unit: f64) -> Tree {
        tree(vec![
            node(8, unit, Some((0, Test::AtMost(0.5), 1, 4))),
            node(4, 0.5 * unit, Some((1, Test::groups(vec![1], vec![2, 0]), 2, 3))),
            node(2, 0.0, None),
            node(2, 0.25 * unit, None),
            node(4, 0.25 * unit, None),
        ])
    }

    #[test]
    fn importances_are_shares_of_the_impurity_of_the_root() {
        for unit in [1.0, 1e-3] {
            // 8 falls to 2 and 1, and 2 to 0 and 1/2.
            assert_eq!(of_two_splits(unit).importances(), [5.0 / 8.0, 1.5 / 8.0, 0.0]);
        }
        assert_eq!(tree(vec![node(8, 0.0, None)]).importances(), [0.0; 3]);
    }

    #[test]
    fn rows_go_to_the_leaf_that_their_values_lead_to() {
        let leaf = |x: f64, color: u16| {
            let value = |feature: u32| if feature == 0 { Value::Number(x) } else { Value::Category(color) };
            let tree = of_two_splits(1.0);
            tree.leaf(value)
        };
        assert_eq!([leaf(0.4, 1), leaf(0.5, 0), leaf(0.5, 2), leaf(0.6, 1)], [2, 3, 3, 4]);
        // Missing values and categories that the node has not seen go right here.
        assert_eq!([leaf(f64::NAN, 1), leaf(0.5, 7)], [4, 3]);
    }
}
