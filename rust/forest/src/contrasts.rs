//! Contrasts of splits: how far apart the means of the two sides are in the bag.

use crate::criterion::Criterion;

/// For each split and each component, the mean of the left side minus that of the right side, times ω of the component.
///
/// Only contrasts other than 0 are kept. In a small node most labels do not occur, and have none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contrasts {
    components: Vec<u32>,
    values: Vec<f64>,
    /// n_splits; the end of the entries of each split.
    ends: Vec<usize>,
}

impl Contrasts {
    /// Expected bytes for a tree of `n_splits` splits over `n_rows` rows of the bag, of which each has `n_listed`
    /// indicators.
    pub(crate) fn bytes(criterion: &Criterion, n_splits: f64, n_rows: f64, n_listed: usize) -> f64 {
        // At each level of the tree a row has its indicators in one node. Levels are about twice those of an even tree.
        let levels = 2.0 * n_splits.max(1.0).log2() + 1.0;
        let most = n_splits * criterion.indicator_weight.len() as f64;
        let entries = n_splits * criterion.n_dense() as f64 + most.min(n_rows * n_listed as f64 * levels);
        entries * (size_of::<u32>() + size_of::<f64>()) as f64 + n_splits * size_of::<usize>() as f64
    }

    /// Adds a split with the sums of its left side and of both sides.
    pub(crate) fn add(&mut self, criterion: &Criterion, left: &[f64], total: &[f64]) {
        criterion.contrasts(left, total, |component, contrast| self.push(component, contrast));
        self.ends.push(self.values.len());
    }

    /// Adds a split of a node with a single component.
    pub(crate) fn add_single(&mut self, contrast: f64) {
        self.push(0, contrast);
        self.ends.push(self.values.len());
    }

    fn push(&mut self, component: usize, contrast: f64) {
        if contrast != 0.0 {
            self.components.push(component as u32);
            self.values.push(contrast);
        }
    }

    /// Adds the splits of `other`.
    pub(crate) fn append(&mut self, other: &Contrasts) {
        let before = self.values.len();
        self.components.extend_from_slice(&other.components);
        self.values.extend_from_slice(&other.values);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    pub(crate) fn clear(&mut self) {
        self.components.clear();
        self.values.clear();
        self.ends.clear();
    }

    /// The components of a split with a contrast, ascending, and their contrasts.
    pub(crate) fn of_split(&self, split: usize) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        let start = if split == 0 { 0 } else { self.ends[split - 1] };
        let range = start..self.ends[split];
        let components = self.components[range.clone()].iter().map(|&component| component as usize);
        components.zip(self.values[range].iter().copied())
    }
}
