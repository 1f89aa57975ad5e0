//! Feature ranking with ensembles of predictive clustering trees, over Arrow record batches.

mod accumulate;
mod column;
pub mod error;
pub mod forest;
pub mod inspect;
mod intake;
pub mod monitor;
mod profile;
pub mod ranking;
mod rng;
pub mod schema;
pub mod source;
mod store;

pub use error::{Error, Result};
