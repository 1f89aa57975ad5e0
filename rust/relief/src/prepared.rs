//! Reads a source as far as a search needs it: scales, targets, models of missing values, and the rows if they fit in
//! memory.

use rayon::prelude::*;

use super::limits::Limits;
use super::targets;
use arrow_array::RecordBatch;
use ferrank_data::groups::Groups;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::ColumnProfile;
use ferrank_data::schema::{Attribute, Problem, Task};
use ferrank_data::store::{TargetColumn, add_values, empty_targets};
use ferrank_data::values::{Keep, Values};
use ferrank_neighbors::layout::Layout;
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::rows::{Reader, Rows};
use ferrank_neighbors::space::{Scale, Shape, Space};
use ferrank_neighbors::space_panels::layout_of;
use ferrank_neighbors::sparse::{SparseRows, Usual};
use ferrank_neighbors::table::Table;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
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
}

impl<'a> Prepared<'a> {
    pub(super) fn read(limits: Limits, intake: Intake<'a>, scan: &ScanSummary<'_>) -> Result<Self> {
        let (problem, monitor, profile, n_rows) = (intake.problem, intake.monitor, &scan.profile, scan.rows);
        let all_rows = profile.counts.kept as usize;
        let scales: Vec<Scale> = profile.features.iter().map(Scale::from_profile).collect();
        let mut shapes: Vec<Shape> = scales.iter().map(Shape::from_scale).collect();
        let with_missing: Vec<usize> =
            (0..shapes.len()).filter(|&i| shapes[i] != Shape::Constant && profile.features[i].missing() > 0).collect();
        let name = intake.source.name();
        let targets = empty_targets(problem, profile, n_rows as usize, name)?;
        let mut labels = Labels { targets, groups: Vec::new() };
        let is_semi_supervised = intake.unlabelled == Unlabelled::Use && profile.counts.unlabelled > 0;
        let reader = Reader { intake, scales, n_rows, clip: false };
        let by_class = problem.task == Task::Classification && !is_semi_supervised;
        let classes = if by_class { profile.targets[0].n_categories() } else { 1 };
        let usual = Usual::new(&profile.features, &reader.scales, all_rows);
        let table = if usual.is_worthwhile(all_rows, limits.rows) {
            read_sparse(&reader, usual, &mut labels)?
        } else {
            let held = n_rows as usize * (VALUE_BYTES * shapes.len() + 4 * with_missing.len() * classes) <= limits.rows;
            read_table(reader, held, &mut labels)?
        };
        let place = match &table {
            Table::Held(_) => "held in memory",
            Table::Sparse(_) => "held in memory without their zeros",
            Table::Streamed(_) => "read again for each pass",
        };
        info!("memory plan: {n_rows} rows are {place}");
        let Labels { targets, groups } = labels;
        let groups = problem.groups.as_ref().map(|column| numbered_groups(groups, column, name)).transpose()?;
        let (classes, n_classes) = if by_class { targets::classes(&targets[0]) } else { (Vec::new(), 1) };
        let missing_models = missing_models(&table, &with_missing, &shapes, &classes, n_classes, monitor)?;
        for &feature in with_missing.iter().filter(|&&feature| missing_models[feature].is_none()) {
            shapes[feature] = Shape::Unknown;
        }
        let space = Space::new(shapes, missing_models, classes, n_classes).with_groups(groups);
        Ok(Prepared {
            limits,
            problem,
            monitor,
            n_rows: n_rows as usize,
            is_semi_supervised,
            table,
            layout: layout_of(&space),
            space,
            targets,
            target_profiles: profile.targets.clone(),
        })
    }
}

/// The targets and the groups of the rows read so far.
struct Labels {
    targets: Vec<TargetColumn>,
    /// n_rows; hashes, empty without groups.
    groups: Vec<u64>,
}

impl Labels {
    fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
        if let Some(groups) = &intake.problem.groups {
            self.groups.extend(intake.groups(batch, groups)?);
        }
        add_values(&mut self.targets, intake, batch)
    }
}

/// The groups with these `hashes`, of the column of groups in the source called `name`.
///
/// # Errors
/// [`Error::Data`](ferrank_runtime::error::Error::Data) if all rows are of the same group, and so have no neighbors.
fn numbered_groups(hashes: Vec<u64>, column: &Attribute, name: &str) -> Result<Groups> {
    let groups = Groups::new(&[Values::Held(hashes)], name, Keep::Memory)?;
    check(
        groups.len() >= 2,
        format!(
            "groups: all rows have the same value in column '{}', so that no row has a neighbor of another group; use a \
             column with 2 or more values, or leave groups out",
            column.name
        ),
    )?;
    Ok(groups)
}

/// Reads the targets and groups, and the rows if `held`.
fn read_table<'a>(reader: Reader<'a>, held: bool, labels: &mut Labels) -> Result<Table<'a>> {
    if !held {
        reader.intake.pass(Phase::Coding, |batch| labels.add(&reader.intake, batch))?;
        return Ok(Table::Streamed(reader));
    }
    Ok(Table::Held(reader.hold(Phase::Coding, |batch| labels.add(&reader.intake, batch))?))
}

/// Reads the targets and groups, and the rows without their usual values.
fn read_sparse<'a>(reader: &Reader<'_>, usual: Usual, labels: &mut Labels) -> Result<Table<'a>> {
    let mut rows = SparseRows::new(usual);
    reader.pass(Phase::Coding, |batch, tile| {
        rows.append(tile);
        labels.add(&reader.intake, batch)
    })?;
    Ok(Table::Sparse(rows))
}

/// Models of the missing values of the features `with_missing`; `None` for other features.
fn missing_models(
    table: &Table<'_>,
    with_missing: &[usize],
    shapes: &[Shape],
    classes: &[u16],
    n_classes: usize,
    monitor: &Monitor,
) -> Result<Vec<Option<MissingModel>>> {
    let mut missing_models: Vec<Option<MissingModel>> = shapes.iter().map(|_| None).collect();
    let n_rows = match table {
        Table::Held(rows) => rows.numbers.len(),
        Table::Sparse(rows) => rows.len(),
        Table::Streamed(reader) => reader.n_rows as usize,
    };
    for features in with_missing.chunks((MODEL_VALUES / n_rows).max(1)) {
        let columns = table.columns(features)?;
        let found: Vec<Option<MissingModel>> = (columns.par_iter().zip(features))
            .map(|(column, &feature)| {
                monitor.check()?;
                Ok(MissingModel::new(column, shapes[feature] == Shape::Nominal, classes, n_classes))
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
