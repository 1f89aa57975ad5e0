//! The classes of a target as a single number: the counts of all classes but the last, side by side in the bits of an integer
//! that f64 represents exactly.
//!
//! A node with few enough examples for that is searched as one with a single component, in 1.4 (3 classes) to 2.5 times (6)
//! its time. The count of the last class follows from the number of examples. With n examples in a node, of which class k has
//! C_k, and c_k of W on the left, n·c_k − C_k·W is an integer below 2⁵³, and so exact; these sum to 0 over the classes.

use std::num::NonZeroU8;

/// The most classes.
pub(crate) const MOST_CLASSES: usize = 6;

/// Bits of the integers, one less than f64 has: gains take one more to read them.
const BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The layout of the counts of this number of classes in one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClassFields(NonZeroU8);

impl ClassFields {
    /// The layout for `n_classes`; `None` unless there are 3 to [`MOST_CLASSES`] classes.
    pub(crate) fn new(n_classes: usize) -> Option<Self> {
        NonZeroU8::new(n_classes as u8).filter(|_| (3..=MOST_CLASSES).contains(&n_classes)).map(ClassFields)
    }

    pub(crate) fn n_classes(self) -> usize {
        self.0.get().into()
    }

    /// Bits of a field.
    fn bits(self) -> u32 {
        BITS / (self.n_classes() as u32 - 1)
    }

    /// The most examples, counted with multiplicity.
    pub(crate) fn most_examples(self) -> f64 {
        self.unit(1) - 1.0
    }

    /// What one example of `class` adds to the number.
    pub(crate) fn unit(self, class: usize) -> f64 {
        if class + 1 == self.n_classes() { 0.0 } else { (1u64 << (self.bits() * class as u32)) as f64 }
    }

    /// The number that holds `counts`, the count of each class.
    pub(crate) fn sum(self, counts: &[f64]) -> f64 {
        counts.iter().enumerate().map(|(class, count)| count * self.unit(class)).sum()
    }

    /// The count of each class, first to last, of `examples` examples whose counts are in `sum`.
    pub(crate) fn counts(self, examples: f64, sum: f64) -> impl Iterator<Item = f64> {
        let (mut fields, mask, mut others) = (sum as u64, (1 << self.bits()) - 1, examples);
        (0..self.n_classes()).map(move |class| {
            if class + 1 == self.n_classes() {
                return others;
            }
            let count = (fields & mask) as f64;
            fields >>= self.bits();
            others -= count;
            count
        })
    }

    /// The gain of splitting off a side, over ω and times the examples of both sides; `node` and `left` are examples and sum.
    pub(crate) fn quality(self, node: [f64; 2], left: [f64; 2]) -> f64 {
        let (all, own) = (self.counts(node[0], node[1]), self.counts(left[0], left[1]));
        let squares: f64 = own.zip(all).map(|(own, all)| (own * node[0] - all * left[0]).powi(2)).sum();
        squares / (node[0] * node[0])
    }
}
