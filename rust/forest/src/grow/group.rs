//! Several features of a large node, searched in one pass over the examples.

use std::ops::Range;

use pulp::Arch;

use super::feature_codes::{extremes, highest_known};
use super::state::{Buffers, Grower, TestSource};
use crate::candidates::{Candidate, SplitCandidates};
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::split::missing::replace;
use crate::split::random_test::random_sided_cut;
use crate::tree_buffer::MissingSide;
use crate::view::View;
use ferrank_data::store::{Code, Slot};
use ferrank_runtime::random::Stream;

impl Grower<'_> {
    /// Adds `feature` to the features that are searched together, and searches them when no more fit. Returns true if
    /// `feature` varies in the node.
    pub(super) fn add_to_group(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        feature: u32,
        random: &mut Stream,
        candidates: &mut SplitCandidates<TestSource>,
    ) -> bool {
        let Grower { context, arch, criterion, items, narrow, wide, buffers, features, .. } = self;
        let rows = &items.rows[range.clone()];
        let member = GroupMember { context: *context, arch: *arch, criterion, feature };
        let (varies, is_full) = match features.slot(feature) {
            Slot::Narrow(slot) => member.join(narrow.take(view, slot, rows), buffers, random),
            Slot::Wide(slot) => member.join(wide.take(view, slot, rows), buffers, random),
            Slot::Sparse(number) => member.join(wide.take_sparse(view, number, rows), buffers, random),
        };
        if is_full {
            self.judge_group(view, range, candidates);
        }
        varies
    }

    /// Searches the features added so far.
    pub(super) fn judge_group(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        candidates: &mut SplitCandidates<TestSource>,
    ) {
        let constraint = self.constraint();
        let examples = self.items.examples(range, view);
        let Buffers { thresholds, multi_feature, lefts, node, .. } = &mut self.buffers;
        let thresholds = thresholds.judge(self.arch, &self.criterion, examples, node, constraint, lefts);
        let best = multi_feature.best_cuts(self.arch, &self.criterion, examples, node, constraint, Some(lefts));
        for (feature, cut) in thresholds.chain(best) {
            candidates.push(Candidate { gain: cut.gain, feature, test: TestSource::Alone(cut.test()) });
        }
    }
}

/// A feature that is searched together with others.
struct GroupMember<'a> {
    context: GrowContext<'a>,
    arch: Arch,
    criterion: &'a Criterion,
    feature: u32,
}

impl GroupMember<'_> {
    /// Adds the feature to the others, with a random cut if cuts are random. Returns true if the feature varies in the
    /// node, and true if no more features fit.
    fn join<C: Code>(self, codes: &mut [C], buffers: &mut Buffers, random: &mut Stream) -> (bool, bool) {
        let GroupMember { context, arch, criterion, feature } = self;
        let (low, high) = extremes(arch, codes);
        if low >= high {
            return (false, false);
        }
        let is_full = match context.values(feature) {
            Some(values) => {
                let has_missing = high == C::MISSING;
                let high = if has_missing { highest_known(arch, codes) } else { high };
                let ends = (low.index(), high.index());
                let (cut, missing) = random_sided_cut(values, ends, has_missing, random);
                if missing == MissingSide::Left {
                    replace(codes, C::MISSING, low);
                }
                buffers.thresholds.take(arch, feature, codes, cut, missing)
            }
            None => {
                let n_codes = context.store.codings[feature as usize].n_codes();
                buffers.multi_feature.take(criterion, feature, codes, n_codes, high == C::MISSING)
            }
        };
        (true, is_full)
    }
}
