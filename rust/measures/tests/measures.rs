//! The measures beside their definitions.

mod plain;

use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
use plain::Plain;
use proptest::collection::vec;
use proptest::prelude::*;

/// Predictions with scores that are often equal or 0, rows under them, and others that some rows change to.
#[derive(Debug, Clone)]
struct Case {
    has: Vec<Vec<bool>>,
    scores: Vec<Vec<f64>>,
    says: Vec<Vec<bool>>,
    assigned: Vec<u32>,
    changed: Vec<Option<u32>>,
    row_weights: Vec<f64>,
    label_weights: Vec<f64>,
}

fn cases() -> impl Strategy<Value = Case> {
    (1..12usize, 1..5usize, 1..6usize, any::<bool>()).prop_flat_map(|(n_rows, n_predictions, n_labels, weighted)| {
        let of = |least: f64| if weighted { (least..3.0).boxed() } else { Just(1.0).boxed() };
        let score = prop_oneof![Just(0.0), (0..5u32).prop_map(|score| f64::from(score) / 4.0), 0.0..1.0];
        (
            vec(vec(any::<bool>(), n_labels), n_rows),
            vec(vec(score, n_labels), n_predictions),
            vec(vec(any::<bool>(), n_labels), n_predictions),
            vec(0..n_predictions as u32, n_rows),
            vec(prop::option::of(0..n_predictions as u32), n_rows),
            (vec(of(0.01), n_rows), vec(of(0.01), n_labels)),
        )
            .prop_map(|(has, scores, says, assigned, changed, (row_weights, label_weights))| Case {
                has,
                scores,
                says,
                assigned,
                changed,
                row_weights,
                label_weights,
            })
    })
}

/// The numbers of the labels that are there.
fn numbers(set: &[bool]) -> impl Iterator<Item = u32> {
    (0..).zip(set).filter(|(_, has)| **has).map(|(label, _)| label)
}

impl Case {
    fn sets(&self) -> LabelSets {
        let mut sets = LabelSets::default();
        self.has.iter().for_each(|set| sets.push(numbers(set)));
        sets
    }

    fn predictions(&self) -> Predictions {
        let mut predictions = Predictions::new(self.label_weights.len());
        for (scores, says) in self.scores.iter().zip(&self.says) {
            predictions.push((0..).zip(scores.iter().copied()), numbers(says));
        }
        predictions
    }

    fn plain(&self, assigned: &[u32]) -> Plain {
        let of = |values: &[Vec<f64>]| assigned.iter().map(|&number| values[number as usize].clone()).collect();
        Plain {
            has: self.has.clone(),
            scores: of(&self.scores),
            says: assigned.iter().map(|&number| self.says[number as usize].clone()).collect(),
            row_weights: self.row_weights.clone(),
            label_weights: self.label_weights.clone(),
        }
    }

    fn judge<'a>(&self, sets: &'a LabelSets, predictions: &'a Predictions, measures: &'a [Measure]) -> Judge<'a> {
        Judge::new(sets, predictions, measures, Conventions::Textbook)
            .with_row_weights(self.row_weights.clone())
            .with_label_weights(self.label_weights.clone())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn measures_are_those_of_their_definitions(case in cases()) {
        let (sets, predictions) = (case.sets(), case.predictions());
        let mut judge = case.judge(&sets, &predictions, &Measure::ALL);
        let changes: Vec<(u32, u32)> =
            (0..).zip(&case.changed).filter_map(|(row, changed)| Some((row, (*changed)?))).collect();
        let others: Vec<u32> =
            case.assigned.iter().zip(&case.changed).map(|(own, changed)| changed.unwrap_or(*own)).collect();
        let found = [judge.judge(&case.assigned), judge.judge_with(&changes), judge.judge_with(&[])];
        for (found, assigned) in found.iter().zip([&case.assigned, &others, &case.assigned]) {
            let plain = case.plain(assigned);
            for (measure, found) in Measure::ALL.into_iter().zip(found) {
                let expected = plain.value(measure);
                prop_assert!((found - expected).abs() < 1e-12, "{}: {found} {expected}", measure.name());
            }
        }
        // Each on its own has the same bits.
        for (measure, together) in Measure::ALL.iter().zip(&found[1]) {
            let measures = [*measure];
            let mut judge = case.judge(&sets, &predictions, &measures);
            prop_assert_eq!(judge.judge(&others)[0].to_bits(), together.to_bits());
        }
    }
}

#[test]
fn conventions_differ_in_three_measures() {
    let (mut sets, mut predictions) = (LabelSets::default(), Predictions::new(3));
    sets.push([1, 2]);
    sets.push([]);
    predictions.push([(0, 0.4), (1, 0.4), (2, 0.2)], []);
    predictions.push([(0, 0.8)], [0]);
    predictions.push([], []);
    let measures = [Measure::OneError, Measure::Coverage, Measure::RankingLoss];
    let judge = |conventions, assigned: &[u32]| Judge::new(&sets, &predictions, &measures, conventions).judge(assigned);
    assert_eq!(judge(Conventions::Textbook, &[0, 1]), [1.0, 1.0, 0.5]);
    // The first label is rightly denied in the first row; rows without labels have no coverage.
    assert_eq!(judge(Conventions::Clus, &[0, 1]), [0.5, 3.0, 0.5]);
    // Where all scores are 0, labels are in their own order.
    assert_eq!(judge(Conventions::Textbook, &[2, 2]), [1.0, 1.0, 0.5]);
    assert_eq!(judge(Conventions::Clus, &[2, 2]), [0.0, 3.0, 0.5]);
}

#[test]
fn labels_without_scores_follow_in_their_order() {
    let (mut sets, mut predictions) = (LabelSets::default(), Predictions::new(4));
    sets.push([1, 3]);
    predictions.push([(2, 0.5), (3, 0.1)], []);
    let wrong = |conventions| Judge::new(&sets, &predictions, &[Measure::RankingLoss], conventions).judge(&[0])[0];
    // Label 2 is above both; label 0 is equal to label 1, and before it.
    assert_eq!(wrong(Conventions::Textbook), 0.75);
    assert_eq!(wrong(Conventions::Clus), 0.75);
    let mut sets = LabelSets::default();
    sets.push([0, 3]);
    let wrong = |conventions| Judge::new(&sets, &predictions, &[Measure::RankingLoss], conventions).judge(&[0])[0];
    assert_eq!(wrong(Conventions::Textbook), 0.75);
    assert_eq!(wrong(Conventions::Clus), 0.5);
}
