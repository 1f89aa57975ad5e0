//! Distances by panels beside those of the space, on all vector widths that the machine has.

use pulp::Arch;

use super::small;
use crate::neighbors::kernel::{Block, Measure, Sight};
use crate::neighbors::panels::{LANES, NOBODY, Panels};
use crate::neighbors::reach::Reach;
use crate::relief::space::{Example, Shape};

fn archs() -> Vec<Arch> {
    let mut archs = vec![Arch::new(), Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
    archs
}

#[test]
fn panels_give_the_distances_of_the_space_within_their_error() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant, Shape::Numeric, Shape::Nominal];
    for (width, missing, n_classes) in [(1, 0.0, 1), (5, 0.0, 2), (5, 0.3, 2), (700, 0.0, 1), (600, 0.1, 3)] {
        let shapes: Vec<Shape> = (0..width).map(|i| kinds[i % kinds.len()]).collect();
        let (rows, space, layout) = small(40, &shapes, missing, n_classes, width as u64);
        let panels = Panels::new(&layout, &space, &rows);
        for arch in archs() {
            for (a, b) in (0..panels.len()).flat_map(|a| (0..panels.len()).map(move |b| (a, b))) {
                let (one, other) = (panels.panel(&layout, a), panels.panel(&layout, b));
                let mut block = Block::default();
                let gates = &[f32::MAX; LANES];
                let work = Measure {
                    sight: Sight { layout: &layout, one, other, gates, other_gates: Some(gates) },
                    block: &mut block,
                };
                let passed = work.run(arch);
                for (line, &x) in one.numbers.iter().enumerate() {
                    assert_eq!(passed >> line & 1 == 1, x != NOBODY);
                    for (lane, &y) in other.numbers.iter().enumerate().filter(|_| x != NOBODY) {
                        assert_eq!(block.hits[line] >> lane & 1 == 1, y != NOBODY);
                        assert_eq!(block.other_hits[line] >> lane & 1 == 1, y != NOBODY);
                        if y != NOBODY {
                            let example = |row| Example { values: rows.row(row), class: space.class(row) };
                            let mut exact = Vec::new();
                            space.distances(example(x), &[example(y)], &mut exact);
                            let error = layout.error(f64::from(one.sums[line]));
                            let found = f64::from(block.distances[line][lane]);
                            let most = error.fixed + error.relative * exact[0];
                            assert!((found - exact[0]).abs() <= most, "{found} is not {} ± {most}", exact[0]);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_leave_out_no_pair_that_passes_a_gate() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Numeric];
    for (width, seed) in [(48, 1), (50, 2), (130, 1), (700, 2)] {
        let shapes: Vec<Shape> = (0..width).map(|i| kinds[i % kinds.len()]).collect();
        let (rows, space, layout) = small(70, &shapes, 0.0, 2, seed);
        let panels = Panels::new(&layout, &space, &rows);
        let mut looked = 0;
        for (arch, share) in archs().into_iter().flat_map(|arch| [0.0, 0.1, 0.25, 0.4].map(|share| (arch, share))) {
            for (a, b) in (0..panels.len()).flat_map(|a| (0..panels.len()).map(move |b| (a, b))) {
                let (one, other) = (panels.panel(&layout, a), panels.panel(&layout, b));
                let gates: [f32; LANES] = std::array::from_fn(|lane| share * (width + lane) as f32);
                let others: [f32; LANES] = std::array::from_fn(|lane| share * (width - lane.min(width)) as f32);
                let sight = Sight { layout: &layout, one, other, gates: &gates, other_gates: Some(&others) };
                let mut block = Block::default();
                let Some(passed) = sight.measure_near(arch, &mut block) else { continue };
                looked += 1;
                for (line, &x) in one.numbers.iter().enumerate() {
                    for (lane, &y) in other.numbers.iter().enumerate() {
                        let hits = |hits: &[u16; LANES]| passed >> line & 1 == 1 && hits[line] >> lane & 1 == 1;
                        if x == NOBODY || y == NOBODY {
                            assert!(!hits(&block.hits) && !hits(&block.other_hits));
                            continue;
                        }
                        let example = |row| Example { values: rows.row(row), class: space.class(row) };
                        let mut exact = Vec::new();
                        space.distances(example(x), &[example(y)], &mut exact);
                        let error = layout.error(f64::from(one.sums[line]));
                        let most = error.fixed + error.relative * exact[0];
                        for (gate, hits) in [(gates[line], hits(&block.hits)), (others[lane], hits(&block.other_hits))]
                        {
                            let beyond = exact[0] - f64::from(gate);
                            assert!(beyond.abs() <= most || hits == (beyond < 0.0), "{x} and {y}: {beyond}");
                        }
                        if hits(&block.hits) || hits(&block.other_hits) {
                            assert!((f64::from(block.distances[line][lane]) - exact[0]).abs() <= most);
                        }
                    }
                }
            }
        }
        assert!(looked > 0 || archs().iter().all(|arch| matches!(arch, Arch::Scalar)));
    }
}

#[test]
fn a_sample_s_reach_is_at_least_that_of_its_fifth_row() {
    for (width, missing) in [(40, 0.0), (9, 0.0), (9, 0.2)] {
        let (rows, space, layout) = small(200, &vec![Shape::Numeric; width], missing, 1, 1);
        let panels = Panels::new(&layout, &space, &rows);
        let sample: Vec<_> = (2..8).map(|number| panels.panel(&layout, number)).collect();
        for (arch, number) in archs().into_iter().flat_map(|arch| (0..panels.len()).map(move |number| (arch, number))) {
            let one = panels.panel(&layout, number);
            let reach = Reach { layout: &layout, one, sample: &sample }.find(arch);
            for (line, &x) in one.numbers.iter().enumerate().filter(|(_, x)| **x != NOBODY) {
                let example = |row| Example { values: rows.row(row), class: space.class(row) };
                let others: Vec<_> = (32..128).filter(|&y| y != x).map(example).collect();
                let mut distances = Vec::new();
                space.distances(example(x), &others, &mut distances);
                distances.sort_unstable_by(f64::total_cmp);
                let found = f64::from(reach[line]);
                assert!(found > distances[4] - 1e-5 && found < distances[30], "{found} of {:?}", &distances[..9]);
            }
        }
    }
}

#[test]
fn only_lanes_within_a_gate_hit() {
    let (rows, space, layout) = small(16, &[Shape::Numeric; 3], 0.0, 1, 2);
    let panels = Panels::new(&layout, &space, &rows);
    let panel = panels.panel(&layout, 0);
    for arch in archs() {
        let mut block = Block::default();
        let (gates, others) = ([0.5; LANES], [0.25; LANES]);
        Measure {
            sight: Sight { layout: &layout, one: panel, other: panel, gates: &gates, other_gates: Some(&others) },
            block: &mut block,
        }
        .run(arch);
        let apart = |a: usize, b: usize| {
            let values = rows.row(a as u32).iter().zip(rows.row(b as u32));
            values.map(|(x, y)| (x - y).abs()).sum::<f64>()
        };
        for line in 0..LANES {
            for lane in 0..LANES {
                assert_eq!(block.hits[line] >> lane & 1 == 1, apart(line, lane) <= 0.5);
                assert_eq!(block.other_hits[line] >> lane & 1 == 1, apart(line, lane) <= 0.25);
            }
        }
    }
}
