//! The sums of a node with a single component.

/// Sums of one or more examples: count, and count times component value.
pub(crate) type Pair = [f64; 2];

/// The sums of a node with a single component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) examples: f64,
    pub(crate) sum: f64,
}

impl Node {
    /// The node with the examples `pairs`.
    #[inline]
    pub(crate) fn new(pairs: &[Pair]) -> Self {
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
        Node { examples, sum }
    }

    /// The node with the examples that are not in `other`.
    pub(crate) fn without(self, other: Node) -> Node {
        Node { examples: self.examples - other.examples, sum: self.sum - other.sum }
    }

    pub(in crate::split) fn mean(self) -> f64 {
        self.sum / self.examples
    }

    /// The gain of splitting off a side with these sums; NaN if a side is empty.
    #[inline(always)]
    pub(crate) fn gain(self, [examples, sum]: Pair) -> f64 {
        let difference = sum - self.mean() * examples;
        difference * difference / (examples * (self.examples - examples))
    }
}

#[inline(always)]
pub(super) fn add(sum: &mut Pair, pair: Pair) {
    sum[0] += pair[0];
    sum[1] += pair[1];
}
