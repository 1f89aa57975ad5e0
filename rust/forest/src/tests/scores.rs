use crate::params::ForestParams;
use crate::score::Score;
use crate::scores::{ScoreSize, SplitScores, defined};
use crate::tree_buffer::{BufferedNode, BufferedSplit, CodeTest, TreeBuffer};
use ferrank_data::schema::Task;
use ferrank_ranking::Vector;

/// Feature 3 at the root and to the left, feature 1 to the right; ten examples.
fn tree() -> TreeBuffer {
    let node = |depth, examples, is_split| BufferedNode { depth, examples, weight: 0.5 * examples, is_split };
    let split = |feature, gain| BufferedSplit { feature, test: CodeTest::Cut(0), missing_left: true, gain };
    TreeBuffer {
        nodes: vec![
            node(0, 10.0, true),
            node(1, 4.0, true),
            node(2, 2.0, false),
            node(2, 2.0, false),
            node(1, 6.0, true),
            node(2, 1.0, false),
            node(2, 5.0, false),
        ],
        splits: vec![split(3, 0.5), split(3, 0.25), split(1, 2.0)],
        ..TreeBuffer::default()
    }
}

/// Adds the splits of `tree` to `scores`; `by_target` holds the gains by target of each, if they are reported.
pub(super) fn add_splits(scores: &mut SplitScores, tree: &TreeBuffer, by_target: &[[f64; 2]]) {
    let nodes = tree.nodes.iter().filter(|node| node.is_split);
    for (number, (node, split)) in nodes.zip(&tree.splits).enumerate() {
        scores.on_split(node.depth, node.weight, split, by_target.get(number).map_or(&[], |gains| gains));
    }
}

/// The vector of the one score of `params`, and those of `genie3` by target.
fn harvest(tree: &TreeBuffer, params: &ForestParams) -> (Vector, Vec<Vector>) {
    let mut scores = SplitScores::new(params, ScoreSize { n_features: 5, n_targets: 2 });
    add_splits(&mut scores, tree, &[[0.5, 0.0], [0.125, 0.125], [0.0, 2.0]]);
    let mut vectors = scores.harvest();
    (vectors.remove(0), vectors)
}

fn params(score: Score) -> ForestParams {
    ForestParams::default().with_scores(vec![score])
}

fn check(params: &ForestParams, expected: [(usize, f64); 2]) {
    let found = harvest(&tree(), params).0;
    assert_eq!(found.values.len(), 2);
    for ((feature, value), expected) in found.entries().zip(expected) {
        assert_eq!(feature, expected.0);
        assert!((value - expected.1).abs() < 1e-15, "{params:?} {found:?}");
    }
}

#[test]
fn scores_of_a_tree_made_by_hand() {
    check(&params(Score::Genie3), [(1, 0.6 * 2.0), (3, 0.5 + 0.4 * 0.25)]);
    check(&params(Score::Symbolic), [(1, 0.5), (3, 1.5)]);
    check(&params(Score::Symbolic).with_decay(vec![1.0]), [(1, 1.0), (3, 2.0)]);
    check(&params(Score::Coverage), [(1, 0.6), (3, 1.4)]);
}

#[test]
fn gains_are_told_apart_by_target() {
    let found = harvest(&tree(), &params(Score::Genie3)).1;
    assert_eq!(found.len(), 2);
    for (vector, expected) in found.iter().zip([[0.0, 0.55], [1.2, 0.05]]) {
        assert_eq!(vector.features, Some(vec![1, 3]));
        assert!(vector.values.iter().zip(expected).all(|(part, value)| (part - value).abs() < 1e-15), "{vector:?}");
    }
}

#[test]
fn a_leaf_says_nothing() {
    let leaf = BufferedNode { depth: 0, examples: 3.0, weight: 3.0, is_split: false };
    let tree = TreeBuffer { nodes: vec![leaf], ..TreeBuffer::default() };
    let (values, by_target) = harvest(&tree, &params(Score::Genie3));
    assert!(values.values.is_empty() && by_target.iter().all(|vector| vector.values.is_empty()));
}

#[test]
fn scores_that_read_out_of_bag_rows_need_a_bootstrap() {
    let all = params(Score::Permutation).with_bootstrap(Some(false));
    let error = defined(Score::Permutation, &all, Task::Regression).unwrap_err().to_string();
    assert!(error.contains("scores: permutation needs out-of-bag rows, so a bootstrap; set bootstrap"), "{error}");
    assert!(defined(Score::Permutation, &params(Score::Permutation), Task::Regression).is_ok());
    assert!(defined(Score::Coverage, &all, Task::Regression).is_ok());
}
