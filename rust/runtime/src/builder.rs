//! Declaring the `with_*` methods of a struct that other crates cannot write as a literal.

/// Declares, within an `impl` block, methods that return `self` with another value of a field.
///
/// ```
/// #[derive(Debug, Default, PartialEq)]
/// #[non_exhaustive]
/// pub struct Options {
///     pub threads: usize,
///     pub memory: Option<u64>,
/// }
///
/// impl Options {
///     ferrank_runtime::with_methods! {
///         with_threads => threads: usize;
///         with_memory => memory: Option<u64>;
///     }
/// }
///
/// let options = Options::default().with_threads(4);
/// assert_eq!((options.threads, options.memory), (4, None));
/// ```
#[macro_export]
macro_rules! with_methods {
    ($($with:ident => $name:ident: $type:ty;)*) => {
        $(
            #[doc = concat!("The same with another [`", stringify!($name), "`](Self::", stringify!($name), ").")]
            #[must_use]
            pub fn $with(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}
