//! The rows for which trees make predictions, and their true values.

use rand::RngExt;

use super::MOST_ROWS;
use crate::context::GrowContext;
use crate::criterion::{Criterion, WEIGHT};
use crate::space::{Block, Indicator, NO_SHARE, Outcome};
use crate::view::View;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::bands::{BAND, Bands};
use ferrank_data::store::{Chunk, CodeStore, Stored, TargetColumn};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, stream};

/// The most numbers that a tree adds to its contribution, as expected.
const MOST_NUMBERS: f64 = 16_000.0;
/// The most bytes of the codes of sampled rows.
const MOST_BYTES: usize = 16 << 20;
/// Rows whose values are read together.
const ROWS_AT_ONCE: usize = 2048;
/// The least rows of a sample, if the data have so many.
const LEAST_ROWS: usize = 64;

/// A sample of the rows, the same for all trees.
pub(crate) struct RowSample<'a> {
    pub(super) context: GrowContext<'a>,
    pub(super) criterion: Criterion,
    /// Numbers in the store, ascending.
    pub(super) rows: Vec<usize>,
    /// `None` if these are all rows, whose codes the store has.
    codes: Option<Chunk>,
    /// n_rows; the weight of a row times the number of rows that it stands for.
    pub(super) weights: Vec<f64>,
    /// The sums of all rows of the store.
    pub(super) totals: Vec<f64>,
    pub(super) targets: Vec<SampledTarget>,
}

/// The values of a target in the sample.
pub(super) struct SampledTarget {
    /// `None` if the target has no component, as one that is constant.
    pub(super) outcome: Option<Outcome>,
    /// n_rows; `None` where missing.
    pub(super) truths: Vec<Option<Truth>>,
    /// The constant prediction of a number.
    pub(super) guess: f64,
    /// The weight of each label in the Hamming loss; empty for other targets.
    pub(super) shares: Vec<f64>,
}

/// The value of a target in a row.
pub(super) enum Truth {
    /// The value of the component.
    Number(f64),
    Class(usize),
    Labels {
        /// Ascending.
        labels: Vec<u32>,
        /// The Hamming loss of the constant prediction.
        loss: f64,
        /// The squared error of the shares of all rows.
        squares: f64,
    },
}

impl<'a> RowSample<'a> {
    /// A sample of the rows with a known value of one of the targets `subset`. Without rows if the store is a part of
    /// the data, whose trees do not predict rows of the other parts; `None` if trees have no out-of-bag rows.
    pub(crate) fn new(context: GrowContext<'a>, subset: &[usize], is_part: bool) -> Option<Self> {
        RowSample::read(context, subset, is_part, |rows| Ok(gather(context.store, rows)))
            .expect("the store has the codes of all rows")
    }

    /// The same, with codes of rows from `codes`.
    pub(crate) fn read(
        context: GrowContext<'a>,
        subset: &[usize],
        is_part: bool,
        codes: impl FnOnce(&[usize]) -> Result<Option<Chunk>>,
    ) -> Result<Option<Self>> {
        let GrowContext { store, space, params, .. } = context;
        if !params.bootstraps() || subset.is_empty() {
            return Ok(None);
        }
        let mut sample = RowSample {
            context,
            criterion: Criterion::new(space),
            rows: Vec::new(),
            codes: None,
            weights: Vec::new(),
            totals: Vec::new(),
            targets: subset.iter().map(|&target| SampledTarget::new(context, target)).collect(),
        };
        if is_part || sample.targets.iter().all(|target| target.outcome.is_none()) {
            return Ok(Some(sample));
        }
        sample.totals = totals(context, &sample.criterion);
        let numbers: f64 = sample.targets.iter().map(|target| target.numbers(&sample.criterion, &sample.totals)).sum();
        let most = most_rows((MOST_NUMBERS / (1.0 + numbers)) as usize, store.full_row_bytes());
        (sample.rows, sample.weights) = draw(store, subset, params.seed, most);
        sample.codes = codes(&sample.rows)?;
        for (weight, &row) in sample.weights.iter_mut().zip(&sample.rows) {
            *weight *= store.weights.get(row).copied().unwrap_or(1.0);
        }
        for (sampled, &target) in sample.targets.iter_mut().zip(subset) {
            sampled.read(&sample.rows, &store.targets[target], context, &sample.criterion, &sample.totals);
        }
        Ok(Some(sample))
    }

    /// The codes of the rows.
    pub(super) fn codes(&self) -> &Chunk {
        self.codes.as_ref().unwrap_or(&self.context.store.chunks[0])
    }

    /// Bytes of the codes of a sample of `n_rows` rows of `row_bytes` bytes.
    pub(crate) fn bytes(n_rows: u64, row_bytes: usize) -> usize {
        most_rows(MOST_ROWS, row_bytes).min(usize::try_from(n_rows).unwrap_or(usize::MAX)) * row_bytes
    }
}

/// `wanted` rows, or fewer if rows have so many bytes.
fn most_rows(wanted: usize, row_bytes: usize) -> usize {
    wanted.min(MOST_BYTES / row_bytes.max(1)).clamp(LEAST_ROWS, MOST_ROWS)
}

impl SampledTarget {
    fn new(context: GrowContext<'_>, target: usize) -> Self {
        let column = &context.store.targets[target];
        let shares = match column {
            TargetColumn::Labels(labels) => labels.shares(),
            _ => Vec::new(),
        };
        let outcome = context.space.outcome(target, column);
        SampledTarget { outcome, truths: Vec::new(), guess: 0.0, shares }
    }

    /// Expected numbers that a tree adds for a row: the true value, and the shares other than 0.
    fn numbers(&self, criterion: &Criterion, totals: &[f64]) -> f64 {
        match &self.outcome {
            None => 0.0,
            Some(Outcome::Number(_)) => 2.0,
            Some(Outcome::Classes(indicators)) => {
                let shares = indicators.iter().flatten().filter_map(|indicator| indicator.share(criterion, totals));
                let mixed: f64 = shares.map(|share| (4.0 * share * (1.0 - share)).min(1.0)).sum();
                1.0 + mixed.min(2.0)
            }
            Some(Outcome::Labels(indicators)) => {
                let shares = indicators.iter().flatten().filter_map(|indicator| indicator.share(criterion, totals));
                2.0 + 2.0 * shares.map(|share| 4.0 * share * (1.0 - share)).sum::<f64>()
            }
        }
    }

    /// Reads the values of `rows` from `column`.
    fn read(
        &mut self,
        rows: &[usize],
        column: &TargetColumn,
        context: GrowContext<'_>,
        criterion: &Criterion,
        totals: &[f64],
    ) {
        let Some(outcome) = &self.outcome else { return };
        let mut one = Block::default();
        if let Outcome::Number(component) = outcome {
            self.guess = criterion.mean(totals, *component).unwrap_or(0.0);
        }
        let labels_of_all = LabelShares::new(outcome, criterion, totals);
        for &row in rows {
            let truth = column.is_known(row).then(|| match (outcome, column) {
                (Outcome::Number(component), _) => {
                    let (block, place) = context.space.block_with(context.store.columns(), row, &mut one);
                    // A value is multiplied by the weight of the row.
                    Truth::Number(block.dense(place)[*component] / block.weight(place))
                }
                (_, TargetColumn::Nominal { codes, .. }) => Truth::Class(usize::from(codes[row])),
                (_, TargetColumn::Labels(labels)) => {
                    let labels = labels.of(row).unwrap_or(&[]).to_vec();
                    let [loss, squares] = labels_of_all.errors(&labels, &self.shares);
                    Truth::Labels { labels, loss, squares }
                }
                _ => unreachable!("a numeric target has a number"),
            });
            self.truths.push(truth);
        }
    }
}

/// The shares of the labels in all rows, which are the constant prediction: number of the label and share.
struct LabelShares(Vec<(u32, f64)>);

impl LabelShares {
    /// Without labels unless `outcome` is a label set.
    fn new(outcome: &Outcome, criterion: &Criterion, totals: &[f64]) -> Self {
        let Outcome::Labels(indicators) = outcome else { return LabelShares(Vec::new()) };
        let share =
            |(label, indicator): (u32, &Option<Indicator>)| Some((label, (*indicator)?.share(criterion, totals)?));
        LabelShares((0..).zip(indicators).filter_map(share).collect())
    }

    /// The Hamming loss of the constant prediction for a row with these `labels`, and its squared error.
    fn errors(&self, labels: &[u32], weights: &[f64]) -> [f64; 2] {
        let (mut loss, mut squares) = (0.0, 0.0);
        for &(label, share) in &self.0 {
            let (weight, has) = (weights[label as usize], labels.binary_search(&label).is_ok());
            loss += if has == (share > 0.5 + NO_SHARE) { 0.0 } else { weight };
            squares += weight * (f64::from(has) - share).powi(2);
        }
        [loss, squares]
    }
}

/// The sums of all rows.
fn totals(context: GrowContext<'_>, criterion: &Criterion) -> Vec<f64> {
    let GrowContext { store, space, .. } = context;
    let mut sums = vec![0.0; criterion.len()];
    let mut block = Block::default();
    for base in (0..store.rows).step_by(ROWS_AT_ONCE) {
        let rows = base..store.rows.min(base + ROWS_AT_ONCE);
        let (block, first) = match space.is_held() {
            true => (&space.block, base),
            false => {
                space.values(store.columns(), rows.clone(), &mut block);
                (&block, 0)
            }
        };
        (first..first + rows.len()).for_each(|row| criterion.add(&mut sums, block, row, 1.0));
    }
    debug_assert!(sums[WEIGHT] > 0.0);
    sums
}

/// Draws up to `most` of the rows with a known value of one of the targets `subset`; they ascend. With each row comes
/// the number of rows that it stands for.
///
/// Half of the sample is spread evenly over all rows, the other half evenly over the classes of nominal targets, so that
/// rare classes are in the sample. Rows that are drawn with probability 1 are in it once; of the others, one is drawn
/// from each of as many consecutive ranges of equal probability.
fn draw(store: &CodeStore, subset: &[usize], seed: u64, most: usize) -> (Vec<usize>, Vec<f64>) {
    let is_known = |row: usize| subset.iter().any(|&target| store.targets[target].is_known(row));
    let known = || (0..store.rows).filter(|&row| is_known(row));
    let n_known = known().count();
    if n_known <= most {
        return (known().collect(), vec![1.0; n_known]);
    }
    let shares = ClassShares::new(store, subset);
    let mut random = stream(seed, Purpose::ModelError, 0, 0);
    let (mut sum, mut n_ranges) = (0.0, 0.0);
    let mut next: f64 = random.random();
    let (mut rows, mut factors) = (Vec::with_capacity(most + 1), Vec::with_capacity(most + 1));
    for row in known() {
        let even = 1.0 / n_known as f64;
        let probability = most as f64 * shares.of(row).map_or(even, |share| 0.5 * (even + share));
        if probability >= 1.0 {
            rows.push(row);
            factors.push(1.0);
            continue;
        }
        sum += probability;
        let mut hits = 0.0;
        while next < sum {
            hits += 1.0;
            n_ranges += 1.0;
            next = n_ranges + random.random::<f64>();
        }
        if hits > 0.0 {
            rows.push(row);
            factors.push(hits / probability);
        }
    }
    (rows, factors)
}

/// The share of each row in a sample that has the same number of rows of each class, as the mean over nominal targets.
struct ClassShares<'a> {
    /// The codes of a target, and the share of a row of each class.
    targets: Vec<(&'a [u16], Vec<f64>)>,
}

impl<'a> ClassShares<'a> {
    fn new(store: &'a CodeStore, subset: &[usize]) -> Self {
        let target = |&target: &usize| match &store.targets[target] {
            TargetColumn::Nominal { codes, categories } => {
                let mut counts = vec![0_u64; categories.names.len()];
                codes.iter().filter(|&&code| code != MISSING_U16).for_each(|&code| counts[usize::from(code)] += 1);
                let n_present = counts.iter().filter(|&&count| count > 0).count() as f64;
                Some((&codes[..], counts.iter().map(|&count| 1.0 / (n_present * count as f64)).collect()))
            }
            _ => None,
        };
        ClassShares { targets: subset.iter().filter_map(target).collect() }
    }

    /// `None` without nominal targets.
    fn of(&self, row: usize) -> Option<f64> {
        let share = |(codes, shares): &(&[u16], Vec<f64>)| shares.get(usize::from(codes[row])).copied().unwrap_or(0.0);
        let sum: f64 = self.targets.iter().map(share).sum();
        (!self.targets.is_empty()).then(|| sum / self.targets.len() as f64)
    }
}

/// The codes of `rows`, where they are not all that the store has; features keep their slots.
fn gather(store: &CodeStore, rows: &[usize]) -> Option<Chunk> {
    if rows.len() == store.rows && store.chunks.len() == 1 {
        return None;
    }
    fn read<C: Stored>(store: &CodeStore, rows: &[usize], to: &mut Bands<C>) {
        to.resize(C::of(&store.chunks[0]).len(), rows.len());
        for (band, cells) in to.iter_mut().enumerate() {
            for (cells, &row) in cells.iter_mut().zip(rows) {
                View::from_codes(store, row).band(band, &[0], |_, codes: &[C; BAND]| *cells = *codes);
            }
        }
    }
    let mut chunk = Chunk { rows: rows.len(), ..Chunk::default() };
    read(store, rows, &mut chunk.narrow);
    read(store, rows, &mut chunk.wide);
    Some(chunk)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, RecordBatch, StringArray};

    use super::*;
    use crate::tests::Coded;

    /// 9,000 rows, of which one in 600 is of the class "rare", and one in 450 misses the class.
    fn store(target: &str) -> Coded {
        let rows = 0..9_000_i32;
        let class = |row: i32| match row {
            row if row % 450 == 7 => None,
            row if row % 600 == 599 => Some("rare"),
            _ => Some("usual"),
        };
        let mut columns = vec![("x", Arc::new(Float64Array::from_iter(rows.clone().map(f64::from))) as _, false)];
        columns.push(match target {
            "class" => ("y", Arc::new(StringArray::from_iter(rows.map(class))) as _, true),
            _ => ("y", Arc::new(Float64Array::from_iter(rows.map(|row| f64::from(row % 7)))) as _, true),
        });
        Coded::new(&RecordBatch::try_from_iter_with_nullable(columns).unwrap(), &["y"], None, 255)
    }

    #[test]
    fn small_data_are_the_sample() {
        let coded = store("number");
        assert_eq!(draw(&coded.store, &[0], 1, 9_000), ((0..9_000).collect(), vec![1.0; 9_000]));
    }

    #[test]
    fn rows_are_spread_evenly_and_stand_for_all() {
        let coded = store("number");
        let (rows, factors) = draw(&coded.store, &[0], 1, 1_000);
        assert!((950..=1_001).contains(&rows.len()), "{}", rows.len());
        assert!(rows.is_sorted_by(|a, b| a < b));
        for third in [0..3_000_usize, 3_000..6_000, 6_000..9_000] {
            let sum: f64 = rows.iter().zip(&factors).filter(|&(row, _)| third.contains(row)).map(|(_, n)| n).sum();
            assert!((sum - 3_000.0).abs() < 20.0, "{third:?}: {sum}");
        }
    }

    #[test]
    fn a_rare_class_is_in_the_sample() {
        let coded = store("class");
        let (rows, factors) = draw(&coded.store, &[0], 1, 1_000);
        let TargetColumn::Nominal { codes, categories } = &coded.store.targets[0] else { unreachable!() };
        let of = |name: &str| {
            let code = categories.names.iter().position(|one| one == name).unwrap();
            let of_class = rows.iter().zip(&factors).filter(|&(&row, _)| usize::from(codes[row]) == code);
            (of_class.clone().count(), of_class.map(|(_, factor)| factor).sum::<f64>())
        };
        assert_eq!(of("rare"), (15, 15.0));
        let (n, sum) = of("usual");
        assert!((700..900).contains(&n), "{n}");
        assert!((sum - 8_965.0).abs() < 30.0, "{sum}");
        assert!(rows.iter().all(|&row| codes[row] != MISSING_U16));
    }
}
