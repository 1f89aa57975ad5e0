//! Gains of many cuts at once, from the sums of their left sides.

use pulp::Simd;

use super::SplitConstraint;
use super::single::{Node, Pair};
use crate::class_fields::ClassFields;

/// Computes the gains of cuts of a node from the sums of their left sides.
#[derive(Clone, Copy)]
pub(crate) struct GainFormula {
    node: Node,
    constraint: SplitConstraint,
}

/// Computes the gains of cuts from the pairs of their left sides.
pub(crate) trait PairGain: Copy {
    /// The gains of left sides with counts `left` and sums `sums`; −1 where the constraint forbids the split.
    fn gains<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s;
}

/// What takes the gains of a node, whatever its sums are of.
pub(crate) trait GainVisitor {
    type Output;
    fn visit<G: PairGain>(self, gain: G) -> Self::Output;
}

impl GainFormula {
    /// Shows the gains of the node to `visitor`.
    #[inline(always)]
    pub(crate) fn visit<V: GainVisitor>(self, visitor: V) -> V::Output {
        match self.node.classes {
            None => visitor.visit(self),
            Some(classes) => self.visit_classes(classes, visitor),
        }
    }

    #[inline(never)]
    fn visit_classes<V: GainVisitor>(self, classes: ClassFields, visitor: V) -> V::Output {
        match classes.n_classes() {
            3 => visitor.visit(ClassGain::<2>::new(self, classes)),
            4 => visitor.visit(ClassGain::<3>::new(self, classes)),
            5 => visitor.visit(ClassGain::<4>::new(self, classes)),
            _ => visitor.visit(ClassGain::<5>::new(self, classes)),
        }
    }

    pub(crate) fn node(self) -> Node {
        self.node
    }

    pub(crate) fn new(node: Node, constraint: SplitConstraint) -> Self {
        GainFormula { node, constraint }
    }

    /// The formula for a node of `examples` whose gains are computed with
    /// [`gains_of_qualities`](Self::gains_of_qualities) alone.
    pub(crate) fn from_qualities(examples: f64, constraint: SplitConstraint) -> Self {
        GainFormula::new(Node { examples, sum: 0.0, classes: None }, constraint)
    }

    /// The gain of splitting off `left`; −1 if the constraint forbids the split.
    #[inline(always)]
    pub(crate) fn gain(self, left: Pair) -> f64 {
        let sides = (left[0], self.node.examples - left[0]);
        if self.constraint.allows(sides, sides) { self.node.gain(left) } else { -1.0 }
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

/// A single component: as [`Node::gain`] computes them.
impl PairGain for GainFormula {
    #[inline(always)]
    fn gains<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s {
        let difference = simd.sub_f64s(sums, simd.mul_f64s(simd.splat_f64s(self.node.mean()), left));
        self.gains_of_qualities(simd, left, simd.mul_f64s(difference, difference))
    }
}

/// Gains of a node with `FIELDS` + 1 classes, over ω.
#[derive(Clone, Copy)]
pub(crate) struct ClassGain<const FIELDS: usize> {
    formula: GainFormula,
    classes: [ClassOfNode; FIELDS],
    /// 1 / examples².
    scale: f64,
}

/// A class of a node.
#[derive(Clone, Copy)]
struct ClassOfNode {
    /// −C_k.
    minus_count: f64,
    /// The number of an example of the class.
    unit: f64,
    /// The examples of the node over that.
    examples: f64,
}

impl<const FIELDS: usize> ClassGain<FIELDS> {
    pub(crate) fn new(formula: GainFormula, fields: ClassFields) -> Self {
        let node = formula.node();
        let mut counts = fields.counts(node.examples, node.sum);
        let class = |class| {
            let (unit, count) = (fields.unit(class), counts.next().unwrap_or(0.0));
            ClassOfNode { minus_count: -count, unit, examples: node.examples / unit }
        };
        let scale = 1.0 / (node.examples * node.examples);
        ClassGain { formula, classes: std::array::from_fn(class), scale }
    }
}

impl<const FIELDS: usize> PairGain for ClassGain<FIELDS> {
    #[inline(always)]
    fn gains<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s {
        let splat = |x: f64| simd.splat_f64s(x);
        let (mut rest, mut squares, mut differences) = (sums, splat(0.0), splat(0.0));
        for (number, class) in self.classes.iter().enumerate().rev() {
            let own = if number == 0 { rest } else { multiple(simd, rest, class.unit) };
            rest = simd.sub_f64s(rest, own);
            let all = simd.mul_f64s(own, splat(class.examples));
            // Exact, fused or not.
            let difference = simd.mul_add_e_f64s(left, splat(class.minus_count), all);
            squares = simd.mul_add_e_f64s(difference, difference, squares);
            differences = simd.add_f64s(differences, difference);
        }
        squares = simd.mul_add_e_f64s(differences, differences, squares);
        self.formula.gains_of_qualities(simd, left, simd.mul_f64s(squares, splat(self.scale)))
    }
}

/// The greatest multiples of `unit`, a power of 2 above 1, up to `x`, integers from 0 to 2⁵².
#[inline(always)]
fn multiple<S: Simd>(simd: S, x: S::f64s, unit: f64) -> S::f64s {
    // Around it, numbers are apart by `unit`.
    let apart = simd.splat_f64s((3u64 << 51) as f64 * unit);
    // Less than half a unit, so that nothing is half-way between two multiples.
    let below = simd.sub_f64s(x, simd.splat_f64s(0.5 * unit - 0.5));
    simd.sub_f64s(simd.add_f64s(below, apart), apart)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulp::{Arch, WithSimd};

    use super::*;
    use crate::class_fields::MOST_CLASSES;

    fn fields(n_classes: usize) -> ClassFields {
        ClassFields::new(n_classes).unwrap()
    }

    struct GainOf([f64; 2]);

    impl GainVisitor for GainOf {
        type Output = f64;
        fn visit<G: PairGain>(self, gain: G) -> f64 {
            struct First<G>(G, [f64; 2]);
            impl<G: PairGain> WithSimd for First<G> {
                type Output = f64;
                fn with_simd<S: Simd>(self, simd: S) -> f64 {
                    let [left, sums] = self.1.map(|value| simd.splat_f64s(value));
                    simd.reduce_max_f64s(self.0.gains(simd, left, sums))
                }
            }
            Arch::new().dispatch(First(gain, self.0))
        }
    }

    proptest! {
        #[test]
        fn counts_are_what_was_put_together_and_gains_are_those_of_fractions(
            (all, own) in (3..=MOST_CLASSES).prop_flat_map(|n_classes| {
                let most = fields(n_classes).most_examples() as u64 / n_classes as u64;
                prop::collection::vec(prop_oneof![0..=most, 0..3u64, Just(most)], n_classes)
            }).prop_flat_map(|all| {
                let own: Vec<_> = all.iter().map(|&most| prop_oneof![0..=most, Just(0), Just(most)]).collect();
                (Just(all), own)
            })
        ) {
            let (n, w): (u64, u64) = (all.iter().sum(), own.iter().sum());
            prop_assume!(0 < w && w < n);
            let fields = fields(all.len());
            let [node, left] = [&all, &own].map(|counts| {
                let counts: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
                let [examples, sum] = [counts.iter().sum(), fields.sum(&counts)];
                assert_eq!(fields.counts(examples, sum).collect::<Vec<f64>>(), counts);
                [examples, sum]
            });
            let differences = all.iter().zip(&own).map(|(&all, &own)| i128::from(own * n) - i128::from(all * w));
            let squares: i128 = differences.map(|difference| difference * difference).sum();
            let expected = squares as f64 / (n * n) as f64 / (w as f64 * (n - w) as f64);
            let close = |found: f64| (found - expected).abs() <= 1e-14 * expected;
            let node = Node { examples: node[0], sum: node[1], classes: Some(fields) };
            prop_assert!(close(node.gain(left)), "{} {expected}", node.gain(left));
            let constraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };
            let found = GainFormula::new(node, constraint).visit(GainOf(left));
            prop_assert!(close(found), "{found} {expected}");
        }
    }
}
