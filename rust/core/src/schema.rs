//! Roles: which columns are features, which are targets, and what task that makes.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, check};
use crate::source::{HIERARCHY, LABEL, ROLE};

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// One nominal target.
    Classification,
    /// One numeric target.
    Regression,
    /// Several targets, whose kinds may be mixed.
    MultiTarget,
    /// A set of labels: several targets with two values, of which the second means "has it".
    MultiLabel,
}

impl Task {
    /// The task's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            Task::Classification => "classification",
            Task::Regression => "regression",
            Task::MultiTarget => "multi-target",
            Task::MultiLabel => "multi-label",
        }
    }

    /// The task called `name`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "classification" => Ok(Task::Classification),
            "regression" => Ok(Task::Regression),
            "multi-target" => Ok(Task::MultiTarget),
            "multi-label" => Ok(Task::MultiLabel),
            _ => Err(Error::Setting(format!(
                "task: unknown task '{name}'; use classification, regression, multi-target or multi-label"
            ))),
        }
    }
}

/// How the values of a column are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Ordered numbers.
    Numeric,
    /// Unordered categories.
    Nominal,
}

impl Kind {
    /// The kind of an Arrow column. `None` where the type cannot be ranked (dates, lists, binary,
    /// hierarchies, …). Booleans are the numbers 0 and 1.
    pub fn of(field: &Field) -> Option<Self> {
        if field.metadata().contains_key(HIERARCHY) {
            return None;
        }
        fn of_type(data_type: &DataType) -> Option<Kind> {
            match data_type {
                t if t.is_numeric() && !matches!(t, DataType::Decimal256(..)) => Some(Kind::Numeric),
                DataType::Boolean | DataType::Null => Some(Kind::Numeric),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Kind::Nominal),
                DataType::Dictionary(_, values) => of_type(values),
                _ => None,
            }
        }
        of_type(field.data_type())
    }
}

/// Which columns are the targets.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// The columns of these names, in this order.
    Named(Vec<String>),
    /// The last so many columns.
    Last(usize),
    /// The columns marked as labels by their file.
    Labels,
}

/// What the user said about the columns.
#[derive(Debug, Clone)]
pub struct Roles {
    /// The targets.
    pub targets: Targets,
    /// The task; `None`: told by the kinds of the targets.
    pub task: Option<Task>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Column of row weights.
    pub weight: Option<String>,
}

/// One column in its role.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The column's name.
    pub name: String,
    /// Its position in the source's schema.
    pub column: usize,
    /// How its values are read.
    pub kind: Kind,
}

/// A ranking problem: roles resolved against a schema.
#[derive(Debug, Clone)]
pub struct Problem {
    /// What is predicted.
    pub task: Task,
    /// The features, in schema order.
    pub features: Vec<Attribute>,
    /// The targets, in the order given.
    pub targets: Vec<Attribute>,
    /// Position of the column of row weights.
    pub weight: Option<usize>,
}

impl Problem {
    /// Resolves `roles` against the schema of the source called `source`.
    ///
    /// # Errors
    /// A name that is not there or there twice, a column in two roles, a type that cannot be ranked,
    /// a task that the targets' kinds do not allow, no target or no feature left.
    pub fn resolve(schema: &Schema, roles: &Roles, source: &str) -> Result<Self> {
        Resolver::new(schema, source)?.resolve(roles)
    }

    /// The problem of target number `target` alone; the others are neither targets nor features.
    pub(crate) fn alone(&self, target: usize) -> Self {
        Problem { targets: self.targets.get(target).cloned().into_iter().collect(), ..self.clone() }
    }
}

/// The names of `attributes`.
pub(crate) fn names(attributes: &[Attribute]) -> Vec<String> {
    attributes.iter().map(|attribute| attribute.name.clone()).collect()
}

/// Checks the weights of `n_targets` targets.
pub(crate) fn check_target_weights(weights: Option<&[f64]>, n_targets: usize) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    check(weights.len() == n_targets, format!("target_weights: {} weights for {n_targets} targets", weights.len()))?;
    check(
        weights.iter().all(|w| w.is_finite() && *w >= 0.0) && weights.iter().any(|w| *w > 0.0),
        "target_weights: weights must be finite, not negative, and not all 0",
    )
}

/// Up to three of `names`, each in quotes, nearest to `wanted` first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> =
        names.map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name)).collect();
    near.sort_unstable();
    near.truncate(3);
    near.into_iter().map(|(_, name)| format!("'{name}'")).collect()
}

struct Resolver<'a> {
    schema: &'a Schema,
    source: &'a str,
    position: HashMap<&'a str, usize>,
}

impl<'a> Resolver<'a> {
    fn new(schema: &'a Schema, source: &'a str) -> Result<Self> {
        let mut position = HashMap::with_capacity(schema.fields().len());
        for (column, field) in schema.fields().iter().enumerate() {
            if let Some(first) = position.insert(field.name().as_str(), column) {
                return Err(Error::Data(format!(
                    "{source}: two columns are called '{}' (numbers {} and {}); rename one",
                    field.name(),
                    first + 1,
                    column + 1
                )));
            }
        }
        Ok(Resolver { schema, source, position })
    }

    fn find(&self, name: &str, role: &str) -> Result<usize> {
        self.position.get(name).copied().ok_or_else(|| {
            Error::Data(format!("{}: no column '{name}' for the {role}; {}", self.source, self.nearby(name)))
        })
    }

    /// The names closest to `name`, for the end of a message.
    fn nearby(&self, name: &str) -> String {
        let names = nearest(name, self.schema.fields().iter().map(|field| field.name().as_str()));
        match names.len() {
            0 => "it has no columns".into(),
            _ => format!("the nearest of its {} columns are {}", self.schema.fields().len(), names.join(", ")),
        }
    }

    fn attribute(&self, column: usize, role: &str) -> Result<Attribute> {
        let field = self.schema.field(column);
        let kind = Kind::of(field).ok_or_else(|| {
            let found = if field.metadata().contains_key(HIERARCHY) {
                "a hierarchical attribute".to_string()
            } else {
                format!("of type {}", field.data_type())
            };
            Error::Type(format!(
                "{}: column '{}' is {found}, which cannot be a {role}; use numbers, booleans or strings, or drop it",
                self.source,
                field.name()
            ))
        })?;
        Ok(Attribute { name: field.name().clone(), column, kind })
    }

    fn resolve(&self, roles: &Roles) -> Result<Problem> {
        let mut taken: HashMap<usize, &str> = HashMap::new();
        for name in &roles.drop {
            taken.insert(self.find(name, "columns to drop")?, "dropped");
        }
        let weight = roles.weight.as_deref().map(|n| self.find(n, "row weights")).transpose()?;
        if let Some(column) = weight {
            self.take(&mut taken, column, "the row weights")?;
            if self.attribute(column, "weight")?.kind != Kind::Numeric {
                return Err(Error::Type(format!(
                    "{}: the weight column '{}' is not numeric",
                    self.source,
                    self.schema.field(column).name()
                )));
            }
        }
        let mut targets = Vec::new();
        for column in self.target_columns(&roles.targets)? {
            self.take(&mut taken, column, "a target")?;
            targets.push(self.attribute(column, "target")?);
        }
        let task = self.task(roles, &mut targets)?;
        let features = (0..self.schema.fields().len())
            .filter(|column| !taken.contains_key(column))
            .map(|column| self.attribute(column, "feature"))
            .collect::<Result<Vec<_>>>()?;
        if features.is_empty() {
            return Err(Error::Data(format!("{}: no feature is left to rank", self.source)));
        }
        Ok(Problem { task, features, targets, weight })
    }

    fn take(&self, taken: &mut HashMap<usize, &'static str>, column: usize, role: &'static str) -> Result<()> {
        match taken.insert(column, role) {
            None => Ok(()),
            Some(before) => Err(Error::Data(format!(
                "{}: column '{}' is given as {before} and as {role}; name it once",
                self.source,
                self.schema.field(column).name()
            ))),
        }
    }

    fn target_columns(&self, targets: &Targets) -> Result<Vec<usize>> {
        let total = self.schema.fields().len();
        let columns: Vec<usize> = match targets {
            Targets::Named(names) => names.iter().map(|n| self.find(n, "target")).collect::<Result<_>>()?,
            Targets::Last(count) if *count >= total => {
                return Err(Error::Setting(format!(
                    "target-last: {count} of {total} columns of {} leaves no feature",
                    self.source
                )));
            }
            Targets::Last(count) => (total - count..total).collect(),
            Targets::Labels => {
                (0..total).filter(|&c| self.schema.field(c).metadata().get(ROLE).is_some_and(|r| r == LABEL)).collect()
            }
        };
        if columns.is_empty() {
            return Err(Error::Setting(format!("target: no target was given for {}", self.source)));
        }
        Ok(columns)
    }

    /// The task asked for, or the one that the targets' kinds make; adapts the kinds to it.
    fn task(&self, roles: &Roles, targets: &mut [Attribute]) -> Result<Task> {
        let told = match (targets.len(), targets[0].kind) {
            _ if roles.targets == Targets::Labels => Task::MultiLabel,
            (1, Kind::Nominal) => Task::Classification,
            (1, Kind::Numeric) if self.is_boolean(targets[0].column) => Task::Classification,
            (1, Kind::Numeric) => Task::Regression,
            _ if targets.iter().all(|t| self.is_boolean(t.column)) => Task::MultiLabel,
            _ => Task::MultiTarget,
        };
        let task = roles.task.unwrap_or(told);
        let one = targets.len() == 1;
        let wrong = |why: String| Err(Error::Setting(format!("task: {} {why}", task.name())));
        match task {
            Task::Classification | Task::Regression if !one => {
                return wrong(format!(
                    "takes one target, {} were given; use multi-target or multi-label",
                    targets.len()
                ));
            }
            Task::Regression if targets[0].kind == Kind::Nominal => {
                return wrong(format!("needs a numeric target, '{}' is nominal", targets[0].name));
            }
            _ => {}
        }
        for target in targets {
            match task {
                Task::Classification | Task::MultiLabel => target.kind = Kind::Nominal,
                Task::MultiTarget if self.is_boolean(target.column) => target.kind = Kind::Nominal,
                _ => {}
            }
        }
        Ok(task)
    }

    fn is_boolean(&self, column: usize) -> bool {
        *self.schema.field(column).data_type() == DataType::Boolean
    }
}
