//! The targets as what the tests add up: ranks, classes, or labels.

use std::ops::Range;

use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::TargetColumn;

/// The labels that are counted in one pass over the rows.
pub(crate) const LABELS: usize = 4_096;

/// The rank of a row whose target is missing.
const UNKNOWN: i64 = i64::MIN;

/// One target, or some labels of one, without the rows of nominal targets and label sets.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Number of the target.
    pub(crate) target: usize,
    pub(crate) kind: Kind,
    /// Over all rows whose target is known: how many, then as [`Values::add`].
    pub(crate) totals: Vec<i64>,
}

/// What a target is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A number.
    Ranks(Ranks),
    /// So many classes.
    Classes(usize),
    /// Some labels of label sets.
    Labels(Range<usize>),
}

/// The values of the rows.
pub(crate) enum Values<'a> {
    Ranks(&'a Ranks),
    Classes(&'a [u16]),
    Labels(&'a LabelColumn, &'a Range<usize>),
}

/// Ranks whose sums are exact in any order.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// n_rows; twice the mid-rank less twice the mean of all ranks, an integer, or [`UNKNOWN`].
    of_row: Vec<i64>,
    /// Binary digits that squares lose, so that their sum is an i64.
    shift: u32,
    /// The sum over rows of the squared share of each in the sum of squares.
    pub(crate) squared_shares: f64,
}

impl Ranks {
    fn new(values: &[f64]) -> Self {
        let mut order: Vec<u32> = (0..values.len() as u32).filter(|&row| !values[row as usize].is_nan()).collect();
        order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        let n = order.len() as i64;
        let mut of_row = vec![UNKNOWN; values.len()];
        let mut before = 0;
        let (mut squares, mut fourth) = (0.0, 0.0);
        for equal in order.chunk_by(|&a, &b| values[a as usize] == values[b as usize]) {
            let count = equal.len() as i64;
            let rank = 2 * before + count - n;
            equal.iter().for_each(|&row| of_row[row as usize] = rank);
            before += count;
            let square = (rank as f64).powi(2);
            squares += count as f64 * square;
            fourth += count as f64 * square * square;
        }
        let digits = u64::BITS - (values.len() as u64).leading_zeros();
        Ranks { of_row, shift: (3 * digits).saturating_sub(62), squared_shares: fourth / (squares * squares) }
    }

    /// The square of a rank, in units of 2^shift.
    fn square(&self, rank: i64) -> i64 {
        ((i128::from(rank) * i128::from(rank)) >> self.shift) as i64
    }

    /// The rank of a row whose target is known, in 16 bits: the same share of its range for all targets.
    fn short(&self, row: usize) -> f64 {
        // Ranks lie between -n and n, n at most half of 2^digits.
        let digits = u64::BITS - (self.of_row.len() as u64).leading_zeros();
        (self.of_row[row] >> digits.saturating_sub(15)) as f64
    }

    /// A sum of squares.
    pub(crate) fn squares(&self, sum: i64) -> f64 {
        sum as f64 * f64::from(self.shift).exp2()
    }
}

impl Answer {
    /// The target with this number; label sets in blocks of labels.
    pub(crate) fn of(target: usize, column: &TargetColumn) -> Vec<Self> {
        let all = match column {
            TargetColumn::Numeric(values) => vec![Kind::Ranks(Ranks::new(values))],
            TargetColumn::Nominal { categories, .. } => vec![Kind::Classes(categories.names.len())],
            TargetColumn::Labels(labels) => {
                let n_labels = labels.hierarchy.names().len();
                let blocks = (0..n_labels).step_by(LABELS);
                blocks.map(|first| Kind::Labels(first..n_labels.min(first + LABELS))).collect()
            }
        };
        let new = |kind: Kind| {
            let mut totals = vec![0; kind.width()];
            let values = kind.values(column);
            (0..column.len()).for_each(|row| values.add(row, &mut totals));
            Answer { target, kind, totals }
        };
        all.into_iter().map(new).collect()
    }
}

/// The fourth moment of a variable with mean 0 and variance 1 that is uniform is 1.8, of a normal one 3. With more, sums over few rows have heavier tails than a normal law.
const MOST_FOURTH_MOMENT: f64 = 3.0;

impl Answer {
    /// The numbers of what a linear model may have as its target: 0 for ranks, or classes or labels, the rows with which have
    /// the value 1 and all others 0. None if the target is missing in any of the `n_rows` rows, or its tails are heavy.
    pub(crate) fn components(&self, n_rows: usize) -> Vec<usize> {
        let n = n_rows as f64;
        let is_light = |number: &usize| match &self.kind {
            Kind::Ranks(ranks) => ranks.squared_shares * n <= MOST_FOURTH_MOMENT,
            Kind::Classes(_) | Kind::Labels(_) => {
                let share = self.totals[1 + number] as f64 / n;
                let variance = share * (1.0 - share);
                variance > 0.0 && 1.0 / variance - 3.0 <= MOST_FOURTH_MOMENT
            }
        };
        let n_components = match &self.kind {
            _ if self.totals[0] as usize != n_rows => 0,
            // One of two classes says all.
            Kind::Ranks(_) | Kind::Classes(2) => 1,
            Kind::Classes(n) => *n,
            Kind::Labels(labels) => labels.len(),
        };
        (0..n_components).filter(is_light).collect()
    }
}

impl Kind {
    /// Number of sums.
    pub(crate) fn width(&self) -> usize {
        match self {
            Kind::Ranks(_) => 3,
            Kind::Classes(n_classes) => 1 + n_classes,
            Kind::Labels(labels) => 1 + labels.len(),
        }
    }

    /// The values of the rows of `column`, which is of this kind.
    pub(crate) fn values<'a>(&'a self, column: &'a TargetColumn) -> Values<'a> {
        match (self, column) {
            (Kind::Ranks(ranks), _) => Values::Ranks(ranks),
            (Kind::Classes(_), TargetColumn::Nominal { codes, .. }) => Values::Classes(codes),
            (Kind::Labels(range), TargetColumn::Labels(labels)) => Values::Labels(labels, range),
            _ => unreachable!("the column is the one that the kind is of"),
        }
    }
}

impl Values<'_> {
    /// The value of one of the components in a row, an integer.
    pub(crate) fn component(&self, component: usize, row: usize) -> f64 {
        match self {
            Values::Ranks(ranks) => ranks.short(row),
            Values::Classes(codes) => f64::from(u8::from(usize::from(codes[row]) == component)),
            Values::Labels(column, range) => {
                let label = (range.start + component) as u32;
                f64::from(u8::from(column.of(row).is_some_and(|labels| labels.contains(&label))))
            }
        }
    }

    /// Adds a row whose target is known to the sums: the number of rows, and of a numeric target the ranks and their squares, of
    /// a nominal one the rows of each class, of label sets those with each label.
    #[inline(always)]
    pub(crate) fn add(&self, row: usize, sums: &mut [i64]) {
        match self {
            Values::Ranks(ranks) => {
                let rank = ranks.of_row[row];
                if rank != UNKNOWN {
                    sums[0] += 1;
                    sums[1] += rank;
                    sums[2] += ranks.square(rank);
                }
            }
            Values::Classes(codes) => {
                let code = codes[row];
                if code != MISSING_U16 {
                    sums[0] += 1;
                    sums[1 + usize::from(code)] += 1;
                }
            }
            Values::Labels(column, range) => {
                if let Some(labels) = column.of(row) {
                    sums[0] += 1;
                    let own = labels.iter().map(|&label| label as usize).filter(|label| range.contains(label));
                    own.for_each(|label| sums[1 + label - range.start] += 1);
                }
            }
        }
    }
}
