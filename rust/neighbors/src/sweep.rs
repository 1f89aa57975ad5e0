//! Rows going past the queries of a panel.
//!
//! Bytes tell who may be near; where they do not serve, or leave too many to be measured one by one, the kernel
//! tells how far all are.

use pulp::Arch;

use super::by_bytes::ByBytes;
use super::by_kernel::ByKernel;
use super::layout::Layout;
use super::lists::{ExactDistance, Lists};
use super::pairwise_bounds::PairwiseBounds;
use super::panels::Panel;
use super::quantized::Scale;
use super::tile::{Piece, Tile};

/// Most panels that go by without a look at bytes after looks in vain.
const MOST_SKIPPED: u32 = 31;

/// Reused from panel to panel.
#[derive(Default)]
pub(crate) struct Sweep {
    by_bytes: ByBytes,
    by_kernel: ByKernel,
    backoff: Backoff,
}

/// Whether looking at bytes pays.
#[derive(Debug, Default)]
struct Backoff {
    /// Panels that go by after the last look in vain.
    skipped: u32,
    /// How many of them are still to come.
    left: u32,
}

impl Backoff {
    /// Whether to look now.
    fn is_good(&mut self) -> bool {
        let good = self.left == 0;
        self.left = self.left.saturating_sub(1);
        good
    }

    fn record(&mut self, good: bool) {
        self.skipped = if good { 0 } else { (2 * self.skipped + 1).min(MOST_SKIPPED) };
        self.left = self.skipped;
    }
}

impl Sweep {
    /// Offers the rows of `piece` to the queries in panel `one`, which is number `number`; where rows have bytes,
    /// `scale` fits their distances.
    pub(crate) fn run(
        &mut self,
        (layout, arch): (&Layout, Arch),
        bounds: Option<(Scale, Option<&PairwiseBounds>)>,
        context: impl ExactDistance,
        (number, one): (usize, Panel<'_>),
        piece: &Piece<'_>,
        lists: &mut Lists,
    ) {
        let Piece { first, panels: others, quantization_error } = piece;
        let past =
            Tile { layout, context, number, one, first: *first, others, quantization_error: *quantization_error };
        if let Some(bounds) = bounds
            && self.backoff.is_good()
        {
            let good = self.by_bytes.run(arch, bounds, past, lists);
            self.backoff.record(good);
            if good {
                return;
            }
        }
        self.by_kernel.run(arch, past, lists);
    }
}
