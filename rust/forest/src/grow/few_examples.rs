//! Plain nodes of few examples, which are most nodes of a fully grown tree.

use std::convert::Infallible;

use super::plain::NEAR;
use super::state::{Grower, Partition, PendingNode};
use crate::candidates::Candidate;
use crate::split::SplitConstraint;
use crate::split::few_examples::FewCut;
use crate::split::gain::GainFormula;
use crate::split::single;
use crate::tree_buffer::{CodeTest, NodeTest};
use crate::view::View;
use ferrank_data::store::Chunk;
use ferrank_runtime::random::{Purpose, stream};

impl Grower<'_> {
    /// Returns true if the node `pending` is to be divided by [`divide_few`](Self::divide_few).
    #[inline(always)]
    pub(super) fn has_few(&self, pending: &PendingNode) -> bool {
        let Grower { kernels, features, .. } = self;
        kernels.has_few(pending.examples.len(), features.are_known()) && !pending.by_row && features.are_numbers()
    }

    /// Divides the few examples of `node`. `None` if no feature varies, if the constraint forbids all cuts or if the gain is
    /// rounding noise.
    #[inline(never)]
    pub(super) fn divide_few(
        &mut self,
        view: View<'_>,
        chunk: &Chunk,
        pending: &PendingNode,
        node: single::Node,
    ) -> Option<Partition> {
        let Grower { context, pool, buffers, items, features, per_node, rows_per_feature, arch, row_bytes, .. } = self;
        let params = context.params;
        let range = pending.examples.clone();
        let (rows, pairs) = (&items.rows[range.clone()], &items.pairs[range.clone()]);
        let mut random = stream(params.seed, Purpose::Node, self.tree, pending.path);
        let few = &mut buffers.few;
        few.start(rows.len(), *rows_per_feature * (*per_node).min(pool.len()));
        if !pool.is_ordered() && chunk.rows * *row_bytes <= NEAR {
            pool.draw_in_turn(*per_node, &mut random, |feature, _| features.take_few(chunk, rows, feature, few));
        } else {
            let prefetch = |feature: u32| features.prefetch(chunk, rows, feature);
            let Ok(()) = pool.try_draw_prepared(*per_node, &mut random, prefetch, |feature| {
                Ok::<_, Infallible>(features.take_few(chunk, rows, feature, few))
            });
        }
        let constraint = SplitConstraint { min_leaf: params.min_samples_leaf as f64, missing: 0.0 };
        let found = few.best_cut(*arch, pairs, GainFormula::new(node, constraint), params.ties, &mut random)?;
        let FewCut { feature, gain, code, next, missing, goes_left } = found;
        let mut test = CodeTest::Cut(code);
        context.place_cut(&mut test, |_| next);
        let n_left = items.partition_pairs(range.clone(), &mut buffers.spill, |place, _| goes_left >> place & 1 == 1);
        let found = Candidate { gain, feature, test: NodeTest { test, missing } };
        self.plain_partition(view, pending, node, found, range.start + n_left)
    }
}
