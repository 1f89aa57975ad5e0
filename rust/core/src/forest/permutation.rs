//! The permutation score: how much worse a tree predicts its out-of-bag rows when one feature's
//! values are shuffled among them (mtr-ranking Eq. 3; Breiman 2001).
//!
//! A row's prediction can change only through features on its own path, and only from the first node
//! on at which the shuffled value goes the other way. So each row walks its path once and makes a
//! detour from there for each such feature. A step waits for the node it leads to; rows and detours
//! are walked many at a time, so that these waits overlap.
//!
//! Memory: two bytes for each out-of-bag row and feature that the tree tests.

use rand::seq::SliceRandom;

use super::bag::Bag;
use super::grow::Ground;
use super::grown::{CodeTest, Grown};
use super::space::Block;
use super::view::View;
use crate::error::Result;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, stream};
use crate::store::{Code, CodeStore, Slot, TargetColumn};

/// Errors up to this are what rounding leaves of none; they are relative to that of the mean.
const NO_ERROR: f64 = 1e-12;
/// Rows whose codes are laid out together, row by row.
const BLOCK_ROWS: usize = 256;
/// Rows that walk side by side.
const GROUP_ROWS: usize = 16;

/// Importances that `tree`, grown on `bag` with its members kept, gives by permutation:
/// (feature, value) by ascending feature.
///
/// # Errors
/// [`Interrupted`](crate::Error::Interrupted) on request.
pub(crate) fn of_tree(
    ground: Ground<'_>,
    subset: &[usize],
    tree: &Grown,
    bag: &Bag,
    number: u64,
) -> Result<Vec<(u32, f64)>> {
    let out_of_bag = bag.out_of_bag(ground.store.rows);
    let routes = Routes::new(tree);
    if out_of_bag.is_empty() || routes.features.is_empty() {
        return Ok(Vec::new());
    }
    let targets = Targets::new(ground.store, subset);
    let leaves = Leaves::new(&targets, tree, bag);
    let errors = Errors::new(&targets, &out_of_bag);
    let mut sums = Sums::new(&errors, routes.features.len());
    let shuffled = Shuffled::new(&routes, ground, &out_of_bag, number);
    let (mut codes, mut own) = (Rows::default(), Vec::new());
    let mut walk = Walk::new(&routes);
    for (b, rows) in out_of_bag.chunks(BLOCK_ROWS).enumerate() {
        ground.monitor.check()?;
        codes.start(routes.features.len(), rows.len());
        own.resize(rows.len(), 0);
        for (position, &feature) in routes.features.iter().enumerate() {
            pick(ground, feature, rows, &mut own);
            codes.set(position, &own, &shuffled.column(position)[b * BLOCK_ROWS..][..rows.len()]);
        }
        for (g, group) in rows.chunks(GROUP_ROWS).enumerate() {
            walk.follow(&routes, &codes, g * GROUP_ROWS, group.len());
            walk.detours(&routes, &codes);
            for (i, &row) in group.iter().enumerate() {
                sums.add(&errors, &targets, row as usize, leaves.of(walk.leaf_of(i)));
                for detour in walk.detours_of(i) {
                    sums.add_change(&errors, &targets, row as usize, detour.feature as usize, leaves.of(detour.node));
                }
            }
        }
    }
    Ok(sums.importances(&errors).into_iter().zip(&routes.features).map(|(value, &feature)| (feature, value)).collect())
}

/// A tree laid out for walking: the left child of a node follows it.
struct Routes {
    nodes: Vec<Step>,
    /// Features that the tree tests, ascending; steps know them by position.
    features: Vec<u32>,
    /// Bits of the categories that go left, for tests of subsets.
    subsets: Vec<Vec<u64>>,
    has_subsets: bool,
}

#[derive(Clone, Copy)]
struct Step {
    /// Position of the feature; [`LEAF`] for a leaf.
    feature: u32,
    right: u32,
    /// Highest code that goes left, or with [`SUBSET`] the number of the subset; [`MISSING_LEFT`].
    test: u32,
}

const LEAF: u32 = u32::MAX;
const SUBSET: u32 = 1 << 31;
const MISSING_LEFT: u32 = 1 << 30;

impl Routes {
    fn new(tree: &Grown) -> Self {
        let mut features: Vec<u32> = tree.nodes.iter().filter_map(|n| n.split.as_ref().map(|s| s.feature)).collect();
        features.sort_unstable();
        features.dedup();
        let mut subsets = Vec::new();
        let nodes = tree.nodes.iter().map(|node| {
            let Some(split) = &node.split else { return Step { feature: LEAF, right: 0, test: 0 } };
            let test = match &split.test {
                CodeTest::Cut(cut) => u32::from(*cut),
                CodeTest::Subset(codes) => {
                    subsets.push(bits(codes));
                    (subsets.len() as u32 - 1) | SUBSET
                }
            };
            let missing = if split.missing_left { MISSING_LEFT } else { 0 };
            let feature = features.binary_search(&split.feature).expect("a feature that is tested") as u32;
            Step { feature, right: split.children[1], test: test | missing }
        });
        let nodes = nodes.collect();
        Routes { nodes, features, has_subsets: !subsets.is_empty(), subsets }
    }

    /// The child of `node`, which is `step`, that `code` goes to.
    #[inline(always)]
    fn next(&self, node: u32, step: Step, code: u16) -> u32 {
        let left = if code == MISSING_U16 {
            step.test & MISSING_LEFT != 0
        } else if self.has_subsets && step.test & SUBSET != 0 {
            let bits = &self.subsets[(step.test & !(SUBSET | MISSING_LEFT)) as usize];
            bits.get(usize::from(code / 64)).is_some_and(|word| word >> (code % 64) & 1 == 1)
        } else {
            u32::from(code) <= step.test & !MISSING_LEFT
        };
        // No branch could be foretold.
        std::hint::select_unpredictable(left, node + 1, step.right)
    }
}

static NO_BLOCK: Block =
    Block { width: 0, dense: Vec::new(), weights: Vec::new(), starts: Vec::new(), indicators: Vec::new() };

fn bits(codes: &[u16]) -> Vec<u64> {
    let mut bits = vec![0u64; codes.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
    codes.iter().for_each(|&code| bits[usize::from(code / 64)] |= 1 << (code % 64));
    bits
}

/// Writes the codes of `rows` for a feature; missing is [`MISSING_U16`] for all features.
fn pick(ground: Ground<'_>, feature: u32, rows: &[u32], out: &mut [u16]) {
    let view = View::store(ground.store, &NO_BLOCK);
    match ground.store.slots[feature as usize] {
        Slot::Narrow(slot) => {
            view.codes_as(slot, rows, out, |code: u8| if code == u8::MISSING { MISSING_U16 } else { u16::from(code) })
        }
        Slot::Wide(slot) => view.codes(slot, rows, out),
    }
}

/// For each feature tested the codes of all out-of-bag rows, in random order.
struct Shuffled {
    n_rows: usize,
    codes: Vec<u16>,
}

impl Shuffled {
    fn new(routes: &Routes, ground: Ground<'_>, rows: &[u32], tree: u64) -> Self {
        let mut codes = vec![0; routes.features.len() * rows.len()];
        for (column, &feature) in codes.chunks_exact_mut(rows.len()).zip(&routes.features) {
            pick(ground, feature, rows, column);
            column.shuffle(&mut stream(ground.params.seed, Purpose::Permutation, tree, u64::from(feature)));
        }
        Shuffled { n_rows: rows.len(), codes }
    }

    fn column(&self, feature: usize) -> &[u16] {
        &self.codes[feature * self.n_rows..(feature + 1) * self.n_rows]
    }
}

/// Codes of a block of rows, row by row, since a walk reads a few of many features of one row: first
/// the row's own, then the shuffled ones.
#[derive(Default)]
struct Rows {
    n_features: usize,
    codes: Vec<u16>,
}

impl Rows {
    fn start(&mut self, n_features: usize, n_rows: usize) {
        self.n_features = n_features;
        self.codes.resize(2 * n_features * n_rows, 0);
    }

    fn set(&mut self, feature: usize, own: &[u16], shuffled: &[u16]) {
        let rows = self.codes.chunks_exact_mut(2 * self.n_features);
        for ((row, &own), &shuffled) in rows.zip(own).zip(shuffled) {
            row[feature] = own;
            row[self.n_features + feature] = shuffled;
        }
    }

    /// Where the codes of `row` start.
    fn start_of(&self, row: usize) -> u32 {
        (2 * row * self.n_features) as u32
    }

    #[inline(always)]
    fn own(&self, start: u32, feature: u32) -> u16 {
        self.codes[(start + feature) as usize]
    }

    #[inline(always)]
    fn shuffled(&self, start: u32, feature: u32) -> u16 {
        self.codes[(start + feature) as usize + self.n_features]
    }
}

/// The ways of a group of rows through the tree.
struct Walk {
    /// Where the codes of each row start.
    starts: Vec<u32>,
    /// For each row the nodes from the root to the leaf.
    paths: Vec<Vec<u32>>,
    /// By row.
    detours: Vec<Detour>,
    /// Where each row's detours end.
    ends: Vec<usize>,
    /// n_features tested; the last row that left its path by this feature.
    left: Vec<u64>,
    row: u64,
    walkers: Vec<Walker>,
}

/// The way of a row whose value of one feature is another.
#[derive(Clone, Copy)]
struct Detour {
    feature: u32,
    /// Its leaf.
    node: u32,
}

/// A detour on its way.
#[derive(Clone, Copy)]
struct Walker {
    number: u32,
    start: u32,
    feature: u32,
    node: u32,
}

impl Walk {
    fn new(routes: &Routes) -> Self {
        Walk {
            starts: Vec::new(),
            paths: Vec::new(),
            detours: Vec::new(),
            ends: Vec::new(),
            left: vec![0; routes.features.len()],
            row: 0,
            walkers: Vec::new(),
        }
    }

    /// The paths of `n` rows of `codes` from row `first` on.
    fn follow(&mut self, routes: &Routes, codes: &Rows, first: usize, n: usize) {
        self.starts.clear();
        self.starts.extend((first..first + n).map(|row| codes.start_of(row)));
        self.paths.resize(n, Vec::new());
        for path in &mut self.paths {
            path.clear();
            path.push(0);
        }
        let mut walking = true;
        while walking {
            walking = false;
            for (path, &start) in self.paths.iter_mut().zip(&self.starts) {
                let node = path[path.len() - 1];
                let step = routes.nodes[node as usize];
                if step.feature != LEAF {
                    path.push(routes.next(node, step, codes.own(start, step.feature)));
                    walking = true;
                }
            }
        }
    }

    /// For each row and each feature whose shuffled code leaves its path: the leaf that it leads to.
    fn detours(&mut self, routes: &Routes, codes: &Rows) {
        self.detours.clear();
        self.ends.clear();
        self.walkers.clear();
        for (path, &start) in self.paths.iter().zip(&self.starts) {
            self.row += 1;
            for pair in path.windows(2) {
                let step = routes.nodes[pair[0] as usize];
                let node = routes.next(pair[0], step, codes.shuffled(start, step.feature));
                let left = &mut self.left[step.feature as usize];
                if node != pair[1] && *left != self.row {
                    *left = self.row;
                    let number = self.detours.len() as u32;
                    self.detours.push(Detour { feature: step.feature, node });
                    self.walkers.push(Walker { number, start, feature: step.feature, node });
                }
            }
            self.ends.push(self.detours.len());
        }
        while !self.walkers.is_empty() {
            let mut walking = 0;
            for i in 0..self.walkers.len() {
                let mut walker = self.walkers[i];
                let step = routes.nodes[walker.node as usize];
                if step.feature == LEAF {
                    self.detours[walker.number as usize].node = walker.node;
                    continue;
                }
                let own = codes.own(walker.start, step.feature);
                let code =
                    if step.feature == walker.feature { codes.shuffled(walker.start, step.feature) } else { own };
                walker.node = routes.next(walker.node, step, code);
                self.walkers[walking] = walker;
                walking += 1;
            }
            self.walkers.truncate(walking);
        }
    }

    fn leaf_of(&self, row: usize) -> u32 {
        *self.paths[row].last().expect("a path ends in a leaf")
    }

    fn detours_of(&self, row: usize) -> &[Detour] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.detours[start..self.ends[row]]
    }
}

/// The targets a tree predicts, by kind.
struct Targets<'a> {
    numeric: Vec<Numeric<'a>>,
    /// Codes, and the number of classes.
    nominal: Vec<(&'a [u16], usize)>,
    weights: &'a [f64],
}

/// A numeric target seen on the scale from −1 to 1: errors are relative, and squares do not overflow.
struct Numeric<'a> {
    values: &'a [f64],
    middle: f64,
    half_range: f64,
}

impl<'a> Numeric<'a> {
    fn new(values: &'a [f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let half_range = high / 2.0 - low / 2.0;
        Numeric {
            values,
            middle: f64::midpoint(low, high),
            half_range: if half_range > 0.0 { half_range } else { 1.0 },
        }
    }

    /// NaN where missing.
    #[inline(always)]
    fn at(&self, row: usize) -> f64 {
        (self.values[row] - self.middle) / self.half_range
    }
}

impl<'a> Targets<'a> {
    fn new(store: &'a CodeStore, subset: &[usize]) -> Self {
        let mut targets = Targets { numeric: Vec::new(), nominal: Vec::new(), weights: &store.weights };
        for &target in subset {
            match &store.targets[target] {
                TargetColumn::Numeric(values) => targets.numeric.push(Numeric::new(values)),
                TargetColumn::Nominal { categories, codes } => targets.nominal.push((codes, categories.names.len())),
            }
        }
        targets
    }

    fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }
}

/// What each leaf predicts: the mean, and the most frequent class (the first of equals).
struct Leaves {
    /// Position among the leaves, by node.
    position: Vec<u32>,
    n_numeric: usize,
    n_nominal: usize,
    /// n_leaves x n_numeric
    means: Vec<f64>,
    /// n_leaves x n_nominal
    classes: Vec<u16>,
}

/// One leaf's predictions.
#[derive(Clone, Copy)]
struct Prediction<'a> {
    means: &'a [f64],
    classes: &'a [u16],
}

impl Leaves {
    fn new(targets: &Targets<'_>, tree: &Grown, bag: &Bag) -> Self {
        let mut position = vec![LEAF; tree.nodes.len()];
        let leaves = tree.nodes.iter().enumerate().filter(|(_, node)| node.split.is_none());
        leaves.enumerate().for_each(|(leaf, (node, _))| position[node] = leaf as u32);
        let (n_numeric, n_nominal) = (targets.numeric.len(), targets.nominal.len());
        let mut leaves = Leaves { position, n_numeric, n_nominal, means: Vec::new(), classes: Vec::new() };
        let everyone: Vec<(u32, u32)> = bag.rows.iter().copied().zip(bag.counts.iter().copied()).collect();
        let means: Vec<f64> = targets.numeric.iter().map(|y| mean(y, targets, &everyone).unwrap_or(0.0)).collect();
        let mut counts = vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)];
        let classes: Vec<u16> =
            targets.nominal.iter().map(|(y, _)| majority(y, targets, &everyone, &mut counts).unwrap_or(0)).collect();
        for members in tree.leaf_members() {
            for (y, whole) in targets.numeric.iter().zip(&means) {
                leaves.means.push(mean(y, targets, members).unwrap_or(*whole));
            }
            for ((y, _), whole) in targets.nominal.iter().zip(&classes) {
                leaves.classes.push(majority(y, targets, members, &mut counts).unwrap_or(*whole));
            }
        }
        leaves
    }

    fn of(&self, node: u32) -> Prediction<'_> {
        let leaf = self.position[node as usize] as usize;
        Prediction {
            means: &self.means[leaf * self.n_numeric..(leaf + 1) * self.n_numeric],
            classes: &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal],
        }
    }
}

/// Weighted mean over the members whose value is known.
fn mean(values: &Numeric<'_>, targets: &Targets<'_>, members: &[(u32, u32)]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for &(row, count) in members {
        let value = values.at(row as usize);
        if !value.is_nan() {
            let weight = f64::from(count) * targets.weight(row as usize);
            sum += weight * value;
            total += weight;
        }
    }
    (total > 0.0).then(|| sum / total)
}

/// The class of most weight among the members whose class is known; `counts` is scratch of zeros.
fn majority(codes: &[u16], targets: &Targets<'_>, members: &[(u32, u32)], counts: &mut [f64]) -> Option<u16> {
    let mut best: Option<(f64, u16)> = None;
    for &(row, count) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            counts[usize::from(code)] += f64::from(count) * targets.weight(row as usize);
        }
    }
    for &(row, _) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            let weight = std::mem::take(&mut counts[usize::from(code)]);
            if best.is_none_or(|(most, first)| weight > most || (weight == most && code < first)) {
                best = Some((weight, code));
            }
        }
    }
    best.map(|(_, code)| code)
}

/// How the errors of the targets make one number.
struct Errors {
    /// n_numeric; sum of squares around the mean of the rows looked at, 0 where a target says nothing.
    spread: Vec<f64>,
    /// n_nominal; what a mistake on a row of weight 1 adds.
    mistake: Vec<f64>,
    /// Targets that count.
    n_targets: f64,
}

impl Errors {
    fn new(targets: &Targets<'_>, rows: &[u32]) -> Self {
        let members: Vec<(u32, u32)> = rows.iter().map(|&row| (row, 1)).collect();
        let spread = |y: &Numeric<'_>| {
            let Some(mean) = mean(y, targets, &members) else { return 0.0 };
            let known = rows.iter().map(|&row| row as usize).filter(|&row| !y.at(row).is_nan());
            known.map(|row| targets.weight(row) * (y.at(row) - mean).powi(2)).sum()
        };
        let spread: Vec<f64> = targets.numeric.iter().map(spread).collect();
        let weight = |(codes, _): &(&[u16], usize)| -> f64 {
            let known = rows.iter().map(|&row| row as usize).filter(|&row| codes[row] != MISSING_U16);
            known.map(|row| targets.weight(row)).sum()
        };
        let weights: Vec<f64> = targets.nominal.iter().map(weight).collect();
        let n_targets = spread.iter().chain(&weights).filter(|&&size| size > 0.0).count() as f64;
        let mistake = weights.iter().map(|&w| if w > 0.0 { 1.0 / (n_targets * w) } else { 0.0 }).collect();
        Errors { spread, mistake, n_targets }
    }

    /// Share of the error rate that `prediction` makes for `row` on the nominal targets.
    fn mistakes(&self, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) -> f64 {
        let mut sum = 0.0;
        for (((codes, _), &class), mistake) in targets.nominal.iter().zip(prediction.classes).zip(&self.mistake) {
            let code = codes[row];
            sum += if code != class && code != MISSING_U16 { *mistake } else { 0.0 };
        }
        targets.weight(row) * sum
    }
}

/// Errors of the tree as it is, and how they change with each feature.
struct Sums {
    /// n_numeric
    squares: Vec<f64>,
    mistakes: f64,
    /// n_features tested x n_numeric
    square_changes: Vec<f64>,
    /// n_features tested
    mistake_changes: Vec<f64>,
    row: RowErrors,
}

/// The row at hand.
#[derive(Default)]
struct RowErrors {
    weight: f64,
    /// n_numeric; NaN where missing.
    values: Vec<f64>,
    /// n_numeric
    squares: Vec<f64>,
    mistakes: f64,
}

impl RowErrors {
    /// Squared error of predicting `mean` for numeric target `j`.
    #[inline(always)]
    fn square(&self, j: usize, mean: f64) -> f64 {
        let error = self.values[j] - mean;
        if error.is_nan() { 0.0 } else { self.weight * error * error }
    }
}

impl Sums {
    fn new(errors: &Errors, n_features: usize) -> Self {
        let n_numeric = errors.spread.len();
        Sums {
            squares: vec![0.0; n_numeric],
            mistakes: 0.0,
            square_changes: vec![0.0; n_features * n_numeric],
            mistake_changes: vec![0.0; n_features],
            row: RowErrors::default(),
        }
    }

    /// Adds the errors of `row`, which becomes the row at hand.
    fn add(&mut self, errors: &Errors, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) {
        let at_hand = &mut self.row;
        at_hand.weight = targets.weight(row);
        at_hand.values.clear();
        at_hand.values.extend(targets.numeric.iter().map(|target| target.at(row)));
        at_hand.squares.clear();
        for (j, &mean) in prediction.means.iter().enumerate() {
            let square = at_hand.square(j, mean);
            at_hand.squares.push(square);
            self.squares[j] += square;
        }
        at_hand.mistakes = errors.mistakes(targets, row, prediction);
        self.mistakes += at_hand.mistakes;
    }

    /// Adds the change for the row at hand, `row`, when `feature` leads it to `prediction`.
    fn add_change(
        &mut self,
        errors: &Errors,
        targets: &Targets<'_>,
        row: usize,
        feature: usize,
        prediction: Prediction<'_>,
    ) {
        let n_numeric = self.squares.len();
        let changes = &mut self.square_changes[feature * n_numeric..(feature + 1) * n_numeric];
        for ((j, change), &mean) in changes.iter_mut().enumerate().zip(prediction.means) {
            *change += self.row.square(j, mean) - self.row.squares[j];
        }
        self.mistake_changes[feature] += errors.mistakes(targets, row, prediction) - self.row.mistakes;
    }

    /// The relative increase of the error for each feature; the increase itself if there is no error.
    fn importances(&self, errors: &Errors) -> Vec<f64> {
        let n_numeric = self.squares.len();
        let error = |square_changes: &[f64], mistake_change: f64| {
            let relative = |j: usize| {
                let squares = self.squares[j] + square_changes.get(j).copied().unwrap_or(0.0);
                if errors.spread[j] > 0.0 { (squares.max(0.0) / errors.spread[j]).sqrt() } else { 0.0 }
            };
            let numeric: f64 = (0..n_numeric).map(relative).sum();
            numeric / errors.n_targets.max(1.0) + (self.mistakes + mistake_change)
        };
        let base = error(&[], 0.0);
        let importance = |feature: usize| {
            let changes = &self.square_changes[feature * n_numeric..(feature + 1) * n_numeric];
            if changes.iter().all(|change| *change == 0.0) && self.mistake_changes[feature] == 0.0 {
                return 0.0;
            }
            let increase = error(changes, self.mistake_changes[feature]) - base;
            if base > NO_ERROR { increase / base } else { increase }
        };
        (0..self.mistake_changes.len()).map(importance).collect()
    }
}
