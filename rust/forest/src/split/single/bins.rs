//! Sums by code, and the best cut that follows from them.

use pulp::Arch;

use super::all_bins;
use super::in_order::CutsInOrder;
use super::node::{Node, add};
use crate::pairs::Pair;
use crate::split::gain::GainFormula;
use crate::split::{Best, Cut, SplitConstraint};
use ferrank_data::store::Code;

/// Number of codes of one byte.
pub(super) const N_BYTES: usize = 1 << 8;

/// The non-empty bins are visited one by one if a node has fewer examples than this share of the bins.
const SPARSE_SHARE: f64 = 0.15;

/// Returns true if `examples` fill enough of `n_codes` bins that judging all bins at once is faster.
#[inline(always)]
pub(crate) fn is_dense(examples: usize, n_codes: usize) -> bool {
    examples as f64 >= SPARSE_SHARE * n_codes as f64
}

/// A histogram of [`Pair`]s by code; missing values have a bin above all codes. All bins are 0 between searches.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Pair>,
    /// A bit for each bin that is not empty.
    used: Vec<u64>,
    /// A bit for each word of `used` that is not 0.
    used_words: Vec<u64>,
    /// n_bytes; 1 for each bin that is not empty, where these are marked.
    ///
    /// These three are boxed: stacks of threads have no room for growers with arrays.
    marks: Box<[u8; N_BYTES]>,
    /// n_bytes; the codes of marked bins, ascending, and the sums of the bins up to each.
    marked: Box<[u8; N_BYTES]>,
    lefts: Box<[Pair; N_BYTES]>,
}

impl Bins {
    /// Empty bins for codes below `n_codes`, and for missing values.
    pub(crate) fn new(n_codes: usize) -> Self {
        let words = (n_codes + 1).div_ceil(64);
        Bins {
            bins: vec![[0.0; 2]; 64 * words],
            used: vec![0; words],
            used_words: vec![0; words.div_ceil(64)],
            marks: Box::new([0; N_BYTES]),
            marked: Box::new([0; N_BYTES]),
            lefts: Box::new([[0.0; 2]; N_BYTES]),
        }
    }

    /// The best cut of the filled bins, all below `n_codes` except for that of missing values. Clears the bins.
    pub(super) fn best_cut(&mut self, arch: Arch, n_codes: usize, missing: usize, gain: GainFormula) -> Option<Cut> {
        let missing = std::mem::take(&mut self.bins[missing]);
        all_bins::best_cut(arch, &mut self.bins, n_codes, gain, missing)
    }

    /// The bins of all codes of one byte, and their marks.
    pub(super) fn bytes(&mut self) -> (&mut [Pair; N_BYTES], &mut [u8; N_BYTES]) {
        (self.bins.first_chunk_mut().expect("a bin for each byte"), &mut self.marks)
    }

    pub(super) fn clear_marks(&mut self) {
        self.marks.fill(0);
    }

    /// The best cut of the marked bins; clears the bins. `None` if some value is missing: nothing is cleared but the marks.
    pub(super) fn best_marked_cut(&mut self, arch: Arch, gain: GainFormula) -> Option<Option<Cut>> {
        let Bins { bins, marks, marked, lefts, .. } = self;
        let marks = std::mem::replace(&mut **marks, [0; N_BYTES]);
        if marks[usize::from(u8::MISSING)] > 0 {
            return None;
        }
        let (mut n, mut left) = (0, [0.0; 2]);
        for (word, marks) in marks.as_chunks::<64>().0.iter().enumerate() {
            let mut bits = bits_of(marks);
            while bits != 0 {
                let code = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                add(&mut left, std::mem::take(&mut bins[code]));
                (marked[n], lefts[n]) = (code as u8, left);
                n += 1;
            }
        }
        let cut = all_bins::best_left(arch, &mut lefts[..], n, gain);
        Some(cut.map(|cut| Cut { code: marked[usize::from(cut.code)].into(), ..cut }))
    }

    /// Calls `each` for the bins below `n_codes` that are not empty, in ascending order, and clears these.
    #[inline(always)]
    pub(super) fn drain_all(&mut self, n_codes: usize, mut each: impl FnMut(usize, Pair)) {
        for (code, bin) in self.bins[..n_codes].iter_mut().enumerate().filter(|(_, bin)| bin[0] > 0.0) {
            each(code, std::mem::take(bin));
        }
    }

    /// Adds up examples by their `places`.
    #[inline(always)]
    pub(super) fn fill(&mut self, places: impl Iterator<Item = usize>, pairs: impl Iterator<Item = Pair>) {
        for (place, pair) in places.zip(pairs) {
            add(&mut self.bins[place], pair);
        }
    }

    /// Adds up examples by their `places`, and marks the bins that are not empty.
    #[inline(always)]
    pub(super) fn fill_and_mark(
        &mut self,
        places: impl Iterator<Item = usize>,
        pairs: impl ExactSizeIterator<Item = Pair>,
    ) {
        // With fewer examples than words, marking the word of each example is cheaper than looking at all words.
        let by_one = pairs.len() < self.used.len();
        for (code, pair) in places.zip(pairs) {
            add(&mut self.bins[code], pair);
            self.used[code / 64] |= 1 << (code % 64);
            if by_one {
                self.used_words[code / 4096] |= 1 << (code / 64 % 64);
            }
        }
        if !by_one {
            for (word, _) in self.used.iter().enumerate().filter(|&(_, &used)| used != 0) {
                self.used_words[word / 64] |= 1 << (word % 64);
            }
        }
    }

    /// Calls `each` for the non-empty bins in ascending order, and clears them.
    #[inline(always)]
    pub(super) fn drain(&mut self, mut each: impl FnMut(usize, Pair)) {
        for group in 0..self.used_words.len() {
            let mut words = std::mem::take(&mut self.used_words[group]);
            while words != 0 {
                let word = group * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                let mut bits = std::mem::take(&mut self.used[word]);
                while bits != 0 {
                    let code = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    each(code, std::mem::take(&mut self.bins[code]));
                }
            }
        }
    }
}

/// A bit for each of `marks`, which are 0 or 1.
#[inline(always)]
fn bits_of(marks: &[u8; 64]) -> u64 {
    /// Moves the lowest bit of byte n to bit n of the highest byte.
    const TOGETHER: u64 = 0x0102_0408_1020_4080;
    let bytes = marks.as_chunks::<8>().0.iter().enumerate();
    bytes
        .fold(0, |bits, (place, &bytes)| bits | (u64::from_le_bytes(bytes).wrapping_mul(TOGETHER) >> 56) << (8 * place))
}

/// The best cut over `codes`, one for each example of `node`, all below `n_codes` or missing. `None` if the constraint
/// allows no cut.
#[inline(always)]
pub(crate) fn best_cut<C: Code>(
    arch: Arch,
    (codes, n_codes): (impl Iterator<Item = C>, usize),
    pairs: impl ExactSizeIterator<Item = Pair>,
    node: Node,
    constraint: SplitConstraint,
    bins: &mut Bins,
) -> Option<Cut> {
    let places = codes.map(|code| code.index().min(n_codes));
    if is_dense(pairs.len(), n_codes) {
        bins.fill(places, pairs);
        return bins.best_cut(arch, n_codes, n_codes, GainFormula::new(node, constraint));
    }
    bins.fill_and_mark(places, pairs);
    best_used(node, constraint, bins, n_codes)
}

/// [`best_used`] where no value is missing, which is 1.07x faster with exact codes (100k x 20).
fn best_known(node: Node, constraint: SplitConstraint, bins: &mut Bins) -> Option<Cut> {
    let mut best = Best::new(node.weight(), node.examples(), constraint);
    let mut left = [0.0; 2];
    bins.drain(|code, bin| {
        add(&mut left, bin);
        let (count, weight) = node.layout.count_and_weight(left[0]);
        best.offer(code, node.quality(left), weight, count);
    });
    best.cut()
}

/// The best cut, found by visiting the non-empty bins. Those of known values are below `n_codes`.
fn best_used(node: Node, constraint: SplitConstraint, bins: &mut Bins, n_codes: usize) -> Option<Cut> {
    let missing = bins.bins[n_codes];
    if missing[0] == 0.0 {
        return best_known(node, constraint, bins);
    }
    let mut cuts = CutsInOrder::new(node, constraint, missing, 0.0);
    bins.drain(|code, bin| {
        if code != n_codes {
            cuts.push(code, bin);
        }
    });
    cuts.best()
}
