//! Areas under curves, from what the thresholds add.

/// The most straight lines between two thresholds. More would not change the area beyond rounding.
const MOST_STEPS: f64 = 1e6;

/// The area under the precision-recall curve. Each of `groups`, by descending score, has the weight of the rows with the
/// label and the weight of those without it. 0 if no row has the label.
///
/// Between two thresholds the false positives grow linearly with the true ones. Precision is followed in steps of one
/// true positive at most, with straight lines between them (Davis and Goadrich 2006, §3).
///
/// ```
/// use ferrank_measures::precision_recall_area;
///
/// let area = precision_recall_area([(1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]);
/// assert!((area - 0.7917).abs() < 1e-4);
/// ```
pub fn precision_recall_area(groups: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (mut hits, mut misses, mut area) = (0.0, 0.0, 0.0);
    for (gain, cost) in groups {
        if gain > 0.0 {
            area += line(hits, misses, gain, cost);
            hits += gain;
        }
        misses += cost;
    }
    if hits > 0.0 { area / hits } else { 0.0 }
}

/// The area below the part of the curve where `gain` true and `cost` false positives are added.
fn line(hits: f64, misses: f64, gain: f64, cost: f64) -> f64 {
    if hits == 0.0 && misses == 0.0 {
        // The curve starts here, with the precision of its first threshold.
        return gain * gain / (gain + cost);
    }
    let steps = gain.ceil().clamp(1.0, MOST_STEPS);
    let precision = |step: f64| {
        let share = step / steps;
        let (hits, misses) = (hits + gain * share, misses + cost * share);
        hits / (hits + misses)
    };
    let (mut sum, mut before) = (0.0, precision(0.0));
    for step in 1..=steps as usize {
        let after = precision(step as f64);
        sum += before + after;
        before = after;
    }
    gain / steps * sum / 2.0
}

/// The groups of rows with equal scores, by descending score, from the score, the weight and whether the label is there
/// of each row.
///
/// ```
/// use ferrank_measures::groups_by_score;
///
/// let rows = vec![(0.1, 1.0, true), (0.9, 2.0, false), (0.1, 3.0, false)];
/// assert_eq!(groups_by_score(rows), [(0.0, 2.0), (1.0, 3.0)]);
/// ```
pub fn groups_by_score(mut rows: Vec<(f64, f64, bool)>) -> Vec<(f64, f64)> {
    // Stable, so that sums have the order of the rows.
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sum = |equal: &[(f64, f64, bool)], wanted: bool| {
        equal.iter().filter(|row| row.2 == wanted).map(|row| row.1).sum::<f64>()
    };
    rows.chunk_by(|a, b| a.0 == b.0).map(|equal| (sum(equal, true), sum(equal, false))).collect()
}

/// The area under the ROC curve: the share of pairs, of a row with the label and one without it, that are in the right
/// order, where equal scores count half. `groups` are as in [`precision_recall_area`]. 1/2 if there is no such pair.
///
/// ```
/// use ferrank_measures::roc_area;
///
/// assert_eq!(roc_area([(1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]), 0.875);
/// assert_eq!(roc_area([(1.0, 0.0)]), 0.5);
/// ```
pub fn roc_area(groups: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (mut hits, mut misses, mut wrong) = (0.0, 0.0, 0.0);
    for (gain, cost) in groups {
        wrong += gain * (misses + cost / 2.0);
        hits += gain;
        misses += cost;
    }
    let pairs = hits * misses;
    if pairs > 0.0 { 1.0 - wrong / pairs } else { 0.5 }
}
