//! Dividing the examples of a node by its test.

use std::ops::Range;

use super::state::{Buffers, Grower, KnownSums, LEAST_GAIN, NodeTotals, Partition};
use crate::candidates::Candidate;
use crate::context::GrowContext;
use crate::criterion::WEIGHT;
use crate::items::{LEFT, MISSING, RIGHT, write_sides};
use crate::split::batch::Batch;
use crate::split::single;
use crate::tree_buffer::{BufferedSplit, CodeTest, NodeTest, lowest_above};
use crate::view::View;
use ferrank_data::store::{Code, Slot};

impl Grower<'_> {
    /// Divides the examples of a node by the test of `found`. `None` if the gain is rounding noise.
    pub(super) fn partition(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        mut found: Candidate,
        open: NodeTotals,
        weight: f64,
    ) -> Option<Partition> {
        let mut sides = std::mem::take(&mut self.buffers.sides);
        let has_missing = self.sides(view, range.clone(), &mut found, &mut sides);
        let middle = if has_missing {
            self.sum_known(view, range.clone(), &sides);
            None
        } else {
            // A contiguous side is added up faster than a side that is picked out.
            let middle = self.items.partition(range.clone(), &sides, &mut self.buffers.spill);
            self.sum_left(view, range.clone(), middle, found.feature, open);
            Some(middle)
        };
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        let share = total[WEIGHT] / weight;
        let gain = share * self.criterion.gain(left, total);
        let missing_left = found.test.missing_left(left[WEIGHT], total[WEIGHT] - left[WEIGHT]);
        let partition = (gain > LEAST_GAIN).then(|| {
            self.record_by_target(share);
            if self.keeps_contrasts {
                self.tree_buffer.contrasts.add(&self.criterion, &self.buffers.left, &self.buffers.total);
            }
            let split = BufferedSplit { feature: found.feature, test: found.test.test, missing_left, gain };
            if let Some(middle) = middle {
                return Partition { split, middle, sums: self.sums_of_children() };
            }
            let follow = if missing_left { LEFT } else { RIGHT };
            sides.iter_mut().filter(|side| **side == MISSING).for_each(|side| *side = follow);
            let middle = self.items.partition(range, &sides, &mut self.buffers.spill);
            Partition { split, middle, sums: [KnownSums::Nothing; 2] }
        });
        self.buffers.sides = sides;
        partition
    }

    /// Writes the sums of the examples before `middle`, the left side of a test of `feature`, and of all examples in
    /// `range` into the buffers.
    fn sum_left(&mut self, view: View<'_>, range: Range<usize>, middle: usize, feature: u32, open: NodeTotals) {
        let Buffers { left, total, lefts, node, .. } = &mut self.buffers;
        if let Some(known) = lefts.get(feature) {
            left.clear();
            left.extend_from_slice(known);
            return total.clone_from(&node.total);
        }
        let is_smaller = 2 * (middle - range.start) <= range.len();
        let smaller = if is_smaller { range.start..middle } else { middle..range.end };
        match open {
            NodeTotals::Single(node) => {
                self.items.write_sums(&self.criterion, left, self.items.node(smaller));
                self.items.write_sums(&self.criterion, total, node);
            }
            NodeTotals::Any => {
                self.items.examples(smaller, view).total(self.arch, &self.criterion, left);
                total.clone_from(&node.total);
            }
        }
        if !is_smaller {
            left.iter_mut().zip(total).for_each(|(left, total)| *left = *total - *left);
        }
    }

    /// Writes the sums of the left side and of all examples whose value is known into the buffers.
    fn sum_known(&mut self, view: View<'_>, range: Range<usize>, sides: &[u8]) {
        let (left, total) = (&mut self.buffers.left, &mut self.buffers.total);
        for sums in [&mut *left, &mut *total] {
            sums.clear();
            sums.resize(self.criterion.len(), 0.0);
        }
        let examples = self.items.examples(range, view);
        for (i, &side) in sides.iter().enumerate() {
            match side {
                LEFT => examples.add(&self.criterion, left, i),
                // `total` has the sums of the right side until the left side is added below.
                RIGHT => examples.add(&self.criterion, total, i),
                _ => {}
            }
        }
        total.iter_mut().zip(&*left).for_each(|(total, left)| *total += left);
    }

    /// Keeps the sums of both sides for their nodes.
    fn sums_of_children(&mut self) -> [KnownSums; 2] {
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        if let Some(layout) = self.items.layout {
            let pair = |sums| self.criterion.pair(sums, layout, self.items.classes());
            let [left, total] = [left, total].map(|sums| single::Node { pair: pair(sums), layout });
            return [left, total.without(left)].map(KnownSums::Single);
        }
        let of_right = self.totals.len();
        self.totals.extend(total.iter().zip(left).map(|(total, left)| total - left));
        let of_left = self.totals.len();
        self.totals.extend_from_slice(left);
        [KnownSums::Any(of_left), KnownSums::Any(of_right)]
    }

    /// Writes the side of each example, and places the cut. Returns true if the feature is missing in some whose side
    /// is still to be determined.
    fn sides(&mut self, view: View<'_>, range: Range<usize>, found: &mut Candidate, sides: &mut Vec<u8>) -> bool {
        let Grower { context, items, narrow, wide, buffers, .. } = self;
        let Candidate { feature, test, .. } = found;
        if let (Some(keys), CodeTest::Cut(code)) = (buffers.batch.keys(*feature), &test.test) {
            let highest = context.key_of(*feature, *code);
            sides.clear();
            sides.extend(keys.iter().map(|&key| if key <= highest { LEFT } else { RIGHT }));
            context.place_cut(&mut test.test, |cut| Batch::code_above(keys, cut));
            return false;
        }
        let rows = &items.rows[range];
        let has_missing = context.store.codings[*feature as usize].has_missing;
        match context.store.slots[*feature as usize] {
            Slot::Narrow(slot) => divide(narrow.take(view, slot, rows), *context, test, has_missing, sides),
            Slot::Wide(slot) => divide(wide.take(view, slot, rows), *context, test, has_missing, sides),
            Slot::Sparse(number) => divide(wide.take_sparse(view, number, rows), *context, test, has_missing, sides),
        }
    }

    fn record_by_target(&mut self, share: f64) {
        if !self.context.params.by_target {
            return;
        }
        let (left, total) = (&self.buffers.left, &self.buffers.total);
        self.buffers.gain_by_target = self.context.gains_by_target(&self.criterion, left, total, share);
    }
}

/// Writes the side of each of `codes`, and places the cut of `test`. Returns true if some value is missing and its side is
/// still to be determined.
fn divide<C: Code>(
    codes: &[C],
    context: GrowContext<'_>,
    test: &mut NodeTest,
    has_missing: bool,
    sides: &mut Vec<u8>,
) -> bool {
    let is_open = write_sides(codes, test, has_missing, sides);
    context.place_cut(&mut test.test, |cut| {
        lowest_above(codes.iter().copied(), C::from_u16(cut), C::MISSING).index() as u16
    });
    is_open
}
