//! Growing one tree: top-down, depth first, with an explicit stack.
//!
//! The examples of a node are a range of the bag. A split parts the range in two, keeping the order
//! of rows, so that sums are taken in row order wherever the rows lie.

use rand::{Rng, RngExt};

use super::bag::Bag;
use super::moments::{EXAMPLES, Shape, WEIGHT, rounded};
use super::params::{Ensemble, ForestParams};
use super::pool::{Mark, Pool};
use super::space::Space;
use super::split::nominal::{Present, Subset};
use super::split::scan::{self, Examples};
use super::split::simd::Level;
use super::split::{Cut, Room, single};
use super::view::{CASCADE, Stored, View, row_bytes};
use crate::error::Result;
use crate::monitor::Monitor;
use crate::profile::{Cuts, Scale};
use crate::rng::{Purpose, ROOT, Stream, child, stream};
use crate::store::{Chunk, Code, CodeStore, Slot};

/// Decreases below this are rounding noise: the impurity of the whole data is 1.
const LEAST_GAIN: f64 = 1e-18;
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

/// A test on codes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CodeTest {
    /// Codes up to this go left.
    Cut(u16),
    /// These go left; ascending.
    Subset(Vec<u16>),
}

impl CodeTest {
    /// Whether `code`, which is not missing, goes left.
    #[inline(always)]
    pub(crate) fn is_left(&self, code: u16) -> bool {
        match self {
            CodeTest::Cut(cut) => code <= *cut,
            CodeTest::Subset(codes) => codes.binary_search(&code).is_ok(),
        }
    }
}

/// A split of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct GrownSplit {
    pub(crate) feature: u32,
    pub(crate) test: CodeTest,
    pub(crate) missing_left: bool,
    /// Impurity decrease.
    pub(crate) gain: f64,
    /// Positions of the left and the right child.
    pub(crate) children: [u32; 2],
}

/// A node of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct GrownNode {
    pub(crate) depth: u32,
    pub(crate) examples: f64,
    pub(crate) weight: f64,
    pub(crate) split: Option<GrownSplit>,
}

/// A grown tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grown {
    /// In preorder, left before right.
    pub(crate) nodes: Vec<GrownNode>,
    /// For each split in preorder, n_targets parts of its gain; empty unless asked for.
    pub(crate) gain_by_target: Vec<f64>,
}

/// Grows the tree with number `tree` on `bag`.
///
/// # Errors
/// [`Interrupted`](crate::Error::Interrupted) on request.
pub(crate) fn grow(ground: Ground<'_>, bag: Bag, tree: u64, level: Level) -> Result<Grown> {
    let mut grower = Grower::new(ground, bag, tree, level);
    let whole = View::store(ground.store, &ground.space.block);
    let root =
        Frame { examples: 0..grower.items.rows.len(), depth: 0, path: ROOT, parent: None, mark: grower.pool.mark() };
    let stage = if ground.store.rows * grower.row_bytes <= CASCADE[0] { 1 } else { 0 };
    grower.subtree(whole, stage, root)?;
    Ok(grower.grown)
}

/// A node that waits to be grown.
struct Frame {
    /// Range of the items.
    examples: std::ops::Range<usize>,
    depth: u32,
    path: u64,
    /// The parent's position, and 0 for its left or 1 for its right child.
    parent: Option<(u32, usize)>,
    mark: Mark,
}

/// Examples of the bag, in the order of the nodes they are in.
#[derive(Default)]
struct Items {
    rows: Vec<u32>,
    counts: Vec<u32>,
    /// Count times component value, where there is but one component; else empty.
    sums: Vec<f64>,
}

impl Items {
    fn examples<'a>(&'a self, range: std::ops::Range<usize>, view: View<'a>) -> Examples<'a> {
        Examples { block: view.block, rows: &self.rows[range.clone()], counts: &self.counts[range] }
    }

    /// The sums in `range`, nothing if they are not kept.
    fn sums(&self, range: std::ops::Range<usize>) -> &[f64] {
        if self.sums.is_empty() { &[] } else { &self.sums[range] }
    }

    /// Takes those of `from` in `range` whose value is known.
    fn take_known<C: Code>(&mut self, from: &Items, range: std::ops::Range<usize>, codes: &mut Vec<C>) {
        let known = |values: &[u32], out: &mut Vec<u32>| {
            out.clear();
            out.extend(values.iter().zip(&*codes).filter(|&(_, &code)| code != C::MISSING).map(|(value, _)| *value));
        };
        known(&from.rows[range.clone()], &mut self.rows);
        known(&from.counts[range.clone()], &mut self.counts);
        self.sums.clear();
        let sums = from.sums(range).iter().zip(&*codes);
        self.sums.extend(sums.filter(|&(_, &code)| code != C::MISSING).map(|(sum, _)| *sum));
        codes.retain(|&code| code != C::MISSING);
    }
}

/// The best test found so far in a node.
struct Found {
    gain: f64,
    feature: u32,
    test: CodeTest,
}

/// The sums of a node in the form its searches need.
enum Open {
    Single(single::Node),
    Any,
}

struct Grower<'a> {
    ground: Ground<'a>,
    tree: u64,
    level: Level,
    shape: Shape,
    /// One dense component, row weights all 1, nothing missing.
    is_single: bool,
    per_node: usize,
    row_bytes: usize,
    items: Items,
    pool: Pool,
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
    sides: Vec<Side>,
    left: Vec<f64>,
    total: Vec<f64>,
    spill: Items,
}

/// Where an example goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Missing,
}

impl<'a> Grower<'a> {
    fn new(ground: Ground<'a>, bag: Bag, tree: u64, level: Level) -> Self {
        let (store, space) = (ground.store, ground.space);
        let shape = Shape::of(space);
        let is_single = shape.is_ordered() && !shape.partial && space.block.weights.is_empty();
        let sums = match is_single {
            true => {
                let value = |(&row, &count): (&u32, &u32)| f64::from(count) * space.block.dense[row as usize];
                bag.rows.iter().zip(&bag.counts).map(value).collect()
            }
            false => Vec::new(),
        };
        let most_codes = |narrow: bool| {
            let codings = store.codings.iter().filter(|coding| coding.is_narrow() == narrow);
            codings.map(|coding| coding.n_codes()).max().unwrap_or(0)
        };
        Grower {
            ground,
            tree,
            level,
            is_single,
            per_node: ground.params.features_per_node(store.codings.len()),
            row_bytes: row_bytes(&store.slots),
            items: Items { rows: bag.rows, counts: bag.counts, sums },
            pool: Pool::new(store.codings.iter().map(|coding| coding.n_codes() < 2)),
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
                sides: Vec::new(),
                left: Vec::new(),
                total: Vec::new(),
                spill: Items::default(),
            },
            shape,
            copies: Default::default(),
        }
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
            if let Some(children) = self.node(view, frame)? {
                stack.extend(children);
            }
        }
        Ok(())
    }

    /// Copies the codes of `frame` together and grows its subtree there.
    fn copy_together(&mut self, view: View<'_>, stage: usize, frame: Frame) -> Result<()> {
        let mut copy = std::mem::take(&mut self.copies[stage]);
        let rows = &mut self.items.rows[frame.examples.clone()];
        view.gather(rows, &mut copy);
        let block = view.block.gather(rows);
        rows.iter_mut().enumerate().for_each(|(local, row)| *row = local as u32);
        let done = self.subtree(View::local(&copy, &block), stage + 1, frame);
        self.copies[stage] = copy;
        done
    }

    /// Makes a node of `frame`; gives its children, the left one last, if it is split.
    fn node(&mut self, view: View<'_>, frame: Frame) -> Result<Option<[Frame; 2]>> {
        self.check(frame.examples.len())?;
        let range = frame.examples.clone();
        let counts = &self.items.counts[range.clone()];
        let examples = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        let weight = self.weight(view, range.clone(), examples as f64);
        let number = self.grown.nodes.len() as u32;
        if let Some((parent, side)) = frame.parent {
            let split = self.grown.nodes[parent as usize].split.as_mut().expect("a parent is split");
            split.children[side] = number;
        }
        self.grown.nodes.push(GrownNode { depth: frame.depth, examples: examples as f64, weight, split: None });
        let params = self.ground.params;
        let may_split = examples >= 2 * params.min_samples_leaf
            && params.max_depth.is_none_or(|most| (frame.depth as usize) < most)
            && !self.is_pure(view, range.clone());
        if !may_split {
            return Ok(None);
        }
        let Some(found) = self.search(view, &frame)? else { return Ok(None) };
        let Some((split, middle)) = self.part(view, range.clone(), found) else { return Ok(None) };
        self.grown.nodes[number as usize].split = Some(split);
        let mark = self.pool.mark();
        let child_frame = |examples, side: usize| Frame {
            examples,
            depth: frame.depth + 1,
            path: child(frame.path, side == 1),
            parent: Some((number, side)),
            mark,
        };
        Ok(Some([child_frame(middle..range.end, 1), child_frame(range.start..middle, 0)]))
    }

    fn check(&mut self, examples: usize) -> Result<()> {
        self.since_check += examples + 1;
        if self.since_check > LARGE_NODE {
            self.since_check = 0;
            self.ground.monitor.check()?;
        }
        Ok(())
    }

    fn weight(&self, view: View<'_>, range: std::ops::Range<usize>, examples: f64) -> f64 {
        if view.block.weights.is_empty() {
            return examples;
        }
        let rows = self.items.rows[range.clone()].iter().zip(&self.items.counts[range]);
        rows.map(|(&row, &count)| f64::from(count) * view.block.weight(row as usize)).sum()
    }

    /// Whether all examples have the same component values.
    fn is_pure(&self, view: View<'_>, range: std::ops::Range<usize>) -> bool {
        if self.is_single {
            let (counts, sums) = (&self.items.counts[range.clone()], &self.items.sums[range]);
            let (count, sum) = (f64::from(counts[0]), sums[0]);
            return counts.iter().zip(sums).all(|(&c, &s)| s * count == sum * f64::from(c));
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

    /// The best test over the features drawn for the node.
    fn search(&mut self, view: View<'_>, frame: &Frame) -> Result<Option<Found>> {
        let range = frame.examples.clone();
        let open = match self.is_single {
            true => Open::Single(single::Node::new(&self.items.counts[range.clone()], &self.items.sums[range.clone()])),
            false => {
                self.buffers.node.open(&self.shape, self.items.examples(range.clone(), view));
                Open::Any
            }
        };
        let mut random = stream(self.ground.params.seed, Purpose::Node, self.tree, frame.path);
        let mut best: Option<Found> = None;
        let mut interrupted = Ok(());
        let mut pool = std::mem::replace(&mut self.pool, Pool::new(std::iter::empty()));
        pool.draw(self.per_node, &mut random, |feature, random| {
            if range.len() > LARGE_NODE && interrupted.is_ok() {
                interrupted = self.ground.monitor.check();
            }
            if interrupted.is_err() {
                return true;
            }
            let (varies, found) = self.candidate(view, range.clone(), feature, &open, random);
            if let Some(found) = found {
                let better = best.as_ref().is_none_or(|best| {
                    found.gain > best.gain || (found.gain == best.gain && found.feature < best.feature)
                });
                if better {
                    best = Some(found);
                }
            }
            varies
        });
        self.pool = pool;
        interrupted.map(|()| best)
    }

    /// Whether `feature` varies in the node, and its best test.
    fn candidate(
        &mut self,
        view: View<'_>,
        range: std::ops::Range<usize>,
        feature: u32,
        open: &Open,
        random: &mut Stream,
    ) -> (bool, Option<Found>) {
        match self.ground.store.slots[feature as usize] {
            Slot::Narrow(slot) => {
                let mut codes = std::mem::take(&mut self.buffers.narrow);
                codes.resize(range.len(), 0);
                view.codes(slot, &self.items.rows[range.clone()], &mut codes);
                let out = self.candidate_on(view, range, feature, open, random, &mut codes);
                self.buffers.narrow = codes;
                out
            }
            Slot::Wide(slot) => {
                let mut codes = std::mem::take(&mut self.buffers.wide);
                codes.resize(range.len(), 0);
                view.codes(slot, &self.items.rows[range.clone()], &mut codes);
                let out = self.candidate_on(view, range, feature, open, random, &mut codes);
                self.buffers.wide = codes;
                out
            }
        }
    }

    fn candidate_on<C: Stored>(
        &mut self,
        view: View<'_>,
        range: std::ops::Range<usize>,
        feature: u32,
        open: &Open,
        random: &mut Stream,
        codes: &mut Vec<C>,
    ) -> (bool, Option<Found>) {
        let ground = self.ground;
        let coding = &ground.store.codings[feature as usize];
        let min_leaf = ground.params.min_samples_leaf as f64;
        let n = codes.len();
        let mut share = 1.0;
        let mut missing = 0.0;
        let mut known_open = None;
        let mut known = std::mem::take(&mut self.buffers.known);
        if coding.has_missing && codes.contains(&C::MISSING) {
            let all: u64 = self.items.counts[range.clone()].iter().map(|&count| u64::from(count)).sum();
            let all_weight = self.weight(view, range.clone(), all as f64);
            known.take_known(&self.items, range.clone(), codes);
            let local = 0..known.rows.len();
            let examples: u64 = known.counts.iter().map(|&count| u64::from(count)).sum();
            missing = (all - examples) as f64;
            known_open = Some(match open {
                Open::Single(_) => {
                    share = examples as f64 / all_weight;
                    Open::Single(single::Node::new(&known.counts, &known.sums))
                }
                Open::Any => {
                    self.buffers.known_node.open(&self.shape, known.examples(local, view));
                    share = self.buffers.known_node.weight() / all_weight;
                    Open::Any
                }
            });
        }
        let (low, high) = extremes(codes);
        if low >= high {
            self.buffers.known = known;
            return (false, None);
        }
        let has_known = known_open.is_some();
        let buffers = &mut self.buffers;
        let (items, range) = if has_known { (&known, 0..codes.len()) } else { (&self.items, range) };
        let here = Here {
            shape: &self.shape,
            level: self.level,
            examples: items.examples(range.clone(), view),
            sums: items.sums(range),
            room: Room { min_leaf, missing },
            n_codes: coding.n_codes(),
        };
        debug_assert!(codes.len() <= n);
        let open = known_open.as_ref().unwrap_or(open);
        let node = if has_known { &buffers.known_node } else { &buffers.node };
        let bins = if size_of::<C>() == 1 { &mut buffers.bins_narrow } else { &mut buffers.bins_wide };
        let at_random = ground.params.ensemble == Ensemble::ExtraTrees;
        let found = match (&coding.scale, at_random) {
            (Scale::Numeric(_), false) => here.best_cut(codes, open, node, bins, &mut buffers.scratch).map(cut_test),
            (Scale::Numeric(cuts), true) => {
                let cut = random_cut(cuts, low.index(), high.index(), random);
                here.given_cut(codes, C::from_u16(cut), open, node, &mut buffers.scratch).map(cut_test)
            }
            (Scale::Nominal(_), _) => {
                buffers.present.open(here.shape, here.examples, codes, here.n_codes);
                let subset = if at_random {
                    let chosen = random_subset(buffers.present.codes.len(), random);
                    buffers.present.given(here.shape, here.room, &chosen)
                } else {
                    buffers.present.best(here.shape, here.room)
                };
                subset.map(|Subset { gain, codes }| (gain, CodeTest::Subset(codes)))
            }
        };
        self.buffers.known = known;
        let gain = |gain: f64| if share == 1.0 { gain } else { rounded(gain * share) };
        (true, found.map(|(found, test)| Found { gain: gain(found), feature, test }))
    }

    /// Parts the examples of a node by `found`; gives the split and where the right side starts.
    /// `None` if the gain is rounding noise.
    fn part(&mut self, view: View<'_>, range: std::ops::Range<usize>, found: Found) -> Option<(GrownSplit, usize)> {
        let mut sides = std::mem::take(&mut self.buffers.sides);
        sides.clear();
        let rows = &self.items.rows[range.clone()];
        match self.ground.store.slots[found.feature as usize] {
            Slot::Narrow(slot) => {
                self.buffers.narrow.resize(rows.len(), 0);
                view.codes(slot, rows, &mut self.buffers.narrow);
                sides.extend(self.buffers.narrow.iter().map(|&code| side(code, &found.test)));
            }
            Slot::Wide(slot) => {
                self.buffers.wide.resize(rows.len(), 0);
                view.codes(slot, rows, &mut self.buffers.wide);
                sides.extend(self.buffers.wide.iter().map(|&code| side(code, &found.test)));
            }
        }
        let (known, node) = self.sum_sides(view, range.clone(), &sides);
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        let share = known / node;
        let gain = share * self.shape.gain(left, total);
        let missing_left = left[WEIGHT] >= total[WEIGHT] - left[WEIGHT];
        if gain > LEAST_GAIN {
            self.record_by_target(share);
            let middle = self.partition(range, &sides, missing_left);
            self.buffers.sides = sides;
            let split = GrownSplit { feature: found.feature, test: found.test, missing_left, gain, children: [0; 2] };
            Some((split, middle))
        } else {
            self.buffers.sides = sides;
            None
        }
    }

    /// Sums of the left side and of all known examples, into the buffers; gives the weight of the
    /// known ones and of all.
    fn sum_sides(&mut self, view: View<'_>, range: std::ops::Range<usize>, sides: &[Side]) -> (f64, f64) {
        let (left, total) = (&mut self.buffers.left, &mut self.buffers.total);
        for sums in [&mut *left, &mut *total] {
            sums.clear();
            sums.resize(self.shape.len(), 0.0);
        }
        let mut missing = 0.0;
        let items = self.items.rows[range.clone()].iter().zip(&self.items.counts[range]).zip(sides);
        for ((&row, &count), side) in items {
            let (row, count) = (row as usize, f64::from(count));
            let sums = match side {
                Side::Left => &mut *left,
                // The right side for now.
                Side::Right => &mut *total,
                Side::Missing => {
                    missing += count * view.block.weight(row);
                    continue;
                }
            };
            self.shape.add(sums, view.block, row, count);
        }
        total.iter_mut().zip(&*left).for_each(|(total, left)| *total += left);
        debug_assert!(total[EXAMPLES] >= left[EXAMPLES]);
        (total[WEIGHT], total[WEIGHT] + missing)
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

    /// Moves the right side behind the left one, keeping the order of each; gives where it starts.
    fn partition(&mut self, range: std::ops::Range<usize>, sides: &[Side], missing_left: bool) -> usize {
        let goes_left = |side: Side| side == Side::Left || (side == Side::Missing && missing_left);
        let spill = &mut self.buffers.spill;
        let n_left = part_slice(&mut self.items.rows[range.clone()], &mut spill.rows, sides, goes_left);
        part_slice(&mut self.items.counts[range.clone()], &mut spill.counts, sides, goes_left);
        if !self.items.sums.is_empty() {
            part_slice(&mut self.items.sums[range.clone()], &mut spill.sums, sides, goes_left);
        }
        range.start + n_left
    }
}

/// A candidate's surroundings: the node's examples, as far as their value is known.
struct Here<'a> {
    shape: &'a Shape,
    level: Level,
    examples: Examples<'a>,
    sums: &'a [f64],
    room: Room,
    n_codes: usize,
}

impl Here<'_> {
    fn best_cut<C: Code>(
        &self,
        codes: &[C],
        open: &Open,
        node: &scan::Node,
        bins: &mut single::Bins,
        scratch: &mut scan::Scratch,
    ) -> Option<Cut> {
        match open {
            Open::Single(node) => {
                single::best_cut(self.level, codes, self.examples.counts, self.sums, node, self.room, bins)
            }
            Open::Any => {
                scan::best_cut(self.level, self.shape, self.examples, codes, self.n_codes, node, self.room, scratch)
            }
        }
    }

    fn given_cut<C: Code>(
        &self,
        codes: &[C],
        cut: C,
        open: &Open,
        node: &scan::Node,
        scratch: &mut scan::Scratch,
    ) -> Option<Cut> {
        match open {
            Open::Single(node) => {
                single::given_cut(self.level, codes, self.examples.counts, self.sums, node, self.room, cut)
            }
            Open::Any => scan::given_cut(self.level, self.shape, self.examples, codes, cut, node, self.room, scratch),
        }
    }
}

fn cut_test(cut: Cut) -> (f64, CodeTest) {
    (cut.gain, CodeTest::Cut(cut.code))
}

fn side<C: Code>(code: C, test: &CodeTest) -> Side {
    if code == C::MISSING {
        Side::Missing
    } else if test.is_left(code.index() as u16) {
        Side::Left
    } else {
        Side::Right
    }
}

/// Least and greatest of `codes`; (greatest, least) possible if there are none.
fn extremes<C: Code>(codes: &[C]) -> (C, C) {
    let mut extremes = (C::MISSING, C::default());
    for &code in codes {
        extremes = (extremes.0.min(code), extremes.1.max(code));
    }
    extremes
}

/// A cut uniform between the values of codes `low` and `high` (Geurts et al. 2006, Table 1).
fn random_cut(cuts: &Cuts, low: usize, high: usize, random: &mut Stream) -> u16 {
    let share: f64 = random.random();
    let at = cuts.values[low] * (1.0 - share) + cuts.values[high] * share;
    let code = low + cuts.values[low..=high].partition_point(|&value| value <= at);
    (code.max(low + 1) - 1).min(high - 1) as u16
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

/// Moves the right side of `values` behind the left one.
fn part_slice<T: Copy + Default>(
    values: &mut [T],
    spill: &mut Vec<T>,
    sides: &[Side],
    goes_left: impl Fn(Side) -> bool,
) -> usize {
    spill.resize(values.len().max(spill.len()), T::default());
    let (mut left, mut right) = (0, 0);
    for i in 0..values.len() {
        let value = values[i];
        // Written to both, so that nothing depends on a guess.
        values[left] = value;
        spill[right] = value;
        let goes_left = goes_left(sides[i]);
        left += usize::from(goes_left);
        right += usize::from(!goes_left);
    }
    values[left..].copy_from_slice(&spill[..right]);
    left
}
