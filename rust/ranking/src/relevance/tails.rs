//! Upper tails of laws, and p-values joined; all as natural logarithms, because p-values of strong features are too small
//! for f64.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::{checked_gamma_ur, ln_gamma};

/// P-values near 1 would outweigh others in Cauchy's combination, also those of rankers that cannot say anything about a
/// feature. Of three independent p-values the combination then is at most 0.1 in 10.5 % of the cases, and at most 0.01 in
/// 1.02 %.
const MOST: f64 = 0.9;
/// The logarithm of a p-value that is 0: above every other importance.
pub(super) const IMPOSSIBLE: f64 = -1e6;
/// The share of a sample that its tail is fitted to, and the least and the greatest number of values.
const IN_TAIL: (f64, f64, f64) = (0.02, 40.0, 400.0);
/// The greatest shape of a tail.
const HEAVIEST: f64 = 0.5;

/// The upper tail of the law that a sample is from: that of the sample, and beyond its last few values a generalized
/// Pareto law (Knijnenburg et al. 2009), fitted by probability-weighted moments (Hosking and Wallis 1987).
///
/// The shape is at least 0, an exponential tail, and raised by its standard error, because a tail that is taken for too
/// light makes false discoveries, and one that is taken for too heavy makes none.
#[derive(Debug)]
pub(super) struct SampleTail {
    /// Ascending.
    sample: Vec<f64>,
    /// Number of values above the threshold.
    above: usize,
    threshold: f64,
    scale: f64,
    shape: f64,
}

impl SampleTail {
    /// From a sample of at least one value, in any order.
    pub(super) fn new(mut sample: Vec<f64>) -> Self {
        sample.sort_unstable_by(f64::total_cmp);
        let n = sample.len();
        let (share, least, most) = IN_TAIL;
        let above = ((n as f64 * share).clamp(least, most) as usize).min(n / 4);
        let threshold = sample[n - above - 1];
        let excesses = || sample[n - above..].iter().map(|value| value - threshold);
        let count = above as f64;
        let mean = excesses().sum::<f64>() / count;
        let weighted = excesses().enumerate().map(|(i, excess)| (count - 1.0 - i as f64) / (count - 1.0) * excess);
        let weighted = weighted.sum::<f64>() / count;
        let fitted = (2.0 - mean / (mean - 2.0 * weighted)).clamp(0.0, HEAVIEST);
        let (scale, shape) = (mean * (1.0 - fitted), fitted + 1.0 / count.sqrt());
        SampleTail { sample, above, threshold, scale, shape }
    }

    /// The logarithm of the chance of a value of at least `x`.
    pub(super) fn ln(&self, x: f64) -> f64 {
        let n = self.sample.len();
        let excess = (x - self.threshold) / self.scale;
        // With fewer than two values, or equal ones, there is no tail to fit.
        let share = |count: usize| ((count + 1) as f64 / (n + 1) as f64).ln();
        match excess > 0.0 && excess.is_finite() && self.shape.is_finite() {
            true => share(self.above) - (self.shape * excess).ln_1p() / self.shape,
            false => share(n - self.sample.partition_point(|&value| value < x)),
        }
    }
}

/// The logarithm of the upper tail at `z` of the Pearson type III law with mean 0, variance 1 and `skewness`, which is not
/// negative.
pub(super) fn ln_upper_tail(z: f64, skewness: f64) -> f64 {
    if skewness < 1e-2 {
        // The asymptotic series (Abramowitz and Stegun 1964, 26.2.12) errs by less than 1e-6 here.
        let series = || (1.0 - 1.0 / (z * z) + 3.0 / z.powi(4) - 15.0 / z.powi(6)).ln();
        return match z > 20.0 {
            true => -0.5 * z * z - (z * std::f64::consts::TAU.sqrt()).ln() + series(),
            false => Normal::standard().sf(z).ln(),
        };
    }
    // A gamma variable of this shape, shifted and scaled.
    let (shape, x) = (4.0 / (skewness * skewness), 2.0 / skewness * (z + 2.0 / skewness));
    match checked_gamma_ur(shape, x.max(f64::MIN_POSITIVE)) {
        _ if x <= 0.0 => 0.0,
        Ok(tail) if tail > 1e-200 => tail.ln().min(0.0),
        // Far above the shape, Q(a, x) is about x^(a − 1) e^(−x) / Γ(a), times 1 + (a − 1) / x + …
        _ => (shape - 1.0) * x.ln() - x - ln_gamma(shape) - (-(shape - 1.0) / x).ln_1p(),
    }
}

/// Cauchy's combination of p-values, given and returned as logarithms.
pub(super) fn ln_cauchy(p_values: Vec<f64>) -> f64 {
    if let [alone] = p_values[..] {
        return alone;
    }
    let n = p_values.len() as f64;
    let least = p_values.iter().copied().fold(0.0, f64::min);
    if least < -30.0 {
        // The cotangent of π p is 1 / π p.
        let sum: f64 = p_values.iter().map(|p| (least - p).exp()).sum();
        return (n.ln() + least - sum.ln()).min(0.0);
    }
    let cotangent = |p: &f64| 1.0 / (std::f64::consts::PI * p.exp().min(MOST)).tan();
    let mean = p_values.iter().map(cotangent).sum::<f64>() / n;
    (f64::atan2(1.0, mean) / std::f64::consts::PI).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables_and_go_on_beyond_f64() {
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-5, "{found}, {expected}");
        // Of the exponential law, with skewness 2, e^(−1 − z).
        for z in [0.0, 3.0, 40.0, 400.0, 1e5] {
            close(ln_upper_tail(z, 2.0), -1.0 - z);
        }
        // Of the χ² law with one degree of freedom: 3.841459 has mean 1 and variance 2 to lose.
        close(ln_upper_tail(2.841459 / 2f64.sqrt(), 8f64.sqrt()), 0.05f64.ln());
        close(ln_upper_tail(1.959964, 0.0), 0.025f64.ln());
        close(ln_upper_tail(19.99, 0.0), ln_upper_tail(20.01, 0.0) + 0.02 * 20.05);
        assert_eq!(ln_upper_tail(-5.0, 2.0), 0.0);
        for skewness in [0.005, 0.02, 0.3, 1.0, 4.0] {
            let tails: Vec<f64> = (-30..2_000).map(|z| ln_upper_tail(f64::from(z) / 4.0, skewness)).collect();
            assert!(tails.is_sorted_by(|a, b| a >= b), "{skewness}");
            assert!(tails.iter().all(|tail| tail.is_finite()), "{skewness}");
        }
    }

    #[test]
    fn equal_p_values_stay_what_they_are_and_one_that_is_small_suffices() {
        for p in [0.3f64, 1e-3, 1e-12, 1e-15] {
            assert!((ln_cauchy(vec![p.ln(); 3]) - p.ln()).abs() < 1e-9, "{p}");
        }
        assert!((ln_cauchy(vec![1e-10f64.ln(), 0.5f64.ln()]) - 2e-10f64.ln()).abs() < 1e-6);
        assert!((ln_cauchy(vec![-900.0, -2.0]) - (2f64.ln() - 900.0)).abs() < 1e-9);
    }

    #[test]
    fn combinations_of_p_values_are_those_of_the_formula() {
        // 1 / tan(π p) of 1/4 and 1/3 is 1 and 1 / √3.
        let mean = (1.0 + 1.0 / 3f64.sqrt()) / 2.0;
        let expected = 0.5 - mean.atan() / std::f64::consts::PI;
        assert!((ln_cauchy(vec![0.25f64.ln(), (1.0 / 3.0f64).ln()]).exp() - expected).abs() < 1e-12);
        // What is above 0.9 counts as that, so that it cannot outweigh the others.
        assert_eq!(ln_cauchy(vec![0.01f64.ln(), 0.0]), ln_cauchy(vec![0.01f64.ln(), 0.9f64.ln()]));
        assert!(ln_cauchy(vec![0.01f64.ln(), 0.0]).exp() < 0.03);
        // Both ways of adding up agree where they meet.
        let with_another = |p: f64| ln_cauchy(vec![p, -28.0]);
        let share = 1.0 / (1.0 + (-2f64).exp());
        assert!((with_another(-29.999) - with_another(-30.001) - 0.002 * share).abs() < 1e-6);
    }

    #[test]
    fn a_sample_has_its_own_tail_and_one_like_it_beyond() {
        // Quantiles of the exponential law.
        let n = 5_000;
        let tail = SampleTail::new((0..n).map(|i| -((f64::from(i) + 0.5) / f64::from(n)).ln()).collect());
        for x in [0.0, 1.0, 4.0] {
            assert!((tail.ln(x) + x).abs() < 0.3, "{x}: {}", tail.ln(x));
        }
        // Beyond the sample, a little heavier.
        assert!((-15.0..-9.0).contains(&tail.ln(15.0)), "{}", tail.ln(15.0));
        let values: Vec<f64> = (0..400).map(|x| tail.ln(f64::from(x) / 10.0)).collect();
        assert!(values.is_sorted_by(|a, b| a >= b));
        assert!(tail.ln(1e12).is_finite());
    }

    #[test]
    fn small_and_constant_samples_say_no_more_than_they_know() {
        for sample in [vec![1.0], vec![1.0; 3], vec![2.0; 500], vec![0.0, 1.0, 2.0, 3.0, 4.0]] {
            let (n, tail) = (sample.len() as f64, SampleTail::new(sample));
            assert!(tail.ln(-1.0).abs() < 1e-12);
            let least = (1.0 / (n + 1.0)).ln();
            assert!(tail.ln(1e9) >= least - 1e-12);
        }
    }
}
