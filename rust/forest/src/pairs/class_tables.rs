//! The classes of the target that the pairs of a node have fields for.
//!
//! Most nodes of a tree contain few of the classes of the target. The fewer classes there are, the more examples fit a pair, and
//! the fewer fields the computation of a gain reads. The pairs of a node therefore have fields for the classes that it contains.
//! Where four classes or fewer are left, the pairs are repacked with fields for these alone.
//!
//! Trees are grown depth first, so that one table for each layout on the path from the root is enough.

use super::{ClassFields, MOST_CLASSES, Pair};

/// The most layouts on a path: one at its start, and one whose first number is the number of examples alone.
const MOST_TABLES: usize = 2;

/// The classes of the layouts on the path from the root to the current node.
#[derive(Debug, Default)]
pub(crate) struct ClassTables {
    /// For each layout on the path the classes of its fields, ascending.
    tables: [[u32; MOST_CLASSES]; MOST_TABLES],
}

impl ClassTables {
    /// Returns the first layout on a path, with fields for `classes`, which ascend; `None` if there are fewer than 2 or more than
    /// [`MOST_CLASSES`].
    pub(crate) fn start(&mut self, mut classes: impl Iterator<Item = u32>) -> Option<ClassFields> {
        let mut n_classes = 0;
        for (own, class) in self.tables[0].iter_mut().zip(&mut classes) {
            *own = class;
            n_classes += 1;
        }
        ClassFields::new(n_classes, 0).filter(|_| classes.next().is_none())
    }

    /// The classes of `fields`, ascending.
    pub(crate) fn classes(&self, fields: ClassFields) -> &[u32] {
        &self.tables[fields.table()][..fields.n_classes()]
    }

    /// Returns the layout for the classes that occur in the sums `pair` of a node, and for each class of `fields` the pair of one
    /// example in that layout. `None` if the number of examples would share its number with counts of classes, or if only one
    /// class occurs.
    pub(crate) fn repacked(&mut self, fields: ClassFields, pair: Pair) -> Option<(ClassFields, [Pair; MOST_CLASSES])> {
        let mut present = fields.present(pair);
        let left = ClassFields::new(present.count_ones() as usize, fields.table() + 1)?;
        if !left.has_plain_count() {
            return None;
        }
        let mut pairs = [[0.0; 2]; MOST_CLASSES];
        for own in 0..left.n_classes() {
            let place = present.trailing_zeros() as usize;
            present &= present - 1;
            self.tables[left.table()][own] = self.tables[fields.table()][place];
            pairs[place] = left.example_of(own);
        }
        Some((left, pairs))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pairs_count_the_same_examples_with_fields_for_the_classes_left(
            n_classes in 2..=MOST_CLASSES as u32,
            left in prop::collection::vec((0..1000u32, 1..9u32), 1..20),
        ) {
            let classes = (0..n_classes).map(|class| 3 * class + 1);
            let mut tables = ClassTables::default();
            let fields = tables.start(classes).unwrap();
            let examples: Vec<(usize, f64)> =
                left.iter().map(|&(class, count)| ((class % n_classes) as usize, count.into())).collect();
            let pair = |fields: ClassFields, examples: &[(usize, f64)]| {
                let of_one = |&(place, count): &(usize, f64)| fields.example_of(place).map(|number| count * number);
                examples.iter().map(of_one).fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
            };
            let examples_of = fields.examples_of_one_class();
            for example in &examples {
                let (count, place) = examples_of(pair(fields, &[*example]));
                prop_assert_eq!((place, count), *example);
            }
            let by_class = |tables: &ClassTables, fields: ClassFields, pair: Pair| {
                let counts = tables.classes(fields).iter().copied().zip(fields.counts(pair));
                counts.filter(|&(_, count)| count > 0.0).collect::<Vec<(u32, f64)>>()
            };
            let all = pair(fields, &examples);
            let n_present = by_class(&tables, fields, all).len();
            let expected = by_class(&tables, fields, all);
            let Some((narrow, pairs)) = tables.repacked(fields, all) else {
                prop_assert!(n_present == 1 || n_present > 4);
                return Ok(());
            };
            prop_assert!((2..=4).contains(&n_present) && narrow.n_classes() == n_present);
            let narrowed = examples.iter().map(|&(place, count)| pairs[place].map(|number| count * number));
            let sum = narrowed.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d]);
            prop_assert_eq!((by_class(&tables, narrow, sum), narrow.count(sum[0])), (expected, fields.count(all[0])));
        }
    }

    #[test]
    fn a_layout_is_for_two_to_ten_classes() {
        let start = |n: u32| ClassTables::default().start(0..n).is_some();
        assert_eq!([0, 1, 2, 10, 11, 1_000].map(start), [false, false, true, true, false, false]);
    }
}
