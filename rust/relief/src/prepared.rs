//! Reads a source as far as a search needs it: scales, targets, models of missing values, and the rows if they fit in
//! memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use super::limits::Limits;
use super::params::{Missing, NeighborhoodRule, ReliefParams, Scaling};
use super::targets;
use ferrank_data::groups::Groups;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::{Categories, ColumnProfile, Profile};
use ferrank_data::schema::{Problem, Task};
use ferrank_data::store::{TargetColumn, add_values, empty_targets};
use ferrank_data::values::{Keep, Values};
use ferrank_neighbors::layout::Layout;
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::ranks::without_ones;
use ferrank_neighbors::rows::{Reader, Rows};
use ferrank_neighbors::space::{Scale, Shape, Space};
use ferrank_neighbors::space_panels::layout_of;
use ferrank_neighbors::sparse::{SparseRows, Usual};
use ferrank_neighbors::spilled::{COLUMN_BYTES, SpilledRows};
use ferrank_neighbors::table::Table;
use ferrank_neighbors::weights::DistanceWeights;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::scratch::Scratch;
use tracing::info;

/// Bytes of a value in memory: in f64, in f32 in panels and by rows, and as byte code.
const VALUE_BYTES: usize = 8 + 4 + 4 + 1;
/// Values of the columns with missing values that are modelled together.
const MODEL_VALUES: usize = 1 << 22;

/// The data of a run.
pub(crate) struct Prepared<'a> {
    pub(super) limits: Limits,
    pub(super) problem: &'a Problem,
    pub(super) monitor: &'a Monitor,
    pub(super) n_rows: usize,
    /// True if rows without a target are used.
    pub(super) is_semi_supervised: bool,
    pub(super) table: Table<'a>,
    pub(super) space: Space,
    pub(super) layout: Layout,
    pub(super) targets: Vec<TargetColumn>,
    pub(super) target_profiles: Vec<ColumnProfile>,
    /// n_rows; empty where all rows have the weight 1.
    pub(super) weights: Arc<Vec<f64>>,
}

impl<'a> Prepared<'a> {
    /// Reads the rows of `intake` as far as `limits` allow, scaled as `params` say. With `has_ranks`, ranks among all rows
    /// of the data set are in the place of the values that are ranked.
    pub(super) fn read(
        limits: Limits,
        intake: Intake<'a>,
        scan: &ScanSummary<'_>,
        params: &ReliefParams,
        scratch: &Scratch,
        has_ranks: bool,
    ) -> Result<Self> {
        let (problem, monitor, profile, n_rows) = (intake.problem, intake.monitor, &scan.profile, scan.rows);
        let all_rows = profile.counts.kept as usize;
        let scale = |profile: &ColumnProfile| match scaled(profile, params) {
            Scale::Ranked { .. } if has_ranks => Scale::Numeric { low: 0.0, high: 1.0 },
            scale => scale,
        };
        let scales: Vec<Scale> = profile.features.iter().map(scale).collect();
        let mut shapes: Vec<Shape> = scales.iter().map(Shape::from_scale).collect();
        let with_missing: Vec<usize> =
            (0..shapes.len()).filter(|&i| shapes[i] != Shape::Constant && profile.features[i].missing() > 0).collect();
        let name = intake.source.name();
        let targets = empty_targets(problem, profile, n_rows as usize, name)?;
        let mut labels = Labels { targets, groups: Vec::new(), weights: Vec::new() };
        let is_semi_supervised = intake.unlabelled == Unlabelled::Use && profile.counts.unlabelled > 0;
        let reader = Reader { intake, scales, n_rows, clip: false };
        let by_class = problem.task == Task::Classification
            && !is_semi_supervised
            && params.target_draws == 0
            && params.covariates.is_empty();
        let has_classes = by_class && params.missing == Missing::Expected;
        let classes = if has_classes { profile.targets[0].n_categories() } else { 1 };
        let usual = Usual::new(&profile.features, &reader.scales, all_rows);
        let (n, width) = (n_rows as usize, shapes.len());
        let ranked: Vec<usize> =
            (0..width).filter(|&feature| matches!(reader.scales[feature], Scale::Ranked { .. })).collect();
        let mut read = |batch: &RecordBatch| labels.add(&reader.intake, batch);
        // Expected differences in panels, and those that are added up.
        let expected_bytes = 4 * with_missing.len() * classes + Space::expected_bytes(with_missing.len(), classes);
        let held_bytes = n * (VALUE_BYTES * width + expected_bytes);
        let ranking_bytes = if ranked.is_empty() { 0 } else { n * (size_of::<f64>() * width + COLUMN_BYTES) };
        // The usual value of a rank is not known.
        let is_sparse = !(has_ranks && params.scaling == Scaling::Rank) && usual.is_worthwhile(all_rows, limits.rows);
        let mut table = if is_sparse {
            Table::Sparse(read_sparse(&reader, usual, &mut read)?)
        } else if held_bytes.max(ranking_bytes) <= limits.rows {
            Table::Held(reader.hold(Phase::Coding, |intake, batch| labels.add(intake, batch))?)
        } else if !ranked.is_empty() {
            Table::Spilled(SpilledRows::new(&reader, &ranked, scratch, limits.group, &mut read)?)
        } else {
            reader.intake.pass(Phase::Coding, &mut read)?;
            Table::Streamed(reader)
        };
        let weights = weights(std::mem::take(&mut labels.weights), name)?;
        match &mut table {
            Table::Sparse(rows) if !ranked.is_empty() => rows.rank(&ranked, &weights),
            Table::Held(rows) => {
                let left = limits.rows - n * size_of::<f64>() * width;
                rows.rank(&ranked, &weights, (left / (COLUMN_BYTES * n)).max(1));
            }
            _ => {}
        }
        let place = match &table {
            Table::Held(_) => "held in memory",
            Table::Sparse(_) => "held in memory without their zeros",
            Table::Spilled(_) => "kept in a temporary file",
            Table::Streamed(_) => "read again for each pass",
        };
        info!("memory plan: {n_rows} rows are {place}");
        let Labels { mut targets, groups, .. } = labels;
        targets.iter_mut().for_each(TargetColumn::share);
        let groups = problem.groups.as_ref().map(|_| Groups::new(&[Values::Held(groups)], name, Keep::Memory));
        let groups = groups.transpose()?;
        let (classes, n_classes) = if by_class { targets::classes(&targets[0]) } else { (Vec::new(), 1) };
        let missing_models = match params.missing {
            Missing::Expected => expected(&table, &with_missing, &shapes, (&classes, n_classes), &weights, monitor)?,
            Missing::Informative => {
                let models = (0..width).map(|i| with_missing.binary_search(&i).ok().map(|_| MissingModel::Informative));
                models.collect()
            }
        };
        for &feature in with_missing.iter().filter(|&&feature| missing_models[feature].is_none()) {
            shapes[feature] = Shape::Unknown;
        }
        let weights_of_features = params.distance_weights(&problem.features)?;
        let weights_of_features = weights_of_features.and_then(|weights| DistanceWeights::new(&weights));
        let space = Space::new(shapes, missing_models, classes, n_classes);
        let space = space.with_groups(groups).with_distance_weights(weights_of_features);
        let space = match &table {
            Table::Held(rows) if params.neighborhood == NeighborhoodRule::Nearest => space.with_expected(rows.values()),
            _ => space,
        };
        Ok(Prepared {
            limits,
            problem,
            monitor,
            n_rows: n_rows as usize,
            is_semi_supervised,
            table,
            layout: layout_of(&space).for_rows(n_rows as usize),
            space,
            targets,
            target_profiles: profile.targets.clone(),
            weights: Arc::new(weights),
        })
    }

    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) if all rows are of the same group, and so have no neighbors.
    pub(super) fn check_groups(&self) -> Result<()> {
        let Some(column) = &self.problem.groups else { return Ok(()) };
        check(
            self.space.groups().is_none_or(|groups| groups.len() >= 2),
            format!(
                "groups: all rows have the same value in column '{}', so that no row has a neighbor of another group; \
                 use a column with 2 or more values, or leave groups out",
                column.name
            ),
        )
    }
}

/// The weights of rows as they count in sums; empty where all are 1. Sums of other parts or blocks of rows are added to
/// these, so that equal weights are no weights only if they are 1.
fn weights(weights: Vec<f64>, name: &str) -> Result<Vec<f64>> {
    if !weights.iter().sum::<f64>().is_finite() {
        return Err(Error::Data(format!("{name}: the row weights have no finite sum; divide them by the largest")));
    }
    Ok(without_ones(weights))
}

/// The scale of a feature with this profile.
fn scaled(profile: &ColumnProfile, params: &ReliefParams) -> Scale {
    let varies = params.missing == Missing::Informative && profile.missing() > 0;
    match (Scale::from_profile(profile), profile) {
        (Scale::Numeric { low, high }, _) if params.scaling == Scaling::Rank => Scale::Ranked { low, high },
        // A single known value becomes 0.
        (Scale::Constant, ColumnProfile::Numeric(numeric)) if varies && numeric.min == numeric.max => {
            Scale::Numeric { low: numeric.min, high: numeric.max.next_up() }
        }
        (Scale::Constant, ColumnProfile::Nominal(nominal)) if varies && !nominal.counts.is_empty() => {
            Scale::Nominal(Categories::new(nominal.counts.keys().cloned()))
        }
        (scale, _) => scale,
    }
}

/// The positions of the features of this `profile` whose values are ranked.
pub(crate) fn ranked_features(profile: &Profile, params: &ReliefParams) -> Vec<usize> {
    let features = profile.features.iter().enumerate();
    features.filter(|(_, profile)| matches!(scaled(profile, params), Scale::Ranked { .. })).map(|(i, _)| i).collect()
}

/// The targets, the groups and the weights of the rows read so far.
pub(crate) struct Labels {
    pub(crate) targets: Vec<TargetColumn>,
    /// n_rows; hashes, empty without groups.
    pub(crate) groups: Vec<u64>,
    /// n_rows; empty without weights.
    pub(crate) weights: Vec<f64>,
}

impl Labels {
    pub(crate) fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
        if let Some(groups) = &intake.problem.groups {
            self.groups.extend(intake.groups(batch, groups)?);
        }
        if let Some(column) = intake.problem.weight {
            self.weights.extend(intake.weights(batch, column)?);
        }
        add_values(&mut self.targets, intake, batch)
    }
}

/// Reads the rows without their usual values; calls `each` with every batch.
fn read_sparse(
    reader: &Reader<'_>,
    usual: Usual,
    mut each: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<SparseRows> {
    let mut rows = SparseRows::new(usual);
    reader.pass(Phase::Coding, |batch, tile| {
        rows.append(tile);
        each(batch)
    })?;
    Ok(rows)
}

/// Models of the expected differences of missing values of the features `with_missing`; `None` for other features.
fn expected(
    table: &Table<'_>,
    with_missing: &[usize],
    shapes: &[Shape],
    classes: (&[u16], usize),
    weights: &[f64],
    monitor: &Monitor,
) -> Result<Vec<Option<MissingModel>>> {
    let mut missing_models: Vec<Option<MissingModel>> = shapes.iter().map(|_| None).collect();
    let n_rows = match table {
        Table::Held(rows) => rows.numbers.len(),
        Table::Sparse(rows) => rows.len(),
        Table::Spilled(rows) => rows.len(),
        Table::Streamed(reader) => reader.n_rows as usize,
    };
    for features in with_missing.chunks((MODEL_VALUES / n_rows).max(1)) {
        let columns = table.columns(features)?;
        let found: Vec<Option<MissingModel>> = (columns.par_iter().zip(features))
            .map(|(column, &feature)| {
                monitor.check()?;
                Ok(MissingModel::weighted(column, shapes[feature] == Shape::Nominal, classes, weights))
            })
            .collect::<Result<_>>()?;
        features.iter().zip(found).for_each(|(&feature, model)| missing_models[feature] = model);
    }
    Ok(missing_models)
}

/// The rows numbered `numbers`, of `width` features, in ascending order.
pub(crate) fn gather(table: &Table<'_>, numbers: &[u32], width: usize) -> Result<Rows> {
    let mut wanted = numbers.to_vec();
    wanted.sort_unstable();
    let mut gathered = Rows::with_capacity(wanted.len(), width);
    table.pass(Phase::Coding, |rows| {
        gathered.add_some(rows, &wanted);
        Ok(())
    })?;
    Ok(gathered)
}
