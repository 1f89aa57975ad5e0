//! The codes of a feature: where they are, how a batch takes them, and their range.

use pulp::{Arch, Simd, WithSimd};
use rand::RngExt;

use crate::context::GrowContext;
use crate::split::batch::Batch;
use crate::split::random_test::random_side;
use crate::tree_buffer::MissingSide;
use ferrank_data::profile::Scale;
use ferrank_data::store::{Chunk, Code, Slot, Stored};
use ferrank_runtime::random::Stream;

/// Why some nodes have no sparse features.
pub(super) const NOT_SPARSE: &str = "a node with sparse features is not grown on a chunk alone";

/// Where the codes of a feature are.
pub(super) struct FeatureCodes<'a> {
    pub(super) slot: Slot,
    pub(super) n_codes: usize,
    /// The value of each code, if cuts are random.
    values: Option<&'a [f64]>,
    /// True if a batch can take the feature: it is numeric, and known for all rows unless missing values are information.
    pub(super) fits_batch: bool,
    /// True if missing values are information, and there are some.
    pub(super) has_missing: bool,
    arch: Arch,
}

impl<'a> FeatureCodes<'a> {
    /// The codes of each feature.
    pub(super) fn all(context: GrowContext<'a>, arch: Arch) -> Vec<FeatureCodes<'a>> {
        let store = context.store;
        let is_informative = context.is_informative();
        let features = (0..).zip(&store.slots).zip(&store.codings).map(|((feature, &slot), coding)| FeatureCodes {
            slot,
            n_codes: coding.n_codes(),
            values: context.values(feature),
            fits_batch: (is_informative || !coding.has_missing) && matches!(coding.scale, Scale::Numeric(_)),
            has_missing: is_informative && coding.has_missing,
            arch,
        });
        features.collect()
    }

    /// Asks the memory for the codes of `rows`, without waiting for them.
    #[inline(always)]
    pub(super) fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        match self.slot {
            Slot::Narrow(slot) => u8::of(chunk).column(slot).prefetch(rows),
            Slot::Wide(slot) => u16::of(chunk).column(slot).prefetch(rows),
            Slot::Sparse(_) => {}
        }
    }

    /// Takes the codes of `rows` into `batch`. Returns true if they vary.
    #[inline(always)]
    pub(super) fn take(
        &self,
        chunk: &Chunk,
        rows: &[u32],
        feature: u32,
        batch: &mut Batch,
        random: &mut Stream,
    ) -> bool {
        match self.slot {
            Slot::Narrow(slot) => self.take_codes(u8::of(chunk).column(slot).codes(rows), feature, batch, random),
            Slot::Wide(slot) => self.take_codes(u16::of(chunk).column(slot).codes(rows), feature, batch, random),
            Slot::Sparse(_) => unreachable!("{NOT_SPARSE}"),
        }
    }

    /// Takes `codes`, one for each example, into `batch`. Returns true if they vary.
    #[inline(always)]
    pub(super) fn take_codes<C: Code>(
        &self,
        codes: impl Iterator<Item = C> + Clone,
        feature: u32,
        batch: &mut Batch,
        random: &mut Stream,
    ) -> bool {
        let mut is_missing = false;
        let varies = batch.add(feature, |keys| match self.values {
            // A missing value has no value.
            Some(values) => {
                let value = |code: C| values.get(code.index()).copied().unwrap_or(f64::INFINITY);
                fill(keys, codes, |code| {
                    is_missing |= code == C::MISSING;
                    value(code)
                })
            }
            None if self.has_missing => fill(keys, codes, |code| {
                is_missing |= code == C::MISSING;
                code.index() as f64
            }),
            None => fill(keys, codes, |code| code.index() as f64),
        });
        match (varies, self.values) {
            (false, _) => {}
            _ if is_missing && self.has_missing => self.place_missing::<C>(batch, random),
            (_, Some(_)) => batch.set_share(random.random()),
            (_, None) => {}
        }
        varies
    }

    /// Adds a row for the other side of the missing values in the last row of `batch`, or places them at random and draws
    /// the random cut.
    #[inline(never)]
    fn place_missing<C: Code>(&self, batch: &mut Batch, random: &mut Stream) {
        let missing = if self.values.is_some() { f64::INFINITY } else { C::MISSING.index() as f64 };
        let (low, high) = batch.ends_below(self.arch, missing);
        if self.values.is_none() {
            batch.set_missing(MissingSide::Right, high);
            if low < high {
                batch.repeat_last(self.arch, missing, low);
                batch.set_missing(MissingSide::Left, f64::INFINITY);
            }
            return;
        }
        match random_side(low < high, random) {
            // A cut at 0, which is the test whether the value is known.
            None => {
                batch.change_last(|key| if key == missing { 1.0 } else { 0.0 });
                batch.set_missing(MissingSide::Right, f64::NEG_INFINITY);
            }
            Some(side) => {
                // Random cuts are at least as high as the lowest key, and infinite keys are no ends of the range.
                if side == MissingSide::Left {
                    batch.change_last(|key| if key == missing { low } else { key });
                }
                batch.set_missing(side, f64::INFINITY);
                batch.set_share(random.random());
            }
        }
    }
}

/// Writes the key of each of `codes`. Returns true if they vary.
#[inline(always)]
fn fill<C: Code>(keys: &mut [f64], codes: impl Iterator<Item = C> + Clone, mut key: impl FnMut(C) -> f64) -> bool {
    let Some(first) = codes.clone().next() else { return false };
    let mut varies = false;
    for (to, code) in keys.iter_mut().zip(codes) {
        varies |= code != first;
        *to = key(code);
    }
    varies
}

/// The least and the greatest of `codes`; the greatest possible code and 0 if `codes` is empty. Missing values are the
/// greatest.
pub(super) fn extremes<C: Code>(arch: Arch, codes: &[C]) -> (C, C) {
    struct Extremes<'a, C>(&'a [C]);
    impl<C: Code> WithSimd for Extremes<'_, C> {
        type Output = (C, C);
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> (C, C) {
            let (mut low, mut high) = (C::MISSING, C::default());
            for &code in self.0 {
                low = if code < low { code } else { low };
                high = if code > high { code } else { high };
            }
            (low, high)
        }
    }
    arch.dispatch(Extremes(codes))
}

/// The greatest of `codes` that is known; 0 if all are missing.
pub(super) fn highest_known<C: Code>(arch: Arch, codes: &[C]) -> C {
    struct Highest<'a, C>(&'a [C]);
    impl<C: Code> WithSimd for Highest<'_, C> {
        type Output = C;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> C {
            let mut high = C::default();
            for &code in self.0 {
                high = if code > high && code != C::MISSING { code } else { high };
            }
            high
        }
    }
    arch.dispatch(Highest(codes))
}
