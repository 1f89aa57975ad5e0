//! What kept trees tell of features: which occur together, and which way they work.

use rustc_hash::FxHashMap;

use super::forest::KeptForest;
use super::nodes::Nodes;

/// How much two features occur together on the paths of trees.
///
/// ```
/// use ferrank_forest::Interaction;
///
/// let pair = Interaction { features: (0, 3), gain: 0.25 };
/// assert!(pair.features.0 < pair.features.1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interaction {
    /// The numbers of the features, ascending.
    pub features: (u32, u32),
    /// The mean over trees of the sum of the impurity decreases of the splits of one of the two below one of the other,
    /// each weighted by the share of rows that reach it.
    pub gain: f64,
}

/// Which way a feature works on a component.
///
/// ```
/// use ferrank_forest::Trend;
///
/// assert!(Trend { feature: 0, component: 0, trend: -0.5 }.trend.abs() <= 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The number of the feature, which is numeric.
    pub feature: u32,
    /// The number of the component.
    pub component: u32,
    /// From −1 to 1. The variance of the component that splits explain where greater values have the greater mean, less
    /// that where they have the smaller mean, as a share of both.
    pub trend: f64,
}

/// The most features whose pairs are counted: their number grows as its square.
const MOST_PAIRED: usize = 1_000;

impl KeptForest {
    /// The pairs of features that occur together on a path, the greatest gain first; ties go to the lower numbers. If more
    /// than 1,000 features are tested, the pairs are of the 1,000 with the greatest gains.
    pub fn interactions(&self) -> Vec<Interaction> {
        let mut of_feature = vec![0.0; self.head.features.len()];
        for batch in self.batches() {
            add_gains(&Nodes::new(&batch), &mut of_feature);
        }
        let mut order: Vec<usize> = (0..of_feature.len()).collect();
        order.sort_by(|&a, &b| of_feature[b].total_cmp(&of_feature[a]));
        let mut is_paired = vec![false; of_feature.len()];
        order.iter().take(MOST_PAIRED).for_each(|&feature| is_paired[feature] = true);
        let mut gains: FxHashMap<(u32, u32), f64> = FxHashMap::default();
        for batch in self.batches() {
            add_pairs(&Nodes::new(&batch), &is_paired, &mut gains);
        }
        let n_trees = self.n_trees() as f64;
        let found = gains.into_iter().map(|(features, gain)| Interaction { features, gain: gain / n_trees });
        let mut found: Vec<Interaction> = found.collect();
        found.sort_unstable_by(|a, b| b.gain.total_cmp(&a.gain).then(a.features.cmp(&b.features)));
        found
    }

    /// Which way each numeric feature works on each component, ascending by feature and component. Features that no tree
    /// tests are left out.
    pub fn trends(&self) -> Vec<Trend> {
        let n_components = self.head.n_components();
        let mut sums: FxHashMap<u32, Vec<[f64; 2]>> = FxHashMap::default();
        for batch in self.batches() {
            self.add_contrasts(&Nodes::new(&batch), n_components, &mut sums);
        }
        let mut features: Vec<u32> = sums.keys().copied().collect();
        features.sort_unstable();
        let trend = |feature, component: usize| {
            let [signed, all] = sums[&feature][component];
            (all > 0.0).then(|| Trend { feature, component: component as u32, trend: signed / all })
        };
        let pairs = features.into_iter().flat_map(|feature| (0..n_components).map(move |c| (feature, c)));
        pairs.filter_map(|(feature, component)| trend(feature, component)).collect()
    }

    /// Adds for each feature and component the variances that the splits of a tree explain: with the sign of the
    /// difference of means, and without.
    fn add_contrasts(&self, nodes: &Nodes<'_>, n_components: usize, sums: &mut FxHashMap<u32, Vec<[f64; 2]>>) {
        let root = nodes.weight.value(0);
        // In reverse preorder, the children of a node come before it, the left one last.
        let mut done: Vec<(f64, Vec<f64>)> = Vec::new();
        for node in (0..nodes.len()).rev() {
            if nodes.is_leaf(node) {
                let mut means = vec![0.0; n_components];
                let (components, values) = nodes.predicted(node);
                components.iter().zip(values).for_each(|(&component, value)| means[component as usize] = *value);
                done.push((nodes.weight.value(node), means));
                continue;
            }
            let (Some((left, mut means)), Some((right, others))) = (done.pop(), done.pop()) else { return };
            let (feature, all) = (nodes.feature.value(node), left + right);
            let is_numeric = nodes.cut.is_valid_number(node) && root > 0.0 && all > 0.0;
            let entries = is_numeric.then(|| sums.entry(feature).or_insert_with(|| vec![[0.0; 2]; n_components]));
            if let Some(entries) = entries {
                for ((entry, low), high) in entries.iter_mut().zip(&means).zip(&others) {
                    let explained = (high - low).powi(2) * left * right / all / root;
                    entry[0] += explained.copysign(high - low);
                    entry[1] += explained;
                }
            }
            if all > 0.0 {
                means.iter_mut().zip(&others).for_each(|(low, high)| *low += (high - *low) * right / all);
            }
            done.push((all, means));
        }
    }
}

/// A cut that is a number.
trait Cuts {
    fn is_valid_number(&self, node: usize) -> bool;
}

impl Cuts for arrow_array::Float64Array {
    fn is_valid_number(&self, node: usize) -> bool {
        arrow_array::Array::is_valid(self, node) && self.value(node).is_finite()
    }
}

/// What the split of a node adds to the gain of its feature.
fn gain(nodes: &Nodes<'_>, node: usize) -> f64 {
    nodes.gain.value(node) * nodes.weight.value(node) / nodes.weight.value(0)
}

/// Adds the gains of the splits of a tree by feature.
fn add_gains(nodes: &Nodes<'_>, gains: &mut [f64]) {
    for node in (0..nodes.len()).filter(|&node| !nodes.is_leaf(node)) {
        gains[nodes.feature.value(node) as usize] += gain(nodes, node);
    }
}

/// Adds the gains of the splits of a tree by the pairs of their features with those of the nodes above. Of each pair both
/// features are `is_paired`.
fn add_pairs(nodes: &Nodes<'_>, is_paired: &[bool], gains: &mut FxHashMap<(u32, u32), f64>) {
    // The features on the path, each once, and where the path was shorter.
    let mut path: Vec<u32> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for node in 0..nodes.len() {
        if nodes.is_leaf(node) {
            path.truncate(open.pop().unwrap_or(0));
            continue;
        }
        let feature = nodes.feature.value(node);
        if is_paired[feature as usize] {
            let gain = gain(nodes, node);
            for &above in path.iter().filter(|&&above| above != feature) {
                *gains.entry((above.min(feature), above.max(feature))).or_insert(0.0) += gain;
            }
            if !path.contains(&feature) {
                path.push(feature);
            }
        }
        open.push(path.len());
    }
}
