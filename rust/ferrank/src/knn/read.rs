//! Two sources read on one scale: features as numbers, and targets with the same categories.

use rayon::prelude::*;

use super::metric::{Feature, Shape, Unknown, scale, union};
use super::params::{Conventions, KnnParams};
use super::targets::Target;
use ferrank_data::intake::Intake;
use ferrank_data::profile::{ColumnProfile, Profile};
use ferrank_data::schema::Problem;
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{TargetColumn, add_values};
use ferrank_neighbors::rows::{Reader, Rows};
use ferrank_neighbors::space::Scale;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// Training and test rows.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) features: Vec<Feature>,
    pub(crate) train: Rows,
    pub(crate) test: Rows,
    pub(crate) targets: Vec<Target>,
}

/// A source, and where its columns are.
type Part<'a> = (&'a dyn ChunkSource, &'a Problem);

impl Pair {
    pub(crate) fn read(parts: [Part<'_>; 2], params: &KnnParams, monitor: &Monitor) -> Result<Self> {
        let intakes = parts.map(|(source, problem)| Intake::new(source, problem, params.unlabelled, monitor));
        let [train, test] = intakes.each_ref().map(|intake| Profile::new(intake, 0));
        let profiles = [train?, test?];
        let mut n_rows = [0; 2];
        for (part, n_rows) in n_rows.iter_mut().enumerate() {
            *n_rows = profiles[part].counts.taking_part(parts[part].0.name(), params.unlabelled)?;
        }
        let clip = params.conventions == Conventions::Textbook;
        let mut held = Vec::new();
        let mut targets = Vec::new();
        for (part, intake) in intakes.into_iter().enumerate() {
            let columns = profiles[0].features.iter().zip(&profiles[1].features);
            let scales = columns.map(|(train, test)| scale(train, test, params.conventions)).collect();
            let reader = Reader { intake, scales, n_rows: n_rows[part], clip: clip && part == 1 };
            let mut columns: Vec<TargetColumn> = (profiles[0].targets.iter().zip(&profiles[1].targets))
                .map(|(train, test)| empty_target(train, test, n_rows[part] as usize))
                .collect::<Result<_>>()?;
            let rows = reader.hold(Phase::Coding, |intake, batch| add_values(&mut columns, intake, batch))?;
            held.push((rows, reader.scales));
            targets.push(columns);
        }
        let [(train, scales), (test, _)] = <[_; 2]>::try_from(held).expect("two parts");
        let [train_targets, test_targets] = <[_; 2]>::try_from(targets).expect("two parts");
        let features = features(&scales, &train, &profiles, params.conventions);
        let problem = parts[0].1;
        let mut targets = Vec::new();
        for ((target, train), test) in problem.targets.iter().zip(train_targets).zip(test_targets) {
            targets.extend(Target::new(problem.task, &target.name, train, test)?);
        }
        Ok(Pair { features, train, test, targets })
    }
}

/// A target without rows, with the categories or labels of both sources.
fn empty_target(train: &ColumnProfile, test: &ColumnProfile, n_rows: usize) -> Result<TargetColumn> {
    match (train, test) {
        (ColumnProfile::Nominal(train), ColumnProfile::Nominal(test)) => {
            TargetColumn::empty(&ColumnProfile::Nominal(union(train, test)), n_rows)
        }
        (ColumnProfile::Labels(train), ColumnProfile::Labels(test)) => {
            TargetColumn::empty(&ColumnProfile::Labels(train.union(test)), n_rows)
        }
        _ => TargetColumn::empty(train, n_rows),
    }
}

fn features(scales: &[Scale], train: &Rows, profiles: &[Profile; 2], conventions: Conventions) -> Vec<Feature> {
    let missing_models = |number: usize| profiles.iter().any(|profile| profile.features[number].missing() > 0);
    let feature = |(number, scale): (usize, &Scale)| {
        let (shape, n_categories) = match scale {
            Scale::Constant => (Shape::Constant, 0),
            Scale::Nominal(categories) if categories.names.len() > 2 => (Shape::Nominal, categories.names.len()),
            Scale::Numeric { .. } | Scale::Ranked { .. } | Scale::Nominal(_) => (Shape::Numeric, 0),
        };
        let column = train.values().iter().skip(number).step_by(train.width).copied();
        let unknown = (shape != Shape::Constant && missing_models(number))
            .then(|| Unknown::of(column, shape, n_categories, conventions));
        Feature { shape, unknown }
    };
    scales.par_iter().enumerate().map(feature).collect()
}
