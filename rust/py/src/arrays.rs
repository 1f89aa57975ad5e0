//! Arrays as a source: record batches made from strided memory of NumPy or from sparse rows, a block of
//! rows at a time.
//!
//! The array is not copied as a whole. Cost: one block, about 260,000 values.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ferrank::source::{self, ChunkSource, Chunks, MatrixColumns, SparseColumns};
use ferrank::{Error, Result};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayon::prelude::*;

use crate::error::to_py;
use crate::reader::array;
use crate::sparse::SparseMatrix;

/// Values in a block of rows.
const BLOCK_VALUES: usize = 1 << 18;
/// Cells in a block of sparse rows, few of which are values.
const BLOCK_CELLS: usize = 1 << 22;
/// Rows gathered together: enough for a cache line of a column, and no more than a cache holds at one place, where
/// rows follow each other by a power of two.
const TILE_ROWS: usize = 8;
/// Columns gathered together, so that a row-major array is read by several cache lines at a time.
const TILE_COLUMNS: usize = 64;

/// Columns side by side: matrices of numbers and Arrow arrays, all with the same number of rows.
pub(crate) struct ArraySource {
    name: String,
    schema: SchemaRef,
    n_rows: usize,
    parts: Vec<Part>,
}

enum Part {
    Matrix(Matrix),
    Sparse(SparseMatrix),
    Column(ArrayRef),
}

impl Part {
    fn n_rows(&self) -> usize {
        match self {
            Part::Matrix(matrix) => matrix.shape[0],
            Part::Sparse(matrix) => matrix.n_rows(),
            Part::Column(array) => array.len(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Part::Matrix(matrix) => matrix.shape[1],
            Part::Sparse(matrix) => matrix.n_columns(),
            Part::Column(_) => 1,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Part::Matrix(matrix) => matrix.data_type.clone(),
            Part::Sparse(matrix) => matrix.data_type(),
            Part::Column(array) => array.data_type().clone(),
        }
    }

    /// Appends all columns, cut to `len` rows from `start`, to `out`.
    fn columns(&self, start: usize, len: usize, out: &mut Vec<ArrayRef>) -> Result<()> {
        match self {
            Part::Matrix(matrix) => matrix.columns(start, len, out),
            Part::Sparse(matrix) => matrix.columns(start, len, out)?,
            Part::Column(array) => out.push(array.slice(start, len)),
        }
        Ok(())
    }
}

impl ArraySource {
    /// From pairs of column names and an array: of two dimensions from NumPy, the three Arrow arrays of a
    /// sparse matrix, or one from Arrow. Columns without names, of an array of NumPy, are called `x0`, `x1` ….
    pub(crate) fn new(name: String, columns: Vec<(Option<Vec<String>>, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let mut fields = Vec::new();
        let mut parts = Vec::new();
        for (names, data) in columns {
            let part = if let Ok(array) = data.cast::<PyUntypedArray>() {
                Part::Matrix(Matrix::new(array)?)
            } else if data.is_instance_of::<PyTuple>() {
                let (starts, columns, values) = data.extract()?;
                let width = names.as_ref().map_or(0, Vec::len);
                let matrix = SparseMatrix::new(width, array(&starts)?, array(&columns)?, array(&values)?)?;
                matrix.check(&name).map_err(|error| to_py(data.py(), error))?;
                Part::Sparse(matrix)
            } else {
                Part::Column(array(&data)?)
            };
            let (width, data_type) = (part.width(), part.data_type());
            // A field is large, and made where it stays.
            let field = |name: String| Arc::new(Field::new(name, data_type.clone(), true));
            fields.reserve(width);
            match names {
                Some(names) if names.len() != width => {
                    return Err(PyValueError::new_err(format!("{} names for {width} columns", names.len())));
                }
                Some(names) => fields.extend(names.into_iter().map(field)),
                None => fields.extend((0..width).map(|number| field(format!("x{number}")))),
            }
            parts.push(part);
        }
        let n_rows = parts.first().map_or(0, Part::n_rows);
        if parts.iter().any(|part| part.n_rows() != n_rows) {
            return Err(PyValueError::new_err("arrays of different lengths"));
        }
        Ok(ArraySource { name, schema: Arc::new(Schema::new(fields)), n_rows, parts })
    }

    /// The widest of the parts that are `wanted`, and its number. The others are read as all columns are.
    fn widest(&self, wanted: fn(&Part) -> bool) -> Option<(usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| wanted(part)).max_by_key(|(_, part)| part.width())
    }

    /// The first column of the part at `number`.
    fn first_column(&self, number: usize) -> usize {
        self.parts[..number].iter().map(Part::width).sum()
    }

    fn all(&self) -> View<'_> {
        View { source: self, schema: self.schema.clone(), parts: self.parts.iter().collect() }
    }
}

impl ChunkSource for ArraySource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(self.all().into_chunks())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.n_rows as u64)
    }

    fn chunks_of(&self, columns: &[usize]) -> Result<Chunks<'_>> {
        // Parts of which no column is wanted are not read.
        let (mut parts, mut wanted, mut first, mut before) = (Vec::new(), Vec::new(), 0, 0);
        let mut columns = columns.iter().copied().peekable();
        for part in &self.parts {
            let end = first + part.width();
            let of_part = std::iter::from_fn(|| columns.next_if(|&column| column < end));
            let n_wanted = wanted.len();
            wanted.extend(of_part.map(|column| column - first + before));
            if wanted.len() > n_wanted {
                parts.push((part, first..end));
                before += part.width();
            }
            first = end;
        }
        let fields = parts.iter().flat_map(|(_, columns)| self.schema.fields()[columns.clone()].iter().cloned());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let n_columns = schema.fields().len();
        let chunks =
            View { source: self, schema, parts: parts.into_iter().map(|(part, _)| part).collect() }.into_chunks();
        if wanted.len() == n_columns {
            return Ok(chunks);
        }
        Ok(Box::new(
            chunks.map(move |chunk| {
                chunk?.project(&wanted).map_err(|error| Error::Data(format!("{}: {error}", self.name)))
            }),
        ))
    }

    fn matrix(&self) -> Option<MatrixColumns<'_>> {
        let Some((number, Part::Matrix(matrix))) = self.widest(|part| matches!(part, Part::Matrix(_))) else {
            return None;
        };
        let [n_rows, width] = matrix.shape;
        Some(MatrixColumns { first: self.first_column(number), width, n_rows, matrix })
    }

    fn sparse(&self) -> Result<Option<SparseColumns<'_>>> {
        let Some((number, Part::Sparse(matrix))) = self.widest(|part| matches!(part, Part::Sparse(_))) else {
            return Ok(None);
        };
        let first = self.first_column(number);
        let (width, (starts, columns)) = (matrix.n_columns(), matrix.rows());
        let values = matrix.numbers(0..columns.len())?;
        let fields = self.schema.fields();
        let beside: Vec<_> = fields[..first].iter().chain(&fields[first + width..]).cloned().collect();
        let parts = self.parts[..number].iter().chain(&self.parts[number + 1..]).collect();
        let rest = Box::new(View { source: self, schema: Arc::new(Schema::new(beside)), parts });
        Ok(Some(SparseColumns { first, width, starts, columns, values, rest }))
    }
}

/// Some parts of a source, with their columns.
#[derive(Clone)]
struct View<'a> {
    source: &'a ArraySource,
    schema: SchemaRef,
    parts: Vec<&'a Part>,
}

impl<'a> View<'a> {
    fn batch(&self, start: usize, len: usize) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        self.parts.iter().try_for_each(|part| part.columns(start, len, &mut columns))?;
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| Error::Data(format!("{}: {e}", self.source.name)))
    }

    fn into_chunks(self) -> Chunks<'a> {
        let (width, n_rows) = (self.schema.fields().len().max(1), self.source.n_rows);
        let block = match self.parts.iter().any(|part| matches!(part, Part::Sparse(_))) {
            true => (BLOCK_CELLS / width).clamp(1, 1 << 16),
            false => (BLOCK_VALUES / width).clamp(256, 1 << 16),
        };
        let starts = (0..n_rows).step_by(block);
        Box::new(starts.map(move |start| self.batch(start, block.min(n_rows - start))))
    }
}

impl ChunkSource for View<'_> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(self.clone().into_chunks())
    }

    fn name(&self) -> &str {
        &self.source.name
    }

    fn rows_hint(&self) -> Option<u64> {
        self.source.rows_hint()
    }
}

/// A view of a NumPy array of two dimensions.
struct Matrix {
    data: *const u8,
    shape: [usize; 2],
    strides: [isize; 2], // in bytes; either may be negative or 0
    data_type: DataType,
    _owner: Py<PyUntypedArray>, // keeps the memory alive
}

// SAFETY: the memory belongs to an array that `_owner` keeps alive, and is only read. NumPy lets other
// Python threads write to it meanwhile, as with every function that lets go of the GIL; a value
// torn that way is a wrong number of a plain type, never an invalid one (booleans are read as bytes).
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let (&[rows, columns], &[down, right]) = (array.shape(), array.strides()) else {
            return Err(PyValueError::new_err(format!("an array of {} dimensions, not 2", array.ndim())));
        };
        let dtype = array.dtype();
        let data_type = match (dtype.kind(), dtype.itemsize()) {
            _ if dtype.is_native_byteorder() == Some(false) => None,
            (b'b', 1) => Some(DataType::Boolean),
            (b'f', 2) => Some(DataType::Float16),
            (b'f', 4) => Some(DataType::Float32),
            (b'f', 8) => Some(DataType::Float64),
            (b'i', 1) => Some(DataType::Int8),
            (b'i', 2) => Some(DataType::Int16),
            (b'i', 4) => Some(DataType::Int32),
            (b'i', 8) => Some(DataType::Int64),
            (b'u', 1) => Some(DataType::UInt8),
            (b'u', 2) => Some(DataType::UInt16),
            (b'u', 4) => Some(DataType::UInt32),
            (b'u', 8) => Some(DataType::UInt64),
            _ => None,
        };
        let data_type = data_type.ok_or_else(|| PyTypeError::new_err(format!("an array of {dtype}")))?;
        // SAFETY: the pointer is valid while the GIL is held; the header's `data` field is read only.
        let data = unsafe { (*array.as_array_ptr()).data.cast_const().cast() };
        let owner = array.clone().unbind();
        Ok(Matrix { data, shape: [rows, columns], strides: [down, right], data_type, _owner: owner })
    }

    /// Appends all columns, cut to `len` rows from `start`, to `out`.
    fn columns(&self, start: usize, len: usize, out: &mut Vec<ArrayRef>) {
        match self.data_type {
            DataType::Boolean => {
                let values = self.gather::<u8>(start, len);
                let columns = values.chunks_exact(len);
                out.extend(columns.map(|column| {
                    Arc::new(column.iter().map(|&byte| Some(byte != 0)).collect::<BooleanArray>()) as ArrayRef
                }));
            }
            DataType::Float16 => self.primitive::<Float16Type>(start, len, out),
            DataType::Float32 => self.primitive::<Float32Type>(start, len, out),
            DataType::Float64 => self.primitive::<Float64Type>(start, len, out),
            DataType::Int8 => self.primitive::<Int8Type>(start, len, out),
            DataType::Int16 => self.primitive::<Int16Type>(start, len, out),
            DataType::Int32 => self.primitive::<Int32Type>(start, len, out),
            DataType::Int64 => self.primitive::<Int64Type>(start, len, out),
            DataType::UInt8 => self.primitive::<UInt8Type>(start, len, out),
            DataType::UInt16 => self.primitive::<UInt16Type>(start, len, out),
            DataType::UInt32 => self.primitive::<UInt32Type>(start, len, out),
            DataType::UInt64 => self.primitive::<UInt64Type>(start, len, out),
            _ => unreachable!("`new` lets no other type in"),
        }
    }

    fn primitive<T: ArrowPrimitiveType>(&self, start: usize, len: usize, out: &mut Vec<ArrayRef>) {
        let values = ScalarBuffer::from(self.gather::<T::Native>(start, len));
        let column = |number: usize| PrimitiveArray::<T>::new(values.slice(number * len, len), None);
        out.extend((0..self.shape[1]).map(|number| Arc::new(column(number)) as ArrayRef));
    }

    /// All columns, one after the other, cut to `len` rows from `start`.
    fn gather<T: Copy + Send>(&self, start: usize, len: usize) -> Vec<T> {
        let width = self.shape[1];
        let mut values = Vec::with_capacity(len * width);
        let free = &mut values.spare_capacity_mut()[..len * width];
        // Work that has no threads of its own is not to start any.
        let has_threads = rayon::current_thread_index().is_some();
        let n_threads = if has_threads { rayon::current_num_threads() } else { 1 };
        let abreast = width.div_ceil(n_threads).min(TILE_COLUMNS);
        let most = (abreast * len).max(1);
        let fill = |(tile, columns): (usize, &mut [MaybeUninit<T>])| {
            self.fill(start, len, tile * abreast, columns, |to, value| {
                to.write(value);
            });
        };
        match has_threads {
            true => free.par_chunks_mut(most).enumerate().for_each(fill),
            false => free.chunks_mut(most).enumerate().for_each(fill),
        }
        // SAFETY: the tiles are all of `free`, and each is filled.
        unsafe { values.set_len(len * width) };
        values
    }

    /// Fills `columns`, from number `first` on, with `len` rows from `start`; `put` writes a value.
    fn fill<T: Copy, U>(&self, start: usize, len: usize, first: usize, columns: &mut [U], put: impl Fn(&mut U, T)) {
        let ([n_rows, width], [down, right]) = (self.shape, self.strides);
        assert!(start + len <= n_rows && first * len + columns.len() <= width * len);
        assert!(size_of::<T>() <= self.data_type.primitive_width().unwrap_or(1));
        for above in (0..len).step_by(TILE_ROWS) {
            for (column, values) in (first..).zip(columns.chunks_exact_mut(len)) {
                let offset = (start + above) as isize * down + column as isize * right;
                // SAFETY: row and column lie within the shape, so the offset lies within the array, whose items are T; they
                // need not be aligned.
                let at =
                    |row: usize| unsafe { self.data.offset(offset + row as isize * down).cast::<T>().read_unaligned() };
                match values[above..].first_chunk_mut::<TILE_ROWS>() {
                    // Of a known length, which takes 0.4 of the time.
                    Some(values) => values.iter_mut().enumerate().for_each(|(row, value)| put(value, at(row))),
                    None => values[above..].iter_mut().enumerate().for_each(|(row, value)| put(value, at(row))),
                }
            }
        }
    }
}

impl Matrix {
    /// Writes the numbers of `columns` in row number `row` to `out`.
    fn read_row<T: Copy>(&self, row: usize, columns: Range<usize>, out: &mut [f64], to_number: impl Fn(T) -> f64) {
        let ([n_rows, width], [down, right]) = (self.shape, self.strides);
        assert!(row < n_rows && columns.end <= width && columns.len() == out.len());
        assert!(size_of::<T>() <= self.data_type.primitive_width().unwrap_or(1));
        // SAFETY: row and column lie within the shape, so the offset lies within the array, whose items are T; they need not
        // be aligned.
        let at = |column: usize, right: isize| unsafe {
            self.data.offset(row as isize * down + column as isize * right).cast::<T>().read_unaligned()
        };
        let item = size_of::<T>() as isize;
        match right == item {
            // Items side by side are converted several at a time.
            true => out.iter_mut().zip(columns).for_each(|(out, column)| *out = to_number(at(column, item))),
            false => out.iter_mut().zip(columns).for_each(|(out, column)| *out = to_number(at(column, right))),
        }
    }
}

/// Calls a method for the items of a matrix, with a function that makes numbers of them.
macro_rules! with_items {
    ($matrix:expr, $read:ident) => {
        match $matrix.data_type {
            DataType::Boolean => $read!(u8, |byte| f64::from(u8::from(byte != 0))),
            DataType::Float16 => $read!(<Float16Type as ArrowPrimitiveType>::Native, f64::from),
            DataType::Float32 => $read!(f32, f64::from),
            DataType::Float64 => $read!(f64, |value| value),
            DataType::Int8 => $read!(i8, f64::from),
            DataType::Int16 => $read!(i16, f64::from),
            DataType::Int32 => $read!(i32, f64::from),
            DataType::Int64 => $read!(i64, |value| value as f64),
            DataType::UInt8 => $read!(u8, f64::from),
            DataType::UInt16 => $read!(u16, f64::from),
            DataType::UInt32 => $read!(u32, f64::from),
            DataType::UInt64 => $read!(u64, |value| value as f64),
            _ => unreachable!("`new` lets no other type in"),
        }
    };
}

impl source::Matrix for Matrix {
    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        assert_eq!(out.len(), columns.len() * rows.len());
        macro_rules! read {
            ($T:ty, $to_number:expr) => {
                self.fill(rows.start, rows.len(), columns.start, out, |to, value: $T| *to = $to_number(value))
            };
        }
        with_items!(self, read);
    }

    fn read_row(&self, row: usize, columns: Range<usize>, out: &mut [f64]) {
        macro_rules! read {
            ($T:ty, $to_number:expr) => {
                self.read_row::<$T>(row, columns, out, $to_number)
            };
        }
        with_items!(self, read);
    }
}
