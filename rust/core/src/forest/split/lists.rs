//! The labels of a node's examples, laid out for walks over them.

use super::scan::Examples;
use super::walk::Walk;
use crate::forest::moments::Shape;
use crate::store::Code;

/// Labels that are added together, so that a walk rarely has to guess where a list ends.
pub(super) const GROUP: usize = 4;
/// Labels that weigh nothing, with which groups fill up, taken by turns: adding to the same one again and again would
/// make each addition wait for the one before.
pub(super) const FILLERS: usize = 32;

/// What labels weigh in a node.
#[derive(Clone, Copy)]
struct Weights<'a> {
    /// n_indicators
    omega: &'a [f64],
    /// n_indicators; ω·c, 0 for labels to leave out.
    weighted: &'a [f64],
}

impl Weights<'_> {
    /// Whether an example of `weight` shares a label with others. If not, nothing is there to add to when it comes,
    /// and nobody comes after.
    #[inline(always)]
    fn has_others(self, label: u32, weight: f64) -> bool {
        self.weighted[label as usize] > self.omega[label as usize] * weight
    }

    #[inline(always)]
    fn fillers(self, position: usize) -> [u32; GROUP] {
        let filler = self.weighted.len() + position * GROUP % FILLERS;
        std::array::from_fn(|i| (filler + i) as u32)
    }

    /// At most [`GROUP`] labels of the example at `position`, without a guess whether one stays.
    #[inline(always)]
    fn of_few(self, labels: &[u32], weight: f64, position: usize) -> Listed {
        let mut first = self.fillers(position);
        let (mut omega, mut weighted, mut n) = (0.0, 0.0, 0);
        for &label in labels {
            let own = self.weighted[label as usize];
            omega += if own > 0.0 { self.omega[label as usize] } else { 0.0 };
            weighted += own;
            let stays = self.has_others(label, weight);
            first[n] = if stays { label } else { first[n] };
            n += usize::from(stays);
        }
        Listed { first, weight, squares: weight * weight * omega, cross: weight * weighted, start: 0, end: 0 }
    }
}

/// Labels of a node's examples.
#[derive(Debug, Default)]
pub(super) struct LabelLists {
    /// n_examples
    examples: Vec<Listed>,
    /// Labels beyond the first of an example, example after example.
    more: Vec<[u32; GROUP]>,
    /// Labels with weights of their own, example after example.
    partial: Vec<u32>,
    /// n_examples, empty where no label has weights of its own; where those of each example end.
    partial_ends: Vec<u32>,
    /// Those of one example.
    own: Vec<u32>,
}

/// What an example adds to the sums of a side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// Its first labels: most examples have no more.
    first: [u32; GROUP],
    pub(super) weight: f64,
    /// w²·Σ ω_l
    pub(super) squares: f64,
    /// w·Σ ω_l·c_l
    pub(super) cross: f64,
    /// Where its other labels are.
    start: u32,
    end: u32,
}

impl Listed {
    /// Adds its labels, of which `more` are not the first, to ω and ω·C_L of each label; gives Σ ω·C_L over them, as it
    /// was before.
    #[inline(always)]
    fn add(&self, more: &[[u32; GROUP]], labels: &mut [[f64; 2]]) -> f64 {
        let mut had = add_group(&self.first, self.weight, labels, 0.0);
        if self.start < self.end {
            for group in &more[self.start as usize..self.end as usize] {
                had = add_group(group, self.weight, labels, had);
            }
        }
        had
    }
}

impl LabelLists {
    /// Those of `examples`; `weighted` is ω·c of each label, 0 for labels to leave out.
    pub(super) fn set(&mut self, shape: &Shape, examples: Examples<'_>, weighted: &[f64]) {
        self.examples.clear();
        self.more.clear();
        self.partial.clear();
        self.partial_ends.clear();
        let n_whole = shape.n_whole_indicators();
        let all = Weights { omega: &shape.indicator_weight, weighted };
        for (position, (&row, &count)) in examples.rows.iter().zip(examples.counts).enumerate() {
            let (row, count) = (row as usize, f64::from(count));
            let weight = count * examples.block.weight(row);
            let labels = examples.block.indicators(row);
            let listed = if n_whole == weighted.len() && labels.len() <= GROUP {
                all.of_few(labels, weight, position)
            } else {
                self.of_many(all, n_whole, labels, weight, position)
            };
            self.examples.push(listed);
        }
    }

    /// Any labels of the example at `position`.
    fn of_many(&mut self, all: Weights<'_>, n_whole: usize, labels: &[u32], weight: f64, position: usize) -> Listed {
        self.own.clear();
        self.own.extend(labels.iter().filter(|&&label| all.weighted[label as usize] > 0.0));
        let n_own = self.own.partition_point(|&label| (label as usize) < n_whole);
        if n_whole < all.weighted.len() {
            self.partial.extend_from_slice(&self.own[n_own..]);
            self.partial_ends.push(self.partial.len() as u32);
        }
        self.own.truncate(n_own);
        let sum = |values: &[f64]| self.own.iter().map(|&label| values[label as usize]).sum::<f64>();
        let (squares, cross) = (weight * weight * sum(all.omega), weight * sum(all.weighted));
        self.own.retain(|&label| all.has_others(label, weight));
        let (few, others) = self.own.split_at(self.own.len().min(GROUP));
        let group = |labels: &[u32]| {
            let mut group = all.fillers(position);
            group[..labels.len()].copy_from_slice(labels);
            group
        };
        let start = self.more.len() as u32;
        self.more.extend(others.chunks(GROUP).map(group));
        Listed { first: group(few), weight, squares, cross, start, end: self.more.len() as u32 }
    }

    /// The example at `position`.
    #[inline(always)]
    pub(super) fn of(&self, position: usize) -> &Listed {
        &self.examples[position]
    }

    /// As [`Listed::add`].
    #[inline(always)]
    pub(super) fn add(&self, example: &Listed, labels: &mut [[f64; 2]]) -> f64 {
        example.add(&self.more, labels)
    }

    /// Adds up all examples in `order`, and writes down what they are after each.
    ///
    /// On its own it has all registers to itself.
    #[inline(never)]
    pub(super) fn walk<C: Code>(&self, codes: &[C], order: &[u32], labels: &mut [[f64; 2]], walk: &mut Walk) {
        let (examples, more) = (&self.examples[..], &self.more[..]);
        let (mut count, mut squares, mut cross) = (0.0, 0.0, 0.0);
        for (step, &position) in walk.steps(order.len()).zip(order) {
            let example = &examples[position as usize];
            let had = example.add(more, labels);
            count += example.weight;
            squares += example.squares + 2.0 * example.weight * had;
            cross += example.cross;
            *step.key = codes[position as usize].index() as f64;
            (*step.count, *step.quality, *step.cross) = (count, squares, cross);
        }
    }

    /// The labels of the example at `position` that have weights of their own.
    #[inline(always)]
    pub(super) fn partial(&self, position: usize) -> &[u32] {
        let Some(&end) = self.partial_ends.get(position) else { return &[] };
        let start = position.checked_sub(1).map_or(0, |before| self.partial_ends[before]);
        &self.partial[start as usize..end as usize]
    }

    /// All labels of the example at `position`, those that weigh nothing among them.
    pub(super) fn labels(&self, position: usize) -> impl Iterator<Item = &u32> {
        let example = &self.examples[position];
        let more = &self.more[example.start as usize..example.end as usize];
        example.first.iter().chain(more.iter().flatten()).chain(self.partial(position))
    }
}

#[inline(always)]
fn add_group(group: &[u32; GROUP], weight: f64, labels: &mut [[f64; 2]], mut had: f64) -> f64 {
    for &label in group {
        let [omega, sum] = &mut labels[label as usize];
        had += *sum;
        *sum += *omega * weight;
    }
    had
}
