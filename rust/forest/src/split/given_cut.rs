//! The gain of a given cut for any components, from the sums of its smaller side.

use pulp::{Arch, Simd, WithSimd};

use super::kernel::Kernel;
use super::order::positions;
use super::scan::Scratch;
use super::search::Search;
use super::side_sums::{SideBuffers, SideSums};
use super::{Cut, dense, values};
use ferrank_data::store::Code;

impl<C: Code> Search<'_, C> {
    /// The cut above the code `cut` with its gain, computed by `kernel`. `None` if the constraint forbids the cut.
    pub(crate) fn given_cut(self, kernel: Kernel, arch: Arch, cut: C, scratch: &mut Scratch) -> Option<Cut> {
        arch.dispatch(GivenCut { search: self, kernel, cut, scratch })
    }
}

struct GivenCut<'a, C> {
    search: Search<'a, C>,
    kernel: Kernel,
    cut: C,
    scratch: &'a mut Scratch,
}

impl<C: Code> WithSimd for GivenCut<'_, C> {
    type Output = Option<Cut>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Cut> {
        let Search { codes, node, constraint, .. } = self.search;
        let n_left = codes.iter().filter(|&&code| code <= self.cut).count();
        let left_is_smaller = 2 * n_left <= codes.len();
        // Splitting off one side gains as much as splitting off the other.
        let (weight, count, gain) = match self.kernel {
            Kernel::Dense => self.search.side_of_dense(simd, self.cut, left_is_smaller),
            Kernel::Labels => self.search.side_of_labels(self.cut, left_is_smaller, self.scratch),
            _ => {
                let Scratch { order, side, .. } = self.scratch;
                positions(codes, |code| (code <= self.cut) == left_is_smaller, order);
                self.search.side_gain(simd, order, side)
            }
        };
        let (weights, counts) = ((weight, node.weight() - weight), (count, node.examples() - count));
        let fits = if left_is_smaller {
            constraint.allows(weights, counts)
        } else {
            constraint.allows((weights.1, weights.0), (counts.1, counts.0))
        };
        fits.then(|| Cut::new(gain.max(0.0), self.cut.index() as u16))
    }
}

impl<C: Code> Search<'_, C> {
    /// The weight, the examples and the gain of one side of `cut`, for few dense components.
    #[inline(always)]
    fn side_of_dense<S: Simd>(self, simd: S, cut: C, left: bool) -> (f64, f64, f64) {
        match values::vectors_of::<S>(self.criterion) {
            Some(1) => dense::side_gain::<S, C, 1>(simd, self, cut, left),
            Some(2) => dense::side_gain::<S, C, 2>(simd, self, cut, left),
            _ => dense::side_gain::<S, C, 4>(simd, self, cut, left),
        }
    }

    /// The weight, the examples and the gain of one side of `cut`, for labels alone, known for all rows, of weight 1.
    #[inline(always)]
    fn side_of_labels(self, cut: C, left: bool, scratch: &mut Scratch) -> (f64, f64, f64) {
        let Search { criterion, examples, codes, node, .. } = self;
        let Scratch { order, entry_codes, side, .. } = scratch;
        let labels = node.labels(criterion, examples);
        labels.write_codes(codes, entry_codes);
        positions(entry_codes, |code| (code.index() <= cut.index()) == left, order);
        let (count, whole) = labels.sum(order, &mut side.labels);
        side.labels.clear(order.len(), order.iter().flat_map(|&place| labels.labels_at(place)));
        let gain = whole.quality(count / node.weight(), node.squares) / (count * (node.weight() - count));
        (count, count, gain)
    }

    /// The weight, the examples and the gain of the side with the examples at `positions`.
    #[inline(always)]
    fn side_gain<S: Simd>(self, simd: S, positions: &[u32], zeros: &mut SideBuffers) -> (f64, f64, f64) {
        let node = self.node;
        let mut side = SideSums::new(self, zeros);
        positions.iter().for_each(|&position| side.add(simd, self, position as usize));
        let quality = side.measure(simd, node);
        let result = (side.weight, side.count, side.gain(simd, node, quality));
        side.clear(positions);
        result
    }
}
