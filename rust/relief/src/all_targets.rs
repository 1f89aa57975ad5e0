//! The targets of all rows of a data set of which a selection is searched.
//!
//! Some targets of a row depend on those of all rows: drawn ones are those of another row, a rank is one among all rows,
//! and a missing value differs as expected among all rows.

use ferrank_data::groups::Groups;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::{Attribute, Problem, Task};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{TargetColumn, empty_targets};
use ferrank_data::values::{Keep, Values};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};

use crate::params::{ReliefParams, Scaling};
use crate::prepared::Labels;

/// Returns true if contributions from a selection of the rows need the targets of all rows.
pub(crate) fn are_needed(problem: &Problem, params: &ReliefParams, profile: &Profile) -> bool {
    let lacks = || profile.targets.iter().any(|target: &ColumnProfile| target.missing() > 0);
    let are_sets = matches!(problem.task, Task::MultiLabel | Task::Hierarchical);
    params.target_draws > 0
        || (problem.task != Task::Classification && (params.scaling == Scaling::Rank || are_sets || lacks()))
}

/// The targets of all rows that take part.
#[derive(Debug)]
pub(crate) struct AllTargets {
    pub(crate) columns: Vec<TargetColumn>,
    pub(crate) groups: Option<Groups>,
    pub(crate) n_rows: usize,
}

impl AllTargets {
    /// Reads the targets and the groups of `problem` from `source`, where they have the same names and no other columns
    /// are needed.
    ///
    /// # Errors
    /// [`Error::Data`] for a column that is not there, and for other rows than those of `profile`.
    pub(crate) fn read(
        source: &dyn ChunkSource,
        problem: &Problem,
        profile: &Profile,
        unlabelled: Unlabelled,
        monitor: &Monitor,
    ) -> Result<Self> {
        let schema = source.schema();
        let there = |attribute: &Attribute| match schema.index_of(&attribute.name) {
            Ok(column) => Ok(Attribute { column, ..attribute.clone() }),
            Err(_) => Err(Error::Data(format!("{}: no column '{}'", source.name(), attribute.name))),
        };
        let own = Problem {
            features: Vec::new(),
            targets: problem.targets.iter().map(there).collect::<Result<_>>()?,
            weight: None,
            groups: problem.groups.as_ref().map(there).transpose()?,
            ..problem.clone()
        };
        let n_rows = profile.counts.kept as usize;
        let targets = empty_targets(&own, profile, n_rows, source.name())?;
        let mut labels = Labels { targets, groups: Vec::new(), weights: Vec::new() };
        let intake = Intake::new(source, &own, unlabelled, monitor);
        let counts = intake.pass(Phase::Coding, |batch| labels.add(&intake, batch))?;
        if counts.kept != profile.counts.kept {
            return Err(intake.changed());
        }
        let Labels { targets: mut columns, groups, .. } = labels;
        columns.iter_mut().for_each(TargetColumn::share);
        let groups =
            own.groups.map(|_| Groups::new(&[Values::Held(groups)], source.name(), Keep::Memory)).transpose()?;
        Ok(AllTargets { columns, groups, n_rows })
    }
}
