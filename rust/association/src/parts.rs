//! A data set in parts whose codes stay where they are: the sums of parts add up to those of all rows.

use std::ops::Range;

use arrow_buffer::Buffer;
use ferrank_data::intake::{View, numbered};
use ferrank_data::profile::Profile;
use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
use ferrank_ranking::relevance::Relevance;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::threads::pool;
use rayon::prelude::*;

use crate::design::Design;
use crate::params::AssociationParams;
use crate::tables::Table;
use crate::tested::Tested;
use crate::{Single, ranker, single};

/// What every machine knows of a data set in parts: the targets of all rows.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use arrow_buffer::Buffer;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
///
/// # let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// # let (parts, all) = ([source(batch.slice(0, 30))?, source(batch.slice(30, 50))?], source(batch)?);
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// use ferrank_association::{Apart, AssociationParams, accumulate};
/// use ferrank_data::Result;
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::profile::{Place, profile};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_data::store::{Codebook, Keep, Part};
/// use ferrank_runtime::monitor::Monitor;
///
/// // Each part is coded where its rows are; its targets go to all machines.
/// let (params, view) = (AssociationParams::default().with_partial(true), View::new(&all, &roles, Unlabelled::Error));
/// let (problem, profile) = (view.problem()?, profile(view, params.max_bins, Place::default(), 1, &monitor)?);
/// let book = Codebook::new(&profile, &problem, false, "table")?;
/// let (mut codes, mut answers): (Vec<Buffer>, Vec<Buffer>) = (Vec::new(), Vec::new());
/// for part in &parts {
///     let intake = View::new(part, &roles, Unlabelled::Error).intake(&problem, &monitor);
///     let mut all = Vec::new();
///     Part::new(&intake, &book, intake.count()?, Keep::Memory)?.write(&book, &mut all)?;
///     codes.push(all.into());
///     answers.push(Part::without_codes(codes[codes.len() - 1].clone())?.into());
/// }
///
/// // The sums of parts add up.
/// let apart = Apart::new(view, &params, &profile, answers)?;
/// let mut sums = Vec::new();
/// for features in apart.ranges(1 << 20) {
///     let mut of_parts = Vec::new();
///     for (part, first) in codes.iter().zip([0, 30]) {
///         of_parts.push(apart.sums(part.clone(), first, features.clone(), 1, &monitor)?);
///     }
///     sums.extend(of_parts[0].iter().zip(&of_parts[1]).map(|(a, b)| a + b));
/// }
///
/// // So do those of linear models, in which more and more features are given.
/// let (mut number, mut last) = (0, None);
/// while let Some(given) = apart.next_given(&sums, number, last.as_ref(), &monitor)? {
///     let mut of_parts = Vec::new();
///     for (part, first) in codes.iter().zip([0, 30]) {
///         of_parts.push(apart.model(part.clone(), first, &given, 1, &monitor)?);
///     }
///     let sums = of_parts[0].iter().zip(&of_parts[1]).map(|(a, b)| a + b).collect();
///     (number, last) = (number + 1, Some((given, sums)));
/// }
/// let found = apart.accumulate(&sums, last.as_ref(), &monitor)?.ranking()?;
/// let whole = accumulate(&all, &roles, &params, &Default::default(), &monitor)?.ranking()?;
/// assert_eq!(found.scores[0].importance, whole.scores[0].importance);
/// assert_eq!(found.relevance, whole.relevance);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Apart {
    identity: Identity,
    params: AssociationParams,
    book: Codebook,
    /// How features are coded; without codes.
    store: CodeStore,
    /// The targets of all rows.
    tested: Tested,
}

/// The features that are given to a linear model, and its sums over all rows.
pub type LinearModel = (Vec<usize>, Vec<i64>);

impl Apart {
    /// A data set with the columns of `view`, the `profile` of all rows, and the targets of all parts, in order, as bytes of
    /// [`Part::without_codes`].
    ///
    /// # Errors
    /// An error that describes the invalid setting or role; [`Error::Data`] if a part is damaged.
    pub fn new(view: View<'_>, params: &AssociationParams, profile: &Profile, answers: Vec<Buffer>) -> Result<Self> {
        let problem = view.problem()?;
        let rows = profile.counts.taking_part("the data set", params.unlabelled)?;
        params.validate(&DataShape::new(&problem).with_rows(rows))?;
        numbered(rows, "the data set", "tests of association")?;
        let identity = Identity::new(params.clone(), &problem, profile);
        let book = Codebook::new(profile, &problem, false, "the data set")?;
        let parts = answers.into_iter().map(|part| Part::read_without_codes(&book, part)).collect::<Result<_>>()?;
        let store = CodeStore::without_codes(book.clone(), parts)?;
        if store.rows as u64 != rows {
            return Err(Error::Data(format!("the parts have {} rows, the profile {rows}", store.rows)));
        }
        let tested = Tested::new(&store);
        Ok(Apart { identity, params: params.clone(), book, store, tested })
    }

    /// The features in ranges, the sums of each of which take at most about `bytes`.
    pub fn ranges(&self, bytes: usize) -> Vec<Range<usize>> {
        let n_features = self.store.codings.len();
        let (mut ranges, mut first, mut size) = (Vec::new(), 0, 0);
        for feature in 0..n_features {
            let own = size_of::<i64>() * self.tested.n_sums(&self.store, feature);
            if feature > first && size + own > bytes {
                ranges.push(first..feature);
                (first, size) = (feature, 0);
            }
            size += own;
        }
        ranges.push(first..n_features);
        ranges
    }

    /// The sums of the rows of a part whose codes are `codes`, the first of which is `first`.
    ///
    /// # Errors
    /// Damaged bytes; [`Error::Interrupted`].
    pub fn sums(
        &self,
        codes: Buffer,
        first: usize,
        features: Range<usize>,
        threads: usize,
        monitor: &Monitor,
    ) -> Result<Vec<i64>> {
        check(features.end <= self.store.codings.len(), "features: there are fewer")?;
        pool(threads)?.install(|| {
            let part = self.part(codes, first)?;
            let sums = features.into_par_iter().map(|feature| {
                monitor.check()?;
                Ok(self.tested.tables(&part, feature, first).into_iter().flat_map(|table| table.sums).collect())
            });
            Ok(sums.collect::<Result<Vec<Vec<i64>>>>()?.concat())
        })
    }

    /// The rows of a part whose codes are `codes`, the first of which is `first`.
    fn part(&self, codes: Buffer, first: usize) -> Result<CodeStore> {
        let part = Part::read(&self.book, codes)?;
        let part = CodeStore::from_parts(self.book.clone(), vec![part], Keep::Memory)?;
        let (rows, of_rows) = (part.rows, self.store.rows);
        check(first + rows <= of_rows, format!("a part of {rows} rows from {first} on, of {of_rows}"))?;
        Ok(part)
    }

    /// The features that are given to linear model number `number`: those found so far, from the `sums` of all
    /// [`ranges`](Self::ranges) and the `last` model, each added up over all parts. `None` if there are no more, or models enough.
    ///
    /// # Errors
    /// [`Error::Data`] if the sums are of other data; [`Error::Interrupted`].
    pub fn next_given(
        &self,
        sums: &[i64],
        number: usize,
        last: Option<&LinearModel>,
        monitor: &Monitor,
    ) -> Result<Option<Vec<usize>>> {
        if number >= self.params.rounds() {
            return Ok(None);
        }
        let (_, found) = self.found(sums, last, monitor)?;
        let given = last.map_or(&[][..], |(given, _)| given);
        Ok(Design::next(&self.store, &self.tested, &found, given).map(|design| design.given))
    }

    /// The sums of a linear model in which the features of `given` are given, over the rows of a part whose codes are `codes`, the
    /// first of which is `first`.
    ///
    /// # Errors
    /// Damaged bytes; [`Error::Interrupted`].
    pub fn model(
        &self,
        codes: Buffer,
        first: usize,
        given: &[usize],
        threads: usize,
        monitor: &Monitor,
    ) -> Result<Vec<i64>> {
        let design = self.design(given)?;
        pool(threads)?.install(|| design.sums(&self.part(codes, first)?, &self.tested, first, monitor))
    }

    fn design(&self, given: &[usize]) -> Result<Design> {
        check(given.iter().all(|&feature| feature < self.store.codings.len()), "given: there are fewer features")?;
        let design = Design::new(&self.store, &self.tested, given.to_vec());
        design.ok_or_else(|| Error::Data("there is no linear model of these targets".into()))
    }

    /// What tests say about each feature by itself, and the p-values with the last of the linear models.
    fn found(&self, sums: &[i64], last: Option<&LinearModel>, monitor: &Monitor) -> Result<(Single, Relevance)> {
        let single = self.single(sums, monitor)?;
        let Some((given, of_model)) = last else {
            let relevance = single.relevance.clone();
            return Ok((single, relevance));
        };
        let design = self.design(given)?;
        if of_model.len() != design.n_sums() {
            return Err(Error::Data(format!("{} sums of a model, of {}", of_model.len(), design.n_sums())));
        }
        let relevance = single.with_partial(&design, of_model);
        Ok((single, relevance))
    }

    /// The contribution of all rows, from the `sums` of all [`ranges`](Self::ranges) and the last linear model, each added up over
    /// all parts.
    ///
    /// # Errors
    /// [`Error::Data`] if the sums are of other data.
    pub fn accumulate(&self, sums: &[i64], last: Option<&LinearModel>, monitor: &Monitor) -> Result<Accumulator> {
        let (single, relevance) = self.found(sums, last, monitor)?;
        let checkpoint = Checkpoint::open(self.identity.clone(), None, None, monitor)?;
        checkpoint.add(0, ranker::contribution(single.strengths, relevance))?;
        checkpoint.close()
    }

    /// What tests say about each feature by itself, from the `sums` of all ranges.
    fn single(&self, sums: &[i64], monitor: &Monitor) -> Result<Single> {
        let tested = &self.tested;
        let n_sums: Vec<usize> = (0..self.store.codings.len()).map(|f| tested.n_sums(&self.store, f)).collect();
        if sums.len() != n_sums.iter().sum::<usize>() {
            return Err(Error::Data(format!("{} sums, of {}", sums.len(), n_sums.iter().sum::<usize>())));
        }
        let starts: Vec<usize> = n_sums.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n))).collect();
        let tables = |feature: usize| {
            let mut rest = &sums[starts[feature]..starts[feature] + n_sums[feature]];
            let table = |width: usize, n: usize| {
                let (own, others) = rest.split_at(n);
                rest = others;
                Table { sums: own.to_vec(), width }
            };
            tested
                .sizes(&self.store, feature)
                .into_iter()
                .scan(table, |table, (width, n)| Some(table(width, n)))
                .collect()
        };
        single(&self.store, tested, &self.params, monitor, tables)
    }
}
