//! A tree laid out for walking, and the codes it is walked by.

use super::OutOfBag;
use super::order::Orders;
use crate::error::Result;
use crate::forest::grow::Ground;
use crate::forest::grown::{CodeTest, Grown, GrownSplit};
use crate::forest::view::View;
use crate::profile::MISSING_U16;
use crate::rng::{Purpose, mix};
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

/// The codes of the rows out of the bag, each feature's in an order of its own.
pub(super) enum Shuffled<'a> {
    /// In memory the code of another row is as near as any.
    Drawn(Drawn<'a>),
    /// In scratch files they are laid out in the order in which they are asked for.
    Kept { narrow: Bands<u8>, wide: Bands<u16> },
}

/// Codes looked up in the store.
pub(super) struct Drawn<'a> {
    places: &'a Places,
    store: &'a CodeStore,
    /// Chunk, and row in it, of each row out of the bag.
    rows: Vec<(u32, u32)>,
    orders: Orders,
    /// By place.
    keys: Vec<u64>,
}

impl<'a> Shuffled<'a> {
    /// The codes of the rows `out_of_bag` for tree number `tree`; in files, if there is a `scratch` folder.
    pub(super) fn new(
        places: &'a Places,
        ground: Ground<'a>,
        out_of_bag: &OutOfBag,
        tree: u64,
        scratch: Option<&Scratch>,
    ) -> Result<Self> {
        let Ground { store, params, .. } = ground;
        let orders = Orders::of(out_of_bag.len() as u32);
        let mut keys = vec![0; places.len()];
        for &feature in &places.features {
            let key = mix([params.seed, Purpose::Permutation as u64, tree, u64::from(feature)]);
            keys[places.of(store.slots[feature as usize])] = key;
        }
        let Some(scratch) = scratch else {
            return Ok(Shuffled::Drawn(Drawn { places, store, rows: located(store, out_of_bag), orders, keys }));
        };
        let (of_narrow, of_wide) = keys.split_at(places.narrow.len() * BAND);
        Ok(Shuffled::Kept {
            narrow: kept(&places.narrow, of_narrow, ground, out_of_bag, orders, scratch)?,
            wide: kept(&places.wide, of_wide, ground, out_of_bag, orders, scratch)?,
        })
    }

    /// Adds to `out` the shuffled code at each of `places` for row number `number` out of the bag.
    #[inline(always)]
    pub(super) fn take(&self, number: usize, places: impl Iterator<Item = u32>, out: &mut Vec<u16>) {
        match self {
            Shuffled::Drawn(drawn) => out.extend(places.map(|place| drawn.at(number, place as usize))),
            Shuffled::Kept { narrow, wide } => out.extend(places.map(|place| {
                let (band, lane) = (place as usize / BAND, place as usize % BAND);
                match band.checked_sub(narrow.len()) {
                    None => widen(narrow.band(band)[number][lane]),
                    Some(band) => wide.band(band)[number][lane],
                }
            })),
        }
    }
}

impl Drawn<'_> {
    #[inline(always)]
    fn at(&self, number: usize, place: usize) -> u16 {
        let (chunk, row) = self.rows[self.orders.at(self.keys[place], number as u32) as usize];
        let chunk = &self.store.chunks[chunk as usize];
        let (band, lane) = (place / BAND, place % BAND);
        match band.checked_sub(self.places.narrow.len()) {
            None => widen(chunk.narrow.band(self.places.narrow[band])[row as usize][lane]),
            Some(band) => chunk.wide.band(self.places.wide[band])[row as usize][lane],
        }
    }
}

/// Where in `store` the rows `out_of_bag` are.
fn located(store: &CodeStore, out_of_bag: &OutOfBag) -> Vec<(u32, u32)> {
    let (mut chunk, mut end) = (0, store.chunks[0].rows);
    let mut located = Vec::with_capacity(out_of_bag.len());
    located.extend(out_of_bag.iter().map(|row| {
        while row >= end {
            chunk += 1;
            end += store.chunks[chunk].rows;
        }
        (chunk as u32, (row - store.firsts[chunk]) as u32)
    }));
    located
}

/// The codes in `bands` of the rows `out_of_bag`, those of each feature in the order of its key.
fn kept<C: Stored>(
    bands: &[usize],
    keys: &[u64],
    ground: Ground<'_>,
    out_of_bag: &OutOfBag,
    orders: Orders,
    scratch: &Scratch,
) -> Result<Bands<C>> {
    let mut done = Vec::with_capacity(bands.len());
    for (&band, keys) in bands.iter().zip(keys.chunks_exact(BAND)) {
        let mut cells = Vec::with_capacity(out_of_bag.len());
        out_of_bag.by_block(|base, rows| {
            ground.monitor.check()?;
            View::codes_of(ground.store, base).band(band, rows, |_, codes: &[C; BAND]| cells.push(*codes));
            Ok(())
        })?;
        let mut codes = Vec::with_capacity(cells.len());
        for (lane, &key) in keys.iter().enumerate() {
            ground.monitor.check()?;
            codes.clear();
            codes.extend(cells.iter().map(|cell| cell[lane]));
            for (place, cell) in (0..).zip(&mut cells) {
                cell[lane] = codes[orders.at(key, place) as usize];
            }
        }
        done.push(scratch.values(std::iter::once(cells.as_flattened()))?);
    }
    Ok(Bands::mapped(out_of_bag.len(), done))
}

/// Codes of a block of rows, row by row, since a walk reads a few of many features of one row. Missing is
/// [`MISSING_U16`] for all features.
#[derive(Default)]
pub(super) struct Rows {
    n_places: usize,
    codes: Vec<u16>,
}

impl Rows {
    /// Takes the codes of `rows`, which ascend.
    pub(super) fn take(&mut self, places: &Places, view: View<'_>, rows: &[u32]) {
        self.n_places = places.len();
        self.codes.resize(rows.len() * self.n_places, 0);
        let (width, codes) = (self.n_places, &mut self.codes);
        let mut put = |position: usize, band: usize, of_band: [u16; BAND]| {
            let start = position * width + band * BAND;
            codes[start..start + BAND].copy_from_slice(&of_band);
        };
        for (number, &band) in places.narrow.iter().enumerate() {
            view.band(band, rows, |position, codes: &[u8; BAND]| put(position, number, codes.map(widen)));
        }
        for (number, &band) in (places.narrow.len()..).zip(&places.wide) {
            view.band(band, rows, |position, codes: &[u16; BAND]| put(position, number, *codes));
        }
    }

    /// Where the codes of `row` start.
    pub(super) fn start_of(&self, row: usize) -> usize {
        row * self.n_places
    }

    /// The code at `place` of the row whose codes start at `start`.
    #[inline(always)]
    pub(super) fn at(&self, start: usize, place: u32) -> u16 {
        self.codes[start + place as usize]
    }
}

#[inline(always)]
fn widen(code: u8) -> u16 {
    if code == u8::MISSING { MISSING_U16 } else { u16::from(code) }
}
