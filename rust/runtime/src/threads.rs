//! The threads of a run: a pool of its own, so that nested runs and forks do not share one.

use crate::error::{Error, Result};

/// A pool of `threads` threads.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("ferrank-{number}"))
        .build()
        .map_err(|error| {
            Error::Resource(format!(
                "n_jobs: {threads} threads cannot be started ({error}); use fewer, or raise the limit of the system"
            ))
        })
}
