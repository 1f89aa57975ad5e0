//! The rows of an intake with some of its columns alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::intake::Intake;
use crate::schema::Problem;
use crate::source::{ChunkSource, Chunks};
use ferrank_runtime::error::Result;

/// An intake without the columns of some features.
pub(crate) struct RestIntake<'a> {
    intake: &'a Intake<'a>,
    source: SomeColumns<'a>,
    problem: Problem,
    /// n_features; the column of each feature, if it is left.
    pub(crate) columns: Vec<Option<usize>>,
}

impl<'a> RestIntake<'a> {
    /// The rows of `intake` with the features that `stays` says, by their number, and the other columns in their roles.
    pub(crate) fn new(intake: &'a Intake<'a>, stays: impl Fn(usize) -> bool) -> Self {
        let Problem { features, targets, weight, groups, .. } = intake.problem;
        let of_features = features.iter().enumerate().filter(|(number, _)| stays(*number)).map(|(_, feature)| feature);
        let others = of_features.chain(targets).chain(groups).map(|attribute| attribute.column).chain(*weight);
        let columns: Vec<usize> = others.collect::<BTreeSet<_>>().into_iter().collect();
        let schema = intake.source.schema();
        // If all are left, nothing moves.
        let columns = if (0..features.len()).all(&stays) { None } else { Some(columns) };
        let place = |column: usize| match &columns {
            None => Some(column),
            Some(columns) => columns.binary_search(&column).ok(),
        };
        let problem = intake.problem.with_columns_at(place);
        let of_features = features.iter().map(|feature| place(feature.column)).collect();
        let schema = match &columns {
            None => schema,
            Some(columns) => Arc::new(Schema::new_with_metadata(
                columns.iter().map(|&column| schema.fields()[column].clone()).collect::<Vec<_>>(),
                schema.metadata().clone(),
            )),
        };
        let source = SomeColumns { source: intake.source, columns, schema };
        RestIntake { intake, source, problem, columns: of_features }
    }

    /// The rows.
    pub(crate) fn intake(&self) -> Intake<'_> {
        let Intake { unlabelled, monitor, memory, .. } = *self.intake;
        Intake::new(&self.source, &self.problem, unlabelled, monitor).with_memory(memory)
    }
}

/// A source seen through some of its columns.
struct SomeColumns<'a> {
    source: &'a dyn ChunkSource,
    /// Ascending; `None`: all.
    columns: Option<Vec<usize>>,
    schema: SchemaRef,
}

impl ChunkSource for SomeColumns<'_> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        match &self.columns {
            None => self.source.chunks(),
            Some(columns) => self.source.chunks_of(columns),
        }
    }

    fn name(&self) -> &str {
        self.source.name()
    }

    fn rows_hint(&self) -> Option<u64> {
        self.source.rows_hint()
    }
}
