//! Gains of many cuts at once, from the sums of their left sides.

use pulp::Simd;

use super::SplitConstraint;
use super::single::Node;
use crate::pairs::{ClassFields, CountField, Pair, PairLayout};

/// Computes the gains of cuts of a node from the sums of their left sides.
#[derive(Clone, Copy)]
pub(crate) struct GainFormula {
    node: Node,
    /// Number of examples of the node.
    examples: f64,
    constraint: SplitConstraint,
}

/// Computes the gains of cuts from the pairs of their left sides.
pub(crate) trait PairGain: Copy {
    /// The gains of left sides with these numbers of their pairs.
    fn fractions<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> Fractions<S>;

    /// The same, divided; −1 where the constraint forbids the split.
    #[inline(always)]
    fn gains<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s {
        self.fractions(simd, left, sums).divided(simd)
    }
}

/// The gains of cuts as fractions, because divisions are slow.
pub(crate) struct Fractions<S: Simd> {
    /// False where the constraint forbids the split; the fraction then says nothing.
    pub(crate) allowed: S::m64s,
    pub(crate) numerators: S::f64s,
    pub(crate) denominators: S::f64s,
}

impl<S: Simd> Fractions<S> {
    #[inline(always)]
    fn divided(self, simd: S) -> S::f64s {
        let gains = simd.div_f64s(self.numerators, self.denominators);
        simd.select_f64s(self.allowed, gains, simd.splat_f64s(-1.0))
    }
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
        match self.node.layout {
            PairLayout::Component if self.constraint.missing > 0.0 => visitor.visit(SomeMissing(self)),
            PairLayout::Component => visitor.visit(self),
            _ => self.visit_more(visitor),
        }
    }

    #[inline(never)]
    fn visit_more<V: GainVisitor>(self, visitor: V) -> V::Output {
        match self.node.layout {
            PairLayout::Component => visitor.visit(self),
            PairLayout::Classes(classes) => match classes.sizes() {
                [0, 1] => visitor.visit(ClassGain::<0, 1>::new(self, classes)),
                [0, 2] => visitor.visit(ClassGain::<0, 2>::new(self, classes)),
                [0, 3] => visitor.visit(ClassGain::<0, 3>::new(self, classes)),
                [1, 3] => visitor.visit(ClassGain::<1, 3>::new(self, classes)),
                [2, 3] => visitor.visit(ClassGain::<2, 3>::new(self, classes)),
                _ => visitor.visit(ClassGain::<4, 5>::new(self, classes)),
            },
            PairLayout::Weighted(field) => visitor.visit(WeightGain::new(self, field)),
            PairLayout::Two(field) => visitor.visit(TwoGain::new(self, field)),
        }
    }

    pub(crate) fn new(node: Node, constraint: SplitConstraint) -> Self {
        GainFormula { node, examples: node.examples(), constraint }
    }

    /// The formula for a node of `examples` whose gains are computed with
    /// [`gains_of_qualities`](Self::gains_of_qualities) alone.
    pub(crate) fn from_qualities(examples: f64, constraint: SplitConstraint) -> Self {
        GainFormula::new(Node { pair: [examples, 0.0], layout: PairLayout::Component }, constraint)
    }

    /// The gain of splitting off `left`; −1 if the constraint forbids the split.
    #[inline(always)]
    pub(crate) fn gain(self, left: Pair) -> f64 {
        let (count, weight) = self.node.layout.count_and_weight(left[0]);
        let (weights, examples) = ((weight, self.node.weight() - weight), (count, self.examples - count));
        if self.constraint.allows(weights, examples) { self.node.gain(left) } else { -1.0 }
    }

    /// The gains of left sides with counts `left`, of rows of weight 1; −1 where the constraint forbids the split.
    /// `quality` is the gain times the counts of both sides.
    #[inline(always)]
    pub(crate) fn gains_of_qualities<S: Simd>(self, simd: S, left: S::f64s, quality: S::f64s) -> S::f64s {
        let fractions = match self.constraint.missing > 0.0 {
            true => self.fractions_of_qualities::<S, true>(simd, left, quality),
            false => self.fractions_of_qualities::<S, false>(simd, left, quality),
        };
        fractions.divided(simd)
    }

    /// The same, not divided. `MISSING` is true if the constraint knows of missing values.
    #[inline(always)]
    fn fractions_of_qualities<S: Simd, const MISSING: bool>(
        self,
        simd: S,
        left: S::f64s,
        quality: S::f64s,
    ) -> Fractions<S> {
        let splat = |x: f64| simd.splat_f64s(x);
        let right = simd.sub_f64s(splat(self.examples), left);
        let (mut held_left, mut held_right) = (left, right);
        if MISSING {
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
        let fits = if MISSING {
            let both_sides =
                simd.and_m64s(simd.greater_than_f64s(left, splat(0.0)), simd.greater_than_f64s(right, splat(0.0)));
            simd.and_m64s(enough, both_sides)
        } else {
            enough
        };
        Fractions { allowed: fits, numerators: quality, denominators: simd.mul_f64s(left, right) }
    }
}

impl GainFormula {
    /// The gains for a single component; −1 where the constraint forbids the split.
    #[inline(always)]
    pub(crate) fn gains_of_sums<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s {
        self.gains_of_qualities(simd, left, self.qualities(simd, left, sums))
    }

    /// The gains for a single component times the counts of both sides, as [`Node::gain`] computes them.
    #[inline(always)]
    fn qualities<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> S::f64s {
        let difference = simd.sub_f64s(sums, simd.mul_f64s(simd.splat_f64s(self.node.pair[1] / self.examples), left));
        simd.mul_f64s(difference, difference)
    }
}

/// A single component, where no value is missing.
impl PairGain for GainFormula {
    #[inline(always)]
    fn fractions<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> Fractions<S> {
        debug_assert_eq!(self.constraint.missing, 0.0, "cuts with missing values have a formula of their own");
        self.fractions_of_qualities::<S, false>(simd, left, self.qualities(simd, left, sums))
    }
}

/// A single component, where some values are missing and are no information.
#[derive(Clone, Copy)]
struct SomeMissing(GainFormula);

impl PairGain for SomeMissing {
    #[inline(always)]
    fn fractions<S: Simd>(self, simd: S, left: S::f64s, sums: S::f64s) -> Fractions<S> {
        self.0.fractions_of_qualities::<S, true>(simd, left, self.0.qualities(simd, left, sums))
    }
}

/// A class of a node.
#[derive(Debug, Clone, Copy)]
struct ClassOfNode {
    /// −C_k.
    minus_count: f64,
    /// What an example of the class adds to the number.
    unit: f64,
    /// The examples of the node over that.
    examples: f64,
}

impl ClassOfNode {
    fn new(examples: f64, unit: f64, count: f64) -> Self {
        // Exact, as the unit is a power of 2.
        ClassOfNode { minus_count: -count, unit, examples: examples * (1.0 / unit) }
    }
}

/// The sums over classes of n·c_k − C_k·W and of its squares.
#[derive(Clone, Copy)]
struct Differences<S: Simd> {
    sum: S::f64s,
    squares: S::f64s,
}

impl<S: Simd> Differences<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        Differences { sum: simd.splat_f64s(0.0), squares: simd.splat_f64s(0.0) }
    }

    /// Adds the classes whose counts are in `number`, of sides with `left` examples.
    #[inline(always)]
    fn add(mut self, simd: S, left: S::f64s, mut number: S::f64s, classes: &[ClassOfNode]) -> Self {
        for (place, class) in classes.iter().enumerate().rev() {
            let own = if place == 0 { number } else { multiple(simd, number, class.unit) };
            number = simd.sub_f64s(number, own);
            let all = simd.mul_f64s(own, simd.splat_f64s(class.examples));
            // Exact, fused or not.
            let difference = simd.mul_add_e_f64s(left, simd.splat_f64s(class.minus_count), all);
            self.squares = simd.mul_add_e_f64s(difference, difference, self.squares);
            self.sum = simd.add_f64s(self.sum, difference);
        }
        self
    }

    /// The squares, that of the last class among them.
    #[inline(always)]
    fn all_squares(self, simd: S) -> S::f64s {
        simd.mul_add_e_f64s(self.sum, self.sum, self.squares)
    }
}

/// Gains of a node with classes, over ω, of which the first number has the counts of `FIRST`, the second of `SECOND`.
#[derive(Clone, Copy)]
pub(crate) struct ClassGain<const FIRST: usize, const SECOND: usize> {
    formula: GainFormula,
    first: [ClassOfNode; FIRST],
    second: [ClassOfNode; SECOND],
    /// What an example adds to the first number, whatever its class.
    example: f64,
    /// 1 / examples².
    scale: f64,
}

impl<const FIRST: usize, const SECOND: usize> ClassGain<FIRST, SECOND> {
    pub(crate) fn new(formula: GainFormula, fields: ClassFields) -> Self {
        debug_assert_eq!(fields.sizes(), [FIRST, SECOND]);
        let GainFormula { node, examples, .. } = formula;
        // The last class has no field, and some fields may be of no class.
        let mut counts = fields.counts(node.pair).take(fields.n_classes() - 1);
        let mut class = |place| ClassOfNode::new(examples, fields.field(place), counts.next().unwrap_or(0.0));
        let (first, second) = (std::array::from_fn(&mut class), std::array::from_fn(&mut class));
        ClassGain { formula, first, second, example: fields.example(), scale: 1.0 / (examples * examples) }
    }
}

impl<const FIRST: usize, const SECOND: usize> PairGain for ClassGain<FIRST, SECOND> {
    #[inline(always)]
    fn fractions<S: Simd>(self, simd: S, first: S::f64s, second: S::f64s) -> Fractions<S> {
        let (mut left, mut counts) = (first, first);
        if FIRST > 0 {
            let examples = multiple(simd, first, self.example);
            left = simd.mul_f64s(examples, simd.splat_f64s(1.0 / self.example));
            counts = simd.sub_f64s(first, examples);
        }
        let differences = Differences::new(simd).add(simd, left, counts, &self.first);
        let squares = differences.add(simd, left, second, &self.second).all_squares(simd);
        self.formula.fractions_of_qualities::<S, false>(simd, left, simd.mul_f64s(squares, simd.splat_f64s(self.scale)))
    }
}

/// Gains of a node whose rows have weights. No value is missing.
#[derive(Clone, Copy)]
pub(crate) struct WeightGain {
    unit: f64,
    weight: f64,
    mean: f64,
    /// The least and the most examples of a left side, times the unit.
    bounds: [f64; 2],
}

impl WeightGain {
    pub(crate) fn new(formula: GainFormula, field: CountField) -> Self {
        let GainFormula { node, examples, constraint } = formula;
        debug_assert_eq!(constraint.missing, 0.0, "examples without a value are no part of the node");
        let bounds = [constraint.min_leaf, examples - constraint.min_leaf].map(|count| count * field.unit());
        WeightGain { unit: field.unit(), weight: node.weight(), mean: node.mean(), bounds }
    }
}

impl PairGain for WeightGain {
    #[inline(always)]
    fn fractions<S: Simd>(self, simd: S, first: S::f64s, sums: S::f64s) -> Fractions<S> {
        let splat = |x: f64| simd.splat_f64s(x);
        let [least, most] = self.bounds.map(splat);
        let counts = nearest(simd, first, self.unit);
        // Exact, fused or not.
        let left = simd.mul_add_e_f64s(counts, splat(0.5 / self.unit), simd.sub_f64s(first, counts));
        let right = simd.sub_f64s(splat(self.weight), left);
        let difference = simd.sub_f64s(sums, simd.mul_f64s(splat(self.mean), left));
        let enough =
            simd.and_m64s(simd.greater_than_or_equal_f64s(counts, least), simd.less_than_or_equal_f64s(counts, most));
        Fractions {
            allowed: enough,
            numerators: simd.mul_f64s(difference, difference),
            denominators: simd.mul_f64s(left, right),
        }
    }
}

/// Gains of a node with two components.
#[derive(Clone, Copy)]
pub(crate) struct TwoGain {
    formula: GainFormula,
    unit: f64,
    means: [f64; 2],
}

impl TwoGain {
    pub(crate) fn new(formula: GainFormula, field: CountField) -> Self {
        TwoGain { formula, unit: field.unit(), means: field.means(formula.node.pair) }
    }
}

impl PairGain for TwoGain {
    #[inline(always)]
    fn fractions<S: Simd>(self, simd: S, first: S::f64s, second: S::f64s) -> Fractions<S> {
        let counts = nearest(simd, first, self.unit);
        let sums = [simd.sub_f64s(first, counts), second];
        let left = simd.mul_f64s(counts, simd.splat_f64s(1.0 / self.unit));
        let mut quality = simd.splat_f64s(0.0);
        for (sum, mean) in sums.into_iter().zip(self.means) {
            let difference = simd.sub_f64s(sum, simd.mul_f64s(simd.splat_f64s(mean), left));
            quality = simd.add_f64s(quality, simd.mul_f64s(difference, difference));
        }
        self.formula.fractions_of_qualities::<S, false>(simd, left, quality)
    }
}

/// The greatest multiples of `unit`, a power of 2 above 1, up to `x`, integers from 0 to 2⁵².
#[inline(always)]
fn multiple<S: Simd>(simd: S, x: S::f64s, unit: f64) -> S::f64s {
    // Less than half a unit, so that nothing is half-way between two multiples.
    nearest(simd, simd.sub_f64s(x, simd.splat_f64s(0.5 * unit - 0.5)), unit)
}

/// The multiples of `unit`, a power of 2, nearest to `x`, which are below 2⁵¹ units.
#[inline(always)]
fn nearest<S: Simd>(simd: S, x: S::f64s, unit: f64) -> S::f64s {
    // Around it, numbers are apart by `unit`.
    let apart = simd.splat_f64s((3u64 << 51) as f64 * unit);
    simd.sub_f64s(simd.add_f64s(x, apart), apart)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulp::{Arch, WithSimd};

    use super::*;
    use crate::pairs::{ClassTables, MOST_CLASSES};

    fn fields(n_classes: usize) -> ClassFields {
        ClassTables::default().start(0..n_classes as u32).unwrap()
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
        fn gains_of_weighted_examples_are_those_of_their_means(
            examples in prop::collection::vec((1..=3u32, 1..=8u32, -100..100i32, any::<bool>()), 2..40),
            min_leaf in 1..4u32,
        ) {
            let weight = |eighths: u32| f64::from(eighths) / 8.0;
            let field = CountField::of_weights((1..=8).map(weight)).unwrap();
            let layout = PairLayout::Weighted(field);
            let pair = |&(count, eighths, value, _): &(u32, u32, i32, bool)| {
                let weight = weight(eighths);
                [field.weighted_number(1.0, weight), weight * f64::from(value)].map(|number| f64::from(count) * number)
            };
            let pairs: Vec<Pair> = examples.iter().map(pair).collect();
            let left: Vec<Pair> = examples.iter().filter(|example| example.3).map(pair).collect();
            let sums = |left: bool| examples.iter().filter(|example| example.3 == left).fold((0, 0, 0), |sums, example| {
                let &(count, eighths, value, _) = example;
                let (count, weight) = (i64::from(count), i64::from(count * eighths));
                (sums.0 + count, sums.1 + weight, sums.2 + weight * i64::from(value))
            });
            let (own, other) = (sums(true), sums(false));
            let is_allowed = own.0.min(other.0) >= i64::from(min_leaf);
            let difference = own.2 * (own.1 + other.1) - (own.2 + other.2) * own.1;
            let weights = (own.1 * other.1) as f64;
            let expected = (difference as f64 / (own.1 + other.1) as f64).powi(2) / weights;
            let node = Node::new(&pairs, layout);
            let left = Node::new(&left, layout).pair;
            let constraint = SplitConstraint { min_leaf: f64::from(min_leaf), missing: 0.0 };
            let found = GainFormula::new(node, constraint).visit(GainOf(left));
            if is_allowed {
                prop_assert!((found - expected).abs() <= 1e-9 * expected.max(1e-9), "{found} {expected}");
                prop_assert_eq!(found.to_bits(), GainFormula::new(node, constraint).gain(left).to_bits());
            } else {
                prop_assert_eq!(found, -1.0);
            }
        }

        #[test]
        fn counts_are_what_was_put_together_and_gains_are_those_of_fractions(
            (all, own) in (2..=MOST_CLASSES).prop_flat_map(|n_classes| {
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
                let pair = fields.pair(counts.iter().sum(), counts.iter().copied());
                assert_eq!(fields.counts(pair).collect::<Vec<f64>>(), counts);
                pair
            });
            let differences = all.iter().zip(&own).map(|(&all, &own)| i128::from(own * n) - i128::from(all * w));
            let squares: i128 = differences.map(|difference| difference * difference).sum();
            let expected = squares as f64 / (n * n) as f64 / (w as f64 * (n - w) as f64);
            let close = |found: f64| (found - expected).abs() <= 1e-14 * expected;
            let node = Node { pair: node, layout: PairLayout::Classes(fields) };
            prop_assert!(close(node.gain(left)), "{} {expected}", node.gain(left));
            let constraint = SplitConstraint { min_leaf: 1.0, missing: 0.0 };
            let found = GainFormula::new(node, constraint).visit(GainOf(left));
            prop_assert!(close(found), "{found} {expected}");
        }
    }
}
