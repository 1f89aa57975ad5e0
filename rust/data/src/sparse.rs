//! Numeric features that a source keeps as compressed sparse rows, apart from the other columns.
//!
//! Memory: 12 bytes for each entry while they are read by feature.

use std::ops::Range;

use crate::intake::Intake;
use crate::schema::{Attribute, Kind, Problem};
use crate::source::SparseColumns;
use ferrank_runtime::error::{Error, Result};

/// A source with sparse features, seen through a problem.
pub(crate) struct SparseIntake<'a> {
    /// All columns, in batches.
    pub(crate) intake: &'a Intake<'a>,
    columns: SparseColumns<'a>,
    /// The numbers of the sparse features.
    features: Range<usize>,
    /// The problem without the sparse features, whose columns are those beside them.
    problem: Problem,
}

/// Entries of features, by feature and row.
pub(crate) struct EntriesByFeature {
    /// Number of rows that take part.
    pub(crate) n_rows: usize,
    starts: Vec<usize>,
    /// The row of each entry, counted over the rows that take part.
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl EntriesByFeature {
    /// The rows of a feature, which ascend, and its values in these.
    pub(crate) fn of(&self, number: usize) -> (&[u32], &[f64]) {
        let range = self.starts[number]..self.starts[number + 1];
        (&self.rows[range.clone()], &self.values[range])
    }
}

impl<'a> SparseIntake<'a> {
    /// `None` if the source keeps no sparse columns, or if some of them are no numeric features.
    pub(crate) fn new(intake: &'a Intake<'a>) -> Result<Option<Self>> {
        let Some(columns) = intake.source.sparse()? else { return Ok(None) };
        let Problem { features, targets, weight, groups, .. } = intake.problem;
        let range = columns.first..columns.first + columns.width;
        let is_numeric = |feature: &Attribute| feature.kind == Kind::Numeric;
        let mut others = targets.iter().chain(groups).map(|column| column.column).chain(*weight);
        // Features are in the order of the schema.
        let first = features.partition_point(|feature| feature.column < range.start);
        let end = features.partition_point(|feature| feature.column < range.end);
        let is_numbered = columns.starts.len() <= u32::MAX as usize;
        if !is_numbered || others.any(|column| range.contains(&column)) || !features[first..end].iter().all(is_numeric)
        {
            return Ok(None);
        }
        let beside = |column: usize| (!range.contains(&column)).then(|| moved(column, &range));
        let problem = intake.problem.with_columns_at(beside);
        Ok(Some(SparseIntake { intake, columns, features: first..end, problem }))
    }

    /// The number of the first sparse feature.
    pub(crate) fn first_feature(&self) -> usize {
        self.features.start
    }

    pub(crate) fn n_features(&self) -> usize {
        self.features.len()
    }

    pub(crate) fn n_entries(&self) -> usize {
        self.columns.columns.len()
    }

    /// For each feature of the problem its column among those [beside](Self::rest) the sparse ones; `None` for a sparse one.
    pub(crate) fn columns_beside(&self) -> Vec<Option<usize>> {
        let (before, after) = self.problem.features.split_at(self.features.start);
        let beside = |features: &[Attribute]| features.iter().map(|feature| Some(feature.column)).collect::<Vec<_>>();
        [beside(before), vec![None; self.n_features()], beside(after)].concat()
    }

    /// The rows without the sparse columns.
    pub(crate) fn rest(&self) -> Intake<'_> {
        let Intake { unlabelled, monitor, memory, .. } = *self.intake;
        Intake::new(self.columns.rest.as_ref(), &self.problem, unlabelled, monitor).with_memory(memory)
    }

    /// `error` with the source and the sparse feature at `number` named.
    pub(crate) fn in_feature(&self, number: usize, error: Error) -> Error {
        self.intake.in_column(self.intake.problem.features[self.features.start + number].column, error)
    }

    /// The entries of the rows that take part, by feature.
    ///
    /// # Errors
    /// What is wrong with a target or a weight.
    pub(crate) fn by_feature(&self) -> Result<EntriesByFeature> {
        let SparseColumns { first, width, starts, columns, ref values, .. } = self.columns;
        let takes_part = self.rest().taking_part()?;
        if takes_part.len() + 1 != starts.len() {
            return Err(self.intake.changed());
        }
        /// The number of a column that is no feature.
        const NONE: u32 = u32::MAX;
        let mut numbers = vec![NONE; width];
        let features = &self.intake.problem.features[self.features.clone()];
        (0..).zip(features).for_each(|(number, feature)| numbers[feature.column - first] = number);
        let rows = || {
            let kept = takes_part.iter().zip(starts.windows(2)).filter(|(takes_part, _)| **takes_part);
            (0..).zip(kept.map(|(_, ends)| ends[0] as usize..ends[1] as usize))
        };
        let numbered = |entry: usize| {
            let number = numbers[columns[entry] as usize];
            (number != NONE).then_some(number as usize)
        };
        let mut places = vec![0; features.len() + 1];
        for (_, entries) in rows() {
            entries.filter_map(numbered).for_each(|number| places[number + 1] += 1);
        }
        (1..places.len()).for_each(|number| places[number] += places[number - 1]);
        let n_entries = places[features.len()];
        let mut all = EntriesByFeature {
            n_rows: takes_part.iter().filter(|takes_part| **takes_part).count(),
            starts: places.clone(),
            rows: vec![0; n_entries],
            values: vec![0.0; n_entries],
        };
        for (row, entries) in rows() {
            for entry in entries {
                if let Some(number) = numbered(entry) {
                    let place = &mut places[number];
                    (all.rows[*place], all.values[*place]) = (row, values[entry]);
                    *place += 1;
                }
            }
        }
        Ok(all)
    }
}

/// The position of `column` among the columns outside of `range`.
fn moved(column: usize, range: &Range<usize>) -> usize {
    if column < range.start { column } else { column - range.len() }
}
