//! Pruning by the m-estimate of error.
//!
//! A leaf's distribution of the target is taken for a mixture of that of its n rows and, with a weight of m rows, that of
//! all rows; its error is what is expected of its prediction then. Classes (Cestnik and Bratko 1991): with n_c rows of the
//! class that it predicts, whose share of all rows is p_c, 1 − (n_c + m p_c) / (n + m). Numbers, in the same way after
//! Karalič 1992: (n R + m (R_0 + (μ − μ_0)²)) / (n + m), with the mean squared error R of its predictor, its mean μ, and the
//! variance R_0 and mean μ_0 of all rows. Linear models are not carried on to all rows: R is that of the model, the rest
//! that of the mean. A node becomes a leaf if its own error is at most the mean of its branches', weighted by their rows.

use crate::criteria::TOLERANCE;
use crate::grow::GrownNode;
use crate::tree::Node;

/// Prunes `nodes`, whose children come after their parents, by `m`, or not at all. Returns what is left, in order, with
/// models in leaves alone.
pub(crate) fn prune(mut nodes: Vec<GrownNode>, m: Option<f64>) -> Vec<Node> {
    if let Some(m) = m {
        cut(&mut nodes, m);
    }
    renumber(nodes.into_iter().map(|grown| grown.node).collect())
}

/// Turns nodes whose branches do not pay into leaves.
fn cut(nodes: &mut [GrownNode], m: f64) {
    let Some(root) = nodes.first() else { return };
    let prior = Prior {
        m,
        shares: root.node.class_counts.iter().map(|&count| count as f64 / root.node.n_rows as f64).collect(),
        mean: root.node.prediction,
        error: root.node.impurity,
    };
    let mut errors = vec![0.0; nodes.len()];
    for number in (0..nodes.len()).rev() {
        let own = prior.error_of(&nodes[number]);
        errors[number] = own;
        let Some(split) = &nodes[number].node.split else { continue };
        let of_child = |child: u32| nodes[child as usize].node.n_rows as f64 * errors[child as usize];
        let below = (of_child(split.left) + of_child(split.right)) / nodes[number].node.n_rows as f64;
        if own <= below + TOLERANCE * prior.unit() {
            nodes[number].node.split = None;
        } else {
            errors[number] = below;
        }
    }
}

/// What the m-estimate expects before it sees a leaf.
struct Prior {
    m: f64,
    /// n_classes; shares of all rows.
    shares: Vec<f64>,
    /// Of numbers the mean of all rows.
    mean: f64,
    /// Of numbers the variance of all rows.
    error: f64,
}

impl Prior {
    fn error_of(&self, GrownNode { node, error }: &GrownNode) -> f64 {
        let n = node.n_rows as f64;
        if self.shares.is_empty() {
            let apart = node.prediction - self.mean;
            return (n * error + self.m * (self.error + apart * apart)) / (n + self.m);
        }
        let class = node.prediction as usize;
        1.0 - (node.class_counts[class] as f64 + self.m * self.shares[class]) / (n + self.m)
    }

    /// The order of errors.
    fn unit(&self) -> f64 {
        if self.shares.is_empty() { self.error } else { 1.0 }
    }
}

/// The nodes that are still reached from the root, in the order of a walk.
fn renumber(nodes: Vec<Node>) -> Vec<Node> {
    let mut is_reached = vec![false; nodes.len()];
    if let Some(root) = is_reached.first_mut() {
        *root = true;
    }
    let mut numbers = vec![0; nodes.len()];
    let mut next = 0;
    for (number, node) in nodes.iter().enumerate() {
        if !is_reached[number] {
            continue;
        }
        numbers[number] = next;
        next += 1;
        if let Some(split) = &node.split {
            [split.left, split.right].into_iter().for_each(|child| is_reached[child as usize] = true);
        }
    }
    let kept = nodes.into_iter().zip(is_reached).filter_map(|(node, is_reached)| is_reached.then_some(node));
    let kept = kept.map(|mut node| {
        if let Some(split) = &mut node.split {
            split.left = numbers[split.left as usize];
            split.right = numbers[split.right as usize];
            node.model = None;
        }
        node
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Selector;
    use crate::tree::{Split, Test};

    fn node(class_counts: &[u64], children: Option<(u32, u32)>) -> GrownNode {
        let split = children.map(|(left, right)| Split {
            feature: 0,
            test: Test::AtMost(0.0),
            missing_left: true,
            n_missing: 0,
            selector: Selector::Gini,
            estimate: 0.0,
            correlation: None,
            left,
            right,
        });
        let majority = (0..class_counts.len()).rev().max_by_key(|&class| class_counts[class]).unwrap_or(0);
        let node = Node {
            n_rows: class_counts.iter().sum(),
            class_counts: class_counts.to_vec(),
            prediction: majority as f64,
            impurity: 0.0,
            model: None,
            split,
        };
        GrownNode { node, error: 0.0 }
    }

    /// 10 and 10 rows, split into 9 and 3, and 1 and 7; the first of these into 5 and 1, and 4 and 2.
    fn grown() -> Vec<GrownNode> {
        vec![
            node(&[10, 10], Some((1, 4))),
            node(&[9, 3], Some((2, 3))),
            node(&[5, 1], None),
            node(&[4, 2], None),
            node(&[1, 7], None),
        ]
    }

    #[test]
    fn errors_worked_by_hand() {
        let prior = Prior { m: 2.0, shares: vec![0.5, 0.5], mean: 0.0, error: 0.0 };
        // 1 − (9 + 1) / 14.
        assert!((prior.error_of(&grown()[1]) - 4.0 / 14.0).abs() < 1e-15);
        let numbers = Prior { m: 2.0, shares: Vec::new(), mean: 1.0, error: 6.0 };
        let mut leaf = node(&[], None);
        (leaf.node.n_rows, leaf.node.prediction, leaf.error) = (4, 3.0, 1.5);
        // (4 · 1.5 + 2 (6 + 2²)) / 6.
        assert!((numbers.error_of(&leaf) - 26.0 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn branches_that_do_not_pay_are_cut() {
        // The errors of the lower leaves are 1/4 and 3/8, more than 4/14 together; those of the upper ones pay.
        let left = prune(grown(), Some(2.0));
        let children = |node: &Node| node.split.as_ref().map(|split| (split.left, split.right));
        assert_eq!(left.iter().map(children).collect::<Vec<_>>(), [Some((1, 2)), None, None]);
        assert_eq!(left[2].class_counts, [1, 7]);
        assert_eq!(prune(grown(), None).len(), 5);
    }
}
