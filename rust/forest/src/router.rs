//! Routing examples down a tree, with buffers that are reused from node to node.

use std::ops::Range;

use ferrank_data::store::{Code, Slot};

use crate::items::{Items, LEFT, RIGHT};
use crate::split::examples::Examples;
use crate::view::View;

/// Examples that are routed down a tree. See [`PackedTree::apply`](crate::oob::PackedTree::apply).
#[derive(Default)]
pub(crate) struct Router {
    /// The examples, ordered by node.
    pub(crate) items: Items,
    spill: Items,
    sides: Vec<u8>,
    codes: CodeBuffers,
}

/// The codes of a feature, of either type.
#[derive(Default)]
struct CodeBuffers {
    narrow: Vec<u8>,
    wide: Vec<u16>,
}

/// The examples that reach a node.
pub(crate) struct Reached<'a> {
    pub(crate) items: &'a Items,
    pub(crate) range: Range<usize>,
    pub(crate) view: View<'a>,
    codes: &'a mut CodeBuffers,
}

impl Router {
    /// The examples in `range`, whose rows are numbered as in `view`.
    pub(crate) fn reached<'a>(&'a mut self, range: Range<usize>, view: View<'a>) -> Reached<'a> {
        Reached { items: &self.items, range, view, codes: &mut self.codes }
    }

    /// Moves the examples in `range` that go right behind those that go left; each side keeps its order. `rule` decides
    /// from the codes in `slot`. Returns the start of the right side.
    pub(crate) fn part(&mut self, range: Range<usize>, view: View<'_>, slot: Slot, rule: impl GoesLeft) -> usize {
        let mut sides = std::mem::take(&mut self.sides);
        sides.clear();
        self.reached(range.clone(), view).with_codes(slot, TellSides { rule, sides: &mut sides });
        let middle = self.items.partition(range, &sides, &mut self.spill);
        self.sides = sides;
        middle
    }
}

/// Decides which codes go left.
pub(crate) trait GoesLeft {
    fn goes_left<C: Code>(&self, code: C) -> bool;
}

struct TellSides<'a, R> {
    rule: R,
    sides: &'a mut Vec<u8>,
}

impl<R: GoesLeft> OnCodes for TellSides<'_, R> {
    fn run<C: Code>(self, codes: &[C]) {
        self.sides.extend(codes.iter().map(|&code| if self.rule.goes_left(code) { LEFT } else { RIGHT }));
    }
}

/// A task on codes of either type.
pub(crate) trait OnCodes {
    fn run<C: Code>(self, codes: &[C]);
}

impl<'a> Reached<'a> {
    /// Rows of the view, ascending.
    pub(crate) fn rows(&self) -> &'a [u32] {
        &self.items.rows[self.range.clone()]
    }

    pub(crate) fn examples(&self) -> Examples<'a> {
        self.items.examples(self.range.clone(), self.view)
    }

    /// Calls `task` with the codes of the examples in `slot`.
    pub(crate) fn with_codes(&mut self, slot: Slot, task: impl OnCodes) {
        let rows = self.rows();
        match slot {
            Slot::Narrow(slot) => task.run(self.view.take(slot, rows, &mut self.codes.narrow)),
            Slot::Wide(slot) => task.run(self.view.take(slot, rows, &mut self.codes.wide)),
            Slot::Sparse(number) => task.run(self.view.take_sparse(number, rows, &mut self.codes.wide)),
        }
    }
}
