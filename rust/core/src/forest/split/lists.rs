//! The labels of a node's examples, laid out for walks over them.

use super::scan::Examples;
use crate::forest::moments::Shape;

/// Labels that are added together, so that a walk rarely has to guess where a list ends.
pub(super) const GROUP: usize = 4;
/// Labels that weigh nothing, with which groups fill up, taken by turns: adding to the same one again and again would
/// make each addition wait for the one before.
pub(super) const FILLERS: usize = 32;

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

impl LabelLists {
    /// Those of `examples`; `weighted` is ω·c of each label, 0 for labels to leave out.
    pub(super) fn set(&mut self, shape: &Shape, examples: Examples<'_>, weighted: &[f64]) {
        self.examples.clear();
        self.more.clear();
        self.partial.clear();
        self.partial_ends.clear();
        let n_whole = shape.n_whole_indicators();
        let mut n_groups = 0;
        for (&row, &count) in examples.rows.iter().zip(examples.counts) {
            let (row, count) = (row as usize, f64::from(count));
            let weight = count * examples.block.weight(row);
            self.own.clear();
            self.own.extend(examples.block.indicators(row).iter().filter(|&&label| weighted[label as usize] > 0.0));
            let n_own = self.own.partition_point(|&label| (label as usize) < n_whole);
            let (labels, partial) = self.own.split_at(n_own);
            if n_whole < weighted.len() {
                self.partial.extend_from_slice(partial);
                self.partial_ends.push(self.partial.len() as u32);
            }
            let sum = |values: &[f64]| labels.iter().map(|&label| values[label as usize]).sum::<f64>();
            let (squares, cross) = (weight * weight * sum(&shape.indicator_weight), weight * sum(weighted));
            let mut group = |labels: &[u32]| {
                let filler = weighted.len() + n_groups * GROUP % FILLERS;
                n_groups += 1;
                let mut group = std::array::from_fn(|i| (filler + i) as u32);
                group[..labels.len()].copy_from_slice(labels);
                group
            };
            let (labels, others) = labels.split_at(labels.len().min(GROUP));
            let first = group(labels);
            let start = self.more.len() as u32;
            self.more.extend(others.chunks(GROUP).map(group));
            let end = self.more.len() as u32;
            self.examples.push(Listed { first, weight, squares, cross, start, end });
        }
    }

    /// The example at `position`.
    #[inline(always)]
    pub(super) fn of(&self, position: usize) -> &Listed {
        &self.examples[position]
    }

    /// Adds the labels of an example to ω and ω·C_L of each label; gives Σ ω·C_L over them, as it was before.
    #[inline(always)]
    pub(super) fn add(&self, example: &Listed, labels: &mut [[f64; 2]]) -> f64 {
        let had = add_group(&example.first, example.weight, labels, 0.0);
        let more = &self.more[example.start as usize..example.end as usize];
        more.iter().fold(had, |had, group| add_group(group, example.weight, labels, had))
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
