//! A selection of the rows of a data set.

use ferrank_data::schema::Problem;
use ferrank_data::source::ChunkSource;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;

use crate::all_targets::{AllTargets, are_needed};
use crate::obstacles::check_rows;
use crate::params::ReliefParams;

/// Rows of a data set, and what must be known of all of its rows.
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    /// n_rows; the numbers of the rows in the data set, ascending.
    pub numbers: &'a [u32],
    /// The targets and groups of all rows of the data set, in columns of the same names; `None` if they are not
    /// [needed](crate::selection::Beside::targets).
    pub targets: Option<&'a dyn ChunkSource>,
}

impl Selection<'_> {
    pub(crate) fn check(&self, scan: &ScanSummary<'_>, problem: &Problem, params: &ReliefParams) -> Result<()> {
        check_rows(self.numbers, scan, params)?;
        check(
            self.targets.is_some() || !are_needed(problem, params, &scan.profile),
            "targets: give those of all rows, on which the targets of these rows depend",
        )
    }

    /// The targets of all rows and the numbers of those of the selection, if they are needed.
    pub(crate) fn targets(
        &self,
        scan: &ScanSummary<'_>,
        problem: &Problem,
        params: &ReliefParams,
        monitor: &Monitor,
    ) -> Result<Option<(AllTargets, Vec<u32>)>> {
        let Some(source) = self.targets.filter(|_| are_needed(problem, params, &scan.profile)) else { return Ok(None) };
        let all = AllTargets::read(source, problem, &scan.profile, params.unlabelled, monitor)?;
        Ok(Some((all, self.numbers.to_vec())))
    }
}
