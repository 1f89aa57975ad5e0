//! The textbook measures of label sets from their definitions, over all pairs.

use ferrank_measures::Measure;

/// Rows with their labels, the scores of these and the predicted labels, n_rows x n_labels.
pub(crate) struct Plain {
    pub(crate) has: Vec<Vec<bool>>,
    pub(crate) scores: Vec<Vec<f64>>,
    pub(crate) says: Vec<Vec<bool>>,
    /// n_rows
    pub(crate) row_weights: Vec<f64>,
    /// n_labels
    pub(crate) label_weights: Vec<f64>,
}

impl Plain {
    pub(crate) fn value(&self, measure: Measure) -> f64 {
        let labels = || 0..self.label_weights.len();
        let weigh = |row: usize, which: &dyn Fn(bool, bool) -> bool| -> f64 {
            let wanted = labels().filter(|&label| which(self.has[row][label], self.says[row][label]));
            wanted.map(|label| self.label_weights[label]).sum()
        };
        let both = |row| weigh(row, &|has, says| has && says);
        let (has, says) = (|row| weigh(row, &|has, _| has), |row| weigh(row, &|_, says| says));
        let either = |row| weigh(row, &|has, says| has || says);
        let all =
            |term: &dyn Fn(usize) -> f64| -> f64 { (0..self.has.len()).map(|row| self.weight(row) * term(row)).sum() };
        let mean = |term: &dyn Fn(usize) -> f64| all(term) / self.has.len() as f64;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let of_sets = |part: &dyn Fn(usize) -> f64, whole: &dyn Fn(usize) -> f64| {
            mean(&|row| if either(row) > 0.0 { share(part(row), whole(row)) } else { 1.0 })
        };
        let average = |area: &dyn Fn(usize) -> f64| {
            let total: f64 = self.label_weights.iter().sum();
            labels().map(|label| self.label_weights[label] * area(label)).sum::<f64>() / total
        };
        match measure {
            Measure::AverageAuprc => average(&|label| precision_recall(&self.column(label, 1.0))),
            Measure::AverageAuroc => average(&|label| roc(&self.column(label, 1.0))),
            Measure::PooledAuprc => {
                let cells = labels().flat_map(|label| self.column(label, self.label_weights[label]));
                precision_recall(&cells.collect::<Vec<_>>())
            }
            Measure::MicroPrecision => share(all(&both), all(&says)),
            Measure::MicroRecall => share(all(&both), all(&has)),
            Measure::MicroF1 => share(2.0 * all(&both), all(&has) + all(&says)),
            Measure::MultilabelPrecision => of_sets(&both, &says),
            Measure::MultilabelRecall => of_sets(&both, &has),
            Measure::MultilabelF1 => of_sets(&|row| 2.0 * both(row), &|row| has(row) + says(row)),
            Measure::MultilabelAccuracy => of_sets(&both, &either),
            Measure::HammingLoss => {
                mean(&|row| weigh(row, &|has, says| has != says)) / self.label_weights.iter().sum::<f64>()
            }
            Measure::SubsetAccuracy => mean(&|row| f64::from(self.has[row] == self.says[row])),
            Measure::OneError => mean(&|row| {
                let scores = &self.scores[row];
                let top = labels().find(|&label| scores.iter().all(|score| *score <= scores[label]));
                f64::from(!self.has[row][top.unwrap()])
            }),
            Measure::Coverage => mean(&|row| {
                let scores = &self.scores[row];
                let above =
                    |label: usize| labels().filter(move |&other| other != label && scores[other] >= scores[label]);
                let own = labels().filter(|&label| self.has[row][label]);
                own.map(|label| above(label).count()).max().unwrap_or(0) as f64
            }),
            Measure::RankingLoss => mean(&|row| {
                let (has, scores) = (&self.has[row], &self.scores[row]);
                let pairs = || labels().flat_map(|one| labels().map(move |other| (one, other)));
                let pairs = || pairs().filter(|&(one, other)| has[one] && !has[other]);
                let wrong = pairs().filter(|&(one, other)| scores[one] <= scores[other]).count();
                share(wrong as f64, pairs().count() as f64)
            }),
        }
    }

    /// With mean 1.
    fn weight(&self, row: usize) -> f64 {
        self.row_weights[row] * self.row_weights.len() as f64 / self.row_weights.iter().sum::<f64>()
    }

    /// (score, weight, has the label) of all rows.
    fn column(&self, label: usize, factor: f64) -> Vec<(f64, f64, bool)> {
        let cell = |row: usize| (self.scores[row][label], factor * self.weight(row), self.has[row][label]);
        (0..self.has.len()).map(cell).collect()
    }
}

fn roc(cells: &[(f64, f64, bool)]) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for (score, weight, _) in cells.iter().filter(|cell| cell.2) {
        for (other, of_other, _) in cells.iter().filter(|cell| !cell.2) {
            all += weight * of_other;
            right += weight * of_other * if score > other { 1.0 } else { f64::from(score == other) / 2.0 };
        }
    }
    if all > 0.0 { right / all } else { 0.5 }
}

/// Davis and Goadrich, §3: points between thresholds, at most one true positive apart, and straight lines.
fn precision_recall(cells: &[(f64, f64, bool)]) -> f64 {
    let mut thresholds: Vec<f64> = cells.iter().map(|cell| cell.0).collect();
    thresholds.sort_by(|a, b| b.total_cmp(a));
    thresholds.dedup();
    let sum = |least: f64, has: bool| -> f64 {
        cells.iter().filter(|cell| cell.0 >= least && cell.2 == has).map(|cell| cell.1).sum()
    };
    let mut points = vec![(0.0, 0.0)];
    for threshold in thresholds {
        let (start, end) = (points[points.len() - 1], (sum(threshold, true), sum(threshold, false)));
        let rise: f64 = end.0 - start.0;
        let steps = rise.ceil().max(1.0);
        let step = |n: f64| (start.0 + rise * n / steps, start.1 + (end.1 - start.1) * n / steps);
        points.extend((1..steps as usize).map(|n| step(n as f64)));
        points.push(end);
    }
    let precision = |point: (f64, f64)| if point.0 > 0.0 { point.0 / (point.0 + point.1) } else { 0.0 };
    let lines = points.windows(2).enumerate().map(|(n, line)| {
        let end = precision(line[1]);
        // Flat down to recall 0.
        let start = if n == 0 { end } else { precision(line[0]) };
        (line[1].0 - line[0].0) * (start + end) / 2.0
    });
    let hits = sum(f64::NEG_INFINITY, true);
    if hits > 0.0 { lines.sum::<f64>() / hits } else { 0.0 }
}
