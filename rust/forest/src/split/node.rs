//! The sums of a node, and what all searches in the node derive from them.

use std::cell::{OnceCell, RefCell};

use pulp::Arch;

use super::examples::Examples;
use super::label_csr::LabelCsr;
use super::values::Values;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};

/// The sums of a node, and what all searches in the node derive from them.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The sums of the examples, in the layout of [`Criterion`].
    pub(crate) total: Vec<f64>,
    /// n_dense; the mean of each component, 0 if no value is known.
    pub(super) means: Vec<f64>,
    /// n_indicators; ω·c, and 0 for an indicator that all examples have, whose gain is 0.
    pub(super) weighted: Vec<f64>,
    /// Σ ω·c² over the indicators known for all rows.
    pub(super) squares: f64,
    /// n_groups; Σ ω·c² over the indicators of each group.
    pub(super) group_squares: Vec<f64>,
    /// The labels of the examples, set by the first search that needs them.
    labels: OnceCell<LabelCsr>,
    /// The labels of an earlier node, whose buffers are reused.
    used: RefCell<LabelCsr>,
    pub(super) values: Values,
}

impl Node {
    /// Sets what is derived from the total.
    pub(crate) fn open(&mut self, criterion: &Criterion) {
        self.values.clear();
        if let Some(labels) = self.labels.take() {
            self.used.replace(labels);
        }
        self.means.clear();
        let mean = |(c, sum): (usize, &f64)| {
            let weight = criterion.weight_of_dense(&self.total, c);
            if weight > 0.0 { sum / weight } else { 0.0 }
        };
        self.means.extend(criterion.dense(&self.total).iter().enumerate().map(mean));
        if criterion.indicator_weight.is_empty() {
            return;
        }
        let counts = criterion.indicators(&self.total);
        self.weighted.clear();
        self.weighted.extend(criterion.indicator_weight.iter().zip(counts).enumerate().map(|(label, (omega, &c))| {
            if c < criterion.weight_of_indicator(&self.total, label) { omega * c } else { 0.0 }
        }));
        let (whole, partial) = self.weighted.split_at(criterion.n_whole_indicators());
        self.squares = whole.iter().zip(counts).map(|(a, c)| a * c).sum();
        self.group_squares.clear();
        self.group_squares.resize(criterion.n_groups, 0.0);
        for ((a, c), &group) in partial.iter().zip(&counts[whole.len()..]).zip(&criterion.indicator_group) {
            self.group_squares[group as usize] += a * c;
        }
    }

    /// The labels of the `examples` of the node.
    pub(super) fn labels(&self, criterion: &Criterion, examples: Examples<'_>) -> &LabelCsr {
        self.labels.get_or_init(|| {
            let mut labels = self.used.take();
            labels.set(criterion, examples, &self.weighted);
            labels
        })
    }

    /// Copies the values of `examples` together, if components are dense, known for all rows, and few.
    pub(crate) fn set_values(&mut self, arch: Arch, criterion: &Criterion, examples: Examples<'_>) {
        self.values.set(arch, criterion, examples);
    }

    pub(crate) fn has_values(&self) -> bool {
        self.values.is_set()
    }

    pub(crate) fn weight(&self) -> f64 {
        self.total[WEIGHT]
    }

    pub(crate) fn examples(&self) -> f64 {
        self.total[EXAMPLES]
    }
}
