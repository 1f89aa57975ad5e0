//! Growth: depth first, the left branch first, without recursion.
//!
//! A node is a leaf if it has fewer rows than two leaves need, if a share `max_purity` of them is of one class, if its
//! numbers are equal, or if no feature has a split with enough rows on both sides.

use crate::model;
use crate::node_rows::{NodeRows, NodeTarget};
use crate::params::{Selector, TreeParams};
use crate::select::Chooser;
use crate::table::{Column, Table};
use crate::tree::{Node, Split, Value};
use ferrank_data::schema::Task;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Variances below this share of the root's are 0 but for rounding.
const NEGLIGIBLE: f64 = 1e-12;

/// A node of a tree that is not pruned yet.
#[derive(Debug)]
pub(crate) struct GrownNode {
    /// With a model wherever one is better than the mean.
    pub(crate) node: Node,
    /// Mean squared error of the node's predictor, as expected on other rows; 0 for classes.
    pub(crate) error: f64,
}

/// Rows whose node is not made yet.
struct Open {
    rows: Vec<u32>,
    /// Number of the parent, and true for its left child.
    parent: Option<(usize, bool)>,
    /// What chooses here.
    selector: Selector,
}

/// Grows the whole tree; children have higher numbers than their parents.
///
/// # Errors
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
pub(crate) fn grow(table: &Table, params: &TreeParams, task: Task, monitor: &Monitor) -> Result<Vec<GrownNode>> {
    let chooser = Chooser { params, task, monitor };
    let mut nodes: Vec<GrownNode> = Vec::new();
    let mut open = vec![Open { rows: (0..table.n_rows as u32).collect(), parent: None, selector: params.selector }];
    while let Some(Open { rows, parent, selector }) = open.pop() {
        monitor.check()?;
        let number = nodes.len();
        if let Some((parent, is_left)) = parent
            && let Some(split) = &mut nodes[parent].node.split
        {
            *(if is_left { &mut split.left } else { &mut split.right }) = number as u32;
        }
        let node = NodeRows::new(table, &rows);
        let mut grown = describe(&node, params);
        let root_impurity = nodes.first().map_or(grown.node.impurity, |root| root.node.impurity);
        let choice = match may_split(&node, params, root_impurity) {
            true => chooser.choose(&node, selector)?,
            false => None,
        };
        if let Some(choice) = choice {
            // Where the other selector has taken over, it chooses all below.
            let below = if selector.other() == Some(choice.selector) { choice.selector } else { selector };
            let split = Split {
                feature: choice.feature as u32,
                test: choice.test,
                missing_left: choice.missing_left,
                n_missing: choice.n_missing,
                selector: choice.selector,
                estimate: choice.estimate,
                correlation: choice.correlation,
                left: 0,
                right: 0,
            };
            let (left, right) = partition(&table.features[choice.feature], &rows, &split);
            open.push(Open { rows: right, parent: Some((number, false)), selector: below });
            open.push(Open { rows: left, parent: Some((number, true)), selector: below });
            grown.node.split = Some(split);
        }
        nodes.push(grown);
    }
    Ok(nodes)
}

/// The node as a leaf.
fn describe(node: &NodeRows<'_>, params: &TreeParams) -> GrownNode {
    let impurity = node.impurity();
    let (class_counts, prediction) = match &node.target {
        NodeTarget::Classes { counts, .. } => (counts.clone(), f64::from(node.target.majority())),
        NodeTarget::Numbers { mean, .. } => (Vec::new(), *mean),
    };
    let (model, error) = match params.has_models().then(|| model::fit(node)).flatten() {
        Some((model, error)) => (Some(model), error),
        None => (None, if class_counts.is_empty() { impurity } else { 0.0 }),
    };
    GrownNode {
        node: Node { n_rows: node.len() as u64, class_counts, prediction, impurity, model, split: None },
        error,
    }
}

fn may_split(node: &NodeRows<'_>, params: &TreeParams, root_impurity: f64) -> bool {
    if node.len() / 2 < params.min_samples_leaf {
        return false;
    }
    match &node.target {
        NodeTarget::Classes { counts, .. } => {
            let most = counts.iter().copied().max().unwrap_or(0);
            most < node.len() as u64 && (most as f64) < params.max_purity * node.len() as f64
        }
        NodeTarget::Numbers { .. } => node.impurity() > NEGLIGIBLE * root_impurity,
    }
}

/// The rows of both sides.
fn partition(column: &Column, rows: &[u32], split: &Split) -> (Vec<u32>, Vec<u32>) {
    let value = |row: u32| match column {
        Column::Numeric(values) => Value::Number(values[row as usize]),
        Column::Nominal(codes) => Value::Category(codes[row as usize]),
    };
    rows.iter().partition(|&&row| split.goes_left(value(row)))
}
