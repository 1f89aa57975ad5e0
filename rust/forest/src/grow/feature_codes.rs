//! The codes of a feature: where they are, how a batch takes them, and their range.

use pulp::{Arch, Simd, WithSimd};
use rand::RngExt;

use crate::context::GrowContext;
use crate::split::batch::Batch;
use ferrank_data::profile::Scale;
use ferrank_data::store::{Chunk, Code, Slot, Stored};
use ferrank_runtime::random::Stream;

/// Where the codes of a feature are.
pub(super) struct FeatureCodes<'a> {
    pub(super) slot: Slot,
    pub(super) n_codes: usize,
    /// The value of each code, if cuts are random.
    values: Option<&'a [f64]>,
    /// True if a batch can take the feature: it is numeric and known for all rows.
    pub(super) fits_batch: bool,
}

impl<'a> FeatureCodes<'a> {
    /// The codes of each feature.
    pub(super) fn all(context: GrowContext<'a>) -> Vec<FeatureCodes<'a>> {
        let store = context.store;
        let features = (0..).zip(&store.slots).zip(&store.codings).map(|((feature, &slot), coding)| FeatureCodes {
            slot,
            n_codes: coding.n_codes(),
            values: context.values(feature),
            fits_batch: !coding.has_missing && matches!(coding.scale, Scale::Numeric(_)),
        });
        features.collect()
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
        let varies = batch.add(feature, |keys| match self.values {
            Some(values) => fill(keys, codes, |code| values[code.index()]),
            None => fill(keys, codes, |code| code.index() as f64),
        });
        if varies && self.values.is_some() {
            batch.set_share(random.random());
        }
        varies
    }
}

/// Writes the key of each of `codes`. Returns true if they vary.
#[inline(always)]
fn fill<C: Code>(keys: &mut [f64], codes: impl Iterator<Item = C> + Clone, key: impl Fn(C) -> f64) -> bool {
    let Some(first) = codes.clone().next() else { return false };
    let mut varies = false;
    for (to, code) in keys.iter_mut().zip(codes) {
        varies |= code != first;
        *to = key(code);
    }
    varies
}

/// The least and the greatest of `codes`; the greatest possible code and 0 if `codes` is empty.
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
