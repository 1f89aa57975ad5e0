//! The features that a node can still test.
//!
//! A feature that is constant in a node is constant in the whole subtree, and is excluded there. The draws of a node
//! depend only on its path: every draw restores the order of the pool, and the pool is rewound when growth leaves a
//! subtree.

use std::convert::Infallible;

use rand::RngExt;

use ferrank_runtime::random::Stream;

/// Features in an order; the first `constant` of them are excluded.
#[derive(Debug, Default)]
pub(crate) struct FeaturePool {
    order: Vec<u32>,
    position: Vec<u32>,
    constant: usize,
    /// Swaps that moved constant features to the front.
    swaps: Vec<(u32, u32)>,
    /// Swaps of the current draw.
    drawn: Vec<(u32, u32)>,
    /// Features that a draw found to be constant.
    found: Vec<u32>,
}

/// A state to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    constant: usize,
    swaps: usize,
}

impl FeaturePool {
    /// All features except those that are `constant` in the whole data.
    pub(crate) fn new(constant: impl Iterator<Item = bool>) -> Self {
        let constant: Vec<bool> = constant.collect();
        let order = 0..constant.len() as u32;
        let mut pool =
            FeaturePool { position: order.clone().collect(), order: order.collect(), ..FeaturePool::default() };
        for (feature, _) in constant.iter().enumerate().filter(|&(_, &constant)| constant) {
            pool.mark_constant(feature as u32);
        }
        pool
    }

    /// Number of features that are not excluded.
    pub(crate) fn len(&self) -> usize {
        self.order.len() - self.constant
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { constant: self.constant, swaps: self.swaps.len() }
    }

    /// Restores the state at `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        while self.swaps.len() > mark.swaps {
            let (a, b) = self.swaps.pop().expect("longer than the mark");
            self.swap(a as usize, b as usize);
        }
        self.constant = mark.constant;
    }

    /// [`FeaturePool::try_draw`] with a `visit` that cannot fail.
    #[inline(always)]
    pub(crate) fn draw(&mut self, wanted: usize, random: &mut Stream, mut visit: impl FnMut(u32, &mut Stream) -> bool) {
        let Ok(()) = self.try_draw(wanted, random, |feature, random| Ok::<_, Infallible>(visit(feature, random)));
    }

    /// Calls `visit` with features until `wanted` of them vary, or none is left. `visit` returns true if the feature
    /// varies. The order is random if `wanted` is less than the number of features, and otherwise that of the pool.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub(crate) fn try_draw<E>(
        &mut self,
        wanted: usize,
        random: &mut Stream,
        mut visit: impl FnMut(u32, &mut Stream) -> Result<bool, E>,
    ) -> Result<(), E> {
        let shuffled = wanted < self.len();
        let mut found = std::mem::take(&mut self.found);
        let mut seen = 0;
        let mut done = Ok(());
        for i in self.constant..self.order.len() {
            if seen == wanted {
                break;
            }
            if shuffled {
                // The order must be restored before positions are used.
                let j = random.random_range(i..self.order.len());
                self.drawn.push((i as u32, j as u32));
                self.order.swap(i, j);
            }
            let feature = self.order[i];
            match visit(feature, random) {
                Ok(true) => seen += 1,
                Ok(false) => found.push(feature),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        for (i, j) in self.drawn.drain(..).rev() {
            self.order.swap(i as usize, j as usize);
        }
        found.drain(..).for_each(|feature| self.mark_constant(feature));
        self.found = found;
        done
    }

    /// Excludes `feature`, which must not be excluded yet.
    pub(crate) fn mark_constant(&mut self, feature: u32) {
        let (from, to) = (self.position[feature as usize] as usize, self.constant);
        self.swaps.push((from as u32, to as u32));
        self.swap(from, to);
        self.constant += 1;
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.position[self.order[a] as usize] = a as u32;
        self.position[self.order[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrank_runtime::random::{Purpose, stream};

    fn drawn(pool: &mut FeaturePool, wanted: usize, node: u64) -> Vec<u32> {
        let mut seen = Vec::new();
        pool.draw(wanted, &mut stream(0, Purpose::Node, 0, node), |feature, _| {
            seen.push(feature);
            feature % 3 != 0
        });
        seen
    }

    #[test]
    fn constants_do_not_use_up_a_draw_and_are_set_aside_below() {
        let mut pool = FeaturePool::new((0..9).map(|feature| feature == 4));
        let root = pool.mark();
        let seen = drawn(&mut pool, 3, 0);
        assert_eq!(seen.iter().filter(|&&feature| feature % 3 != 0).count(), 3);
        assert!(!seen.contains(&4));
        let constants: Vec<u32> = seen.into_iter().filter(|feature| feature % 3 == 0).collect();
        assert!(drawn(&mut pool, 9, 1).iter().all(|feature| !constants.contains(feature)));
        pool.rewind(root);
        assert_eq!(pool.len(), 8);
    }

    #[test]
    fn draws_depend_on_the_node_and_not_on_what_was_visited_before() {
        let mut pool = FeaturePool::new((0..50).map(|_| false));
        let root = pool.mark();
        let first = drawn(&mut pool, 7, 5);
        pool.rewind(root);
        for node in 10..20 {
            drawn(&mut pool, 7, node);
        }
        pool.rewind(root);
        assert_eq!(first, drawn(&mut pool, 7, 5));
    }
}
