//! A tree whose siblings lie side by side, which rows are walked down by their codes.

use ferrank_data::store::Code;

use crate::tree_buffer::CodeTest;

/// A code for which trees have tests in few bytes: with 8 bytes for each node, large trees fit into the cache.
pub(crate) trait WalkedCode: Code + Default {
    /// The column of a test, and the highest code that goes left. If missing values go left, the latter is 1 more and
    /// codes are, so that the code of a missing value, the highest number of the type, becomes 0.
    type Test: Copy + Default + Send + Sync;
    /// The most columns.
    const MOST_COLUMNS: usize;

    fn pack(column: u32, cut: u16, missing_left: bool) -> Self::Test;
    fn column(test: Self::Test) -> usize;
    fn goes_left(self, test: Self::Test) -> bool;
}

impl WalkedCode for u8 {
    /// The cut; a bit for missing values; the column.
    type Test = u32;
    const MOST_COLUMNS: usize = 1 << 23;

    fn pack(column: u32, cut: u16, missing_left: bool) -> u32 {
        let shift = u32::from(missing_left);
        column << 9 | shift << 8 | u32::from((cut as u8).wrapping_add(shift as u8))
    }

    #[inline(always)]
    fn column(test: u32) -> usize {
        (test >> 9) as usize
    }

    #[inline(always)]
    fn goes_left(self, test: u32) -> bool {
        self.wrapping_add((test >> 8) as u8 & 1) <= test as u8
    }
}

impl WalkedCode for u16 {
    /// The cut; 1 for missing values; the column.
    type Test = [u16; 4];
    const MOST_COLUMNS: usize = u32::MAX as usize;

    fn pack(column: u32, cut: u16, missing_left: bool) -> [u16; 4] {
        let shift = u16::from(missing_left);
        [cut.wrapping_add(shift), shift, column as u16, (column >> 16) as u16]
    }

    #[inline(always)]
    fn column([_, _, low, high]: [u16; 4]) -> usize {
        usize::from(high) << 16 | usize::from(low)
    }

    #[inline(always)]
    fn goes_left(self, [cut, shift, ..]: [u16; 4]) -> bool {
        self.wrapping_add(shift) <= cut
    }
}

/// Categories that go left.
#[derive(Clone)]
pub(crate) struct Subset {
    /// A bit for each code.
    codes: Vec<u64>,
    missing: bool,
}

impl Subset {
    /// These `codes`, which ascend, and missing values if `missing`.
    pub(crate) fn new(codes: &[u16], missing: bool) -> Self {
        let mut bits = vec![0u64; codes.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
        codes.iter().for_each(|&code| bits[usize::from(code / 64)] |= 1 << (code % 64));
        Subset { codes: bits, missing }
    }

    pub(crate) fn has<C: Code>(&self, code: C) -> bool {
        if code == C::MISSING {
            return self.missing;
        }
        let code = code.index();
        self.codes.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
    }
}

/// A tree in pairs of siblings. It is made in preorder, node by node.
///
/// Memory: 12 bytes for each node where codes have one byte, 16 where they have two; with tests of subsets 4 more, and a
/// bit for each category.
pub(crate) struct PairedTree<C: WalkedCode> {
    /// The root, and then pairs of a left and a right child: left sides lie one after the other.
    places: Vec<Place<C::Test>>,
    /// n_nodes; the number of the leaf at each place.
    leaf_numbers: Vec<u32>,
    n_leaves: u32,
    /// The categories that go left, for each test of them.
    subsets: Vec<Subset>,
    /// n_nodes; 1 more than the number of the subset that each place tests, 0 of others. Empty if there is none.
    subset_numbers: Vec<u32>,
    /// The places without a node as yet. Nodes come in preorder: the next one belongs to the last.
    open: Vec<u32>,
}

/// A node of a [`PairedTree`].
#[derive(Clone, Copy, Default)]
struct Place<T> {
    /// Where the left child is, before the right one. A leaf leads to itself, and all codes go left there.
    next: u32,
    test: T,
}

impl<C: WalkedCode> PairedTree<C> {
    /// A tree to which `n_nodes` will be added.
    pub(crate) fn new(n_nodes: usize) -> Self {
        let mut places = Vec::with_capacity(n_nodes);
        places.push(Place::default());
        PairedTree {
            places,
            leaf_numbers: vec![0; n_nodes],
            n_leaves: 0,
            subsets: Vec::new(),
            subset_numbers: Vec::new(),
            open: vec![0],
        }
    }

    /// Bytes for each leaf of a tree with tests of subsets.
    pub(crate) const fn bytes_of_leaf() -> usize {
        2 * (size_of::<Place<C::Test>>() + 2 * size_of::<u32>())
    }

    fn open_place(&mut self) -> usize {
        self.open.pop().expect("a tree has one leaf more than splits") as usize
    }

    /// Adds a leaf; leaves are numbered in this order.
    pub(crate) fn add_leaf(&mut self) {
        let at = self.open_place();
        self.places[at] = Place { next: at as u32, test: C::pack(0, u16::MAX, false) };
        self.leaf_numbers[at] = self.n_leaves;
        self.n_leaves += 1;
    }

    /// Adds a split with a `test` of the feature in `column`.
    pub(crate) fn add_split(&mut self, column: u32, test: CodeTest, missing_left: bool) {
        match test {
            CodeTest::Cut(cut) => self.add_cut(column, cut, missing_left),
            CodeTest::Subset(codes) => self.add_subset(column, Subset::new(&codes, missing_left)),
        }
    }

    /// Adds a split at a cut of the feature in `column`.
    pub(crate) fn add_cut(&mut self, column: u32, cut: u16, missing_left: bool) {
        self.add_test(C::pack(column, cut, missing_left));
    }

    /// Adds a split with a test whether the feature in `column` is in `subset`.
    pub(crate) fn add_subset(&mut self, column: u32, subset: Subset) {
        let at = self.add_test(C::pack(column, 0, false));
        self.subsets.push(subset);
        self.subset_numbers.resize(self.leaf_numbers.len(), 0);
        self.subset_numbers[at] = self.subsets.len() as u32;
    }

    /// Adds a split. Returns its place.
    fn add_test(&mut self, test: C::Test) -> usize {
        let at = self.open_place();
        let next = self.places.len() as u32;
        self.places[at] = Place { next, test };
        self.places.extend([Place::default(); 2]);
        self.open.extend([next + 1, next]);
        at
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.places.len()
    }

    /// Returns true if some tests are on subsets.
    pub(crate) fn has_subsets(&self) -> bool {
        !self.subsets.is_empty()
    }

    #[inline(always)]
    pub(crate) fn is_leaf(&self, place: u32) -> bool {
        self.places[place as usize].next == place
    }

    /// The number of the leaf at `place`.
    #[inline(always)]
    pub(crate) fn leaf_number(&self, place: u32) -> u32 {
        self.leaf_numbers[place as usize]
    }

    /// The column of the feature that is tested at `place`; a leaf has the first.
    #[inline(always)]
    pub(crate) fn column(&self, place: u32) -> usize {
        C::column(self.places[place as usize].test)
    }

    /// Where a row with this `code` of the tested feature goes from `place`; from a leaf to that leaf. `SUBSETS` is true
    /// if some tests are on subsets; otherwise the compiler omits a branch.
    #[inline(always)]
    pub(crate) fn next<const SUBSETS: bool>(&self, place: u32, code: C) -> u32 {
        let Place { next, test } = self.places[place as usize];
        let left = match SUBSETS.then(|| self.subset_numbers[place as usize]) {
            None | Some(0) => code.goes_left(test),
            Some(number) => self.subsets[number as usize - 1].has(code),
        };
        next + u32::from(!left)
    }
}
