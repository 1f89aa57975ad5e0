//! Hierarchies as text: paths, and the domain of a CLUS `hierarchical` attribute.

use std::collections::BTreeSet;

use super::{Hierarchy, MAX_LEVELS, check_data};
use ferrank_runtime::error::{Error, Result};

/// What CLUS calls the place above all roots of a DAG.
const ROOT: &str = "root";

impl Hierarchy {
    /// The tree in which the labels are `paths`, such as `animal/African/elephant`, and their beginnings.
    ///
    /// # Errors
    /// [`Error::Data`] for a path with an empty part, and the errors of [`from_edges`](Self::from_edges).
    pub fn from_paths<'a>(paths: impl IntoIterator<Item = &'a str>, decay: f64) -> Result<Self> {
        let mut labels = BTreeSet::new();
        for path in paths {
            check_data(path.split('/').all(|part| !part.is_empty()), || {
                format!("hierarchy: the path '{path}' has an empty part; write parts with one / between")
            })?;
            let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
            check_data(ends.clone().count() <= MAX_LEVELS, || {
                format!("hierarchy: a path has more than {MAX_LEVELS} parts; at most so many can be")
            })?;
            labels.extend(ends.map(|end| &path[..end]));
        }
        let edge = |label: &&str| {
            let parent = label.rsplit_once('/').map(|(parent, _)| parent.to_string());
            (parent, label.to_string())
        };
        Hierarchy::from_edges(&labels.iter().map(edge).collect::<Vec<_>>(), decay)
    }

    /// The hierarchy in `domain`, the text that follows the word `hierarchical` in an ARFF file of CLUS:
    /// labels or edges with commas between.
    ///
    /// A file does not say which. They are edges of a DAG, `parent/child`, if each has two parts and one begins with
    /// `root/`, the parent of the roots. Otherwise they are paths of a tree.
    ///
    /// # Errors
    /// The errors of [`from_paths`](Self::from_paths) and [`from_edges`](Self::from_edges).
    pub fn from_domain(domain: &str, decay: f64) -> Result<Self> {
        let entries = || domain.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let edges: Option<Vec<(&str, &str)>> =
            entries().map(|entry| entry.split_once('/').filter(|(_, child)| !child.contains('/'))).collect();
        match edges {
            Some(edges) if edges.iter().any(|(parent, _)| *parent == ROOT) => {
                let edge =
                    |&(parent, child): &(&str, &str)| ((parent != ROOT).then(|| parent.to_string()), child.to_string());
                Hierarchy::from_edges(&edges.iter().map(edge).collect::<Vec<_>>(), decay)
            }
            _ => Hierarchy::from_paths(entries(), decay),
        }
    }

    /// The tree of labels that nothing is said about but their names, which are paths.
    ///
    /// # Errors
    /// [`Error::Data`] if there are labels and none is a path, besides the errors of [`from_paths`](Self::from_paths).
    pub fn from_labels(labels: &BTreeSet<String>, decay: f64) -> Result<Self> {
        if let (Some(first), true) = (labels.first(), labels.iter().all(|label| !label.contains('/'))) {
            return Err(Error::Data(format!(
                "the labels, such as '{first}', are no paths with / between, and no hierarchy was given; \
                 give one, in which each label has a parent or is a root"
            )));
        }
        Hierarchy::from_paths(labels.iter().map(String::as_str), decay)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::edges;
    use super::*;

    #[test]
    fn the_beginnings_of_a_path_are_labels() {
        let from_paths = |paths: &[&str]| Hierarchy::from_paths(paths.iter().copied(), 0.5);
        let hierarchy = from_paths(&["a/b/c", "d", "a/b"]).unwrap();
        assert_eq!(hierarchy.names(), ["a", "a/b", "a/b/c", "d"]);
        assert_eq!(hierarchy.weights(), [1.0, 0.5, 0.25, 1.0]);
        for path in ["", "a//b", "/a", "a/"] {
            assert!(from_paths(&[path]).unwrap_err().to_string().contains("an empty part"), "{path}");
        }
        assert!(from_paths(&[&"a/".repeat(255)[..509]]).is_ok());
        assert!(from_paths(&[&"a/".repeat(256)[..511]]).unwrap_err().to_string().contains("more than 255 parts"));
    }

    #[test]
    fn a_domain_of_clus_holds_paths_or_edges() {
        let from_domain = |text: &str| Hierarchy::from_domain(text, 0.5).unwrap();
        assert_eq!(from_domain("1, 2/0/1 ,2/0,1/0"), Hierarchy::from_paths(["1/0", "2/0/1"], 0.5).unwrap());
        let dag = from_domain("root/a,root/b,a/c,b/c");
        let same = edges(&[("", "a"), ("", "b"), ("a", "c"), ("b", "c")]);
        assert_eq!(dag, Hierarchy::from_edges(&same, 0.5).unwrap());
        // A tree whose root is called so has deeper paths, or the root itself.
        assert_eq!(from_domain("root/a,root/a/b").names(), ["root", "root/a", "root/a/b"]);
        assert_eq!(from_domain("root,root/a").names(), ["root", "root/a"]);
        assert_eq!(from_domain("").names(), [""; 0]);
        let orphan = Hierarchy::from_domain("root/a,b/c", 0.5).unwrap_err().to_string();
        assert!(orphan.contains("1 of its 3 labels have no parent and are not among the roots given: 'b'"), "{orphan}");
    }

    #[test]
    fn labels_without_a_hierarchy_must_be_paths() {
        let found = |labels: &[&str]| Hierarchy::from_labels(&labels.iter().map(|l| l.to_string()).collect(), 0.5);
        assert_eq!(found(&["a/b", "c"]).unwrap().names(), ["a", "a/b", "c"]);
        assert!(found(&[]).unwrap().names().is_empty());
        assert!(found(&["b", "a"]).unwrap_err().to_string().contains("'a'"));
    }
}
