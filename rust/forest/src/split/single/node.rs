//! The sums of a node with a single component.

use crate::class_fields::ClassFields;

/// Sums of one or more examples: count, and count times component value.
pub(crate) type Pair = [f64; 2];

/// The sums of a node with a single component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) examples: f64,
    pub(crate) sum: f64,
    /// The layout of the class counts in `sum`; `None` if `sum` is that of a component.
    pub(crate) classes: Option<ClassFields>,
}

impl Node {
    /// The node with the examples `pairs`, whose sums are of `classes` or of a component.
    #[inline]
    pub(crate) fn new(pairs: &[Pair], classes: Option<ClassFields>) -> Self {
        let mut total = [0.0; 2];
        let (fours, rest) = pairs.as_chunks::<4>();
        if !fours.is_empty() {
            // Sums are exact, so the order of additions does not matter.
            let mut sums = [[0.0; 2]; 4];
            for four in fours {
                for (sum, pair) in sums.iter_mut().zip(four) {
                    add(sum, *pair);
                }
            }
            sums.iter().for_each(|sum| add(&mut total, *sum));
        }
        rest.iter().for_each(|pair| add(&mut total, *pair));
        let [examples, sum] = total;
        Node { examples, sum, classes }
    }

    /// The node with the examples that are not in `other`.
    pub(crate) fn without(self, other: Node) -> Node {
        Node { examples: self.examples - other.examples, sum: self.sum - other.sum, ..self }
    }

    pub(in crate::split) fn mean(self) -> f64 {
        self.sum / self.examples
    }

    /// The gain of splitting off a side with these sums, of classes over their ω; NaN if a side is empty.
    #[inline(always)]
    pub(crate) fn gain(self, left: Pair) -> f64 {
        self.quality(left) / (left[0] * (self.examples - left[0]))
    }

    /// The same times the examples of both sides.
    #[inline(always)]
    pub(super) fn quality(self, left: Pair) -> f64 {
        match self.classes {
            None => {
                let difference = left[1] - self.mean() * left[0];
                difference * difference
            }
            Some(classes) => classes.quality([self.examples, self.sum], left),
        }
    }
}

#[inline(always)]
pub(super) fn add(sum: &mut Pair, pair: Pair) {
    sum[0] += pair[0];
    sum[1] += pair[1];
}
