//! A state as a line of JSON. order.md: STA-1.

use std::fmt;
use std::num::NonZeroU32;

use grainstore_format::Fingerprint;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{EpochState, StateError};
use crate::plan::Order;

/// The version of the document.
pub(super) const VERSION: u64 = 1;

/// The JSON document of a state.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateDocument {
    grainstore_state: u64,
    fingerprint: String,
    // Required: null means all samples.
    #[serde(deserialize_with = "Option::deserialize")]
    subset: Option<String>,
    /// Only where the epoch is drawn by weights.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    weights: Option<String>,
    seed: u64,
    epoch: u64,
    order: String,
    #[serde(deserialize_with = "Option::deserialize")]
    lanes: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    group: Option<NonZeroU32>,
    /// Always null: checked before.
    #[serde(deserialize_with = "Option::deserialize")]
    mixture: Option<()>,
    position: u64,
}

/// A member that is not null where it is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

/// The members that decide whether this version can read the rest, whatever that is. Of a member that is there twice,
/// the last counts here.
#[derive(Default)]
struct StateHead {
    version: Option<u64>,
    group: Member,
    mixture: Member,
}

/// Whether an object has a member.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Missing,
    Null,
    Value,
}

impl Member {
    fn of(value: &RawValue) -> Self {
        if value.get() == "null" { Self::Null } else { Self::Value }
    }
}

impl<'de> Deserialize<'de> for StateHead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StateHeadVisitor)
    }
}

struct StateHeadVisitor;

impl<'de> Visitor<'de> for StateHeadVisitor {
    type Value = StateHead;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<StateHead, A::Error> {
        let mut head = StateHead::default();
        while let Some((name, value)) = members.next_entry::<&RawValue, &RawValue>()? {
            // A name that is no text is none of these.
            match serde_json::from_str::<String>(name.get()).unwrap_or_default().as_str() {
                "grainstore_state" => head.version = saturated(value.get()),
                "group" => head.group = Member::of(value),
                "mixture" => head.mixture = Member::of(value),
                _ => {}
            }
        }
        Ok(head)
    }
}

/// The number that these digits are, or the largest one.
fn saturated(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl StateHead {
    fn check(&self) -> Result<(), StateError> {
        match self.version {
            Some(VERSION) => {}
            Some(found) if found > VERSION => return Err(StateError::TooNew { found }),
            _ => {
                let why = "it has no member \"grainstore_state\" with a version".into();
                return Err(StateError::Malformed { why });
            }
        }
        match (self.group, self.mixture) {
            (_, Member::Value) => Err(StateError::OfMixture),
            (Member::Missing, _) => Err(StateError::OfDevelopment { member: "group" }),
            (_, Member::Missing) => Err(StateError::OfDevelopment { member: "mixture" }),
            _ => Ok(()),
        }
    }
}

/// One line of JSON.
impl fmt::Display for EpochState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = StateDocument {
            grainstore_state: VERSION,
            fingerprint: self.fingerprint.to_string(),
            subset: self.subset.map(|hash| format!("{hash:016x}")),
            weights: self.weights.map(|hash| format!("{hash:016x}")),
            seed: self.seed,
            epoch: self.epoch,
            order: self.order.to_string(),
            lanes: self.lanes,
            group: self.group,
            mixture: None,
            position: self.position,
        };
        formatter.write_str(&serde_json::to_string(&document).map_err(|_| fmt::Error)?)
    }
}

impl std::str::FromStr for EpochState {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        let malformed = |why: String| StateError::Malformed { why };
        if text.len() > Self::LEN_MAX {
            return Err(StateError::TooLong);
        }
        // A later version may have other members, so what decides that is checked first.
        let head: StateHead = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        head.check()?;
        let document: StateDocument = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let fingerprint = Fingerprint(hex(&document.fingerprint).map_err(malformed)?);
        let subset = document.subset.as_deref().map(hex).transpose().map_err(malformed)?;
        let weights = document.weights.as_deref().map(hex).transpose().map_err(malformed)?;
        let order = order_named(&document.order).ok_or_else(|| malformed(format!("order is {:?}", document.order)))?;
        let StateDocument { seed, epoch, lanes, group, position, .. } = document;
        let is_chunked = order == Order::Chunked;
        if lanes.is_some() != is_chunked || group.is_some() != is_chunked {
            return Err(malformed("the chunked order has lanes and a group, the others have neither".into()));
        }
        Ok(Self { fingerprint, subset, weights, seed, epoch, order, lanes, group, position })
    }
}

/// Parses 16 lower-case hexadecimal digits.
fn hex(digits: &str) -> Result<u64, String> {
    let all = digits.len() == 16 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let number = if all { u64::from_str_radix(digits, 16).ok() } else { None };
    number.ok_or_else(|| format!("{digits:?} is not 16 digits of 0 to 9 and a to f"))
}

fn order_named(name: &str) -> Option<Order> {
    [Order::Sequential, Order::Full, Order::Chunked].into_iter().find(|order| order.to_string() == name)
}
