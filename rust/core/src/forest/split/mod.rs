//! Searching the best test of one feature in one node.
//!
//! A search gets the node's codes as a slice, in the order of its examples, and gives the test with
//! the highest gain that leaves enough examples on both sides. Equal gains go to the lower cut.
//!
//! - [`single`]: one dense component, row weights all 1, nothing missing in the target;
//! - [`scan`]: everything else, examples in feature order;
//! - [`nominal`]: subsets of categories.

pub(crate) mod nominal;
pub(crate) mod scan;
pub(crate) mod single;

use crate::forest::moments::rounded;

/// What both children of a split must hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Least number of examples, counted with multiplicity.
    pub(crate) min_leaf: f64,
    /// Examples that miss the feature; they follow the heavier side, the left one if equal.
    pub(crate) missing: f64,
}

impl Room {
    /// Whether sides of these weights and numbers of examples have room.
    #[inline(always)]
    pub(crate) fn fits(self, weights: (f64, f64), examples: (f64, f64)) -> bool {
        let (mut left, mut right) = examples;
        if weights.0 >= weights.1 {
            left += self.missing;
        } else {
            right += self.missing;
        }
        left >= self.min_leaf && right >= self.min_leaf && examples.0 > 0.0 && examples.1 > 0.0
    }
}

/// The best cut among those offered in ascending order of codes.
#[derive(Debug)]
struct Best {
    /// Weight and number of examples of the node.
    weight: f64,
    examples: f64,
    room: Room,
    cut: Option<Cut>,
    /// Gains below this are not worth dividing for.
    floor: f64,
}

impl Best {
    fn new(weight: f64, examples: f64, room: Room) -> Self {
        Best { weight, examples, room, cut: None, floor: 0.0 }
    }

    /// Offers the cut above `code`, whose left side has this weight and these examples; `quality` is
    /// Σ_c (S_L − m·W_L)², the gain times the weights of both sides.
    #[inline(always)]
    fn offer(&mut self, code: usize, quality: f64, weight: f64, examples: f64) {
        let weights = weight * (self.weight - weight);
        if quality >= self.floor * weights {
            self.offer_gain(code, quality / weights, weight, examples);
        }
    }

    /// The same with the gain itself; not a number where a side is empty.
    #[inline(always)]
    fn offer_gain(&mut self, code: usize, gain: f64, weight: f64, examples: f64) {
        let (weights, examples) = ((weight, self.weight - weight), (examples, self.examples - examples));
        if gain >= self.floor && self.room.fits(weights, examples) {
            let gain = rounded(gain);
            if self.cut.is_none_or(|cut| gain > cut.gain) {
                self.cut = Some(Cut { gain, code: code as u16 });
                self.floor = gain * (1.0 - 1e-9);
            }
        }
    }
}

/// The best cut of a feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Impurity decrease over the examples whose value is known, [rounded](super::moments::rounded).
    pub(crate) gain: f64,
    /// Highest code that goes left.
    pub(crate) code: u16,
}
