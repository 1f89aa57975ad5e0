//! Numbers that lie in memory or in a scratch file.

use std::ops::Deref;

use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

/// Where codes are kept.
///
/// ```
/// use ferrank_data::values::{Keep, Values};
/// use ferrank_runtime::scratch::Scratch;
///
/// let scratch = Scratch::new(None);
/// for keep in [Keep::Memory, Keep::Scratch(&scratch)] {
///     let pieces = vec![Values::Held(vec![1.0, 2.0]), Values::Held(vec![3.0])];
///     let values = Values::joined(pieces, keep)?;
///     assert_eq!(values[1..], [2.0, 3.0]);
///     assert_eq!(matches!(values, Values::Mapped(_)), matches!(keep, Keep::Scratch(_)));
/// }
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    /// In memory.
    Memory,
    /// In scratch files, which are mapped.
    Scratch(&'a Scratch),
}

/// Numbers of consecutive rows: in memory, or in a file that is mapped.
#[derive(Debug, Clone)]
pub enum Values<T: ArrowNativeType> {
    /// In memory.
    Held(Vec<T>),
    /// In a mapped file, or in memory that clones share.
    Mapped(ScalarBuffer<T>),
}

impl<T: ArrowNativeType> Default for Values<T> {
    fn default() -> Self {
        Values::Held(Vec::new())
    }
}

impl<T: ArrowNativeType> Deref for Values<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Values::Held(values) => values,
            Values::Mapped(values) => values,
        }
    }
}

impl<T: ArrowNativeType> Values<T> {
    /// The values to append to, which are in memory from now on.
    pub fn held(&mut self) -> &mut Vec<T> {
        if let Values::Mapped(values) = self {
            *self = Values::Held(values.to_vec());
        }
        match self {
            Values::Held(values) => values,
            Values::Mapped(_) => unreachable!("held a line above"),
        }
    }

    /// Lets clones have the values in common. They are not copied.
    pub fn share(&mut self) {
        if let Values::Held(values) = self {
            *self = Values::Mapped(std::mem::take(values).into());
        }
    }

    /// The values, in memory.
    pub fn into_held(mut self) -> Vec<T> {
        std::mem::take(self.held())
    }

    /// `pieces` one after the other; a single one stays as it is.
    pub fn joined(mut pieces: Vec<Self>, keep: Keep<'_>) -> Result<Self> {
        if pieces.len() == 1 {
            return Ok(pieces.swap_remove(0));
        }
        Ok(match keep {
            Keep::Memory => {
                let len = pieces.iter().map(|piece| piece.len()).sum();
                let mut all = Vec::with_capacity(len);
                // Each piece goes when it is copied.
                pieces.into_iter().for_each(|piece| all.extend_from_slice(&piece));
                Values::Held(all)
            }
            Keep::Scratch(scratch) => Values::Mapped(scratch.values(pieces.iter().map(|piece| &piece[..]))?),
        })
    }

    /// The same values where `keep` says.
    pub fn kept(self, keep: Keep<'_>) -> Result<Self> {
        match keep {
            Keep::Memory => Ok(self),
            Keep::Scratch(scratch) => Ok(Values::Mapped(scratch.values(std::iter::once(&self[..]))?)),
        }
    }

    /// The values `first .. first + count`, as Arrow holds them.
    pub fn slice(&self, first: usize, count: usize) -> ScalarBuffer<T> {
        match self {
            Values::Held(values) => ScalarBuffer::from(values[first..first + count].to_vec()),
            Values::Mapped(values) => values.slice(first, count),
        }
    }
}
