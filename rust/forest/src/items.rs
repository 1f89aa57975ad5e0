//! The examples of the bag, ordered by node, and their partition by a split.

use std::ops::Range;

use super::bag::Bag;
use super::criterion::Criterion;
use super::pairs::{ClassFields, ClassTables, Pair, PairLayout};
use super::space::Block;
use super::split::examples::Examples;
use super::split::single;
use super::tree_buffer::{CodeTest, MissingSide, NodeTest};
use super::view::View;
use ferrank_data::store::Code;

/// The side of an example.
pub(super) const LEFT: u8 = 0;
pub(super) const RIGHT: u8 = 1;
pub(super) const MISSING: u8 = 2;

/// The examples of the bag, ordered by node.
#[derive(Default)]
pub(super) struct Items {
    pub(super) rows: Vec<u32>,
    /// The multiplicity of each row, unless examples are pairs.
    pub(super) counts: Vec<u32>,
    /// The sums of each example, if examples are pairs.
    pub(super) pairs: Vec<Pair>,
    /// The layout of the pairs of the current node; `None` if its examples are not pairs.
    pub(super) layout: Option<PairLayout>,
    /// The classes that layouts of pairs have fields for.
    pub(super) class_tables: ClassTables,
}

impl Items {
    /// Takes the rows of `bag`, with pairs if there is a single component, whose `values` are given.
    pub(super) fn take(&mut self, bag: &Bag, values: Option<&[f64]>) {
        self.rows.clone_from(&bag.rows);
        self.take_counts(&bag.counts, values);
    }

    /// Takes the rows from row 0 on, with the multiplicities `counts`.
    pub(super) fn take_first(&mut self, counts: &[u32], values: Option<&[f64]>) {
        self.rows.clear();
        self.rows.extend(0..counts.len() as u32);
        self.take_counts(counts, values);
    }

    /// Takes each of `rows`, which ascend, once; without pairs.
    pub(super) fn take_once(&mut self, rows: impl Iterator<Item = u32>) {
        self.rows.clear();
        self.rows.extend(rows);
        self.layout = None;
        self.counts.clear();
        self.counts.resize(self.rows.len(), 1);
    }

    fn take_counts(&mut self, counts: &[u32], values: Option<&[f64]>) {
        self.layout = values.map(|_| PairLayout::Component);
        match values {
            Some(values) => {
                self.pairs.clear();
                self.pairs.extend(self.rows.iter().zip(counts).map(|(&row, &count)| {
                    let count = f64::from(count);
                    [count, count * values[row as usize]]
                }));
            }
            None => {
                self.counts.clear();
                self.counts.extend_from_slice(counts);
            }
        }
    }

    /// Makes pairs with this `layout` of the examples in `range`, which are not yet pairs; `block` has the values of their rows.
    pub(super) fn make_pairs(&mut self, range: Range<usize>, layout: PairLayout, block: &Block) {
        self.layout = Some(layout);
        match layout {
            PairLayout::Component => self.fill_pairs(range, |row| [1.0, block.dense(row)[0]]),
            PairLayout::Classes(fields) => {
                let classes = self.class_tables.classes(fields);
                let mut of_class = vec![Pair::default(); classes.last().map_or(0, |&last| last as usize + 1)];
                classes.iter().enumerate().for_each(|(own, &class)| of_class[class as usize] = fields.example_of(own));
                self.fill_pairs(range, |row| of_class[*block.class(row) as usize]);
            }
            PairLayout::Weighted(field) => {
                self.fill_pairs(range, |row| [field.weighted_number(1.0, block.weight(row)), block.dense(row)[0]]);
            }
            PairLayout::Two(field) => {
                self.fill_pairs(range, |row| [field.number(1.0, block.dense(row)[0]), block.dense(row)[1]]);
            }
        }
    }

    /// Sets the pairs of the examples in `range`. `of_row` gives the pair of a row of multiplicity 1.
    #[inline(always)]
    fn fill_pairs(&mut self, range: Range<usize>, of_row: impl Fn(usize) -> Pair) {
        self.pairs.resize(self.rows.len().max(self.pairs.len()), Pair::default());
        let examples = self.rows[range.clone()].iter().zip(&self.counts[range.clone()]);
        for (pair, (&row, &count)) in self.pairs[range].iter_mut().zip(examples) {
            let count = f64::from(count);
            *pair = of_row(row as usize).map(|number| count * number);
        }
    }

    /// Repacks the pairs of the examples in `range`, which have `fields`, if `node` contains so few of the classes that gains are
    /// computed faster from fields for these alone. Returns the sums of the node in the layout that its pairs then have.
    #[inline(never)]
    pub(super) fn repack(&mut self, range: Range<usize>, node: single::Node, fields: ClassFields) -> single::Node {
        let Some((fields_left, examples)) = self.class_tables.repacked(fields, node.pair) else { return node };
        let examples_of = fields.examples_of_one_class();
        for pair in &mut self.pairs[range.clone()] {
            let (count, class) = examples_of(*pair);
            *pair = examples[class].map(|number| count * number);
        }
        self.layout = Some(PairLayout::Classes(fields_left));
        self.node(range)
    }

    /// Writes the sums of `node`, the current one or a side of its split, into `sums`, in the layout of `criterion`.
    pub(super) fn write_sums(&self, criterion: &Criterion, sums: &mut Vec<f64>, node: single::Node) {
        criterion.set_pair(sums, node.pair, node.layout, self.classes());
    }

    /// The classes that the pairs of the current node have fields for, ascending; empty if pairs do not count classes.
    pub(super) fn classes(&self) -> &[u32] {
        match self.layout {
            Some(PairLayout::Classes(fields)) => self.class_tables.classes(fields),
            _ => &[],
        }
    }

    /// The multiplicity of the example at `position`.
    pub(super) fn count(&self, position: usize) -> u32 {
        match self.layout {
            Some(layout) => layout.count_and_weight(self.pairs[position][0]).0 as u32,
            None => self.counts[position],
        }
    }

    pub(super) fn are_pairs(&self) -> bool {
        self.layout.is_some()
    }

    /// The node with the examples in `range`, which are pairs.
    #[inline]
    pub(super) fn node(&self, range: Range<usize>) -> single::Node {
        single::Node::new(&self.pairs[range], self.pair_layout())
    }

    /// The same, where `pairs` has the pair of each row.
    #[inline]
    pub(super) fn node_by_row(&self, range: Range<usize>, pairs: &[Pair]) -> single::Node {
        let rows = &self.rows[range];
        single::Node::of(rows.len(), |i| pairs[rows[i] as usize], self.pair_layout())
    }

    fn pair_layout(&self) -> PairLayout {
        self.layout.expect("the examples are pairs")
    }

    /// Writes the pair of each row of the examples in `range` into `pairs`, which has a place for each of `n_rows` rows.
    pub(super) fn spread_pairs(&self, range: Range<usize>, n_rows: usize, pairs: &mut Vec<Pair>) {
        pairs.resize(n_rows.max(pairs.len()), Pair::default());
        for (&row, &pair) in self.rows[range.clone()].iter().zip(&self.pairs[range]) {
            pairs[row as usize] = pair;
        }
    }

    /// Takes the pairs of the examples in `range` from `pairs`, which has the pair of each row.
    pub(super) fn collect_pairs(&mut self, range: Range<usize>, pairs: &[Pair]) {
        for (own, &row) in self.pairs[range.clone()].iter_mut().zip(&self.rows[range]) {
            *own = pairs[row as usize];
        }
    }

    pub(super) fn examples<'a>(&'a self, range: Range<usize>, view: View<'a>) -> Examples<'a> {
        let (counts, pairs): (&[u32], &[Pair]) = match self.are_pairs() {
            true => (&[], &self.pairs[range.clone()]),
            false => (&self.counts[range.clone()], &[]),
        };
        Examples { block: view.block, rows: &self.rows[range], counts, pairs }
    }

    /// Takes the examples of `from`, with pairs of this `layout`, whose value is known.
    pub(super) fn take_known<C: Code>(&mut self, from: Examples<'_>, layout: Option<PairLayout>, codes: &mut Vec<C>) {
        fn known<T: Copy, C: Code>(to: &mut Vec<T>, from: &[T], codes: &[C]) {
            to.clear();
            to.extend(from.iter().zip(codes).filter(|&(_, &code)| code != C::MISSING).map(|(value, _)| *value));
        }
        self.layout = layout;
        known(&mut self.rows, from.rows, codes);
        known(&mut self.counts, from.counts, codes);
        known(&mut self.pairs, from.pairs, codes);
        codes.retain(|&code| code != C::MISSING);
    }

    /// Takes the examples of `from`, with pairs of this `layout`, at `positions`.
    pub(super) fn take_at(
        &mut self,
        from: Examples<'_>,
        layout: Option<PairLayout>,
        positions: impl Iterator<Item = usize> + Clone,
    ) {
        fn at<T: Copy>(to: &mut Vec<T>, from: &[T], positions: impl Iterator<Item = usize>) {
            to.clear();
            if !from.is_empty() {
                to.extend(positions.map(|position| from[position]));
            }
        }
        self.layout = layout;
        at(&mut self.rows, from.rows, positions.clone());
        at(&mut self.counts, from.counts, positions.clone());
        at(&mut self.pairs, from.pairs, positions);
    }

    /// Moves the right side of `range` behind the left side; each side keeps its order. Returns the start of the right
    /// side. `sides` are [`LEFT`] or [`RIGHT`].
    pub(super) fn partition(&mut self, range: Range<usize>, sides: &[u8], spill: &mut Items) -> usize {
        let sides = &sides[..range.len()];
        let goes_left = |i: usize, _| sides[i] == LEFT;
        let start = range.start;
        if self.are_pairs() {
            return start + self.partition_pairs(range, spill, goes_left);
        }
        let spilled = grown(&mut spill.rows, &mut spill.counts, range.len());
        start + part((&mut self.rows[range.clone()], &mut self.counts[range]), spilled, goes_left)
    }

    /// Moves the right side of `range` behind the left side, for items with pairs. The arguments of `goes_left` are the
    /// position in `range` and the row. Returns the number of examples on the left.
    pub(super) fn partition_pairs(
        &mut self,
        range: Range<usize>,
        spill: &mut Items,
        goes_left: impl Fn(usize, u32) -> bool,
    ) -> usize {
        let spilled = grown(&mut spill.rows, &mut spill.pairs, range.len());
        part((&mut self.rows[range.clone()], &mut self.pairs[range]), spilled, goes_left)
    }

    /// The same; pairs that are `by_row` stay where they are.
    pub(super) fn divide(
        &mut self,
        range: Range<usize>,
        by_row: bool,
        spill: &mut Items,
        goes_left: impl Fn(usize, u32) -> bool,
    ) -> usize {
        if !by_row {
            return self.partition_pairs(range, spill, goes_left);
        }
        let (mut nothing, mut spilled_nothing) = (vec![(); range.len()], Vec::new());
        let spilled = grown(&mut spill.rows, &mut spilled_nothing, range.len());
        part((&mut self.rows[range], &mut nothing), spilled, goes_left)
    }
}

/// The first `n` elements of both, which never shrink.
fn grown<'a, T: Copy + Default>(
    rows: &'a mut Vec<u32>,
    values: &'a mut Vec<T>,
    n: usize,
) -> (&'a mut [u32], &'a mut [T]) {
    rows.resize(n.max(rows.len()), 0);
    values.resize(n.max(values.len()), T::default());
    (&mut rows[..n], &mut values[..n])
}

/// Moves the items that do not go left behind the others, through the buffer `spill`. All slices have the same length.
#[inline(never)]
fn part<T: Copy>(
    (rows, values): (&mut [u32], &mut [T]),
    (spilled_rows, spilled_values): (&mut [u32], &mut [T]),
    goes_left: impl Fn(usize, u32) -> bool,
) -> usize {
    let n = rows.len();
    assert!(values.len() == n && spilled_rows.len() == n && spilled_values.len() == n);
    let (mut left, mut right) = (0, 0);
    for i in 0..n {
        // SAFETY: left + right = i < n, the length of all four slices.
        unsafe {
            let (row, value) = (*rows.get_unchecked(i), *values.get_unchecked(i));
            // Written to both, which avoids an unpredictable branch.
            *rows.get_unchecked_mut(left) = row;
            *values.get_unchecked_mut(left) = value;
            *spilled_rows.get_unchecked_mut(right) = row;
            *spilled_values.get_unchecked_mut(right) = value;
            let side = usize::from(!goes_left(i, row));
            left += 1 - side;
            right += side;
        }
    }
    rows[left..].copy_from_slice(&spilled_rows[..right]);
    values[left..].copy_from_slice(&spilled_values[..right]);
    left
}

/// Writes the side of each code. Returns true if some value is missing and its side is still to be determined.
pub(super) fn write_sides<C: Code>(codes: &[C], test: &NodeTest, has_missing: bool, sides: &mut Vec<u8>) -> bool {
    sides.clear();
    match &test.test {
        CodeTest::Cut(cut) => {
            let cut = C::from_u16(*cut);
            sides.extend(codes.iter().map(|&code| if code <= cut { LEFT } else { RIGHT }));
        }
        CodeTest::Subset(subset) => {
            let mut side = vec![RIGHT; usize::from(subset[subset.len() - 1]) + 1];
            subset.iter().for_each(|&code| side[usize::from(code)] = LEFT);
            sides.extend(codes.iter().map(|code| side.get(code.index()).copied().unwrap_or(RIGHT)));
        }
    }
    // So far missing values are on the right, because their code is above all others.
    let missing = match test.missing {
        _ if !has_missing => return false,
        MissingSide::Right => return false,
        MissingSide::Left => LEFT,
        MissingSide::Heavier => MISSING,
    };
    let mut any = false;
    for (side, &code) in sides.iter_mut().zip(codes) {
        let is_missing = code == C::MISSING;
        *side = if is_missing { missing } else { *side };
        any |= is_missing;
    }
    any && missing == MISSING
}
