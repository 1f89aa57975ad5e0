//! The identity of a run: contributions of runs that differ in any part of it do not add up.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::profile::Profile;
use ferrank_data::schema::Problem;
use ferrank_runtime::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::contribution::{Contribution, Form, Part};
use crate::data::{Column, RunData};
use crate::estimate::CONFIDENCE;
use crate::ranker::{ParseRanker, Ranker, ranker_to_json};
use crate::ranking::{ModelError, Ranking};

/// Ranker, settings and data of a run.
///
/// ```
/// use ferrank_ranking::{Accumulator, Identity, RunData};
#[doc = include_str!("example_run.txt")]
///
/// // A run of four trees on 60 rows, and one on 61.
/// let other = Identity { data: RunData { rows: 61, ..identity.data.clone() }, ..identity.clone() };
/// assert_eq!(identity.n_keys(), 4);
/// assert_ne!(identity.fingerprint(), other.fingerprint());
/// let error = Accumulator::new(identity).merge(&Accumulator::new(other)).unwrap_err();
/// assert!(error.to_string().ends_with("rows: 60 in this accumulator, 61 in the other one"));
/// ```
#[derive(Debug, Clone)]
pub struct Identity {
    /// Version of the engine.
    pub ferrank: String,
    /// The ranker and its settings.
    pub ranker: Arc<dyn Ranker>,
    /// Columns, rows and profile.
    pub data: RunData,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.ferrank == other.ferrank && *self.ranker == *other.ranker && self.data == other.data
    }
}

/// An [`Identity`] as JSON has it.
#[derive(Serialize, Deserialize)]
struct Stored {
    ferrank: String,
    settings: Value,
    #[serde(flatten)]
    data: RunData,
}

/// Differences that a message lists.
const MOST_NAMED: usize = 3;

impl Identity {
    /// The run of `ranker` on a problem with the profile of all rows.
    pub fn new(ranker: impl Ranker, problem: &Problem, profile: &Profile) -> Self {
        let data = RunData::new(problem, profile);
        Identity { ferrank: env!("CARGO_PKG_VERSION").into(), ranker: Arc::new(ranker), data }
    }

    /// A hash of the identity, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        format!("{:032x}", xxh3_128(self.to_json().to_string().as_bytes()))
    }

    /// Number of contributions of a complete run; their keys count from 0.
    pub fn n_keys(&self) -> u64 {
        self.ranker.n_keys(&self.data)
    }

    /// Checks that `other` is the same run; `own` and `others` are the names of the two in messages.
    pub(crate) fn same(&self, other: &Identity, own: &str, others: &str) -> Result<()> {
        match self == other {
            true => Ok(()),
            false => Err(differences(&self.to_json(), &other.to_json(), own, others)),
        }
    }

    /// Checks that this run can continue the one of `other`: both are the same, or one has more contributions, and
    /// those that both have are the same.
    pub(crate) fn continues(&self, other: &Identity, own: &str, others: &str) -> Result<()> {
        let settings = self.ranker.continued(other.ranker.to_json());
        let ranker = self.ranker.parse(&settings).unwrap_or_else(|| other.ranker.clone());
        self.same(&Identity { ranker, ..other.clone() }, own, others)
    }

    /// Returns true if `contribution` has the shape of the one with this key.
    pub(crate) fn allows(&self, key: u64, contribution: &Contribution) -> bool {
        let has_forms = |forms: Vec<Form>| {
            forms.len() == contribution.len() && contribution.iter().zip(forms).all(|(vector, form)| vector.has(form))
        };
        key < self.n_keys() && has_forms(self.forms(key))
    }

    /// The shapes of the vectors of the contribution with this key.
    pub(crate) fn forms(&self, key: u64) -> Vec<Form> {
        self.ranker.forms(&self.data, key)
    }

    /// Ranges of keys; an estimate is the mean of the contributions of one range.
    pub(crate) fn populations(&self) -> Vec<Range<u64>> {
        self.ranker.populations(&self.data)
    }

    /// The ranking that the parts of each of the [`populations`](Self::populations) give.
    pub(crate) fn ranking(&self, populations: &[Vec<Part<'_>>]) -> Result<Ranking> {
        let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect::<Vec<String>>();
        let features = match self.ranker.ranked_features(&self.data) {
            None => names(&self.data.features),
            Some(ranked) => ranked.into_iter().map(|place| self.data.features[place].name.clone()).collect(),
        };
        let mut scores = self.ranker.scores(&self.data, populations)?;
        let model_error = self.ranker.model_error(&self.data, populations);
        if model_error.as_ref().is_ok_and(|errors| !ModelError::any_is_better(errors, 1.0 - CONFIDENCE)) {
            let in_sample = scores.iter_mut().enumerate().filter(|(number, _)| self.ranker.is_in_sample(*number));
            in_sample.for_each(|(_, score)| score.allow_every_rank());
        }
        Ok(Ranking {
            task: self.data.task,
            n_rows: self.data.rows,
            n_unlabelled: self.data.unlabelled,
            features,
            targets: names(&self.data.targets),
            relevance: self.ranker.relevance(&self.data, populations),
            scores,
            model_error,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        let settings = ranker_to_json(&*self.ranker);
        let stored = Stored { ferrank: self.ferrank.clone(), settings, data: self.data.clone() };
        serde_json::to_value(stored).expect("an identity is plain data")
    }

    /// Reads what [`to_json`](Self::to_json) wrote of a run of a ranker of the same kind; `None` if it is not valid.
    pub(crate) fn parse_same_kind(&self, value: Value) -> Option<Self> {
        let parse = |settings: &Value| self.ranker.parse(settings_of(settings, self.ranker.name())?);
        Identity::from_json(value, &parse)
    }

    /// Checks that `value`, which [`to_json`](Self::to_json) wrote, is of a run of a ranker of the same kind.
    pub(crate) fn check_kind(&self, value: &Value, own: &str, others: &str) -> Result<()> {
        match settings_of(&value["settings"], self.ranker.name()).is_some() || !value["settings"].is_object() {
            true => Ok(()),
            false => Err(differences(&self.to_json(), value, own, others)),
        }
    }

    /// Reads what [`to_json`](Self::to_json) wrote; `None` if it is not valid.
    pub(crate) fn from_json(value: Value, parse: ParseRanker<'_>) -> Option<Self> {
        let Stored { ferrank, settings, data } = serde_json::from_value(value).ok()?;
        let ranker = parse(&settings)?;
        let is_valid = data.is_valid() && ranker.validate(&data.shape()).is_ok();
        is_valid.then_some(Identity { ferrank, ranker, data })
    }
}

/// The settings of a ranker called `name` in what [`ranker_to_json`] wrote.
fn settings_of<'a>(settings: &'a Value, name: &str) -> Option<&'a Value> {
    settings.as_object().filter(|object| object.len() == 1)?.get(name)
}

/// An error that lists where the identities `a` and `b` differ.
fn differences(a: &Value, b: &Value, own: &str, others: &str) -> Error {
    let ranker = |identity: &Value| -> Option<String> { identity["settings"].as_object()?.keys().next().cloned() };
    let mut found = Vec::new();
    match (ranker(a), ranker(b)) {
        // Much else follows from the ranker, such as the profile.
        (Some(one), Some(other)) if one != other => {
            found.push(format!("the ranker: {one} in {own}, {other} in {others}"));
        }
        _ => differ(String::new(), a, b, (own, others), &mut found),
    }
    let more = found.len().saturating_sub(MOST_NAMED);
    found.truncate(MOST_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Error::Data(format!("{others} is of another run than {own}: {}{more}", found.join("; ")))
}

/// Appends to `found`, for each place where `a` and `b` differ, what they hold there.
fn differ(place: String, a: &Value, b: &Value, names: (&str, &str), found: &mut Vec<String>) {
    // Settings are named as users know them, without `settings` and the name of the ranker before them.
    let is_ranker = |place: &str| place.strip_prefix("settings/").is_some_and(|name| !name.contains('.'));
    let inside = |key: &str| match place.as_str() {
        "settings" => format!("settings/{key}"),
        place if place.is_empty() || is_ranker(place) => key.to_string(),
        place => format!("{place}.{key}"),
    };
    match (a, b) {
        _ if a == b => {}
        _ if ["profile", "entropies"].contains(&place.as_str()) => {
            let values = "the values of the data";
            if !found.iter().any(|one| one == values) {
                found.push(values.into());
            }
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).for_each(|((key, a), b)| differ(inside(key), a, b, names, found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (a.iter().zip(b).enumerate()).for_each(|(n, (a, b))| differ(format!("{place}[{n}]"), a, b, names, found));
        }
        (Value::Array(a), Value::Array(b)) => {
            found.push(format!("{place}: {} in {}, {} in {}", a.len(), names.0, b.len(), names.1));
        }
        _ => found.push(format!("{place}: {a} in {}, {b} in {}", names.0, names.1)),
    }
}
