//! How the values of a feature become small integers, and back.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lookup::Lookup;
use super::shares::{InCells, Ordered, Sorted, between};

/// Code of a missing value in one byte; codes of values lie below.
pub const MISSING_U8: u8 = u8::MAX;
/// Code of a missing value in two bytes.
pub const MISSING_U16: u16 = u16::MAX;

/// How a feature's values become codes.
///
/// ```
/// use ferrank_data::profile::{Coding, Cuts};
///
/// let coding = Coding::numeric(Cuts::exact(&[0.0, 1.0, 5.0]), false);
/// assert_eq!(coding.n_codes(), 3);
/// assert!(coding.is_narrow());
/// ```
#[derive(Debug, Clone)]
pub struct Coding {
    /// The scale of the codes.
    pub scale: Scale,
    /// True if any value is missing.
    pub has_missing: bool,
}

/// What the codes stand for.
///
/// ```
/// use ferrank_data::profile::{Categories, Coding, Scale};
///
/// let colours = Categories::new(["blue", "red"].into_iter().map(String::from));
/// assert!(matches!(Coding::nominal(colours, true).scale, Scale::Nominal(_)));
/// ```
#[derive(Debug, Clone)]
pub enum Scale {
    /// Code k is above the k-th cut point, counted from 1, and not above the next.
    Numeric(Cuts),
    /// Code k is the k-th category.
    Nominal(Categories),
}

impl Coding {
    /// Codes of a numeric column by cut points.
    pub fn numeric(cuts: Cuts, has_missing: bool) -> Self {
        Coding { scale: Scale::Numeric(cuts), has_missing }
    }

    /// Codes of a nominal column by categories.
    pub fn nominal(categories: Categories, has_missing: bool) -> Self {
        Coding { scale: Scale::Nominal(categories), has_missing }
    }

    /// Number of codes in use, the missing one not counted.
    pub fn n_codes(&self) -> usize {
        match &self.scale {
            Scale::Numeric(cuts) => cuts.n_codes,
            Scale::Nominal(categories) => categories.names.len(),
        }
    }

    /// Returns true if codes fit in a byte, with one left for missing.
    pub fn is_narrow(&self) -> bool {
        self.n_codes() <= usize::from(MISSING_U8)
    }
}

/// The categories of a nominal column, in the byte order of their names.
///
/// ```
/// use ferrank_data::profile::Categories;
///
/// let colours = Categories::new(["blue", "red"].into_iter().map(String::from));
/// assert_eq!((colours.code("red"), colours.code("green")), (Some(1), None));
/// ```
#[derive(Debug, Clone)]
pub struct Categories {
    /// Names in byte order; the position is the code.
    pub names: Vec<String>,
    /// Empty for few names, which are found as fast among `names`.
    code: FxHashMap<String, u16>,
}

/// Names that need no table.
const FEW_NAMES: usize = 16;

impl Categories {
    /// From names in ascending order, each once, at most 65,535.
    pub fn new(names: impl Iterator<Item = String>) -> Self {
        let names: Vec<String> = names.collect();
        let code = match names.len() {
            ..=FEW_NAMES => FxHashMap::default(),
            _ => names.iter().enumerate().map(|(code, name)| (name.clone(), code as u16)).collect(),
        };
        Categories { names, code }
    }

    /// The code of the category called `name`.
    pub fn code(&self, name: &str) -> Option<u16> {
        match self.code.is_empty() {
            true => self.names.binary_search_by(|known| known.as_str().cmp(name)).ok().map(|code| code as u16),
            false => self.code.get(name).copied(),
        }
    }
}

/// A feature is sparse if at most one value in this many is not 0.
const ROWS_PER_ENTRY: u64 = 20;

/// Returns true if a feature that is 0 in `n_zeros` of `n_rows` rows is sparse.
pub(crate) fn is_sparse(n_zeros: u64, n_rows: u64) -> bool {
    (n_rows - n_zeros) * ROWS_PER_ENTRY <= n_rows
}

/// What is wanted of the codes of numeric features.
///
/// ```
/// use ferrank_data::profile::CodePlan;
///
/// assert_eq!(CodePlan::from(255), CodePlan { max_bins: 255, with_cuts: true });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodePlan {
    /// Most codes of a feature; 0 if there are to be none.
    pub max_bins: usize,
    /// False if codes are not turned into values, nor values into codes, later. The cut points of a short matrix are then
    /// stored only for features that are mostly 0, because a sparse store needs the code of 0: 11 trees on 200 x 20,000 take
    /// 0.86 of the CPU time.
    pub with_cuts: bool,
}

impl From<usize> for CodePlan {
    fn from(max_bins: usize) -> Self {
        CodePlan { max_bins, with_cuts: true }
    }
}

/// Cut points of a numeric feature.
///
/// ```
/// use ferrank_data::profile::Cuts;
///
/// assert_eq!(Cuts::exact(&[0.0, 1.0, 5.0]).all(), [0.5, 3.0]);
/// let halves = Cuts::quantiles((0..100).map(f64::from).collect(), 2);
/// assert_eq!(halves.all(), [49.5]);
/// let mut codes = [0; 3];
/// halves.encode(&[10.0, 90.0, f64::NAN], 255, |row, code| codes[row] = code);
/// assert_eq!(codes, [0, 1, 255]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cuts {
    n_codes: usize,
    /// n_codes − 1, ascending; empty if they are the middles between the values.
    cuts: Arc<[f64]>,
    /// n_codes; a representative value of each code: the value itself where codes are exact. Empty of
    /// [codes alone](CodePlan::with_cuts).
    pub values: Arc<[f64]>,
}

impl Cuts {
    /// One code for each of `values`, which ascend.
    pub fn exact(values: &[f64]) -> Self {
        Cuts::new(Arc::default(), values.into())
    }

    fn new(cuts: Arc<[f64]>, values: Arc<[f64]>) -> Self {
        Cuts { n_codes: values.len(), cuts, values }
    }

    /// `n_codes` codes without the values that they stand for.
    pub(super) fn without_values(n_codes: usize) -> Self {
        Cuts { n_codes, ..Cuts::default() }
    }

    /// Number of codes.
    pub fn n_codes(&self) -> usize {
        self.n_codes
    }

    /// The codes between `cuts`, which ascend.
    pub fn from_cuts(cuts: Vec<f64>) -> Self {
        let ends = cuts.iter().chain(cuts.last()).copied();
        let values = if cuts.is_empty() { vec![0.0] } else { ends.collect() };
        Cuts::new(cuts.into(), values.into())
    }

    /// What [`from_stored`](Self::from_stored) takes: the cuts, if they are not the middles, and the values.
    pub(super) fn stored(&self) -> (&[f64], &[f64]) {
        debug_assert_eq!(self.values.len(), self.n_codes, "codes alone are not written");
        (&self.cuts, &self.values)
    }

    /// The cuts that [`stored`](Self::stored) gave; `None` if they make no sense, or have more codes than `max_bins`.
    pub(super) fn from_stored(cuts: Vec<f64>, values: Vec<f64>, max_bins: usize) -> Option<Self> {
        let fits = values.len() <= max_bins && (cuts.is_empty() || cuts.len() + 1 == values.len());
        let known = cuts.iter().chain(&values).all(|value| value.is_finite());
        let ascend =
            cuts.is_sorted_by(|a, b| a < b) && values.is_sorted_by(|a, b| if cuts.is_empty() { a < b } else { a <= b });
        (fits && known && ascend).then(|| Cuts::new(cuts.into(), values.into()))
    }

    /// The cut above `code`: a test `x ≤ cut` sends the codes up to this one to the left.
    pub fn cut(&self, code: usize) -> f64 {
        match self.cuts.is_empty() {
            true => between(self.values[code], self.values[code + 1]),
            false => self.cuts[code],
        }
    }

    /// n_codes − 1 cuts, ascending.
    pub fn all(&self) -> Vec<f64> {
        (1..self.values.len()).map(|code| self.cut(code - 1)).collect()
    }

    /// At most `max_bins` codes with as equal shares of `sample` as ties allow; NaN is skipped.
    pub fn quantiles(sample: Vec<f64>, max_bins: usize) -> Self {
        Cuts::with_rare(Sample::new(&sample), &[], &[], max_bins, &mut Scratch::default())
    }

    /// The same for a column of which `sample` has only some rows.
    ///
    /// If the sample has fewer values than there are codes, so have the values `apart`, and values evenly spaced in
    /// `rare`, which ascend. Otherwise the values `apart` have codes of their own as far as half of the codes suffice.
    pub(super) fn with_rare(
        sample: Sample<'_>,
        apart: &[f64],
        rare: &[f64],
        max_bins: usize,
        scratch: &mut Scratch,
    ) -> Self {
        let Sample { numbers, zeros } = sample;
        if zeros == 0 && scratch.in_cells.fill(numbers, max_bins) {
            let apart = apart.iter().copied().filter(|&value| !scratch.in_cells.holds(value)).collect();
            return Cuts::of_shares(&mut scratch.in_cells, apart, max_bins);
        }
        Cuts::of_sorted(scratch.sort(sample), apart, rare, max_bins)
    }

    /// [`with_rare`](Self::with_rare) of numbers in order.
    pub(super) fn of_sorted(mut sorted: Sorted<'_>, apart: &[f64], rare: &[f64], max_bins: usize) -> Self {
        let sample = sorted.distinct;
        let mut apart: Vec<f64> = apart.iter().copied().filter(|&value| !sorted.holds(value)).collect();
        if sample.is_empty() {
            apart.truncate(max_bins);
        }
        if sample.len() <= max_bins && apart.is_empty() && rare.is_empty() {
            return Cuts::exact(sample);
        }
        if sample.len() + apart.len() <= max_bins {
            let mut values: Vec<f64> = sample.iter().copied().chain(apart).collect();
            ascend(&mut values);
            let known = |value: &f64| values.binary_search_by(|other| other.total_cmp(value)).is_ok();
            let others: Vec<f64> = rare.iter().copied().filter(|value| !known(value)).collect();
            let room = others.len().min(max_bins - values.len());
            if room == others.len() && values.len() + room == rare.len() {
                return Cuts::exact(rare);
            }
            values.extend((0..room).map(|n| others[(2 * n + 1) * others.len() / (2 * room)]));
            ascend(&mut values);
            return Cuts::exact(&values);
        }
        Cuts::of_shares(&mut sorted, apart, max_bins)
    }

    /// Codes with equal shares of `sample`, which has more values than there are codes; the values `apart`, which are none of
    /// its, have codes of their own as far as half of the codes suffice.
    fn of_shares(sample: &mut impl Ordered, mut apart: Vec<f64>, max_bins: usize) -> Self {
        let [least, greatest] = sample.ends();
        // The value itself and, within the sample, what lies above it.
        let mut left = max_bins / 2;
        apart.retain(|&value| {
            let needs = if value < least || value > greatest { 1 } else { 2 };
            let fits = needs <= left;
            left -= if fits { needs } else { 0 };
            fits
        });
        ascend(&mut apart);
        let (cuts, values) = sample.bins(max_bins - (max_bins / 2 - left));
        let bins = Cuts::new(cuts.into(), values.into());
        match apart.is_empty() {
            true => bins,
            false => bins.with_apart(sample, &apart),
        }
    }

    /// The cuts with more of them around each of the values `apart`, which ascend and are none of `sample`.
    fn with_apart(self, sample: &impl Ordered, apart: &[f64]) -> Self {
        let mut cuts = self.cuts.to_vec();
        for gap in apart.chunk_by(|&a, &b| sample.next_to(a) == sample.next_to(b)) {
            let [before, after] = sample.next_to(gap[0]);
            let inside = |cut: f64| before.is_none_or(|before| cut >= before) && after.is_none_or(|after| cut < after);
            cuts.retain(|&cut| !inside(cut));
            let known: Vec<f64> = before.into_iter().chain(gap.iter().copied()).chain(after).collect();
            cuts.extend(known.windows(2).map(|pair| between(pair[0], pair[1])));
        }
        cuts.sort_unstable_by(f64::total_cmp);
        let [least, greatest] = sample.ends();
        let (low, high) = (least.min(apart[0]), greatest.max(apart[apart.len() - 1]));
        let starts = std::iter::once(low).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([high]);
        let values = starts.zip(ends).map(|(start, end)| f64::midpoint(start, end)).collect();
        Cuts::new(cuts.into(), values)
    }

    /// The code of `value`, which is known.
    pub fn code(&self, value: f64) -> u16 {
        assert_eq!(self.values.len(), self.n_codes, "values are coded with cut points");
        let (mut low, mut high) = (0, self.values.len().max(1) - 1);
        while low < high {
            let middle = low.midpoint(high);
            (low, high) = if self.cut(middle) < value { (middle + 1, high) } else { (low, middle) };
        }
        low as u16
    }

    /// Codes of `values`, by `emit`; NaN becomes `missing`.
    pub fn encode(&self, values: &[f64], missing: u16, emit: impl FnMut(usize, u16)) {
        self.lookup(values.len()).encode(values, missing, emit);
    }

    /// What looks for the codes of `n_values` values.
    pub(crate) fn lookup(&self, n_values: usize) -> Lookup<impl Fn(usize) -> f64> {
        assert_eq!(self.values.len(), self.n_codes, "values are coded with cut points");
        Lookup::new(self.values.len().saturating_sub(1), |code| self.cut(code), n_values)
    }
}

/// Numbers of which some, perhaps most, are 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) numbers: &'a [f64],
    /// So many zeros are not among `numbers`.
    pub(super) zeros: usize,
}

impl<'a> Sample<'a> {
    pub(super) fn new(numbers: &'a [f64]) -> Self {
        Sample { numbers, zeros: 0 }
    }
}

/// Numbers in order, with buffers that are reused from column to column.
#[derive(Default)]
pub(super) struct Scratch {
    in_cells: InCells,
    sorted: Vec<f64>,
    /// The numbers in ascending order, each once.
    distinct: Vec<f64>,
    /// How many numbers are up to each of `distinct`.
    ends: Vec<usize>,
}

impl Scratch {
    /// Puts `sample` in order; NaN is skipped.
    pub(super) fn sort(&mut self, Sample { numbers, zeros }: Sample<'_>) -> Sorted<'_> {
        self.sorted.clear();
        match numbers.iter().any(|value| value.is_nan()) {
            false => self.sorted.extend_from_slice(numbers),
            true => self.sorted.extend(numbers.iter().filter(|value| !value.is_nan())),
        }
        // A radix sort has a cost of its own, whatever the number.
        match self.sorted.len() {
            ..128 => self.sorted.sort_unstable_by(f64::total_cmp),
            _ => radsort::sort(&mut self.sorted),
        }
        self.find_ends();
        if zeros > 0 {
            self.add_zeros(zeros);
        }
        Sorted { distinct: &self.distinct, ends: &self.ends }
    }

    fn find_ends(&mut self) {
        let Scratch { sorted, distinct, ends, .. } = self;
        // Every place is written, and counted if a value ends there.
        ends.resize(sorted.len(), 0);
        distinct.resize(sorted.len(), 0.0);
        let mut count = 0;
        for (end, pair) in (1..).zip(sorted.windows(2)) {
            ends[count] = end;
            distinct[count] = pair[0] + 0.0;
            count += usize::from(pair[0] != pair[1]);
        }
        if let Some(&last) = sorted.last() {
            (ends[count], distinct[count]) = (sorted.len(), last + 0.0);
            ends.truncate(count + 1);
            distinct.truncate(count + 1);
        }
    }

    fn add_zeros(&mut self, zeros: usize) {
        let Scratch { distinct, ends, .. } = self;
        let place = distinct.partition_point(|&value| value < 0.0);
        if distinct.get(place) != Some(&0.0) {
            distinct.insert(place, 0.0);
            ends.insert(place, place.checked_sub(1).map_or(0, |before| ends[before]));
        }
        ends[place..].iter_mut().for_each(|end| *end += zeros);
    }
}

/// Brings values into ascending order, each once.
fn ascend(values: &mut Vec<f64>) {
    if !values.is_sorted_by(|a, b| a < b) {
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn codes(cuts: &Cuts, values: &[f64]) -> Vec<u16> {
        let mut codes = vec![0; values.len()];
        cuts.encode(values, u16::MAX, |row, code| codes[row] = code);
        codes
    }

    #[test]
    fn exact_codes_are_positions() {
        let cuts = Cuts::exact(&[-1.0, 0.5, 3.0]);
        assert_eq!(cuts.all(), [-0.25, 1.75]);
        assert_eq!(codes(&cuts, &[3.0, -1.0, f64::NAN, 0.5]), [2, 0, u16::MAX, 1]);
        assert_eq!(codes(&Cuts::exact(&[]), &[f64::NAN]), [u16::MAX]);
    }

    #[test]
    fn few_values_have_the_same_codes_as_many() {
        let spread: Vec<f64> = (0..3_001).map(|i| f64::from(i) * f64::from(i)).collect();
        for cuts in [Cuts::exact(&spread), Cuts::from_cuts(spread.clone()), Cuts::exact(&spread[..2])] {
            let mut wanted = vec![f64::NEG_INFINITY, -1.0, f64::INFINITY, 0.0];
            wanted.extend(spread.iter().flat_map(|&value| [value.next_down(), value, value.next_up()]));
            let expected: Vec<u16> = wanted.iter().map(|&value| cuts.code(value)).collect();
            assert_eq!(codes(&cuts, &wanted), expected);
            for n_values in [1, 3, 16, 50, 700] {
                let few: Vec<u16> = wanted.chunks(n_values).flat_map(|values| codes(&cuts, values)).collect();
                assert_eq!(few, expected, "{n_values}");
            }
        }
    }

    #[test]
    fn bins_have_about_equal_shares_of_the_rows() {
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        let cuts = Cuts::with_rare(Sample::new(&values), &[], &[], 3, &mut Scratch::default());
        // A third of 11 is nearer to 4 than to 3; of the other 7, either may be the larger half.
        assert_eq!(cuts.all(), [4.5, 7.5]);
    }

    #[test]
    fn a_cut_between_neighbouring_floats_still_parts_them() {
        // The middle of two neighbours is rounded to the one that is even: here the lower one, then the higher one.
        for low in [1.0f64, 1.0f64.next_up()] {
            let high = low.next_up();
            assert_eq!(codes(&Cuts::exact(&[low, high]), &[low, high]), [0, 1]);
        }
    }

    #[test]
    fn rare_values_have_codes_of_their_own() {
        // All values that are known fit.
        let with_rare = |sample: &[f64], apart: &[f64], rare: &[f64], max_bins| {
            Cuts::with_rare(Sample::new(sample), apart, rare, max_bins, &mut Scratch::default())
        };
        let few = with_rare(&[0.0; 50], &[9.0, -1.0], &[-1.0, 0.0, 2.0, 3.0, 4.0, 9.0], 5);
        assert_eq!(few.values.len(), 5);
        assert_eq!((few.values[0], few.values[4]), (-1.0, 9.0));
        let all = with_rare(&[0.0; 50], &[9.0, -1.0], &[-1.0, 0.0, 2.0, 3.0, 4.0, 9.0], 255);
        assert_eq!(*all.values, [-1.0, 0.0, 2.0, 3.0, 4.0, 9.0]);
        // More values than codes: the extremes and 0 are apart from the sampled ones.
        let sample: Vec<f64> = (1..=100).map(f64::from).collect();
        for (max_bins, apart) in [(10, vec![500.0, -500.0, 0.0]), (11, vec![300.0, -2.0, 0.0]), (8, vec![-5.0, 50.5])] {
            let cuts = with_rare(&sample, &apart, &[], max_bins);
            assert!(cuts.values.len() <= max_bins && cuts.all().len() + 1 == cuts.values.len());
            assert!(cuts.all().is_sorted_by(|a, b| a < b) && cuts.values.is_sorted_by(|a, b| a < b), "{cuts:?}");
            let sampled = codes(&cuts, &sample);
            for code in codes(&cuts, &apart) {
                assert!(!sampled.contains(&code), "{apart:?}: {cuts:?}");
            }
        }
        // Too few codes for all of that, and no row that was sampled.
        assert_eq!(with_rare(&sample, &[500.0, -500.0, 0.0], &[], 2).values.len(), 2);
        assert_eq!(with_rare(&[f64::NAN], &[5.0, -5.0, 0.0], &[], 2).values.len(), 2);
        assert_eq!(with_rare(&[], &[], &[], 2).values.len(), 0);
    }

    #[test]
    fn numbers_of_any_distribution_are_sorted() {
        let uniform =
            |n: u32| (0..n).map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 8) - 8e6).collect::<Vec<f64>>();
        let mut scratch = Scratch::default();
        for n in [0, 1, 127, 128, 2_000] {
            let skewed: Vec<f64> = uniform(n).into_iter().map(|value| (value / 1e5).exp()).collect();
            let tied: Vec<f64> = uniform(n).into_iter().map(|value| (value / 3e6).round()).collect();
            for values in [uniform(n), skewed, tied, vec![2.5; n as usize], vec![f64::MAX, f64::MIN, -0.0, 0.0]] {
                scratch.sort(Sample::new(&values));
                let mut expected = values;
                expected.sort_unstable_by(f64::total_cmp);
                assert_eq!(scratch.sorted, expected);
                expected.dedup();
                assert_eq!((&scratch.distinct, scratch.ends.len()), (&expected, expected.len()));
            }
        }
    }

    #[test]
    fn zeros_may_be_counted_instead_of_listed() {
        for values in [vec![], vec![-2.0, -1.0], vec![3.0, f64::NAN, 1.0, 3.0], vec![-1.0, 0.0, 5.0], vec![-0.0, 2.0]] {
            let (mut listed, mut counted) = (Scratch::default(), Scratch::default());
            counted.sort(Sample { numbers: &values, zeros: 7 });
            listed.sort(Sample::new(&[&values[..], &[0.0; 7]].concat()));
            assert_eq!((counted.distinct, counted.ends), (listed.distinct, listed.ends), "{values:?}");
        }
    }

    #[test]
    fn quantiles_share_the_sample_evenly_and_give_heavy_values_a_bin() {
        let even = Cuts::quantiles((0..1000).map(f64::from).collect(), 10);
        assert_eq!(even.values.len(), 10);
        let mut shares = [0; 10];
        codes(&even, &(0..1000).map(f64::from).collect::<Vec<_>>()).iter().for_each(|&c| shares[c as usize] += 1);
        assert!(shares.iter().all(|&share| (99..=101).contains(&share)), "{shares:?}");

        let mut heavy: Vec<f64> = vec![0.0; 900];
        heavy.extend((1..=100).map(f64::from));
        let bins = Cuts::quantiles(heavy, 11);
        assert_eq!(bins.cut(0), 0.5);
        assert_eq!(bins.values.len(), 11);
    }

    #[test]
    fn codes_agree_with_the_cut_points_however_these_are_spread() {
        let spread = |f: &dyn Fn(f64) -> f64| (0..254).map(|i| f(f64::from(i))).collect::<Vec<f64>>();
        let tiny = f64::MIN_POSITIVE / 4.0;
        let all = [
            spread(&|i| i),
            spread(&|i| (i / 8.0).exp()),
            spread(&|i| 1.0 + i * f64::EPSILON),
            spread(&|i| (i - 127.0) * (f64::MAX / 127.5)),
            spread(&|i| i * tiny),
            // Three in one cell, all others apart.
            [spread(&|i| i), vec![100.0 + 1e-9, 100.0 + 2e-9]].concat(),
            vec![3.0],
            vec![0.0, tiny],
            vec![-f64::MAX, f64::MAX],
        ];
        for mut cuts in all {
            cuts.sort_unstable_by(f64::total_cmp);
            let mut values: Vec<f64> = cuts.iter().flat_map(|&cut| [cut, cut.next_up(), cut.next_down()]).collect();
            values.extend(cuts.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])));
            values.extend([0.0, -0.0, 1e300, -1e300, f64::MAX, f64::MIN]);
            // The more values, the finer the grid.
            for times in [1, 30] {
                let cuts = Cuts::new(cuts.clone().into(), vec![0.0; cuts.len() + 1].into());
                for (value, code) in values.repeat(times).iter().zip(codes(&cuts, &values.repeat(times))) {
                    assert_eq!(cuts.cuts.partition_point(|cut| cut < value), code as usize, "{value} among {cuts:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn codes_agree_with_the_cut_points(
            mut values in prop::collection::vec(-1e3..1e3f64, 1..200),
            max_bins in 2usize..40,
        ) {
            let cuts = Cuts::quantiles(values.clone(), max_bins);
            prop_assert!(cuts.values.len() <= max_bins);
            prop_assert_eq!(cuts.all().len() + 1, cuts.values.len());
            values.push(1e9);
            for (value, code) in values.iter().zip(codes(&cuts, &values)) {
                prop_assert_eq!(cuts.all().partition_point(|cut| cut < value), code as usize);
                prop_assert_eq!(cuts.code(*value), code);
            }
        }
    }
}
