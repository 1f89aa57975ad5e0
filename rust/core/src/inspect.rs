//! What a source holds: column by column, and the tasks it lends itself to.

use crate::error::Result;
use crate::monitor::Monitor;
use crate::schema::Task;
use crate::source::ChunkSource;

/// What a column is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers.
    Numeric,
    /// Categories.
    Nominal,
    /// True or false.
    Boolean,
    /// A label of a multi-label set.
    Label,
    /// A CLUS hierarchical attribute.
    Hierarchical,
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
            ColumnKind::Unsupported => "unsupported",
        }
    }
}

/// What one pass over a column shows.
#[derive(Debug, Clone, PartialEq)]
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
    /// Number of distinct values; `None` beyond 65,536, and for kinds that are not counted.
    pub distinct: Option<u64>,
    /// The most frequent categories with their counts, most frequent first; nominal columns only.
    pub top: Vec<(String, u64)>,
    /// The task it makes as the only target; `None` where it cannot be one.
    pub task: Option<Task>,
}

/// What one pass over a source shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// Number of rows.
    pub rows: u64,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The columns that the file marks as labels, in order.
    pub labels: Vec<String>,
}

/// Reads `source` once and describes its columns, in memory bounded by the number of columns.
///
/// # Errors
/// Those of reading the source, or a request to stop.
pub fn inspect(_source: &dyn ChunkSource, _monitor: &Monitor) -> Result<Inspection> {
    todo!()
}
