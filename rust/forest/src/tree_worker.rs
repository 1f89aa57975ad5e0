//! What a thread needs to grow trees: a bag, a grower and their buffers.

use std::cell::RefCell;

use pulp::Arch;

use crate::bag::Bag;
use crate::companion_scores;
use crate::companions;
use crate::context::GrowContext;
use crate::grow::Grower;
use crate::kept::{EnsembleKeeper, LeafPredictor};
use crate::model_error::RowSample;
use crate::oob::{LeafOfRow, Node, OobContext, OutOfBagRows, PackedTree};
use crate::router::Router;
use crate::scores::{SplitScores, score_size};
use crate::tree_buffer::TreeBuffer;
use crate::view::View;
use ferrank_ranking::Contribution;
use ferrank_runtime::error::Result;

/// Grows and scores trees, one after the other, on one thread.
pub(crate) struct TreeWorker<'a> {
    context: GrowContext<'a>,
    bag: Bag,
    grower: Grower<'a>,
    keeper: Option<TreeKeeper<'a>>,
}

/// What takes the trees of a thread.
struct TreeKeeper<'a> {
    keeper: &'a EnsembleKeeper<'a>,
    predictor: LeafPredictor<'a>,
    /// The leaves of the out-of-bag rows of the current tree.
    leaf_of_row: RefCell<LeafOfRow>,
    router: Router,
}

impl<'a> TreeWorker<'a> {
    /// A worker whose trees predict the rows of `sample`.
    pub(crate) fn new(context: GrowContext<'a>, sample: Option<&'a RowSample<'a>>) -> Self {
        let grower = Grower::new(context, Arch::new()).track(sample);
        TreeWorker { context, bag: Bag::default(), grower, keeper: None }
    }

    /// The same, whose trees `keeper` takes.
    pub(crate) fn keep(mut self, keeper: Option<&'a EnsembleKeeper<'a>>) -> Self {
        self.grower = self.grower.with_members(keeper.is_some());
        self.keeper = keeper.map(|keeper| TreeKeeper {
            keeper,
            predictor: keeper.predictor(),
            leaf_of_row: RefCell::default(),
            router: Router::default(),
        });
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
        let mut scores = SplitScores::new(params, score_size(self.context));
        let is_tracked = self.grower.tracked.is_enabled() && !companions::is_companion(tree);
        let keeper = self.keeper.as_mut().filter(|_| !companions::is_companion(tree));
        let is_complete = oob.is_some() || keeper.is_some();
        let out_of_bag =
            (is_tracked || is_complete).then(|| OutOfBagRows::outside(self.context.bags(), tree, &self.bag));
        self.grower.tracked.start(out_of_bag.as_ref().filter(|_| is_tracked));
        let Some(rows) = out_of_bag.filter(|_| is_complete) else {
            return Ok(self.grower.score(&self.bag, tree, scores)?.harvest());
        };
        let grown = self.grower.grow(&self.bag, tree)?;
        scores.add_splits(grown);
        if let Some(keeper) = &keeper {
            keeper.leaf_of_row.borrow_mut().reset(self.context.store.rows);
        }
        if let Some(oob) = oob {
            let mut complete = oob.tree();
            complete.add_tree(None, grown, &oob.targets);
            complete.finish(self.context.store);
            let noted = keeper.as_ref().map(|keeper| &keeper.leaf_of_row);
            scores.on_tree(&oob.view(tree, &complete, &rows, None).noting(noted))?;
        }
        if let Some(keeper) = keeper {
            keeper.take(self.context, tree, grown, &rows)?;
        }
        Ok(scores.harvest())
    }
}

impl TreeKeeper<'_> {
    /// Takes tree number `tree`, of which these rows are out of bag. They are routed down the tree unless a score has
    /// recorded their leaves, which makes growth with `mdi_oob` a tenth faster.
    fn take(&mut self, context: GrowContext<'_>, tree: u64, grown: &TreeBuffer, rows: &OutOfBagRows) -> Result<()> {
        let leaf_of_row = self.leaf_of_row.get_mut();
        if !self.keeper.has_oob() {
            return self.keeper.add(tree, grown, None, &mut self.predictor);
        }
        if leaf_of_row.n_known() < rows.len() {
            let mut packed = PackedTree::default();
            packed.add_tree(None, grown);
            packed.finish(context.store);
            self.router.items.take_once(rows.iter().map(|row| row as u32));
            packed.apply(View::from_codes(context.store, 0), &mut self.router, |node, reached| {
                context.check_large(reached.range.len())?;
                if let Node::Leaf(leaf) = node {
                    leaf_of_row.note(leaf, reached.rows());
                }
                Ok(())
            })?;
        }
        self.keeper.add(tree, grown, Some((rows, leaf_of_row)), &mut self.predictor)
    }
}
