//! A tree laid out for walking, and the codes it is walked by.

use rand::RngExt;

use crate::forest::grown::{CodeTest, Grown};
use crate::forest::view::View;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, Stream, stream};
use crate::store::bands::{BAND, Bands};
use crate::store::{Code, CodeStore, Slot, Stored};

/// A tree laid out for walking: its inner nodes, the first at the root. Ways lead to positions here, or
/// to leaves by number.
pub(super) struct Routes {
    pub(super) steps: Vec<Step>,
    pub(super) places: Places,
    /// Bits of the categories that go left, for tests of subsets.
    subsets: Vec<Vec<u64>>,
    has_subsets: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Place of the feature.
    pub(super) place: u32,
    /// Highest code that goes left, or with [`SUBSET`] the number of the subset; [`MISSING_LEFT`].
    test: u32,
    /// Where the left and the right way lead; [`LEAF`].
    left: u32,
    right: u32,
}

/// With the number of a leaf, in preorder.
pub(super) const LEAF: u32 = 1 << 31;
const SUBSET: u32 = 1 << 31;
const MISSING_LEFT: u32 = 1 << 30;

impl Routes {
    pub(super) fn new(tree: &Grown, store: &CodeStore) -> Self {
        let places = Places::new(tree, store);
        let mut subsets = Vec::new();
        let (mut inner, mut leaves) = (0..LEAF, LEAF..u32::MAX);
        let numbers = tree.nodes.iter().map(|node| if node.split.is_some() { inner.next() } else { leaves.next() });
        let numbers: Vec<u32> = numbers.map(|number| number.expect("fewer than 2^31 leaves")).collect();
        let steps = tree.nodes.iter().filter_map(|node| node.split.as_ref()).map(|split| {
            let test = match &split.test {
                CodeTest::Cut(cut) => u32::from(*cut),
                CodeTest::Subset(codes) => {
                    subsets.push(bits(codes));
                    (subsets.len() as u32 - 1) | SUBSET
                }
            };
            let missing = if split.missing_left { MISSING_LEFT } else { 0 };
            let place = places.of(store.slots[split.feature as usize]) as u32;
            let [left, right] = split.children.map(|child| numbers[child as usize]);
            Step { place, test: test | missing, left, right }
        });
        let steps = steps.collect();
        Routes { steps, places, has_subsets: !subsets.is_empty(), subsets }
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
        std::hint::select_unpredictable(left, step.left, step.right)
    }
}

fn bits(codes: &[u16]) -> Vec<u64> {
    let mut bits = vec![0u64; codes.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
    codes.iter().for_each(|&code| bits[usize::from(code / 64)] |= 1 << (code % 64));
    bits
}

/// Where in a row of codes each feature stands that the tree tests: the bands that hold one, in order.
pub(super) struct Places {
    /// Features that the tree tests, ascending.
    pub(super) features: Vec<u32>,
    /// Bands of one byte and of two.
    narrow: Vec<usize>,
    wide: Vec<usize>,
}

impl Places {
    fn new(tree: &Grown, store: &CodeStore) -> Self {
        let mut tested = vec![false; store.slots.len()];
        let splits = tree.nodes.iter().filter_map(|node| node.split.as_ref());
        splits.for_each(|split| tested[split.feature as usize] = true);
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
    /// The codes of `rows`, which ascend, for tree number `tree`.
    pub(super) fn new(places: &Places, store: &CodeStore, rows: &[u32], seed: u64, tree: u64) -> Self {
        let mut shuffled =
            Shuffled { narrow: gathered(&places.narrow, store, rows), wide: gathered(&places.wide, store, rows) };
        for &feature in &places.features {
            let random = &mut stream(seed, Purpose::Permutation, tree, u64::from(feature));
            let place = places.of(store.slots[feature as usize]);
            match place.checked_sub(places.narrow.len() * BAND) {
                None => shuffle(&mut shuffled.narrow, place, random),
                Some(slot) => shuffle(&mut shuffled.wide, slot, random),
            }
        }
        shuffled
    }
}

/// The codes of `rows` in `bands`.
fn gathered<C: Stored>(bands: &[usize], store: &CodeStore, rows: &[u32]) -> Bands<C> {
    let mut all = Bands::new(bands.len() * BAND, rows.len());
    for (to, &band) in all.iter_mut().zip(bands) {
        View::codes_of(store).band(band, rows, |position, codes| to[position] = *codes);
    }
    all
}

/// Shuffles the codes at `slot`, every order being as likely (Fisher and Yates).
fn shuffle<C: Code>(bands: &mut Bands<C>, slot: usize, random: &mut Stream) {
    let cells = bands.iter_mut().nth(slot / BAND).expect("a band for each slot");
    let lane = slot % BAND;
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
    pub(super) fn take(&mut self, places: &Places, store: &CodeStore, rows: &[u32], shuffled: &Shuffled, first: usize) {
        self.n_places = places.len();
        self.codes.resize(rows.len() * 2 * self.n_places, 0);
        let wide = places.narrow.len();
        let width = 2 * self.n_places;
        let codes = &mut self.codes;
        let mut put = |position: usize, band: usize, of_band: [u16; BAND]| {
            let start = position * width + band * BAND;
            codes[start..start + BAND].copy_from_slice(&of_band);
        };
        let view = View::codes_of(store);
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
