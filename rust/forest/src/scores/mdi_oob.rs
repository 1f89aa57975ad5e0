//! MDI-oob: the sum of the impurity decreases of a feature's splits, measured with out-of-bag rows (Li et al. 2019).
//!
//! A split is chosen because the means of its two sides differ in the bag. With as many cuts as a feature of many
//! values has, some cut always makes them differ, so that [`genie3`](super::genie3) is positive for every feature, and
//! the larger the more values it has. Here one of the two factors of the decrease comes from rows that had no say in
//! the choice. For a component with the means `L` and `R` of the sides in the bag, and `L'` and `R'` out of the bag,
//!
//! ```text
//! genie3     (W_L W_R / W) (L − R)²           / W_root        weights W in the bag
//! mdi_oob    (W'_L W'_R / W') (L − R) (L' − R') / W'_root     weights W' out of the bag
//! ```
//!
//! summed over components and splits. As in genie3, rows with a missing value of the feature do not count if
//! missing values are ignored, and a component that is missing in some rows has weights of its own.
//!
//! # Mean zero for an irrelevant feature
//!
//! Let the targets be independent of the feature and its missing values, given the other features. The rows of a node
//! are those with values in a product of sets, one for each feature, so this also holds in the node. Given the bag and
//! the features of all rows, `L − R` and the weights are constants, and `L'` and `R'` are means over rows with the same
//! expectation. Each term, and so the importance, has the expectation 0, for any cardinality, imbalance or skewness.
//!
//! Li et al. (2019, Eq. 11) sum `(prediction of the child − prediction of the node) y` over the out-of-bag rows. The
//! form above is that sum with `y` centred at its out-of-bag mean in the node. Without centring, a share of rows that
//! differs between the bag and the population leaves a rest, which vanishes on average only if it is independent of the
//! means in the bag; and the value varies more (in simulations by a tenth). UFI (Zhou and Hooker 2021) has the same
//! expectation for an irrelevant feature.
//!
//! In a node with n rows out of the bag the term is a covariance with the divisor n, whose expectation is smaller than
//! that of the population by the factor (n − 1) / n. Nodes of a single out-of-bag row add nothing.
//!
//! # Computation
//!
//! The out-of-bag rows walk down the tree once. In each node the values of a row are multiplied by the contrasts
//! `L − R`, so that a single sum for each side is enough, or one for each target and each set of weights.
//!
//! In external memory rows come block by block, which needs the sums of each split; if the tree is shown in parts, of each
//! split of its upper part. The rows that reach a subtree are then in a temporary file until it is shown.
//!
//! Memory: the contrasts of the splits; in external memory the sums, or of the rows of a subtree what growth needs of them.

use std::collections::VecDeque;
use std::ops::Range;

use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::Code;
use ferrank_runtime::error::Result;

use super::observer::{FeatureSums, Harvest, Observer, ScoreMethod, ScoreSize, TargetSums};
use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::criterion::{Criterion, FIRST, WEIGHT};
use crate::oob::{Node, OobNeeds, OobPart, OobSize, OobView, TreeView};
use crate::params::{ForestParams, Missing};
use crate::pieces::{PieceFile, Pieces, WAITING};
use crate::router::{OnCodes, Reached, Router};
use crate::row_records::RowRecords;
use crate::space::Block;
use crate::view::View;

pub(super) struct MdiOob;

impl ScoreMethod for MdiOob {
    fn oob_needs(&self, _: &ForestParams) -> Option<OobNeeds> {
        Some(OobNeeds { predictions: false, shares: false, contrasts: true })
    }

    fn is_share_of_impurity(&self) -> bool {
        true
    }

    fn is_by_target(&self) -> bool {
        true
    }

    fn oob_bytes(&self, size: &OobSize, context: GrowContext<'_>) -> usize {
        let columns = context.store.columns();
        let sums = 2 * Layout::new(context).width() * size_of::<f64>();
        let bag_rows = size.n_rows as f64 - size.out_of_bag;
        let criterion = Criterion::new(context.space);
        let contrasts = Contrasts::bytes(&criterion, size.leaves, bag_rows, context.space.n_listed(columns));
        let store_bytes = size.out_of_bag as usize * context.store.row_bytes();
        // Numbers and multiplicities of the rows of a block, twice, because a partition needs a copy; sides and codes.
        let block = CHUNK_ROWS.min(size.n_rows) * (context.space.most_row_bytes(columns) + 2 * (4 + 4) + 1 + 2);
        // Vectors grow by doubling, and so have on average half their size to spare.
        (size.leaves * sums as f64 + 1.5 * contrasts) as usize + block + WAITING.min(store_bytes)
    }

    fn observer(&self, _: &ForestParams, size: ScoreSize) -> Box<dyn Observer> {
        let sums = FeatureSums::new(size.n_features);
        Box::new(Decreases { sums, n_targets: size.n_targets, by_target: TargetSums::default(), upper: None })
    }
}

struct Decreases {
    sums: FeatureSums,
    n_targets: usize,
    by_target: TargetSums,
    upper: Option<Upper>,
}

/// The upper part of a tree.
struct Upper {
    /// The weight of all out-of-bag rows.
    root: f64,
    /// The splits that are not yet added, in preorder.
    splits: VecDeque<Decrease>,
    file: PieceFile,
    /// n_leaves; the records of the rows that reach the subtree in the place of a leaf.
    rows: Vec<Pieces>,
}

/// The impurity decrease of a split.
struct Decrease {
    /// The number of the split, in preorder.
    split: usize,
    feature: u32,
    value: f64,
    /// n_targets, if importances are reported by target.
    by_target: Vec<f64>,
}

impl Observer for Decreases {
    fn on_tree(&mut self, tree: &OobView<'_>) -> Result<()> {
        if tree.place.scratch().is_none() {
            let GrowContext { store, space, .. } = tree.context;
            let root = tree.rows.iter().map(|row| space.block.weight(row)).sum();
            let (view, rows) = (View::from_store(store, &space.block), tree.rows.iter().map(|row| row as u32));
            return self.walk(**tree, view, rows, root);
        }
        let (_, splits) = walk_blocks(tree, |_, _| Ok(()))?;
        splits.iter().for_each(|decrease| self.add(decrease));
        Ok(())
    }

    fn on_upper(&mut self, upper: &OobView<'_>, grows: &[bool]) -> Result<()> {
        let Some(scratch) = upper.place.scratch() else { return Ok(()) };
        let records = RowRecords::new(upper.context.store);
        let file = PieceFile::new(scratch, grows.len(), WAITING)?;
        let mut rows: Vec<Pieces> = grows.iter().map(|_| Pieces::default()).collect();
        let (root, splits) = walk_blocks(upper, |leaf, reached| {
            if !grows[leaf] {
                return Ok(());
            }
            records.write(reached, |row| reached.view.origin(row) as usize, &mut rows[leaf].waiting);
            file.write(&mut rows[leaf])
        })?;
        rows.iter_mut().try_for_each(|rows| file.finish(rows))?;
        self.upper = Some(Upper { root, splits: splits.into(), file, rows });
        Ok(())
    }

    fn on_part(&mut self, part: &OobPart<'_>) -> Result<()> {
        let Some(mut upper) = self.upper.take() else { return Ok(()) };
        self.add_up_to(&mut upper, part.splits_before);
        let GrowContext { store, space, .. } = part.of.context;
        let records = RowRecords::new(store);
        let list = std::mem::take(&mut upper.rows[part.leaf]);
        let mut rows = records.reader(records.count(list.len()));
        upper.file.read(&list, |piece| {
            rows.read(piece);
            Ok(())
        })?;
        let rows = rows.finish()?;
        let (n_rows, mut block) = (rows.counts.len(), Block::default());
        space.values(rows.columns(), 0..n_rows, &mut block);
        let view = View::from_chunk(&rows.chunk, &block, &[]);
        self.walk(part.of, view, 0..n_rows as u32, upper.root)?;
        self.upper = Some(upper);
        Ok(())
    }

    fn harvest(mut self: Box<Self>) -> Vec<Harvest> {
        if let Some(mut upper) = self.upper.take() {
            self.add_up_to(&mut upper, usize::MAX);
        }
        let by_target = self.by_target.into_vectors(self.n_targets);
        vec![Harvest { importances: self.sums.into_vector(), by_target }]
    }
}

impl Decreases {
    fn add(&mut self, decrease: &Decrease) {
        let Decrease { feature, value, ref by_target, .. } = *decrease;
        self.sums.add(feature, value);
        if self.n_targets > 0 {
            self.by_target.add(feature, by_target.iter().copied());
        }
    }

    /// Adds the first splits of `upper`, those below number `end`.
    fn add_up_to(&mut self, upper: &mut Upper, end: usize) {
        let n = upper.splits.partition_point(|decrease| decrease.split < end);
        upper.splits.drain(..n).for_each(|decrease| self.add(&decrease));
    }

    /// Adds the splits of `tree` that out-of-bag `rows` of `view` reach, in preorder. `root` is the weight of all
    /// out-of-bag rows. Rows that reach a leaf are shown to `at_leaf`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    fn walk(&mut self, tree: TreeView<'_>, view: View<'_>, rows: impl Iterator<Item = u32>, root: f64) -> Result<()> {
        let (mut contrasted, mut router) = (Contrasted::new(tree), Router::default());
        router.items.take_once(rows);
        let mut sums = contrasted.sums();
        tree.tree.apply(view, &mut router, |node, reached| {
            if let Node::Split(split, middle) = node {
                sums.fill(0.0);
                contrasted.add(split as usize, middle, reached, &mut sums)?;
                let decrease = contrasted.decrease(split as usize, &sums, root);
                decrease.iter().for_each(|decrease| self.add(decrease));
            }
            Ok(())
        })
    }
}

/// The weight of all out-of-bag rows, and the decreases of the splits that some of them reach, in preorder. Rows come block
/// by block; those of each that reach a leaf are shown to `at_leaf`.
///
/// # Errors
/// The errors of `at_leaf`; [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
fn walk_blocks(
    view: &OobView<'_>,
    mut at_leaf: impl FnMut(usize, &Reached<'_>) -> Result<()>,
) -> Result<(f64, Vec<Decrease>)> {
    let GrowContext { store, space, .. } = view.context;
    let (mut contrasted, mut router) = (Contrasted::new(**view), Router::default());
    let width = contrasted.sums().len();
    let mut sums = vec![0.0; view.tree.steps.len() * width];
    let (mut block, mut own, mut root) = (Block::default(), Block::default(), 0.0);
    view.rows.by_block(|base, rows| {
        space.values(store.columns(), base..store.rows.min(base + CHUNK_ROWS), &mut block);
        root += rows.iter().map(|&row| block.weight(row as usize)).sum::<f64>();
        view.apply_to_block((base, rows), (&block, &mut own), &mut router, |node, reached| match node {
            Node::Split(split, middle) => {
                contrasted.add(split as usize, middle, reached, &mut sums[split as usize * width..][..width])
            }
            Node::Leaf(leaf) => at_leaf(leaf as usize, reached),
        })
    })?;
    let splits = sums.chunks_exact(width).enumerate();
    Ok((root, splits.filter_map(|(split, sums)| contrasted.decrease(split, sums, root)).collect()))
}

/// The layout of the sums of one side of a split: the weight of its rows, the weights of the rows where a component or a
/// group of indicators is known, and then for each target and each of these weights a sum of values times contrasts.
struct Layout {
    n_weights: usize,
    /// n_components; the sum that each component belongs to.
    sum_of: Vec<usize>,
    /// n_sums; the weight that belongs to each sum, and the target if importances are reported by target.
    sums: Vec<(usize, Option<usize>)>,
}

impl Layout {
    fn new(context: GrowContext<'_>) -> Self {
        let criterion = Criterion::new(context.space);
        let first_weight = FIRST + criterion.n_dense();
        let (mut sum_of, mut sums) = (Vec::new(), Vec::new());
        for component in 0..criterion.n_dense() + criterion.indicator_weight.len() {
            let weight = match criterion.weight_position(component) {
                WEIGHT => 0,
                position => 1 + position - first_weight,
            };
            let target = context.space.target_of(component).filter(|_| context.params.by_target);
            sum_of.push(sums.iter().position(|sum| *sum == (weight, target)).unwrap_or_else(|| {
                sums.push((weight, target));
                sums.len() - 1
            }));
        }
        Layout { n_weights: 1 + criterion.n_partial + criterion.n_groups, sum_of, sums }
    }

    /// Numbers of one side of a split.
    fn width(&self) -> usize {
        self.n_weights + self.sums.len()
    }
}

/// Out-of-bag rows, whose values are multiplied by the contrasts of the splits that they reach.
struct Contrasted<'a> {
    of: TreeView<'a>,
    layout: Layout,
    n_dense: usize,
    /// True if there is a single component, known for all rows, and rows weigh 1. Its sums are those of the values.
    is_single: bool,
    /// n_indicators; the contrasts of the current split.
    indicators: Vec<f64>,
    /// The dense components with a contrast in the current split.
    dense: Vec<(usize, f64)>,
    known_rows: Vec<u32>,
    /// Number of targets if importances are reported by target.
    n_targets: usize,
}

impl<'a> Contrasted<'a> {
    fn new(of: TreeView<'a>) -> Self {
        let GrowContext { space, store, params, .. } = of.context;
        let criterion = Criterion::new(space);
        Contrasted {
            of,
            layout: Layout::new(of.context),
            n_dense: criterion.n_dense(),
            is_single: criterion.is_single(),
            indicators: vec![0.0; criterion.indicator_weight.len()],
            dense: Vec::new(),
            known_rows: Vec::new(),
            n_targets: if params.by_target { store.targets.len() } else { 0 },
        }
    }

    /// The sums of both sides of a split, 0 at first.
    fn sums(&self) -> Vec<f64> {
        vec![0.0; 2 * self.layout.width()]
    }

    fn feature(&self, split: usize) -> u32 {
        let tree = self.of.tree;
        tree.columns.features[tree.steps[split].column as usize]
    }

    /// Adds the rows that reached `split` to the sums of the left and the right side, which starts at `middle`.
    fn add(&mut self, split: usize, middle: usize, reached: &mut Reached<'_>, sums: &mut [f64]) -> Result<()> {
        let (left, right) = sums.split_at_mut(self.layout.width());
        self.of.context.check_large(reached.range.len())?;
        self.set_contrasts(split, true);
        let Range { start, end } = reached.range;
        for (range, sums) in [(start..middle, left), (middle..end, right)] {
            reached.range = range;
            self.add_side(split, reached, sums);
        }
        self.set_contrasts(split, false);
        Ok(())
    }

    /// Sets the contrasts to those of `split`, or back to none.
    fn set_contrasts(&mut self, split: usize, on: bool) {
        self.dense.clear();
        for (component, contrast) in self.of.contrasts.of_split(split) {
            match component.checked_sub(self.n_dense) {
                None => self.dense.push((component, contrast)),
                Some(indicator) => self.indicators[indicator] = if on { contrast } else { 0.0 },
            }
        }
    }

    fn add_side(&mut self, split: usize, reached: &mut Reached<'_>, sums: &mut [f64]) {
        let GrowContext { store, params, .. } = self.of.context;
        let feature = self.feature(split) as usize;
        let (block, mut rows) = (reached.view.block, reached.rows());
        let mut known_rows = std::mem::take(&mut self.known_rows);
        if store.codings[feature].has_missing && params.missing == Missing::Ignore {
            known_rows.clear();
            reached.with_codes(store.slots[feature], TakeKnown { rows, known_rows: &mut known_rows });
            rows = &known_rows;
        }
        self.add_rows(rows, block, sums);
        self.known_rows = known_rows;
    }

    fn add_rows(&self, rows: &[u32], block: &Block, sums: &mut [f64]) {
        let (weights, sums) = sums.split_at_mut(self.layout.n_weights);
        if self.is_single {
            weights[0] += rows.len() as f64;
            sums[0] += rows.iter().map(|&row| block.dense[row as usize]).sum::<f64>();
            return;
        }
        let sum_of = &self.layout.sum_of;
        for &row in rows {
            let (weight, values) = (block.weight(row as usize), block.dense(row as usize));
            weights[0] += weight;
            weights[1..].iter_mut().zip(&values[self.n_dense..]).for_each(|(sum, own)| *sum += own);
            for &(component, contrast) in &self.dense {
                sums[sum_of[component]] += contrast * values[component];
            }
            for &indicator in block.indicators(row as usize) {
                sums[sum_of[self.n_dense + indicator as usize]] += weight * self.indicators[indicator as usize];
            }
        }
    }

    /// The decrease of `split`, which has these sums; `root` is the weight of all out-of-bag rows. `None` if no rows reach
    /// it.
    fn decrease(&self, split: usize, sums: &[f64], root: f64) -> Option<Decrease> {
        let (left, right) = sums.split_at(self.layout.width());
        let weight = left[0] + right[0];
        if weight == 0.0 {
            return None;
        }
        let share = weight / root;
        let scale = match self.of.contrasts.of_split(split).next() {
            Some((_, contrast)) if self.is_single => contrast,
            _ => 1.0,
        };
        let ((weights_left, left), (weights_right, right)) =
            (left.split_at(self.layout.n_weights), right.split_at(self.layout.n_weights));
        let mut decrease =
            Decrease { split, feature: self.feature(split), value: 0.0, by_target: vec![0.0; self.n_targets] };
        for ((&(weight, target), left), right) in self.layout.sums.iter().zip(left).zip(right) {
            let (own_left, own_right) = (weights_left[weight], weights_right[weight]);
            if own_left > 0.0 && own_right > 0.0 {
                let covariance = (left * own_right - right * own_left) / (own_left + own_right).powi(2);
                let part = share * scale * covariance;
                decrease.value += part;
                target.into_iter().for_each(|target| decrease.by_target[target] += part);
            }
        }
        Some(decrease)
    }
}

/// Takes the rows whose value is known.
struct TakeKnown<'a> {
    rows: &'a [u32],
    known_rows: &'a mut Vec<u32>,
}

impl OnCodes for TakeKnown<'_> {
    fn run<C: Code>(self, codes: &[C]) {
        let known = self.rows.iter().zip(codes).filter(|&(_, &code)| code != C::MISSING);
        self.known_rows.extend(known.map(|(&row, _)| row));
    }
}
