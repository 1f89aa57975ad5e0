//! Results of decoding foreign bytes, and panics of the decoder as errors.
//!
//! What a file claims is checked before anything is decoded, so that a panic of the decoder is rare. One that happens
//! all the same becomes an error; its message goes through the panic hook of the process, which is left alone.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A result whose error says what is wrong with a file, without its name.
pub(super) type Checked<T> = Result<T, String>;

/// Runs `work`; a panic in it becomes an error with its message.
pub(super) fn catch_decoder_panic<T>(work: impl FnOnce() -> Checked<T>) -> Checked<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be decoded").to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(catch_decoder_panic(|| -> Checked<()> { panic!("too {}", "long") }), Err("too long".into()));
        assert_eq!(catch_decoder_panic(|| -> Checked<()> { panic!("short") }), Err("short".into()));
        assert_eq!(catch_decoder_panic(|| Ok(1)), Ok(1));
    }
}
