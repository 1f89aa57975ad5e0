//! Positions of examples by their codes, without unpredictable branches.

use ferrank_data::store::Code;

/// Number of values of a byte.
const BYTE: usize = 256;

/// Writes the positions of the codes for which `wanted` returns true, without a branch for each.
#[inline(always)]
pub(super) fn positions<C: Code>(codes: &[C], wanted: impl Fn(C) -> bool, out: &mut Vec<u32>) {
    out.clear();
    out.resize(codes.len(), 0);
    let mut n = 0;
    for (position, &code) in codes.iter().enumerate() {
        out[n] = position as u32;
        n += usize::from(wanted(code));
    }
    out.truncate(n);
}

/// Writes the positions by ascending code; positions with equal codes keep their order.
#[inline(always)]
pub(super) fn sort<C: Code>(codes: &[C], n_codes: usize, order: &mut Vec<u32>, spare: &mut Vec<u32>) {
    match codes.len() {
        0..=16 => by_rank::<16, C>(codes, order),
        17..=32 => by_rank::<32, C>(codes, order),
        33..=64 => by_rank::<64, C>(codes, order),
        n if n_codes <= BYTE => by_byte(codes, C::index, 0..n as u32, order),
        n => {
            by_byte(codes, |code| code.index() % BYTE, 0..n as u32, spare);
            by_byte(codes, |code| code.index() / BYTE, spare.iter().copied(), order);
        }
    }
}

/// Moves the positions with the code `last`, which come last in the `order` of the codes, to its front. Returns their
/// number.
pub(super) fn last_first<C: Code>(codes: &[C], last: C, order: &mut [u32]) -> usize {
    let n = order.iter().rev().take_while(|&&position| codes[position as usize] == last).count();
    order.rotate_right(n);
    n
}

/// Sorts up to `N` codes by counting for each how many come before it, with n² comparisons in vectors and no branches.
#[inline(always)]
pub(super) fn by_rank<const N: usize, C: Code>(codes: &[C], order: &mut Vec<u32>) {
    let mut keys = [u32::MAX; N];
    for (position, (key, code)) in keys.iter_mut().zip(codes).enumerate() {
        *key = (code.index() * N + position) as u32;
    }
    let mut ranks = [0u32; N];
    for &key in &keys[..codes.len()] {
        for (rank, &other) in ranks.iter_mut().zip(&keys) {
            *rank += u32::from(key < other);
        }
    }
    order.clear();
    order.resize(codes.len(), 0);
    for (position, &rank) in ranks[..codes.len()].iter().enumerate() {
        order[rank as usize] = position as u32;
    }
}

/// Sorts `positions` by a `byte` of their codes; positions with equal bytes keep their order.
///
/// Not inlined, so that it can use all registers.
#[inline(never)]
pub(super) fn by_byte<C: Code>(
    codes: &[C],
    byte: impl Fn(C) -> usize,
    positions: impl ExactSizeIterator<Item = u32> + Clone,
    order: &mut Vec<u32>,
) {
    let mut starts = [0u32; BYTE];
    for position in positions.clone() {
        starts[byte(codes[position as usize])] += 1;
    }
    let mut before = 0;
    for start in &mut starts {
        (*start, before) = (before, before + *start);
    }
    order.resize(positions.len(), 0);
    let order = &mut order[..];
    for position in positions {
        let next = &mut starts[byte(codes[position as usize])];
        order[*next as usize] = position;
        *next += 1;
    }
}
