//! The permutation score: how much worse a tree predicts its out-of-bag rows when one feature's
//! values are shuffled among them (mtr-ranking Eq. 3; Breiman 2001).
//!
//! A row's prediction can change only through features on its own path, and only from the first node
//! on at which the shuffled value goes the other way. So each row walks its path once and starts
//! anew from there. Rows are taken in blocks whose codes are laid out row by row, since a walk reads
//! one code here and one there.
//!
//! Memory: one code for each out-of-bag row and feature that the tree tests.

use rand::seq::SliceRandom;

use super::bag::Bag;
use super::grow::{CodeTest, Ground, Grown};
use super::space::Block;
use super::view::View;
use crate::error::Result;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, stream};
use crate::store::{Code, CodeStore, Slot, TargetColumn};

/// Rows laid out together; their codes fit the inner cache.
const BLOCK_ROWS: usize = 512;

/// Importances that `tree` gives by permutation: (feature, value) by ascending feature.
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
    let leaves = Leaves::new(ground, &targets, &routes, bag)?;
    let errors = Errors::new(&targets, &out_of_bag);
    let mut sums = Sums::new(&errors, routes.features.len());
    let shuffled = routes.shuffle(ground, &out_of_bag, number);
    let mut walk = Walk::new(&routes);
    let (mut codes, mut others) = (Matrix::default(), Matrix::default());
    for (b, rows) in out_of_bag.chunks(BLOCK_ROWS).enumerate() {
        ground.monitor.check()?;
        codes.fill(&routes, ground, rows);
        others.fill_from(&shuffled, b * BLOCK_ROWS, rows.len());
        for (i, &row) in rows.iter().enumerate() {
            let row = row as usize;
            walk.follow(&routes, codes.row(i));
            let leaf = *walk.path.last().expect("a path ends in a leaf");
            let base = sums.add(&errors, &targets, row, leaves.of(leaf));
            walk.detours(&routes, codes.row(i), others.row(i), |feature, leaf| {
                sums.add_change(&errors, &targets, row, feature, base, leaves.of(leaf));
            });
        }
    }
    Ok(sums.importances(&errors).into_iter().zip(&routes.features).map(|(value, &feature)| (feature, value)).collect())
}

/// A tree laid out for walking.
struct Routes {
    nodes: Vec<Step>,
    /// Features that the tree tests, ascending; steps know them by position.
    features: Vec<u32>,
    /// Bits of the categories that go left, for tests of subsets.
    subsets: Vec<Vec<u64>>,
}

#[derive(Clone, Copy)]
struct Step {
    /// Position of the feature; [`LEAF`] for a leaf.
    feature: u32,
    /// Highest code that goes left, or, with `subset`, the number of the subset.
    test: u32,
    subset: bool,
    missing_left: bool,
    children: [u32; 2],
}

const LEAF: u32 = u32::MAX;

impl Routes {
    fn new(tree: &Grown) -> Self {
        let mut features: Vec<u32> = tree.nodes.iter().filter_map(|n| n.split.as_ref().map(|s| s.feature)).collect();
        features.sort_unstable();
        features.dedup();
        let mut subsets = Vec::new();
        let nodes = tree.nodes.iter().map(|node| {
            let Some(split) = &node.split else {
                return Step { feature: LEAF, test: 0, subset: false, missing_left: false, children: [0; 2] };
            };
            let (test, subset) = match &split.test {
                CodeTest::Cut(cut) => (u32::from(*cut), false),
                CodeTest::Subset(codes) => {
                    subsets.push(bits(codes));
                    (subsets.len() as u32 - 1, true)
                }
            };
            let feature = features.binary_search(&split.feature).expect("a feature that is tested") as u32;
            Step { feature, test, subset, missing_left: split.missing_left, children: split.children }
        });
        let nodes = nodes.collect();
        Routes { nodes, features, subsets }
    }

    /// The child that `code` goes to.
    #[inline(always)]
    fn side(&self, step: &Step, code: u16) -> usize {
        let left = if code == MISSING_U16 {
            step.missing_left
        } else if step.subset {
            let bits = &self.subsets[step.test as usize];
            bits.get(usize::from(code / 64)).is_some_and(|word| word >> (code % 64) & 1 == 1)
        } else {
            u32::from(code) <= step.test
        };
        usize::from(!left)
    }

    /// For each feature, its codes over `rows` in random order.
    fn shuffle(&self, ground: Ground<'_>, rows: &[u32], tree: u64) -> Vec<Column> {
        let view = View::store(ground.store, &NO_BLOCK);
        let seed = ground.params.seed;
        let column = |&feature: &u32| {
            let mut random = stream(seed, Purpose::Permutation, tree, u64::from(feature));
            match ground.store.slots[feature as usize] {
                Slot::Narrow(slot) => {
                    let mut codes = vec![0u8; rows.len()];
                    view.codes(slot, rows, &mut codes);
                    codes.shuffle(&mut random);
                    Column::Narrow(codes)
                }
                Slot::Wide(slot) => {
                    let mut codes = vec![0u16; rows.len()];
                    view.codes(slot, rows, &mut codes);
                    codes.shuffle(&mut random);
                    Column::Wide(codes)
                }
            }
        };
        self.features.iter().map(column).collect()
    }
}

static NO_BLOCK: Block =
    Block { width: 0, dense: Vec::new(), weights: Vec::new(), starts: Vec::new(), indicators: Vec::new() };

fn bits(codes: &[u16]) -> Vec<u64> {
    let mut bits = vec![0u64; codes.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
    codes.iter().for_each(|&code| bits[usize::from(code / 64)] |= 1 << (code % 64));
    bits
}

/// Codes of one feature.
enum Column {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

/// Codes of a block of rows, row by row; missing is [`MISSING_U16`] throughout.
#[derive(Default)]
struct Matrix {
    width: usize,
    codes: Vec<u16>,
    narrow: Vec<u8>,
    wide: Vec<u16>,
}

impl Matrix {
    fn fill(&mut self, routes: &Routes, ground: Ground<'_>, rows: &[u32]) {
        let view = View::store(ground.store, &NO_BLOCK);
        self.start(routes.features.len(), rows.len());
        for (position, &feature) in routes.features.iter().enumerate() {
            match ground.store.slots[feature as usize] {
                Slot::Narrow(slot) => {
                    self.narrow.resize(rows.len(), 0);
                    view.codes(slot, rows, &mut self.narrow);
                    set_column(&mut self.codes, self.width, position, &self.narrow);
                }
                Slot::Wide(slot) => {
                    self.wide.resize(rows.len(), 0);
                    view.codes(slot, rows, &mut self.wide);
                    set_column(&mut self.codes, self.width, position, &self.wide);
                }
            }
        }
    }

    fn fill_from(&mut self, columns: &[Column], first: usize, rows: usize) {
        self.start(columns.len(), rows);
        for (position, column) in columns.iter().enumerate() {
            match column {
                Column::Narrow(codes) => {
                    set_column(&mut self.codes, self.width, position, &codes[first..first + rows]);
                }
                Column::Wide(codes) => set_column(&mut self.codes, self.width, position, &codes[first..first + rows]),
            }
        }
    }

    fn start(&mut self, width: usize, rows: usize) {
        self.width = width;
        self.codes.resize(width * rows, 0);
    }

    fn row(&self, row: usize) -> &[u16] {
        &self.codes[row * self.width..(row + 1) * self.width]
    }
}

fn set_column<C: Code>(codes: &mut [u16], width: usize, position: usize, column: &[C]) {
    for (to, &from) in codes[position..].iter_mut().step_by(width).zip(column) {
        *to = if from == C::MISSING { MISSING_U16 } else { from.index() as u16 };
    }
}

/// One row's way through the tree.
struct Walk {
    /// Nodes from the root to the leaf.
    path: Vec<u32>,
    /// n_features tested; the last row that left its path by this feature.
    left: Vec<u64>,
    row: u64,
}

impl Walk {
    fn new(routes: &Routes) -> Self {
        Walk { path: Vec::new(), left: vec![0; routes.features.len()], row: 0 }
    }

    fn follow(&mut self, routes: &Routes, codes: &[u16]) {
        self.path.clear();
        self.row += 1;
        let mut node = 0;
        loop {
            self.path.push(node);
            let step = &routes.nodes[node as usize];
            if step.feature == LEAF {
                return;
            }
            node = step.children[routes.side(step, codes[step.feature as usize])];
        }
    }

    /// Calls `each` with every feature whose code in `others` leads to another leaf, and that leaf.
    fn detours(&mut self, routes: &Routes, codes: &[u16], others: &[u16], mut each: impl FnMut(usize, u32)) {
        for pair in self.path.windows(2) {
            let step = &routes.nodes[pair[0] as usize];
            let feature = step.feature as usize;
            if self.left[feature] == self.row {
                continue;
            }
            let mut node = step.children[routes.side(step, others[feature])];
            if node == pair[1] {
                continue;
            }
            self.left[feature] = self.row;
            loop {
                let step = &routes.nodes[node as usize];
                if step.feature == LEAF {
                    break;
                }
                let code =
                    if step.feature as usize == feature { others[feature] } else { codes[step.feature as usize] };
                node = step.children[routes.side(step, code)];
            }
            each(feature, node);
        }
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
    fn new(ground: Ground<'_>, targets: &Targets<'_>, routes: &Routes, bag: &Bag) -> Result<Self> {
        let (n_numeric, n_nominal) = (targets.numeric.len(), targets.nominal.len());
        let mut position = vec![LEAF; routes.nodes.len()];
        let mut n_leaves = 0;
        for (node, _) in routes.nodes.iter().enumerate().filter(|(_, step)| step.feature == LEAF) {
            position[node] = n_leaves;
            n_leaves += 1;
        }
        let members = members(ground, routes, bag, &position, n_leaves as usize)?;
        let mut leaves = Leaves { position, n_numeric, n_nominal, means: Vec::new(), classes: Vec::new() };
        let everyone: Vec<(u32, u32)> = bag.rows.iter().copied().zip(bag.counts.iter().copied()).collect();
        let means: Vec<f64> = targets.numeric.iter().map(|y| mean(y, targets, &everyone).unwrap_or(0.0)).collect();
        let mut counts = vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)];
        let classes: Vec<u16> =
            targets.nominal.iter().map(|(y, _)| majority(y, targets, &everyone, &mut counts).unwrap_or(0)).collect();
        for members in members {
            for (y, whole) in targets.numeric.iter().zip(&means) {
                leaves.means.push(mean(y, targets, &members).unwrap_or(*whole));
            }
            for ((y, _), whole) in targets.nominal.iter().zip(&classes) {
                leaves.classes.push(majority(y, targets, &members, &mut counts).unwrap_or(*whole));
            }
        }
        Ok(leaves)
    }

    fn of(&self, node: u32) -> Prediction<'_> {
        let leaf = self.position[node as usize] as usize;
        Prediction {
            means: &self.means[leaf * self.n_numeric..(leaf + 1) * self.n_numeric],
            classes: &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal],
        }
    }
}

/// For each leaf the rows of the bag that reach it, with their multiplicities.
fn members(
    ground: Ground<'_>,
    routes: &Routes,
    bag: &Bag,
    position: &[u32],
    n_leaves: usize,
) -> Result<Vec<Vec<(u32, u32)>>> {
    let mut members = vec![Vec::new(); n_leaves];
    let mut walk = Walk::new(routes);
    let mut codes = Matrix::default();
    for (rows, counts) in bag.rows.chunks(BLOCK_ROWS).zip(bag.counts.chunks(BLOCK_ROWS)) {
        ground.monitor.check()?;
        codes.fill(routes, ground, rows);
        for (i, (&row, &count)) in rows.iter().zip(counts).enumerate() {
            walk.follow(routes, codes.row(i));
            let leaf = *walk.path.last().expect("a path ends in a leaf");
            members[position[leaf as usize] as usize].push((row, count));
        }
    }
    Ok(members)
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

    /// Squared error of `prediction` for `row` on numeric target `j`.
    fn square(targets: &Targets<'_>, row: usize, j: usize, prediction: Prediction<'_>) -> f64 {
        let value = targets.numeric[j].at(row);
        if value.is_nan() { 0.0 } else { targets.weight(row) * (value - prediction.means[j]).powi(2) }
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
    /// n_numeric; squared errors of the row at hand.
    row_squares: Vec<f64>,
}

impl Sums {
    fn new(errors: &Errors, n_features: usize) -> Self {
        let n_numeric = errors.spread.len();
        Sums {
            squares: vec![0.0; n_numeric],
            mistakes: 0.0,
            square_changes: vec![0.0; n_features * n_numeric],
            mistake_changes: vec![0.0; n_features],
            row_squares: vec![0.0; n_numeric],
        }
    }

    /// Adds the errors of `row`; gives its share of the error rate on nominal targets.
    fn add(&mut self, errors: &Errors, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) -> f64 {
        for j in 0..self.squares.len() {
            self.row_squares[j] = Errors::square(targets, row, j, prediction);
            self.squares[j] += self.row_squares[j];
        }
        let mistakes = errors.mistakes(targets, row, prediction);
        self.mistakes += mistakes;
        mistakes
    }

    /// Adds the change for the row last [added](Self::add), when `feature` leads it to `prediction`.
    fn add_change(
        &mut self,
        errors: &Errors,
        targets: &Targets<'_>,
        row: usize,
        feature: usize,
        mistakes: f64,
        prediction: Prediction<'_>,
    ) {
        let n_numeric = self.squares.len();
        let changes = &mut self.square_changes[feature * n_numeric..(feature + 1) * n_numeric];
        for (j, change) in changes.iter_mut().enumerate() {
            *change += Errors::square(targets, row, j, prediction) - self.row_squares[j];
        }
        self.mistake_changes[feature] += errors.mistakes(targets, row, prediction) - mistakes;
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
            if base > 0.0 { increase / base } else { increase }
        };
        (0..self.mistake_changes.len()).map(importance).collect()
    }
}
