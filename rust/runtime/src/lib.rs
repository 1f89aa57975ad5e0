//! What every crate of ferrank needs and no crate of its own is for.
//!
//! | module | what |
//! |---|---|
//! | [`error`] | the one error type; every message names the file, column or setting |
//! | [`monitor`] | progress of a run, and the request to stop it |
//! | [`budget`] | how much memory the process may hold |
//! | [`files`] | files that can be read again and never keep a reader waiting |
//! | [`scratch`] | temporary files that vanish with the process |
//! | [`threads`] | a thread pool for each run |
//! | [`random`] | random streams keyed by what they are for |
//! | [`pages`] | large buffers, zeroed by the system |
//! | [`with_methods!`] | the `with_*` methods of structs that may gain fields |
//!
//! ```
//! use ferrank_runtime::error::Error;
//! use ferrank_runtime::monitor::Monitor;
//!
//! let monitor = Monitor::default();
//! assert!(monitor.check().is_ok());
//! monitor.stop();
//! assert!(matches!(monitor.check(), Err(Error::Interrupted)));
//! ```

pub mod budget;
mod builder;
pub mod error;
pub mod files;
pub mod monitor;
pub mod pages;
pub mod random;
pub mod scratch;
pub mod threads;

pub use error::{Error, Result};
