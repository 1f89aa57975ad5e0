//! The choice of a node's test.
//!
//! ```text
//! relief: estimate all features from near rows; of the best that can be split, the split that separates them best
//! others: the best split of each feature, and of these the best
//! combined: both for all features that can be split; Relief chooses if they correlate by less than switch_at (Eq. 15)
//! ```

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::bins::{Bins, Candidate, Candidates};
use crate::criteria::{
    ClassCriterion, ClassMeasure, Criterion, LinearCriterion, MOST_COLUMNS, MeanCriterion, PairCriterion, TOLERANCE,
};
use crate::model::Design;
use crate::near::Near;
use crate::node_rows::{NodeRows, NodeTarget};
use crate::params::{Selector, TreeParams};
use crate::tree::Test;
use ferrank_data::schema::Task;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Fewest features whose estimates can agree: those of two always do, or never.
const FEWEST_CORRELATED: usize = 3;

/// A test, and how it was chosen.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) feature: usize,
    pub(crate) test: Test,
    pub(crate) missing_left: bool,
    pub(crate) n_missing: u64,
    /// The selector that chose; never a combined one.
    pub(crate) selector: Selector,
    /// Its estimate of the feature.
    pub(crate) estimate: f64,
    /// Of Relief's and the other selector's estimates, where both were computed and the features are not too few.
    pub(crate) correlation: Option<f64>,
}

/// The best split of a feature.
#[derive(Debug)]
struct BestSplit {
    test: Test,
    missing_left: bool,
    n_missing: u64,
    estimate: f64,
}

impl Choice {
    fn new(feature: usize, split: BestSplit, selector: Selector, correlation: Option<f64>) -> Self {
        let BestSplit { test, missing_left, n_missing, estimate } = split;
        Choice { feature, test, missing_left, n_missing, selector, estimate, correlation }
    }
}

/// Chooses the tests of nodes.
pub(crate) struct Chooser<'a> {
    pub(crate) params: &'a TreeParams,
    pub(crate) task: Task,
    pub(crate) monitor: &'a Monitor,
}

impl Chooser<'_> {
    /// The test of `node`, in a part of the tree whose tests `selector` chooses; `None` if no feature can be split.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn choose(&self, node: &NodeRows<'_>, selector: Selector) -> Result<Option<Choice>> {
        match (selector, selector.other()) {
            (Selector::Relief, _) => {
                let near = self.near(node)?;
                Ok(self.by_relief(node, &near, near.estimates.iter().copied().map(Some).collect(), None))
            }
            (_, Some(other)) => self.by_agreement(node, other),
            _ => Ok(by_estimates(self.best_splits(node, selector)?, selector, None)),
        }
    }

    fn near(&self, node: &NodeRows<'_>) -> Result<Near> {
        let (k, sigma) = self.params.neighborhood(self.task);
        Near::search(node, k, sigma, self.monitor)
    }

    /// Splits the best feature by near rows; those without an estimate are not asked.
    fn by_relief(
        &self,
        node: &NodeRows<'_>,
        near: &Near,
        mut estimates: Vec<Option<f64>>,
        correlation: Option<f64>,
    ) -> Option<Choice> {
        let criterion = PairCriterion { pairs: &near.pairs, n_rows: node.len() };
        while let Some((feature, estimate)) = best(&estimates) {
            if let Some(split) = self.best_split(node, feature, &criterion) {
                let split = BestSplit { estimate, ..split };
                return Some(Choice::new(feature, split, Selector::Relief, correlation));
            }
            estimates[feature] = None;
        }
        None
    }

    fn by_agreement(&self, node: &NodeRows<'_>, other: Selector) -> Result<Option<Choice>> {
        let near = self.near(node)?;
        let splits = self.best_splits(node, other)?;
        let both: Vec<(f64, f64)> = (near.estimates.iter().zip(&splits))
            .filter_map(|(&relief, split)| Some((relief, split.as_ref()?.estimate)))
            .collect();
        let correlation = correlation(&both);
        if correlation.is_some_and(|correlation| correlation >= self.params.switch_at) {
            return Ok(by_estimates(splits, other, correlation));
        }
        let estimates = near.estimates.iter().zip(&splits).map(|(&relief, split)| split.as_ref().map(|_| relief));
        Ok(self.by_relief(node, &near, estimates.collect(), correlation))
    }

    /// The best split of each feature by `selector`, which is neither Relief nor a combined one.
    fn best_splits(&self, node: &NodeRows<'_>, selector: Selector) -> Result<Vec<Option<BestSplit>>> {
        match (&node.target, ClassMeasure::from_selector(selector)) {
            (NodeTarget::Classes { codes, counts }, Some(measure)) => {
                self.of_features(node, &ClassCriterion { measure, codes, counts })
            }
            (NodeTarget::Numbers { centered, squares, .. }, _) => {
                let squares = *squares;
                let design = self.params.has_models().then(|| Design::new(node));
                match design.filter(|design| design.n_columns() <= MOST_COLUMNS) {
                    Some(design) => self.of_features(node, &LinearCriterion { centered, squares, design }),
                    None => self.of_features(node, &MeanCriterion { centered, squares }),
                }
            }
            (NodeTarget::Classes { .. }, None) => unreachable!("settings are checked against the task"),
        }
    }

    fn of_features(&self, node: &NodeRows<'_>, criterion: &impl Criterion) -> Result<Vec<Option<BestSplit>>> {
        let split = |feature: usize| {
            self.monitor.check()?;
            Ok(self.best_split(node, feature, criterion))
        };
        (0..node.table.features.len()).into_par_iter().map(split).collect()
    }

    /// The best split of a feature. Of equally good ones the most balanced counts, then the first.
    fn best_split(&self, node: &NodeRows<'_>, feature: usize, criterion: &impl Criterion) -> Option<BestSplit> {
        let bins = Bins::new(node, feature);
        let candidates = bins.candidates(self.params.min_samples_leaf);
        let (candidate, estimate) = match candidates {
            Candidates::Cuts(ref list) if list.len() > criterion.most_cuts() => zoom(&bins, list, criterion),
            _ => best_candidate(candidates.list().iter().copied().zip(criterion.estimates(&bins, &candidates))),
        }?;
        let test = bins.test(&candidates, candidate);
        let n_missing = bins.missing.len() as u64;
        Some(BestSplit { test, missing_left: candidate.missing_left, n_missing, estimate })
    }
}

fn best_candidate(scored: impl Iterator<Item = (Candidate, f64)>) -> Option<(Candidate, f64)> {
    scored.reduce(|best, next| {
        let better = next.1 > best.1 + TOLERANCE;
        let balanced = next.1 >= best.1 - TOLERANCE && next.0.smaller > best.0.smaller;
        if better || balanced { next } else { best }
    })
}

/// The best of some cuts, which are more than are tried at once: of some that are spread evenly, of some between those
/// beside the best of these, and so on until all in between are tried.
fn zoom(bins: &Bins, cuts: &[Candidate], criterion: &impl Criterion) -> Option<(Candidate, f64)> {
    let most = criterion.most_cuts();
    let (mut first, mut last) = (0, cuts.len() - 1);
    let mut tried: BTreeMap<usize, (Candidate, f64)> = BTreeMap::new();
    loop {
        let places = spread(first, last, most);
        let some = Candidates::Cuts(places.iter().map(|&place| cuts[place]).collect());
        let scored: Vec<(Candidate, f64)> = some.list().iter().copied().zip(criterion.estimates(bins, &some)).collect();
        let (best, _) = best_candidate(scored.iter().copied())?;
        tried.extend(places.iter().copied().zip(scored));
        if places.len() == last + 1 - first {
            return best_candidate(tried.into_values());
        }
        let at = places.iter().position(|&place| cuts[place] == best)?;
        (first, last) = (places[at.saturating_sub(1)], places[(at + 1).min(places.len() - 1)]);
    }
}

/// At most `most` numbers from `first` to `last`, evenly spread, both of these among them.
fn spread(first: usize, last: usize, most: usize) -> Vec<usize> {
    let count = (last + 1 - first).min(most);
    (0..count).map(|number| first + number * (last - first) / (count - 1).max(1)).collect()
}

fn by_estimates(splits: Vec<Option<BestSplit>>, selector: Selector, correlation: Option<f64>) -> Option<Choice> {
    let estimates: Vec<Option<f64>> = splits.iter().map(|split| split.as_ref().map(|split| split.estimate)).collect();
    let (feature, _) = best(&estimates)?;
    Some(Choice::new(feature, splits.into_iter().nth(feature)??, selector, correlation))
}

/// The largest estimate, of equal ones the first.
fn best(estimates: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = estimates.iter().enumerate().filter_map(|(feature, estimate)| Some((feature, (*estimate)?)));
    known.reduce(|best, next| if next.1 > best.1 + TOLERANCE { next } else { best })
}

/// The linear correlation (Robnik-Šikonja and Kononenko 1999 Eq. 15); `None` for too few pairs, or if one side is constant.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < FEWEST_CORRELATED {
        return None;
    }
    let n = pairs.len() as f64;
    let (x, y) = (pairs.iter().map(|pair| pair.0).sum::<f64>() / n, pairs.iter().map(|pair| pair.1).sum::<f64>() / n);
    let mean = |product: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(a, b)| product(a - x, b - y)).sum::<f64>() / n;
    let [xx, yy, xy] = [mean(&|a, _| a * a), mean(&|_, b| b * b), mean(&|a, b| a * b)];
    (xx.sqrt() > TOLERANCE && yy.sqrt() > TOLERANCE).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations() {
        assert_eq!(correlation(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(1.0));
        assert_eq!(correlation(&[(0.0, 1.0), (1.0, 3.0)]), None);
        assert_eq!(correlation(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), None);
        assert!(correlation(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)]).is_some_and(|found| found.abs() < 1e-15));
    }

    #[test]
    fn the_first_of_equal_features_is_best() {
        assert_eq!(best(&[None, Some(0.5), Some(0.5 + 1e-12), Some(0.4)]), Some((1, 0.5)));
        assert_eq!(best(&[None]), None);
    }

    #[test]
    fn numbers_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(0, 9, 4), [0, 3, 6, 9]);
        assert_eq!(spread(3, 5, 20), [3, 4, 5]);
        assert_eq!(spread(7, 7, 20), [7]);
    }
}
