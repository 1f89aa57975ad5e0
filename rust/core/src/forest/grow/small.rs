//! Nodes of few examples: most splits of a fully grown tree, each with so little to do that whatever
//! is done by node or by feature, not by example, takes most of the time.
//!
//! One dense component, row weights all 1; all features numeric, and known for all rows.

use rand::RngExt;

use super::{Frame, Ground, Grower, Known, Parted};
use crate::error::Result;
use crate::forest::contest::Found;
use crate::forest::grow::LEAST_GAIN;
use crate::forest::grown::GrownSplit;
use crate::forest::params::Ensemble;
use crate::forest::split::Room;
use crate::forest::split::batch::{Batch, BatchCut};
use crate::forest::split::single;
use crate::forest::view::View;
use crate::profile::Scale;
use crate::rng::{Purpose, stream};
use crate::store::{Chunk, Slot, Stored};

/// Where a small node finds a feature.
pub(super) struct Find<'a> {
    slot: Slot,
    /// What its codes stand for, where cuts are at random.
    values: Option<&'a [f64]>,
}

/// Where each feature is found, unless some are not of a kind that small nodes take.
pub(super) fn finds(ground: Ground<'_>) -> Option<Vec<Find<'_>>> {
    if ground.params.by_target {
        return None;
    }
    let store = ground.store;
    let finds = store.codings.iter().zip(&store.slots).map(|(coding, &slot)| match &coding.scale {
        Scale::Numeric(cuts) if !coding.has_missing => {
            let at_random = ground.params.ensemble == Ensemble::ExtraTrees;
            Some(Find { slot, values: at_random.then_some(&cuts.values[..]) })
        }
        _ => None,
    });
    finds.collect()
}

impl Grower<'_> {
    /// Makes a node of `frame`; if it is split, its children go to the stack.
    pub(super) fn small_node(&mut self, view: View<'_>, frame: Frame, stack: &mut Vec<Frame>) -> Result<bool> {
        let range = frame.examples.clone();
        self.check(range.len())?;
        let node = match frame.sums {
            Known::Single(node) => node,
            _ => single::Node::new(&self.items.pairs[range.clone()]),
        };
        let number = self.number(&frame, node.examples, node.examples);
        if !self.may_split(view, &frame, node.examples) {
            return Ok(false);
        }
        let Some(cut) = self.small_cut(view, &frame, node) else { return Ok(false) };
        let Some(parted) = self.part_small(&frame, node, cut) else { return Ok(false) };
        self.split(&frame, number, node.examples, parted, stack);
        Ok(true)
    }

    fn small_cut(&mut self, view: View<'_>, frame: &Frame, node: single::Node) -> Option<BatchCut> {
        let Grower { ground, pool, buffers, items, finds, per_node, arch, .. } = self;
        let finds = &finds.as_ref()?[..];
        let chunk = view.chunk()?;
        let params = ground.params;
        let rows = &items.rows[frame.examples.clone()];
        let pairs = &items.pairs[frame.examples.clone()];
        let mut random = stream(params.seed, Purpose::Node, self.tree, frame.path);
        let batch = &mut buffers.batch;
        batch.start(rows.len(), (*per_node).min(pool.len()));
        pool.draw(*per_node, &mut random, |feature, random| {
            let Find { slot, values } = &finds[feature as usize];
            let varies = match *slot {
                Slot::Narrow(slot) => take::<u8>(batch, chunk, slot, rows, feature, *values),
                Slot::Wide(slot) => take::<u16>(batch, chunk, slot, rows, feature, *values),
            };
            if varies && values.is_some() {
                batch.set_share(random.random());
            }
            varies
        });
        if batch.is_empty() {
            return None;
        }
        let room = Room { min_leaf: params.min_samples_leaf as f64, missing: 0.0 };
        match params.ensemble {
            Ensemble::ExtraTrees => batch.judge_random(*arch, pairs, node, room),
            Ensemble::RandomForest | Ensemble::Bagging => batch.judge(*arch, pairs, node, room),
        }
        for (candidate, (feature, gain)) in batch.judged().enumerate() {
            buffers.batch_contest.enter(Found { gain, feature, test: candidate });
        }
        let winner = buffers.batch_contest.winner(params.ties, &mut random)?;
        Some(batch.cut(winner.test))
    }

    fn part_small(&mut self, frame: &Frame, node: single::Node, cut: BatchCut) -> Option<Parted> {
        let Grower { ground, buffers, items, .. } = self;
        let BatchCut { feature, key, gain } = cut;
        if gain <= LEAST_GAIN {
            return None;
        }
        let keys = buffers.batch.keys(feature)?;
        let rows = &mut items.rows[frame.examples.clone()];
        let pairs = &mut items.pairs[frame.examples.clone()];
        let n_left = keys.iter().filter(|&&at| at <= key).count();
        let spill = &mut buffers.spill;
        spill.rows.clear();
        spill.rows.extend_from_slice(rows);
        spill.pairs.clear();
        spill.pairs.extend_from_slice(pairs);
        let (mut next_left, mut next_right) = (0, n_left);
        for ((&at, &row), &pair) in keys.iter().zip(&spill.rows).zip(&spill.pairs) {
            let goes_left = at <= key;
            let to = if goes_left { next_left } else { next_right };
            next_left += usize::from(goes_left);
            next_right += usize::from(!goes_left);
            rows[to] = row;
            pairs[to] = pair;
        }
        let left = single::Node::new(&pairs[..n_left]);
        let right = single::Node { examples: node.examples - left.examples, sum: node.sum - left.sum };
        let missing_left = left.examples >= right.examples;
        let split = GrownSplit { feature, test: ground.test_of(&cut), missing_left, gain, children: [0; 2] };
        Some(Parted { split, middle: frame.examples.start + n_left, sums: [left, right].map(Known::Single) })
    }
}

#[inline]
fn take<C: Stored>(
    batch: &mut Batch,
    chunk: &Chunk,
    slot: usize,
    rows: &[u32],
    feature: u32,
    values: Option<&[f64]>,
) -> bool {
    let column = C::of(chunk).column(slot);
    batch.add(feature, |keys| {
        let first = column.at(rows[0] as usize);
        let mut varies = false;
        for (key, &row) in keys.iter_mut().zip(rows) {
            let code = column.at(row as usize);
            varies |= code != first;
            *key = match values {
                Some(values) => values[code.index()],
                None => code.index() as f64,
            };
        }
        varies
    })
}
