//! One dictionary for a column whose chunks each bring their own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, UInt32Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use arrow_select::take::take;

/// How a column is stored in a file, which allows a dictionary to grow but not to change.
pub(super) enum Stored {
    /// As it comes.
    Plain(DataType),
    /// Categories in a dictionary.
    Unified(Unified),
}

impl Stored {
    pub(super) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Dictionary(_, values) => match values.as_ref() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                    Stored::Unified(Unified::new(&DataType::Utf8))
                }
                values if values.is_primitive() || *values == DataType::Boolean => {
                    Stored::Unified(Unified::new(values))
                }
                values => Stored::Plain(values.clone()),
            },
            other => Stored::Plain(other.clone()),
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Stored::Plain(data_type) => data_type.clone(),
            Stored::Unified(unified) => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(unified.values.data_type().clone()))
            }
        }
    }

    /// The next rows of the column in their stored form.
    pub(super) fn store(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Stored::Plain(data_type) => cast(array, data_type),
            Stored::Unified(unified) => unified.store(array),
        }
    }
}

/// The values seen so far, in the order in which they came.
pub(super) struct Unified {
    /// By what the values are as text, which is what categories are called.
    position: HashMap<String, i32>,
    values: ArrayRef,
    // The dictionary of the batch before, and where its values are in `values`. Most sources keep one dictionary.
    last: Option<ArrayRef>,
    moved: Vec<Option<i32>>,
}

impl Unified {
    fn new(of: &DataType) -> Self {
        Unified { position: HashMap::new(), values: new_empty_array(of), last: None, moved: Vec::new() }
    }

    fn store(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let dictionary = array.as_any_dictionary();
        let same = |last: &ArrayRef| last.to_data().ptr_eq(&dictionary.values().to_data());
        if !self.last.as_ref().is_some_and(same) {
            self.learn(dictionary.values())?;
        }
        let keys = cast(dictionary.keys(), &DataType::Int32)?;
        let keys: Int32Array = keys.as_primitive::<Int32Type>().iter().map(|key| self.moved[key? as usize]).collect();
        Ok(Arc::new(DictionaryArray::try_new(keys, self.values.clone())?))
    }

    fn learn(&mut self, values: &ArrayRef) -> Result<(), ArrowError> {
        let of_type = cast(values, self.values.data_type())?;
        let texts = cast(&of_type, &DataType::Utf8)?;
        let known = self.position.len();
        let mut fresh = Vec::new();
        self.moved.clear();
        for (number, text) in (0..).zip(texts.as_string::<i32>()) {
            let position = text.map(|text| match self.position.get(text) {
                Some(position) => *position,
                None => {
                    let next = (known + fresh.len()) as i32;
                    self.position.insert(text.to_string(), next);
                    fresh.push(number);
                    next
                }
            });
            self.moved.push(position);
        }
        if !fresh.is_empty() {
            let fresh = take(&of_type, &UInt32Array::from(fresh), None)?;
            self.values = concat(&[&self.values, &fresh])?;
        }
        self.last = Some(values.clone());
        Ok(())
    }
}
