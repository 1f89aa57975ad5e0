//! Sums of absolute differences of bytes, eight to a word, and numbers of categories that differ, 64 to two words, with
//! AVX2 or AVX-512.

use pulp::{Arch, NullaryFnOnce, Simd};

use super::byte_codes::{ByteCodesPanel, CATEGORY};
use super::layout::LANES;
use super::vectors::{Table, word_position};

/// Bytes compared at once by [`Bytes::at_most`], each with a bit of a word.
pub(super) const WORD: usize = u64::BITS as usize;

/// Number of bits set in each number of four bits.
#[cfg(target_arch = "x86_64")]
const BITS: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
/// Words whose bits are counted in bytes: 8 in a byte of each.
const COUNTED: usize = u8::MAX as usize / 8;

/// Vectors that compare bytes.
pub(super) trait Bytes: Simd {
    /// Sums of the absolute differences of the bytes of each word.
    fn sum_differences(self, a: Self::u64s, b: Self::u64s) -> Self::u64s;
    /// Converts words below 2³¹ to f32: `even` to the even lanes, `odd` to the odd ones.
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s;
    /// Truncates a line of numbers to bytes, clamped to 0 … 255.
    fn bytes(self, numbers: &[Self::f32s]) -> [u8; LANES];
    /// Interleaves the bytes of `a` and `b`.
    fn interleave(self, a: [u8; LANES], b: [u8; LANES]) -> [[u8; LANES]; 2];
    /// Returns a word with a bit set for each byte that is at most `high`.
    fn at_most(self, bytes: &[u8; WORD], high: u8) -> u64;
    /// Adds 1 to each byte of `counts` for which the bytes of `a` and `b` are equal.
    fn add_equal_bytes(self, counts: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s;
    /// Adds the number of bits set in each byte of `bits` to the byte of `counts`.
    fn add_bits(self, counts: Self::u64s, bits: Self::u64s) -> Self::u64s;
    /// Adds the smaller of each two signed 16-bit numbers of `a` and `b` to the 32-bit numbers `sums`, two to each.
    fn add_least(self, sums: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s;
    /// Returns a bit for each word below 2⁶³ that is at most the one of `high`.
    fn at_most_words(self, words: Self::u64s, high: Self::u64s) -> u32;
}

#[cfg(target_arch = "x86_64")]
impl Bytes for pulp::x86::V4 {
    #[inline(always)]
    fn sum_differences(self, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        pulp::cast(self.avx512bw._mm512_sad_epu8(pulp::cast(a), pulp::cast(b)))
    }

    #[inline(always)]
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s {
        let odd = self.avx512f._mm512_slli_epi64::<32>(pulp::cast(odd));
        let all = self.avx512f._mm512_or_si512(pulp::cast(even), odd);
        pulp::cast(self.avx512f._mm512_cvtepi32_ps(all))
    }

    #[inline(always)]
    fn bytes(self, numbers: &[Self::f32s]) -> [u8; LANES] {
        let positive = self.max_f32s(numbers[0], self.splat_f32s(0.0));
        pulp::cast(self.avx512f._mm512_cvtusepi32_epi8(self.avx512f._mm512_cvttps_epu32(pulp::cast(positive))))
    }

    #[inline(always)]
    fn interleave(self, a: [u8; LANES], b: [u8; LANES]) -> [[u8; LANES]; 2] {
        (*self).interleave(a, b)
    }

    #[inline(always)]
    fn at_most(self, bytes: &[u8; WORD], high: u8) -> u64 {
        self.avx512bw._mm512_cmple_epu8_mask(pulp::cast(*bytes), self.avx512f._mm512_set1_epi8(high as i8))
    }

    #[inline(always)]
    fn add_equal_bytes(self, counts: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        let (counts, one) = (pulp::cast(counts), self.avx512f._mm512_set1_epi8(1));
        let equal = self.avx512bw._mm512_cmpeq_epi8_mask(pulp::cast(a), pulp::cast(b));
        pulp::cast(self.avx512bw._mm512_mask_add_epi8(counts, equal, counts, one))
    }

    #[inline(always)]
    fn add_bits(self, counts: Self::u64s, bits: Self::u64s) -> Self::u64s {
        let (table, low) = (pulp::cast([BITS; 4]), self.avx512f._mm512_set1_epi8(0xf));
        let bits = pulp::cast(bits);
        let of_low = self.avx512f._mm512_and_si512(bits, low);
        let of_high = self.avx512f._mm512_and_si512(self.avx512bw._mm512_srli_epi16::<4>(bits), low);
        let mut sums = pulp::cast(counts);
        for half in [of_low, of_high] {
            sums = self.avx512bw._mm512_add_epi8(sums, self.avx512bw._mm512_shuffle_epi8(table, half));
        }
        pulp::cast(sums)
    }

    #[inline(always)]
    fn add_least(self, sums: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        let least = self.avx512bw._mm512_min_epi16(pulp::cast(a), pulp::cast(b));
        let pairs = self.avx512bw._mm512_madd_epi16(least, self.avx512f._mm512_set1_epi16(1));
        pulp::cast(self.avx512f._mm512_add_epi32(pulp::cast(sums), pairs))
    }

    #[inline(always)]
    fn at_most_words(self, words: Self::u64s, high: Self::u64s) -> u32 {
        u32::from(self.avx512f._mm512_cmple_epu64_mask(pulp::cast(words), pulp::cast(high)))
    }
}

#[cfg(target_arch = "x86_64")]
impl Bytes for pulp::x86::V3 {
    #[inline(always)]
    fn sum_differences(self, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        pulp::cast(self.avx2._mm256_sad_epu8(pulp::cast(a), pulp::cast(b)))
    }

    #[inline(always)]
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s {
        let odd = self.avx2._mm256_slli_epi64::<32>(pulp::cast(odd));
        let all = self.avx2._mm256_or_si256(pulp::cast(even), odd);
        pulp::cast(self.avx._mm256_cvtepi32_ps(all))
    }

    #[inline(always)]
    fn bytes(self, numbers: &[Self::f32s]) -> [u8; LANES] {
        let (zero, most) = (self.splat_f32s(0.0), self.splat_f32s(255.0));
        let mut words = [self.avx._mm256_setzero_si256(); 2];
        for half in 0..2 {
            let within = self.min_f32s(self.max_f32s(numbers[half], zero), most);
            words[half] = self.avx._mm256_cvttps_epi32(pulp::cast(within));
        }
        // AVX2 packs each half of 128 bits on its own.
        let [low, high]: [_; 2] = pulp::cast(
            self.avx2._mm256_permute4x64_epi64::<0b11_01_10_00>(self.avx2._mm256_packus_epi32(words[0], words[1])),
        );
        pulp::cast(self.sse2._mm_packus_epi16(low, high))
    }

    #[inline(always)]
    fn interleave(self, a: [u8; LANES], b: [u8; LANES]) -> [[u8; LANES]; 2] {
        let (a, b) = (pulp::cast(a), pulp::cast(b));
        [pulp::cast(self.sse2._mm_unpacklo_epi8(a, b)), pulp::cast(self.sse2._mm_unpackhi_epi8(a, b))]
    }

    #[inline(always)]
    fn at_most(self, bytes: &[u8; WORD], high: u8) -> u64 {
        let high = self.avx._mm256_set1_epi8(high as i8);
        let halves: [std::arch::x86_64::__m256i; 2] = pulp::cast(*bytes);
        let mut bits = [0u32; 2];
        for half in 0..2 {
            let least = self.avx2._mm256_min_epu8(halves[half], high);
            bits[half] = self.avx2._mm256_movemask_epi8(self.avx2._mm256_cmpeq_epi8(least, halves[half])) as u32;
        }
        u64::from(bits[0]) | u64::from(bits[1]) << u32::BITS
    }

    #[inline(always)]
    fn add_equal_bytes(self, counts: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        // Equal bytes are compared to -1.
        let equal = self.avx2._mm256_cmpeq_epi8(pulp::cast(a), pulp::cast(b));
        pulp::cast(self.avx2._mm256_sub_epi8(pulp::cast(counts), equal))
    }

    #[inline(always)]
    fn add_bits(self, counts: Self::u64s, bits: Self::u64s) -> Self::u64s {
        let (table, low) = (pulp::cast([BITS; 2]), self.avx._mm256_set1_epi8(0xf));
        let bits = pulp::cast(bits);
        let of_low = self.avx2._mm256_and_si256(bits, low);
        let of_high = self.avx2._mm256_and_si256(self.avx2._mm256_srli_epi16::<4>(bits), low);
        let mut sums = pulp::cast(counts);
        for half in [of_low, of_high] {
            sums = self.avx2._mm256_add_epi8(sums, self.avx2._mm256_shuffle_epi8(table, half));
        }
        pulp::cast(sums)
    }

    #[inline(always)]
    fn add_least(self, sums: Self::u64s, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        let least = self.avx2._mm256_min_epi16(pulp::cast(a), pulp::cast(b));
        let pairs = self.avx2._mm256_madd_epi16(least, self.avx._mm256_set1_epi16(1));
        pulp::cast(self.avx2._mm256_add_epi32(pulp::cast(sums), pairs))
    }

    #[inline(always)]
    fn at_most_words(self, words: Self::u64s, high: Self::u64s) -> u32 {
        let above = self.avx2._mm256_cmpgt_epi64(pulp::cast(words), pulp::cast(high));
        !self.avx._mm256_movemask_pd(pulp::cast(above)) as u32 & 0b1111
    }
}

/// Work with vectors that compare bytes.
pub(super) trait WithBytes {
    type Output;

    /// Runs on vectors of type `S`, with sums for `Q` rows in `V` vectors of words each, which make `W` vectors of f32.
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) -> Self::Output;
}

/// Runs `work` on the widest vectors. `None` where the machine has none that compare bytes.
pub(super) fn dispatch<W: WithBytes>(arch: Arch, work: W) -> Option<W::Output> {
    struct Work<S, W>(S, W);
    impl<S: Bytes, W: WithBytes> NullaryFnOnce for Work<S, W> {
        type Output = W::Output;

        #[inline(always)]
        fn call(self) -> W::Output {
            // As many sums as fit 32 registers, and 16.
            match S::U64_LANES {
                8 => self.1.run::<S, 2, 1, 8>(self.0),
                _ => self.1.run::<S, 4, 2, 2>(self.0),
            }
        }
    }
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => Some(simd.vectorize(Work(simd, work))),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => Some(simd.vectorize(Work(simd, work))),
        _ => None,
    }
}

/// Distances of byte codes, in steps of a byte, between `Q` rows of panel `ones`, from `first` on, and the rows of
/// panel `others`.
#[inline(always)]
pub(super) fn byte_distances<S: Bytes, const V: usize, const W: usize, const Q: usize>(
    simd: S,
    ones: ByteCodesPanel<'_>,
    others: ByteCodesPanel<'_>,
    first: usize,
) -> Table<S, W, Q> {
    let sums = byte_sums::<S, V, Q>(simd, [simd.splat_u64s(0); V], [ones, others], first);
    // A closure would not be compiled for the vector instructions of `S`.
    let mut steps = [[simd.splat_f32s(0.0); W]; Q];
    for q in 0..Q {
        for w in 0..W {
            steps[q][w] = simd.numbers(sums[q][w], sums[q][w + W]);
        }
    }
    steps
}

/// As [`byte_distances`], added to the [offset](ByteCodesPanel::offsets) of each of the rows of panel `others`; a bit for each
/// of these where the sum is at most the limit of the row of panel `ones`, at its [position](word_position).
#[inline(always)]
pub(super) fn bytes_within<S: Bytes, const V: usize, const Q: usize>(
    simd: S,
    [ones, others]: [ByteCodesPanel<'_>; 2],
    first: usize,
    limits: &[u64; LANES],
) -> [u16; Q] {
    let sums = byte_sums::<S, V, Q>(simd, words::<S, V>(simd, others.offsets), [ones, others], first);
    let mut within = [0; Q];
    for q in 0..Q {
        let limit = simd.splat_u64s(limits[first + q]);
        for (v, &sums) in sums[q].iter().enumerate() {
            within[q] |= (simd.at_most_words(sums, limit) << (v * S::U64_LANES)) as u16;
        }
    }
    within
}

/// Sums of the absolute differences of bytes and of the steps between categories, added to the sums at the start. The sums
/// of even rows come before the sums of odd rows.
#[inline(always)]
fn byte_sums<S: Bytes, const V: usize, const Q: usize>(
    simd: S,
    start: [S::u64s; V],
    [ones, others]: [ByteCodesPanel<'_>; 2],
    first: usize,
) -> [[S::u64s; V]; Q] {
    let mut sums = [start; Q];
    for (others, ones) in others.octets.as_chunks::<LANES>().0.iter().zip(ones.octets.as_chunks::<LANES>().0) {
        let line = words::<S, V>(simd, others);
        let mut next = sums;
        for q in 0..Q {
            let one = simd.splat_u64s(ones[word_position(first + q)]);
            for v in 0..V {
                next[q][v] = simd.add_u64s(sums[q][v], simd.sum_differences(line[v], one));
            }
        }
        sums = next;
    }
    for (others, ones) in others.categories.chunks(2 * COUNTED * LANES).zip(ones.categories.chunks(2 * COUNTED * LANES))
    {
        let mut counts = [[simd.splat_u64s(0); V]; Q];
        let pairs = others.as_chunks::<{ 2 * LANES }>().0.iter().zip(ones.as_chunks::<{ 2 * LANES }>().0);
        for (others, ones) in pairs {
            let lines = [words::<S, V>(simd, others), words::<S, V>(simd, &others[LANES..])];
            let mut next = counts;
            for q in 0..Q {
                let place = word_position(first + q);
                let one = [simd.splat_u64s(ones[place]), simd.splat_u64s(ones[LANES + place])];
                for v in 0..V {
                    let [low, high] = [simd.xor_u64s(lines[0][v], one[0]), simd.xor_u64s(lines[1][v], one[1])];
                    next[q][v] = simd.add_bits(counts[q][v], simd.or_u64s(low, high));
                }
            }
            counts = next;
        }
        for q in 0..Q {
            for v in 0..V {
                // Both halves of a word are numbers of 32 bits, the upper one 0.
                let n = simd.sum_differences(counts[q][v], simd.splat_u64s(0));
                let steps = simd.mul_u32s(pulp::cast(n), simd.splat_u32s(CATEGORY));
                sums[q][v] = simd.add_u64s(sums[q][v], pulp::cast(steps));
            }
        }
    }
    sums
}

/// The first line of words in `lines` as vectors.
#[inline(always)]
fn words<S: Simd, const V: usize>(simd: S, lines: &[u64]) -> [S::u64s; V] {
    let mut line = [simd.splat_u64s(0); V];
    line.copy_from_slice(&S::as_simd_u64s(lines).0[..V]);
    line
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::*;

    /// Distances between the rows of two panels, in steps.
    struct Steps<'a>([ByteCodesPanel<'a>; 2]);

    impl WithBytes for Steps<'_> {
        type Output = [[f32; LANES]; LANES];

        fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) -> Self::Output {
            let mut found = [[0.0; LANES]; LANES];
            for first in (0..LANES).step_by(Q) {
                let steps = byte_distances::<S, V, W, Q>(simd, self.0[0], self.0[1], first);
                for (line, steps) in found[first..].iter_mut().zip(&steps) {
                    S::as_mut_simd_f32s(line).0.copy_from_slice(steps);
                }
            }
            found
        }
    }

    #[test]
    fn steps_are_those_of_bytes_and_of_categories_that_differ() {
        let word = |n: usize| ferrank_runtime::random::mix([n as u64]);
        // More words of categories than are counted in bytes at a time, in which all bits of equally numbered rows differ.
        for (n_octets, n_pairs) in [(3, 0), (0, 2), (2, 1), (1, COUNTED + 2)] {
            let panel = |start: usize| -> [Vec<u64>; 2] {
                [n_octets, 2 * n_pairs].map(|n| (0..n * LANES).map(|place| word(start + n + place)).collect())
            };
            let mut panels = [panel(0), panel(1 << 20)];
            if n_pairs > COUNTED {
                panels[1][1] = panels[0][1].iter().map(|word| !word).collect();
            }
            let steps = [0, 1].map(|number| ByteCodesPanel {
                octets: &panels[number][0],
                categories: &panels[number][1],
                quantization_error: &[],
                offsets: &[],
                rows: &[],
            });
            let mut archs = vec![Arch::new()];
            #[cfg(target_arch = "x86_64")]
            archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
            for found in archs.into_iter().filter_map(|arch| dispatch(arch, Steps(steps))) {
                for (a, b) in (0..LANES).flat_map(|a| (0..LANES).map(move |b| (a, b))) {
                    let words = |which: usize, line: usize| {
                        [(0, a), (1, b)].map(|(panel, row)| panels[panel][which][line * LANES + word_position(row)])
                    };
                    let of_bytes = (0..n_octets).map(|line| {
                        let [a, b] = words(0, line).map(u64::to_le_bytes);
                        a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(b))).sum::<u32>()
                    });
                    let of_categories = (0..n_pairs).map(|pair| {
                        let [low, high] = [0, 1].map(|bit| words(1, 2 * pair + bit)).map(|[a, b]| a ^ b);
                        CATEGORY * (low | high).count_ones()
                    });
                    let expected = of_bytes.chain(of_categories).sum::<u32>();
                    assert_eq!(found[a][b], expected as f32, "{n_octets} octets, {n_pairs} pairs, rows {a} and {b}");
                }
            }
        }
    }
}
