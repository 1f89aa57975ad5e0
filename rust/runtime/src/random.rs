//! Random streams keyed by what they are for, so that no draw depends on when it was made.
//!
//! ```
//! use ferrank_runtime::random::{Purpose, ROOT, Stream, child, stream};
//! use rand::Rng;
//!
//! let draw = |mut stream: Stream| stream.next_u64();
//! let left = child(ROOT, false);
//! let node = || stream(42, Purpose::Node, 7, left);
//! assert_eq!(draw(node()), draw(node()));
//! assert_ne!(draw(node()), draw(stream(42, Purpose::Node, 7, child(ROOT, true))));
//! ```

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64;

/// The generator of every stream.
pub type Stream = Xoshiro256PlusPlus;

/// What a stream is for.
///
/// ```
/// use ferrank_runtime::random::{Purpose, stream};
/// use rand::Rng;
///
/// // Draws for one purpose do not depend on how many were made for another.
/// let draw = |purpose| stream(42, purpose, 7, 0).next_u64();
/// let bag = draw(Purpose::Bag);
/// assert_ne!(draw(Purpose::Permutation), bag);
/// assert_eq!(draw(Purpose::Bag), bag);
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// How many draws of a bag fall on each row.
    Bag = 1,
    /// Features, and random tests, of a node.
    Node = 2,
    /// Order of the out-of-bag rows of a tree, and how far each feature turns them.
    Permutation = 3,
    /// Which rows are queries.
    Queries = 4,
    /// Which rows a sample has.
    Sample = 5,
    /// Which rows of a stream stay in its reservoir.
    Reservoir = 6,
    /// The seed of a block of a stream.
    Block = 7,
    /// The rows of a subsample.
    Subsample = 8,
    /// The groups of rows that standard errors are computed from.
    Groups = 9,
    /// The rows that shadows of features have their codes from.
    Shadows = 10,
    /// The rows whose targets rows have in a draw of targets.
    Targets = 11,
    /// The rows that the error of a forest is computed from.
    ModelError = 12,
}

/// The stream for `purpose` in tree `tree`; `place` is a block of rows, a node's path, or a feature.
#[inline]
pub fn stream(seed: u64, purpose: Purpose, tree: u64, place: u64) -> Stream {
    Stream::seed_from_u64(mix([seed, purpose as u64, tree, place]))
}

/// Path of the root of a tree.
pub const ROOT: u64 = 0;

/// Path of the left (`false`) or right (`true`) child of the node at `path`.
#[inline]
pub fn child(path: u64, right: bool) -> u64 {
    mix([path, right as u64 + 1])
}

/// A hash of `words`, with all bits well mixed.
pub fn mix<const N: usize>(words: [u64; N]) -> u64 {
    let mut bytes = [0u8; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_64(&bytes[..8 * N])
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn streams_are_reproducible_and_differ_by_each_part_of_their_key() {
        let first = |seed, purpose, tree, place| stream(seed, purpose, tree, place).next_u64();
        let one = first(0, Purpose::Bag, 0, 0);
        assert_eq!(one, first(0, Purpose::Bag, 0, 0));
        for other in [
            first(1, Purpose::Bag, 0, 0),
            first(0, Purpose::Node, 0, 0),
            first(0, Purpose::Bag, 1, 0),
            first(0, Purpose::Bag, 0, 1),
        ] {
            assert_ne!(one, other);
        }
        assert_ne!(child(ROOT, false), child(ROOT, true));
    }
}
