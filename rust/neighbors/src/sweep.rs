//! Rows going past the queries of a panel.
//!
//! Bytes tell who may be near; where they do not serve, or leave too many to be measured one by one, the kernel
//! tells how far all are.

use super::by_bytes::ByBytes;
use super::by_kernel::ByKernel;
use super::levels::Scale;
use super::lists::{ExactDistance, Lists};
use super::panels::{LANES, Layout, Panel, Panels};
use super::scan::Scan;

/// Most panels of a piece: what is written down for a panel of queries stays in the cache.
const MOST_PANELS: usize = 512;
/// Most differences that are looked at without asking whether to stop.
const MOST_WORK: usize = 1 << 30;
/// Groups of a piece have so many rows, the least of each lane, for each that is asked for.
pub(super) const SPREAD: usize = 2;
/// Most panels that go by without a look at bytes after looks in vain.
const MOST_SKIPPED: u32 = 31;

/// Reused from panel to panel.
#[derive(Default)]
pub(crate) struct Sweep {
    by_bytes: ByBytes,
    by_kernel: ByKernel,
    outlook: Outlook,
}

/// Whether looking at bytes pays.
#[derive(Debug, Default)]
struct Outlook {
    /// Panels that go by after the last look in vain.
    skipped: u32,
    /// How many of them are still to come.
    left: u32,
}

impl Outlook {
    /// Whether to look now.
    fn is_good(&mut self) -> bool {
        let good = self.left == 0;
        self.left = self.left.saturating_sub(1);
        good
    }

    fn was(&mut self, good: bool) {
        self.skipped = if good { 0 } else { (2 * self.skipped + 1).min(MOST_SKIPPED) };
        self.left = self.skipped;
    }
}

/// Rows of one class that go past at once.
pub(crate) struct Piece<'a> {
    /// Number of the first panel.
    first: usize,
    panels: Vec<Panel<'a>>,
    /// The most of all of them.
    slack: f32,
}

impl<'a> Piece<'a> {
    /// All of `rows`.
    pub(super) fn of(layout: &'a Layout, rows: &'a Panels) -> Vec<Self> {
        let most = MOST_WORK / (LANES * LANES) / (layout.whole.len() + layout.lacking.len()).max(1);
        let most = most.clamp(1, MOST_PANELS);
        let panels: Vec<Panel<'a>> = (0..rows.len()).map(|number| rows.panel(layout, number)).collect();
        let pieces = panels.chunk_by(|a, b| a.class == b.class).flat_map(|class| class.chunks(most));
        let mut first = 0;
        let piece = |panels: &[Panel<'a>]| {
            let slack = panels.iter().flat_map(|panel| panel.coarse.slack).copied().fold(0.0, f32::max);
            let piece = Piece { first, panels: panels.to_vec(), slack };
            first += panels.len();
            piece
        };
        pieces.map(piece).collect()
    }
}

/// A panel of queries, and the rows that go past.
#[derive(Clone, Copy)]
pub(super) struct Past<'a, G> {
    pub(super) layout: &'a Layout,
    pub(super) context: G,
    pub(super) number: usize,
    pub(super) one: Panel<'a>,
    /// Number of the first of the others.
    pub(super) first: usize,
    pub(super) others: &'a [Panel<'a>],
    /// The most slack that one of them has.
    pub(super) slack: f32,
}

impl Sweep {
    /// Offers the rows of `piece` to the queries in panel `one`, which is number `number`; where rows have bytes,
    /// `scale` fits their distances.
    pub(crate) fn run(
        &mut self,
        (scan, scale): (Scan<'_>, Option<Scale>),
        context: impl ExactDistance,
        (number, one): (usize, Panel<'_>),
        piece: &Piece<'_>,
        lists: &mut Lists,
    ) {
        let Piece { first, panels: others, slack } = piece;
        let past = Past { layout: scan.layout, context, number, one, first: *first, others, slack: *slack };
        if let Some(scale) = scale
            && self.outlook.is_good()
        {
            let good = self.by_bytes.run(scan.arch, (scale, scan.mutual), past, lists);
            self.outlook.was(good);
            if good {
                return;
            }
        }
        self.by_kernel.run(scan.arch, past, lists);
    }
}
