//! Memory for the texts of categories and labels, of which a file may hold any number of any length.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;

/// How often a run keeps a text: in the profile, and as the name and in the table of a code of a feature and of a
/// target.
const COPIES: usize = 5;
/// Bytes that a text takes beside its letters, in each copy.
const BESIDE: usize = 64;
/// Texts of up to so many bytes are taken without looking at the free memory.
const FREE: usize = 8 << 20;

/// Room for texts within a limit of memory.
#[derive(Debug)]
pub(super) struct TextRoom {
    memory: Option<u64>,
    /// Bytes that texts take so far.
    taken: AtomicUsize,
    /// Bytes that are left for them, from the first time on that it matters.
    left: OnceLock<usize>,
}

impl TextRoom {
    /// Within a limit of `memory` bytes, or what [`Budget::new`] takes for it.
    pub(super) fn new(memory: Option<u64>) -> Self {
        TextRoom { memory, taken: AtomicUsize::new(0), left: OnceLock::new() }
    }

    /// Takes room for a text of `length` bytes that is to be kept.
    ///
    /// # Errors
    /// [`Error::Resource`](ferrank_runtime::error::Error::Resource) if there is none.
    pub(super) fn take(&self, length: usize) -> Result<()> {
        let bytes = length.saturating_add(BESIDE).saturating_mul(COPIES);
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.check(taken, "the texts of categories and labels")
    }

    /// Ok if there is room for `count` labels that are listed in the rows of a batch.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub(super) fn check_listed(&self, count: usize) -> Result<()> {
        // As they are read, and their positions.
        let bytes = count.saturating_mul(8);
        self.check(self.taken.load(Ordering::Relaxed).saturating_add(bytes), "the label sets of a batch")
    }

    fn check(&self, bytes: usize, what: &str) -> Result<()> {
        if bytes <= FREE {
            return Ok(());
        }
        let left = *self.left.get_or_init(|| Budget::new(self.memory).left());
        if bytes <= left { Ok(()) } else { Err(Budget::new(self.memory).too_small(bytes, what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_as_long_as_there_is_room() {
        let room = TextRoom::new(Some(1));
        assert!(room.take(1_000).is_ok(), "nobody is asked about little");
        let error = room.take(10 << 20).unwrap_err().to_string();
        assert!(error.contains("do not do for the texts of categories"), "{error}");
        assert!(TextRoom::new(Some(1)).check_listed(100 << 20).is_err());
        assert!(TextRoom::new(Some(1 << 40)).take(100 << 20).is_ok());
    }
}
