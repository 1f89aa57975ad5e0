//! The association of a feature and a target, and what is to be expected of it by chance.
//!
//! Feature and target each span a few directions in the space of the rows, without the mean: the ranks of a number span one,
//! K categories span K − 1. With the projections P and Q on these directions,
//!
//! ```text
//! T = tr(P Q)
//! ```
//!
//! is the squared rank correlation of two numbers (Spearman 1904), the share of the variance of ranks between categories
//! (Kruskal and Wallis 1952) of a number and a nominal attribute, and Pearson's χ² / n of two nominal ones. If the targets
//! are independent of the feature, all permutations of the rows are equally probable. With p, q the ranks of the
//! projections, and sums over the n rows (Pitman 1937; Mielke and Berry 1985 for tables),
//!
//! ```text
//! E T   = p q / (n − 1)
//! Var T = 2 (v_P − w_P)(v_Q − w_Q) / n(n − 3) + w_P w_Q / (n − 1)
//! v     = p (n − 1 − p) / (n − 1)          w = n (Σ P_ii² − p² / n) / (n − 2)
//! ```

use ferrank_data::profile::Scale;
use ferrank_ranking::relevance::PermutationTest;

use crate::answers::{Answer, Kind, Ranks};
use crate::tables::Table;

/// With fewer rows nothing is tested.
const LEAST_ROWS: i64 = 5;

/// The association of a feature and a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Association {
    pub(crate) test: PermutationTest,
    /// The greatest value that the statistic can have.
    greatest: f64,
}

impl Association {
    /// The share of the greatest association, less what is to be expected by chance: 1 if the one determines the other, 0 on
    /// average if they are independent.
    pub(crate) fn strength(&self) -> f64 {
        let PermutationTest { statistic, mean, .. } = self.test;
        if self.greatest > mean { (statistic - mean) / (self.greatest - mean) } else { 0.0 }
    }
}

/// The associations of a feature with a target, a label each where it has labels: of the known values, and of whether the
/// value is known. Of labels, and of attributes that do not vary, there may be none.
pub(crate) fn associations(scale: &Scale, table: &Table, answer: &Answer) -> Vec<Association> {
    let (known, missing) = table.split();
    let mut found = Vec::new();
    let mut add = |sides: &Sides<'_>| match &answer.kind {
        Kind::Labels(labels) => {
            found.extend((1..=labels.len()).filter_map(|label| sides.with_classes(&[label])));
        }
        Kind::Classes(n_classes) => found.extend(sides.with_classes(&(1..=*n_classes).collect::<Vec<_>>())),
        Kind::Ranks(ranks) => found.extend(sides.with_ranks(ranks, answer.totals[0])),
    };
    let scores = match scale {
        Scale::Numeric(_) => Some(mid_ranks(&known)),
        Scale::Nominal(_) => None,
    };
    if let Some(sides) = Sides::new(&known, scores.as_deref()) {
        add(&sides);
    }
    if missing[0] > 0 {
        let all = known.iter().fold(vec![0; table.width], |mut sum, row| {
            sum.iter_mut().zip(*row).for_each(|(sum, value)| *sum += value);
            sum
        });
        if let Some(sides) = Sides::new(&[&all, missing], None) {
            add(&sides);
        }
    }
    found
}

/// For each row of sums twice the mid-rank of its rows, less twice the mean of all.
fn mid_ranks(sums: &[&[i64]]) -> Vec<i64> {
    let n: i64 = sums.iter().map(|row| row[0]).sum();
    let next = |before: &mut i64, row: &&[i64]| {
        let rank = 2 * *before + row[0] - n;
        *before += row[0];
        Some(rank)
    };
    sums.iter().scan(0, next).collect()
}

/// A feature beside a target that is not chosen yet.
struct Sides<'a> {
    /// The sums for each value of the feature.
    sums: &'a [&'a [i64]],
    /// The rank of each value; `None`: values have no order.
    scores: Option<&'a [i64]>,
    /// Sum over rows of the squared scores.
    squares: f64,
    n: f64,
    feature: Projection,
}

/// A projection: its rank, and the sum of the squares of its diagonal.
#[derive(Clone, Copy)]
struct Projection {
    rank: f64,
    squares: f64,
}

impl Projection {
    /// Of categories with these numbers of rows, not all of them 0.
    fn of_categories(counts: impl Iterator<Item = i64>) -> Self {
        let (mut n_categories, mut n, mut inverse) = (0.0, 0.0, 0.0);
        for count in counts.filter(|&count| count > 0) {
            (n_categories, n, inverse) = (n_categories + 1.0, n + count as f64, inverse + 1.0 / count as f64);
        }
        Projection { rank: n_categories - 1.0, squares: inverse - (2.0 * n_categories - 1.0) / n }
    }

    /// v and w, for `n` rows.
    fn terms(self, n: f64) -> (f64, f64) {
        let Projection { rank, squares } = self;
        (rank * (n - 1.0 - rank) / (n - 1.0), (n * (squares - rank * rank / n) / (n - 2.0)).max(0.0))
    }
}

impl<'a> Sides<'a> {
    /// `None` if there are few rows, or the feature does not vary.
    fn new(sums: &'a [&'a [i64]], scores: Option<&'a [i64]>) -> Option<Self> {
        let n: i64 = sums.iter().map(|row| row[0]).sum();
        let power = |exponent: i32| {
            let scored = sums.iter().zip(scores.into_iter().flatten());
            scored.map(|(row, &score)| row[0] as f64 * (score as f64).powi(exponent)).sum::<f64>()
        };
        let squares = power(2);
        let feature = match scores {
            Some(_) if squares > 0.0 => Projection { rank: 1.0, squares: power(4) / (squares * squares) },
            Some(_) => return None,
            None => Projection::of_categories(sums.iter().map(|row| row[0])),
        };
        (n >= LEAST_ROWS && feature.rank > 0.0).then_some(Sides { sums, scores, squares, n: n as f64, feature })
    }

    /// The association with a nominal target, whose classes have their counts in `columns`; a single column stands for a class
    /// and all others.
    fn with_classes(&self, columns: &[usize]) -> Option<Association> {
        let totals: Vec<i64> = columns.iter().map(|&column| self.total(column)).collect();
        let others = self.n as i64 - totals.iter().sum::<i64>();
        let target = Projection::of_categories(totals.iter().copied().chain([others]));
        if target.rank < 1.0 {
            return None;
        }
        let between = |column: Option<usize>, total: i64| {
            let count = |row: &[i64]| match column {
                Some(column) => row[column],
                None => row[0] - columns.iter().map(|&column| row[column]).sum::<i64>(),
            };
            if total == 0 { 0.0 } else { self.explained(|row| count(row) as f64, total as f64) / total as f64 }
        };
        let own = columns.iter().zip(&totals).map(|(&column, &total)| between(Some(column), total)).sum::<f64>();
        Some(self.association(own + between(None, others), target))
    }

    /// The association with a numeric target that is known in `n_ranked` rows.
    fn with_ranks(&self, ranks: &Ranks, n_ranked: i64) -> Option<Association> {
        let sum = self.total(1) as f64;
        // Rows that lack the feature leave the others with a mean of their own.
        let variation = ranks.squares(self.total(2)) - sum * sum / self.n;
        if variation <= 0.0 {
            return None;
        }
        let statistic = self.explained(|row| row[1] as f64, sum) / variation;
        let squares = ranks.squared_shares * n_ranked as f64 / self.n;
        Some(self.association(statistic, Projection { rank: 1.0, squares }))
    }

    fn total(&self, column: usize) -> i64 {
        self.sums.iter().map(|row| row[column]).sum()
    }

    /// The sum of squares of the projection on the feature of a variable that has the sum `sum` in the rows of each value,
    /// and `total` in all.
    fn explained(&self, sum: impl Fn(&[i64]) -> f64, total: f64) -> f64 {
        match self.scores {
            Some(scores) => {
                let product: f64 = self.sums.iter().zip(scores).map(|(row, &score)| score as f64 * sum(row)).sum();
                product * product / self.squares
            }
            None => {
                let of_value = |row: &&&[i64]| sum(row).powi(2) / row[0] as f64;
                self.sums.iter().filter(|row| row[0] > 0).map(|row| of_value(&row)).sum::<f64>()
                    - total * total / self.n
            }
        }
    }

    fn association(&self, statistic: f64, target: Projection) -> Association {
        let (n, feature) = (self.n, self.feature);
        let ((v, w), (v_target, w_target)) = (feature.terms(n), target.terms(n));
        let variance = 2.0 * (v - w) * (v_target - w_target) / (n * (n - 3.0)) + w * w_target / (n - 1.0);
        let mean = feature.rank * target.rank / (n - 1.0);
        let test = PermutationTest { statistic, mean, variance };
        Association { test, greatest: feature.rank.min(target.rank) }
    }
}
