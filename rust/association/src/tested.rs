//! The targets of a data set, and their sums by the codes of features.

use std::sync::Arc;

use ferrank_data::store::{CodeStore, TargetColumn};

use crate::answers::Answer;
use crate::tables::Table;

/// The targets of a store, as they are tested.
#[derive(Debug)]
pub(crate) struct Tested {
    pub(crate) answers: Vec<Answer>,
    pub(crate) targets: Arc<Vec<TargetColumn>>,
}

impl Tested {
    pub(crate) fn new(store: &CodeStore) -> Self {
        let targets = store.targets.iter().enumerate();
        let answers = targets.flat_map(|(target, column)| Answer::of(target, column)).collect();
        Tested { answers, targets: store.targets.clone() }
    }

    /// The sums of each target over the rows of `part`, the first of which is `first`.
    pub(crate) fn tables(&self, part: &CodeStore, feature: usize, first: usize) -> Vec<Table> {
        let table = |answer: &Answer| Table::new(part, feature, (answer, &self.targets[answer.target]), first);
        self.answers.iter().map(table).collect()
    }

    /// The width of each table, and how many sums it has.
    pub(crate) fn sizes(&self, store: &CodeStore, feature: usize) -> Vec<(usize, usize)> {
        let size = |answer: &Answer| {
            let width = answer.kind.width();
            (width, (store.codings[feature].n_codes() + 1) * width)
        };
        self.answers.iter().map(size).collect()
    }

    pub(crate) fn n_sums(&self, store: &CodeStore, feature: usize) -> usize {
        self.sizes(store, feature).iter().map(|(_, n)| n).sum()
    }
}
