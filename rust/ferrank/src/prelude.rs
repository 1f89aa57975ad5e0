//! The names that most programs need.
//!
//! ```
//! use ferrank::prelude::*;
//!
//! let settings = Settings::from(ReliefParams::default());
//! assert_eq!(settings.ranker().name(), "relief");
//! ```

pub use ferrank_data::schema::{Roles, Targets, Task};
pub use ferrank_data::source::{ChunkSource, TableSource};
pub use ferrank_forest::{ForestParams, Score};
pub use ferrank_ranking::{Accumulator, Ranker, Ranking, RunOptions};
pub use ferrank_relief::ReliefParams;
pub use ferrank_runtime::monitor::Monitor;
pub use ferrank_runtime::{Error, Result};

pub use crate::run::{accumulate, rank};
pub use crate::settings::Settings;
