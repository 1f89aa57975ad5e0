//! A matrix of compressed sparse rows (SciPy's CSR) as columns of record batches, a block of rows at a time.
//!
//! Cost: for a block, the columns that hold a value in it; all others share one array of zeros. The
//! three arrays of the matrix are not copied. Forests read them without blocks.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::DataType;
use ferrank::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Compressed sparse rows.
pub(crate) struct SparseMatrix {
    width: usize,
    /// n_rows + 1; where the entries of each row start.
    starts: Int64Array,
    /// n_entries; columns, ascending within a row.
    columns: Int32Array,
    /// n_entries; booleans or numbers.
    values: ArrayRef,
}

impl SparseMatrix {
    /// Of `width` columns, from the arrays that SciPy calls `indptr` (64 bits), `indices` (32 bits) and `data`.
    pub(crate) fn new(width: usize, starts: ArrayRef, columns: ArrayRef, values: ArrayRef) -> PyResult<Self> {
        let of_type = |array: ArrayRef, wanted: DataType| match array.data_type() {
            found if *found == wanted => Ok(array),
            found => Err(PyValueError::new_err(format!("a sparse matrix with {found} for {wanted}"))),
        };
        let matrix = SparseMatrix {
            width,
            starts: of_type(starts, DataType::Int64)?.as_primitive::<Int64Type>().clone(),
            columns: of_type(columns, DataType::Int32)?.as_primitive::<Int32Type>().clone(),
            values,
        };
        Ok(matrix)
    }

    /// Returns true if the arrays of the matrix called `name` fit together; SciPy does not always look.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let (starts, columns, n) = (self.starts.values(), self.columns.values(), self.columns.len());
        let fault = if starts.first() != Some(&0) || starts.last() != Some(&(n as i64)) || self.values.len() != n {
            format!("indptr goes from {:?} to {:?}", starts.first(), starts.last())
        } else if let Some(pair) = starts.windows(2).find(|pair| pair[0] > pair[1]) {
            format!("indptr descends from {} to {}", pair[0], pair[1])
        } else if let Some(bad) = columns.iter().find(|column| !(0..self.width as i64).contains(&i64::from(**column))) {
            format!("an index is {bad}")
        } else {
            return Ok(());
        };
        let width = self.width;
        Err(Error::Data(format!("{name}: {fault} in a sparse array of {n} entries and {width} columns; make it anew")))
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.width
    }

    /// Booleans, or 64-bit numbers, which every number becomes where it is used.
    pub(crate) fn data_type(&self) -> DataType {
        match self.values.data_type() {
            DataType::Boolean => DataType::Boolean,
            _ => DataType::Float64,
        }
    }

    /// The positions of the entries of each row, and their columns.
    pub(crate) fn rows(&self) -> (&[i64], &[i32]) {
        (self.starts.values(), self.columns.values())
    }

    /// The entries in `range` as numbers; those of 64 bits are not copied.
    pub(crate) fn numbers(&self, range: Range<usize>) -> Result<ScalarBuffer<f64>> {
        let numbers = cast(&self.values.slice(range.start, range.len()), &DataType::Float64)
            .map_err(|e| Error::Data(format!("the entries of a sparse matrix: {e}")))?;
        Ok(numbers.as_primitive::<Float64Type>().values().clone())
    }

    /// Appends all columns, cut to `len` rows from `start`, to `out`.
    pub(crate) fn columns(&self, start: usize, len: usize, out: &mut Vec<ArrayRef>) -> Result<()> {
        let entries = self.entries(start).start..self.entries(start + len - 1).end;
        let numbers = self.numbers(entries.clone())?;
        let mut filled: Vec<Vec<f64>> = vec![Vec::new(); self.width];
        for row in 0..len {
            for entry in self.entries(start + row) {
                let column = &mut filled[self.columns.value(entry) as usize];
                if column.is_empty() {
                    column.resize(len, 0.0);
                }
                column[row] = numbers[entry - entries.start];
            }
        }
        let empty = self.array(vec![0.0; len]);
        let array = |column: Vec<f64>| if column.is_empty() { empty.clone() } else { self.array(column) };
        out.extend(filled.into_iter().map(array));
        Ok(())
    }

    fn entries(&self, row: usize) -> Range<usize> {
        self.starts.value(row) as usize..self.starts.value(row + 1) as usize
    }

    fn array(&self, column: Vec<f64>) -> ArrayRef {
        match self.data_type() {
            DataType::Boolean => Arc::new(column.into_iter().map(|value| Some(value != 0.0)).collect::<BooleanArray>()),
            _ => Arc::new(Float64Array::from(column)),
        }
    }
}
