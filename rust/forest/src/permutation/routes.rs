//! A tree laid out for walking.

use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer};
use ferrank_data::store::{Code, CodeStore, Slot};
use ferrank_runtime::pages::prefetch;

/// A tree laid out for walking: its inner nodes, the first at the root. Ways lead to positions here, or
/// to leaves by number.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) steps: Vec<Step>,
    pub(super) places: Places,
    n_leaves: u32,
    /// What goes left, for tests of subsets.
    subsets: Vec<Subset>,
}

/// Categories that go left.
struct Subset {
    /// A bit for each code.
    codes: Vec<u64>,
    missing: bool,
}

impl Subset {
    fn has<C: Code>(&self, code: C) -> bool {
        if code == C::MISSING {
            return self.missing;
        }
        let code = code.index();
        self.codes.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Place of the feature; the feature itself until the tree is complete.
    pub(super) place: u32,
    /// The highest code that goes left; where missing values go left, with [`MISSING_LEFT`] and one more. With
    /// [`SUBSET`] the number of the subset.
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
/// Added to a code in the upper half, which makes missing 0, so that it is the first to go left.
const MISSING_LEFT: u32 = 1 << 16;

impl Routes {
    fn lead(&mut self, link: Option<Link>, to: u32) {
        if let Some(Link { step, side }) = link {
            self.steps[step as usize].ways[side] = to;
        }
    }

    pub(super) fn add_split(&mut self, link: Option<Link>, split: &BufferedSplit) -> [Link; 2] {
        let test = match &split.test {
            CodeTest::Cut(cut) if split.missing_left => (u32::from(*cut) + 1) | MISSING_LEFT,
            CodeTest::Cut(cut) => u32::from(*cut),
            CodeTest::Subset(codes) => {
                self.subsets.push(Subset { codes: bits(codes), missing: split.missing_left });
                (self.subsets.len() as u32 - 1) | SUBSET
            }
        };
        let step = self.steps.len() as u32;
        self.steps.push(Step { place: split.feature, test, ways: [LEAF; 2] });
        self.lead(link, step);
        [0, 1].map(|side| Link { step, side })
    }

    pub(super) fn add_leaf(&mut self, link: Option<Link>) {
        self.lead(link, self.n_leaves | LEAF);
        self.n_leaves += 1;
    }

    pub(super) fn add_grown(&mut self, link: Option<Link>, grown: &TreeBuffer) {
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

    /// Whether some tests are of subsets.
    pub(super) fn has_subsets(&self) -> bool {
        !self.subsets.is_empty()
    }

    /// Asks the memory for the step that `node` is. For a leaf it asks in vain, as no branch could be foretold.
    #[inline(always)]
    pub(super) fn prefetch(&self, node: u32) {
        let step = (node & !LEAF) as usize;
        prefetch(&self.steps[step.min(self.steps.len() - 1)..][..1]);
    }

    /// Where `code` goes from `step`; `SUBSETS` says whether some tests are of subsets, and lets the compiler do
    /// without a branch if none is.
    #[inline(always)]
    pub(super) fn next<C: Code, const SUBSETS: bool>(&self, step: Step, code: C) -> u32 {
        let left = if SUBSETS && step.test & SUBSET != 0 {
            self.subsets[(step.test & !SUBSET) as usize].has(code)
        } else {
            // Missing is the highest number of the type, so that one more is 0.
            let code = (code.index() as u16).wrapping_add((step.test >> 16) as u16);
            C::from_u16(code) <= C::from_u16(step.test as u16)
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

/// Where the codes of each feature stand that the tree tests: first those of one byte, then those of two.
#[derive(Default)]
pub(super) struct Places {
    /// The feature at each place.
    pub(super) features: Vec<u32>,
    /// Slots of the features of one byte and of two, ascending.
    pub(super) narrow: Vec<usize>,
    pub(super) wide: Vec<usize>,
}

impl Places {
    /// Those of the features in `steps`.
    fn new(steps: &[Step], store: &CodeStore) -> Self {
        let mut tested = vec![false; store.slots.len()];
        steps.iter().for_each(|step| tested[step.place as usize] = true);
        let (mut places, mut of_two) = (Places::default(), Vec::new());
        for ((feature, slot), _) in (0..).zip(&store.slots).zip(tested).filter(|(_, tested)| *tested) {
            match *slot {
                Slot::Narrow(slot) => {
                    places.features.push(feature);
                    places.narrow.push(slot);
                }
                Slot::Wide(slot) => {
                    of_two.push(feature);
                    places.wide.push(slot);
                }
            }
        }
        places.features.extend(of_two);
        places
    }

    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    /// The place of the feature in `slot`, which is tested.
    fn of(&self, slot: Slot) -> usize {
        let place = match slot {
            Slot::Narrow(slot) => self.narrow.binary_search(&slot),
            Slot::Wide(slot) => self.wide.binary_search(&slot).map(|place| self.narrow.len() + place),
        };
        place.expect("a feature that is tested")
    }
}
