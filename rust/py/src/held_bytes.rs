//! Bytes of Python objects, which are not copied.

use std::ops::Deref;

use arrow_buffer::Buffer;
use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes of an object with the buffer protocol, such as an array or a mapped file.
pub(crate) struct HeldBytes(PyBuffer<u8>);

impl<'py> FromPyObject<'_, 'py> for HeldBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::get(&object)?;
        if buffer.is_c_contiguous() {
            Ok(HeldBytes(buffer))
        } else {
            Err(PyValueError::new_err("bytes that do not follow each other"))
        }
    }
}

impl Deref for HeldBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the object keeps the bytes alive while the buffer is held; the buffer is contiguous, as `extract` checks; and
        // no code writes to what a task has returned.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Bytes of Python as a buffer of Arrow.
pub(crate) fn buffer(bytes: impl AsRef<[u8]> + Send + 'static) -> Buffer {
    Bytes::from_owner(bytes).into()
}
