//! Memory for the texts of categories and labels and for label sets, of which a file may hold any number of any length.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;

/// How often a run keeps a text: in the profile, and as the name and in the table of a code of a feature and of a
/// target.
const COPIES: usize = 5;
/// Bytes that a text takes beside its letters, in each copy.
const BESIDE: usize = 64;
/// So many bytes are taken without looking at the free memory.
const FREE: usize = 8 << 20;

/// What of a limit of memory is taken, and what is left.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Option<u64>,
    /// Bytes taken so far.
    taken: AtomicUsize,
    /// Bytes that are left for them, from the first time on that it matters.
    left: OnceLock<usize>,
}

impl Reservation {
    /// Within a limit of `memory` bytes, or what [`Budget::new`] takes for it.
    pub(crate) fn new(memory: Option<u64>) -> Self {
        Reservation { memory, taken: AtomicUsize::new(0), left: OnceLock::new() }
    }

    /// Takes the memory of a text of `length` bytes that is to be kept.
    ///
    /// # Errors
    /// [`Error::Resource`](ferrank_runtime::error::Error::Resource) if there is not enough.
    pub(crate) fn take(&self, length: usize) -> Result<()> {
        let bytes = length.saturating_add(BESIDE).saturating_mul(COPIES);
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= FREE {
            return Ok(());
        }
        let left = *self.left.get_or_init(|| self.budget().left());
        if taken <= left { Ok(()) } else { Err(self.budget().too_small(taken, "the texts of categories and labels")) }
    }

    /// Ok if memory is left for `bytes` that are held for a while.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub(crate) fn check(&self, bytes: usize, what: &str) -> Result<()> {
        if bytes <= FREE { Ok(()) } else { self.budget().check(bytes, what).map(drop) }
    }

    /// Counts `bytes` that are held from now on. Ok if memory is left for as many again.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub(crate) fn hold(&self, bytes: usize, what: &str) -> Result<()> {
        let held = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if held <= FREE { Ok(()) } else { self.budget().check(bytes, what).map(drop) }
    }

    /// Reserves capacity for `more` values behind those of `values`, and for as many as there are where memory allows it,
    /// so that they are moved seldom.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub(crate) fn reserve<T>(&self, values: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
        if more <= values.capacity() - values.len() {
            return Ok(());
        }
        let (size, doubled) = (size_of::<T>().max(1), more.max(values.len()));
        if (values.len() + doubled).saturating_mul(size) <= FREE {
            values.reserve_exact(doubled);
            return Ok(());
        }
        // Untouched capacity is no memory yet, so that only the values are held already.
        let left = self.budget().check(more.saturating_mul(size), what)?;
        values.reserve_exact(doubled.min(left / size));
        Ok(())
    }

    fn budget(&self) -> Budget {
        Budget::new(self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_as_long_as_there_is_memory() {
        let reservation = Reservation::new(Some(1));
        assert!(reservation.take(1_000).is_ok(), "nobody is asked about little");
        let error = reservation.take(10 << 20).unwrap_err().to_string();
        assert!(error.contains("do not do for the texts of categories"), "{error}");
        assert!(Reservation::new(Some(1)).check(100 << 20, "sets").is_err());
        assert!(Reservation::new(Some(1 << 40)).take(100 << 20).is_ok());
    }

    #[test]
    fn values_grow_as_long_as_there_is_memory() {
        let (reservation, mut values) = (Reservation::new(Some(1)), vec![0u32; 1_000]);
        reservation.reserve(&mut values, 1, "sets").unwrap();
        assert_eq!(values.capacity(), 2_000, "nobody is asked about little");
        let error = reservation.reserve(&mut values, 10 << 20, "sets").unwrap_err().to_string();
        assert!(error.contains("do not do for sets"), "{error}");
        assert_eq!(values.capacity(), 2_000);
        Reservation::new(Some(1 << 40)).reserve(&mut values, 10 << 20, "sets").unwrap();
        assert!(values.capacity() >= 10 << 20);
    }
}
