//! What all parts of a store share.

use super::Chunk;
use super::bands::{BAND, Bands};
use super::targets::{Answers, TargetColumn, empty_targets};
use crate::profile::{Coding, ColumnProfile, Profile};
use crate::schema::Problem;
use ferrank_runtime::error::Result;

/// Where the codes of a feature lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Position among the features of one byte.
    Narrow(usize),
    /// Position among the features of two bytes.
    Wide(usize),
}

/// How values become codes, and where the codes of each feature lie.
#[derive(Debug, Clone)]
pub struct Codebook {
    /// n_features.
    pub codings: Vec<Coding>,
    /// n_features.
    pub slots: Vec<Slot>,
    /// Numbers of features of one byte and of two.
    narrow: usize,
    wide: usize,
    /// The targets, then the features if their values are kept, without rows.
    columns: Vec<TargetColumn>,
    /// Number of targets.
    pub n_targets: usize,
    /// Labels of the closed sets of a row, about.
    listed: f64,
    /// True if rows have weights.
    pub(super) weighted: bool,
    /// True if rows have groups.
    pub(super) grouped: bool,
}

impl Codebook {
    /// The codes that `profile` asks for, of `problem` in the source called `name`; the values of features are kept
    /// beside them if `with_values`.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) where the labels found make no hierarchy.
    pub fn new(profile: &Profile, problem: &Problem, with_values: bool, name: &str) -> Result<Self> {
        let codings = profile.codings();
        let (mut narrow, mut wide) = (0, 0);
        let slots = codings
            .iter()
            .map(|coding| {
                let next = if coding.is_narrow() { &mut narrow } else { &mut wide };
                *next += 1;
                if coding.is_narrow() { Slot::Narrow(*next - 1) } else { Slot::Wide(*next - 1) }
            })
            .collect();
        let mut columns = empty_targets(problem, profile, 0, name)?;
        let n_targets = columns.len();
        let (weighted, grouped) = (problem.weight.is_some(), problem.groups.is_some());
        let listed = (profile.targets.iter())
            .map(|column| match column {
                ColumnProfile::Labels(labels) => labels.mean_closed(profile.counts.kept),
                _ => Ok(0.0),
            })
            .sum::<Result<f64>>()?;
        if with_values {
            for column in &profile.features {
                columns.push(TargetColumn::empty(column, 0)?);
            }
        }
        Ok(Codebook { codings, slots, narrow, wide, columns, n_targets, listed, weighted, grouped })
    }

    /// The codebook of the same rows without their codes.
    pub(super) fn without_codes(&self) -> Self {
        let columns = self.columns.clone();
        Codebook { codings: Vec::new(), slots: Vec::new(), narrow: 0, wide: 0, columns, ..*self }
    }

    /// The codebook of the same rows without their values, weights and groups.
    pub(super) fn only_codes(&self) -> Self {
        Codebook { columns: Vec::new(), n_targets: 0, weighted: false, grouped: false, ..self.clone() }
    }

    /// Bands of one byte and of two.
    pub(super) fn n_bands(&self) -> (usize, usize) {
        (self.narrow.div_ceil(BAND), self.wide.div_ceil(BAND))
    }

    /// Bytes that the codes of a row take.
    pub fn row_bytes(&self) -> usize {
        let (narrow, wide) = self.n_bands();
        BAND * (narrow + 2 * wide)
    }

    /// Number of columns whose values are kept.
    pub fn n_kept(&self) -> usize {
        self.columns.len()
    }

    /// Bytes that the labels of a row take, about: as they are, and as components.
    pub fn label_bytes(&self) -> usize {
        (self.listed * (2 * size_of::<u32>()) as f64).ceil() as usize
    }

    /// Bytes that the groups of a row take, at most, while they are numbered: the hash, the number, and where each row
    /// is a group of its own, what is known of it.
    pub fn group_bytes(&self) -> usize {
        if self.grouped { 48 } else { 0 }
    }

    /// A chunk of `rows` rows, all with code 0.
    pub(super) fn chunk(&self, rows: usize) -> Chunk {
        Chunk { rows, narrow: Bands::new(self.narrow, rows), wide: Bands::new(self.wide, rows) }
    }

    /// The values and weights of no rows.
    pub(super) fn no_answers(&self) -> Answers {
        Answers { columns: self.columns.clone(), ..Answers::default() }
    }
}
