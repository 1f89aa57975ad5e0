//! Lines of a panel as vectors, and masks as bits.

use pulp::Simd;

use super::layout::LANES;

/// Sums for `Q` rows of one panel and all of another, in `V` vectors each.
pub(super) type Table<S, const V: usize, const Q: usize> = [[<S as Simd>::f32s; V]; Q];

/// A panel's line as vectors.
#[inline(always)]
pub(super) fn line<S: Simd, const V: usize>(simd: S, values: &[f32]) -> [S::f32s; V] {
    let vectors = S::as_simd_f32s(values).0;
    let mut line = [simd.splat_f32s(0.0); V];
    line.copy_from_slice(&vectors[..V]);
    line
}

/// The lanes of `mask` as bits of a word.
#[inline(always)]
pub(super) fn word<S: Simd>(simd: S, mask: S::m32s) -> u32 {
    /// 1, 2, 4 …: a sum of distinct ones is the word with these bits, which f32 holds exactly.
    const POWERS: [f32; LANES] = {
        let mut powers = [1.0; LANES];
        let mut lane = 1;
        while lane < LANES {
            powers[lane] = 2.0 * powers[lane - 1];
            lane += 1;
        }
        powers
    };
    if size_of::<S::m32s>() == size_of::<u16>() {
        return u32::from(pulp::bytemuck::cast::<S::m32s, u16>(mask));
    }
    if simd.first_true_m32s(mask) >= S::F32_LANES {
        return 0;
    }
    let powers = S::as_simd_f32s(&POWERS).0[0];
    simd.reduce_sum_f32s(simd.select_f32s(mask, powers, simd.splat_f32s(0.0))) as u32
}

/// The positions of the bits that are set, ascending.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

/// The position of a row's word in a line of a panel: even rows first, so that two vectors of words make one of f32.
pub(super) fn word_position(row: usize) -> usize {
    row / 2 + row % 2 * (LANES / 2)
}

/// The row whose word is at `position`.
pub(super) fn row_of_word(position: usize) -> usize {
    2 * (position % (LANES / 2)) + position / (LANES / 2)
}
