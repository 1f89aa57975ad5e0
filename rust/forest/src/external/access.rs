//! What growth asks the parts of a data set for.

use ferrank_runtime::error::Result;

/// The parts of a data set.
pub trait Parts: Send + Sync {
    /// The sums that `request` asks for, of the rows of all parts.
    ///
    /// # Errors
    /// A part that does not answer.
    fn sums(&self, request: &[u8]) -> Result<Vec<f64>>;

    /// Collects the rows of the buckets that `request` asks for.
    ///
    /// # Errors
    /// A part that does not answer.
    fn collect(&self, request: &[u8]) -> Result<()>;

    /// Calls `each` with the records of bucket `number` of those collected last, part after part.
    ///
    /// # Errors
    /// A part that does not answer, and the errors of `each`.
    fn bucket(&self, number: usize, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// Calls `each` with what `request` asks for of some rows, part after part.
    ///
    /// # Errors
    /// A part that does not answer, and the errors of `each`.
    fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}
