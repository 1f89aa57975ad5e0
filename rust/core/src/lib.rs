//! Feature ranking with ensembles of predictive clustering trees, over Arrow record batches.

mod column;
mod intake;
mod rng;
pub mod error;
pub mod forest;
pub mod inspect;
pub mod monitor;
mod profile;
pub mod ranking;
pub mod schema;
pub mod source;
mod store;

pub use error::{Error, Result};
