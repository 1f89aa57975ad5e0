//! The number of examples and the classes of a target as two numbers: the counts of all classes but the last, side by side in
//! the bits of integers that f64 represents exactly.
//!
//! The classes are those that a node has: [`ClassTables`](super::ClassTables).
//!
//! A node with few enough examples for that is searched as one with a single component, in 1.3 (3 classes) to 3 times (10)
//! its time. The count of the last class follows from the number of examples. With n examples in a node, of which class k has
//! C_k, and c_k of W on the left, n·c_k − C_k·W is an integer below 2⁵³, and so exact; these sum to 0 over the classes.

use super::Pair;

/// The most classes.
pub(crate) const MOST_CLASSES: usize = 10;

/// Bits of the integers, one less than f64 has: gains take one more to read them.
const BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The width of a field is computed as if there were at least this many, because products of two counts must be exact.
const LEAST_FIELDS: usize = 2;

/// The layout of the counts of this number of classes in two numbers. The first has the counts of some classes below the
/// number of examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClassFields {
    n_classes: u8,
    /// The number of the table that has the classes.
    table: u8,
}

impl ClassFields {
    /// The layout for `n_classes`, of table number `table`; `None` unless there are 2 to [`MOST_CLASSES`] classes.
    pub(super) fn new(n_classes: usize, table: usize) -> Option<Self> {
        let fits = (2..=MOST_CLASSES).contains(&n_classes);
        fits.then_some(ClassFields { n_classes: n_classes as u8, table: table as u8 })
    }

    pub(super) fn table(self) -> usize {
        self.table.into()
    }

    /// The numbers of counts in the first and in the second number. A search is compiled for each of these layouts.
    pub(crate) fn sizes(self) -> [usize; 2] {
        match self.n_classes {
            // The number of examples alone is read faster, and 17 bits are enough for most nodes.
            ..=4 => [0, self.n_classes() - 1],
            5 => [1, 3],
            6 => [2, 3],
            _ => [4, 5],
        }
    }

    /// Returns true if the first number is the number of examples.
    #[inline(always)]
    pub(crate) fn has_plain_count(self) -> bool {
        self.sizes()[0] == 0
    }

    pub(crate) fn n_classes(self) -> usize {
        self.n_classes.into()
    }

    /// Bits of a field: as many as both numbers have room for, at most half of a number.
    fn bits(self) -> u32 {
        let [first, second] = self.sizes();
        BITS / (first + 1).max(second).max(LEAST_FIELDS) as u32
    }

    /// The most examples, counted with multiplicity.
    pub(crate) fn most_examples(self) -> f64 {
        self.field(1) - 1.0
    }

    /// What one example adds to a number whose field at `place` counts it.
    pub(crate) fn field(self, place: usize) -> f64 {
        (1u64 << (self.bits() * place as u32)) as f64
    }

    /// What one example adds to the first number, whatever its class.
    pub(crate) fn example(self) -> f64 {
        self.field(self.sizes()[0])
    }

    /// The number, 0 or 1, that has the count of `class`, and what an example of the class adds to it; `None` for the last
    /// class and those that there are not.
    pub(crate) fn unit(self, class: usize) -> Option<(usize, f64)> {
        let n_first = self.sizes()[0];
        (class + 1 < self.n_classes()).then(|| match class.checked_sub(n_first) {
            None => (0, self.field(class)),
            Some(place) => (1, self.field(place)),
        })
    }

    /// The pair of `count` examples, of which the classes have `counts`.
    pub(crate) fn pair(self, count: f64, counts: impl Iterator<Item = f64>) -> Pair {
        let mut pair = [count * self.example(), 0.0];
        for (class, count) in counts.enumerate() {
            if let Some((number, unit)) = self.unit(class) {
                pair[number] += count * unit;
            }
        }
        pair
    }

    /// The pair of one example of the class at place `class` among the classes of the layout.
    pub(crate) fn example_of(self, class: usize) -> Pair {
        let mut pair = [self.example(), 0.0];
        if let Some((number, unit)) = self.unit(class) {
            pair[number] += unit;
        }
        pair
    }

    /// Returns a function that reads a pair of examples of one class: how many they are, and the place of their class among the
    /// classes of the layout.
    #[inline(always)]
    pub(crate) fn examples_of_one_class(self) -> impl Fn(Pair) -> (f64, usize) {
        let ([n_first, _], bits) = (self.sizes(), self.bits());
        let (counted, last) = (bits * n_first as u32, self.n_classes() - 1);
        // A product instead of a division for each pair; exact below 2¹⁶ / bits.
        let fields_per_bit = (1 << 16) / bits + 1;
        let place = move |number: u64| ((number.trailing_zeros() * fields_per_bit) >> 16) as usize;
        move |pair| {
            let [first, second] = pair.map(|number| number as u64);
            let (count, first) = (first >> counted, first & ((1 << counted) - 1));
            let class = match (first, second) {
                (0, 0) => last,
                (0, _) => n_first + place(second),
                _ => place(first),
            };
            (count as f64, class)
        }
    }

    /// The number of examples with this first number.
    #[inline(always)]
    pub(crate) fn count(self, first: f64) -> f64 {
        ((first as u64) >> (self.bits() * self.sizes()[0] as u32)) as f64
    }

    /// The count of each class, first to last, of the examples with the sums `pair`.
    pub(crate) fn counts(self, pair: Pair) -> impl Iterator<Item = f64> {
        let ([n_first, _], bits) = (self.sizes(), self.bits());
        let (numbers, mask) = (pair.map(|number| number as u64), (1 << bits) - 1);
        let mut others = self.count(pair[0]);
        (0..self.n_classes()).map(move |class| {
            if class + 1 == self.n_classes() {
                return others;
            }
            let (number, place) = if class < n_first { (numbers[0], class) } else { (numbers[1], class - n_first) };
            let count = ((number >> (bits * place as u32)) & mask) as f64;
            others -= count;
            count
        })
    }

    /// The set of classes that occur in the sums `pair`: a bit for each class of the layout.
    #[inline(always)]
    pub(crate) fn present(self, pair: Pair) -> u32 {
        self.counts(pair).enumerate().fold(0, |present, (class, count)| present | u32::from(count > 0.0) << class)
    }

    /// The gain of splitting off a side, over ω and times the examples of both sides.
    pub(crate) fn quality(self, node: Pair, left: Pair) -> f64 {
        let (all, own) = (self.counts(node), self.counts(left));
        let [n, w] = [node, left].map(|pair| self.count(pair[0]));
        let squares: f64 = own.zip(all).map(|(own, all)| (own * n - all * w).powi(2)).sum();
        squares / (n * n)
    }
}
