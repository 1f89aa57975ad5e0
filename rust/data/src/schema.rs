//! Roles: which columns are features, which are targets, and what task that makes.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::column::{is_text, is_text_list, is_time};
use crate::groups::can_group;
use crate::hierarchy::{Edge, Hierarchy};
use crate::row_labels::row_labels;
use crate::source::{ChunkSource, HIERARCHY, LABEL, ROLE};
use ferrank_runtime::error::{Error, Result, check, nearest};
use ferrank_runtime::with_methods;

/// What is predicted.
///
/// ```
/// use ferrank_data::schema::Task;
///
/// assert_eq!(Task::parse("multi-label")?, Task::MultiLabel);
/// assert_eq!(Task::MultiLabel.name(), "multi-label");
/// # Ok::<(), ferrank_data::Error>(())
/// ```
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
    /// Nothing: rows are clustered by the features alone.
    Unsupervised,
    /// A set of labels out of a hierarchy: one target whose values are label sets.
    Hierarchical,
}

impl Task {
    /// The task's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            Task::Classification => "classification",
            Task::Regression => "regression",
            Task::MultiTarget => "multi-target",
            Task::MultiLabel => "multi-label",
            Task::Unsupervised => "unsupervised",
            Task::Hierarchical => "hierarchical",
        }
    }

    /// The task called `name`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "classification" => Ok(Task::Classification),
            "regression" => Ok(Task::Regression),
            "multi-target" => Ok(Task::MultiTarget),
            "multi-label" => Ok(Task::MultiLabel),
            "hierarchical" => Ok(Task::Hierarchical),
            "unsupervised" => Ok(Task::Unsupervised),
            _ => Err(Error::Setting(format!(
                "task: unknown task '{name}'; use classification, regression, multi-target, multi-label, hierarchical \
                 or unsupervised"
            ))),
        }
    }
}

/// How the values of a column are to be read.
///
/// ```
/// use arrow_schema::{DataType, Field};
/// use ferrank_data::schema::Kind;
///
/// let kind = |data_type| Kind::from_field(&Field::new("x", data_type, true));
/// assert_eq!(kind(DataType::Int16), Some(Kind::Numeric));
/// assert_eq!(kind(DataType::Utf8), Some(Kind::Nominal));
/// assert_eq!(kind(DataType::Date32), Some(Kind::Numeric));
/// assert_eq!(kind(DataType::Binary), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Ordered numbers.
    Numeric,
    /// Unordered categories.
    Nominal,
    /// Sets of labels: lists of strings, or a CLUS `hierarchical` attribute. Only a target can be.
    Labels,
}

impl Kind {
    /// The kind of an Arrow column. `None` where the type cannot be ranked (lists of numbers, binary, …).
    /// Dates, times and durations are numbers. Booleans are the numbers 0 and 1; dictionaries are categories, whatever their values.
    pub fn from_field(field: &Field) -> Option<Self> {
        let data_type = field.data_type();
        if is_text_list(data_type) || (field.metadata().contains_key(HIERARCHY) && is_text(data_type)) {
            return Some(Kind::Labels);
        }
        fn of_type(data_type: &DataType) -> Option<Kind> {
            match data_type {
                t if t.is_numeric() && !matches!(t, DataType::Decimal256(..)) => Some(Kind::Numeric),
                t if is_time(t) => Some(Kind::Numeric),
                DataType::Boolean | DataType::Null => Some(Kind::Numeric),
                t if is_text(t) => Some(Kind::Nominal),
                DataType::Dictionary(_, values) => of_type(values).map(|_| Kind::Nominal),
                _ => None,
            }
        }
        of_type(data_type)
    }
}

/// Which columns are the targets.
///
/// ```
/// # use arrow_schema::{DataType, Field, Schema};
/// # let schema = Schema::new(["x", "z", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
/// use ferrank_data::schema::{Problem, Roles, Targets};
///
/// for targets in [Targets::Last(1), Targets::Named(vec!["y".into()])] {
///     let problem = Problem::resolve(&schema, &Roles::new(targets), "table")?;
///     assert_eq!(problem.targets[0].name, "y");
/// }
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// The columns of these names, in this order.
    Named(Vec<String>),
    /// The last so many columns.
    Last(usize),
    /// The columns marked as labels by their file.
    Labels,
}

/// The roles of columns that a user has set.
///
/// ```
/// # use arrow_schema::{DataType, Field, Schema};
/// # let schema = Schema::new(["x", "z", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
/// use ferrank_data::schema::{Problem, Roles, Targets, names};
///
/// let roles = Roles::new(Targets::Last(1)).with_drop(vec!["z".into()]);
/// let problem = Problem::resolve(&schema, &roles, "table")?;
/// assert_eq!(names(&problem.features), ["x"]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Roles {
    /// The targets.
    pub targets: Targets,
    /// The task; `None`: derived from the kinds of the targets.
    pub task: Option<Task>,
    /// Targets of numbers that stand for classes; see [`crate::integer_targets`].
    pub classes: Vec<String>,
    /// Features that are nominal, whatever their type.
    pub categorical_features: Vec<String>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Column of row weights.
    pub weight: Option<String>,
    /// Column that says which group a row is of; rows of a group stay together.
    pub groups: Option<String>,
    /// The edges of the target's hierarchy; `None`: the edges that its file declares, or paths if it declares none.
    pub hierarchy: Option<Vec<Edge>>,
    /// Weight of a label over the mean weight of its parents, in (0, 1]; used for hierarchical targets only.
    pub hierarchy_decay: f64,
}

impl Roles {
    /// Roles with these targets and defaults for the rest.
    pub fn new(targets: Targets) -> Self {
        let hierarchy_decay = crate::hierarchy::DECAY;
        Roles {
            targets,
            task: None,
            classes: Vec::new(),
            categorical_features: Vec::new(),
            drop: Vec::new(),
            weight: None,
            groups: None,
            hierarchy: None,
            hierarchy_decay,
        }
    }

    with_methods! {
        with_task => task: Option<Task>;
        with_classes => classes: Vec<String>;
        with_categorical_features => categorical_features: Vec<String>;
        with_drop => drop: Vec<String>;
        with_weight => weight: Option<String>;
        with_groups => groups: Option<String>;
        with_hierarchy => hierarchy: Option<Vec<Edge>>;
        with_hierarchy_decay => hierarchy_decay: f64;
    }
}

/// What is known of a target's hierarchy before its rows are read.
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use ferrank_data::schema::{LabelPlan, Problem, Roles, Targets, Task};
///
/// let sets = DataType::new_list(DataType::Utf8, true);
/// let schema = Schema::new(vec![Field::new("x", DataType::Float64, true), Field::new("y", sets, true)]);
/// let problem = Problem::resolve(&schema, &Roles::new(Targets::Last(1)), "table")?;
/// assert_eq!(problem.task, Task::Hierarchical);
/// // Labels are paths, such as `animal/koala`.
/// assert_eq!(problem.labels, Some(LabelPlan { hierarchy: None, decay: 0.75 }));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LabelPlan {
    /// `None`: the labels that rows have are paths.
    pub hierarchy: Option<Arc<Hierarchy>>,
    /// As in [`Roles`].
    pub decay: f64,
}

impl LabelPlan {
    /// The edges of the hierarchy; none if the labels that rows have are paths.
    pub fn edges(&self) -> Vec<Edge> {
        self.hierarchy.iter().flat_map(|hierarchy| hierarchy.edges()).collect()
    }
}

/// One column in its role.
///
/// ```
/// # use arrow_schema::{DataType, Field, Schema};
/// # let schema = Schema::new(["x", "z", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
/// use ferrank_data::schema::{Attribute, Kind, Problem, Roles, Targets};
///
/// let problem = Problem::resolve(&schema, &Roles::new(Targets::Last(1)), "table")?;
/// assert_eq!(problem.targets, [Attribute { name: "y".into(), column: 2, kind: Kind::Numeric }]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The column's name.
    pub name: String,
    /// Its position in the source's schema.
    pub column: usize,
    /// How its values are read.
    pub kind: Kind,
}

impl Attribute {
    /// The column of the same name in the source called `source`.
    fn elsewhere(&self, schema: &Schema, source: &str) -> Result<Self> {
        let name = &self.name;
        let found: Vec<usize> = (0..schema.fields().len()).filter(|&at| schema.field(at).name() == name).collect();
        let [column] = found[..] else {
            let near = nearest(name, schema.fields().iter().map(|field| field.name().as_str()));
            return Err(Error::Data(match found.len() {
                0 => format!(
                    "{source}: no column '{name}', which the training data have; the nearest are {}",
                    near.join(", ")
                ),
                _ => format!("{source}: two columns are called '{name}'; rename one"),
            }));
        };
        match (self.kind, Kind::from_field(schema.field(column))) {
            (_, None) | (Kind::Numeric, Some(Kind::Nominal)) => Err(Error::Type(format!(
                "{source}: column '{name}' is of type {}, in the training data it is {}; use one type in both",
                schema.field(column).data_type(),
                if self.kind == Kind::Numeric { "numeric" } else { "nominal" }
            ))),
            _ => Ok(Attribute { column, ..self.clone() }),
        }
    }
}

/// A ranking problem: roles resolved against a schema.
///
/// ```
/// # use arrow_schema::{DataType, Field, Schema};
/// # let schema = Schema::new(["x", "z", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
/// use ferrank_data::schema::{Problem, Roles, Targets, Task, names};
///
/// let problem = Problem::resolve(&schema, &Roles::new(Targets::Last(2)), "table")?;
/// assert_eq!((problem.task, names(&problem.targets)), (Task::MultiTarget, vec!["z".to_string(), "y".to_string()]));
/// assert_eq!(names(&problem.alone(1).targets), ["y"]);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
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
    /// The column of groups, whose values are read as categories.
    pub groups: Option<Attribute>,
    /// What the hierarchy of the target is; `None` for all tasks but the hierarchical one.
    pub labels: Option<LabelPlan>,
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

    /// The targets of the [resolved](Self::resolve) problem, without a look at the features, which may be many.
    pub(crate) fn resolve_targets(schema: &Schema, roles: &Roles, source: &str) -> Result<Vec<Attribute>> {
        Ok(Resolver::new(schema, source)?.resolve_targets(roles)?.targets)
    }

    /// The names of the features, then of the targets.
    pub fn names(&self) -> Vec<String> {
        self.features.iter().chain(&self.targets).map(|attribute| attribute.name.clone()).collect()
    }

    /// The same problem on another source, by the names of its columns; without weights and groups.
    ///
    /// # Errors
    /// A column is missing there, there twice, or of another kind.
    pub fn elsewhere(&self, source: &dyn ChunkSource) -> Result<Self> {
        let schema = source.schema();
        let find = |attribute: &Attribute| attribute.elsewhere(&schema, source.name());
        let all = |attributes: &[Attribute]| attributes.iter().map(find).collect::<Result<Vec<_>>>();
        Ok(Problem {
            features: all(&self.features)?,
            targets: all(&self.targets)?,
            weight: None,
            groups: None,
            ..self.clone()
        })
    }

    /// The problem with each column at another `place`, without those that have none.
    pub(crate) fn with_columns_at(&self, place: impl Fn(usize) -> Option<usize>) -> Problem {
        let moved = |attribute: &Attribute| Some(Attribute { column: place(attribute.column)?, ..attribute.clone() });
        Problem {
            task: self.task,
            features: self.features.iter().filter_map(moved).collect(),
            targets: self.targets.iter().filter_map(moved).collect(),
            weight: self.weight.and_then(&place),
            groups: self.groups.as_ref().and_then(moved),
            labels: self.labels.clone(),
        }
    }

    /// The problem of target number `target` alone; the others are neither targets nor features.
    pub fn alone(&self, target: usize) -> Self {
        Problem { targets: self.targets.get(target).cloned().into_iter().collect(), ..self.clone() }
    }
}

/// The names of `attributes`.
pub fn names(attributes: &[Attribute]) -> Vec<String> {
    attributes.iter().map(|attribute| attribute.name.clone()).collect()
}

/// Checks the weights of `n_targets` targets.
///
/// # Errors
/// [`Error::Setting`] if they are not as many, negative, not finite, or all 0.
pub fn check_target_weights(weights: Option<&[f64]>, n_targets: usize) -> Result<()> {
    check_weights("target_weights", weights, n_targets, "targets")
}

/// Checks the weights of `n_features` features.
///
/// # Errors
/// As [`check_target_weights`].
pub fn check_feature_weights(weights: Option<&[f64]>, n_features: usize) -> Result<()> {
    check_weights("feature_weights", weights, n_features, "features")
}

fn check_weights(setting: &str, weights: Option<&[f64]>, n: usize, what: &str) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    check(weights.len() == n, format!("{setting}: {} weights for {n} {what}", weights.len()))?;
    check(
        weights.iter().all(|w| w.is_finite() && *w >= 0.0) && weights.iter().any(|w| *w > 0.0),
        format!("{setting}: weights must be finite, not negative, and not all 0"),
    )
}

struct Resolver<'a> {
    schema: &'a Schema,
    source: &'a str,
    position: FxHashMap<&'a str, usize>,
    /// Columns that are neither features nor the last ones.
    row_labels: FxHashSet<usize>,
}

/// The targets of a problem, and the columns that are no features.
struct ResolvedTargets {
    targets: Vec<Attribute>,
    task: Task,
    weight: Option<usize>,
    groups: Option<Attribute>,
    /// The role of each column that has another one than to be a feature.
    taken: FxHashMap<usize, &'static str>,
}

impl<'a> Resolver<'a> {
    fn new(schema: &'a Schema, source: &'a str) -> Result<Self> {
        let mut position = FxHashMap::with_capacity_and_hasher(schema.fields().len(), FxBuildHasher);
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
        Ok(Resolver { schema, source, position, row_labels: row_labels(schema) })
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
        let cannot = |found: String| {
            Error::Type(format!(
                "{}: column '{}' {found}, which cannot be a {role}; use numbers, booleans, strings{}, or drop it",
                self.source,
                field.name(),
                if role == "target" { ", lists of strings" } else { "" }
            ))
        };
        let kind = Kind::from_field(field).ok_or_else(|| cannot(format!("is of type {}", field.data_type())))?;
        if kind == Kind::Labels && role != "target" {
            return Err(cannot("holds label sets".into()));
        }
        Ok(Attribute { name: field.name().clone(), column, kind })
    }

    fn resolve(&self, roles: &Roles) -> Result<Problem> {
        let ResolvedTargets { targets, task, weight, groups, taken } = self.resolve_targets(roles)?;
        let labels = self.labels(roles, task, &targets)?;
        let categorical = self.categorical_features(roles, &taken)?;
        let features = (0..self.schema.fields().len())
            .filter(|column| !taken.contains_key(column))
            .filter(|column| !self.row_labels.contains(column) || categorical.contains(column))
            .map(|column| {
                let feature = self.attribute(column, "feature")?;
                let kind = if categorical.contains(&column) { Kind::Nominal } else { feature.kind };
                Ok(Attribute { kind, ..feature })
            })
            .collect::<Result<Vec<_>>>()?;
        if features.is_empty() {
            return Err(Error::Data(format!("{}: no feature is left to rank", self.source)));
        }
        Ok(Problem { task, features, targets, weight, groups, labels })
    }

    fn resolve_targets(&self, roles: &Roles) -> Result<ResolvedTargets> {
        let mut taken: FxHashMap<usize, &'static str> = FxHashMap::default();
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
        let groups = roles.groups.as_deref().map(|name| self.groups(name, &mut taken)).transpose()?;
        let mut targets = Vec::new();
        for column in self.target_columns(roles)? {
            self.take(&mut taken, column, "a target")?;
            targets.push(self.attribute(column, "target")?);
        }
        let task = self.task(roles, &mut targets)?;
        Ok(ResolvedTargets { targets, task, weight, groups, taken })
    }

    /// The columns of the categorical features that are not dropped; `taken` are those with another role.
    fn categorical_features(&self, roles: &Roles, taken: &FxHashMap<usize, &str>) -> Result<FxHashSet<usize>> {
        let mut columns = FxHashSet::default();
        for name in &roles.categorical_features {
            let column = self.find(name, "categorical features")?;
            match taken.get(&column) {
                None => _ = columns.insert(column),
                Some(&"dropped") => {}
                Some(role) => {
                    return Err(Error::Data(format!(
                        "categorical_features: column '{name}' of {} is {role}; name features alone{}",
                        self.source,
                        if *role == "a target" { ", and say task=\"classification\" for a nominal target" } else { "" }
                    )));
                }
            }
        }
        Ok(columns)
    }

    /// The column of groups, called `name`.
    fn groups(&self, name: &str, taken: &mut FxHashMap<usize, &'static str>) -> Result<Attribute> {
        let column = self.find(name, "groups")?;
        self.take(taken, column, "the groups")?;
        let data_type = self.schema.field(column).data_type();
        match can_group(data_type) {
            true => Ok(Attribute { name: name.to_string(), column, kind: Kind::Nominal }),
            false => Err(Error::Type(format!(
                "{}: column '{name}' is of type {data_type}, which cannot be the groups; use strings or numbers",
                self.source
            ))),
        }
    }

    fn labels(&self, roles: &Roles, task: Task, targets: &[Attribute]) -> Result<Option<LabelPlan>> {
        if task != Task::Hierarchical {
            return match roles.hierarchy {
                Some(_) => Err(Error::Setting(format!(
                    "hierarchy: is of labels, and the task is {}; leave one of the two out",
                    task.name()
                ))),
                None => Ok(None),
            };
        }
        let field = self.schema.field(targets[0].column);
        let decay = roles.hierarchy_decay;
        let hierarchy = match (&roles.hierarchy, field.metadata().get(HIERARCHY)) {
            (Some(edges), _) if edges.is_empty() => Err(Error::Setting("hierarchy: it has no labels".into())),
            (Some(edges), _) => Hierarchy::from_edges(edges, decay).map(Some),
            (None, Some(domain)) if !domain.trim().is_empty() => Hierarchy::from_domain(domain, decay).map(Some),
            // The decay is looked at all the same.
            (None, _) => Hierarchy::from_edges(&[], decay).map(|_| None),
        };
        let named = |error| match error {
            Error::Data(what) => Error::Data(format!("{}: column '{}': {what}", self.source, field.name())),
            other => other,
        };
        Ok(Some(LabelPlan { hierarchy: hierarchy.map_err(named)?.map(Arc::new), decay }))
    }

    fn take(&self, taken: &mut FxHashMap<usize, &'static str>, column: usize, role: &'static str) -> Result<()> {
        match taken.insert(column, role) {
            None => Ok(()),
            Some(before) => {
                let twice = if before == role { "twice".into() } else { format!("and as {role}") };
                Err(Error::Data(format!(
                    "{}: column '{}' is given as {before} {twice}; name it once",
                    self.source,
                    self.schema.field(column).name()
                )))
            }
        }
    }

    fn target_columns(&self, roles: &Roles) -> Result<Vec<usize>> {
        let targets = &roles.targets;
        let all = 0..self.schema.fields().len();
        let columns: Vec<usize> = match targets {
            Targets::Named(names) => names.iter().map(|n| self.find(n, "target")).collect::<Result<_>>()?,
            Targets::Last(count) => {
                let mut columns: Vec<usize> = all.filter(|column| !self.row_labels.contains(column)).collect();
                let n_columns = columns.len();
                match n_columns.checked_sub(*count).filter(|&n_features| n_features > 0) {
                    Some(n_features) => columns.split_off(n_features),
                    None => {
                        return Err(Error::Setting(format!(
                            "target_last: {count} of {n_columns} columns of {} leaves no feature",
                            self.source
                        )));
                    }
                }
            }
            Targets::Labels => {
                all.filter(|&c| self.schema.field(c).metadata().get(ROLE).is_some_and(|r| r == LABEL)).collect()
            }
        };
        if roles.task == Some(Task::Unsupervised) {
            let left = columns.iter().find(|column| !roles.drop.contains(self.schema.field(**column).name()));
            return match left {
                None => Ok(Vec::new()),
                Some(&column) => Err(Error::Setting(format!(
                    "task: unsupervised has no target, '{}' of {} is one; drop it, or leave the task out",
                    self.schema.field(column).name(),
                    self.source
                ))),
            };
        }
        if columns.is_empty() {
            return Err(Error::Setting(format!(
                "target: no target was given for {}; name it, or ask for the task unsupervised",
                self.source
            )));
        }
        Ok(columns)
    }

    /// The task requested, or the one that the targets' kinds make; adapts the kinds to it.
    fn task(&self, roles: &Roles, targets: &mut [Attribute]) -> Result<Task> {
        if roles.task == Some(Task::Unsupervised) {
            return Ok(Task::Unsupervised);
        }
        let derived = match (targets.len(), targets[0].kind) {
            _ if roles.targets == Targets::Labels => Task::MultiLabel,
            (1, Kind::Labels) => Task::Hierarchical,
            (1, Kind::Nominal) if roles.hierarchy.is_some() => Task::Hierarchical,
            (1, Kind::Nominal) => Task::Classification,
            (1, Kind::Numeric) if self.is_class(roles, targets[0].column) => Task::Classification,
            (1, Kind::Numeric) => Task::Regression,
            _ if targets.iter().all(|t| self.is_boolean(t.column)) => Task::MultiLabel,
            _ => Task::MultiTarget,
        };
        let task = roles.task.unwrap_or(derived);
        let one = targets.len() == 1;
        let wrong = |why: String| Err(Error::Setting(format!("task: {} {why}", task.name())));
        match task {
            Task::Classification | Task::Regression if !one => {
                return wrong(format!(
                    "takes one target, {} were given; use multi-target or multi-label",
                    targets.len()
                ));
            }
            Task::Hierarchical if !one => {
                return wrong(format!("takes one target, whose values are label sets; {} were given", targets.len()));
            }
            Task::Hierarchical if targets[0].kind == Kind::Numeric && !self.is_null(targets[0].column) => {
                return wrong(format!(
                    "needs a target of label sets: lists of strings, or text with @ between labels; '{}' is numeric",
                    targets[0].name
                ));
            }
            _ if task != Task::Hierarchical && targets.iter().any(|target| target.kind == Kind::Labels) => {
                return wrong("cannot have a target of label sets; give it alone, for the task hierarchical".into());
            }
            Task::Regression if targets[0].kind == Kind::Nominal => {
                return wrong(format!("needs a numeric target, '{}' is nominal", targets[0].name));
            }
            _ => {}
        }
        for target in targets {
            match task {
                Task::Classification | Task::MultiLabel => target.kind = Kind::Nominal,
                Task::MultiTarget if self.is_class(roles, target.column) => target.kind = Kind::Nominal,
                Task::Hierarchical => target.kind = Kind::Labels,
                _ => {}
            }
        }
        Ok(task)
    }

    /// True if the numbers or booleans of a target stand for classes.
    fn is_class(&self, roles: &Roles, column: usize) -> bool {
        self.is_boolean(column) || roles.classes.contains(self.schema.field(column).name())
    }

    fn is_null(&self, column: usize) -> bool {
        *self.schema.field(column).data_type() == DataType::Null
    }

    fn is_boolean(&self, column: usize) -> bool {
        *self.schema.field(column).data_type() == DataType::Boolean
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_hierarchy_in_the_metadata_makes_labels_of_text_alone() {
        for (data_type, plain, with_hierarchy) in [
            (DataType::Utf8, Kind::Nominal, Kind::Labels),
            (DataType::Int32, Kind::Numeric, Kind::Numeric),
            (DataType::Boolean, Kind::Numeric, Kind::Numeric),
        ] {
            let field = Field::new("y", data_type, true);
            assert_eq!(Kind::from_field(&field), Some(plain));
            let field = field.with_metadata(HashMap::from([(HIERARCHY.to_string(), "a/b".to_string())]));
            assert_eq!(Kind::from_field(&field), Some(with_hierarchy));
        }
    }

    #[test]
    fn a_target_of_label_sets_stands_alone() {
        let labels = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        let field = |name: &str, data_type: &DataType| Field::new(name, data_type.clone(), true);
        let fields = [("x", &DataType::Float64), ("y", &DataType::Float64), ("sets", &labels)];
        let schema = Schema::new(fields.map(|(name, data_type)| field(name, data_type)).to_vec());
        let resolve =
            |n_targets, task| Problem::resolve(&schema, &Roles::new(Targets::Last(n_targets)).with_task(task), "table");
        assert_eq!(resolve(1, None).unwrap().task, Task::Hierarchical);
        for (n_targets, task) in [(2, Task::MultiTarget), (1, Task::MultiTarget), (1, Task::Classification)] {
            let message = resolve(n_targets, Some(task)).unwrap_err().to_string();
            assert!(message.contains("cannot have a target of label sets"), "{message}");
        }
    }

    #[test]
    fn numbers_are_categories_where_they_are_named() {
        let schema = Schema::new(["x", "z", "w", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
        let roles = Roles::new(Targets::Last(1)).with_drop(vec!["w".into()]);
        let resolve = |names: &[&str]| {
            let categorical = names.iter().map(|name| name.to_string()).collect();
            Problem::resolve(&schema, &roles.clone().with_categorical_features(categorical), "table")
        };
        let kinds: Vec<Kind> = resolve(&["z", "w"]).unwrap().features.iter().map(|feature| feature.kind).collect();
        assert_eq!(kinds, [Kind::Numeric, Kind::Nominal]);
        let message = resolve(&["y"]).unwrap_err().to_string();
        assert!(message.contains("column 'y' of table is a target; name features alone"), "{message}");
    }
}
