//! The rows for which trees make predictions, and their true values.

use rand::RngExt;

use super::MOST_ROWS;
use crate::context::GrowContext;
use crate::criterion::{Criterion, WEIGHT};
use crate::space::{Block, Indicator, NO_SHARE, Outcome};
use crate::view::View;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::bands::{BAND, Bands};
use ferrank_data::store::{Chunk, CodeStore, Stored, TargetColumn};
use ferrank_runtime::random::{Purpose, stream};

/// The most numbers that a tree adds to its contribution, as expected.
const MOST_NUMBERS: f64 = 16_000.0;
/// The most bytes of the codes of sampled rows.
const MOST_BYTES: usize = 16 << 20;
/// The least rows of a sample, if the data have so many.
const LEAST_ROWS: usize = 64;

/// A sample of the rows, the same for all trees: one row from each of as many ranges of rows.
pub(crate) struct RowSample<'a> {
    pub(super) context: GrowContext<'a>,
    pub(super) criterion: Criterion,
    /// Numbers in the store, ascending.
    pub(super) rows: Vec<usize>,
    pub(super) codes: Chunk,
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
    /// n_rows; the residual, or the error, of the constant prediction.
    pub(super) guesses: Vec<f64>,
    /// The share of each label; empty for other targets.
    pub(super) shares: Vec<f64>,
}

/// The value of a target in a row.
pub(super) enum Truth {
    /// The value of the component.
    Number(f64),
    Class(usize),
    /// Ascending.
    Labels(Vec<u32>),
}

impl<'a> RowSample<'a> {
    /// A sample of the rows with a known value of one of the targets `subset`. Without rows if the store is a part of
    /// the data, whose trees do not predict rows of the other parts; `None` if trees have no out-of-bag rows.
    pub(crate) fn new(context: GrowContext<'a>, subset: &[usize], is_part: bool) -> Option<Self> {
        let GrowContext { store, space, params, .. } = context;
        if !params.bootstraps() || subset.is_empty() {
            return None;
        }
        let mut sample = RowSample {
            context,
            criterion: Criterion::new(space),
            rows: Vec::new(),
            codes: Chunk::default(),
            weights: Vec::new(),
            totals: Vec::new(),
            targets: subset.iter().map(|&target| SampledTarget::new(context, target)).collect(),
        };
        if is_part || sample.targets.iter().all(|target| target.outcome.is_none()) {
            return Some(sample);
        }
        sample.totals = totals(context, &sample.criterion);
        let numbers: f64 = sample.targets.iter().map(|target| target.numbers(&sample.criterion, &sample.totals)).sum();
        let most = most_rows((MOST_NUMBERS / (1.0 + numbers)) as usize, store.row_bytes());
        sample.rows = draw(store, subset, params.seed, most);
        sample.codes = gather(store, &sample.rows);
        sample.weights = sample.rows.iter().map(|&row| store.weights.get(row).copied().unwrap_or(1.0)).collect();
        for (sampled, &target) in sample.targets.iter_mut().zip(subset) {
            sampled.read(&sample.rows, &store.targets[target], context, &sample.criterion, &sample.totals);
        }
        Some(sample)
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
        SampledTarget { outcome, truths: Vec::new(), guesses: Vec::new(), shares }
    }

    /// Expected numbers that a tree adds for a row: what the constant prediction has, and the shares other than 0.
    fn numbers(&self, criterion: &Criterion, totals: &[f64]) -> f64 {
        match &self.outcome {
            None => 0.0,
            Some(Outcome::Number(_)) => 2.0,
            Some(Outcome::Classes(indicators)) => {
                let shares = indicators.iter().flatten().filter_map(|indicator| indicator.share(criterion, totals));
                let mixed: f64 = shares.map(|share| (4.0 * share * (1.0 - share)).min(1.0)).sum();
                2.0 * mixed.min(2.0)
            }
            Some(Outcome::Labels(indicators)) => {
                let shares = indicators.iter().flatten().filter_map(|indicator| indicator.share(criterion, totals));
                1.0 + 2.0 * shares.map(|share| 4.0 * share * (1.0 - share)).sum::<f64>()
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
        let guess = Guess::new(outcome, criterion, totals);
        for &row in rows.iter() {
            let truth = column.is_known(row).then(|| match (outcome, column) {
                (Outcome::Number(component), _) => {
                    let (block, place) = context.space.block_with(context.store.columns(), row, &mut one);
                    // A value is multiplied by the weight of the row.
                    Truth::Number(block.dense(place)[*component] / block.weight(place))
                }
                (_, TargetColumn::Nominal { codes, .. }) if codes[row] != MISSING_U16 => {
                    Truth::Class(usize::from(codes[row]))
                }
                (_, TargetColumn::Labels(labels)) => Truth::Labels(labels.of(row).unwrap_or(&[]).to_vec()),
                _ => unreachable!("a numeric target has a number"),
            });
            self.guesses.push(truth.as_ref().map_or(0.0, |truth| guess.error(truth, &self.shares)));
            self.truths.push(truth);
        }
    }
}

/// The constant prediction.
enum Guess {
    /// The value of the component.
    Number(f64),
    Class(usize),
    /// For each label, true if it is predicted. `None` if all or no rows have it.
    Labels(Vec<Option<bool>>),
}

impl Guess {
    fn new(outcome: &Outcome, criterion: &Criterion, totals: &[f64]) -> Self {
        match outcome {
            Outcome::Number(component) => Guess::Number(criterion.mean(totals, *component).unwrap_or(0.0)),
            Outcome::Classes(_) => {
                let mut most = (0.0, 0);
                for (class, share) in outcome.shares(criterion, totals).into_iter().flatten() {
                    // Of equal shares the first counts.
                    if share > most.0 + NO_SHARE {
                        most = (share, class);
                    }
                }
                Guess::Class(most.1)
            }
            Outcome::Labels(indicators) => {
                let has = |indicator: Indicator| {
                    indicator.share(criterion, totals).is_some_and(|share| share > 0.5 + NO_SHARE)
                };
                Guess::Labels(indicators.iter().map(|indicator| indicator.map(has)).collect())
            }
        }
    }

    /// The residual of a number; else the error.
    fn error(&self, truth: &Truth, shares: &[f64]) -> f64 {
        match (self, truth) {
            (Guess::Number(guess), Truth::Number(value)) => guess - value,
            (Guess::Class(guess), Truth::Class(class)) => f64::from(guess != class),
            (Guess::Labels(guess), Truth::Labels(labels)) => {
                let has = |label: u32| labels.binary_search(&label).is_ok();
                let wrong = (0..).zip(guess).map(|(label, guess)| guess.is_some_and(|guess| guess != has(label)));
                wrong.zip(shares).filter(|(wrong, _)| *wrong).map(|(_, share)| share).sum()
            }
            _ => unreachable!("both are of the same target"),
        }
    }
}

/// The sums of all rows.
fn totals(context: GrowContext<'_>, criterion: &Criterion) -> Vec<f64> {
    let GrowContext { store, space, .. } = context;
    let mut sums = vec![0.0; criterion.len()];
    let mut block = Block::default();
    for base in (0..store.rows).step_by(CHUNK_ROWS) {
        let rows = base..store.rows.min(base + CHUNK_ROWS);
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

/// Draws up to `most` of the rows with a known value of one of the targets `subset`; they ascend.
fn draw(store: &CodeStore, subset: &[usize], seed: u64, most: usize) -> Vec<usize> {
    let is_known = |row: usize| subset.iter().any(|&target| store.targets[target].is_known(row));
    let known = || (0..store.rows).filter(|&row| is_known(row));
    let n_known = known().count();
    let n_drawn = n_known.min(most);
    let mut random = stream(seed, Purpose::ModelError, 0, 0);
    let start = |number: usize| (number as u128 * n_known as u128 / n_drawn as u128) as usize;
    let places = (0..n_drawn).map(|number| random.random_range(start(number) as u64..start(number + 1) as u64));
    let mut places = places.map(|place| place as usize).peekable();
    let mut rows = Vec::with_capacity(n_drawn);
    for (place, row) in known().enumerate() {
        if places.next_if_eq(&place).is_some() {
            rows.push(row);
        }
    }
    rows
}

/// The codes of `rows`; features keep their slots.
fn gather(store: &CodeStore, rows: &[usize]) -> Chunk {
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
    chunk
}
