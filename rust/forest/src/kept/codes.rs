//! Values of new rows to the codes of a kept forest: the numbers of its own cuts and categories.
//!
//! Code k of a number is above the k-th cut of all trees, counted from 1, and not above the next, so that a test on values
//! is one on codes. All trees are then walked with codes of a byte or two.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use ferrank_data::column::{check_finite, numeric_values};
use ferrank_data::profile::{Categories, Coding, Cuts, Scale};
use ferrank_data::store::{Code, encode};
use ferrank_runtime::error::{Error, Result};

use super::head::Head;
use super::nodes::Nodes;

/// The most cuts of a feature: those of growth with codes of two bytes.
const MOST_CUTS: usize = u16::MAX as usize - 1;

/// Codes the rows of a kept forest.
#[derive(Debug)]
pub(super) struct RowCoder {
    /// The features that are tested, ascending.
    columns: Vec<Column>,
    /// n_features; the column of each tested feature.
    column_of: Vec<u32>,
}

#[derive(Debug)]
struct Column {
    /// Number of the feature.
    feature: usize,
    coding: Coding,
}

impl RowCoder {
    /// The codes of the tests of `trees`, which were checked.
    ///
    /// # Errors
    /// What is wrong: more cuts of a feature than codes.
    pub(super) fn new(head: &Head, trees: impl Iterator<Item = RecordBatch>) -> std::result::Result<Self, String> {
        let mut cuts: Vec<Vec<f64>> = vec![Vec::new(); head.features.len()];
        let mut is_tested = vec![false; head.features.len()];
        for batch in trees {
            let nodes = Nodes::new(&batch);
            for node in (0..nodes.len()).filter(|&node| !nodes.is_leaf(node)) {
                let feature = nodes.feature.value(node) as usize;
                is_tested[feature] = true;
                if nodes.cut.is_valid(node) && nodes.cut.value(node).is_finite() {
                    // Adding 0 turns -0 into 0, so that the two are one cut.
                    cuts[feature].push(nodes.cut.value(node) + 0.0);
                }
            }
            cuts.iter_mut().filter(|cuts| cuts.len() > 2 * MOST_CUTS).for_each(ascend);
        }
        cuts.iter_mut().for_each(ascend);
        let mut columns = Vec::new();
        let mut column_of = vec![0; head.features.len()];
        for (feature, cuts) in cuts.into_iter().enumerate().filter(|&(feature, _)| is_tested[feature]) {
            column_of[feature] = columns.len() as u32;
            let coding = match &head.features[feature].categories {
                Some(names) => Coding::nominal(Categories::new(names.iter().cloned()), true),
                None if cuts.len() > MOST_CUTS => {
                    let name = &head.features[feature].name;
                    return Err(format!("the feature '{name}' has {} cuts, at most {MOST_CUTS} can be", cuts.len()));
                }
                None => Coding::numeric(Cuts::from_cuts(cuts), true),
            };
            columns.push(Column { feature, coding });
        }
        Ok(RowCoder { columns, column_of })
    }

    /// The column of a tested feature.
    pub(super) fn column_of(&self, feature: u32) -> u32 {
        self.column_of[feature as usize]
    }

    /// The highest code that a cut sends to the left.
    pub(super) fn code_of_cut(&self, feature: u32, cut: f64) -> u16 {
        match &self.columns[self.column_of(feature) as usize].coding.scale {
            Scale::Numeric(cuts) => cuts.code(cut),
            Scale::Nominal(_) => unreachable!("a nominal feature has no cuts"),
        }
    }

    /// Number of codes of a row.
    pub(super) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns true if all codes fit in a byte.
    pub(super) fn is_narrow(&self) -> bool {
        self.columns.iter().all(|column| column.coding.is_narrow())
    }

    /// Writes the codes of the rows of `batch`, n_rows x n_columns. `positions` says where the features are in the batch.
    ///
    /// # Errors
    /// The position of the column with an unreadable or infinite value, and what is wrong.
    pub(super) fn encode<C: Code>(
        &self,
        batch: &RecordBatch,
        positions: &[usize],
        codes: &mut Vec<C>,
    ) -> std::result::Result<(), (usize, Error)> {
        let n_columns = self.columns.len();
        codes.clear();
        codes.resize(batch.num_rows() * n_columns, C::MISSING);
        for (number, column) in self.columns.iter().enumerate() {
            let position = positions[column.feature];
            let array = batch.column(position);
            if matches!(column.coding.scale, Scale::Numeric(_)) {
                check_no_infinity(array).map_err(|error| (position, error))?;
            }
            encode(&column.coding, array, |row, code| codes[row * n_columns + number] = code)
                .map_err(|error| (position, error))?;
        }
        Ok(())
    }
}

/// # Errors
/// [`Error::Data`] if a value is infinite, without the column's name.
fn check_no_infinity(array: &ArrayRef) -> Result<()> {
    // Without a copy where it is of a usual type; what lies at a null does not count.
    let has_infinity = match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().values().iter().any(|value| value.is_infinite()),
        DataType::Float32 => array.as_primitive::<Float32Type>().values().iter().any(|value| value.is_infinite()),
        other => !other.is_integer(),
    };
    if !has_infinity {
        return Ok(());
    }
    let mut values = Vec::new();
    numeric_values(array, &mut values)?;
    check_finite(&values)
}

fn ascend(cuts: &mut Vec<f64>) {
    cuts.sort_unstable_by(f64::total_cmp);
    cuts.dedup();
}
