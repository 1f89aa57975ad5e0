//! Growing one tree: top-down, depth first, with an explicit stack.
//!
//! The examples of a node are a range of the bag. A split parts the range in two, keeping the order
//! of rows, so that sums are taken in row order wherever the rows lie.

use std::ops::Range;

use pulp::Arch;
use rand::{Rng, RngExt};

use super::bag::Bag;
use super::contest::{Contest, Found};
use super::grown::{CodeTest, Grown, GrownNode, GrownSplit};
use super::items::{Items, LEFT, MISSING, RIGHT, tell_sides};
use super::moments::{EXAMPLES, FIRST, Shape, WEIGHT};
use super::params::{Ensemble, ForestParams, Score};
use super::pool::{Mark, Pool};
use super::space::{Block, Space};
use super::split::batch::{Batch, BatchCut, threshold};
use super::split::gram::Gram;
use super::split::nominal::{Present, Subset};
use super::split::scan::{self, Search};
use super::split::single;
use super::split::{Cut, Room};
use super::view::{CASCADE, View};
use crate::error::Result;
use crate::monitor::Monitor;
use crate::profile::Scale;
use crate::rng::{Purpose, ROOT, Stream, child, stream};
use crate::store::{Chunk, Code, CodeStore, Slot, Stored};

/// Decreases below this are rounding noise: the impurity of the whole data is 1.
const LEAST_GAIN: f64 = 1e-18;
/// From so many examples on it pays to lay their values together for the candidates.
const MANY: usize = 512;
/// Nodes larger than this ask after each feature whether to stop, smaller ones once in a while.
const LARGE_NODE: usize = 4096;

/// What every tree of an ensemble is grown from.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) store: &'a CodeStore,
    pub(crate) space: &'a Space,
    pub(crate) params: &'a ForestParams,
    pub(crate) monitor: &'a Monitor,
}

/// A node that waits to be grown.
struct Frame {
    /// Range of the items.
    examples: Range<usize>,
    depth: u32,
    path: u64,
    /// The parent's position, and 0 for its left or 1 for its right child.
    parent: Option<(u32, usize)>,
    mark: Mark,
    sums: Known,
}

/// What the split of the parent says of a node's sums.
#[derive(Clone, Copy)]
enum Known {
    Nothing,
    Single(single::Node),
    /// The last of the totals, from here on.
    Any(usize),
}

/// A node's examples in two parts.
struct Parted {
    split: GrownSplit,
    /// Where the right side starts.
    middle: usize,
    /// Of the left and the right side.
    sums: [Known; 2],
}

/// The sums of a node in the form its searches need.
#[derive(Clone, Copy)]
enum Open {
    Single(single::Node),
    /// In the buffers.
    Any,
}

/// Grows trees one after the other. Its buffers stay, since getting memory costs more than filling it.
pub(crate) struct Grower<'a> {
    ground: Ground<'a>,
    /// The number of the tree.
    tree: u64,
    arch: Arch,
    shape: Shape,
    /// One dense component, row weights all 1, nothing missing.
    is_single: bool,
    /// Nodes up to this size take their candidates together.
    most_in_batch: usize,
    per_node: usize,
    keeps_members: bool,
    row_bytes: usize,
    items: Items,
    pool: Pool,
    /// The pool at the root.
    whole: Mark,
    /// Sums of the nodes that wait, the next one's last.
    totals: Vec<f64>,
    grown: Grown,
    since_check: usize,
    buffers: Buffers,
    /// Copied codes, one for each stage of the cascade.
    copies: [Chunk; CASCADE.len()],
}

/// Reused from node to node.
struct Buffers {
    narrow: Vec<u8>,
    wide: Vec<u16>,
    known: Items,
    bins_narrow: single::Bins,
    bins_wide: single::Bins,
    node: scan::Node,
    known_node: scan::Node,
    scratch: scan::Scratch,
    present: Present,
    batch: Batch,
    gram: Gram,
    sides: Vec<u8>,
    left: Vec<f64>,
    total: Vec<f64>,
    spill: Items,
}

impl<'a> Grower<'a> {
    pub(crate) fn new(ground: Ground<'a>, arch: Arch) -> Self {
        let (store, space) = (ground.store, ground.space);
        let shape = Shape::of(space);
        let is_single = shape.is_ordered() && !shape.partial && space.block.weights.is_empty();
        let pool = Pool::new(store.codings.iter().map(|coding| coding.n_codes() < 2));
        let most_codes = |narrow: bool| {
            let codings = store.codings.iter().filter(|coding| coding.is_narrow() == narrow);
            codings.map(|coding| coding.n_codes()).max().unwrap_or(0)
        };
        Grower {
            ground,
            tree: 0,
            arch,
            is_single,
            most_in_batch: most_in_batch(arch, &shape, ground),
            per_node: ground.params.features_per_node(store.codings.len()),
            row_bytes: store.row_bytes() + if is_single { 0 } else { space.block.row_bytes() },
            keeps_members: ground.params.scores.contains(&Score::Permutation),
            items: Items::default(),
            whole: pool.mark(),
            pool,
            totals: Vec::new(),
            grown: Grown::default(),
            since_check: 0,
            buffers: Buffers {
                narrow: Vec::new(),
                wide: Vec::new(),
                known: Items::default(),
                bins_narrow: single::Bins::new(most_codes(true)),
                bins_wide: single::Bins::new(most_codes(false)),
                node: scan::Node::default(),
                known_node: scan::Node::default(),
                scratch: scan::Scratch::new(&shape),
                present: Present::default(),
                batch: Batch::default(),
                gram: Gram::default(),
                sides: Vec::new(),
                left: Vec::new(),
                total: Vec::new(),
                spill: Items::default(),
            },
            shape,
            copies: Default::default(),
        }
    }

    /// Grows the tree with number `tree` on `bag`.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted) on request.
    pub(crate) fn grow(&mut self, bag: &Bag, tree: u64) -> Result<&Grown> {
        let Ground { store, space, .. } = self.ground;
        self.tree = tree;
        self.grown.clear();
        self.totals.clear();
        self.pool.rewind(self.whole);
        self.items.take(bag, self.is_single.then_some(&space.block.dense[..]));
        let examples = 0..bag.rows.len();
        let root = Frame { examples, depth: 0, path: ROOT, parent: None, mark: self.whole, sums: Known::Nothing };
        let stage = CASCADE.iter().filter(|&&bytes| store.rows * self.row_bytes <= bytes).count();
        self.subtree(View::store(store, &space.block), stage, root)?;
        Ok(&self.grown)
    }

    /// Grows everything below `root`, whose rows are numbered as in `view`.
    fn subtree(&mut self, view: View<'_>, stage: usize, root: Frame) -> Result<()> {
        let mut stack = vec![root];
        while let Some(frame) = stack.pop() {
            self.pool.rewind(frame.mark);
            let n = frame.examples.len();
            if let Some(next) = (stage..CASCADE.len()).rev().find(|&next| n * self.row_bytes <= CASCADE[next]) {
                // Only worth it where the subtree reads the codes more than once.
                if n >= 64 {
                    self.copy_together(view, next, frame)?;
                    continue;
                }
            }
            let examples = frame.examples.clone();
            match self.node(view, frame)? {
                Some(children) => stack.extend(children),
                None if self.keeps_members => self.keep_members(view, examples),
                None => {}
            }
        }
        Ok(())
    }

    /// Copies the codes of `frame` together and grows its subtree there.
    fn copy_together(&mut self, view: View<'_>, stage: usize, frame: Frame) -> Result<()> {
        let mut copy = std::mem::take(&mut self.copies[stage]);
        let rows = &mut self.items.rows[frame.examples.clone()];
        view.gather(rows, &mut copy);
        // Pairs hold all there is to know of a single component.
        let block = if self.is_single { Block::default() } else { view.block.gather(rows) };
        let origin: Vec<u32> =
            if self.keeps_members { rows.iter().map(|&row| view.origin(row)).collect() } else { Vec::new() };
        rows.iter_mut().enumerate().for_each(|(local, row)| *row = local as u32);
        let done = self.subtree(View::local(&copy, &block, &origin), stage + 1, frame);
        self.copies[stage] = copy;
        done
    }

    /// Notes which rows are in a leaf.
    fn keep_members(&mut self, view: View<'_>, examples: Range<usize>) {
        for i in examples {
            let count = if self.is_single { self.items.pairs[i][0] as u32 } else { self.items.counts[i] };
            self.grown.members.push((view.origin(self.items.rows[i]), count));
        }
        self.grown.member_ends.push(self.grown.members.len() as u32);
    }

    /// Makes a node of `frame`; gives its children, the left one last, if it is split.
    fn node(&mut self, view: View<'_>, frame: Frame) -> Result<Option<[Frame; 2]>> {
        self.check(frame.examples.len())?;
        let range = frame.examples.clone();
        let open = self.open(view, &frame);
        let (examples, weight) = match open {
            Open::Single(node) => (node.examples, node.examples),
            Open::Any => (self.buffers.node.examples(), self.buffers.node.weight()),
        };
        let number = self.grown.nodes.len() as u32;
        if let Some((parent, side)) = frame.parent {
            let split = self.grown.nodes[parent as usize].split.as_mut().expect("a parent is split");
            split.children[side] = number;
        }
        self.grown.nodes.push(GrownNode { depth: frame.depth, examples, weight, split: None });
        let params = self.ground.params;
        let may_split = examples >= (2 * params.min_samples_leaf) as f64
            && params.max_depth.is_none_or(|most| (frame.depth as usize) < most)
            && !self.is_pure(view, range.clone());
        if !may_split {
            return Ok(None);
        }
        if let Open::Any = open {
            let examples = self.items.examples(range.clone(), view);
            let node = &mut self.buffers.node;
            node.open(&self.shape, examples);
            if params.ensemble == Ensemble::ExtraTrees || range.len() >= MANY {
                node.set_values(self.arch, &self.shape, examples);
            }
        }
        let Some(found) = self.search(view, &frame, open, (examples, weight))? else { return Ok(None) };
        let Some(parted) = self.part(view, range.clone(), found, open, weight) else { return Ok(None) };
        let Parted { split, middle, sums } = parted;
        self.grown.nodes[number as usize].split = Some(split);
        let mark = self.pool.mark();
        let child_frame = |examples, side: usize| Frame {
            examples,
            depth: frame.depth + 1,
            path: child(frame.path, side == 1),
            parent: Some((number, side)),
            mark,
            sums: sums[side],
        };
        Ok(Some([child_frame(middle..range.end, 1), child_frame(range.start..middle, 0)]))
    }

    /// The sums of `frame`.
    fn open(&mut self, view: View<'_>, frame: &Frame) -> Open {
        let total = &mut self.buffers.node.total;
        match frame.sums {
            Known::Single(node) => return Open::Single(node),
            Known::Nothing if self.is_single => {
                return Open::Single(single::Node::new(&self.items.pairs[frame.examples.clone()]));
            }
            Known::Nothing => {
                self.items.examples(frame.examples.clone(), view).total(self.arch, &self.shape, total);
            }
            Known::Any(start) => {
                total.clear();
                total.extend(self.totals.drain(start..));
            }
        }
        Open::Any
    }

    fn check(&mut self, examples: usize) -> Result<()> {
        self.since_check += examples + 1;
        if self.since_check > LARGE_NODE {
            self.since_check = 0;
            self.ground.monitor.check()?;
        }
        Ok(())
    }

    /// Whether all examples have the same component values.
    fn is_pure(&self, view: View<'_>, range: Range<usize>) -> bool {
        if self.is_single {
            let pairs = &self.items.pairs[range];
            let [count, sum] = pairs[0];
            return pairs.iter().all(|&[c, s]| s * count == sum * c);
        }
        let block = view.block;
        if !block.weights.is_empty() {
            // Values carry the row weights; equal ones are found by a gain of nothing.
            return false;
        }
        let first = self.items.rows[range.start] as usize;
        let same = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
        self.items.rows[range].iter().all(|&row| {
            let row = row as usize;
            block.dense(row).iter().zip(block.dense(first)).all(|(a, b)| same(a, b))
                && block.indicators(row) == block.indicators(first)
        })
    }

    /// The best test over the features drawn for the node, whose examples and weight are `size`.
    fn search(&mut self, view: View<'_>, frame: &Frame, open: Open, size: (f64, f64)) -> Result<Option<Found>> {
        let range = frame.examples.clone();
        let mut random = stream(self.ground.params.seed, Purpose::Node, self.tree, frame.path);
        let mut best = Contest::default();
        let in_batch = range.len() <= self.most_in_batch;
        if in_batch {
            self.buffers.batch.start(range.len());
        }
        let mut interrupted = Ok(());
        let mut pool = std::mem::replace(&mut self.pool, Pool::new(std::iter::empty()));
        pool.draw(self.per_node, &mut random, |feature, random| {
            if range.len() > LARGE_NODE && interrupted.is_ok() {
                interrupted = self.ground.monitor.check();
            }
            if interrupted.is_err() {
                return true;
            }
            if in_batch && self.fits_batch(feature) {
                return self.add_to_batch(view, range.clone(), feature, random);
            }
            let (varies, found) = self.candidate(view, range.clone(), feature, open, size, random);
            if let Some(found) = found {
                best.enter(found);
            }
            varies
        });
        self.pool = pool;
        if in_batch {
            self.judge_batch(view, range, open, &mut best);
        }
        let mut best = best.winner(self.ground.params.ties, &mut random);
        if let Some(Found { feature, test: CodeTest::Cut(code), threshold: Some(at), .. }) = &mut best
            && let Scale::Numeric(cuts) = &self.ground.store.codings[*feature as usize].scale
        {
            *code = cuts.values.partition_point(|value| value <= at) as u16 - 1;
        }
        interrupted.map(|()| best)
    }

    /// Whether `feature` is one that a batch takes: numeric, and known for all rows.
    fn fits_batch(&self, feature: u32) -> bool {
        let coding = &self.ground.store.codings[feature as usize];
        !coding.has_missing && matches!(coding.scale, Scale::Numeric(_))
    }

    /// Takes `feature` into the batch; gives whether it varies in the node.
    fn add_to_batch(&mut self, view: View<'_>, range: Range<usize>, feature: u32, random: &mut Stream) -> bool {
        fn fill<C: Stored>(
            view: View<'_>,
            slot: usize,
            rows: &[u32],
            values: Option<&[f64]>,
            keys: &mut [f64],
        ) -> bool {
            match values {
                Some(values) => view.codes_as(slot, rows, keys, |code: C| values[code.index()]),
                None => view.codes_as(slot, rows, keys, |code: C| code.index() as f64),
            }
            keys.iter().any(|&key| key != keys[0])
        }
        let store = self.ground.store;
        let rows = &self.items.rows[range];
        let values = match (&store.codings[feature as usize].scale, self.ground.params.ensemble) {
            (Scale::Numeric(cuts), Ensemble::ExtraTrees) => Some(&cuts.values[..]),
            _ => None,
        };
        let varies = self.buffers.batch.add(feature, |keys| match store.slots[feature as usize] {
            Slot::Narrow(slot) => fill::<u8>(view, slot, rows, values, keys),
            Slot::Wide(slot) => fill::<u16>(view, slot, rows, values, keys),
        });
        if varies && values.is_some() {
            self.buffers.batch.set_share(random.random());
        }
        varies
    }

    /// Searches the tests of the batch.
    fn judge_batch(&mut self, view: View<'_>, range: Range<usize>, open: Open, best: &mut Contest) {
        let arch = self.arch;
        let room = Room { min_leaf: self.ground.params.min_samples_leaf as f64, missing: 0.0 };
        let examples = self.items.examples(range, view);
        let Buffers { batch, gram, node, .. } = &mut self.buffers;
        if batch.is_empty() {
            return;
        }
        if let (Open::Any, false) = (open, node.has_values()) {
            gram.open(arch, &self.shape, examples, node, batch.width());
        }
        // The code of a random cut follows once it is the winner.
        let drawn =
            |BatchCut { feature, gain, key }| Found { gain, feature, test: CodeTest::Cut(0), threshold: Some(key) };
        let found =
            |BatchCut { feature, gain, key }| Found { gain, feature, test: CodeTest::Cut(key as u16), threshold: None };
        let at_random = self.ground.params.ensemble == Ensemble::ExtraTrees;
        match (open, at_random) {
            (Open::Single(node), true) => {
                batch.random_cuts(arch, examples.pairs, node, room).for_each(|cut| best.enter(drawn(cut)));
            }
            (Open::Single(node), false) => {
                batch.best_cuts(arch, examples.pairs, node, room).for_each(|cut| best.enter(found(cut)));
            }
            (Open::Any, true) if node.has_values() => {
                let cuts = batch.random_cuts_by_value(arch, &self.shape, node, examples.counts, room);
                cuts.for_each(|cut| best.enter(drawn(cut)));
            }
            (Open::Any, true) => {
                batch.random_cuts_of(arch, gram, node.examples(), room).for_each(|cut| best.enter(drawn(cut)));
            }
            (Open::Any, false) => {
                batch.best_cuts_of(arch, gram, node.examples(), room).for_each(|cut| best.enter(found(cut)));
            }
        }
    }

    /// Whether `feature` varies in the node, and its best test.
    fn candidate(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        feature: u32,
        open: Open,
        size: (f64, f64),
        random: &mut Stream,
    ) -> (bool, Option<Found>) {
        match self.ground.store.slots[feature as usize] {
            Slot::Narrow(slot) => {
                let mut codes = std::mem::take(&mut self.buffers.narrow);
                codes.resize(range.len(), 0);
                view.codes(slot, &self.items.rows[range.clone()], &mut codes);
                let out = self.candidate_on(view, range, feature, open, size, random, &mut codes);
                self.buffers.narrow = codes;
                out
            }
            Slot::Wide(slot) => {
                let mut codes = std::mem::take(&mut self.buffers.wide);
                codes.resize(range.len(), 0);
                view.codes(slot, &self.items.rows[range.clone()], &mut codes);
                let out = self.candidate_on(view, range, feature, open, size, random, &mut codes);
                self.buffers.wide = codes;
                out
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn candidate_on<C: Stored>(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        feature: u32,
        mut open: Open,
        (all, all_weight): (f64, f64),
        random: &mut Stream,
        codes: &mut Vec<C>,
    ) -> (bool, Option<Found>) {
        let ground = self.ground;
        let coding = &ground.store.codings[feature as usize];
        let buffers = &mut self.buffers;
        let mut examples = self.items.examples(range, view);
        let mut node = &buffers.node;
        let (mut share, mut missing) = (1.0, 0.0);
        if coding.has_missing && codes.contains(&C::MISSING) {
            buffers.known.take_known(examples, codes);
            examples = buffers.known.examples(0..codes.len(), view);
            let (known, known_weight);
            if let Open::Single(node) = &mut open {
                *node = single::Node::new(examples.pairs);
                (known, known_weight) = (node.examples, node.examples);
            } else {
                examples.total(self.arch, &self.shape, &mut buffers.known_node.total);
                buffers.known_node.open(&self.shape, examples);
                node = &buffers.known_node;
                (known, known_weight) = (node.examples(), node.weight());
            }
            (share, missing) = (known_weight / all_weight, all - known);
        }
        let (low, high) = extremes(codes);
        if low >= high {
            return (false, None);
        }
        let here = Here {
            arch: self.arch,
            open,
            search: Search {
                shape: &self.shape,
                examples,
                codes,
                n_codes: coding.n_codes(),
                node,
                room: Room { min_leaf: ground.params.min_samples_leaf as f64, missing },
            },
        };
        let at_random = ground.params.ensemble == Ensemble::ExtraTrees;
        let found = match (&coding.scale, at_random) {
            (Scale::Numeric(_), false) => {
                let bins = if size_of::<C>() == 1 { &mut buffers.bins_narrow } else { &mut buffers.bins_wide };
                here.best_cut(bins, &mut buffers.scratch).map(cut_test)
            }
            (Scale::Numeric(cuts), true) => {
                // Uniform between the least and the greatest value (Geurts et al. 2006, Table 1).
                let (low, high) = (low.index(), high.index());
                let at = threshold(cuts.values[low], cuts.values[high], random.random());
                let code = (low + cuts.values[low..high].partition_point(|&value| value <= at)) as u16 - 1;
                here.given_cut(C::from_u16(code), &mut buffers.scratch).map(cut_test)
            }
            (Scale::Nominal(_), _) => {
                let Search { shape, room, n_codes, .. } = here.search;
                buffers.present.open(shape, examples, codes, n_codes);
                let subset = if at_random {
                    let chosen = random_subset(buffers.present.codes.len(), random);
                    buffers.present.given(shape, room, &chosen)
                } else {
                    buffers.present.best(shape, room)
                };
                subset.map(|Subset { gain, codes }| (gain, CodeTest::Subset(codes)))
            }
        };
        (true, found.map(|(gain, test)| Found { gain: share * gain, feature, test, threshold: None }))
    }

    /// Parts the examples of a node by `found`. `None` if the gain is rounding noise.
    fn part(&mut self, view: View<'_>, range: Range<usize>, found: Found, open: Open, weight: f64) -> Option<Parted> {
        let mut sides = std::mem::take(&mut self.buffers.sides);
        let has_missing = self.sides(view, range.clone(), &found, &mut sides);
        let middle = if has_missing {
            self.sum_known(view, range.clone(), &sides);
            None
        } else {
            // Sums of a side that lies together are cheaper than those of a side picked out.
            let middle = self.items.partition(range.clone(), &sides, &mut self.buffers.spill);
            self.sum_left(view, range.clone(), middle, open);
            Some(middle)
        };
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        let share = total[WEIGHT] / weight;
        let gain = share * self.shape.gain(left, total);
        let missing_left = left[WEIGHT] >= total[WEIGHT] - left[WEIGHT];
        let parted = (gain > LEAST_GAIN).then(|| {
            self.record_by_target(share);
            let split = GrownSplit { feature: found.feature, test: found.test, missing_left, gain, children: [0; 2] };
            if let Some(middle) = middle {
                return Parted { split, middle, sums: self.sums_of_children() };
            }
            let follow = if missing_left { LEFT } else { RIGHT };
            sides.iter_mut().filter(|side| **side == MISSING).for_each(|side| *side = follow);
            let middle = self.items.partition(range, &sides, &mut self.buffers.spill);
            Parted { split, middle, sums: [Known::Nothing; 2] }
        });
        self.buffers.sides = sides;
        parted
    }

    /// Sums of the examples before `middle`, and of all in `range`, into the buffers.
    fn sum_left(&mut self, view: View<'_>, range: Range<usize>, middle: usize, open: Open) {
        let is_smaller = 2 * (middle - range.start) <= range.len();
        let smaller = if is_smaller { range.start..middle } else { middle..range.end };
        let Buffers { left, total, node, .. } = &mut self.buffers;
        match open {
            Open::Single(node) => {
                let side = single::Node::new(&self.items.pairs[smaller]);
                for (sums, node) in [(&mut *left, side), (&mut *total, node)] {
                    sums.clear();
                    sums.resize(self.shape.len(), 0.0);
                    self.shape.add_single(sums, node.examples, node.sum);
                }
            }
            Open::Any => {
                self.items.examples(smaller, view).total(self.arch, &self.shape, left);
                total.clone_from(&node.total);
            }
        }
        if !is_smaller {
            left.iter_mut().zip(total).for_each(|(left, total)| *left = *total - *left);
        }
    }

    /// Sums of the left side and of all examples whose value is known, into the buffers.
    fn sum_known(&mut self, view: View<'_>, range: Range<usize>, sides: &[u8]) {
        let (left, total) = (&mut self.buffers.left, &mut self.buffers.total);
        for sums in [&mut *left, &mut *total] {
            sums.clear();
            sums.resize(self.shape.len(), 0.0);
        }
        let examples = self.items.examples(range, view);
        for (i, &side) in sides.iter().enumerate() {
            match side {
                LEFT => examples.add(&self.shape, left, i),
                // The right side for now.
                RIGHT => examples.add(&self.shape, total, i),
                _ => {}
            }
        }
        total.iter_mut().zip(&*left).for_each(|(total, left)| *total += left);
    }

    /// Keeps the sums of both sides for when their nodes are made.
    fn sums_of_children(&mut self) -> [Known; 2] {
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        if self.is_single {
            let [left, right] =
                [[left[EXAMPLES], left[FIRST]], [total[EXAMPLES] - left[EXAMPLES], total[FIRST] - left[FIRST]]]
                    .map(|[examples, sum]| Known::Single(single::Node { examples, sum }));
            return [left, right];
        }
        let of_right = self.totals.len();
        self.totals.extend(total.iter().zip(left).map(|(total, left)| total - left));
        let of_left = self.totals.len();
        self.totals.extend_from_slice(left);
        [Known::Any(of_left), Known::Any(of_right)]
    }

    /// Where each example goes; gives whether some miss the feature.
    fn sides(&mut self, view: View<'_>, range: Range<usize>, found: &Found, sides: &mut Vec<u8>) -> bool {
        let rows = &self.items.rows[range];
        let has_missing = self.ground.store.codings[found.feature as usize].has_missing;
        match self.ground.store.slots[found.feature as usize] {
            Slot::Narrow(slot) => {
                self.buffers.narrow.resize(rows.len(), 0);
                view.codes(slot, rows, &mut self.buffers.narrow);
                tell_sides(&self.buffers.narrow, &found.test, has_missing, sides)
            }
            Slot::Wide(slot) => {
                self.buffers.wide.resize(rows.len(), 0);
                view.codes(slot, rows, &mut self.buffers.wide);
                tell_sides(&self.buffers.wide, &found.test, has_missing, sides)
            }
        }
    }

    fn record_by_target(&mut self, share: f64) {
        if !self.ground.params.by_target {
            return;
        }
        let space = self.ground.space;
        let start = self.grown.gain_by_target.len();
        self.grown.gain_by_target.resize(start + self.ground.store.targets.len(), 0.0);
        let parts = &mut self.grown.gain_by_target[start..];
        self.shape.gains(&self.buffers.left, &self.buffers.total, |component, gain| {
            let target = match component.checked_sub(space.n_dense()) {
                None => space.dense_target[component],
                Some(indicator) => space.indicator_target[indicator],
            };
            parts[target] += share * gain;
        });
    }
}

/// Up to so many examples it is faster to search all candidates of a node at once, as measured.
fn most_in_batch(arch: Arch, shape: &Shape, ground: Ground<'_>) -> usize {
    if shape.partial || !ground.space.block.weights.is_empty() {
        return 0;
    }
    let most = match (shape.indicator_weight.is_empty(), ground.params.ensemble) {
        _ if shape.is_ordered() => usize::MAX,
        (true, Ensemble::RandomForest | Ensemble::Bagging) => 16,
        (false, Ensemble::ExtraTrees) => 32,
        _ => usize::MAX,
    };
    most.min(Batch::most_examples(arch))
}

/// A search in either form of sums.
struct Here<'a, C> {
    arch: Arch,
    open: Open,
    search: Search<'a, C>,
}

impl<C: Code> Here<'_, C> {
    fn best_cut(&self, bins: &mut single::Bins, scratch: &mut scan::Scratch) -> Option<Cut> {
        let Search { examples, codes, room, .. } = self.search;
        match self.open {
            Open::Single(node) => single::best_cut(self.arch, codes, examples.pairs, node, room, bins),
            Open::Any => self.search.best_cut(self.arch, scratch),
        }
    }

    fn given_cut(&self, cut: C, scratch: &mut scan::Scratch) -> Option<Cut> {
        let Search { examples, codes, room, .. } = self.search;
        match self.open {
            Open::Single(node) => single::given_cut(self.arch, codes, examples.pairs, node, room, cut),
            Open::Any => self.search.given_cut(self.arch, cut, scratch),
        }
    }
}

fn cut_test(cut: Cut) -> (f64, CodeTest) {
    (cut.gain, CodeTest::Cut(cut.code))
}

/// Least and greatest of `codes`; (greatest, least) possible if there are none.
fn extremes<C: Code>(codes: &[C]) -> (C, C) {
    let mut extremes = (C::MISSING, C::default());
    for &code in codes {
        extremes = (extremes.0.min(code), extremes.1.max(code));
    }
    extremes
}

/// A random subset of `n` positions, neither none nor all.
fn random_subset(n: usize, random: &mut Stream) -> Vec<usize> {
    loop {
        let chosen: Vec<usize> = (0..n).filter(|_| random.next_u32() & 1 == 1).collect();
        if !chosen.is_empty() && chosen.len() < n {
            return chosen;
        }
    }
}
