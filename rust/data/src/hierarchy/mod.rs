//! Label hierarchies, trees and DAGs: the labels, their ancestors and their weights (Petković et al. 2023 §2 and
//! §3.1).
//!
//! A row with a label has all ancestors of the label, too: its set is closed upward. A label without parents is a root
//! and has the weight 1. Every other label has the decay times the mean weight of its parents, as in the paper. CLUS
//! adds up the weights of several parents by default, so that labels of a DAG have other weights there.
//!
//! Labels are numbered in the order of their names, so that nothing depends on the order in which edges
//! or rows come. They come as edges, as the paths of a tree, or as the domain of a CLUS attribute
//! (`text`).

mod text;

use std::collections::BTreeSet;

use ferrank_runtime::error::nearest;
use ferrank_runtime::error::{Error, Result, check};

/// The parent of a label, and the label; without a parent the label is a root.
///
/// ```
/// use ferrank_data::hierarchy::{Edge, Hierarchy};
///
/// let edges: [Edge; 2] = [(None, "animal".into()), (Some("animal".into()), "koala".into())];
/// assert!(Hierarchy::from_edges(&edges, 0.75)?.edges().eq(edges));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub type Edge = (Option<String>, String);

/// The default decay of weights from parents to children.
pub const DECAY: f64 = 0.75;
/// Most labels on a way from a root down.
const MAX_LEVELS: usize = 255;
/// Most labels.
pub const MAX_LABELS: usize = 1 << 20;

/// Labels and what is above them.
///
/// ```
/// # use ferrank_data::hierarchy::Hierarchy;
/// let edge = |parent: &str, child: &str| (Some(parent.to_string()), child.to_string());
/// let elephants = [edge("animal", "African"), edge("animal", "Asian"), edge("African", "elephant"), edge("Asian", "elephant")];
/// let hierarchy = Hierarchy::from_edges(&elephants, 0.75).unwrap();
/// assert_eq!(hierarchy.names(), ["African", "Asian", "animal", "elephant"]);
/// assert_eq!(hierarchy.weights(), [0.75, 0.75, 1.0, 0.5625]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    /// n_labels, ascending.
    names: Vec<String>,
    /// n_labels; ascending.
    parents: Vec<Vec<u32>>,
    /// n_labels
    weights: Vec<f64>,
}

impl Hierarchy {
    /// The hierarchy of `edges`, given in any order, with weights that fall by `decay` in (0, 1].
    ///
    /// Where no edge makes a label a root, all labels without a parent are roots.
    ///
    /// # Errors
    /// [`Error::Data`] that names the labels of a cycle, or the orphans: labels without a parent that are
    /// not among the roots. [`Error::Setting`] for a decay out of range.
    pub fn from_edges(edges: &[Edge], decay: f64) -> Result<Self> {
        check(decay > 0.0 && decay <= 1.0, format!("hierarchy_decay: {decay} is not in (0, 1]"))?;
        let both = edges.iter().flat_map(|(parent, child)| parent.iter().chain([child]));
        let distinct: BTreeSet<&String> = both.collect();
        let wrong = |what: String| Err(Error::Data(format!("hierarchy: {what}")));
        if distinct.first().is_some_and(|name| name.is_empty()) {
            return wrong("a label without a name; write the name, and leave only a root's parent empty".into());
        }
        if distinct.len() > MAX_LABELS {
            return wrong(format!("{} labels; at most {MAX_LABELS} are supported", distinct.len()));
        }
        let names: Vec<String> = distinct.into_iter().cloned().collect();
        let mut hierarchy = Hierarchy { parents: vec![Vec::new(); names.len()], weights: Vec::new(), names };
        let mut roots = BTreeSet::new();
        for (parent, child) in edges {
            let child = hierarchy.known(child);
            match parent {
                Some(parent) => {
                    let parent = hierarchy.known(parent);
                    hierarchy.parents[child as usize].push(parent);
                }
                None => _ = roots.insert(child),
            }
        }
        for parents in &mut hierarchy.parents {
            parents.sort_unstable();
            parents.dedup();
        }
        hierarchy.check_roots(&roots)?;
        hierarchy.weigh(decay)?;
        Ok(hierarchy)
    }

    /// The edges, of which [`from_edges`](Self::from_edges) makes the same hierarchy.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.names.iter().zip(&self.parents).flat_map(|(name, parents)| {
            let root = parents.is_empty().then(|| (None, name.clone()));
            let above = parents.iter().map(|&parent| (Some(self.names[parent as usize].clone()), name.clone()));
            root.into_iter().chain(above)
        })
    }

    /// The names of the labels, ascending.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The weights of the labels, in the order of their names.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The number of the label called `name`.
    ///
    /// # Errors
    /// [`Error::Data`] if there is none, with the nearest.
    pub fn number(&self, name: &str) -> Result<u32> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).map(|number| number as u32).map_err(|_| {
            let near = nearest(name, self.names.iter().map(String::as_str));
            Error::Data(format!(
                "the label '{name}' is not one of the {} of its hierarchy; the nearest are {}",
                self.names.len(),
                near.join(", ")
            ))
        })
    }

    fn known(&self, name: &str) -> u32 {
        self.number(name).expect("the names are those of the edges")
    }

    fn check_roots(&self, roots: &BTreeSet<u32>) -> Result<()> {
        let two_roles = roots.iter().find(|&&root| !self.parents[root as usize].is_empty());
        if let Some(&root) = two_roles {
            let parent = self.parents[root as usize][0];
            return Err(Error::Data(format!(
                "hierarchy: '{}' is both a root and below '{}'; leave one of the two out",
                self.names[root as usize], self.names[parent as usize]
            )));
        }
        let is_orphan = |label: &u32| self.parents[*label as usize].is_empty() && !roots.contains(label);
        let orphans: Vec<u32> = (0..self.names.len() as u32).filter(is_orphan).collect();
        check_data(roots.is_empty() || orphans.is_empty(), || {
            format!(
                "hierarchy: {} of its {} labels have no parent and are not among the roots given: {}; \
                 give their parents, or make them roots",
                orphans.len(),
                self.names.len(),
                self.quoted(&orphans)
            )
        })
    }

    /// Weighs the labels, parents before their children.
    fn weigh(&mut self, decay: f64) -> Result<()> {
        let n_labels = self.names.len();
        let mut children = vec![Vec::new(); n_labels];
        for (label, parents) in self.parents.iter().enumerate() {
            parents.iter().for_each(|&parent| children[parent as usize].push(label));
        }
        let mut open: Vec<usize> = self.parents.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..n_labels).filter(|&label| open[label] == 0).collect();
        let mut levels = vec![1; n_labels];
        let mut n_weighed = 0;
        self.weights = vec![1.0; n_labels];
        while let Some(label) = ready.pop() {
            n_weighed += 1;
            let parents = &self.parents[label];
            if !parents.is_empty() {
                let sum: f64 = parents.iter().map(|&parent| self.weights[parent as usize]).sum();
                self.weights[label] = decay * (sum / parents.len() as f64);
            }
            check_data(levels[label] <= MAX_LEVELS, || {
                format!(
                    "hierarchy: '{}' is more than {MAX_LEVELS} levels deep; at most {MAX_LEVELS} are supported",
                    self.names[label]
                )
            })?;
            for &child in &children[label] {
                levels[child] = levels[child].max(levels[label] + 1);
                open[child] -= 1;
                if open[child] == 0 {
                    ready.push(child);
                }
            }
        }
        check_data(n_weighed == n_labels, || {
            format!("hierarchy: the labels {} form a cycle; remove one of its edges", self.circle(&open))
        })
    }

    /// Labels that stand above each other, of those that are `open`.
    fn circle(&self, open: &[usize]) -> String {
        let above = |label: usize| self.parents[label].iter().map(|&parent| parent as usize).find(|&p| open[p] > 0);
        let mut way = Vec::new();
        let mut seen = vec![false; open.len()];
        let mut at = open.iter().position(|&parents| parents > 0);
        while let Some(label) = at.filter(|&label| !std::mem::replace(&mut seen[label], true)) {
            way.push(label);
            at = above(label);
        }
        let start = way.iter().position(|label| Some(*label) == at).unwrap_or(0);
        let mut circle: Vec<u32> = way[start..].iter().rev().map(|&label| label as u32).collect();
        circle.extend(circle.first().copied());
        self.quoted(&circle)
    }

    /// The first of `labels` by name.
    fn quoted(&self, labels: &[u32]) -> String {
        const MOST: usize = 8;
        let mut text: Vec<String> =
            labels.iter().take(MOST).map(|&label| format!("'{}'", self.names[label as usize])).collect();
        text.extend((labels.len() > MOST).then(|| "…".to_string()));
        text.join(", ")
    }
}

fn check_data(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Data(message())) }
}

impl Hierarchy {
    /// Labels that a label brings with it, itself counted, on average.
    pub fn mean_closed(&self) -> f64 {
        let mut closure = Closure::new(self);
        let mut set = Vec::new();
        let closed = (0..self.names.len() as u32).map(|label| {
            set.clear();
            set.push(label);
            closure.close(&mut set);
            set.len()
        });
        closed.sum::<usize>() as f64 / self.names.len().max(1) as f64
    }
}

/// Closes sets of labels upward.
///
/// ```
/// use ferrank_data::hierarchy::{Closure, Hierarchy};
///
/// let hierarchy = Hierarchy::from_paths(["animal/koala", "plant"].into_iter(), 0.75)?;
/// let mut set = vec![hierarchy.number("animal/koala")?];
/// Closure::new(&hierarchy).close(&mut set);
/// assert_eq!(set, [hierarchy.number("animal")?, hierarchy.number("animal/koala")?]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Closure<'a> {
    hierarchy: &'a Hierarchy,
    /// n_labels; true if it is in the set at hand.
    has: Vec<bool>,
}

impl<'a> Closure<'a> {
    /// Closes sets of labels of `hierarchy`.
    pub fn new(hierarchy: &'a Hierarchy) -> Self {
        Closure { hierarchy, has: vec![false; hierarchy.names.len()] }
    }

    /// Adds the labels above those in `set`, which becomes ascending, each label once.
    pub fn close(&mut self, set: &mut Vec<u32>) {
        let Closure { hierarchy, has } = self;
        let mut is_new = |label: u32| !std::mem::replace(&mut has[label as usize], true);
        set.retain(|&label| is_new(label));
        let mut next = 0;
        while let Some(&label) = set.get(next) {
            set.extend(hierarchy.parents[label as usize].iter().filter(|&&parent| is_new(parent)));
            next += 1;
        }
        set.iter().for_each(|&label| has[label as usize] = false);
        set.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn edges(pairs: &[(&str, &str)]) -> Vec<Edge> {
        let parent = |name: &str| (!name.is_empty()).then(|| name.to_string());
        pairs.iter().map(|&(above, label)| (parent(above), label.to_string())).collect()
    }

    fn of(pairs: &[(&str, &str)]) -> Hierarchy {
        Hierarchy::from_edges(&edges(pairs), 0.5).unwrap()
    }

    fn message(pairs: &[(&str, &str)]) -> String {
        Hierarchy::from_edges(&edges(pairs), 0.5).unwrap_err().to_string()
    }

    #[test]
    fn children_weigh_the_mean_of_their_parents_less_the_decay() {
        let hierarchy = of(&[("c", "d"), ("a", "b"), ("b", "c"), ("a", "d"), ("a", "b"), ("z", "d")]);
        assert_eq!(hierarchy.names(), ["a", "b", "c", "d", "z"]);
        assert_eq!(hierarchy.weights(), [1.0, 0.5, 0.25, 0.5 * (2.25 / 3.0), 1.0]);
        assert_eq!(of(&[]).names(), [""; 0]);
    }

    #[test]
    fn sets_are_closed_upward() {
        let hierarchy = of(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("", "e"), ("", "a")]);
        let mut closure = Closure::new(&hierarchy);
        for (set, closed) in
            [(vec![3], vec![0, 1, 2, 3]), (vec![4, 1, 1], vec![0, 1, 4]), (vec![], vec![]), (vec![0], vec![0])]
        {
            let mut set = set;
            closure.close(&mut set);
            assert_eq!(set, closed);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let circle = message(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("x", "y")]);
        assert!(circle.contains("'c', 'd', 'b', 'c' form a cycle"), "{circle}");
        assert!(message(&[("a", "a")]).contains("'a', 'a' form a cycle"));
        let orphans = message(&[("", "a"), ("a", "b"), ("x", "y"), ("w", "y")]);
        assert!(
            orphans.contains("2 of its 5 labels have no parent and are not among the roots given: 'w', 'x'"),
            "{orphans}"
        );
        assert!(message(&[("", "a"), ("b", "a"), ("", "b")]).contains("'a' is both a root and below 'b'"));
        assert!(message(&[("a", "")]).contains("a label without a name"));
        let deep: Vec<(String, String)> = (0..300).map(|n| (format!("{n:03}"), format!("{:03}", n + 1))).collect();
        let deep: Vec<(&str, &str)> = deep.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert!(message(&deep).contains("'255' is more than 255 levels deep"));
        // The last way to a label may be a short one.
        let mut deep = deep[1..255].to_vec();
        deep.extend([("255", "x"), ("000", "x")]);
        assert!(message(&deep).contains("'x' is more than 255 levels deep"));
        let unknown = of(&[("a", "b")]).number("bb").unwrap_err().to_string();
        assert!(unknown.contains("'bb' is not one of the 2 of its hierarchy; the nearest are 'b', 'a'"), "{unknown}");
        for decay in [0.0, 1.1, f64::NAN] {
            assert!(Hierarchy::from_edges(&[], decay).unwrap_err().to_string().contains("hierarchy_decay"));
        }
    }

    proptest! {
        #[test]
        fn the_order_of_edges_does_not_count(
            pairs in prop::collection::vec((0..12u32, 0..12u32), 0..30).prop_map(|pairs| {
                let down = |(a, b): (u32, u32)| (format!("l{}", a.min(b)), format!("l{}", a.max(b) + 12));
                pairs.into_iter().map(down).collect::<Vec<_>>()
            }),
            seed in any::<u64>(),
        ) {
            let mut pairs: Vec<Edge> = pairs.into_iter().map(|(a, b)| (Some(a), b)).collect();
            let first = Hierarchy::from_edges(&pairs, 0.75).unwrap();
            let places = seed % pairs.len().max(1) as u64;
            pairs.rotate_left(places as usize);
            pairs.reverse();
            prop_assert_eq!(Hierarchy::from_edges(&pairs, 0.75).unwrap(), first);
        }
    }
}
