//! What the leaves of a tree predict: as they are kept, and from a tree that was just grown.

use std::ops::Range;

use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::{CodeStore, TargetColumn};
use ferrank_runtime::pages::prefetch;
use rustc_hash::FxHashMap;

use crate::criterion::Criterion;
use crate::space::Space;
use crate::tree_buffer::TreeBuffer;

/// What the leaves of a tree predict.
#[derive(Debug, Clone)]
pub(super) enum LeafValues {
    /// Each leaf predicts the same components.
    Dense {
        /// The first component.
        first: usize,
        /// Number of components.
        width: usize,
        /// n_leaves x width
        values: ScalarBuffer<f64>,
    },
    /// Each leaf predicts components of its own.
    Sparse {
        /// n_nodes + 1; where the components of each node start.
        offsets: OffsetBuffer<i32>,
        components: ScalarBuffer<u32>,
        values: ScalarBuffer<f64>,
    },
}

impl LeafValues {
    /// Adds the values that leaf `leaves[i]` predicts to row `rows[i]` of `sums`, n_rows x n_components. `leaf_nodes` holds
    /// the number of the node of each leaf.
    pub(super) fn add(
        &self,
        leaf_nodes: &[u32],
        (rows, leaves): (&[u32], &[u32]),
        n_components: usize,
        sums: &mut [f64],
    ) {
        match self {
            LeafValues::Dense { first, width, values } => {
                // The compiler unrolls loops of a known length.
                let mut add = |width| add_dense((rows, leaves), (values, width), *first, n_components, sums);
                match *width {
                    1 => add(1),
                    2 => add(2),
                    width => add(width),
                }
            }
            LeafValues::Sparse { offsets, components, values } => {
                for (&row, &leaf) in rows.iter().zip(leaves) {
                    let node = leaf_nodes[leaf as usize] as usize;
                    let range = offsets[node] as usize..offsets[node + 1] as usize;
                    let sums = &mut sums[row as usize * n_components..][..n_components];
                    for (&component, value) in components[range.clone()].iter().zip(&values[range]) {
                        sums[component as usize] += value;
                    }
                }
            }
        }
    }
}

/// Adds the `width` values of each of `leaves` to the numbers of its row in `sums`, which start at `first` of `n_components`.
#[inline(always)]
fn add_dense(
    (rows, leaves): (&[u32], &[u32]),
    (values, width): (&[f64], usize),
    first: usize,
    n_components: usize,
    sums: &mut [f64],
) {
    for (&row, &leaf) in rows.iter().zip(leaves) {
        let sums = &mut sums[row as usize * n_components + first..][..width];
        sums.iter_mut().zip(&values[leaf as usize * width..][..width]).for_each(|(sum, value)| *sum += value);
    }
}

/// Rows whose targets are fetched before their leaf is predicted. Rows of a leaf lie anywhere: without, predictions of
/// leaves take 3 times as long.
const AHEAD: usize = 32;

/// Components and their values.
#[derive(Debug, Default, Clone)]
pub(super) struct Entries {
    pub(super) components: Vec<u32>,
    pub(super) values: Vec<f64>,
}

/// The components and their values of each leaf.
#[derive(Default)]
pub(super) struct Predicted {
    /// n_leaves; where the entries of each leaf end. Empty if each leaf has the same components, which are there once.
    pub(super) ends: Vec<u32>,
    pub(super) entries: Entries,
}

impl Entries {
    fn clear(&mut self) {
        self.components.clear();
        self.values.clear();
    }

    fn push(&mut self, component: u32, value: f64) {
        self.components.push(component);
        self.values.push(value);
    }

    fn append(&mut self, others: &Entries) {
        self.components.extend_from_slice(&others.components);
        self.values.extend_from_slice(&others.values);
    }
}

impl Predicted {
    /// A copy, without ends if each leaf predicts the same components.
    fn in_short(&self) -> Self {
        let Entries { components, values } = &self.entries;
        let width = self.ends.first().map_or(0, |&end| end as usize);
        let is_same = width > 0
            && components.len() == width * self.ends.len()
            && (1..).zip(&self.ends).all(|(number, &end)| end as usize == number * width)
            && components[width..] == components[..components.len() - width];
        let (ends, components) = match is_same {
            true => (Vec::new(), components[..width].to_vec()),
            false => (self.ends.clone(), components.clone()),
        };
        Predicted { ends, entries: Entries { components, values: values.clone() } }
    }
}

/// Computes what leaves predict, with buffers that are reused.
pub(crate) struct LeafPredictor<'a> {
    store: &'a CodeStore,
    /// The targets that trees predict, and the first component of each.
    targets: Vec<(usize, u32)>,
    /// A buffer of zeros for the weights of classes or labels.
    weights: Vec<f64>,
    touched: Vec<u32>,
    /// What a target has in all rows, if some rows do not have it.
    of_all: Vec<Option<Entries>>,
    predicted: Predicted,
    two_classes: Option<TwoClasses>,
}

/// The only target of trees with a single component, which has two classes: the sum of a leaf says how many rows have each.
/// Without, forests of two classes take 1.09 times as long to grow as forests that are not kept, in the place of 1.05.
struct TwoClasses {
    /// The first component.
    first: u32,
    /// The class that the component tells from the other.
    class: u32,
    /// The values of a row without and with it.
    values: [f64; 2],
}

impl TwoClasses {
    fn new(store: &CodeStore, space: &Space, targets: &[(usize, u32)]) -> Option<Self> {
        let &[(target, first)] = targets else { return None };
        let (class, values) = space.one_of_two_classes(target, &store.targets[target])?;
        Criterion::new(space).is_single().then_some(TwoClasses { first, class, values })
    }

    /// Appends the shares of the classes in a leaf of `examples` whose sum is `sum`.
    fn predict(&self, examples: f64, sum: f64, out: &mut Entries) {
        let [without, with] = self.values;
        let n_with = ((sum - examples * without) / (with - without)).round();
        for class in 0..2 {
            let count = if class == self.class { n_with } else { examples - n_with };
            if count > 0.0 {
                out.push(self.first + class, count / examples);
            }
        }
    }
}

impl<'a> LeafPredictor<'a> {
    /// For the targets of `store` and their first components, and trees that are grown in `space`.
    pub(super) fn new(store: &'a CodeStore, space: &Space, targets: Vec<(usize, u32)>) -> Self {
        let widths = targets.iter().map(|&(target, _)| match &store.targets[target] {
            TargetColumn::Numeric(_) => 0,
            TargetColumn::Nominal { categories, .. } => categories.names.len(),
            TargetColumn::Labels(labels) => labels.hierarchy.names().len(),
        });
        let weights = vec![0.0; widths.max().unwrap_or(0)];
        let (touched, of_all, predicted) = (Vec::new(), Vec::new(), Predicted::default());
        let two_classes = TwoClasses::new(store, space, &targets);
        let mut predictor = LeafPredictor { store, targets, weights, touched, of_all, predicted, two_classes };
        for number in 0..predictor.targets.len() {
            let mut found = Entries::default();
            let is_partial = store.targets[predictor.targets[number].0].has_missing();
            let all = (0..store.rows as u32).map(|row| (row, 1));
            let is_known = is_partial && predictor.predict(number, all, &mut found);
            predictor.of_all.push(is_known.then_some(found));
        }
        predictor
    }

    /// Returns true if it reads the sums of leaves, in the place of their rows.
    pub(crate) fn reads_sums(&self) -> bool {
        self.two_classes.is_some()
    }

    /// What each leaf of `grown` predicts.
    pub(super) fn leaves(&mut self, grown: &TreeBuffer) -> Predicted {
        if let Some(two_classes) = &self.two_classes {
            let Predicted { ends, entries } = &mut self.predicted;
            ends.clear();
            entries.clear();
            let leaves = grown.nodes.iter().filter(|node| !node.is_split);
            for (leaf, &sum) in leaves.zip(&grown.leaf_sums) {
                two_classes.predict(leaf.examples, sum, entries);
                ends.push(entries.values.len() as u32);
            }
            return self.predicted.in_short();
        }
        let are_means =
            self.targets.iter().all(|&(target, _)| matches!(self.store.targets[target], TargetColumn::Numeric(_)));
        let mut predicted = std::mem::take(&mut self.predicted);
        predicted.ends.clear();
        predicted.entries.clear();
        predicted.entries.values.reserve_exact(grown.member_ends.len() * self.targets.len());
        let mut above = Above::default();
        let mut ahead = grown.members.iter();
        ahead.by_ref().take(AHEAD).for_each(|&(row, _)| self.prefetch(row));
        for (leaf, members) in grown.leaf_members().enumerate() {
            ahead.by_ref().take(members.len()).for_each(|&(row, _)| self.prefetch(row));
            for number in 0..self.targets.len() {
                if !self.predict(number, members.iter().copied(), &mut predicted.entries) {
                    predicted.entries.append(&self.of_ancestor(number, leaf, grown, &mut above));
                }
            }
            predicted.ends.push(predicted.entries.values.len() as u32);
        }
        let short = match are_means {
            // The values are not copied: they are a third of what is kept of a tree.
            true => Predicted {
                ends: Vec::new(),
                entries: Entries {
                    components: predicted.entries.components[..self.targets.len()].to_vec(),
                    values: std::mem::take(&mut predicted.entries.values),
                },
            },
            false => predicted.in_short(),
        };
        self.predicted = predicted;
        short
    }

    /// Asks the memory for the targets of `row`.
    fn prefetch(&self, row: u32) {
        for &(target, _) in &self.targets {
            match &self.store.targets[target] {
                TargetColumn::Numeric(values) => prefetch(&values[row as usize..][..1]),
                TargetColumn::Nominal { codes, .. } => prefetch(&codes[row as usize..][..1]),
                TargetColumn::Labels(_) => {}
            }
        }
    }

    /// What the nearest node above `leaf` with a known value of a target predicts, or all rows.
    fn of_ancestor(&mut self, number: usize, leaf: usize, grown: &TreeBuffer, above: &mut Above) -> Entries {
        if above.ranges.is_empty() {
            *above = Above::new(grown);
        }
        let mut node = above.leaves[leaf] as usize;
        while let Some(parent) = above.parents[node] {
            node = parent as usize;
            if let Some(found) = above.known.get(&(node as u32, number)) {
                match found {
                    Some(found) => return found.clone(),
                    None => continue,
                }
            }
            let mut found = Entries::default();
            let members = &grown.members[above.ranges[node].clone()];
            let is_known = self.predict(number, members.iter().copied(), &mut found);
            above.known.insert((node as u32, number), is_known.then(|| found.clone()));
            if is_known {
                return found;
            }
        }
        self.of_all[number].clone().unwrap_or_default()
    }

    /// Appends what rows, with their multiplicities, have of target number `number`; false if it is known for none.
    fn predict(&mut self, number: usize, members: impl Iterator<Item = (u32, u32)>, out: &mut Entries) -> bool {
        let (target, first) = self.targets[number];
        let of_rows: &[f64] = &self.store.weights;
        let weight = |row: u32, count: u32| f64::from(count) * of_rows.get(row as usize).copied().unwrap_or(1.0);
        let mut total = 0.0;
        match &self.store.targets[target] {
            TargetColumn::Numeric(values) => {
                let values: &[f64] = values;
                let known = members.map(|(row, count)| (values[row as usize], weight(row, count)));
                let mut known = known.filter(|(value, _)| !value.is_nan());
                let Some((base, weight_of_base)) = known.next() else { return false };
                // Differences from one of them: the mean of equal values is that value, and half values do not overflow.
                let mut sum = 0.0;
                total += weight_of_base;
                for (value, weight) in known {
                    sum += weight * (value / 2.0 - base / 2.0);
                    total += weight;
                }
                out.push(first, base + 2.0 * (sum / total));
                true
            }
            TargetColumn::Nominal { codes, .. } => {
                let codes: &[u16] = codes;
                for (row, count) in members {
                    let code = codes[row as usize];
                    if code != MISSING_U16 {
                        add(&mut self.weights, &mut self.touched, u32::from(code), weight(row, count));
                        total += weight(row, count);
                    }
                }
                self.shares(first, total, out)
            }
            TargetColumn::Labels(labels) => {
                for (row, count) in members {
                    if let Some(set) = labels.of(row as usize) {
                        total += weight(row, count);
                        for &label in set {
                            add(&mut self.weights, &mut self.touched, label, weight(row, count));
                        }
                    }
                }
                self.shares(first, total, out)
            }
        }
    }

    /// Appends the shares of the classes or labels that were added, and forgets these.
    fn shares(&mut self, first: u32, total: f64, out: &mut Entries) -> bool {
        self.touched.sort_unstable();
        for value in self.touched.drain(..) {
            out.push(first + value, std::mem::take(&mut self.weights[value as usize]) / total);
        }
        total > 0.0
    }
}

fn add(weights: &mut [f64], touched: &mut Vec<u32>, value: u32, weight: f64) {
    if weights[value as usize] == 0.0 {
        touched.push(value);
    }
    weights[value as usize] += weight;
}

/// Where the nodes of a tree are, to climb it.
#[derive(Default)]
struct Above {
    /// n_nodes
    parents: Vec<Option<u32>>,
    /// n_nodes; the range of the members of each node.
    ranges: Vec<Range<usize>>,
    /// n_leaves; the node of each leaf.
    leaves: Vec<u32>,
    /// What nodes predict for a target; `None` where it is known for none of their rows.
    known: FxHashMap<(u32, usize), Option<Entries>>,
}

impl Above {
    fn new(grown: &TreeBuffer) -> Self {
        let n = grown.nodes.len();
        let mut above = Above { parents: vec![None; n], ranges: vec![0..0; n], ..Above::default() };
        let mut start = 0;
        let children = grown.children();
        for (number, children) in children.iter().enumerate() {
            match children {
                Some(children) => {
                    children.iter().for_each(|&child| above.parents[child as usize] = Some(number as u32));
                }
                None => {
                    let end = grown.member_ends[above.leaves.len()] as usize;
                    above.ranges[number] = start..end;
                    above.leaves.push(number as u32);
                    start = end;
                }
            }
        }
        for (number, children) in children.iter().enumerate().rev() {
            if let Some(children) = children {
                let [left, right] = children.map(|child| above.ranges[child as usize].clone());
                above.ranges[number] = left.start..right.end;
            }
        }
        above
    }
}
