//! Missing values that are information ("missing incorporated in attributes", Twala, Jones and Hand 2008).
//!
//! Each cut is tried with the missing values on the right and on the left, and whether the value is known is a test of
//! its own. Two ordinary searches over all examples of the node find the best of these tests:
//!
//! - On the right, missing values have a code above all others. The cut below that code is the test whether the value is
//!   known.
//! - On the left, they are added to the left side before all others.
//!
//! Both searches read the same sums by code, or the same order of the codes. Of equal gains, that with the missing
//! values on the right is taken, then the lowest cut.
//!
//! Against a search of each side on its own, a fit takes 0.86 to 0.9 times the CPU time with 100 labels and 0.88 times with
//! five targets and all features in a node; elsewhere the same (100,000 x 50, 10 % missing). It takes 1.3 to 1.5 times the
//! CPU time of a fit on the same table without missing values.

use super::Cut;
use crate::criterion::ties;
use crate::tree_buffer::{KNOWN, MissingSide};
use ferrank_data::store::Code;

/// The better of the best cut with the missing values on the `right` and the best cut with them on the `left`.
/// `highest` is the highest code that is known in the node.
#[inline(always)]
pub(crate) fn better(right: Option<Cut>, left: Option<Cut>, highest: usize) -> Option<Cut> {
    let right = right.map(|Cut { gain, code, .. }| {
        let code = if usize::from(code) >= highest { KNOWN } else { code };
        Cut { gain, code, missing: MissingSide::Right }
    });
    let left = left.map(|cut| Cut { missing: MissingSide::Left, ..cut });
    match (right, left) {
        (Some(right), Some(left)) if ties(right.gain, left.gain) => Some(right),
        (right, left) => left.or(right),
    }
}

/// Replaces the code `from` by `to`.
pub(crate) fn replace<C: Code>(codes: &mut [C], from: C, to: C) {
    for code in codes {
        *code = if *code == from { to } else { *code };
    }
}
