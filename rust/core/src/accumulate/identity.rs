//! What makes a run: contributions of runs that differ in any of it do not add up.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::contribution::{Contribution, Form, Part};
use crate::error::{Error, Result};
use crate::forest::{self, ForestParams};
use crate::intake::{Unlabelled, numbered};
use crate::profile::Profile;
use crate::ranking::Ranking;
use crate::relief::{self, ReliefParams};
use crate::schema::{Attribute, Kind, Problem, Task};

/// A ranker and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settings {
    /// An ensemble of trees.
    Forest(ForestParams),
    /// Neighbours.
    Relief(ReliefParams),
}

impl Settings {
    /// What becomes of rows without any target.
    pub fn unlabelled(&self) -> Unlabelled {
        match self {
            Settings::Forest(params) => params.treatment(),
            Settings::Relief(params) => params.unlabelled,
        }
    }

    /// The `max_bins` of the profile that the ranker needs.
    pub fn max_bins(&self) -> usize {
        match self {
            Settings::Forest(params) => params.max_bins,
            Settings::Relief(_) => 0,
        }
    }
}

/// A column in the words of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How its values are read.
    pub kind: Kind,
}

/// Settings, columns and profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the engine.
    pub ferrank: String,
    /// The ranker.
    pub settings: Settings,
    /// What is predicted.
    pub task: Task,
    /// The features, in input order.
    pub features: Vec<Column>,
    /// The targets.
    pub targets: Vec<Column>,
    /// What a label weighs of the mean of its parents; `None` where the target has no hierarchy.
    pub hierarchy_decay: Option<f64>,
    /// Rows that take part.
    pub rows: u64,
    /// Rows of which all targets are missing.
    pub unlabelled: u64,
    /// Hash of the profile, in hexadecimal digits.
    pub profile: String,
}

/// Differences that a message lists.
const MOST_NAMED: usize = 3;

impl Identity {
    /// What `settings` make of a problem and the profile of all rows.
    pub fn new(settings: Settings, problem: &Problem, profile: &Profile) -> Self {
        let columns = |attributes: &[Attribute]| {
            attributes.iter().map(|column| Column { name: column.name.clone(), kind: column.kind }).collect()
        };
        Identity {
            ferrank: env!("CARGO_PKG_VERSION").into(),
            settings,
            task: problem.task,
            features: columns(&problem.features),
            targets: columns(&problem.targets),
            hierarchy_decay: problem.labels.as_ref().map(|labels| labels.decay),
            rows: profile.counts.kept,
            unlabelled: profile.counts.unlabelled,
            profile: format!("{:032x}", profile.digest()),
        }
    }

    /// A hash of it, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        format!("{:032x}", xxh3_128(self.to_json().as_bytes()))
    }

    /// Number of keys of a complete run; they are 0 and following.
    pub fn n_keys(&self) -> u64 {
        match &self.settings {
            Settings::Forest(params) => forest::n_keys(self, params),
            Settings::Relief(params) => relief::n_keys(self, params),
        }
    }

    /// That `other` is the same run; `own` and `others` are what messages call the two.
    pub(crate) fn same(&self, other: &Identity, own: &str, others: &str) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let (Ok(a), Ok(b)) = (serde_json::to_value(self), serde_json::to_value(other)) else {
            unreachable!("an identity is plain data")
        };
        let mut found = Vec::new();
        differ(String::new(), &a, &b, (own, others), &mut found);
        let more = found.len().saturating_sub(MOST_NAMED);
        found.truncate(MOST_NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Err(Error::Data(format!("{others} is of another run than {own}: {}{more}", found.join("; "))))
    }

    /// That what is kept of `other` can be gone on with: it is the same run, or one of more or fewer trees, which
    /// then are the same as far as both have them.
    pub(crate) fn goes_on_from(&self, other: &Identity, own: &str, others: &str) -> Result<()> {
        let mut other = other.clone();
        if let (Settings::Forest(own), Settings::Forest(params)) = (&self.settings, &mut other.settings)
            && !own.per_target
        {
            // The numbers of the trees of a target depend on how many those before it have.
            params.n_estimators = own.n_estimators;
        }
        self.same(&other, own, others)
    }

    /// Whether `contribution` can be that of `key`.
    pub(crate) fn allows(&self, key: u64, contribution: &Contribution) -> bool {
        let is_of = |forms: Vec<Form>| {
            forms.len() == contribution.len() && contribution.iter().zip(forms).all(|(vector, form)| vector.has(form))
        };
        key < self.n_keys() && is_of(self.forms(key))
    }

    /// What the vectors of the contribution of `key` look like.
    pub(super) fn forms(&self, key: u64) -> Vec<Form> {
        match &self.settings {
            Settings::Forest(params) => forest::forms(self, params),
            Settings::Relief(params) => relief::forms(self, params, key),
        }
    }

    /// The keys of the contributions that an estimate is the mean of, for each such estimate.
    pub(crate) fn populations(&self) -> Vec<Range<u64>> {
        match &self.settings {
            Settings::Forest(params) => forest::populations(self, params),
            Settings::Relief(params) => relief::populations(self, params),
        }
    }

    /// The ranking that the parts of each of the [`populations`](Self::populations) give.
    pub(crate) fn ranking(&self, populations: &[Vec<Part<'_>>]) -> Result<Ranking> {
        let scores = match &self.settings {
            Settings::Forest(params) => forest::scores(self, params, populations)?,
            Settings::Relief(params) => relief::scores(self, params, populations)?,
        };
        let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect();
        Ok(Ranking {
            task: self.task,
            n_rows: self.rows,
            n_unlabelled: self.unlabelled,
            features: names(&self.features),
            targets: names(&self.targets),
            scores,
        })
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an identity is plain data")
    }

    /// What [`to_json`](Self::to_json) wrote; `None` if it makes no sense.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let identity: Identity = serde_json::from_str(text).ok()?;
        let (n_features, n_targets) = (identity.features.len(), identity.targets.len());
        if n_features == 0 || (n_targets == 0) != (identity.task == Task::Unsupervised) || identity.rows == 0 {
            return None;
        }
        match &identity.settings {
            Settings::Forest(params) => params.validate(identity.rows, n_features, n_targets, identity.task).ok()?,
            Settings::Relief(params) => {
                numbered(identity.rows, "", "").ok()?;
                params.validate(identity.task, n_targets).ok()?;
                params.queries(identity.rows).ok()?;
            }
        }
        Some(identity)
    }
}

/// Says of each place where `a` and `b` differ what they hold there.
fn differ(place: String, a: &Value, b: &Value, names: (&str, &str), found: &mut Vec<String>) {
    let inside = |key: &str| match place.as_str() {
        "" | "settings" | "forest" | "relief" => key.to_string(),
        _ => format!("{place}.{key}"),
    };
    match (a, b) {
        _ if a == b => {}
        _ if place == "profile" => found.push("the values of the data".into()),
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).for_each(|((key, a), b)| differ(inside(key), a, b, names, found));
        }
        (Value::Object(_), Value::Object(_)) if place == "settings" => found.push("the ranker".into()),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (a.iter().zip(b).enumerate()).for_each(|(n, (a, b))| differ(format!("{place}[{n}]"), a, b, names, found));
        }
        (Value::Array(a), Value::Array(b)) => {
            found.push(format!("{place}: {} in {}, {} in {}", a.len(), names.0, b.len(), names.1));
        }
        _ => found.push(format!("{place}: {a} in {}, {b} in {}", names.0, names.1)),
    }
}
