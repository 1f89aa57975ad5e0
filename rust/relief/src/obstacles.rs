//! What a selection of the rows must be, and what it cannot do.

use ferrank_data::intake::Unlabelled;
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::Problem;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Result, check};

use crate::params::{Missing, NeighborhoodRule, ReliefParams, ReliefScore};

/// Why a data set of this `profile` cannot be ranked from selections; `None` if it can.
pub fn obstacle(problem: &Problem, params: &ReliefParams, profile: &Profile) -> Option<&'static str> {
    let lacks = |columns: &[ColumnProfile]| columns.iter().any(|column| column.missing() > 0);
    if problem.weight.is_some() {
        Some("sample_weight: priors and ranks depend on the weights of all rows")
    } else if params.scores.contains(&ReliefScore::Myopic) {
        Some("scores: myopic compares all rows at once")
    } else if params.neighborhood != NeighborhoodRule::Nearest {
        Some(
            "neighborhood: the distances of all pairs of rows decide which count; \"nearest\" needs no more than some rows",
        )
    } else if params.unlabelled == Unlabelled::Use && profile.counts.unlabelled > 0 {
        Some("unlabelled: the influence of a row without a target depends on all that have one")
    } else if params.missing == Missing::Expected && lacks(&profile.features) {
        Some("missing: the difference of a missing value is that expected among all rows; \"informative\" needs none")
    } else {
        None
    }
}

/// Checks that a selection has these `numbers`, and that it will do.
pub(crate) fn check_rows(
    numbers: &[u32],
    scan: &ScanSummary<'_>,
    problem: &Problem,
    params: &ReliefParams,
) -> Result<()> {
    if let Some(obstacle) = obstacle(problem, params, &scan.profile) {
        return check(false, format!("{obstacle}; rank all rows together"));
    }
    let (rows, all) = (scan.rows, scan.profile.counts.kept);
    let fit = numbers.len() as u64 == rows
        && numbers.is_sorted_by(|a, b| a < b)
        && numbers.last().is_none_or(|&last| u64::from(last) < all);
    check(fit, format!("numbers: give one for each of {rows} rows, ascending and below {all}"))
}
