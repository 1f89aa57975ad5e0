//! The types of columns, from the values of all rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Formatter;
use std::sync::Arc;

use arrow_cast::parse::string_to_timestamp_nanos;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Number,
    /// Text that is a day or a time of a day.
    Time,
    Text,
    List,
    Object,
}

/// Of how a message calls a kind.
const NAMES: [&str; 7] = ["a truth value", "a number", "a number", "text", "text", "a list", "an object"];

/// The kinds of values found in one place: the first row of each.
#[derive(Debug, Default, Clone)]
struct Kinds {
    rows: [Option<u64>; 7],
    items: Option<Box<Kinds>>,
}

impl Kinds {
    fn add(&mut self, kind: Kind, row: u64) {
        self.rows[kind as usize].get_or_insert(row);
    }

    fn has(&self, kind: Kind) -> bool {
        self.rows[kind as usize].is_some()
    }

    /// The type that holds all of them; the error says what is beside what.
    fn data_type(&self) -> Result<DataType, String> {
        let mut found: Vec<(usize, u64)> =
            self.rows.iter().enumerate().filter_map(|(kind, row)| Some((kind, (*row)?))).collect();
        found.dedup_by_key(|(kind, _)| NAMES[*kind]);
        if let [(one, row), (other, other_row), ..] = found[..] {
            return Err(format!(
                "{} in row {row} and {} in row {other_row}; use one type in a column",
                NAMES[one], NAMES[other]
            ));
        }
        Ok(if self.has(Kind::Boolean) {
            DataType::Boolean
        } else if self.has(Kind::Number) {
            DataType::Float64
        } else if self.has(Kind::Integer) {
            DataType::Int64
        } else if self.has(Kind::Text) {
            DataType::Utf8
        } else if self.has(Kind::Time) {
            DataType::Timestamp(TimeUnit::Second, None)
        } else if self.has(Kind::List) {
            let items = self.items.as_deref().map_or(Ok(DataType::Null), Kinds::data_type)?;
            let items = if items.is_null() { DataType::Utf8 } else { items };
            DataType::List(Arc::new(Field::new_list_field(items, true)))
        } else if self.has(Kind::Object) {
            // No objects can be ranked, so it does not matter what is in them.
            DataType::Struct(Fields::empty())
        } else {
            DataType::Null
        })
    }
}

/// A column, and the row that it was in last.
struct Column {
    name: String,
    kinds: Kinds,
    row: u64,
}

/// Columns in the order in which they come.
#[derive(Default)]
pub(super) struct Columns {
    columns: Vec<Column>,
    position: HashMap<String, usize>,
}

impl Columns {
    /// Takes `text`, an object, which is row number `row`.
    pub(super) fn add(&mut self, text: &[u8], row: u64) -> Result<(), String> {
        let mut text = serde_json::Deserializer::from_slice(text);
        let read = Row { columns: self, row }.deserialize(&mut text).and_then(|()| text.end());
        read.map_err(|error| format!("row {row}: {error}"))
    }

    pub(super) fn schema(&self) -> Result<Schema, String> {
        let field = |column: &Column| match column.kinds.data_type() {
            Ok(data_type) => Ok(Field::new(&column.name, data_type, true)),
            Err(what) => Err(format!("the column '{}' has {what}", column.name)),
        };
        Ok(Schema::new(self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?))
    }

    /// The place of the column `name`, which came behind that at `last`.
    fn place(&mut self, name: &str, last: usize) -> usize {
        // Most writers keep to an order.
        if self.columns.get(last).is_some_and(|column| column.name == name) {
            return last;
        }
        let next = self.columns.len();
        match self.position.entry(name.to_string()) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(slot) => {
                slot.insert(next);
                self.columns.push(Column { name: name.to_string(), kinds: Kinds::default(), row: 0 });
                next
            }
        }
    }
}

struct Row<'a> {
    columns: &'a mut Columns,
    row: u64,
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<(), D::Error> {
        text.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let mut next = 0;
        while let Some(place) = values.next_key_seed(Name { columns: self.columns, next })? {
            let column = &mut self.columns.columns[place];
            if column.row == self.row {
                return Err(A::Error::custom(format!("has '{}' twice", column.name)));
            }
            column.row = self.row;
            values.next_value_seed(Value { kinds: &mut column.kinds, row: self.row })?;
            next = place + 1;
        }
        Ok(())
    }
}

/// The name of a column, of which the place is wanted.
struct Name<'a> {
    columns: &'a mut Columns,
    next: usize,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<usize, D::Error> {
        text.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        Ok(self.columns.place(name, self.next))
    }
}

struct Value<'a> {
    kinds: &'a mut Kinds,
    row: u64,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<(), D::Error> {
        text.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.kinds.add(Kind::Boolean, self.row);
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.kinds.add(Kind::Integer, self.row);
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.kinds.add(if i64::try_from(value).is_ok() { Kind::Integer } else { Kind::Number }, self.row);
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.kinds.add(Kind::Number, self.row);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let is_time = !self.kinds.has(Kind::Text) && is_time(text);
        self.kinds.add(if is_time { Kind::Time } else { Kind::Text }, self.row);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.kinds.add(Kind::List, self.row);
        let kinds = self.kinds.items.get_or_insert_default();
        while items.next_element_seed(Value { kinds, row: self.row })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.kinds.add(Kind::Object, self.row);
        while values.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Returns true for a day, and for a time of a day to the second: ISO 8601 without a zone.
fn is_time(text: &str) -> bool {
    let form = |form: &str| {
        let fits = |(byte, like): (u8, u8)| if like == b'0' { byte.is_ascii_digit() } else { byte == like };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
    };
    let forms = ["0000-00-00", "0000-00-00 00:00:00", "0000-00-00T00:00:00"];
    forms.into_iter().any(form) && string_to_timestamp_nanos(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(rows: &[&str]) -> Result<Vec<(String, DataType)>, String> {
        let mut columns = Columns::default();
        for (number, row) in (1..).zip(rows) {
            columns.add(row.as_bytes(), number)?;
        }
        let schema = columns.schema()?;
        Ok(schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect())
    }

    fn of(values: &[&str]) -> Result<DataType, String> {
        let rows: Vec<String> = values.iter().map(|value| format!(r#"{{"a":{value}}}"#)).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        schema(&rows).map(|columns| columns[0].1.clone())
    }

    #[test]
    fn types_hold_all_values() {
        assert_eq!(of(&["null", "1", "-3"]), Ok(DataType::Int64));
        assert_eq!(of(&["1", "2.5"]), Ok(DataType::Float64));
        assert_eq!(of(&["18446744073709551615"]), Ok(DataType::Float64));
        assert_eq!(of(&["true", "null"]), Ok(DataType::Boolean));
        assert_eq!(of(&["null"]), Ok(DataType::Null));
        assert_eq!(of(&[r#""2024-02-29""#]), Ok(DataType::Timestamp(TimeUnit::Second, None)));
        assert_eq!(of(&[r#""2024-02-28""#, r#""2023-02-29""#]), Ok(DataType::Utf8));
        assert_eq!(of(&[r#""a""#, r#""2024-02-28""#]), Ok(DataType::Utf8));
        assert_eq!(of(&["{}"]), Ok(DataType::Struct(Fields::empty())));
        let list = |items| Ok(DataType::List(Arc::new(Field::new_list_field(items, true))));
        assert_eq!(of(&["[]", "[\"a\"]", "null"]), list(DataType::Utf8));
        assert_eq!(of(&["[]"]), list(DataType::Utf8));
        assert_eq!(of(&["[1]", "[1.5]"]), list(DataType::Float64));
    }

    #[test]
    fn columns_come_in_the_order_in_which_they_are_found() {
        let found = schema(&[r#"{"b":1,"a":2}"#, r#"{"a":1,"c":2,"b":1}"#]).unwrap();
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let said = of(&["1", "null", "\"x\""]).unwrap_err();
        assert!(said.contains("'a' has a number in row 1 and text in row 3"), "{said}");
        let said = schema(&[r#"{"a":1,"a":2}"#]).unwrap_err();
        assert!(said.contains("row 1: has 'a' twice"), "{said}");
        let deep = format!(r#"{{"a":{}"#, "[".repeat(10_000));
        assert!(schema(&[&deep]).unwrap_err().contains("recursion"));
        assert!(schema(&[r#"{"a":1]"#]).is_err());
    }
}
