//! One loop, compiled for the instruction sets that a machine may have, and chosen when it runs.
//!
//! The loops are plain Rust. They add numbers on a common grid, which is exact, so every version
//! gives the same bits.

/// Instruction sets that matter for the width of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every machine has.
    Baseline,
    /// Four f64 side by side.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Eight f64 side by side, with masks.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best that this machine has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }
}

/// Makes `$name(level, …)` call `$body(…)` compiled for `level`. `$body` must be `#[inline(always)]`.
macro_rules! for_each_level {
    ($(#[$doc:meta])* $name:ident $(<$generic:ident : $bound:path>)? = $body:path,
     ($($arg:ident : $type:ty),* $(,)?) $(-> $out:ty)?) => {
        $(#[$doc])*
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name $(<$generic: $bound>)? (level: $crate::forest::split::simd::Level, $($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi2,lzcnt,popcnt")]
                #[allow(clippy::too_many_arguments)]
                fn avx512 $(<$generic: $bound>)? ($($arg: $type),*) $(-> $out)? {
                    $body($($arg),*)
                }
                #[target_feature(enable = "avx2,bmi2,lzcnt,popcnt")]
                #[allow(clippy::too_many_arguments)]
                fn avx2 $(<$generic: $bound>)? ($($arg: $type),*) $(-> $out)? {
                    $body($($arg),*)
                }
                match level {
                    // SAFETY: `Level::detect` gives this level only where the machine has these features.
                    $crate::forest::split::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::forest::split::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::forest::split::simd::Level::Baseline => {}
                }
            }
            let _ = level;
            $body($($arg),*)
        }
    };
}

pub(crate) use for_each_level;
