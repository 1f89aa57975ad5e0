//! Relief's estimates as one weighted sum over pairs of near rows, for rows that are held in memory.
//!
//! ReliefF (Robnik-Šikonja and Kononenko 1999 figure 3) is W = Σ w · diff over pairs of a query and one of its nearest
//! rows: w is −1/(m k) for hits and P(C) / (1 − P(own class)) / (m k) for misses. RReliefF (figure 4) is the same sum once
//! the probability that targets differ is known, with w = d · (d_Y / N_dC − (1 − d_Y) / (m − N_dC)). So the weights serve
//! every function of a pair that can stand for a feature, such as whether a cut separates the two rows: trees need the
//! estimates of all cuts of a feature from the neighbors of a node. All rows are queries, and there are no errors.
//!
//! Memory: 16 bytes a pair beside the search; n k pairs for numbers, up to n k n_classes for classes.

use pulp::Arch;

use crate::estimates::NEGLIGIBLE;
use crate::neighborhoods::rank_shares;
use crate::plan::of_others;
use ferrank_neighbors::nearest::{NearestParams, NeighborLists, Search};
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::space::Space;
use ferrank_neighbors::space_panels::layout_of;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Most bytes of lower bounds of all pairs of rows, which make the search faster.
const BOUND_BYTES: usize = 64 << 20;

/// Two near rows, and what a unit of difference between them adds to an estimate.
///
/// ```
/// use ferrank_relief::near_pairs::NearPair;
///
/// let pairs = [NearPair { query: 0, row: 1, weight: -0.5 }, NearPair { query: 0, row: 2, weight: 0.5 }];
/// let values = [0.0f64, 0.0, 1.0];
/// let difference = |pair: &NearPair| (values[pair.query as usize] - values[pair.row as usize]).abs();
/// assert_eq!(pairs.iter().map(|pair| pair.weight * difference(pair)).sum::<f64>(), 0.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearPair {
    /// The row whose neighbors are searched.
    pub query: u32,
    /// One of its nearest rows.
    pub row: u32,
    /// Negative where the targets agree.
    pub weight: f64,
}

/// A search for the near pairs of all `rows`, which are numbered from 0.
///
/// ```
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::space::{Shape, Space};
/// use ferrank_relief::near_pairs::{NearPair, NearPairs};
/// use ferrank_runtime::monitor::Monitor;
///
/// // Feature 0 tells the class of four rows, feature 1 does not.
/// let mut rows = Rows::with_capacity(4, 2);
/// rows.add(0..4).copy_from_slice(&[0.0, 0.0, 0.0, 0.5, 1.0, 0.25, 1.0, 1.0]);
/// let space = Space::new(vec![Shape::Numeric; 2], vec![None, None], vec![0, 0, 1, 1], 2);
/// let search = NearPairs { rows: &rows, space: &space, k: 1, sigma: None, monitor: &Monitor::default() };
/// let pairs: Vec<NearPair> = search.of_classes()?;
/// let difference = |pair: &NearPair, i: usize| (rows.row(pair.query)[i] - rows.row(pair.row)[i]).abs();
/// let importance = |feature| pairs.iter().map(|pair| pair.weight * difference(pair, feature)).sum::<f64>();
/// assert_eq!([importance(0), importance(1)], [1.0, -0.3125]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct NearPairs<'a> {
    /// The values of the rows.
    pub rows: &'a Rows,
    /// How they differ, and their classes where these are the target.
    pub space: &'a Space,
    /// Neighbors of each row, in classification of each class.
    pub k: usize,
    /// Width of the rank weights; `None`: equal weights.
    pub sigma: Option<f64>,
    /// Takes progress and the request to stop.
    pub monitor: &'a Monitor,
}

impl NearPairs<'_> {
    /// The pairs of ReliefF: hits, and misses by the share of their class among the rows.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn of_classes(self) -> Result<Vec<NearPair>> {
        let n = self.n_rows() as f64;
        let mut priors = vec![0.0; self.space.n_classes];
        self.space.classes.iter().for_each(|&class| priors[usize::from(class)] += 1.0 / n);
        self.pairs(|query, class, _, share| {
            let own = self.space.class(query);
            share / n * if class == own { -1.0 } else { priors[class] / of_others(&priors, own) }
        })
    }

    /// The pairs of RReliefF for a numeric target whose values, scaled to [0, 1], are `targets`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn of_numbers(self, targets: &[f64]) -> Result<Vec<NearPair>> {
        let apart = |a: u32, b: u32| (targets[a as usize] - targets[b as usize]).abs();
        let mut pairs = self.pairs(|_, _, _, share| share)?;
        let all = self.n_rows() as f64;
        let differing: f64 = pairs.iter().map(|pair| pair.weight * apart(pair.query, pair.row)).sum();
        let given = |condition: f64| if condition > NEGLIGIBLE * all { 1.0 / condition } else { 0.0 };
        let [differing, agreeing] = [given(differing), given(all - differing)];
        for pair in &mut pairs {
            let apart = apart(pair.query, pair.row);
            pair.weight *= apart * differing - (1.0 - apart) * agreeing;
        }
        Ok(pairs)
    }

    fn n_rows(&self) -> usize {
        self.rows.numbers.len()
    }

    /// The pairs by query, with the weight of (query, class of the row, row, share of its rank).
    fn pairs(&self, weight: impl Fn(u32, usize, u32, f64) -> f64) -> Result<Vec<NearPair>> {
        let lists = self.search()?;
        let longest = rank_shares(self.k.min(self.n_rows()), self.sigma);
        let mut pairs = Vec::new();
        for query in 0..self.n_rows() as u32 {
            for (class, rows) in lists.of(query).enumerate() {
                let shorter = (rows.len() != longest.len()).then(|| rank_shares(rows.len(), self.sigma));
                let shares = shorter.as_ref().unwrap_or(&longest);
                pairs.extend(rows.iter().zip(shares).map(|(&row, &share)| {
                    let weight = weight(query, class, row, share);
                    NearPair { query, row, weight }
                }));
            }
        }
        Ok(pairs)
    }

    fn search(&self) -> Result<NeighborLists> {
        let layout = layout_of(self.space).for_rows(self.n_rows());
        let k = self.k.min(self.n_rows());
        let params = NearestParams { k, unordered: if self.sigma.is_none() { k } else { 0 } };
        let search = Search { space: self.space, layout: &layout, params, monitor: self.monitor, arch: Arch::new() };
        search.of_all(self.rows, BOUND_BYTES)
    }
}
