//! The examples of a node and their sums.

use std::cell::{OnceCell, RefCell};

use pulp::{Arch, Simd, WithSimd};

use super::dense::Values;
use super::label_csr::LabelCsr;
use super::single::Pair;
use super::vectors::add_row;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::space::Block;

/// Examples of a node: row numbers in the block, and how often each occurs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) block: &'a Block,
    pub(crate) rows: &'a [u32],
    /// Empty where there are pairs.
    pub(crate) counts: &'a [u32],
    /// Sums of each example, where there is a single component; else empty.
    pub(crate) pairs: &'a [Pair],
}

impl Examples<'_> {
    /// Their sums, into `sums`.
    pub(crate) fn total(self, arch: Arch, criterion: &Criterion, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(criterion.len(), 0.0);
        arch.dispatch(Total { examples: self, criterion, sums });
    }

    /// Dense components of the example at `position`, and how often it occurs.
    #[inline(always)]
    pub(super) fn dense(&self, position: usize) -> (&[f64], f64) {
        (self.block.dense(self.rows[position] as usize), f64::from(self.counts[position]))
    }

    /// Adds example number `i` to `sums`.
    #[inline(always)]
    pub(crate) fn add(&self, criterion: &Criterion, sums: &mut [f64], i: usize) {
        match self.pairs.get(i) {
            Some(&[count, sum]) => criterion.add_single(sums, count, sum),
            None => criterion.add(sums, self.block, self.rows[i] as usize, f64::from(self.counts[i])),
        }
    }
}

struct Total<'a> {
    examples: Examples<'a>,
    criterion: &'a Criterion,
    sums: &'a mut [f64],
}

impl WithSimd for Total<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for position in 0..self.examples.rows.len() {
            add_row(simd, self.criterion, self.examples, position, self.sums);
        }
    }
}

/// A node's sums, and what follows from them for every search in it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) total: Vec<f64>,
    /// n_dense; 0 where nothing is known.
    pub(super) means: Vec<f64>,
    /// n_indicators; ω·c, and 0 for what all examples have, which gains nothing.
    pub(super) weighted: Vec<f64>,
    /// Σ ω·c² over the indicators known for all rows.
    pub(super) squares: f64,
    /// n_groups; the same over each group.
    pub(super) group_squares: Vec<f64>,
    /// Made by the first search that needs them.
    lists: OnceCell<LabelCsr>,
    /// The lists of an earlier node, whose buffers are reused.
    used: RefCell<LabelCsr>,
    pub(super) values: Values,
}

impl Node {
    /// Sets what follows from the total.
    pub(crate) fn open(&mut self, criterion: &Criterion) {
        self.values.clear();
        if let Some(lists) = self.lists.take() {
            self.used.replace(lists);
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

    /// The labels of its `examples`.
    pub(super) fn lists(&self, criterion: &Criterion, examples: Examples<'_>) -> &LabelCsr {
        self.lists.get_or_init(|| {
            let mut lists = self.used.take();
            lists.set(criterion, examples, &self.weighted);
            lists
        })
    }

    /// Copies the values of `examples` together, if components are dense and few.
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
