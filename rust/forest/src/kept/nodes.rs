//! The table of the nodes of a tree, which is checked when it is read.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, BooleanArray, Float64Array, ListArray, RecordBatch, UInt16Array, UInt32Array};
use arrow_schema::{DataType, Field, Fields};
use ferrank_data::schema::Kind;

use super::head::Head;
use super::leaf_values::LeafValues;
use crate::tree_buffer::{CodeTest, KNOWN};

/// The most components of which each leaf gets a value, also of those that it does not have: with two classes, predictions
/// take .87 of the time. More would take more memory than the nodes themselves.
const MOST_DENSE: usize = 3;

/// By how much a share may exceed 1.
const ROUNDING: f64 = 1e-9;

/// The columns, in their order.
pub(super) fn fields() -> Fields {
    let list = |name, item, is_nullable| Field::new(name, DataType::new_list(item, false), is_nullable);
    Fields::from(vec![
        Field::new("feature", DataType::UInt32, true),
        Field::new("cut", DataType::Float64, true),
        list("categories", DataType::UInt16, true),
        Field::new("missing_left", DataType::Boolean, true),
        Field::new("right", DataType::UInt32, true),
        Field::new("gain", DataType::Float64, true),
        Field::new("weight", DataType::Float64, false),
        Field::new("n_examples", DataType::UInt64, false),
        list("components", DataType::UInt32, false),
        list("values", DataType::Float64, false),
    ])
}

/// The columns of the nodes of a tree.
pub(super) struct Nodes<'a> {
    pub(super) feature: &'a UInt32Array,
    pub(super) cut: &'a Float64Array,
    categories: &'a ListArray,
    codes: &'a UInt16Array,
    pub(super) missing_left: &'a BooleanArray,
    pub(super) right: &'a UInt32Array,
    pub(super) gain: &'a Float64Array,
    pub(super) weight: &'a Float64Array,
    pub(super) components: &'a ListArray,
    pub(super) values: &'a ListArray,
}

impl<'a> Nodes<'a> {
    /// The columns of `batch`, which must have the schema of [`fields`].
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        let column = |number: usize| batch.column(number);
        let categories = column(2).as_list::<i32>();
        Nodes {
            feature: column(0).as_primitive::<UInt32Type>(),
            cut: column(1).as_primitive::<Float64Type>(),
            categories,
            codes: categories.values().as_primitive::<UInt16Type>(),
            missing_left: column(3).as_boolean(),
            right: column(4).as_primitive::<UInt32Type>(),
            gain: column(5).as_primitive::<Float64Type>(),
            weight: column(6).as_primitive::<Float64Type>(),
            components: column(8).as_list::<i32>(),
            values: column(9).as_list::<i32>(),
        }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.feature.len()
    }

    pub(super) fn is_leaf(&self, node: usize) -> bool {
        self.feature.is_null(node)
    }

    /// The categories that go left; none of a numeric feature.
    pub(super) fn categories(&self, node: usize) -> &'a [u16] {
        let offsets = self.categories.offsets();
        match self.categories.is_null(node) {
            true => &[],
            false => &self.codes.values()[offsets[node] as usize..offsets[node + 1] as usize],
        }
    }

    /// The test of a split on codes. `code_of` gives the highest code whose values are not above a cut.
    pub(super) fn code_test(&self, node: usize, code_of: impl Fn(f64) -> u16) -> CodeTest {
        match self.cut.is_valid(node) {
            true if self.cut.value(node) == f64::INFINITY => CodeTest::Cut(KNOWN),
            true => CodeTest::Cut(code_of(self.cut.value(node))),
            false => CodeTest::Subset(self.categories(node).to_vec()),
        }
    }

    /// The components of a leaf and their values.
    pub(super) fn predicted(&self, node: usize) -> (&'a [u32], &'a [f64]) {
        let range = self.components.offsets()[node] as usize..self.components.offsets()[node + 1] as usize;
        let components = self.components.values().as_primitive::<UInt32Type>();
        let values = self.values.values().as_primitive::<Float64Type>();
        (&components.values()[range.clone()], &values.values()[range])
    }

    /// Checks tree number `tree`: afterwards nothing that reads it can fail.
    ///
    /// # Errors
    /// What is wrong, and at which node.
    pub(super) fn check(&self, tree: usize, head: &Head) -> std::result::Result<(), String> {
        let n = self.len();
        if n == 0 {
            return Err("it has no nodes".into());
        }
        let children =
            [self.components.values().null_count(), self.values.values().null_count(), self.codes.null_count()];
        if children.iter().any(|&nulls| nulls > 0) || self.weight.null_count() + self.components.null_count() > 0 {
            return Err("it has null where a value is needed".into());
        }
        if self.components.offsets() != self.values.offsets() {
            return Err("its components and values do not belong together".into());
        }
        let allowed = head.components_of_tree(tree);
        let is_share: Vec<bool> = (head.targets.iter())
            .flat_map(|target| std::iter::repeat_n(target.kind != Kind::Numeric, target.n_components()))
            .collect();
        // Right children whose left siblings' subtrees are not complete yet.
        let mut open: Vec<u32> = Vec::new();
        for node in 0..n {
            let wrong = |what: &str| Err(format!("node {node}: {what}"));
            let weight = self.weight.value(node);
            if !weight.is_finite() || weight < 0.0 {
                return wrong("its weight is no number of at least 0");
            }
            if !self.is_leaf(node) {
                self.check_split(node, head).or_else(|what| wrong(&what))?;
                open.push(self.right.value(node));
                continue;
            }
            let (components, values) = self.predicted(node);
            let ascend = components.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascend || components.iter().any(|&component| !allowed.contains(&(component as usize))) {
                return wrong("it predicts a component that its tree does not have");
            }
            if values.iter().any(|value| !value.is_finite()) {
                return wrong("it predicts a value that is not finite");
            }
            let mut shares = components.iter().zip(values).filter(|(component, _)| is_share[**component as usize]);
            if shares.any(|(_, share)| !(0.0..=1.0 + ROUNDING).contains(share)) {
                return wrong("it predicts a share of a class or label that is not in 0 … 1");
            }
            // In preorder, the next node is the right child of the split that was opened last.
            match open.pop() {
                Some(right) if right as usize == node + 1 => {}
                None if node + 1 == n => {}
                Some(right) => return wrong(&format!("node {right} should follow it, as a right child")),
                None => return wrong("the tree ends here, but other nodes follow"),
            }
        }
        if open.is_empty() { Ok(()) } else { Err("it ends before all splits have two children".into()) }
    }

    fn check_split(&self, node: usize, head: &Head) -> std::result::Result<(), String> {
        let feature = self.feature.value(node);
        if self.missing_left.is_null(node) || self.right.is_null(node) || self.gain.is_null(node) {
            return Err("it tests a feature, but lacks missing_left, right or gain".into());
        }
        if self.right.value(node) as usize >= self.len() {
            return Err(format!("its right child {} is not among the nodes", self.right.value(node)));
        }
        if !self.gain.value(node).is_finite() {
            return Err("its gain is not finite".into());
        }
        if !self.predicted(node).0.is_empty() {
            return Err("it is a split that predicts".into());
        }
        match head.features.get(feature as usize).map(|feature| &feature.categories) {
            None => Err(format!("there is no feature {feature}")),
            Some(None) if self.cut.is_valid(node) && self.categories.is_null(node) => {
                let cut = self.cut.value(node);
                match cut.is_finite() || cut == f64::INFINITY {
                    true => Ok(()),
                    false => Err(format!("the cut {cut} cannot be")),
                }
            }
            Some(Some(names)) if self.cut.is_null(node) && self.categories.is_valid(node) => {
                let categories = self.categories(node);
                let ascend = categories.windows(2).all(|pair| pair[0] < pair[1]);
                match ascend && categories.last().is_none_or(|&last| usize::from(last) < names.len()) {
                    true => Ok(()),
                    false => Err("its categories do not ascend, or are not those of the feature".into()),
                }
            }
            _ => Err("numeric features need a cut, nominal ones categories".into()),
        }
    }

    /// What leaves predict, of the components that the tree may predict.
    pub(super) fn leaf_values(&self, of_tree: Range<usize>) -> LeafValues {
        let offsets = self.components.offsets();
        let components = self.components.values().as_primitive::<UInt32Type>().values();
        let values = self.values.values().as_primitive::<Float64Type>().values();
        let (first, width, n_leaves) = (of_tree.start, of_tree.len(), self.feature.null_count());
        // Components ascend, so that leaves with as many as there can be have all of them.
        if offsets[0] == 0 && values.len() == n_leaves * width {
            return LeafValues::Dense { first, width, values: values.clone() };
        }
        if width > MOST_DENSE {
            return LeafValues::Sparse {
                offsets: offsets.clone(),
                components: components.clone(),
                values: values.clone(),
            };
        }
        let mut dense = vec![0.0; n_leaves * width];
        let leaves = (0..self.len()).filter(|&node| self.is_leaf(node));
        for (node, of_leaf) in leaves.zip(dense.chunks_exact_mut(width.max(1))) {
            let (components, values) = self.predicted(node);
            components.iter().zip(values).for_each(|(&one, value)| of_leaf[one as usize - first] = *value);
        }
        LeafValues::Dense { first, width, values: dense.into() }
    }
}
