//! The choice of the kernel that searches the cuts of a numeric feature in a node.
//!
//! [`Kernel::NodeSums`] for large nodes and [`Kernel::InOrder`] for other nodes support any components. Each other
//! kernel supports a special case, finds the same cuts, and is faster. The table lists the CPU time of a fit without
//! the kernel over that with it: medians of alternating runs on one thread, by rows x features.
//!
//! | kernel | without it |
//! |---|---|
//! | [`Kernel::Single`] | 2.3x on one target (100k x 50), 1.5x with extra trees (20k x 200); 2.0x on 3 classes, 1.2x on 10, 1.9x on a number with row weights of 1 and 2, 1.3x with others, 1.17x on two targets (100k x 20) |
//! | [`Kernel::Batch`], one component | 1.5x (100k x 50), 1.7x (20k x 200), 2.0x with extra trees (20k x 200) |
//! | [`few_examples`](super::few_examples), in the place of a batch, and sums under a mask in both | 1.12x on a number, 1.05x on 2 to 5 classes, 1.09x on 10 (100k x 20); 1.09x on a number (100k x 200) |
//! | [`few_examples`](super::few_examples), where 10 % of the values are missing | 1.08x on a number, 1.04x on 2 classes (100k x 20) |
//! | [`Kernel::Batch`], few sums, where examples are no pairs | 1.47x and 1.38x on a number and two classes with row weights, 1.09x on two targets (100k x 20) |
//! | [`Kernel::Batch`], classes, and [`Kernel::LabelBins`] of few labels in registers | 1.07x on 10 classes (50k x 20) |
//! | [`Kernel::Batch`], inner products | 1.3x on 3 targets, 1.2x on 16, 1.1x on 100 labels, 1.8x with extra trees (20k x 200) |
//! | [`Kernel::Dense`] | 1.1x on 3 targets, 1.5x on 16 and with extra trees (20k x 200) |
//! | [`Kernel::MultiFeature`] | 1.15x on 3 targets, 1.3x on 16 (20k x 200), 1.1x (200k x 20) |
//! | [`Kernel::RandomThresholds`] | 1.15x with extra trees on 16 targets (100k x 20), 1.05x (100k x 200) |
//! | [`Kernel::Labels`] | 1.4x on 100 labels (20k x 200), 1.2x with extra trees |
//! | [`Kernel::LabelBins`] | 1.07x on 100 labels (20k x 200), 1.11x (100k x 50) |

use pulp::Arch;

use super::batch::{Batch, SumKind};
use super::examples::Examples;
use super::node::Node;
use super::{label_bins, values};
use crate::criterion::Criterion;
use crate::space::Block;

/// The most dense components of [`Kernel::NodeSums`]. With more, the sums of all codes do not stay in the inner cache,
/// and adding up examples in order is faster.
const MOST_SUMMED: usize = 64;
/// The most bytes of sums by code.
const MOST_SUM_BYTES: usize = 1 << 20;
/// The most examples of [`Kernel::Batch`] where examples are pairs and cuts are not random.
const MOST_PAIRS: usize = 40;

/// A way to search the cuts of a numeric feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// All candidates of a small node at once ([`batch`](super::batch)).
    Batch,
    /// Few dense components, large nodes: sums by code of several features in one pass
    /// ([`multi_feature`](super::multi_feature)).
    MultiFeature,
    /// Few dense components, random cuts: several features in one pass
    /// ([`random_thresholds`](super::random_thresholds)).
    RandomThresholds,
    /// A single component or few classes ([`single`](super::single)).
    Single,
    /// Labels alone, large nodes ([`label_bins`]).
    LabelBins,
    /// Any components, large nodes ([`node_sums`](super::node_sums)).
    NodeSums,
    /// Labels alone ([`label_csr`](super::label_csr)).
    Labels,
    /// Few dense components ([`dense`](super::dense)).
    Dense,
    /// Any components ([`scan`](super::scan)).
    InOrder,
}

/// Chooses kernels for the nodes of an ensemble.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernels {
    at_random: bool,
    /// True if examples are pairs.
    has_pairs: bool,
    /// True if components are dense, known for all rows, and few.
    is_dense: bool,
    /// True if components are labels alone, known for all rows, of weight 1.
    is_labels: bool,
    /// Nodes with up to this number of rows use [`Kernel::Batch`].
    most_in_batch: usize,
    /// Nodes with up to this number of rows use [`few_examples`](super::few_examples) where features are numbers.
    most_few: usize,
    /// What a batch adds up in place of inner products.
    few_sums: Option<SumKind>,
}

impl Kernels {
    /// The choice for `criterion`; `at_random` is true if cuts are random.
    pub(crate) fn new(arch: Arch, criterion: &Criterion, at_random: bool) -> Self {
        Kernels {
            at_random,
            has_pairs: criterion.is_single(),
            is_dense: values::width(arch, criterion).is_some(),
            is_labels: criterion.is_labels(),
            most_in_batch: most_in_batch(arch, criterion, at_random),
            most_few: if criterion.is_single() && !at_random { Batch::most_examples(arch) } else { 0 },
            few_sums: SumKind::new(criterion).filter(|_| !at_random),
        }
    }

    /// The choice where examples are pairs, and cuts are not random.
    pub(crate) fn for_pairs(arch: Arch) -> Self {
        Kernels {
            at_random: false,
            has_pairs: true,
            is_dense: false,
            is_labels: false,
            most_in_batch: MOST_PAIRS.min(Batch::most_examples(arch)),
            most_few: Batch::most_examples(arch),
            few_sums: None,
        }
    }

    /// Returns true if cuts are random.
    pub(crate) fn is_at_random(&self) -> bool {
        self.at_random
    }

    /// What a batch adds up in place of inner products; `None` where components are one or many.
    pub(crate) fn few_sums(&self) -> Option<SumKind> {
        self.few_sums
    }

    /// Returns true if a node of `n` rows is small enough for [`Kernel::Batch`].
    #[inline(always)]
    pub(crate) fn in_batch(&self, n: usize) -> bool {
        n <= self.most_in_batch
    }

    /// Returns true if a node of `n` rows is small enough for [`few_examples`](super::few_examples). With a limit of 64 rows,
    /// nodes of 33 to 64 are divided 1.04 times as fast as with the limit of a batch (100k x 20). Features with missing values
    /// are searched twice, so that histograms are faster earlier.
    #[inline(always)]
    pub(crate) fn has_few(&self, n: usize, are_known: bool) -> bool {
        n <= self.most_few && (are_known || n <= MOST_PAIRS)
    }

    /// The kernel that searches a feature together with others in a node of `n` rows, if there is one. The feature is
    /// numeric, with `n_codes` codes.
    pub(crate) fn for_group(&self, criterion: &Criterion, block: &Block, n: usize, n_codes: usize) -> Option<Kernel> {
        if self.in_batch(n) {
            return Some(Kernel::Batch);
        }
        match (self.is_dense && !self.has_pairs, self.at_random) {
            (true, true) => Some(Kernel::RandomThresholds),
            (true, false) => uses_sums(criterion, block, n, n_codes).then_some(Kernel::MultiFeature),
            (false, _) => None,
        }
    }

    /// Returns true if [`for_group`](Self::for_group) can return a kernel for large nodes.
    pub(crate) fn may_join(&self) -> bool {
        self.is_dense && !self.has_pairs
    }

    /// The kernel that finds the best cut of a single feature, among the `examples` of `node`.
    pub(crate) fn for_feature(
        &self,
        criterion: &Criterion,
        examples: Examples<'_>,
        node: &Node,
        n_codes: usize,
    ) -> Kernel {
        let n = examples.rows.len();
        if self.has_pairs {
            return Kernel::Single;
        }
        if self.is_labels && label_bins::is_worthwhile(criterion, n, node.examples(), n_codes) {
            return Kernel::LabelBins;
        }
        match uses_sums(criterion, examples.block, n, n_codes) {
            true if self.is_dense => Kernel::MultiFeature,
            true => Kernel::NodeSums,
            false => self.without_sums(),
        }
    }

    /// The kernel that computes the gain of a given cut of a single feature.
    pub(crate) fn for_cut(&self) -> Kernel {
        if self.has_pairs { Kernel::Single } else { self.without_sums() }
    }

    fn without_sums(&self) -> Kernel {
        match (self.is_dense, self.is_labels) {
            (true, _) => Kernel::Dense,
            (_, true) => Kernel::Labels,
            _ => Kernel::InOrder,
        }
    }
}

/// Returns true if adding up `n` examples by code is estimated to be faster than adding them up in order.
fn uses_sums(criterion: &Criterion, block: &Block, n: usize, n_codes: usize) -> bool {
    let adding = n * (2 + criterion.width()) + block.mean_indicators(n);
    let walking = n_codes * criterion.len();
    adding >= 4 * walking && 8 * walking <= MOST_SUM_BYTES && criterion.width() <= MOST_SUMMED
}

/// The most rows for which [`Kernel::Batch`] is faster, as measured.
fn most_in_batch(arch: Arch, criterion: &Criterion, at_random: bool) -> usize {
    let few = SumKind::new(criterion).filter(|_| !at_random);
    if criterion.is_partial() || criterion.is_weighted && few.is_none() {
        return 0;
    }
    let most = match (criterion.indicator_weight.is_empty(), at_random) {
        _ if few.is_some() => usize::MAX,
        (true, false) if criterion.is_ordered() => MOST_PAIRS,
        (true, false) => 16,
        (true, true) => usize::MAX,
        (false, _) => 32,
    };
    most.min(Batch::most_examples(arch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_kernel() {
        let dense = |n_whole: usize| Criterion { n_whole, ..Criterion::default() };
        let labels = Criterion { indicator_weight: vec![1.0; 5], ..Criterion::default() };
        let kernel = |criterion: &Criterion, n_rows: u32, n_codes: usize| {
            let (rows, counts): (Vec<u32>, Vec<u32>) = (0..n_rows).map(|row| (row, 1)).unzip();
            let examples = Examples { block: &Block::default(), rows: &rows, counts: &counts, pairs: &[] };
            let mut node = Node::default();
            node.total = vec![f64::from(n_rows); criterion.len()];
            Kernels::new(Arch::new(), criterion, false).for_feature(criterion, examples, &node, n_codes)
        };
        assert_eq!(kernel(&dense(1), 100, 10), Kernel::Single);
        // Sums by code where there are many rows for each code, else examples in order.
        assert_eq!((kernel(&dense(3), 100, 10), kernel(&dense(3), 10, 10)), (Kernel::MultiFeature, Kernel::Dense));
        let partial = Criterion { n_partial: 1, ..dense(2) };
        assert_eq!((kernel(&partial, 100, 10), kernel(&partial, 10, 10)), (Kernel::NodeSums, Kernel::InOrder));
        assert_eq!((kernel(&labels, 100, 10), kernel(&labels, 9, 10)), (Kernel::LabelBins, Kernel::Labels));
        assert_eq!(kernel(&dense(100), 100, 10), Kernel::InOrder);
    }
}
