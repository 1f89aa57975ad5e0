//! Tables of the codes of each feature and the values of each target, filled batch by batch.

use arrow_array::{Array, ArrayRef, RecordBatch};
use ferrank_data::column::numbers;
use ferrank_data::intake::Intake;
use ferrank_data::profile::{Coding, ColumnProfile, Profile, Scale};
use ferrank_data::store::encode;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Phase;
use rayon::prelude::*;

use crate::params::{UnivariateParams, UnivariateScore};
use crate::score::{Counts, Sums};

/// Of each feature and target.
pub(crate) struct Tables {
    /// n_features
    codings: Vec<Coding>,
    targets: Vec<Target>,
    /// n_features x n_targets
    cells: Vec<Vec<Table>>,
    /// The weight of all rows.
    total: f64,
}

/// How the values of a target are counted.
struct Target {
    /// Codes of classes, or of numbers where they are needed.
    coding: Option<Coding>,
    /// The middle and half the range of a number.
    range: Option<(f64, f64)>,
}

/// What is known of a feature and a target.
struct Table {
    counts: Counts,
    sums: Sums,
}

/// The values of a target in a batch.
struct Values {
    /// Class or code of a number; the number of codes where missing. Empty if they are not needed.
    codes: Vec<u16>,
    /// Scaled numbers, NaN where missing; empty for classes.
    numbers: Vec<f64>,
}

impl Tables {
    /// Reads the rows of `intake`.
    ///
    /// # Errors
    /// The errors of reading, and `Resource` if the tables do not fit into memory.
    pub(crate) fn read(
        intake: &Intake<'_>,
        profile: &Profile,
        params: &UnivariateParams,
        budget: &Budget,
    ) -> Result<Self> {
        let codings = profile.codings();
        let needs_codes = params.scores.contains(&UnivariateScore::MutualInformation);
        let columns = profile.targets.iter().zip(profile.target_codings());
        let targets: Vec<Target> = columns.map(|(column, coding)| Target::new(column, coding, needs_codes)).collect();
        let codes: usize = codings.iter().map(Coding::n_codes).sum();
        let width: usize = targets.iter().map(|target| target.n_codes() + 5).sum();
        budget.check(8 * (codes + codings.len()).saturating_mul(width), "the tables of values and classes")?;
        let tables = |coding: &Coding| {
            let table = |target: &Target| {
                let n_sums = if target.range.is_some() { coding.n_codes() } else { 0 };
                Table { counts: Counts::new(coding.n_codes(), target.n_codes()), sums: Sums::new(n_sums) }
            };
            targets.iter().map(table).collect()
        };
        let cells = codings.iter().map(tables).collect();
        let mut tables = Tables { codings, targets, cells, total: 0.0 };
        intake.pass(Phase::Coding, |batch| tables.add(intake, batch))?;
        Ok(tables)
    }

    /// Adds the rows of `batch`.
    fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
        let problem = intake.problem;
        let weights = problem.weight.map(|column| intake.weights(batch, column)).transpose()?;
        let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights[row]);
        let values = (self.targets.iter().zip(&problem.targets))
            .map(|(target, attribute)| {
                let found = target.values(batch.column(attribute.column));
                found.map_err(|error| intake.in_column(attribute.column, error))
            })
            .collect::<Result<Vec<Values>>>()?;
        self.total += (0..batch.num_rows()).map(weight).sum::<f64>();
        let features = self.cells.par_iter_mut().zip(&self.codings).zip(&problem.features);
        features.try_for_each_init(Vec::new, |codes, ((tables, coding), attribute)| {
            codes.resize(batch.num_rows(), 0);
            let missing = coding.n_codes() as u16;
            let emit = |row: usize, code: u16| codes[row] = code.min(missing);
            let unknown = encode(coding, batch.column(attribute.column), emit);
            if unknown.map_err(|error| intake.in_column(attribute.column, error))? > 0 {
                return Err(intake.changed());
            }
            for (table, values) in tables.iter_mut().zip(&values) {
                match weights.as_ref().map(|weights| &weights[..]) {
                    None => table.add(codes, values, |_| 1.0),
                    Some(weights) => table.add(codes, values, |row| weights[row]),
                }
            }
            Ok(())
        })
    }

    /// The importances under `score`; n_features.
    pub(crate) fn scores(&self, score: UnivariateScore) -> Vec<f64> {
        let of_feature = |(tables, coding): (&Vec<Table>, &Coding)| {
            let is_nominal = matches!(coding.scale, Scale::Nominal(_));
            let of_table = |table: &Table| match score {
                UnivariateScore::Mse => table.sums.weight() * table.sums.explained(is_nominal),
                _ => table.counts.weight() * table.counts.score(score, is_nominal),
            };
            let known = self.total * tables.len() as f64;
            if known > 0.0 { tables.iter().map(of_table).sum::<f64>() / known } else { 0.0 }
        };
        self.cells.par_iter().zip(&self.codings).map(of_feature).collect()
    }
}

impl Table {
    fn add(&mut self, codes: &[u16], values: &Values, weight: impl Fn(usize) -> f64) {
        self.counts.add(codes, &values.codes, &weight);
        self.sums.add(codes, &values.numbers, weight);
    }
}

impl Target {
    fn new(column: &ColumnProfile, coding: Option<Coding>, needs_codes: bool) -> Self {
        let ColumnProfile::Numeric(numeric) = column else { return Target { coding, range: None } };
        let half_range = numeric.max / 2.0 - numeric.min / 2.0;
        let half_range = if half_range > 0.0 { half_range } else { 1.0 };
        let range = Some((f64::midpoint(numeric.min, numeric.max), half_range));
        Target { coding: coding.filter(|_| needs_codes), range }
    }

    fn n_codes(&self) -> usize {
        self.coding.as_ref().map_or(0, Coding::n_codes)
    }

    fn values(&self, array: &ArrayRef) -> Result<Values> {
        let mut values = Values { codes: Vec::new(), numbers: Vec::new() };
        if let Some(coding) = &self.coding {
            values.codes.resize(array.len(), 0);
            let missing = coding.n_codes() as u16;
            encode(coding, array, |row, code: u16| values.codes[row] = code.min(missing))?;
        }
        if let Some((middle, half_range)) = self.range {
            let mut buffer = Vec::new();
            let found = numbers(array, &mut buffer)?;
            values.numbers = found.iter().map(|value| (value - middle) / half_range).collect();
        }
        Ok(values)
    }
}
