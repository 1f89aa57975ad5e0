//! Declaring the settings of a ranker.

/// Declares a struct of settings: each setting once, with its documentation, type and default.
///
/// The struct has public fields, a `Default`, and for each field a method that returns the settings with another
/// value. It is read from JSON and written to it; a setting that JSON leaves out has its default. The crate that uses
/// the macro depends on `serde`.
///
/// ```
/// ferrank_ranking::settings! {
///     /// Settings of a ranker.
///     pub struct Params {
///         /// Number of trees.
///         n_estimators, with_n_estimators: usize = 100;
///         /// Greatest depth of a tree; `None`: no limit.
///         max_depth, with_max_depth: Option<usize> = None;
///     }
/// }
///
/// let params: Params = serde_json::from_str(r#"{"max_depth": 3}"#)?;
/// assert_eq!(params, Params::default().with_max_depth(Some(3)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $params:ident {
            $($(#[$doc:meta])* $name:ident, $with:ident: $type:ty = $default:expr;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct $params {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl ::core::default::Default for $params {
            fn default() -> Self {
                $params { $($name: $default,)* }
            }
        }

        impl $params {
            $crate::with_methods! { $($with => $name: $type;)* }
        }
    };
}
