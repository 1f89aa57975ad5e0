//! The sums of one side of a cut, for any components; example by example.

use pulp::Simd;

use super::examples::Examples;
use super::label_csr::{LabelCsr, LabelSums};
use super::label_entry::IndicatorSums;
use super::node::Node;
use super::quality::{add_measured, dense_quality};
use super::search::Search;
use super::vectors::{add_times, dense_gain};
use crate::criterion::Criterion;
use ferrank_data::store::Code;

/// Buffers of [`SideSums`]: zeros between searches.
#[derive(Debug)]
pub(super) struct SideBuffers {
    /// A value for each sum of [`Criterion`].
    pub(super) sums: Vec<f64>,
    pub(super) labels: LabelSums,
    /// n_groups
    groups: Vec<IndicatorSums>,
}

impl SideBuffers {
    pub(super) fn new(criterion: &Criterion) -> Self {
        SideBuffers {
            sums: vec![0.0; criterion.len()],
            labels: LabelSums::new(criterion),
            groups: vec![IndicatorSums::default(); criterion.n_groups],
        }
    }
}

/// The sums of one side of a cut.
pub(super) struct SideSums<'a> {
    criterion: &'a Criterion,
    /// Sums of the numbers of a row of the block.
    row: &'a mut [f64],
    /// The labels of the examples of the node, if there are labels.
    entries: Option<&'a LabelCsr>,
    labels: &'a mut LabelSums,
    pub(super) weight: f64,
    pub(super) count: f64,
    /// Sums of the indicators known for all rows.
    whole: IndicatorSums,
    /// n_groups
    groups: &'a mut [IndicatorSums],
}

impl<'a> SideSums<'a> {
    #[inline(always)]
    pub(super) fn new<C>(search: Search<'a, C>, side: &'a mut SideBuffers) -> Self {
        let Search { criterion, examples, node, .. } = search;
        let SideBuffers { sums, labels, groups } = side;
        let row = &mut sums[..criterion.width()];
        let entries = (!criterion.indicator_weight.is_empty()).then(|| node.labels(criterion, examples));
        SideSums { criterion, row, entries, labels, weight: 0.0, count: 0.0, whole: IndicatorSums::default(), groups }
    }

    /// Adds the example at `position`.
    #[inline(always)]
    pub(super) fn add<S: Simd, C: Code>(&mut self, simd: S, search: Search<'_, C>, position: usize) {
        self.add_rest(search, position);
        if !self.row.is_empty() {
            let (dense, count) = search.examples.dense(position);
            add_times(simd, self.row, dense, count);
        }
    }

    /// Adds the example at `position`. Returns [`quality`](Self::quality) afterwards.
    #[inline(always)]
    pub(super) fn add_measured<S: Simd, C: Code>(&mut self, simd: S, search: Search<'_, C>, position: usize) -> f64 {
        self.add_rest(search, position);
        if self.row.is_empty() {
            return self.quality(search.node, 0.0);
        }
        let (dense, count) = search.examples.dense(position);
        let (whole, partial) = self.row.split_at_mut(self.criterion.n_whole);
        let (from_whole, from_partial) = dense.split_at(whole.len());
        let dense = add_measured(simd, whole, from_whole, count, search.node, self.weight);
        add_times(simd, partial, from_partial, count);
        self.quality(search.node, dense)
    }

    /// The [`quality`](Self::quality) of the side.
    #[inline(always)]
    pub(super) fn measure<S: Simd>(&self, simd: S, node: &Node) -> f64 {
        self.quality(node, dense_quality(simd, &self.row[..self.criterion.n_whole], self.weight, node))
    }

    /// Adds the example at `position` except for its dense components.
    #[inline(always)]
    fn add_rest<C: Code>(&mut self, search: Search<'_, C>, position: usize) {
        let Some(entries) = self.entries else {
            let Examples { block, rows, counts, .. } = search.examples;
            let count = f64::from(counts[position]);
            self.count += count;
            self.weight += count * block.weight(rows[position] as usize);
            return;
        };
        let example = entries.at(position);
        self.count += example.count;
        self.weight += example.weight;
        let had = entries.add(position, self.labels);
        self.whole.add(example, had);
        if !self.groups.is_empty() {
            self.add_partial(search.node, entries.partial(position), example.weight);
        }
    }

    /// Adds the `labels` of an example that are missing in other rows.
    fn add_partial(&mut self, node: &Node, labels: &[u32], weight: f64) {
        let n_whole = self.criterion.n_whole_indicators();
        for label in labels.iter().map(|&label| label as usize) {
            let group = &mut self.groups[self.criterion.indicator_group[label - n_whole] as usize];
            let own = self.criterion.indicator_weight[label] * weight;
            let sum = self.labels.of(label);
            group.squares += weight * (own + 2.0 * *sum);
            group.cross += weight * node.weighted[label];
            *sum += own;
        }
    }

    /// Σ ω·(S − m·W)² over all components known for all rows; `dense` is the sum over the dense ones.
    #[inline(always)]
    fn quality(&self, node: &Node, dense: f64) -> f64 {
        if self.entries.is_none() {
            return dense;
        }
        dense + self.whole.quality(self.weight / node.weight(), node.squares)
    }

    /// The impurity decrease; `quality` is that of [`quality`](Self::quality).
    #[inline(always)]
    pub(super) fn gain<S: Simd>(&self, simd: S, node: &Node, quality: f64) -> f64 {
        let gain = quality / (self.weight * (node.weight() - self.weight));
        if self.criterion.is_partial() { gain + self.partial_gain(simd, node) } else { gain }
    }

    /// The part of the impurity decrease that is due to components missing in some rows.
    #[inline(always)]
    fn partial_gain<S: Simd>(&self, simd: S, node: &Node) -> f64 {
        let Criterion { n_whole, n_partial, .. } = *self.criterion;
        let (sums, weights) = self.row[n_whole..].split_at(n_partial);
        let totals = &self.criterion.row(&node.total)[n_whole + n_partial..];
        let mut gain = dense_gain(simd, sums, &weights[..n_partial], &totals[..n_partial], &node.means[n_whole..]);
        let groups = self.groups.iter().zip(&node.group_squares).zip(&weights[n_partial..]).zip(&totals[n_partial..]);
        for (((group, &squares), &left), &all) in groups {
            let both = left * (all - left);
            if both > 0.0 {
                gain += group.quality(left / all, squares) / both;
            }
        }
        gain
    }

    /// Sets the buffers to zero; `added` are the positions of the examples that were added.
    #[inline(always)]
    pub(super) fn clear(&mut self, added: &[u32]) {
        self.row.fill(0.0);
        self.groups.fill(IndicatorSums::default());
        if let Some(entries) = self.entries {
            self.labels.clear(added.len(), added.iter().flat_map(|&position| entries.labels(position as usize)));
        }
    }
}
