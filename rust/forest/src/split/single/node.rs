//! The sums of a node with a single component.

use crate::pairs::{Pair, PairLayout};

/// The sums of a node whose examples are pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) pair: Pair,
    pub(crate) layout: PairLayout,
}

impl Node {
    /// The node with the examples `pairs`.
    #[inline]
    pub(crate) fn new(pairs: &[Pair], layout: PairLayout) -> Self {
        Node::of(pairs.len(), |i| pairs[i], layout)
    }

    /// The node with `n` examples, whose pairs `at` gives.
    #[inline(always)]
    pub(crate) fn of(n: usize, at: impl Fn(usize) -> Pair, layout: PairLayout) -> Self {
        let mut total = [0.0; 2];
        let in_fours = n / 4 * 4;
        if in_fours > 0 {
            // Sums are exact, so the order of additions does not matter.
            let mut sums = [[0.0; 2]; 4];
            for start in (0..in_fours).step_by(4) {
                for (i, sum) in sums.iter_mut().enumerate() {
                    add(sum, at(start + i));
                }
            }
            sums.iter().for_each(|sum| add(&mut total, *sum));
        }
        (in_fours..n).for_each(|i| add(&mut total, at(i)));
        Node { pair: total, layout }
    }

    /// The node with the examples that are not in `other`.
    pub(crate) fn without(self, other: Node) -> Node {
        Node { pair: [self.pair[0] - other.pair[0], self.pair[1] - other.pair[1]], ..self }
    }

    /// Number of examples, counted with multiplicity.
    #[inline(always)]
    pub(crate) fn examples(self) -> f64 {
        self.layout.count_and_weight(self.pair[0]).0
    }

    #[inline(always)]
    pub(crate) fn weight(self) -> f64 {
        self.layout.count_and_weight(self.pair[0]).1
    }

    /// The sum of the only component.
    #[inline(always)]
    pub(crate) fn sum(self) -> f64 {
        self.pair[1]
    }

    /// The mean of the only component.
    #[inline(always)]
    pub(in crate::split) fn mean(self) -> f64 {
        self.sum() / self.weight()
    }

    /// The gain of splitting off a side with these sums, of classes over their ω; NaN if a side is empty.
    #[inline(always)]
    pub(crate) fn gain(self, left: Pair) -> f64 {
        let (_, weight) = self.layout.count_and_weight(left[0]);
        self.quality(left) / (weight * (self.weight() - weight))
    }

    /// The same times the weights of both sides.
    #[inline(always)]
    pub(super) fn quality(self, left: Pair) -> f64 {
        match self.layout {
            PairLayout::Component => {
                let difference = left[1] - self.mean() * left[0];
                difference * difference
            }
            _ => self.quality_of_more(left),
        }
    }

    #[inline(never)]
    fn quality_of_more(self, left: Pair) -> f64 {
        match self.layout {
            PairLayout::Classes(classes) => classes.quality(self.pair, left),
            PairLayout::Two(field) => {
                let (means, (count, sum)) = (field.means(self.pair), field.count_and_sum(left[0]));
                [sum, left[1]].into_iter().zip(means).map(|(sum, mean)| (sum - mean * count).powi(2)).sum()
            }
            PairLayout::Component | PairLayout::Weighted(_) => {
                let (_, weight) = self.layout.count_and_weight(left[0]);
                (left[1] - self.mean() * weight).powi(2)
            }
        }
    }
}

#[inline(always)]
pub(super) fn add(sum: &mut Pair, pair: Pair) {
    sum[0] += pair[0];
    sum[1] += pair[1];
}
