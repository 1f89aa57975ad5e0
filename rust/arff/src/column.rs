//! Columns that grow row by row and become Arrow arrays.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::header::{Attribute, Domain, Kind};
use super::text::{Cursor, Fault, Token, decode, shown};
use ferrank_runtime::error::nearest;

/// Code of a missing nominal value.
const MISSING: i32 = -1;

enum Values<'a> {
    // NaN: missing.
    Numeric(Vec<f64>),
    Nominal(&'a Domain, Vec<i32>),
    Text(StringBuilder),
}

/// One column of the chunk that is being read.
pub(super) struct Column<'a> {
    name: &'a str,
    values: Values<'a>,
    // Whether a value is missing; known by the way, so that most columns need no second look.
    missing: bool,
}

impl<'a> Column<'a> {
    pub(super) fn new(attribute: &'a Attribute) -> Self {
        let values = match &attribute.kind {
            Kind::Numeric => Values::Numeric(Vec::new()),
            Kind::Nominal(domain) => Values::Nominal(domain, Vec::new()),
            Kind::Text | Kind::Hierarchical(_) => Values::Text(StringBuilder::new()),
        };
        Column { name: &attribute.name, values, missing: false }
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        match &self.values {
            Values::Numeric(values) => values.len(),
            Values::Nominal(_, codes) => codes.len(),
            Values::Text(text) => arrow_array::builder::ArrayBuilder::len(text),
        }
    }

    /// Appends the value at `cursor`, which goes up to a byte that `ends` it, and steps over it.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>, ends: impl Fn(u8) -> bool) -> Result<(), Fault> {
        if let Values::Numeric(values) = &mut self.values
            && let Ok((value, length)) = fast_float2::parse_partial::<f64, _>(cursor.rest())
            && cursor.rest().get(length).is_none_or(|&byte| ends(byte))
        {
            values.push(value);
            self.missing |= value.is_nan();
            cursor.advance(length);
            return Ok(());
        }
        let token = cursor.token(ends)?;
        self.push(token)
    }

    fn push(&mut self, token: Token<'_>) -> Result<(), Fault> {
        if token.bytes.is_empty() && !token.quoted {
            let what = format!("no value for attribute '{}'; write ? where it is missing", self.name);
            return Err(Fault::new(token.at, what));
        }
        let missing = token.is_missing();
        self.missing |= missing;
        match &mut self.values {
            Values::Numeric(values) if missing => values.push(f64::NAN),
            Values::Numeric(values) => {
                let number: Option<f64> =
                    std::str::from_utf8(&token.bytes).ok().and_then(|text| text.trim().parse().ok());
                let what =
                    || format!("'{}' is not a number, which attribute '{}' needs", shown(&token.bytes), self.name);
                let number = number.ok_or_else(|| Fault::new(token.at, what()))?;
                self.missing |= number.is_nan();
                values.push(number);
            }
            Values::Nominal(_, codes) if missing => codes.push(MISSING),
            Values::Nominal(domain, codes) => match domain.code(&token.bytes) {
                Some(code) => codes.push(code),
                None => return Err(undeclared(self.name, domain, &token)),
            },
            Values::Text(text) if missing => text.append_null(),
            Values::Text(text) => text.append_value(decode(&token.bytes)),
        }
        Ok(())
    }

    /// Makes the column `rows` long with what a sparse row leaves out: 0, the first declared value, or
    /// no text.
    pub(super) fn fill(&mut self, rows: usize) {
        match &mut self.values {
            Values::Numeric(values) => values.resize(rows, 0.0),
            Values::Nominal(domain, codes) => {
                let first = if domain.values.is_empty() { MISSING } else { 0 };
                self.missing |= first == MISSING;
                codes.resize(rows, first);
            }
            Values::Text(text) => text.append_nulls(rows - arrow_array::builder::ArrayBuilder::len(text)),
        }
    }

    /// The rows as an array; the column is empty after.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let missing = std::mem::take(&mut self.missing);
        Ok(match &mut self.values {
            Values::Numeric(values) => {
                let values = std::mem::take(values);
                let nulls = missing.then(|| values.iter().map(|value| !value.is_nan()).collect::<NullBuffer>());
                Arc::new(Float64Array::new(values.into(), nulls))
            }
            Values::Nominal(domain, codes) => {
                let mut codes = std::mem::take(codes);
                let nulls = missing.then(|| codes.iter().map(|code| *code != MISSING).collect::<NullBuffer>());
                if missing {
                    codes.iter_mut().filter(|code| **code == MISSING).for_each(|code| *code = 0);
                }
                let keys = Int32Array::new(ScalarBuffer::from(codes), nulls);
                Arc::new(DictionaryArray::try_new(keys, domain.values.clone())?)
            }
            Values::Text(text) => Arc::new(text.finish()),
        })
    }
}

fn undeclared(name: &str, domain: &Domain, token: &Token<'_>) -> Fault {
    use arrow_array::cast::AsArray;
    let near = nearest(&shown(&token.bytes), domain.values.as_string::<i32>().iter().flatten());
    let meant =
        if near.is_empty() { "it declares none".into() } else { format!("the nearest are {}", near.join(", ")) };
    let missing = if *token.bytes == *b"?" { "; a missing value is ? without quotes" } else { "" };
    Fault::new(
        token.at,
        format!("'{}' is not a declared value of attribute '{name}'; {meant}{missing}", shown(&token.bytes)),
    )
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type};
    use arrow_array::{Array, RecordBatch};

    use crate::Header;

    const ATTRIBUTES: &str = "@attribute x real\n@attribute c {a, b}\n@attribute none {}\n@attribute t string\n";

    fn batch(rows: &str) -> RecordBatch {
        let file = format!("@relation r\n{ATTRIBUTES}@data\n{rows}");
        let header = Header::read(file.as_bytes()).unwrap();
        header.batches(file.as_bytes(), 100).next().unwrap().unwrap()
    }

    /// The numbers, and the texts of the other columns.
    fn values(batch: &RecordBatch) -> (Vec<Option<f64>>, [Vec<Option<String>>; 3]) {
        let categories = |column: usize| {
            let column = batch.column(column).as_dictionary::<Int32Type>();
            column
                .downcast_dict::<arrow_array::StringArray>()
                .unwrap()
                .into_iter()
                .map(|text| text.map(String::from))
                .collect()
        };
        let texts = batch.column(3).as_string::<i32>().iter().map(|text| text.map(String::from)).collect();
        (batch.column(0).as_primitive::<Float64Type>().iter().collect(), [categories(1), categories(2), texts])
    }

    #[test]
    fn missing_values_are_null_and_others_are_not() {
        let found = batch("1.5, b, ?, z\n?, ?, ?, ?\nNaN, a, ?, '?'\n");
        let text = |text: &str| Some(text.to_string());
        let expected = [vec![text("b"), None, text("a")], vec![None; 3], vec![text("z"), None, text("?")]];
        assert_eq!(values(&found), (vec![Some(1.5), None, None], expected));
        let whole = batch("1.5, b, ?, z\n");
        assert_eq!([0, 1, 2, 3].map(|column| whole.column(column).null_count()), [0, 0, 1, 0]);
    }

    #[test]
    fn what_sparse_rows_leave_out_is_0_the_first_declared_value_or_no_text() {
        let found = batch("{0 2}\n{1 b}\n{3 z}\n");
        let text = |text: &str| Some(text.to_string());
        let expected = [vec![text("a"), text("b"), text("a")], vec![None; 3], vec![None, None, text("z")]];
        assert_eq!(values(&found), (vec![Some(2.0), Some(0.0), Some(0.0)], expected));
    }
}
