//! The addends of an example to the label sums of a side.

/// Number of labels that are added together, because the ends of lists are unpredictable.
pub(super) const GROUP: usize = 4;

/// The addends of an example to the sums of a side, or those of some of its labels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelEntry {
    pub(super) labels: [u32; GROUP],
    /// ω·w of each label.
    pub(super) added: [f64; GROUP],
    pub(super) weight: f64,
    pub(super) count: f64,
    /// w²·Σ ω_l
    pub(super) squares: f64,
    /// w·Σ ω_l·c_l
    pub(super) cross: f64,
}

impl LabelEntry {
    /// Adds the labels to `sums`, ω·C_L of each label. Returns Σ ω·C_L over the labels of the entry before the
    /// addition.
    #[inline(always)]
    pub(super) fn add(&self, sums: &mut [f64]) -> f64 {
        let mut had = 0.0;
        for (&label, &added) in self.labels.iter().zip(&self.added) {
            let sum = &mut sums[label as usize];
            had += *sum;
            *sum += added;
        }
        had
    }
}

/// Σ ω·C_L² and Σ ω·C_L·c over some indicators.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IndicatorSums {
    pub(super) squares: f64,
    pub(super) cross: f64,
}

impl IndicatorSums {
    /// Adds an example; `had` is Σ ω·C_L over its labels before the addition.
    #[inline(always)]
    pub(super) fn add(&mut self, example: &LabelEntry, had: f64) {
        self.squares += example.squares + 2.0 * example.weight * had;
        self.cross += example.cross;
    }

    /// Σ ω·(C_L − c·share)²; `node_squares` is Σ ω·c² of the node.
    #[inline(always)]
    pub(super) fn quality(self, share: f64, node_squares: f64) -> f64 {
        self.squares - 2.0 * share * self.cross + share * share * node_squares
    }
}
