//! A tree during growth: tests on codes, nodes in preorder.

use crate::contrasts::Contrasts;
use ferrank_data::profile::Cuts;

/// A test on codes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CodeTest {
    /// Codes up to this code go left; all that are known if it is [`KNOWN`].
    Cut(u16),
    /// These codes, ascending, go left.
    Subset(Vec<u16>),
}

/// The cut of the test whether a value is known: at least as high as all codes, and below that of missing values, in one
/// byte and in two.
pub(crate) const KNOWN: u16 = u16::MAX - 1;

impl CodeTest {
    /// Moves a cut, the highest code in a node that goes left, to the middle between it and the lowest code that goes right,
    /// which `next` finds. It divides the examples of the node as before. Other examples whose codes lie between go to the
    /// nearer side, to the left one from the middle.
    #[inline(always)]
    pub(crate) fn center(&mut self, next: impl FnOnce(u16) -> u16) {
        if let CodeTest::Cut(cut) = self
            && *cut != KNOWN
        {
            *cut = cut.midpoint(next(*cut));
        }
    }
}

/// The lowest of `codes` above `cut`; `none` if there is none. Without branches.
#[inline(always)]
pub(crate) fn lowest_above<C: PartialOrd + Copy>(codes: impl Iterator<Item = C>, cut: C, none: C) -> C {
    codes.fold(none, |lowest, code| {
        let code = if code > cut { code } else { none };
        if code < lowest { code } else { lowest }
    })
}

/// The cut of a test on values that is one at `code` on codes; infinite for [`KNOWN`].
pub(crate) fn cut_on_values(cuts: &Cuts, code: u16) -> f64 {
    if code == KNOWN { f64::INFINITY } else { cuts.cut(usize::from(code)) }
}

/// The side of the examples whose value is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingSide {
    Left,
    Right,
    /// The side with the greater weight; the left one if both weigh the same.
    Heavier,
}

/// A test of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeTest {
    pub(crate) test: CodeTest,
    /// The side of the examples whose value is missing.
    pub(crate) missing: MissingSide,
}

impl NodeTest {
    /// A test whose missing values, if any, go to the heavier side.
    pub(crate) fn new(test: CodeTest) -> Self {
        NodeTest { test, missing: MissingSide::Heavier }
    }

    /// Returns true if missing values go left, where the sides have these weights without them.
    pub(crate) fn missing_left(&self, left: f64, right: f64) -> bool {
        match self.missing {
            MissingSide::Left => true,
            MissingSide::Right => false,
            MissingSide::Heavier => left >= right,
        }
    }
}

/// A split of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct BufferedSplit {
    pub(crate) feature: u32,
    pub(crate) test: CodeTest,
    pub(crate) missing_left: bool,
    /// Impurity decrease due to the split.
    pub(crate) gain: f64,
}

/// A node of a grown tree.
#[derive(Debug, Clone)]
pub(crate) struct BufferedNode {
    pub(crate) depth: u32,
    pub(crate) examples: f64,
    pub(crate) weight: f64,
    pub(crate) is_split: bool,
}

/// A grown tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeBuffer {
    /// Nodes in preorder, left before right.
    pub(crate) nodes: Vec<BufferedNode>,
    /// The splits of the nodes that have one, in the same order.
    pub(crate) splits: Vec<BufferedSplit>,
    /// The contrasts of the splits, in preorder. Empty unless some score reads them.
    pub(crate) contrasts: Contrasts,
    /// The rows of the bag in each leaf, ascending, with their multiplicities; leaves in preorder. Empty unless some
    /// score reads predictions.
    pub(super) members: Vec<(u32, u32)>,
    /// The end of the members of each leaf.
    pub(super) member_ends: Vec<u32>,
    /// The sum of the only component over the rows of each leaf. Empty unless requested.
    pub(super) leaf_sums: Vec<f64>,
}

impl TreeBuffer {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.splits.clear();
        self.contrasts.clear();
        self.members.clear();
        self.member_ends.clear();
        self.leaf_sums.clear();
    }

    /// The split of each node, if it has one.
    pub(crate) fn splits_of_nodes(&self) -> impl Iterator<Item = Option<&BufferedSplit>> {
        let mut splits = self.splits.iter();
        self.nodes.iter().map(move |node| if node.is_split { splits.next() } else { None })
    }

    /// The left and the right child of each node that is split.
    pub(crate) fn children(&self) -> Vec<Option<[u32; 2]>> {
        let mut children = vec![None; self.nodes.len()];
        // In reverse preorder, the children of a node come before it, the left one last.
        let mut done: Vec<u32> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate().rev() {
            if node.is_split
                && let (Some(left), Some(right)) = (done.pop(), done.pop())
            {
                children[number] = Some([left, right]);
            }
            done.push(number as u32);
        }
        children
    }

    /// The members of each leaf, in preorder.
    pub(crate) fn leaf_members(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        let starts = std::iter::once(0).chain(self.member_ends.iter().copied());
        starts.zip(&self.member_ends).map(|(start, &end)| &self.members[start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_moves_to_the_middle_of_the_codes_that_no_example_has() {
        for (cut, next, expected) in [(3, 4, 3), (3, 5, 4), (3, 6, 4), (0, 9, 4), (65_000, 65_534, 65_267)] {
            let mut test = CodeTest::Cut(cut);
            test.center(|_| next);
            assert_eq!(test, CodeTest::Cut(expected), "{cut} {next}");
        }
        for mut test in [CodeTest::Cut(KNOWN), CodeTest::Subset(vec![1])] {
            let same = test.clone();
            test.center(|_| unreachable!("only cuts of values have a next code"));
            assert_eq!(test, same);
        }
    }

    #[test]
    fn the_lowest_code_above_a_cut() {
        let codes = [7_u8, 2, 9, u8::MAX, 4];
        for (cut, expected) in [(0, 2), (2, 4), (4, 7), (9, u8::MAX)] {
            assert_eq!(lowest_above(codes.iter().copied(), cut, u8::MAX), expected, "{cut}");
        }
        assert_eq!(lowest_above([1.0, 3.0].into_iter(), 2.0, f64::INFINITY), 3.0);
    }
}
