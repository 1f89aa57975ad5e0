//! Trees as growth leaves them, until a table of their nodes is asked for.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, ListArray, UInt16Array, UInt32Array, UInt64Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use ferrank_data::profile::Cuts;
use ferrank_runtime::error::{Result, check};

use super::leaf_values::{Entries, Predicted};
use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer, cut_on_values};

/// Stands for a test on categories where the code of a cut is expected.
const CATEGORIES: u16 = u16::MAX;

/// A tree without what follows from the rest: 13 bytes for each node of a tree that predicts one number, where its table
/// takes 55. Growth takes 1.08 times as long for it, 1.14 times for a table.
pub(super) struct GrownTree {
    /// n_nodes, in preorder
    is_split: BooleanBuffer,
    /// n_leaves
    examples: Vec<u32>,
    /// n_nodes; empty if each example weighs 1.
    weights: Vec<f64>,
    /// n_splits, as are the next three
    missing_left: BooleanBuffer,
    features: Vec<u32>,
    gains: Vec<f64>,
    /// The codes of cuts; [`CATEGORIES`] for a test on categories.
    cut_codes: Vec<u16>,
    /// n_features; the cuts that the codes stand for.
    cuts: Arc<[Cuts]>,
    /// The numbers of the categories that go left, for each test on categories.
    categories: Vec<u16>,
    /// Where they end.
    category_ends: Vec<i32>,
    /// What leaves predict. Without ends, each leaf predicts the same components.
    predicted: Predicted,
}

impl GrownTree {
    /// Takes over the tree `grown`, whose codes stand for `cuts`. `categories_of` gives, for a split by
    /// categories, the numbers of those that go left, ascending; it is absent where all features are numbers. `predicted` is what leaves predict.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::error::Error::Setting) if the leaves predict more components than a table holds,
    /// or a bag is too large.
    pub(super) fn new(
        grown: &TreeBuffer,
        cuts: &Arc<[Cuts]>,
        categories_of: Option<impl Fn(&BufferedSplit) -> Option<Vec<u16>>>,
        predicted: Predicted,
    ) -> Result<Self> {
        // The root has the most examples.
        let most = grown.nodes.first().map_or(0.0, |root| root.examples);
        check(most <= f64::from(u32::MAX), "keep_trees: a bag has 2^32 rows or more; leave keep_trees out")?;
        let (nodes, splits) = (&grown.nodes, &grown.splits);
        // A node that is split writes, too, what the next leaf overwrites: branches could not be predicted.
        let (mut examples, mut leaf) = (vec![0; nodes.len() - splits.len()], 0);
        for node in nodes {
            examples[leaf] = node.examples as u32;
            leaf += usize::from(!node.is_split);
        }
        let is_weighted = nodes.iter().any(|node| node.weight != node.examples);
        let mut cut_codes: Vec<u16> = splits.iter().map(|split| code_of(&split.test)).collect();
        let (mut categories, mut category_ends) = (Vec::new(), Vec::new());
        if let Some(categories_of) = categories_of {
            for (split, cut_code) in splits.iter().zip(&mut cut_codes) {
                if let Some(mut numbers) = categories_of(split) {
                    *cut_code = CATEGORIES;
                    categories.append(&mut numbers);
                    category_ends.push(categories.len() as i32);
                }
            }
        }
        check_length(predicted.entries.values.len().max(categories.len()))?;
        Ok(GrownTree {
            is_split: BooleanBuffer::collect_bool(nodes.len(), |node| nodes[node].is_split),
            examples,
            weights: nodes.iter().filter(|_| is_weighted).map(|node| node.weight).collect(),
            missing_left: BooleanBuffer::collect_bool(splits.len(), |split| splits[split].missing_left),
            features: splits.iter().map(|split| split.feature).collect(),
            gains: splits.iter().map(|split| split.gain).collect(),
            cut_codes,
            cuts: cuts.clone(),
            categories,
            category_ends,
            predicted,
        })
    }

    /// Bytes of its nodes.
    pub(super) fn n_bytes(&self) -> usize {
        let Predicted { ends, entries: Entries { components, values } } = &self.predicted;
        size_of_val(&self.examples[..])
            + size_of_val(&self.weights[..])
            + size_of_val(&self.features[..])
            + size_of_val(&self.gains[..])
            + size_of_val(&self.cut_codes[..])
            + size_of_val(&self.categories[..])
            + size_of_val(&self.category_ends[..])
            + size_of_val(&ends[..])
            + size_of_val(&components[..])
            + size_of_val(&values[..])
            + (self.is_split.len() + self.missing_left.len()) / 8
    }

    /// The columns of the table of nodes.
    pub(super) fn columns(&self) -> Vec<ArrayRef> {
        let n = self.is_split.len();
        let split_bits = NullBuffer::new(self.is_split.clone());
        let (rights, examples) = self.rights_and_examples();
        let [mut is_cut, mut is_subset, mut missing_left] = [(); 3].map(|()| BooleanBufferBuilder::new(n));
        let (mut features, mut cuts, mut gains) = (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
        let [mut category_ends, mut ends] = [(); 2].map(|()| Vec::with_capacity(n + 1));
        category_ends.push(0);
        ends.push(0);
        let (mut split, mut leaf, mut subset, mut category_end, mut end) = (0, 0, 0, 0, 0);
        let width = self.predicted.entries.components.len() as i32;
        for is_split in &self.is_split {
            if is_split {
                let (feature, code) = (self.features[split], self.cut_codes[split]);
                let has_cut = code != CATEGORIES;
                if has_cut {
                    cuts.push(cut_on_values(&self.cuts[feature as usize], code));
                } else {
                    cuts.push(0.0);
                    category_end = self.category_ends[subset];
                    subset += 1;
                }
                features.push(feature);
                gains.push(self.gains[split]);
                is_cut.append(has_cut);
                is_subset.append(!has_cut);
                missing_left.append(self.missing_left.value(split));
                split += 1;
            } else {
                end = self.predicted.ends.get(leaf).map_or(end + width, |&end| end as i32);
                leaf += 1;
                features.push(0);
                cuts.push(0.0);
                gains.push(0.0);
                is_cut.append(false);
                is_subset.append(false);
                missing_left.append(false);
            }
            category_ends.push(category_end);
            ends.push(end);
        }
        let [is_cut, is_subset] = [is_cut, is_subset].map(|mut bits| Some(NullBuffer::new(bits.finish())));
        let weights = match self.weights.is_empty() {
            true => examples.iter().map(|&examples| examples as f64).collect(),
            false => self.weights.clone(),
        };
        let list = |data_type, ends: Vec<i32>, values: ArrayRef, nulls| -> ArrayRef {
            let item = Arc::new(Field::new_list_field(data_type, false));
            Arc::new(ListArray::new(item, OffsetBuffer::new(ends.into()), values, nulls))
        };
        let Predicted { ends: leaf_ends, entries: Entries { components, values } } = &self.predicted;
        let components = match leaf_ends.is_empty() {
            true => components.repeat(leaf),
            false => components.clone(),
        };
        let categories = Arc::new(UInt16Array::from(self.categories.clone()));
        let splits = Some(split_bits);
        vec![
            Arc::new(UInt32Array::new(features.into(), splits.clone())),
            Arc::new(Float64Array::new(cuts.into(), is_cut)),
            list(DataType::UInt16, category_ends, categories, is_subset),
            Arc::new(BooleanArray::new(missing_left.finish(), splits.clone())),
            Arc::new(UInt32Array::new(rights.into(), splits.clone())),
            Arc::new(Float64Array::new(gains.into(), splits)),
            Arc::new(Float64Array::from(weights)),
            Arc::new(UInt64Array::from(examples)),
            list(DataType::UInt32, ends.clone(), Arc::new(UInt32Array::from(components)), None),
            list(DataType::Float64, ends, Arc::new(Float64Array::from(values.clone())), None),
        ]
    }

    /// The right child of each node, 0 for leaves, and the number of its examples.
    fn rights_and_examples(&self) -> (Vec<u32>, Vec<u64>) {
        let n = self.is_split.len();
        let (mut rights, mut examples) = (vec![0; n], vec![0; n]);
        let mut of_leaves = self.examples.iter().rev();
        // In reverse preorder, the children of a node come before it, the left one last.
        let mut done: Vec<usize> = Vec::new();
        for node in (0..n).rev() {
            if !self.is_split.value(node) {
                examples[node] = of_leaves.next().copied().map_or(0, u64::from);
            } else if let (Some(left), Some(right)) = (done.pop(), done.pop()) {
                (rights[node], examples[node]) = (right as u32, examples[left] + examples[right]);
            }
            done.push(node);
        }
        (rights, examples)
    }
}

fn code_of(test: &CodeTest) -> u16 {
    match test {
        CodeTest::Cut(code) => *code,
        CodeTest::Subset(_) => CATEGORIES,
    }
}

fn check_length(n: usize) -> Result<()> {
    check(
        i32::try_from(n).is_ok(),
        format!(
            "keep_trees: the leaves of a tree predict {n} classes and labels, more than a table holds; use a larger \
             min_samples_leaf, or leave keep_trees out"
        ),
    )
}
