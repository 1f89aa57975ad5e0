//! A tree laid out for walking, and the codes it is walked by.

use arrow_buffer::ScalarBuffer;
use rand::RngExt;

use super::OutOfBag;
use crate::error::Result;
use crate::forest::grow::Ground;
use crate::forest::grown::{CodeTest, Grown, GrownSplit};
use crate::forest::view::View;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, Stream, stream};
use crate::scratch::Scratch;
use crate::store::bands::{BAND, Bands};
use crate::store::{Code, CodeStore, Slot, Stored};

/// A tree laid out for walking: its inner nodes, the first at the root. Ways lead to positions here, or
/// to leaves by number.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) steps: Vec<Step>,
    pub(super) places: Places,
    n_leaves: u32,
    /// Bits of the categories that go left, for tests of subsets.
    subsets: Vec<Vec<u64>>,
    has_subsets: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Place of the feature; the feature itself until the tree is complete.
    pub(super) place: u32,
    /// Highest code that goes left, or with [`SUBSET`] the number of the subset; [`MISSING_LEFT`].
    test: u32,
    /// Where the left and the right way lead; [`LEAF`].
    ways: [u32; 2],
}

/// A way of a step that is still to lead somewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    step: u32,
    side: usize,
}

/// With the number of a leaf, in preorder.
pub(super) const LEAF: u32 = 1 << 31;
const SUBSET: u32 = 1 << 31;
const MISSING_LEFT: u32 = 1 << 30;

impl Routes {
    fn lead(&mut self, link: Option<Link>, to: u32) {
        if let Some(Link { step, side }) = link {
            self.steps[step as usize].ways[side] = to;
        }
    }

    pub(super) fn add_split(&mut self, link: Option<Link>, split: &GrownSplit) -> [Link; 2] {
        let test = match &split.test {
            CodeTest::Cut(cut) => u32::from(*cut),
            CodeTest::Subset(codes) => {
                self.subsets.push(bits(codes));
                self.has_subsets = true;
                (self.subsets.len() as u32 - 1) | SUBSET
            }
        };
        let missing = if split.missing_left { MISSING_LEFT } else { 0 };
        let step = self.steps.len() as u32;
        self.steps.push(Step { place: split.feature, test: test | missing, ways: [LEAF; 2] });
        self.lead(link, step);
        [0, 1].map(|side| Link { step, side })
    }

    pub(super) fn add_leaf(&mut self, link: Option<Link>) {
        self.lead(link, self.n_leaves | LEAF);
        self.n_leaves += 1;
    }

    pub(super) fn add_grown(&mut self, link: Option<Link>, grown: &Grown) {
        let mut links = vec![link];
        for node in &grown.nodes {
            // In preorder the node that the last link leads to is the next.
            let link = links.pop().flatten();
            match &node.split {
                Some(split) => links.extend(self.add_split(link, split).map(Some).into_iter().rev()),
                None => self.add_leaf(link),
            }
        }
    }

    /// Finds the places of the features, once the tree is complete.
    pub(super) fn place(&mut self, store: &CodeStore) {
        self.places = Places::new(&self.steps, store);
        for step in &mut self.steps {
            step.place = self.places.of(store.slots[step.place as usize]) as u32;
        }
    }

    /// Where `code` goes from `step`.
    #[inline(always)]
    pub(super) fn next(&self, step: Step, code: u16) -> u32 {
        let left = if code == MISSING_U16 {
            step.test & MISSING_LEFT != 0
        } else if self.has_subsets && step.test & SUBSET != 0 {
            let bits = &self.subsets[(step.test & !(SUBSET | MISSING_LEFT)) as usize];
            bits.get(usize::from(code / 64)).is_some_and(|word| word >> (code % 64) & 1 == 1)
        } else {
            u32::from(code) <= step.test & !MISSING_LEFT
        };
        // No branch could be foretold.
        std::hint::select_unpredictable(left, step.ways[0], step.ways[1])
    }
}

fn bits(codes: &[u16]) -> Vec<u64> {
    let mut bits = vec![0u64; codes.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
    codes.iter().for_each(|&code| bits[usize::from(code / 64)] |= 1 << (code % 64));
    bits
}

/// Where in a row of codes each feature stands that the tree tests: the bands that hold one, in order.
#[derive(Default)]
pub(super) struct Places {
    /// Features that the tree tests, ascending.
    pub(super) features: Vec<u32>,
    /// Bands of one byte and of two.
    narrow: Vec<usize>,
    wide: Vec<usize>,
}

impl Places {
    /// Those of the features in `steps`.
    fn new(steps: &[Step], store: &CodeStore) -> Self {
        let mut tested = vec![false; store.slots.len()];
        steps.iter().for_each(|step| tested[step.place as usize] = true);
        let features: Vec<u32> = (0..).zip(tested).filter(|&(_, tested)| tested).map(|(feature, _)| feature).collect();
        let bands = |of: fn(Slot) -> Option<usize>| {
            let mut bands: Vec<usize> =
                features.iter().filter_map(|&feature| Some(of(store.slots[feature as usize])? / BAND)).collect();
            bands.sort_unstable();
            bands.dedup();
            bands
        };
        let narrow = bands(|slot| if let Slot::Narrow(slot) = slot { Some(slot) } else { None });
        let wide = bands(|slot| if let Slot::Wide(slot) = slot { Some(slot) } else { None });
        Places { features, narrow, wide }
    }

    /// Places in a row.
    pub(super) fn len(&self) -> usize {
        (self.narrow.len() + self.wide.len()) * BAND
    }

    /// The place of the feature in `slot`, which is tested.
    pub(super) fn of(&self, slot: Slot) -> usize {
        let (first, bands, slot) = match slot {
            Slot::Narrow(slot) => (0, &self.narrow, slot),
            Slot::Wide(slot) => (self.narrow.len(), &self.wide, slot),
        };
        (first + bands.binary_search(&(slot / BAND)).expect("a feature that is tested")) * BAND + slot % BAND
    }
}

/// Codes of some rows, each feature's in an order of its own.
pub(super) struct Shuffled {
    narrow: Bands<u8>,
    wide: Bands<u16>,
}

impl Shuffled {
    /// The codes of the rows `out_of_bag` for tree number `tree`; in files, if there is a `scratch` folder.
    pub(super) fn new(
        places: &Places,
        ground: Ground<'_>,
        out_of_bag: &OutOfBag,
        tree: u64,
        scratch: Option<&Scratch>,
    ) -> Result<Self> {
        let Ground { store, params, .. } = ground;
        let by_slot = |wanted: fn(Slot) -> Option<usize>| {
            let features = places.features.iter();
            features.filter_map(|&feature| Some((wanted(store.slots[feature as usize])?, feature))).collect()
        };
        let narrow: Vec<_> = by_slot(|slot| if let Slot::Narrow(slot) = slot { Some(slot) } else { None });
        let wide: Vec<_> = by_slot(|slot| if let Slot::Wide(slot) = slot { Some(slot) } else { None });
        let random = |feature: u32| stream(params.seed, Purpose::Permutation, tree, u64::from(feature));
        Ok(Shuffled {
            narrow: shuffled(&places.narrow, &narrow, ground, out_of_bag, &random, scratch)?,
            wide: shuffled(&places.wide, &wide, ground, out_of_bag, &random, scratch)?,
        })
    }
}

/// The codes in `bands` of the rows `out_of_bag`; the features, each with its slot, are shuffled.
fn shuffled<C: Stored>(
    bands: &[usize],
    features: &[(usize, u32)],
    ground: Ground<'_>,
    out_of_bag: &OutOfBag,
    random: &impl Fn(u32) -> Stream,
    scratch: Option<&Scratch>,
) -> Result<Bands<C>> {
    let mut done = Vec::with_capacity(bands.len());
    for &band in bands {
        let mut cells = Vec::with_capacity(out_of_bag.len());
        out_of_bag.by_block(|base, rows| {
            ground.monitor.check()?;
            View::codes_of(ground.store, base).band(band, rows, |_, codes: &[C; BAND]| cells.push(*codes));
            Ok(())
        })?;
        for &(slot, feature) in features.iter().filter(|(slot, _)| slot / BAND == band) {
            ground.monitor.check()?;
            shuffle(&mut cells, slot % BAND, &mut random(feature));
        }
        done.push(match scratch {
            None => ScalarBuffer::from(cells.into_flattened()),
            Some(scratch) => scratch.values(std::iter::once(cells.as_flattened()))?,
        });
    }
    Ok(Bands::mapped(out_of_bag.len(), done))
}

/// Shuffles the codes of a feature, every order being as likely (Fisher and Yates).
fn shuffle<C: Code>(cells: &mut [[C; BAND]], lane: usize, random: &mut Stream) {
    for last in (1..cells.len()).rev() {
        let other = random.random_range(0..=last as u32) as usize;
        let code = cells[other][lane];
        cells[other][lane] = std::mem::replace(&mut cells[last][lane], code);
    }
}

/// Codes of a block of rows, row by row, since a walk reads a few of many features of one row: first
/// the row's own, then the shuffled ones. Missing is [`MISSING_U16`] for all features.
#[derive(Default)]
pub(super) struct Rows {
    n_places: usize,
    codes: Vec<u16>,
}

impl Rows {
    /// Takes the codes of `rows`, which ascend, and the shuffled ones from number `first` on.
    pub(super) fn take(&mut self, places: &Places, view: View<'_>, rows: &[u32], shuffled: &Shuffled, first: usize) {
        self.n_places = places.len();
        self.codes.resize(rows.len() * 2 * self.n_places, 0);
        let wide = places.narrow.len();
        let width = 2 * self.n_places;
        let codes = &mut self.codes;
        let mut put = |position: usize, band: usize, of_band: [u16; BAND]| {
            let start = position * width + band * BAND;
            codes[start..start + BAND].copy_from_slice(&of_band);
        };
        for (number, &band) in places.narrow.iter().enumerate() {
            view.band(band, rows, |position, codes: &[u8; BAND]| put(position, number, codes.map(widen)));
        }
        for (number, &band) in (wide..).zip(&places.wide) {
            view.band(band, rows, |position, codes: &[u16; BAND]| put(position, number, *codes));
        }
        let first_shuffled = self.n_places / BAND;
        let numbers = first..first + rows.len();
        for (number, cells) in (first_shuffled..).zip(shuffled.narrow.iter()) {
            cells[numbers.clone()]
                .iter()
                .enumerate()
                .for_each(|(position, codes)| put(position, number, codes.map(widen)));
        }
        for (number, cells) in (first_shuffled + wide..).zip(shuffled.wide.iter()) {
            cells[numbers.clone()].iter().enumerate().for_each(|(position, codes)| put(position, number, *codes));
        }
    }

    /// Where the codes of `row` start.
    pub(super) fn start_of(&self, row: usize) -> usize {
        row * 2 * self.n_places
    }

    /// The code at `place` of the row whose codes start at `start`.
    #[inline(always)]
    pub(super) fn own(&self, start: usize, place: u32) -> u16 {
        self.codes[start + place as usize]
    }

    /// The shuffled one.
    #[inline(always)]
    pub(super) fn shuffled(&self, start: usize, place: u32) -> u16 {
        self.codes[start + self.n_places + place as usize]
    }
}

#[inline(always)]
fn widen(code: u8) -> u16 {
    if code == u8::MISSING { MISSING_U16 } else { u16::from(code) }
}
