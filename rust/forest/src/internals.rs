//! Kernels for benches. This module is no stable interface.

use pulp::Arch;

use super::criterion::Criterion;
use super::pairs::{Pair, PairLayout};
use super::space::Block;
use super::split::SplitConstraint;
use super::split::examples::Examples;
use super::split::kernel::Kernels;
use super::split::node::Node;
use super::split::scan::Scratch;
use super::split::search::Search;
use super::split::single::{self, Bins};
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::Profile;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{CodeStore, Keep};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

const CONSTRAINT: SplitConstraint = SplitConstraint { min_leaf: 2.0, missing: 0.0 };

/// A node with one component and codes of one byte.
#[derive(Debug)]
pub struct Single {
    arch: Arch,
    codes: Vec<u8>,
    pairs: Vec<Pair>,
    node: single::Node,
    bins: Bins,
}

impl Single {
    /// The node of these examples.
    pub fn new(codes: Vec<u8>, values: &[f64]) -> Self {
        let pairs: Vec<Pair> = values.iter().map(|&value| [1.0, value]).collect();
        Single {
            arch: Arch::new(),
            codes,
            node: single::Node::new(&pairs, PairLayout::Component),
            pairs,
            bins: Bins::new(255),
        }
    }

    /// Gain of the best cut.
    pub fn best_cut(&mut self) -> Option<f64> {
        let Single { arch, codes, pairs, node, bins } = self;
        single::best_cut(*arch, (codes.iter().copied(), 255), pairs.iter().copied(), *node, CONSTRAINT, bins)
            .map(|cut| cut.gain)
    }

    /// Gain of the cut at `cut`.
    pub fn given_cut(&self, cut: u8) -> Option<f64> {
        single::given_cut(self.arch, &self.codes, &self.pairs, self.node, CONSTRAINT, cut).map(|cut| cut.gain)
    }
}

/// A node with any components and codes of one byte.
#[derive(Debug)]
pub struct Any {
    arch: Arch,
    codes: Vec<u8>,
    criterion: Criterion,
    block: Block,
    rows: Vec<u32>,
    counts: Vec<u32>,
    node: Node,
    scratch: Scratch,
}

impl Any {
    /// The node of examples that have `width` values and the labels given, out of `n_labels`, each.
    pub fn new(codes: Vec<u8>, width: usize, values: Vec<f64>, labels: &[Vec<u32>], n_labels: usize) -> Self {
        let mut block = Block { width, dense: values, ..Block::default() };
        if n_labels > 0 {
            block.starts.push(0);
            for labels in labels {
                block.indicators.extend(labels);
                block.starts.push(block.indicators.len());
            }
        }
        let criterion = Criterion { n_whole: width, indicator_weight: vec![1.0; n_labels], ..Criterion::default() };
        let (rows, counts) = ((0..codes.len() as u32).collect(), vec![1; codes.len()]);
        let scratch = Scratch::new(&criterion);
        let mut any = Any { arch: Arch::new(), codes, criterion, block, rows, counts, node: Node::default(), scratch };
        let examples = Examples { block: &any.block, rows: &any.rows, counts: &any.counts, pairs: &[] };
        examples.total(any.arch, &any.criterion, &mut any.node.total);
        any.node.open(&any.criterion);
        any
    }

    /// Gain of the best cut.
    pub fn best_cut(&mut self) -> Option<f64> {
        let Any { arch, codes, criterion, block, rows, counts, node, scratch } = self;
        let kernels = Kernels::new(*arch, criterion, false);
        let examples = Examples { block, rows, counts, pairs: &[] };
        let search = Search { criterion, examples, codes, n_codes: 255, missing: None, node, constraint: CONSTRAINT };
        search.best_cut(kernels.for_feature(criterion, examples, node, 255), *arch, scratch).map(|cut| cut.gain)
    }

    /// Gain of the cut at `cut`.
    pub fn given_cut(&mut self, cut: u8) -> Option<f64> {
        let Any { arch, codes, criterion, block, rows, counts, node, scratch } = self;
        let kernels = Kernels::new(*arch, criterion, false);
        let examples = Examples { block, rows, counts, pairs: &[] };
        let search = Search { criterion, examples, codes, n_codes: 255, missing: None, node, constraint: CONSTRAINT };
        search.given_cut(kernels.for_cut(), *arch, cut, scratch).map(|cut| cut.gain)
    }
}

/// Profiles and codes `source`. Returns the number of rows.
///
/// # Errors
/// The errors of reading `source`.
pub fn code(source: &dyn ChunkSource, roles: &Roles, max_bins: usize) -> Result<usize> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    let monitor = Monitor::default();
    let intake = Intake::new(source, &problem, Unlabelled::Error, &monitor);
    let profile = Profile::new(&intake, max_bins)?;
    Ok(CodeStore::new(&intake, &profile, profile.counts, false, Keep::Memory)?.rows)
}
