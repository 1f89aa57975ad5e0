//! Pairs of numbers that hold all sums of examples: of one or two components, of a component and row weights, or of few
//! classes.
//!
//! A histogram of pairs takes one vector addition for each example, whatever they hold.

mod class_fields;
mod class_tables;
mod count_field;

pub(crate) use class_fields::{ClassFields, MOST_CLASSES};
pub(crate) use class_tables::ClassTables;
pub(crate) use count_field::CountField;

/// Two sums of one or more examples; see [`PairLayout`].
pub(crate) type Pair = [f64; 2];

/// What the two numbers of a pair hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PairLayout {
    /// The count, which is the weight; the sum of a component.
    Component,
    /// The count, which is the weight, and the counts of the classes.
    Classes(ClassFields),
    /// The count and the weight; the sum of a component times the weight of its row.
    Weighted(CountField),
    /// The count, which is the weight, and the sum of a component; the sum of another.
    Two(CountField),
}

impl PairLayout {
    /// The most examples, counted with multiplicity, whose sums a pair holds.
    pub(crate) fn most_examples(self) -> f64 {
        match self {
            PairLayout::Component => f64::INFINITY,
            PairLayout::Classes(fields) => fields.most_examples(),
            PairLayout::Weighted(field) | PairLayout::Two(field) => field.most_examples(),
        }
    }

    /// The count and the weight of the examples whose first number is `first`.
    #[inline(always)]
    pub(crate) fn count_and_weight(self, first: f64) -> (f64, f64) {
        if self.has_plain_count() { (first, first) } else { self.unpack(first) }
    }

    /// Returns true if the first number is the count.
    #[inline(always)]
    pub(crate) fn has_plain_count(self) -> bool {
        match self {
            PairLayout::Component => true,
            PairLayout::Classes(fields) => fields.has_plain_count(),
            PairLayout::Weighted(_) | PairLayout::Two(_) => false,
        }
    }

    /// The same where there is more than the count in `first`. Inlined, it makes trees for one target 1.08 times slower.
    #[inline(never)]
    fn unpack(self, first: f64) -> (f64, f64) {
        let count = match self {
            PairLayout::Component => first,
            PairLayout::Classes(fields) => fields.count(first),
            PairLayout::Weighted(field) => return field.count_and_weight(first),
            PairLayout::Two(field) => field.count_and_sum(first).0,
        };
        (count, count)
    }
}
