//! Large buffers in large pages: fewer faults while they are filled, and fewer look-ups of addresses while rows are
//! read here and there.

use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a large page.
const LARGE: usize = 2 << 20;

/// Bytes that memory is read in.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks the memory for `values`, which are few, without waiting for them.
#[inline(always)]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for start in (0..size_of_val(values)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is within `values`, and all x86-64 machines have the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().add(start)) };
    }
}

/// As many numbers as were requested, 0 at first; what is not touched takes no memory.
///
/// ```
/// use ferrank_runtime::pages::Large;
///
/// let mut values = Large::<f64>::zeros(1 << 30); // 8 GiB of addresses
/// values[1 << 29] = 1.0;
/// assert_eq!(values[..2], [0.0, 0.0]);
/// ```
#[derive(Debug)]
pub struct Large<T> {
    /// `None` where there are no numbers.
    map: Option<MmapMut>,
    /// The bytes of `map` that they are in.
    bytes: Range<usize>,
    of: PhantomData<T>,
}

impl<T: Pod> Large<T> {
    /// `len` zeros. Like a vector, it ends the process where there is no memory.
    pub fn zeros(len: usize) -> Self {
        let layout = Layout::array::<T>(len).expect("as many bytes as fit the address space");
        let n_bytes = layout.size();
        if n_bytes == 0 {
            return Large::default();
        }
        // Whole pages, and space to align the start; pages that are not touched take no memory.
        let whole = if n_bytes < LARGE { 0 } else { n_bytes.next_multiple_of(LARGE) };
        let n_mapped = if whole == 0 { n_bytes } else { whole + LARGE };
        let map = MmapMut::map_anon(n_mapped).unwrap_or_else(|_| handle_alloc_error(layout));
        let at = map.as_ptr().addr();
        let start = if whole == 0 { 0 } else { at.next_multiple_of(LARGE) - at };
        #[cfg(target_os = "linux")]
        if whole > 0 {
            // Where it is refused, pages are small.
            let _ = map.advise_range(memmap2::Advice::HugePage, start, whole);
        }
        let bytes = start..start + n_bytes;
        Large { map: Some(map), bytes, of: PhantomData }
    }
}

impl<T> Default for Large<T> {
    fn default() -> Self {
        Large { map: None, bytes: 0..0, of: PhantomData }
    }
}

impl<T: Pod> Deref for Large<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.map.as_ref().map_or(&[], |map| bytemuck::cast_slice(&map[self.bytes.clone()]))
    }
}

impl<T: Pod> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.map.as_mut().map_or(&mut [], |map| bytemuck::cast_slice_mut(&mut map[self.bytes.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_requested_number_of_zeros() {
        for len in [0, 1, 511, 3 << 18] {
            let mut numbers = Large::<f64>::zeros(len);
            assert_eq!(numbers.len(), len);
            assert!(numbers.iter().all(|&number| number == 0.0));
            numbers.fill(1.0);
            assert_eq!(numbers.iter().sum::<f64>(), len as f64);
        }
        assert_eq!(Large::<u64>::default().len(), 0);
    }
}
