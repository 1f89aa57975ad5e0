//! The components from which a target is predicted.

use ferrank_data::store::{Origin, TargetColumn};

use super::{NONE, Space};
use crate::criterion::Criterion;

/// The components of a target.
pub(crate) enum Outcome {
    /// The component of a numeric target.
    Number(usize),
    /// For each class, what tells it from the others. A class without an indicator has the rest of the weight.
    Classes(Vec<Option<Indicator>>),
    /// For each label, what tells whether a row has it; `None` if all rows or no rows have it.
    Labels(Vec<Option<Indicator>>),
}

/// A component that tells whether a row has a class or a label.
#[derive(Clone, Copy)]
pub(crate) struct Indicator {
    component: usize,
    /// The value of a row without the class or label, and that of a row with it.
    values: [f64; 2],
}

/// Shares up to this, and differences between them, are rounding noise.
pub(crate) const NO_SHARE: f64 = 1e-9;

impl Indicator {
    /// The share of the weight that has the class or label; `None` if it is known for no row.
    pub(crate) fn share(self, criterion: &Criterion, sums: &[f64]) -> Option<f64> {
        let [without, with] = self.values;
        let share = (criterion.mean(sums, self.component)? - without) / (with - without);
        Some(if share < NO_SHARE { 0.0 } else { share.min(1.0) })
    }
}

impl Outcome {
    /// The shares of the classes or labels that some of the weight in `sums` has, ascending; `None` if the target is
    /// known for no row, or is numeric.
    pub(crate) fn shares(&self, criterion: &Criterion, sums: &[f64]) -> Option<Vec<(usize, f64)>> {
        let (Outcome::Classes(indicators) | Outcome::Labels(indicators)) = self else { return None };
        let mut shares = Vec::new();
        for (number, indicator) in indicators.iter().enumerate() {
            if let Some(indicator) = indicator {
                shares.push((number, indicator.share(criterion, sums)?));
            }
        }
        if let Outcome::Classes(_) = self
            && let Some(other) = indicators.iter().position(Option::is_none)
        {
            shares.push((other, 1.0 - shares.iter().map(|(_, share)| share).sum::<f64>()));
        }
        shares.retain(|&(_, share)| share > NO_SHARE);
        shares.sort_unstable_by_key(|&(number, _)| number);
        Some(shares)
    }
}

impl Space {
    /// Of a nominal target with two classes that has one component: the class that it tells from the other, and the values of a
    /// row without and with it.
    pub(crate) fn one_of_two_classes(&self, target: usize, column: &TargetColumn) -> Option<(u32, [f64; 2])> {
        match self.outcome(target, column)? {
            Outcome::Classes(indicators) => match indicators[..] {
                [Some(Indicator { values, .. }), None] => Some((0, values)),
                [None, Some(Indicator { values, .. })] => Some((1, values)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The components of the target with number `target`, whose values are in `column`; `None` if it has none.
    pub(crate) fn outcome(&self, target: usize, column: &TargetColumn) -> Option<Outcome> {
        let origin = Origin::Target(target);
        let dense = || (0..).zip(&self.dense).filter(move |(_, dense)| dense.origin == origin);
        let n_indicators = match column {
            TargetColumn::Numeric(_) => return dense().next().map(|(component, _)| Outcome::Number(component)),
            TargetColumn::Nominal { categories, .. } => categories.names.len(),
            TargetColumn::Labels(labels) => labels.hierarchy.names().len(),
        };
        let mut indicators = vec![None; n_indicators];
        for (component, dense) in dense() {
            let values = [0.0, 1.0].map(|y| dense.value(y, 1.0));
            indicators[dense.which as usize] = Some(Indicator { component, values });
        }
        for (_, listed) in self.listed.iter().filter(|(listed, _)| *listed == origin) {
            for (indicator, &number) in indicators.iter_mut().zip(listed).filter(|&(_, &number)| number != NONE) {
                *indicator = Some(Indicator { component: self.n_dense() + number as usize, values: [0.0, 1.0] });
            }
        }
        indicators.iter().any(Option::is_some).then_some(match column {
            TargetColumn::Labels(_) => Outcome::Labels(indicators),
            _ => Outcome::Classes(indicators),
        })
    }
}
