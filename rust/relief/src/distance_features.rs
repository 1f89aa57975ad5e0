//! Which features the distance of two rows is made of, and how much each counts.

use std::collections::HashMap;

use ferrank_data::schema::Attribute;
use ferrank_runtime::error::{Error, Result, check, nearest};
use serde::{Deserialize, Serialize};

/// A feature, by its name or by its position among the features.
///
/// ```
/// use ferrank_relief::{DistanceFeatures, FeatureRef};
///
/// let features = DistanceFeatures::Named(vec![FeatureRef::Name("a".into()), FeatureRef::Position(2)]);
/// assert_eq!(features.weights(&["a", "b", "c"])?, Some(vec![1.0, 0.0, 1.0]));
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "the name of a feature or its position")]
pub enum FeatureRef {
    /// The name.
    Name(String),
    /// The position, from 0.
    Position(i64),
}

impl FeatureRef {
    /// Its place among `names`, whose `places` are known.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) that begins with `setting` if it is not there; `what` says what may
    /// be given.
    pub(crate) fn place(
        &self,
        names: &[&str],
        places: &HashMap<&str, usize>,
        [setting, what]: [&str; 2],
    ) -> Result<usize> {
        let unknown = match self {
            FeatureRef::Name(name) => {
                if let Some(&place) = places.get(name.as_str()) {
                    return Ok(place);
                }
                let near = nearest(name, names.iter().copied()).join(", ");
                format!("{setting}: there is no feature '{name}'; {what}the nearest of {} are {near}", names.len())
            }
            FeatureRef::Position(position) => {
                if let Some(place) = usize::try_from(*position).ok().filter(|&place| place < names.len()) {
                    return Ok(place);
                }
                format!("{setting}: position {position} is not in 0 … {}", names.len().saturating_sub(1))
            }
        };
        Err(Error::Setting(unknown))
    }
}

impl std::fmt::Display for FeatureRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FeatureRef::Name(name) => write!(f, "'{name}'"),
            FeatureRef::Position(position) => write!(f, "feature {position}"),
        }
    }
}

/// The features that define how near two rows are: the distance is Σ w · difference / Σ w. Importances are those of all
/// features.
///
/// ```
/// use ferrank_relief::{DistanceFeatures, FeatureRef, ReliefParams};
///
/// let weighted = vec![(FeatureRef::Name("b".into()), 2.0), (FeatureRef::Name("a".into()), 0.5)];
/// let params = ReliefParams::default().with_distance_features(DistanceFeatures::Weighted(weighted));
/// assert_eq!(params.distance_features.weights(&["a", "b", "c"])?, Some(vec![0.5, 2.0, 0.0]));
/// let error = params.distance_features.weights(&["a", "bb"]).unwrap_err();
/// assert!(error.to_string().contains("distance_features: there is no feature 'b'"));
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a list of names or positions of features, a mask with a bool for each, or weights by name"
)]
pub enum DistanceFeatures {
    /// All, each with weight 1.
    All,
    /// n_features; those that are true, each with weight 1.
    Mask(Vec<bool>),
    /// These, each with weight 1.
    Named(Vec<FeatureRef>),
    /// These, with weights that are finite, not negative and not all 0.
    Weighted(Vec<(FeatureRef, f64)>),
}

impl DistanceFeatures {
    /// The weight of each of the features called `names`, in their order; `None` where all have weight 1.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::Error::Setting) for a feature that is not there or given twice, a mask of another
    /// length, a weight that is negative or not finite, and if no weight is above 0.
    pub fn weights(&self, names: &[&str]) -> Result<Option<Vec<f64>>> {
        let weights = match self {
            DistanceFeatures::All => return Ok(None),
            DistanceFeatures::Mask(mask) => {
                check(
                    mask.is_empty() || mask.len() == names.len(),
                    format!(
                        "distance_features: a mask of {} for {} features; give a bool for each",
                        mask.len(),
                        names.len()
                    ),
                )?;
                mask.iter().map(|&counts| f64::from(u8::from(counts))).collect()
            }
            DistanceFeatures::Named(features) => placed(features.iter().map(|feature| (feature, 1.0)), names)?,
            DistanceFeatures::Weighted(features) => {
                placed(features.iter().map(|(feature, weight)| (feature, *weight)), names)?
            }
        };
        check(
            weights.iter().any(|&weight| weight > 0.0),
            "distance_features: no feature has a weight above 0; give at least one, or leave it out for all features",
        )?;
        Ok(Some(weights))
    }

    /// As [`weights`](DistanceFeatures::weights), of `features`.
    pub(crate) fn weights_of(&self, features: &[Attribute]) -> Result<Option<Vec<f64>>> {
        match self {
            DistanceFeatures::All => Ok(None),
            _ => self.weights(&features.iter().map(|feature| feature.name.as_str()).collect::<Vec<_>>()),
        }
    }
}

/// The weights at the places of their features; 0 for features that are not given.
fn placed<'a>(given: impl Iterator<Item = (&'a FeatureRef, f64)>, names: &[&str]) -> Result<Vec<f64>> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, &name)| (name, place)).collect();
    let mut weights = vec![None; names.len()];
    for (feature, weight) in given {
        let place = feature.place(names, &places, ["distance_features", ""])?;
        check(
            weight.is_finite() && weight >= 0.0,
            format!(
                "distance_features: weight {weight} of {feature} is not a finite number of at least 0; with 0 the feature \
                 does not count"
            ),
        )?;
        check(weights[place].is_none(), format!("distance_features: '{}' is given twice", names[place]))?;
        weights[place] = Some(weight);
    }
    Ok(weights.into_iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use super::{DistanceFeatures, FeatureRef};

    const NAMES: [&str; 3] = ["age", "height", "weight"];

    fn read(json: &str) -> DistanceFeatures {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn json_has_all_forms() {
        let weights = |json: &str| read(json).weights(&NAMES).unwrap();
        assert_eq!(weights("null"), None);
        assert_eq!(weights(r#"["weight", 0]"#), Some(vec![1.0, 0.0, 1.0]));
        assert_eq!(weights("[false, true, true]"), Some(vec![0.0, 1.0, 1.0]));
        assert_eq!(weights(r#"[["height", 2.5], [0, 0]]"#), Some(vec![0.0, 2.5, 0.0]));
        for json in ["null", r#"["weight",0]"#, "[false,true,true]", r#"[["height",2.5],[0,1.0]]"#] {
            assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
        }
        assert!(serde_json::from_str::<DistanceFeatures>(r#"{"age": 1}"#).is_err());
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (json, expected) in [
            ("[]", "no feature has a weight above 0"),
            ("[false, false, false]", "no feature has a weight above 0"),
            (r#"[["age", 0.0]]"#, "no feature has a weight above 0"),
            ("[true, false]", "a mask of 2 for 3 features"),
            (r#"["hight"]"#, "there is no feature 'hight'; the nearest of 3 are 'height', 'weight', 'age'"),
            ("[3]", "position 3 is not in 0 … 2"),
            ("[-1]", "position -1 is not in 0 … 2"),
            (r#"[["age", -0.5]]"#, "weight -0.5 of 'age' is not a finite number of at least 0"),
            (r#"["age", 0]"#, "'age' is given twice"),
        ] {
            let error = read(json).weights(&NAMES).unwrap_err().to_string();
            assert!(error.starts_with("distance_features: ") && error.contains(expected), "{json}: {error}");
        }
        for weight in [f64::NAN, f64::INFINITY] {
            let weighted = DistanceFeatures::Weighted(vec![(FeatureRef::Position(1), weight)]);
            assert!(weighted.weights(&NAMES).unwrap_err().to_string().contains("of feature 1 is not a finite number"));
        }
    }
}
