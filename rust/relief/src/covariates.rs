//! Covariates: features that the importances of the others are adjusted for (Le, Dawkins and McKinney 2020).
//!
//! A feature must tell more about the distance of the targets than the differences in the covariates do. They do not count
//! in the distance of rows, and are not ranked. Each is one more distance of a pair, so that sums over features tell how
//! covariates differ together with features, and at the places of the covariates, with each other.
//!
//! Memory: 8 bytes a row for each covariate.

use std::collections::HashMap;

use ferrank_data::schema::Attribute;
use ferrank_neighbors::missing::MissingModel;
use ferrank_neighbors::space::{Example, Shape, Space};
use ferrank_ranking::RunData;
use ferrank_runtime::error::{Result, check};

use crate::params::{Missing, ReliefParams};
use crate::prepared::Prepared;

impl ReliefParams {
    /// The positions of the covariates among the features called `names`, in the order given.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) for a covariate that is no feature, is given twice or counts in
    /// distances, and if no other feature is left.
    pub(crate) fn covariates_among(&self, names: &[&str]) -> Result<Vec<usize>> {
        if self.covariates.is_empty() {
            return Ok(Vec::new());
        }
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, &name)| (name, place)).collect();
        let mut found = Vec::with_capacity(self.covariates.len());
        for covariate in &self.covariates {
            let what = "a covariate is a column that is neither target, weight nor groups; ";
            let place = covariate.place(names, &places, ["covariates", what])?;
            check(!found.contains(&place), format!("covariates: '{}' is given twice", names[place]))?;
            found.push(place);
        }
        check(
            found.len() < names.len(),
            format!("covariates: all {} features are covariates; leave those that are to be ranked out", names.len()),
        )?;
        if let Some(weights) = self.distance_features.weights(names)?
            && let Some(&place) = found.iter().find(|&&place| weights[place] > 0.0)
        {
            return check(
                false,
                format!(
                    "covariates: '{}' is one of distance_features, and covariates do not count in distances; leave it out \
                     of one of the two",
                    names[place]
                ),
            )
            .map(|()| Vec::new());
        }
        Ok(found)
    }

    /// The positions of the covariates among the features of a run, whose settings were checked.
    pub(crate) fn covariates_of_run(&self, data: &RunData) -> Vec<usize> {
        if self.covariates.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = data.features.iter().map(|feature| feature.name.as_str()).collect();
        self.covariates_among(&names).unwrap_or_default()
    }

    /// The weights of `features` in distances, where covariates have none; `None` where all have weight 1.
    pub(crate) fn distance_weights(&self, features: &[Attribute]) -> Result<Option<Vec<f64>>> {
        if self.covariates.is_empty() {
            return self.distance_features.weights_of(features);
        }
        let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
        let mut weights = self.distance_features.weights(&names)?.unwrap_or_else(|| vec![1.0; names.len()]);
        self.covariates_among(&names)?.into_iter().for_each(|place| weights[place] = 0.0);
        Ok(Some(weights))
    }
}

/// The covariates of all rows.
#[derive(Debug)]
pub(crate) struct Covariates {
    space: Space,
    /// n_rows x n_covariates
    values: Vec<f64>,
}

impl Covariates {
    pub(crate) fn len(&self) -> usize {
        self.space.shapes.len()
    }

    /// Sets `differences` to those of rows `a` and `b`, n_covariates.
    pub(crate) fn differences(&self, [a, b]: [u32; 2], differences: &mut [f64]) {
        let [a, b] = [a, b].map(|row| {
            let values = &self.values[row as usize * self.len()..][..self.len()];
            Example { values, class: 0, expected: &[] }
        });
        for (i, difference) in differences.iter_mut().enumerate() {
            *difference = self.space.difference(i, a, b);
        }
    }
}

impl Prepared<'_> {
    /// The features at `positions` as covariates.
    pub(super) fn covariates(&self, positions: &[usize], missing: Missing) -> Result<Covariates> {
        let n = positions.len();
        if n == 0 {
            return Ok(Covariates { space: Space::new(Vec::new(), Vec::new(), Vec::new(), 1), values: Vec::new() });
        }
        let columns = self.table.columns(positions)?;
        let mut values = vec![0.0; n * self.n_rows];
        let (mut shapes, mut models) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (i, (column, &position)) in columns.iter().zip(positions).enumerate() {
            values.iter_mut().skip(i).step_by(n).zip(column).for_each(|(value, own)| *value = *own);
            let shape = self.space.shapes[position];
            // As the feature itself: there are no classes beside covariates.
            let model = self.space.missing_models[position].as_ref().and_then(|_| match missing {
                Missing::Informative => Some(MissingModel::Informative),
                Missing::Expected => MissingModel::weighted(column, shape == Shape::Nominal, (&[], 1), &self.weights),
            });
            shapes.push(shape);
            models.push(model);
        }
        Ok(Covariates { space: Space::new(shapes, models, Vec::new(), 1), values })
    }
}

#[cfg(test)]
mod tests {
    use ferrank_data::schema::{Attribute, Kind};

    use crate::{DistanceFeatures, FeatureRef, ReliefParams};

    const NAMES: [&str; 4] = ["age", "height", "sex", "weight"];

    fn params(covariates: &[FeatureRef]) -> ReliefParams {
        ReliefParams { covariates: covariates.to_vec(), ..ReliefParams::default() }
    }

    fn name(name: &str) -> FeatureRef {
        FeatureRef::Name(name.into())
    }

    #[test]
    fn covariates_are_found_in_their_order() {
        let found = params(&[name("sex"), FeatureRef::Position(0)]).covariates_among(&NAMES).unwrap();
        assert_eq!(found, [2, 0]);
    }

    #[test]
    fn covariates_do_not_count_in_distances() {
        let attribute = |(column, name): (usize, &str)| Attribute { name: name.into(), column, kind: Kind::Numeric };
        let features: Vec<Attribute> = NAMES.into_iter().enumerate().map(attribute).collect();
        let mut params = params(&[name("sex")]);
        assert_eq!(params.distance_weights(&features).unwrap(), Some(vec![1.0, 1.0, 0.0, 1.0]));
        params.distance_features = DistanceFeatures::Weighted(vec![(name("sex"), 0.0), (name("age"), 0.5)]);
        assert_eq!(params.distance_weights(&features).unwrap(), Some(vec![0.5, 0.0, 0.0, 0.0]));
        params.covariates.clear();
        params.distance_features = DistanceFeatures::All;
        assert_eq!(params.distance_weights(&features).unwrap(), None);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let all: Vec<FeatureRef> = (0..4).map(FeatureRef::Position).collect();
        for (covariates, expected) in [
            (vec![name("ag")], "covariates: there is no feature 'ag'; a covariate is a column that is neither target"),
            (vec![FeatureRef::Position(4)], "covariates: position 4 is not in 0 … 3"),
            (vec![name("age"), FeatureRef::Position(0)], "covariates: 'age' is given twice"),
            (all, "covariates: all 4 features are covariates"),
        ] {
            let error = params(&covariates).covariates_among(&NAMES).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mask = DistanceFeatures::Mask(vec![true, true, false, false]);
        let both = ReliefParams { distance_features: mask.clone(), ..params(&[name("height")]) };
        let error = both.covariates_among(&NAMES).unwrap_err().to_string();
        assert!(error.starts_with("covariates: 'height' is one of distance_features"), "{error}");
        let apart = ReliefParams { distance_features: mask, ..params(&[name("sex")]) };
        assert_eq!(apart.covariates_among(&NAMES).unwrap(), [2]);
    }
}
