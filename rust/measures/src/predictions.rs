//! Label sets of rows, and the predictions that rows share.

/// Sets of labels, by their numbers.
///
/// ```
/// use ferrank_measures::LabelSets;
///
/// let mut sets = LabelSets::default();
/// sets.push([0, 2]);
/// sets.push([]);
/// assert_eq!((sets.of(0), sets.of(1)), (&[0, 2][..], &[][..]));
/// assert_eq!(sets.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct LabelSets {
    /// n_sets + 1 offsets into `labels`.
    starts: Vec<usize>,
    /// Set after set, ascending within a set.
    labels: Vec<u32>,
}

impl Default for LabelSets {
    fn default() -> Self {
        LabelSets { starts: vec![0], labels: Vec::new() }
    }
}

impl LabelSets {
    /// Adds a set, whose labels ascend.
    pub fn push(&mut self, labels: impl IntoIterator<Item = u32>) {
        self.labels.extend(labels);
        self.starts.push(self.labels.len());
    }

    /// The labels of set number `set`, ascending.
    pub fn of(&self, set: usize) -> &[u32] {
        &self.labels[self.range(set)]
    }

    /// Where the labels of a set are among those of all sets.
    pub(crate) fn range(&self, set: usize) -> std::ops::Range<usize> {
        self.starts[set]..self.starts[set + 1]
    }

    /// The labels of all sets.
    pub(crate) fn all(&self) -> &[u32] {
        &self.labels
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Predictions: scores of labels, and the predicted labels.
///
/// ```
/// use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
///
/// let mut predictions = Predictions::new(3);
/// predictions.push([(0, 0.7), (2, 0.4)], [0]);
/// predictions.push([(1, 1.0)], [1]);
/// assert_eq!((predictions.len(), predictions.n_labels()), (2, 3));
/// // Three rows and two predictions: rows 0 and 1 share prediction 0.
/// let mut sets = LabelSets::default();
/// [[0], [0], [1]].into_iter().for_each(|set| sets.push(set));
/// let mut judge = Judge::new(&sets, &predictions, &[Measure::HammingLoss], Conventions::Textbook);
/// assert_eq!(judge.judge(&[0, 0, 1]), [0.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Predictions {
    n_labels: usize,
    /// The labels whose score is not 0.
    pub(crate) listed: LabelSets,
    /// Their scores, in the same order.
    pub(crate) scores: Vec<f64>,
    pub(crate) sets: LabelSets,
}

impl Predictions {
    /// No predictions, of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Predictions { n_labels, listed: LabelSets::default(), scores: Vec::new(), sets: LabelSets::default() }
    }

    /// Adds a prediction: the `scores` of labels, and the labels of the predicted `set`, both by ascending label. Scores
    /// are not negative; labels that are left out have the score 0.
    pub fn push(&mut self, scores: impl IntoIterator<Item = (u32, f64)>, set: impl IntoIterator<Item = u32>) {
        let kept = &mut self.scores;
        let listed = scores.into_iter().filter(|&(_, score)| score != 0.0).map(|(label, score)| {
            kept.push(score);
            label
        });
        self.listed.push(listed);
        self.sets.push(set);
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of predictions.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
