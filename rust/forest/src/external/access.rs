//! What growth asks the parts of a data set for.

use ferrank_runtime::error::Result;

/// The parts of a data set.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_buffer::Buffer;
/// # use ferrank_data::{Result, intake::{Unlabelled, View}, profile::{Place, profile}};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_ranking::RunOptions;
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// use ferrank_forest::apart::{Apart, PartCodes, Parts};
/// # use ferrank_forest::{Coder, ForestParams, accumulate};
///
/// /// A data set of a single part. See [`Apart`] for several.
/// struct Single<'a> {
///     apart: &'a Apart,
///     codes: Buffer,
/// }
///
/// # impl Single<'_> {
/// #     fn part(&self) -> PartCodes {
/// #         PartCodes { codes: self.codes.clone(), shadows: None, first: 0 }
/// #     }
/// # }
/// impl Parts for Single<'_> {
///     fn sums(&self, request: &[u8]) -> Result<Vec<f64>> {
///         self.apart.sums(self.part(), request, 1, &Monitor::default())
///     }
///     fn collect(&self, request: &[u8], each: &mut dyn FnMut(&[&[u8]]) -> Result<()>) -> Result<()> {
///         let found = self.apart.collect(self.part(), request, 1, &Monitor::default())?;
///         each(&found.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>())
///     }
///     fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
///         each(&self.apart.rows(self.part(), request, 1, &Monitor::default())?)
///     }
/// }
/// # let (params, options) = (ForestParams::default().with_n_estimators(3), RunOptions::default());
/// # let all = source(batch)?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let profile = profile(view, params.max_bins, Place::default(), 1, &monitor)?;
/// # let coder = Coder::new(view, &params, &profile)?;
/// # let codes = Buffer::from(coder.code(&all, 1, &monitor)?);
/// # let apart = Apart::new(view, &params, &profile, vec![Coder::answers(codes.clone())?.into()])?;
/// let single = Single { apart: &apart, codes };
/// let found = apart.accumulate(&options, &single, &monitor)?.ranking()?;
/// let whole = accumulate(&all, &roles, &params, &options, &monitor)?.ranking()?;
/// assert_eq!(found.scores[0].importance, whole.scores[0].importance);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub trait Parts: Send + Sync {
    /// The sums that `request` asks for, of the rows of all parts.
    ///
    /// # Errors
    /// A part that does not answer.
    fn sums(&self, request: &[u8]) -> Result<Vec<f64>>;

    /// Calls `each` with the records of the buckets that `request` asks for, part after part: a piece for each bucket.
    ///
    /// # Errors
    /// A part that does not answer, and the errors of `each`.
    fn collect(&self, request: &[u8], each: &mut dyn FnMut(&[&[u8]]) -> Result<()>) -> Result<()>;

    /// Calls `each` with what `request` asks for of some rows, part after part.
    ///
    /// # Errors
    /// A part that does not answer, and the errors of `each`.
    fn rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// As [`Parts::rows`], for requests for few rows: an implementation may hold the rows of all parts at a time.
    ///
    /// # Errors
    /// As for [`Parts::rows`].
    fn few_rows(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.rows(request, each)
    }
}
