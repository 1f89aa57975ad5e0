//! Feature ranking with ensembles of predictive clustering trees and with the Relief family, over Arrow
//! record batches.

pub mod accumulate;
pub mod anytime;
pub mod budget;
mod column;
pub mod error;
pub mod forest;
pub mod hierarchy;
pub mod inspect;
mod intake;
pub mod knn;
pub mod labels;
pub mod monitor;
mod neighbors;
mod pages;
pub mod profile;
pub mod ranking;
pub mod relief;
mod rng;
pub mod run;
pub mod schema;
mod scratch;
pub mod source;
mod store;
pub mod stream;
mod threads;

pub use error::{Error, Result};
pub use intake::{Counts, Unlabelled};
