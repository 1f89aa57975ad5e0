//! The labels of the examples of a node as compressed sparse rows, with the addend of each label.
//!
//! Rows are padded to groups of equal length, and addends are computed in advance. The loop over examples then has no
//! unpredictable branch and no multiplication.
//!
//! Memory: 72 bytes for each group of labels in the node.

use super::examples::Examples;
use super::label_entry::{GROUP, IndicatorSums, LabelEntry};
use super::prefix::Prefixes;
use crate::criterion::Criterion;
use ferrank_data::store::Code;

/// Number of labels of weight 0 with which groups are padded. Several are used in turn, because each addition to the
/// same label would wait for the one before it.
const FILLERS: usize = 32;

/// The weights of labels in a node.
#[derive(Clone, Copy)]
struct Weights<'a> {
    /// n_indicators
    omega: &'a [f64],
    /// n_indicators; ω·c, 0 for labels to omit.
    weighted: &'a [f64],
}

impl Weights<'_> {
    /// Returns true if other examples than one of `weight` have `label`. If not, the sum of the label is 0 when the
    /// example is added, and is not read afterwards.
    #[inline(always)]
    fn has_others(self, label: u32, weight: f64) -> bool {
        self.weighted[label as usize] > self.omega[label as usize] * weight
    }

    /// An entry without labels, at `position`.
    #[inline(always)]
    fn none(self, position: usize, weight: f64, count: f64) -> LabelEntry {
        let filler = self.weighted.len() + position * GROUP % FILLERS;
        let labels = std::array::from_fn(|i| (filler + i) as u32);
        LabelEntry { labels, added: [0.0; GROUP], weight, count, squares: 0.0, cross: 0.0 }
    }

    /// Puts up to [`GROUP`] labels into `entry`, which has none yet.
    fn put(self, labels: &[u32], entry: &mut LabelEntry) {
        for (i, &label) in labels.iter().enumerate() {
            entry.labels[i] = label;
            entry.added[i] = self.omega[label as usize] * entry.weight;
        }
    }

    /// Puts up to [`GROUP`] labels into `example`, which has none yet. Which labels are kept is unpredictable, so there
    /// is no branch.
    #[inline(always)]
    fn add_few(self, labels: &[u32], example: &mut LabelEntry) {
        let (mut omega, mut weighted, mut n) = (0.0, 0.0, 0);
        for &label in labels {
            let (own_omega, own) = (self.omega[label as usize], self.weighted[label as usize]);
            omega += if own > 0.0 { own_omega } else { 0.0 };
            weighted += own;
            let stays = self.has_others(label, example.weight);
            example.labels[n] = if stays { label } else { example.labels[n] };
            example.added[n] = if stays { own_omega * example.weight } else { 0.0 };
            n += usize::from(stays);
        }
        example.squares = example.weight * example.weight * omega;
        example.cross = example.weight * weighted;
    }
}

/// The labels of the examples of a node.
#[derive(Debug, Default)]
pub(super) struct LabelCsr {
    /// n_examples entries, then further entries for examples with more than [`GROUP`] labels.
    entries: Vec<LabelEntry>,
    /// n_examples; the number of further entries up to each example.
    ends: Vec<u32>,
    /// The example of each further entry, ascending.
    owners: Vec<u32>,
    /// Partial labels, example by example.
    partial: Vec<u32>,
    /// n_examples; the end of the partial labels of each example. Empty if no label is partial.
    partial_ends: Vec<u32>,
    /// A buffer for the labels of an example.
    own: Vec<u32>,
    /// A buffer for further entries.
    beyond: Vec<LabelEntry>,
}

/// The sums of the labels of one side: zeros between searches.
#[derive(Debug)]
pub(super) struct LabelSums {
    /// n_indicators + [`FILLERS`]; ω·C_L. Empty without indicators.
    of_labels: Vec<f64>,
}

impl LabelSums {
    pub(super) fn new(criterion: &Criterion) -> Self {
        let n = criterion.indicator_weight.len();
        LabelSums { of_labels: vec![0.0; if n > 0 { n + FILLERS } else { 0 }] }
    }

    /// ω·C_L of `label`.
    pub(super) fn of(&mut self, label: usize) -> &mut f64 {
        &mut self.of_labels[label]
    }

    /// Sets the sums to 0. The labels `added` of `n` entries were added to.
    #[inline(always)]
    pub(super) fn clear<'a>(&mut self, n: usize, added: impl Iterator<Item = &'a u32>) {
        if GROUP * n >= self.of_labels.len() {
            self.of_labels.fill(0.0);
        } else {
            added.for_each(|&label| self.of_labels[label as usize] = 0.0);
        }
    }
}

impl LabelCsr {
    /// Sets the labels of `examples`. `weighted` is ω·c of each label, 0 for labels to omit.
    pub(super) fn set(&mut self, criterion: &Criterion, examples: Examples<'_>, weighted: &[f64]) {
        self.entries.clear();
        self.ends.clear();
        self.owners.clear();
        self.partial.clear();
        self.partial_ends.clear();
        let n_whole = criterion.n_whole_indicators();
        let all = Weights { omega: &criterion.indicator_weight, weighted };
        for (position, (&row, &count)) in examples.rows.iter().zip(examples.counts).enumerate() {
            let (row, count) = (row as usize, f64::from(count));
            let labels = examples.block.indicators(row);
            let weight = count * examples.block.weight(row);
            let mut example = all.none(position, weight, count);
            if n_whole == weighted.len() && labels.len() <= GROUP {
                all.add_few(labels, &mut example);
            } else {
                self.add_many(all, n_whole, labels, position, &mut example);
            }
            self.entries.push(example);
            self.ends.push(self.owners.len() as u32);
        }
        self.entries.append(&mut self.beyond);
    }

    /// Puts any number of labels into `example`, the entry at `position`, which has none yet.
    fn add_many(
        &mut self,
        all: Weights<'_>,
        n_whole: usize,
        labels: &[u32],
        position: usize,
        example: &mut LabelEntry,
    ) {
        let weight = example.weight;
        self.own.clear();
        self.own.extend(labels.iter().filter(|&&label| all.weighted[label as usize] > 0.0));
        let n_own = self.own.partition_point(|&label| (label as usize) < n_whole);
        if n_whole < all.weighted.len() {
            self.partial.extend_from_slice(&self.own[n_own..]);
            self.partial_ends.push(self.partial.len() as u32);
        }
        self.own.truncate(n_own);
        let sum = |values: &[f64]| self.own.iter().map(|&label| values[label as usize]).sum::<f64>();
        (example.squares, example.cross) = (weight * weight * sum(all.omega), weight * sum(all.weighted));
        self.own.retain(|&label| all.has_others(label, weight));
        let (few, others) = self.own.split_at(self.own.len().min(GROUP));
        for labels in others.chunks(GROUP) {
            let mut beyond = all.none(position + self.owners.len(), weight, 0.0);
            all.put(labels, &mut beyond);
            self.beyond.push(beyond);
            self.owners.push(position as u32);
        }
        all.put(few, example);
    }

    /// Writes the code of each entry into `out`; `codes` are those of the examples.
    #[inline(always)]
    pub(super) fn write_codes<C: Code>(&self, codes: &[C], out: &mut Vec<u16>) {
        out.clear();
        out.extend(codes.iter().map(|code| code.index() as u16));
        out.extend(self.owners.iter().map(|&owner| codes[owner as usize].index() as u16));
    }

    /// The entry at `position`.
    #[inline(always)]
    pub(super) fn at(&self, position: usize) -> &LabelEntry {
        &self.entries[position]
    }

    /// Adds all labels of the example at `position`, as [`LabelEntry::add`] does.
    #[inline(always)]
    pub(super) fn add(&self, position: usize, sums: &mut LabelSums) -> f64 {
        let mut had = self.entries[position].add(&mut sums.of_labels);
        for beyond in self.beyond_of(position) {
            had += beyond.add(&mut sums.of_labels);
        }
        had
    }

    #[inline(always)]
    fn beyond_of(&self, position: usize) -> &[LabelEntry] {
        let before = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[self.ends.len()..][before as usize..self.ends[position] as usize]
    }

    /// Adds up the entries in `order`, and records their code and the sums after each in `walk`.
    ///
    /// Not inlined, so that it can use all registers.
    #[inline(never)]
    pub(super) fn walk(&self, codes: &[u16], order: &[u32], sums: &mut LabelSums, walk: &mut Prefixes) {
        let (entries, sums) = (&self.entries[..], &mut sums.of_labels[..]);
        let (mut count, mut side) = (0.0, IndicatorSums::default());
        for (step, &place) in walk.steps(order.len()).zip(order) {
            let added = &entries[place as usize];
            count += added.count;
            side.add(added, added.add(sums));
            *step.key = f64::from(codes[place as usize]);
            (*step.count, *step.quality, *step.cross) = (count, side.squares, side.cross);
        }
    }

    /// Adds up the entries at `places`. Returns the number of examples and their sums.
    #[inline(never)]
    pub(super) fn sum(&self, places: &[u32], sums: &mut LabelSums) -> (f64, IndicatorSums) {
        let (entries, sums) = (&self.entries[..], &mut sums.of_labels[..]);
        let (mut count, mut side) = (0.0, IndicatorSums::default());
        for &place in places {
            let added = &entries[place as usize];
            count += added.count;
            side.add(added, added.add(sums));
        }
        (count, side)
    }

    /// The labels of the entry at `place`, including fillers.
    pub(super) fn labels_at(&self, place: u32) -> &[u32; GROUP] {
        &self.entries[place as usize].labels
    }

    /// The partial labels of the example at `position`.
    #[inline(always)]
    pub(super) fn partial(&self, position: usize) -> &[u32] {
        let Some(&end) = self.partial_ends.get(position) else { return &[] };
        let start = position.checked_sub(1).map_or(0, |before| self.partial_ends[before]);
        &self.partial[start as usize..end as usize]
    }

    /// The labels of all entries, including fillers.
    pub(super) fn all_labels(&self) -> impl Iterator<Item = &u32> {
        self.entries.iter().flat_map(|entry| &entry.labels)
    }

    /// All labels of the example at `position`, including fillers.
    pub(super) fn labels(&self, position: usize) -> impl Iterator<Item = &u32> {
        let entries = std::iter::once(&self.entries[position]).chain(self.beyond_of(position));
        entries.flat_map(|entry| &entry.labels).chain(self.partial(position))
    }
}
