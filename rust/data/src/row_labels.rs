//! Columns that hold the index of a pandas frame: labels of rows, which are no features unless they are named.

use arrow_schema::Schema;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::Value;

/// Key of the metadata of a schema under which pandas and dask describe a frame.
pub(crate) const PANDAS: &str = "pandas";

#[derive(Deserialize)]
struct Frame {
    /// Names of columns; an object is a range of integers, which has none.
    index_columns: Vec<Value>,
}

/// The columns of `schema` that hold an index, as their writer notes it in the metadata
/// (<https://pandas.pydata.org/docs/development/developer.html>).
pub(crate) fn row_labels(schema: &Schema) -> FxHashSet<usize> {
    let frame = schema.metadata().get(PANDAS).and_then(|text| serde_json::from_str(text).ok());
    let Some(Frame { index_columns }) = frame else { return FxHashSet::default() };
    index_columns.iter().filter_map(|name| schema.index_of(name.as_str()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_schema::{DataType, Field};

    use super::*;

    #[test]
    fn columns_are_those_that_the_metadata_name() {
        let fields = ["x", "day", "__index_level_1__"].map(|name| Field::new(name, DataType::Float64, true));
        let labels = |text: &str| {
            let metadata = HashMap::from([(PANDAS.to_string(), text.to_string())]);
            let mut found: Vec<usize> =
                row_labels(&Schema::new_with_metadata(fields.to_vec(), metadata)).into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(labels(r#"{"index_columns": ["day", "__index_level_1__"], "columns": [{"name": "x"}]}"#), [1, 2]);
        let range = r#"{"index_columns": [{"kind": "range", "name": "x", "start": 0, "stop": 9, "step": 1}]}"#;
        for other in [range, r#"{"index_columns": ["gone", null]}"#, r#"{"index_columns": "x"}"#, "{}", "[", ""] {
            assert_eq!(labels(other), [0; 0], "{other}");
        }
    }
}
