//! Sums over near pairs beside the importances of the ranker.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};

use super::laws::ranked;
use super::uniform;
use crate::ReliefParams;
use crate::limits::LIMITS;
use crate::near_pairs::{NearPair, NearPairs};
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::space::{Shape, Space};
use ferrank_runtime::monitor::Monitor;

const N: usize = 90;
const WIDTH: usize = 5;

/// Values from 0 to 1, both of which occur; those of the last column are 0, 1 and 2.
fn values() -> Vec<f64> {
    let value = |row: usize, column: usize| match (row, column) {
        (_, 4) => (uniform((row * WIDTH + column) as u64) * 3.0).floor(),
        (0 | 1, _) => row as f64,
        _ => uniform((row * WIDTH + column) as u64),
    };
    (0..N).flat_map(|row| (0..WIDTH).map(move |column| value(row, column))).collect()
}

fn sums(pairs: &[NearPair], space: &Space, rows: &Rows) -> Vec<f64> {
    let difference = |feature: usize, pair: &NearPair| {
        let [a, b] = [pair.query, pair.row].map(|row| (rows.row(row)[feature], space.class(row)));
        space.apart(feature, a, b)
    };
    (0..WIDTH).map(|feature| pairs.iter().map(|pair| pair.weight * difference(feature, pair)).sum()).collect()
}

#[test]
fn sums_over_near_pairs_are_importances() {
    let values = values();
    // The third class has fewer rows than there are neighbors.
    let class = |row: usize| if row % 30 == 7 { 2 } else { u16::from(values[row * WIDTH] > 0.4) };
    let target = |row: usize| values[row * WIDTH] + values[row * WIDTH + 1] * values[row * WIDTH + 2];
    let column =
        |at: usize| -> ArrayRef { Arc::new((0..N).map(|row| values[row * WIDTH + at]).collect::<Float64Array>()) };
    let words = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new((0..N).map(|row| Some(of(row))).collect::<StringArray>())
    };
    let mut columns: Vec<(String, ArrayRef)> = (0..4).map(|at| (format!("x{at}"), column(at))).collect();
    columns.push(("x4".into(), words(&|row| format!("c{}", values[row * WIDTH + 4]))));
    let numbers: ArrayRef = Arc::new((0..N).map(target).collect::<Float64Array>());
    let targets = [("class", words(&|row| format!("c{}", class(row)))), ("y", numbers)];

    let mut rows = Rows::with_capacity(N, WIDTH);
    rows.add(0..N as u32).copy_from_slice(&values);
    let shapes = [vec![Shape::Numeric; 4], vec![Shape::Nominal]].concat();
    let (low, high) = (0..N).map(target).fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
    let scaled: Vec<f64> = (0..N).map(|row| (target(row) - low) / (high - low)).collect();
    columns.extend(targets.iter().map(|(name, array)| ((*name).to_string(), array.clone())));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for (k, sigma) in [(4, None), (12, Some(3.0))] {
        for (name, _) in &targets {
            let of_classes = *name == "class";
            let (classes, n_classes) = if of_classes { ((0..N).map(class).collect(), 3) } else { (Vec::new(), 1) };
            let space = Space::new(shapes.clone(), (0..WIDTH).map(|_| None).collect(), classes, n_classes);
            let near = NearPairs { rows: &rows, space: &space, k, sigma, monitor: &Monitor::default() };
            let pairs = if of_classes { near.of_classes() } else { near.of_numbers(&scaled) }.unwrap();

            let params = ReliefParams { n_neighbors: vec![k], sigma: vec![sigma], ..ReliefParams::default() };
            let expected = ranked(&batch, &[name], &params, (LIMITS, N, 1));
            for (found, expected) in sums(&pairs, &space, &rows).iter().zip(&expected.scores[0].importance) {
                assert!((found - expected).abs() < 1e-12, "{name}, k = {k}: {found} for {expected}");
            }
        }
    }
}
