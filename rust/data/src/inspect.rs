//! What a source holds: column by column, and the tasks it lends itself to.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use rustc_hash::FxHashSet;

use crate::column::{MISSING, categories, numbers};
use crate::integer_targets::{MOST_CLASSES, may_be_integers};
use crate::labels::LabelSets;
use crate::reservation::Reservation;
use crate::row_labels::row_labels;
use crate::schema::{Kind, Task};
use crate::source::{ChunkSource, LABEL, ROLE};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

/// Most distinct values that are counted in all columns together; also the most bytes of their texts in one column.
const BUDGET: usize = 4 << 20;
/// Bounds of the number of distinct values that are counted in one column: greatest and least.
const DISTINCT: (usize, usize) = (65_536, 256);
/// Categories that are named.
const TOP: usize = 5;

/// What a column is good for.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::inspect::{ColumnKind, inspect};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// assert_eq!(inspect(&table, &Monitor::default())?.columns[0].kind, ColumnKind::Numeric);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Numbers.
    Numeric,
    /// Categories.
    Nominal,
    /// True or false.
    Boolean,
    /// A label of a multi-label set.
    Label,
    /// Sets of labels out of a hierarchy: lists of strings, or a CLUS hierarchical attribute.
    Hierarchical,
    /// The index of a pandas frame: labels of rows, which are no feature.
    Index,
    /// A type that cannot be ranked.
    Unsupported,
}

impl ColumnKind {
    /// The kind's name in results.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Numeric => "numeric",
            ColumnKind::Nominal => "nominal",
            ColumnKind::Boolean => "boolean",
            ColumnKind::Label => "label",
            ColumnKind::Hierarchical => "hierarchical",
            ColumnKind::Index => "index",
            ColumnKind::Unsupported => "unsupported",
        }
    }

    fn from_field(field: &Field) -> Self {
        match Kind::from_field(field) {
            None => ColumnKind::Unsupported,
            Some(Kind::Labels) => ColumnKind::Hierarchical,
            Some(_) if field.metadata().get(ROLE).is_some_and(|role| role == LABEL) => ColumnKind::Label,
            Some(_) if *field.data_type() == DataType::Boolean => ColumnKind::Boolean,
            Some(Kind::Numeric) => ColumnKind::Numeric,
            Some(Kind::Nominal) => ColumnKind::Nominal,
        }
    }

    fn task(self) -> Option<Task> {
        match self {
            ColumnKind::Numeric => Some(Task::Regression),
            ColumnKind::Nominal | ColumnKind::Boolean => Some(Task::Classification),
            ColumnKind::Label => Some(Task::MultiLabel),
            ColumnKind::Hierarchical => Some(Task::Hierarchical),
            ColumnKind::Index | ColumnKind::Unsupported => None,
        }
    }
}

/// What one pass over a column shows.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::inspect::{Column, inspect};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let Column { missing, range, distinct, .. } = inspect(&table, &Monitor::default())?.columns.remove(2);
/// assert_eq!((missing, range, distinct), (0, Some((0.0, 118.0)), Some(60)));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// Its Arrow type, as text.
    pub data_type: String,
    /// What it is good for.
    pub kind: ColumnKind,
    /// Rows without a value.
    pub missing: u64,
    /// Smallest and largest value; numeric columns with a value only.
    pub range: Option<(f64, f64)>,
    /// Number of distinct values that occur. `None` where there are more than 65,536 (fewer in tables
    /// of more than 64 columns), and for kinds that are not counted.
    pub distinct: Option<u64>,
    /// The most frequent categories, or labels as the sets list them, with their rows, most frequent
    /// first, ties in alphabetical order.
    /// Where `distinct` is `None`, of the categories that come first. Empty for numeric columns.
    pub top: Vec<(String, u64)>,
    /// The task it makes as the only target, or with the other labels; `None` where it cannot be one.
    pub task: Option<Task>,
}

/// What one pass over a source shows.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::inspect::{Inspection, inspect};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let Inspection { rows, columns, .. } = inspect(&table, &Monitor::default())?;
/// assert_eq!((rows, columns.len()), (60, 3));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Inspection {
    /// Number of rows.
    pub rows: u64,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The columns that the file marks as labels, in order.
    pub labels: Vec<String>,
}

/// Reads `source` once and describes its columns, in memory bounded by their number.
///
/// # Errors
/// There are no columns; the errors of reading the source, or a request to stop.
pub fn inspect(source: &dyn ChunkSource, monitor: &Monitor) -> Result<Inspection> {
    let schema = source.schema();
    if schema.fields().is_empty() {
        return Err(Error::Data(format!("{}: there are no columns", source.name())));
    }
    let most = (BUDGET / schema.fields().len().max(1)).clamp(DISTINCT.1, DISTINCT.0);
    let mut counts: Vec<Counts> = schema.fields().iter().map(|field| Counts::new(field, most)).collect();
    let mut rows = 0;
    for chunk in source.chunks()? {
        let chunk = chunk?;
        for ((column, field), counts) in chunk.columns().iter().zip(schema.fields()).zip(&mut counts) {
            monitor.check()?;
            counts.add(column).map_err(|error| match error {
                Error::Data(what) => Error::Data(format!("{}: column '{}': {what}", source.name(), field.name())),
                other => other,
            })?;
        }
        rows += chunk.num_rows() as u64;
    }
    let mut columns: Vec<Column> =
        schema.fields().iter().zip(counts).map(|(field, counts)| counts.column(field)).collect();
    for place in row_labels(&schema) {
        (columns[place].kind, columns[place].task) = (ColumnKind::Index, None);
    }
    let labels = columns.iter().filter(|column| column.kind == ColumnKind::Label);
    Ok(Inspection { rows, labels: labels.map(|column| column.name.clone()).collect(), columns })
}

/// What is counted of a column.
struct Counts {
    kind: ColumnKind,
    missing: u64,
    values: Values,
    /// Most distinct values that are counted.
    most: usize,
    /// True if there are more.
    more: bool,
}

enum Values {
    // The bits of each number, and the range.
    Numbers(FxHashSet<u64>, Option<(f64, f64)>),
    // Rows of each category, and the bytes of their texts.
    Categories(HashMap<String, u64>, usize),
    Uncounted,
}

impl Counts {
    fn new(field: &Field, most: usize) -> Self {
        let kind = ColumnKind::from_field(field);
        let values = match kind {
            ColumnKind::Numeric => Values::Numbers(FxHashSet::default(), None),
            ColumnKind::Nominal | ColumnKind::Boolean | ColumnKind::Label | ColumnKind::Hierarchical => {
                Values::Categories(HashMap::new(), 0)
            }
            ColumnKind::Index | ColumnKind::Unsupported => Values::Uncounted,
        };
        Counts { kind, missing: 0, values, most, more: false }
    }

    fn add(&mut self, array: &ArrayRef) -> Result<()> {
        match &mut self.values {
            Values::Numbers(distinct, range) => {
                let mut buffer = Vec::new();
                for &value in numbers(array, &mut buffer)? {
                    if value.is_nan() {
                        self.missing += 1;
                        continue;
                    }
                    // Adding 0 turns -0 into 0.
                    let value = value + 0.0;
                    *range = Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
                    if !self.more && distinct.insert(value.to_bits()) && distinct.len() > self.most {
                        self.more = true;
                        *distinct = FxHashSet::default();
                    }
                }
            }
            Values::Categories(counts, bytes) => {
                let (texts, missing) = match self.kind {
                    ColumnKind::Hierarchical => labels(array)?,
                    _ => texts(array)?,
                };
                self.missing += missing;
                for (text, rows) in texts {
                    if let Some(count) = counts.get_mut(text.as_ref()) {
                        *count += rows;
                    } else if counts.len() < self.most && *bytes + text.len() <= BUDGET {
                        *bytes += text.len();
                        counts.insert(text.into_owned(), rows);
                    } else {
                        self.more = true;
                    }
                }
            }
            Values::Uncounted => self.missing += array.logical_null_count() as u64,
        }
        Ok(())
    }

    fn column(self, field: &Field) -> Column {
        let task = match &self.values {
            Values::Numbers(distinct, _) if !self.more && are_classes(field, distinct) => Some(Task::Classification),
            _ => self.kind.task(),
        };
        let (distinct, range, top) = match self.values {
            Values::Numbers(distinct, range) => (Some(distinct.len()), range, Vec::new()),
            Values::Categories(counts, _) => {
                let distinct = counts.len();
                let mut top: Vec<(String, u64)> = counts.into_iter().collect();
                top.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                top.truncate(TOP);
                (Some(distinct), None, top)
            }
            Values::Uncounted => (None, None, Vec::new()),
        };
        Column {
            name: field.name().clone(),
            data_type: field.data_type().to_string(),
            kind: self.kind,
            missing: self.missing,
            range,
            distinct: distinct.filter(|_| !self.more).map(|count| count as u64),
            top,
            task,
        }
    }
}

/// True if these distinct numbers, given by their bits, are taken for classes where the column is the target.
fn are_classes(field: &Field, distinct: &FxHashSet<u64>) -> bool {
    let are_few = (1..=MOST_CLASSES).contains(&distinct.len());
    are_few && may_be_integers(field) && distinct.iter().all(|&bits| f64::from_bits(bits).fract() == 0.0)
}

/// Categories or labels with their rows, and the number of rows without any.
type Tally<'a> = (Vec<(Cow<'a, str>, u64)>, u64);

/// The categories in `array`.
fn texts(array: &ArrayRef) -> Result<Tally<'_>> {
    let read = categories(array)?;
    let mut missing = 0;
    let mut rows = vec![0; read.texts.len()];
    for &position in &read.index {
        match position {
            MISSING => missing += 1,
            position => rows[position as usize] += 1,
        }
    }
    Ok((read.texts.into_iter().zip(rows).collect(), missing))
}

/// The labels that the sets in `array` list.
fn labels(array: &ArrayRef) -> Result<Tally<'_>> {
    let sets = LabelSets::from_array(array, &Reservation::new(None))?;
    let mut missing = 0;
    let mut rows = vec![0; sets.texts.len()];
    for set in sets.rows() {
        match set {
            None => missing += 1,
            Some(set) => set.iter().for_each(|&position| rows[position as usize] += 1),
        }
    }
    Ok((sets.texts.into_iter().zip(rows).collect(), missing))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};

    use super::*;
    use crate::integer_targets::IntegerTargets;
    use crate::schema::{Problem, Roles, Targets};
    use crate::source::TableSource;

    fn table(columns: Vec<(&str, ArrayRef)>) -> TableSource {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        TableSource::new("table", batch.schema(), vec![batch.clone(), batch]).unwrap()
    }

    fn mixed() -> TableSource {
        table(vec![
            ("number", Arc::new(Float64Array::from(vec![Some(2.0), None, Some(f64::NAN), Some(-1.0), Some(-0.0)]))),
            ("word", Arc::new(StringArray::from(vec![Some("b"), Some("a"), None, Some("a"), Some("c")]))),
            ("code", Arc::new(["u", "v", "u", "u", "v"].into_iter().collect::<DictionaryArray<Int8Type>>())),
            ("flag", Arc::new(BooleanArray::from(vec![true, false, true, true, true]))),
            ("day", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"1"), None, Some(b"3"), None, None]))),
            ("grade", Arc::new(Int32Array::from(vec![Some(1), None, Some(3), None, Some(3)]))),
        ])
    }

    #[test]
    fn columns_are_counted_over_all_chunks() {
        let seen = inspect(&mixed(), &Monitor::default()).unwrap();
        assert_eq!(seen.rows, 10);
        let [number, word, code, flag, day, grade] = &seen.columns[..] else { panic!() };
        assert_eq!((number.missing, number.range, number.distinct), (4, Some((-1.0, 2.0)), Some(3)));
        assert_eq!((word.missing, word.distinct), (2, Some(3)));
        assert_eq!(word.top, [("a".into(), 4), ("b".into(), 2), ("c".into(), 2)]);
        assert_eq!(code.top, [("u".into(), 6), ("v".into(), 4)]);
        assert_eq!((flag.kind, &flag.top[0]), (ColumnKind::Boolean, &("true".into(), 8)));
        assert_eq!((day.kind, day.missing, day.distinct), (ColumnKind::Unsupported, 6, None));
        assert_eq!((grade.kind, grade.distinct), (ColumnKind::Numeric, Some(2)));
    }

    #[test]
    fn tasks_are_those_that_a_ranking_would_take() {
        let source = mixed();
        for column in inspect(&source, &Monitor::default()).unwrap().columns {
            let roles = Roles::new(Targets::Named(vec![column.name.clone()])).with_drop(if column.name == "day" {
                vec![]
            } else {
                vec!["day".into()]
            });
            let found = IntegerTargets::find(&source, &roles, &Monitor::default());
            let roles = found.map_or(roles.clone(), |found| found.applied(roles));
            assert_eq!(Problem::resolve(&source.schema(), &roles, "table").ok().map(|p| p.task), column.task);
        }
    }

    #[test]
    fn beyond_the_cap_values_are_no_longer_told_apart() {
        let numbers = Float64Array::from_iter_values((0..70_000).map(f64::from));
        let words = StringArray::from_iter_values((0..70_000).map(|number| format!("w{}", number.max(9_999))));
        let seen =
            inspect(&table(vec![("n", Arc::new(numbers)), ("w", Arc::new(words))]), &Monitor::default()).unwrap();
        assert_eq!((seen.columns[0].distinct, seen.columns[0].range), (None, Some((0.0, 69_999.0))));
        assert_eq!(seen.columns[1].distinct, Some(60_001));
        assert_eq!(seen.columns[1].top[0], ("w9999".into(), 20_000));
        let words = StringArray::from_iter_values((0..70_000).map(|number| format!("w{number}")));
        let seen = inspect(&table(vec![("w", Arc::new(words))]), &Monitor::default()).unwrap();
        assert_eq!(seen.columns[0].distinct, None);
    }

    #[test]
    fn a_column_without_any_value_has_no_categories() {
        let nothing: DictionaryArray<Int8Type> = vec![None::<&str>, None].into_iter().collect();
        let seen = inspect(&table(vec![("a", Arc::new(nothing))]), &Monitor::default()).unwrap();
        assert_eq!((seen.columns[0].missing, seen.columns[0].distinct), (4, Some(0)));
    }

    #[test]
    fn it_stops_on_request() {
        let monitor = Monitor::default();
        monitor.stop();
        assert!(matches!(inspect(&mixed(), &monitor), Err(Error::Interrupted)));
    }
}
