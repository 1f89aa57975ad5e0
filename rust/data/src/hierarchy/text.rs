//! Hierarchies as text: paths, and the domain of a CLUS `hierarchical` attribute.

use std::collections::BTreeSet;

use super::{Hierarchy, MAX_LEVELS, check_data};
use ferrank_runtime::error::Result;

/// What CLUS calls the place above all roots of a DAG.
const ROOT: &str = "root";

impl Hierarchy {
    /// The tree in which the labels are `paths`, such as `animal/African/elephant`, and their beginnings. A label
    /// without `/` is a root.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for a path with an empty part, and the errors of [`from_edges`](Self::from_edges).
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
    fn labels_that_are_no_paths_are_roots() {
        let hierarchy = Hierarchy::from_paths(["b", "a"], 0.5).unwrap();
        assert_eq!(
            (hierarchy.names(), hierarchy.weights()),
            (&["a".to_string(), "b".to_string()][..], &[1.0, 1.0][..])
        );
    }
}
