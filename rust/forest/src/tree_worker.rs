//! What a thread needs to grow trees: a bag, a grower and their buffers.

use pulp::Arch;

use crate::bag::Bag;
use crate::companion_scores;
use crate::companions;
use crate::context::GrowContext;
use crate::grow::Grower;
use crate::kept::{EnsembleKeeper, LeafPredictor};
use crate::model_error::RowSample;
use crate::oob::{OobContext, OutOfBagRows};
use crate::scores::{SplitScores, score_size};
use crate::tree_buffer::TreeBuffer;
use ferrank_ranking::Contribution;
use ferrank_runtime::error::Result;

/// Grows and scores trees, one after the other, on one thread.
pub(crate) struct TreeWorker<'a> {
    context: GrowContext<'a>,
    bag: Bag,
    grower: Grower<'a>,
    /// What takes the trees, and computes what their leaves predict.
    keeper: Option<(&'a EnsembleKeeper<'a>, LeafPredictor<'a>)>,
}

impl<'a> TreeWorker<'a> {
    /// A worker whose trees predict the rows of `sample`.
    pub(crate) fn new(context: GrowContext<'a>, sample: Option<&'a RowSample<'a>>) -> Self {
        let grower = Grower::new(context, Arch::new()).track(sample);
        TreeWorker { context, bag: Bag::default(), grower, keeper: None }
    }

    /// The same, whose trees `keeper` takes.
    pub(crate) fn keep(mut self, keeper: Option<&'a EnsembleKeeper<'a>>) -> Self {
        self.keeper = keeper.map(|keeper| (keeper, keeper.predictor(self.context.space)));
        self.grower = match &self.keeper {
            Some((_, predictor)) if predictor.reads_sums() => self.grower.with_leaf_sums(),
            Some(_) => self.grower.with_members(),
            None => self.grower,
        };
        self
    }

    /// Draws the bag of tree number `tree`.
    fn draw(&mut self, tree: u64) {
        self.context.bags().take(tree, &mut self.bag);
    }

    /// Grows tree number `tree`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn grow(&mut self, tree: u64) -> Result<&TreeBuffer> {
        self.draw(tree);
        self.grower.grow(&self.bag, tree)
    }

    /// Grows tree number `tree` and its companions and scores the features. Scores that read out-of-bag rows need `oob`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn contribution(&mut self, oob: Option<&OobContext<'_>>, tree: u64) -> Result<Contribution> {
        let mut vectors = self.tree(oob, tree)?;
        vectors.extend(self.grower.tracked.vectors());
        for companion in self.context.companions(tree) {
            vectors.extend(companion_scores::kept(self.tree(oob, companion)?, companion, self.context));
        }
        Ok(vectors)
    }

    /// Grows tree number `tree`, which may be a companion, and scores the features.
    fn tree(&mut self, oob: Option<&OobContext<'_>>, tree: u64) -> Result<Contribution> {
        let GrowContext { params, monitor, .. } = self.context;
        monitor.check()?;
        self.draw(tree);
        let scores = SplitScores::new(params, score_size(self.context));
        let is_tracked = self.grower.tracked.is_enabled() && !companions::is_companion(tree);
        let keeper = self.keeper.as_mut().filter(|_| !companions::is_companion(tree));
        let out_of_bag =
            (is_tracked || oob.is_some()).then(|| OutOfBagRows::outside(self.context.bags(), tree, &self.bag));
        self.grower.tracked.start(out_of_bag.as_ref().filter(|_| is_tracked));
        let keeps_nodes = oob.is_some() || keeper.is_some();
        let (mut scores, grown) = self.grower.score(&self.bag, tree, scores, keeps_nodes)?;
        if let (Some(oob), Some(rows)) = (oob, &out_of_bag) {
            let mut complete = oob.tree();
            complete.add_tree(None, grown, &oob.targets);
            complete.finish(self.context.store);
            scores.on_tree(&oob.view(tree, &complete, rows, None))?;
        }
        if let Some((keeper, predictor)) = keeper {
            keeper.add(tree, grown, predictor)?;
        }
        Ok(scores.harvest())
    }
}
