//! How far neighbours are, guessed from a sample.

use pulp::{Arch, NullaryFnOnce};

use super::bytes::{Bytes, apart};
use super::coarse::serves;
use super::kernel::{Block, Measure, Sight};
use super::pairs::distance;
use super::panels::{LANES, Layout, Panel};

/// The rank in a sample of one row in k whose distance is as good as never below that of the k-th nearest: of
/// the k nearest a sample has one on average, and five once in 270 times, whatever the data.
const RANK: usize = 5;

/// How far the row is of a sample that is the [`RANK`]-th nearest, for each row of a panel.
///
/// Of the rows of the sample in the same lane only the nearest is looked at, or the one whose bytes are. So the
/// answer may be too high, never too low.
pub(crate) struct Reach<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) one: Panel<'a>,
    /// Whole panels, at least one.
    pub(crate) sample: &'a [Panel<'a>],
}

impl Reach<'_> {
    pub(crate) fn find(self, arch: Arch) -> [f32; LANES] {
        match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) if serves(self.layout) => simd.vectorize(Nearest { simd, reach: self }),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) if serves(self.layout) => simd.vectorize(Nearest { simd, reach: self }),
            _ => self.by_kernel(arch),
        }
    }

    fn by_kernel(self, arch: Arch) -> [f32; LANES] {
        let Reach { layout, one, sample } = self;
        let mut nearest = [[f32::MAX; LANES]; LANES];
        let (mut block, gates) = (Block::default(), [f32::MAX; LANES]);
        for &other in sample {
            Measure { sight: Sight { layout, one, other, gates: &gates, other_gates: None }, block: &mut block }
                .run(arch);
            for (line, nearest) in nearest.iter_mut().enumerate() {
                for (lane, nearest) in nearest.iter_mut().enumerate() {
                    let distance = block.distances[line][lane];
                    // The row may be in the sample, and is not its own neighbour.
                    if distance < *nearest && other.numbers[lane] != one.numbers[line] {
                        *nearest = distance;
                    }
                }
            }
        }
        nearest.map(|mut nearest| {
            nearest.sort_unstable_by(f32::total_cmp);
            nearest[RANK - 1]
        })
    }
}

struct Nearest<'a, S> {
    simd: S,
    reach: Reach<'a>,
}

impl<S: Bytes> NullaryFnOnce for Nearest<'_, S> {
    type Output = [f32; LANES];

    #[inline(always)]
    fn call(self) -> [f32; LANES] {
        match S::U64_LANES {
            8 => self.run::<2, 1, 8>(),
            _ => self.run::<4, 2, 2>(),
        }
    }
}

impl<S: Bytes> Nearest<'_, S> {
    #[inline(always)]
    fn run<const V: usize, const W: usize, const Q: usize>(self) -> [f32; LANES] {
        let Nearest { simd, reach: Reach { layout, one, sample } } = self;
        // Steps, and the panel.
        let mut nearest = [[[f32::MAX; LANES], [0.0; LANES]]; LANES];
        for first in (0..LANES).step_by(Q) {
            let mut steps = [[simd.splat_f32s(f32::MAX); W]; Q];
            let mut panels = [[simd.splat_f32s(0.0); W]; Q];
            for (number, other) in sample.iter().enumerate() {
                let number = simd.splat_f32s(number as f32);
                let apart = apart::<S, V, W, Q>(simd, one.coarse.octets, other.coarse.octets, first);
                for q in 0..Q {
                    for w in 0..W {
                        let nearer = simd.less_than_f32s(apart[q][w], steps[q][w]);
                        steps[q][w] = simd.select_f32s(nearer, apart[q][w], steps[q][w]);
                        panels[q][w] = simd.select_f32s(nearer, number, panels[q][w]);
                    }
                }
            }
            for q in 0..Q {
                let [out_steps, out_panels] = &mut nearest[first + q];
                S::as_mut_simd_f32s(out_steps).0.copy_from_slice(&steps[q]);
                S::as_mut_simd_f32s(out_panels).0.copy_from_slice(&panels[q]);
            }
        }
        let mut reach = [0f32; LANES];
        for (line, reach) in reach.iter_mut().enumerate() {
            let [steps, panels] = &nearest[line];
            let mut found = 0;
            for lane in ascending(steps) {
                let other = &sample[panels[lane] as usize];
                // The row may be in the sample, and is not its own neighbour.
                if found < RANK && other.numbers[lane] != one.numbers[line] {
                    *reach = reach.max(distance(simd, layout, (one, line), (*other, lane)));
                    found += 1;
                }
            }
            // Also for nobody, who is infinitely far away.
            *reach = reach.min(f32::MAX);
        }
        reach
    }
}

/// The lanes in the order of their values.
fn ascending(values: &[f32; LANES]) -> [usize; LANES] {
    let mut lanes = std::array::from_fn(|lane| lane);
    lanes.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    lanes
}
