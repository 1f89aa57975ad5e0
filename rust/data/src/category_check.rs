//! Columns of new rows whose type rules out the categories of the training data.

use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use ferrank_runtime::error::{Error, Result};

use crate::column::{is_time, numeric_values};
use crate::schema::Attribute;
use crate::source::ChunkSource;

/// Finds columns of numbers, truth values or times where the training data have text. Their values would be unknown
/// categories, and thus missing, without a word.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::category_check::CategoryCheck;
/// use ferrank_data::schema::{Attribute, Kind};
/// use ferrank_data::source::{ChunkSource, TableSource};
///
/// let values = |values: [f64; 2]| Arc::new(Float64Array::from_iter_values(values)) as ArrayRef;
/// let batch = RecordBatch::try_from_iter([("colour", values([1.0, 2.0]))]).unwrap();
/// let source = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
/// let colour = Attribute { name: "colour".into(), column: 0, kind: Kind::Nominal };
/// let check = |names: &[&str]| {
///     let names: Vec<String> = names.iter().map(ToString::to_string).collect();
///     CategoryCheck::new(&source, [(&colour, Some(&names[..]))]).check(&batch)
/// };
/// assert!(check(&["1", "2.5"]).is_ok());
/// assert!(check(&["01", "02"]).is_err());
/// assert_eq!(
///     check(&["blue", "red"]).unwrap_err().to_string(),
///     "table: column 'colour' is of type Float64, in the training data it has categories such as 'blue'; use one type in both"
/// );
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CategoryCheck {
    /// The position of each column, and what is wrong if it has a value.
    columns: Vec<(usize, String)>,
}

/// Characters of a category that a message shows, at most.
const MOST_SHOWN: usize = 40;

impl CategoryCheck {
    /// For `features` of `source`, with the names of their categories in the training data.
    pub fn new<'a>(
        source: &dyn ChunkSource,
        features: impl IntoIterator<Item = (&'a Attribute, Option<&'a [String]>)>,
    ) -> Self {
        let schema = source.schema();
        let columns = features.into_iter().filter_map(|(feature, names)| {
            let (names, data_type) = (names?, schema.field(feature.column).data_type());
            let example: String = names.first()?.chars().take(MOST_SHOWN).collect();
            let message = || {
                format!(
                    "{}: column '{}' is of type {data_type}, in the training data it has categories such as '{example}'; \
                     use one type in both",
                    source.name(),
                    feature.name
                )
            };
            (!names.iter().all(|name| may_hold(data_type, name))).then(|| (feature.column, message()))
        });
        CategoryCheck { columns: columns.collect() }
    }

    /// Checks a batch of the source.
    ///
    /// # Errors
    /// [`Error::Type`] if one of these columns has a value.
    pub fn check(&self, batch: &RecordBatch) -> Result<()> {
        for (column, message) in &self.columns {
            let (mut array, mut values) = (batch.column(*column).clone(), Vec::new());
            if let DataType::Dictionary(_, value_type) = array.data_type() {
                array = cast(&array, value_type).map_err(|e| Error::Data(e.to_string()))?;
            }
            numeric_values(&array, &mut values)?;
            if values.iter().any(|value| !value.is_nan()) {
                return Err(Error::Type(message.clone()));
            }
        }
        Ok(())
    }
}

/// Returns true if a column with the categories `names` was text: they are neither all truth values nor all numbers.
///
/// ```
/// use ferrank_data::category_check::was_text;
///
/// let was_text = |names: [&str; 2]| was_text(&names.map(String::from));
/// assert!(was_text(["01000", "1000"]) && was_text(["1", "true"]));
/// assert!(!was_text(["-1", "2.5"]) && !was_text(["false", "true"]));
/// ```
pub fn was_text(names: &[String]) -> bool {
    let all = |of: fn(&str) -> bool| names.iter().all(|name| of(name));
    !all(is_truth_value) && !all(is_number)
}

fn is_truth_value(name: &str) -> bool {
    matches!(name, "true" | "false")
}

/// Returns false if no value of this type is called `name` as a category; see [`categories`](crate::column::categories).
fn may_hold(data_type: &DataType, name: &str) -> bool {
    match data_type {
        DataType::Boolean => is_truth_value(name),
        DataType::Dictionary(_, value_type) => may_hold(value_type, name),
        t if is_time(t) || t.is_numeric() => is_number(name),
        _ => true,
    }
}

/// Returns true if numbers and times are called so: in decimals, without zeros that say nothing.
fn is_number(name: &str) -> bool {
    let name = name.strip_prefix('-').unwrap_or(name);
    let (whole, decimals) = name.split_once('.').unwrap_or((name, "1"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = whole == "0" || !whole.starts_with('0');
    name == "inf" || is_digits(whole) && is_short && is_digits(decimals) && !decimals.ends_with('0')
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn names_of_numbers() {
        for value in [0.0, -1.5, 3.0, 1e22, 1e-7, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(is_number(&value.to_string()), "{value}");
        }
        for name in ["", "-", "01", "1.0", "1.", ".5", "1e5", "nan", "+1", "2020-01-01", "1.5.2", "0x1", "1 "] {
            assert!(!is_number(name), "{name}");
        }
    }
}
