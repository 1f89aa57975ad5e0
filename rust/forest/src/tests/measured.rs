//! Permutation scores by measures of label sets, beside predicting all rows anew.

use ferrank_data::schema::Task;
use ferrank_data::store::TargetColumn;
use ferrank_measures::Measure;
use ferrank_runtime::random::{Purpose, Stream, stream};
use rand::RngExt;

use super::permutation::{TREE, in_a_ring, params, path, viewed};
use super::{Coded, bag, label_sets, numbers, table, texts};
use crate::bag::Bag;
use crate::oob::OobView;
use crate::scores::permutation::{self, measured};
use crate::tree_buffer::TreeBuffer;

#[path = "../../../measures/tests/plain/mod.rs"]
mod plain;
use plain::Plain;

/// A label of a row of the store, if it is known.
struct Label<'a> {
    has: Box<dyn Fn(usize) -> Option<bool> + 'a>,
    weight: f64,
}

fn labels(targets: &[TargetColumn]) -> Vec<Label<'_>> {
    fn of_target(target: &TargetColumn) -> Vec<Label<'_>> {
        match target {
            TargetColumn::Nominal { codes, categories } => {
                let has = |row: usize| categories.names.get(usize::from(codes[row])).map(|name| name == "1");
                vec![Label { has: Box::new(has), weight: 1.0 }]
            }
            TargetColumn::Labels(labels) => {
                let all = (0..).zip(labels.hierarchy.weights());
                let occurs = |label| (0..labels.len()).any(|row| labels.has(row, label) == Some(true));
                let label = |(label, &weight)| Label { has: Box::new(move |row| labels.has(row, label)), weight };
                all.filter(|(label, _)| occurs(*label)).map(label).collect()
            }
            TargetColumn::Numeric(_) => unreachable!("labels are no numbers"),
        }
    }
    targets.iter().flat_map(of_target).collect()
}

/// For each node the share of the examples that have the label, of those for which this is known; if it is known for
/// none, that of the node above.
fn shares(coded: &Coded, tree: &TreeBuffer, bag: &Bag, label: &Label<'_>) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); tree.nodes.len()];
    for (row, &count) in bag.rows.iter().map(|&row| row as usize).zip(&bag.counts) {
        let Some(has) = (label.has)(row) else { continue };
        let weight = f64::from(count) * weight(coded, row);
        for node in path(tree, |feature| coded.code(feature, row)) {
            sums[node].0 += weight * f64::from(has);
            sums[node].1 += weight;
        }
    }
    let mut shares = vec![0.0; sums.len()];
    let share = |node: usize, above: f64| if sums[node].1 > 0.0 { sums[node].0 / sums[node].1 } else { above };
    shares[0] = share(0, 0.0);
    for (parent, children) in tree.children().into_iter().enumerate() {
        for child in children.into_iter().flatten().map(|child| child as usize) {
            shares[child] = share(child, shares[parent]);
        }
    }
    shares
}

fn weight(coded: &Coded, row: usize) -> f64 {
    if coded.store.weights.is_empty() { 1.0 } else { coded.store.weights[row] }
}

/// For each measure the importances of all features, with all rows predicted anew.
fn naive(coded: &Coded, tree: &TreeBuffer, bag: &Bag, seed: u64) -> Vec<Vec<f64>> {
    let labels = labels(&coded.store.targets);
    let all_known = |row: &usize| labels.iter().all(|label| (label.has)(*row).is_some());
    let is_out = |row: &usize| !bag.rows.contains(&(*row as u32));
    let rows: Vec<usize> = (0..coded.store.rows).filter(is_out).filter(all_known).collect();
    let shares: Vec<Vec<f64>> = labels.iter().map(|label| shares(coded, tree, bag, label)).collect();
    let values = |changed: Option<(usize, Vec<usize>)>| -> Vec<f64> {
        let code = |place: usize, feature: usize| match &changed {
            Some((other, taken)) if *other == feature => coded.code(feature, rows[taken[place]]),
            _ => coded.code(feature, rows[place]),
        };
        let leaves: Vec<usize> =
            (0..rows.len()).filter_map(|place| path(tree, |feature| code(place, feature)).pop()).collect();
        let scores: Vec<Vec<f64>> =
            leaves.iter().map(|&leaf| shares.iter().map(|shares| shares[leaf]).collect()).collect();
        let plain = Plain {
            has: rows.iter().map(|&row| labels.iter().map(|label| (label.has)(row).unwrap()).collect()).collect(),
            says: scores.iter().map(|scores| scores.iter().map(|score| *score > 0.5).collect()).collect(),
            scores,
            row_weights: rows.iter().map(|&row| weight(coded, row)).collect(),
            label_weights: labels.iter().map(|label| label.weight).collect(),
        };
        Measure::ALL.iter().map(|&measure| plain.value(measure)).collect()
    };
    let before = values(None);
    let of_features = (0..coded.store.slots.len()).map(|feature| {
        let after = values(Some((feature, in_a_ring(seed)(feature, rows.len()))));
        let loss = |((measure, before), after): ((&Measure, &f64), f64)| {
            let increase = if measure.higher_is_better() { before - after } else { after - before };
            if *before > 1e-12 { increase / before } else { increase }
        };
        Measure::ALL.iter().zip(&before).zip(after).map(loss).collect::<Vec<f64>>()
    });
    let of_features: Vec<Vec<f64>> = of_features.collect();
    (0..Measure::ALL.len()).map(|measure| of_features.iter().map(|losses| losses[measure]).collect()).collect()
}

/// Compares importances by all measures with those of predicting anew. Returns the number of those that are not 0.
fn compare(coded: &Coded, bag: &Bag, seed: u64, supervision: f64) -> usize {
    let params = params(seed).with_permutation_measures(Measure::ALL.to_vec());
    let importances = |view: &OobView<'_>| measured::importances(view, &Measure::ALL).unwrap();
    let (tree, found) = viewed(coded, bag, &params, supervision, [TREE], importances);
    let mut n_not_0 = 0;
    for ((measure, found), naive) in Measure::ALL.iter().zip(&found[0]).zip(naive(coded, &tree, bag, seed)) {
        let mut dense = vec![0.0; naive.len()];
        found.iter().for_each(|&(feature, value)| dense[feature as usize] = value);
        for (found, naive) in dense.iter().zip(&naive) {
            assert!((found - naive).abs() < 1e-9, "{} with seed {seed}: {dense:?} {naive:?}", measure.name());
            n_not_0 += usize::from(*found != 0.0);
        }
    }
    n_not_0
}

/// A table of `n_rows` rows whose labels follow from the features, some of them missing if `gaps`; with weights if
/// `weighted`. Labels that are no `targets` are features. A single target is one to be replaced; features are kept as
/// components beside it.
pub(crate) fn labelled(n_rows: usize, targets: &[&str], gaps: bool, weighted: bool, random: &mut Stream) -> Coded {
    let mut column = |n_values: u32| (0..n_rows).map(|_| random.random_range(0..n_values)).collect::<Vec<u32>>();
    let (x, z, u, gap, noise, w) = (column(9), column(5), column(300), column(6), column(4), column(5));
    let label = |number: u32| {
        let has = |row: usize| (x[row] * number + z[row] + u32::from(noise[row] == 0)).is_multiple_of(number + 2);
        let known = |row: usize| !gaps || gap[row] != number;
        let cells = (0..n_rows).map(move |row| known(row).then(|| if has(row) { "1" } else { "0" }));
        std::sync::Arc::new(cells.collect::<arrow_array::StringArray>()) as arrow_array::ArrayRef
    };
    let of = |values: &[u32]| numbers(values.iter().map(|&value| f64::from(value)));
    let mut columns = vec![("x", of(&x)), ("z", of(&z)), ("u", of(&u))];
    columns.extend(["l1", "l2", "l3"].into_iter().zip([label(1), label(2), label(3)]));
    if weighted {
        columns.push(("w", numbers(w.iter().map(|&w| 0.3 + f64::from(w)))));
    }
    let task = (targets.len() > 1).then_some(Task::MultiLabel);
    Coded::read(&table(columns), targets, task, 255, task.is_none())
}

pub(crate) const LABELS: [&str; 3] = ["l1", "l2", "l3"];

fn random_bag(rows: usize, random: &mut Stream) -> Bag {
    bag(&(0..rows).map(|_| random.random_range(0..3)).collect::<Vec<u32>>())
}

#[test]
fn importances_of_labels_are_those_of_predicting_anew() {
    let mut n_not_0 = 0;
    for seed in 0..24 {
        let mut random = stream(seed, Purpose::Sample, 0, 0);
        let coded = labelled(20 + 2 * seed as usize, &LABELS, seed % 2 == 1, seed % 4 > 1, &mut random);
        n_not_0 += compare(&coded, &random_bag(coded.store.rows, &mut random), seed, 1.0);
    }
    assert!(n_not_0 > 24 * 20, "{n_not_0}");
}

#[test]
fn importances_of_hierarchies_are_those_of_predicting_anew() {
    let mut n_not_0 = 0;
    for seed in 0..12 {
        let mut random = stream(seed, Purpose::Sample, 1, 0);
        let mut coded = labelled(60, &LABELS[..1], false, seed % 4 > 1, &mut random);
        // With features as components, leaves may have no known set.
        let supervision = if seed % 3 == 0 { 0.2 } else { 1.0 };
        coded.store.targets = vec![label_sets(60, 2 + 2 * seed as usize, seed % 2 == 1)].into();
        n_not_0 += compare(&coded, &random_bag(60, &mut random), seed, supervision);
    }
    assert!(n_not_0 > 12 * 15, "{n_not_0}");
}

#[test]
fn the_hamming_loss_is_the_error_by_default() {
    for seed in 0..10 {
        let mut random = stream(seed, Purpose::Sample, 2, 0);
        let coded = labelled(80, &LABELS, false, seed % 2 == 1, &mut random);
        let bag = random_bag(80, &mut random);
        let measured = params(seed).with_permutation_measures(vec![Measure::HammingLoss]);
        let of_default = |view: &OobView<'_>| permutation::importances(view).unwrap();
        let of_measure = |view: &OobView<'_>| measured::importances(view, &[Measure::HammingLoss]).unwrap().remove(0);
        let (_, default) = viewed(&coded, &bag, &params(seed), 1.0, [TREE], of_default);
        let (_, found) = viewed(&coded, &bag, &measured, 1.0, [TREE], of_measure);
        assert_eq!(default[0].len(), found[0].len());
        for (default, found) in default[0].iter().zip(&found[0]) {
            assert!(default.0 == found.0 && (default.1 - found.1).abs() < 1e-12, "{default:?} {found:?}");
        }
    }
}

#[test]
fn rows_are_walked_again_for_columns_that_do_not_fit() {
    // With 60 features on deep paths, rows have more detours than are held at once.
    let mut random = stream(1, Purpose::Sample, 3, 0);
    let features: Vec<Vec<f64>> = (0..60).map(|_| (0..300).map(|_| random.random::<f64>()).collect()).collect();
    let class = |row: usize| ["0", "1"][usize::from((row * row / 7 + row / 3).is_multiple_of(2))];
    let names: Vec<String> = (0..60).map(|feature| format!("x{feature}")).collect();
    let mut columns: Vec<_> =
        names.iter().zip(&features).map(|(name, values)| (name.as_str(), numbers(values.iter().copied()))).collect();
    columns.push(("l1", texts((0..300).map(class))));
    columns.push(("l2", texts((0..300).map(|row| class(row * 3 + 1)))));
    let coded = Coded::new(&table(columns), &["l1", "l2"], Some(Task::MultiLabel), 255);
    let bag = random_bag(300, &mut random);
    assert!(compare(&coded, &bag, 1, 1.0) > 200);
}

#[test]
fn a_label_of_all_rows_is_predicted() {
    let mut random = stream(2, Purpose::Sample, 4, 0);
    let mut column = |n: u32| (0..80).map(|_| random.random_range(0..n)).collect::<Vec<u32>>();
    let (x, noise) = (column(9), column(4));
    let bit = |has: bool| if has { "1" } else { "0" };
    let columns = vec![
        ("x", numbers(x.iter().map(|&x| f64::from(x)))),
        ("z", numbers(column(7).iter().map(|&z| f64::from(z)))),
        ("l1", texts(x.iter().zip(&noise).map(|(&x, &noise)| bit(x > 4 && noise > 0)))),
        ("l2", texts(x.iter().map(|_| bit(true)))),
        ("l3", texts(x.iter().map(|_| bit(false)))),
    ];
    let coded = Coded::new(&table(columns), &LABELS, Some(Task::MultiLabel), 255);
    assert!(compare(&coded, &random_bag(80, &mut random), 2, 1.0) > 10);
}
