//! Gains of many cuts at once, from the sums of their left sides.

use pulp::Simd;

use super::SplitConstraint;
use super::single::{Node, Pair};

/// Computes the gains of cuts of a node from the sums of their left sides.
#[derive(Clone, Copy)]
pub(crate) struct GainFormula {
    node: Node,
    constraint: SplitConstraint,
}

impl GainFormula {
    pub(crate) fn new(node: Node, constraint: SplitConstraint) -> Self {
        GainFormula { node, constraint }
    }

    /// The formula for a node of `examples` whose gains are computed with
    /// [`gains_of_qualities`](Self::gains_of_qualities) alone.
    pub(crate) fn from_qualities(examples: f64, constraint: SplitConstraint) -> Self {
        GainFormula::new(Node { examples, sum: 0.0 }, constraint)
    }

    /// The gain of splitting off `left`; −1 if the constraint forbids the split.
    #[inline(always)]
    pub(crate) fn gain(self, left: Pair) -> f64 {
        let sides = (left[0], self.node.examples - left[0]);
        if self.constraint.allows(sides, sides) { self.node.gain(left) } else { -1.0 }
    }

    /// The gains of left sides with counts `left` and sums `sum`, as [`Node::gain`] computes them; −1 where the
    /// constraint forbids the split.
    #[inline(always)]
    pub(crate) fn gains<S: Simd>(self, simd: S, left: S::f64s, sum: S::f64s) -> S::f64s {
        let splat = |x: f64| simd.splat_f64s(x);
        let difference = simd.sub_f64s(sum, simd.mul_f64s(splat(self.node.mean()), left));
        self.gains_of_qualities(simd, left, simd.mul_f64s(difference, difference))
    }

    /// The gains of left sides with counts `left`; −1 where the constraint forbids the split. `quality` is the gain
    /// times the weights of both sides.
    #[inline(always)]
    pub(crate) fn gains_of_qualities<S: Simd>(self, simd: S, left: S::f64s, quality: S::f64s) -> S::f64s {
        let splat = |x: f64| simd.splat_f64s(x);
        let right = simd.sub_f64s(splat(self.node.examples), left);
        let gain = simd.div_f64s(quality, simd.mul_f64s(left, right));
        let (mut held_left, mut held_right) = (left, right);
        if self.constraint.missing > 0.0 {
            let missing = splat(self.constraint.missing);
            let heavier = simd.greater_than_or_equal_f64s(left, right);
            held_left = simd.select_f64s(heavier, simd.add_f64s(left, missing), left);
            held_right = simd.select_f64s(heavier, right, simd.add_f64s(right, missing));
        }
        let least = splat(self.constraint.min_leaf);
        let enough = simd.and_m64s(
            simd.greater_than_or_equal_f64s(held_left, least),
            simd.greater_than_or_equal_f64s(held_right, least),
        );
        // Without missing values `enough` implies it, because the least number of examples is above 0.
        let both_sides =
            simd.and_m64s(simd.greater_than_f64s(left, splat(0.0)), simd.greater_than_f64s(right, splat(0.0)));
        let fits = if self.constraint.missing > 0.0 { simd.and_m64s(enough, both_sides) } else { enough };
        simd.select_f64s(fits, gain, splat(-1.0))
    }
}
