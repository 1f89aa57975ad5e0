//! Large buffers in large pages: fewer faults while they are filled, and fewer look-ups of addresses while rows are
//! read here and there.

/// Bytes from which on it pays.
const LARGE: usize = 2 << 20;
/// Bytes of the smallest pages of most machines; advice on ranges of others is refused, which does no harm.
const PAGE: usize = 4096;

/// `values`, whose memory was not touched yet, in large pages where the system has them.
pub(crate) fn in_large_pages<T>(values: Vec<T>) -> Vec<T> {
    #[cfg(target_os = "linux")]
    if values.capacity() * size_of::<T>() >= LARGE {
        let start = values.as_ptr().addr();
        let (first, end) = (start.next_multiple_of(PAGE), (start + values.capacity() * size_of::<T>()) / PAGE * PAGE);
        let from = values.as_ptr().cast::<u8>().wrapping_add(first - start).cast_mut().cast();
        // SAFETY: the range lies within the buffer; the advice changes nothing that it holds.
        unsafe {
            libc::madvise(from, end - first, libc::MADV_HUGEPAGE);
        }
    }
    values
}
