//! Results of decoding foreign bytes, and panics of the decoder as errors.
//!
//! What a file claims is checked before anything is decoded, so that a panic of the decoder is rare. One that happens
//! all the same becomes an error. The panic hook of the process is left alone: whoever owns it asks [`is_decoding`].

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread decodes foreign bytes, so that a panic becomes an error of the data.
///
/// ```
/// assert!(!ferrank_data::source::is_decoding());
/// ```
pub fn is_decoding() -> bool {
    DEPTH.get() > 0
}

/// A result whose error says what is wrong with a file, without its name.
pub(super) type Checked<T> = Result<T, String>;

/// Runs `work`; a panic in it becomes an error with its message, unless that is about code.
pub(super) fn catch_decoder_panic<T>(work: impl FnOnce() -> Checked<T>) -> Checked<T> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).filter(|text| !text.contains('`'));
        Err(text.unwrap_or("its parts do not fit together").to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(catch_decoder_panic(|| -> Checked<()> { panic!("too {}", "long") }), Err("too long".into()));
        assert_eq!(catch_decoder_panic(|| -> Checked<()> { panic!("short") }), Err("short".into()));
        let of_code = || -> Checked<()> { panic!("called `Option::unwrap()` on a `None` value") };
        assert_eq!(catch_decoder_panic(of_code), Err("its parts do not fit together".into()));
        assert_eq!(catch_decoder_panic(|| Ok(is_decoding())), Ok(true));
        assert!(!is_decoding());
    }
}
