//! The sampled rows that are out of bag, on their way down a tree that grows.

use std::ops::Range;

use ferrank_data::profile::{MISSING_U8, MISSING_U16};
use ferrank_data::store::Slot;
use ferrank_ranking::{Contribution, Vector};

use super::STRIDE;
use super::sample::{RowSample, SampledTarget, Truth};
use crate::criterion::Criterion;
use crate::oob::OutOfBagRows;
use crate::space::Outcome;
use crate::tree_buffer::{BufferedSplit, CodeTest};

/// The out-of-bag rows of a sample, ordered by node, and what the tree predicts for them.
#[derive(Default)]
pub(crate) struct TrackedRows<'a> {
    sample: Option<&'a RowSample<'a>>,
    /// Numbers in the sample of the rows that are tracked in this tree, ascending.
    tracked: Vec<u32>,
    /// The same, ordered by node.
    rows: Vec<u32>,
    /// n_targets x rows of the sample; the residuals of the deepest prediction so far, as numbers of entries and values.
    residuals: Vec<Vec<(u32, f64)>>,
    /// True once the tree has a split.
    has_split: bool,
}

impl<'a> TrackedRows<'a> {
    pub(crate) fn new(sample: Option<&'a RowSample<'a>>) -> Self {
        let n = sample.map_or(0, |sample| sample.targets.len() * sample.rows.len());
        TrackedRows { sample, residuals: vec![Vec::new(); n], ..TrackedRows::default() }
    }

    /// Returns true if there is a sample with rows.
    pub(crate) fn is_enabled(&self) -> bool {
        self.sample.is_some_and(|sample| !sample.rows.is_empty())
    }

    /// Starts with the rows of the sample that are out of bag; with none of them if `out_of_bag` is `None`.
    pub(crate) fn start(&mut self, out_of_bag: Option<&OutOfBagRows>) {
        self.tracked.clear();
        self.has_split = false;
        if let (Some(sample), Some(out_of_bag)) = (self.sample, out_of_bag) {
            let is_tracked = |&(_, &row): &(u32, &usize)| out_of_bag.contains(row);
            self.tracked.extend((0..).zip(&sample.rows).filter(is_tracked).map(|(number, _)| number));
            self.rows.clone_from(&self.tracked);
            if sample.criterion.is_partial() {
                // If the target is known for no row of the bag, the shares of all rows are the prediction.
                self.predict(0..self.rows.len(), &sample.totals);
            }
        }
    }

    /// The range of all tracked rows.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.tracked.len()
    }

    /// Moves the rows in `range` that go right behind those that go left. Returns the start of the right side.
    pub(crate) fn part(&mut self, range: Range<usize>, split: &BufferedSplit) -> usize {
        self.has_split = true;
        let Some(sample) = self.sample.filter(|_| !range.is_empty()) else { return range.start };
        let (codes, rows) = (sample.codes(), &mut self.rows);
        match sample.context.store.slots[split.feature as usize] {
            Slot::Narrow(slot) => {
                let column = codes.narrow.column(slot);
                part(rows, range, |row| match column.at(row) {
                    MISSING_U8 => split.missing_left,
                    code => goes_left(&split.test, u16::from(code)),
                })
            }
            Slot::Wide(slot) => {
                let column = codes.wide.column(slot);
                part(rows, range, |row| match column.at(row) {
                    MISSING_U16 => split.missing_left,
                    code => goes_left(&split.test, code),
                })
            }
            Slot::Sparse(number) => {
                let store = &sample.context.store;
                let code = |row: usize| store.sparse.as_ref().map_or(0, |sparse| sparse.code(number, sample.rows[row]));
                part(rows, range, |row| match code(row) {
                    MISSING_U16 => split.missing_left,
                    code => goes_left(&split.test, code),
                })
            }
        }
    }

    /// Predicts the rows in `range`, which reached a node with these sums of the bag. Targets that are known for no
    /// example of the node keep the prediction of the node before.
    pub(crate) fn predict(&mut self, range: Range<usize>, sums: &[f64]) {
        let Some(sample) = self.sample else { return };
        let n_rows = sample.rows.len();
        for (target, residuals) in sample.targets.iter().zip(self.residuals.chunks_mut(n_rows.max(1))) {
            let Some(prediction) = Prediction::new(target, &sample.criterion, sums) else { continue };
            for &row in &self.rows[range.clone()] {
                if let Some(truth) = &target.truths[row as usize] {
                    prediction.write(truth, target, &mut residuals[row as usize]);
                }
            }
        }
    }

    /// The vectors of the tree: the weights of the tracked rows, and the entries for each target. Without rows if the
    /// tree has no split.
    ///
    /// Entry 1 of a row's weight is the number of its group, if there are groups. Entry 0 of a number is the residual of
    /// the constant prediction, entry 1 that of the tree. Entry 0 of a class is the number of the true one, entry 1 + c
    /// the share of a wrong class c. Entries 0 and 1 of labels are the Hamming loss and the squared error of the constant
    /// prediction; label l has the share of wrong labels as entry 2l + 2, and this times the weight of the label as entry
    /// 2l + 3. Rows without the target have no entries.
    pub(crate) fn vectors(&mut self) -> Contribution {
        let Some(sample) = self.sample else { return Contribution::new() };
        let rows: &[u32] = if self.has_split { &self.tracked } else { &[] };
        let mut weights: Vec<(u32, f64)> = rows.iter().map(|&row| (row, sample.weights[row as usize])).collect();
        if let Some(groups) = &sample.context.store.groups {
            let group = |&row: &u32| (STRIDE + row, f64::from(groups.of_row[sample.rows[row as usize]]));
            weights.extend(rows.iter().map(group));
        }
        let mut vectors = vec![Vector::sparse(weights)];
        let n_rows = sample.rows.len();
        for (number, target) in sample.targets.iter().enumerate() {
            let mut entries = Vec::new();
            let known = || {
                let truth = |&row: &u32| Some((row, target.truths[row as usize].as_ref()?));
                rows.iter().filter(|_| target.outcome.is_some()).filter_map(truth)
            };
            for (row, truth) in known() {
                let mut push = |entry: u32, value: f64| entries.push((entry * STRIDE + row, value));
                match truth {
                    Truth::Number(value) => push(0, target.guess - value),
                    Truth::Class(class) => push(0, *class as f64),
                    Truth::Labels { loss, squares, .. } => {
                        push(0, *loss);
                        push(1, *squares);
                    }
                }
            }
            // After all of the others, so that there is little to sort.
            for (row, _) in known() {
                let residuals = &self.residuals[number * n_rows + row as usize];
                entries.extend(residuals.iter().map(|&(entry, value)| (entry * STRIDE + row, value)));
            }
            entries.sort_unstable_by_key(|&(place, _)| place);
            vectors.push(Vector::sparse(entries));
        }
        vectors
    }
}

/// Moves the rows in `range` that do not go left behind the others. Returns the start of the right side.
fn part(rows: &mut [u32], range: Range<usize>, goes_left: impl Fn(usize) -> bool) -> usize {
    let mut middle = range.start;
    for position in range {
        // Swapped in any case, which avoids an unpredictable branch.
        let is_left = goes_left(rows[position] as usize);
        rows.swap(middle, position);
        middle += usize::from(is_left);
    }
    middle
}

fn goes_left(test: &CodeTest, code: u16) -> bool {
    match test {
        CodeTest::Cut(cut) => code <= *cut,
        CodeTest::Subset(codes) => codes.binary_search(&code).is_ok(),
    }
}

/// What a node predicts for a target.
enum Prediction {
    /// The mean of the component.
    Number(f64),
    /// The shares of classes, or of labels, that are not 0.
    Shares(Vec<(usize, f64)>),
}

impl Prediction {
    /// `None` if the target is known for no example.
    fn new(target: &SampledTarget, criterion: &Criterion, sums: &[f64]) -> Option<Self> {
        match target.outcome.as_ref()? {
            Outcome::Number(component) => criterion.mean(sums, *component).map(Prediction::Number),
            outcome => outcome.shares(criterion, sums).map(Prediction::Shares),
        }
    }

    /// Writes the residuals for a row with the value `truth`.
    fn write(&self, truth: &Truth, target: &SampledTarget, residuals: &mut Vec<(u32, f64)>) {
        residuals.clear();
        match (self, truth) {
            (Prediction::Number(mean), Truth::Number(value)) => residuals.push((1, mean - value)),
            (Prediction::Shares(shares), Truth::Class(truth)) => {
                let wrong = shares.iter().filter(|(class, _)| class != truth);
                residuals.extend(wrong.map(|&(class, share)| (class as u32 + 1, share)));
            }
            (Prediction::Shares(shares), Truth::Labels { labels, .. }) => {
                let Some(Outcome::Labels(indicators)) = &target.outcome else { return };
                let mut push = |label: u32, wrong: f64| {
                    if wrong > 0.0 {
                        residuals.push((2 * label + 2, wrong));
                        residuals.push((2 * label + 3, wrong * target.shares[label as usize]));
                    }
                };
                let share = |label: u32| shares.binary_search_by_key(&(label as usize), |&(label, _)| label);
                for &(label, share) in shares.iter() {
                    let label = label as u32;
                    push(label, if labels.binary_search(&label).is_ok() { 1.0 - share } else { share });
                }
                // Labels of the row that no example of the node has.
                let is_varying = |label: &&u32| indicators[**label as usize].is_some();
                for &label in labels.iter().filter(is_varying).filter(|label| share(**label).is_err()) {
                    push(label, 1.0);
                }
            }
            _ => unreachable!("both are of the same target"),
        }
    }
}
