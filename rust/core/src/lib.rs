//! Feature ranking with ensembles of predictive clustering trees, over Arrow record batches.

mod column;
pub mod error;
pub mod forest;
pub mod inspect;
pub mod monitor;
pub mod ranking;
pub mod schema;
pub mod source;

pub use error::{Error, Result};
