//! Distances by panels beside those of the space, on all vector widths that the machine has.

use super::{archs, informative, small};
use crate::kernel::Measure;
use crate::layout::{LANES, NO_ROW};
use crate::space::Shape;
use crate::space_panels::{error_of, panels_of};

#[test]
fn panels_give_the_distances_of_the_space_within_their_error() {
    let kinds = [Shape::Numeric, Shape::Nominal, Shape::Constant, Shape::Numeric, Shape::Nominal];
    for (width, missing, n_classes, informs) in [
        (1, 0.0, 1, false),
        (5, 0.0, 2, false),
        (5, 0.3, 2, false),
        (5, 0.3, 2, true),
        (700, 0.0, 1, false),
        (600, 0.1, 3, false),
        (600, 0.1, 3, true),
        // More than a sum of partial sums.
        (4000, 0.0, 1, false),
    ] {
        let shapes: Vec<Shape> = (0..width).map(|i| kinds[i % kinds.len()]).collect();
        let (rows, mut space, mut layout) = small(40, &shapes, missing, n_classes, width as u64);
        if informs {
            (space, layout) = informative(&rows, space);
        }
        let panels = panels_of(&layout, &space, &rows);
        for arch in archs() {
            for (a, b) in (0..panels.len()).flat_map(|a| (0..panels.len()).map(move |b| (a, b))) {
                let (one, other) = (panels.panel(&layout, a), panels.panel(&layout, b));
                let mut block = [[0.0; LANES]; LANES];
                arch.dispatch(Measure::new(&layout, one, other, &mut block));
                for (line, &x) in one.numbers.iter().enumerate().filter(|(_, x)| **x != NO_ROW) {
                    for (lane, &y) in other.numbers.iter().enumerate() {
                        assert_eq!(block[line][lane].is_finite(), y != NO_ROW);
                        if y != NO_ROW {
                            let example = |row| space.example(row, rows.row(row));
                            let mut exact = Vec::new();
                            space.distances(example(x), &[example(y)], &mut exact);
                            let error = error_of(&layout, f64::from(one.sums[line]));
                            let found = f64::from(block[line][lane]);
                            let most = error.fixed + error.relative * exact[0];
                            assert!((found - exact[0]).abs() <= most, "{found} is not {} ± {most}", exact[0]);
                        }
                    }
                }
            }
        }
    }
}
