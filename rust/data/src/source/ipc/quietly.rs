//! Panics of the decoder as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes its message, and nothing is printed.
///
/// The panic hook is shared by the whole process, so it is wrapped once, and passes on what other
/// threads have to say.
pub(super) fn quietly<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be decoded").to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(quietly(|| -> Result<(), String> { panic!("too {}", "long") }), Err("too long".into()));
        assert_eq!(quietly(|| -> Result<(), String> { panic!("short") }), Err("short".into()));
        assert_eq!(quietly(|| Ok(1)), Ok(1));
    }
}
