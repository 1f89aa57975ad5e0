//! Scores from tables.

use crate::params::UnivariateScore;

/// The weights of rows by code and class.
pub(crate) struct Counts {
    n_classes: usize,
    /// (n_codes + 1) x (n_classes + 1); the last of both are missing values, so that rows are added without a question.
    cells: Vec<f64>,
}

impl Counts {
    pub(crate) fn new(n_codes: usize, n_classes: usize) -> Self {
        Counts { n_classes, cells: vec![0.0; (n_codes + 1) * (n_classes + 1)] }
    }

    /// Adds rows with these `codes` and `classes`, n_codes and n_classes where missing.
    pub(crate) fn add(&mut self, codes: &[u16], classes: &[u16], weight: impl Fn(usize) -> f64) {
        let width = self.n_classes + 1;
        for (row, (&code, &class)) in codes.iter().zip(classes).enumerate() {
            self.cells[usize::from(code) * width + usize::from(class)] += weight(row);
        }
    }

    pub(crate) fn weight(&self) -> f64 {
        self.rows().flatten().sum()
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = &[f64]> + Clone {
        let width = self.n_classes + 1;
        let known = self.cells.len() - width;
        self.cells[..known].chunks(width).map(|row| &row[..row.len() - 1])
    }

    fn classes(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_classes];
        self.rows().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count));
        sums
    }

    /// The score of the table. Categories may be grouped in any way if `is_nominal`, codes are cut otherwise.
    pub(crate) fn score(&self, score: UnivariateScore, is_nominal: bool) -> f64 {
        let total = self.weight();
        let classes = self.classes();
        if total <= 0.0 {
            return 0.0;
        }
        match score {
            UnivariateScore::InformationGain => self.gain(&classes, total) / std::f64::consts::LN_2,
            UnivariateScore::MutualInformation => self.gain(&classes, total),
            UnivariateScore::GainRatio => {
                let of_feature = entropy(self.rows().map(|row| row.iter().sum()), total);
                if of_feature > 0.0 { self.gain(&classes, total) / of_feature } else { 0.0 }
            }
            UnivariateScore::Chi2 => self.chi_squared(&classes, total),
            UnivariateScore::Accuracy => {
                let without = classes.iter().copied().fold(0.0, f64::max);
                (self.most_right(is_nominal, without) - without) / total
            }
            UnivariateScore::Mse => 0.0,
        }
    }

    /// H(y) − H(y | x), in nats; at least 0.
    fn gain(&self, classes: &[f64], total: f64) -> f64 {
        let within: f64 = self
            .rows()
            .map(|row| {
                let sum: f64 = row.iter().sum();
                sum / total * entropy(row.iter().copied(), sum)
            })
            .sum();
        (entropy(classes.iter().copied(), total) - within).max(0.0)
    }

    fn chi_squared(&self, classes: &[f64], total: f64) -> f64 {
        let of_row = |row: &[f64]| {
            let sum: f64 = row.iter().sum();
            let cell = |(count, class): (&f64, &f64)| {
                let expected = sum * class / total;
                if expected > 0.0 { (count - expected).powi(2) / expected } else { 0.0 }
            };
            row.iter().zip(classes).map(cell).sum::<f64>()
        };
        self.rows().map(of_row).sum()
    }

    /// The weight of the rows of the majority classes of the best split in two, which is at least `without`, that without a
    /// split.
    fn most_right(&self, is_nominal: bool, without: f64) -> f64 {
        let mut best = without;
        if is_nominal {
            for a in 0..self.n_classes {
                for b in 0..a {
                    best = best.max(self.rows().map(|row| row[a].max(row[b])).sum());
                }
            }
            return best;
        }
        let mut left = vec![0.0; self.n_classes];
        let mut right = self.classes();
        let most = |counts: &[f64]| counts.iter().copied().fold(0.0, f64::max);
        for row in self.rows() {
            for ((left, right), count) in left.iter_mut().zip(&mut right).zip(row) {
                *left += count;
                *right -= count;
            }
            best = best.max(most(&left) + most(&right));
        }
        best
    }
}

/// The entropy of `counts`, whose sum is `total`, in nats.
fn entropy(counts: impl Iterator<Item = f64>, total: f64) -> f64 {
    let part = |count: f64| if count > 0.0 { -count / total * (count / total).ln() } else { 0.0 };
    counts.map(part).sum()
}

/// Weights, sums and squares of a number by code.
pub(crate) struct Sums {
    /// n_codes + 1; the last is of missing values. Four numbers, of which one is not used, are added as two vectors.
    cells: Vec<[f64; 4]>,
}

impl Sums {
    pub(crate) fn new(n_codes: usize) -> Self {
        Sums { cells: vec![[0.0; 4]; n_codes + 1] }
    }

    /// Adds rows with these `codes`, n_codes where missing, and `numbers`, NaN where missing.
    pub(crate) fn add(&mut self, codes: &[u16], numbers: &[f64], weight: impl Fn(usize) -> f64) {
        let missing = self.cells.len() - 1;
        for (row, (&code, &number)) in codes.iter().zip(numbers).enumerate() {
            let code = if number.is_nan() { missing } else { usize::from(code) };
            let weight = weight(row);
            let terms = [weight, weight * number, weight * number * number, 0.0];
            self.cells[code].iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }

    pub(crate) fn weight(&self) -> f64 {
        self.known().iter().map(|cell| cell[0]).sum()
    }

    fn known(&self) -> &[[f64; 4]] {
        &self.cells[..self.cells.len() - 1]
    }

    /// The share of the variance that the best split in two explains.
    pub(crate) fn explained(&self, is_nominal: bool) -> f64 {
        let mut order: Vec<&[f64; 4]> = self.known().iter().filter(|cell| cell[0] > 0.0).collect();
        if is_nominal {
            order.sort_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])));
        }
        let all = |place: usize| order.iter().map(|cell| cell[place]).sum::<f64>();
        let [weight, sum, squares] = [all(0), all(1), all(2)];
        let spread = squares - sum * sum / weight;
        // Below, there is only the rounding of equal values.
        if spread.is_nan() || spread <= 1e-12 * squares {
            return 0.0;
        }
        let (mut left, mut left_sum, mut best) = (0.0, 0.0, 0.0f64);
        for cell in &order[..order.len() - 1] {
            left += cell[0];
            left_sum += cell[1];
            let right = weight - left;
            if right > 0.0 {
                let difference = left_sum - sum * left / weight;
                best = best.max(difference * difference * weight / (left * right));
            }
        }
        (best / spread).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_split_explains_is_a_share() {
        for step in 0..1_000 {
            let mut sums = Sums::new(2);
            let (a, b) = (f64::from(step) * 0.37 + 0.1, f64::from(step % 7) * 0.21 - 1.3);
            sums.add(&[0, 0, 1], &[a, a, b], |row| [1.1, 0.3, 0.7][row]);
            let explained = sums.explained(false);
            assert!(explained <= 1.0 && explained > 1.0 - 1e-9, "{a}, {b}: {explained}");
        }
    }
}
