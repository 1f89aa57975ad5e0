//! The interface of a rule of neighborhood.

use ferrank_ranking::Checkpoint;
use ferrank_runtime::error::Result;

use crate::plan::Plan;
use crate::prepared::Prepared;

/// Number of a block of queries, and its queries.
pub(crate) type Queries<'a> = (u64, &'a [u32]);

/// A rule of neighborhood.
pub(crate) trait Neighborhood {
    /// Bytes of a query while neighbors are searched and summed up, beside its values. Those of the largest block are the
    /// least memory of a run.
    fn query_bytes(&self, n_classes: usize, n_vectors: usize) -> usize;

    /// Adds the contribution of each of `blocks`, all of a run or some, to `checkpoint`, each once.
    ///
    /// # Errors
    /// Errors of reading and writing, and a requested stop.
    fn contribute(
        &self,
        data: &Prepared<'_>,
        plan: &Plan,
        blocks: &[Queries<'_>],
        checkpoint: &Checkpoint,
    ) -> Result<()>;

    /// The rows that [`contribute`](Neighborhood::contribute) reads for `queries`, themselves included, ascending.
    ///
    /// # Errors
    /// Errors of reading, and a requested stop.
    fn rows(&self, data: &Prepared<'_>, queries: &[u32]) -> Result<Vec<u32>>;
}
