//! Hashes of sampled values, which do not depend on how these are kept.

use xxhash_rust::xxh3::xxh3_128;

use super::sample::SampleOrder;

/// If at most one value in `FEW` of a column differs from 0, only the values other than 0 are hashed.
pub(super) const FEW: usize = 8;

/// The hash of sampled `values`: of all in the order of their rows, or of the few that are not 0; `words` is a buffer.
pub(super) fn hash(values: &[f64], order: &SampleOrder, words: &mut Vec<u64>) -> u128 {
    let n_entries = values.iter().filter(|&&value| is_entry(value)).count();
    hash_known(values, n_entries, order, words)
}

/// The [hash] of `values`, `n_entries` of which are not 0.
pub(super) fn hash_known(values: &[f64], n_entries: usize, order: &SampleOrder, words: &mut Vec<u64>) -> u128 {
    if FEW * n_entries <= values.len() {
        let entries = (0..).zip(values).map(|(position, &value)| (position, value));
        return hash_entries(entries.filter(|entry| is_entry(entry.1)), order, words);
    }
    words.clear();
    words.extend(order.positions.iter().map(|&position| values[position as usize].to_bits()));
    hash_words(words)
}

/// Returns true for what is not 0; a value of -0 has become 0.
fn is_entry(value: f64) -> bool {
    value.to_bits() != 0
}

/// The hash of values other than 0, each with its place in the order of the sampled rows.
pub(super) fn hash_entries(
    entries: impl Iterator<Item = (u32, f64)>,
    order: &SampleOrder,
    words: &mut Vec<u64>,
) -> u128 {
    let mut placed: Vec<[u64; 2]> =
        entries.map(|(position, value)| [order.places[position as usize].into(), value.to_bits()]).collect();
    placed.sort_unstable();
    words.clear();
    words.extend_from_slice(placed.as_flattened());
    hash_words(words)
}

/// The hash of the bytes of `words`, lowest first.
pub(super) fn hash_words(words: &[u64]) -> u128 {
    // Which is what memory holds on nearly all machines.
    if cfg!(target_endian = "little") {
        return xxh3_128(bytemuck::cast_slice(words));
    }
    let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
    xxh3_128(bytes.as_flattened())
}
