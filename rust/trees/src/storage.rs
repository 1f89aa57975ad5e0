//! Trees as JSON, and back.

use crate::model::LinearModel;
use crate::tree::{Node, Split, Test, Tree};
use ferrank_data::schema::Task;
use ferrank_runtime::error::{Error, Result};

impl Tree {
    /// The tree as JSON; [`Tree::from_json`] reads it.
    ///
    /// # Errors
    /// [`Error::Data`] if the tree holds what JSON does not, which grown trees do not.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Data(format!("tree: {error}")))
    }

    /// Reads what [`Tree::to_json`] wrote.
    ///
    /// # Errors
    /// [`Error::Data`] for anything else: other text, or a tree whose nodes do not fit together.
    pub fn from_json(text: &str) -> Result<Self> {
        let tree: Tree = serde_json::from_str(text).map_err(|error| Error::Data(format!("tree: {error}")))?;
        match tree.flaw() {
            None => Ok(tree),
            Some(flaw) => Err(Error::Data(format!("tree: {flaw}; it was damaged, fit it anew"))),
        }
    }

    /// What would make predictions fail.
    fn flaw(&self) -> Option<String> {
        let classes = self.task == Task::Classification;
        if !classes && self.task != Task::Regression {
            return Some(format!("the task is {}", self.task.name()));
        }
        if self.nodes.is_empty() {
            return Some("it has no nodes".into());
        }
        let is_class = |node: &Node| {
            node.class_counts.len() == self.classes.len()
                && (0.0..self.classes.len() as f64).contains(&node.prediction)
                && node.prediction.fract() == 0.0
        };
        let flaw = |(number, node): (usize, &Node)| {
            let is_whole = !classes || is_class(node);
            let is_sound = node.split.as_ref().is_none_or(|split| self.is_sound(number, split));
            let has_features = node.model.as_ref().is_none_or(|model| self.has_features(model));
            (!(is_whole && is_sound && has_features)).then(|| format!("node {number} does not fit the others"))
        };
        self.nodes.iter().enumerate().find_map(flaw)
    }

    /// True if the split of node `number` leads on to later nodes, by a feature of its kind.
    fn is_sound(&self, number: usize, split: &Split) -> bool {
        let is_later = |child: u32| (number + 1..self.nodes.len()).contains(&(child as usize));
        let is_nominal = matches!(split.test, Test::In { .. });
        is_later(split.left)
            && is_later(split.right)
            && self.features.get(split.feature as usize).is_some_and(|one| one.categories.is_some() == is_nominal)
    }

    fn has_features(&self, model: &LinearModel) -> bool {
        model.terms.iter().all(|term| (term.feature as usize) < self.features.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUMP: &str = r#"{"task":"regression","target":"y","classes":[],"features":[{"name":"x","categories":null}],
        "nodes":[{"n_rows":2,"class_counts":[],"prediction":0.1,"impurity":1.0,"model":null,"split":{"feature":0,
        "test":{"at_most":0.5},"missing_left":true,"n_missing":0,"selector":"mse","estimate":1.0,"correlation":null,"left":1,"right":2}},
        {"n_rows":1,"class_counts":[],"prediction":-0.9,"impurity":0.0,"model":null,"split":null},
        {"n_rows":1,"class_counts":[],"prediction":1.1,"impurity":0.0,"model":null,"split":null}]}"#;

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let tree = Tree::from_json(STUMP).unwrap();
        assert_eq!(Tree::from_json(&tree.to_json().unwrap()).unwrap(), tree);
        assert_eq!(tree.importances(), [1.0]);
    }

    #[test]
    fn damaged_trees_are_refused() {
        for (from, to) in [
            ("\"left\":1", "\"left\":0"),
            ("\"right\":2", "\"right\":3"),
            ("\"feature\":0", "\"feature\":1"),
            ("\"categories\":null", "\"categories\":[\"a\"]"),
            ("\"task\":\"regression\"", "\"task\":\"multi-label\""),
            ("\"task\":\"regression\"", "\"task\":\"classification\""),
        ] {
            let damaged = STUMP.replace(from, to);
            assert_ne!(damaged, STUMP);
            let error = Tree::from_json(&damaged).unwrap_err();
            assert!(error.to_string().starts_with("tree: "), "{error}");
        }
        assert!(Tree::from_json("{}").is_err());
    }
}
