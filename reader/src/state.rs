//! The state of an epoch: a line of text from which another process resumes. order.md: STA-1 to STA-3.

use std::fmt;
use std::num::NonZeroU32;

use grainstore_format::{EpochSetting, Fingerprint, Remedy};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::plan::Order;

/// The version of the document.
const VERSION: u64 = 1;

/// The state of an epoch: its order, and how much of it has been returned.
///
/// It is the same on every rank, counts batches that were returned (not those prepared ahead), and does not contain the
/// number of ranks or the batch size: an epoch may resume with others.
///
/// ```
/// use grainstore_reader::EpochState;
///
/// let text = r#"{"grainstore_state":1,"fingerprint":"00000000000000ab","subset":null,"seed":7,"epoch":3,"order":"chunked","lanes":768,"group":1,"mixture":null,"position":4096}"#;
/// let state: EpochState = text.parse()?;
/// assert_eq!((state.epoch(), state.position()), (3, 4096));
/// assert_eq!(state.to_string(), text);
/// # Ok::<(), grainstore_reader::StateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochState {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) subset: Option<u64>,
    pub(crate) weights: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) order: Order,
    pub(crate) lanes: Option<u64>,
    pub(crate) group: Option<NonZeroU32>,
    pub(crate) position: u64,
}

/// Why a text is not a state, or a state does not match the epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The text is not a state.
    #[error("not a state of an epoch: {why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// The text is longer than a state can be.
    #[error("not a state of an epoch: it is longer than {max} bytes", max = EpochState::LEN_MAX)]
    TooLong,
    /// A development version wrote it, before states had all of their members.
    #[error(
        "state has no member \"{member}\": a development version of grainstore wrote it, and only that version resumes it"
    )]
    OfDevelopment {
        /// The member that is missing.
        member: &'static str,
    },
    /// The state is of an epoch over a mixture of datasets, which this version does not have.
    #[error("state is of a mixture, written by a newer grainstore")]
    OfMixture,
    /// A later version wrote it.
    #[error("written by a newer grainstore: state version {found} is unknown to this version ({VERSION})")]
    TooNew {
        /// The version of the state.
        found: u64,
    },
    /// The state is of another dataset.
    #[error("state is of dataset {found}, not of {expected}")]
    OfOtherDataset {
        /// The dataset's fingerprint in the state.
        found: Fingerprint,
        /// The fingerprint of the dataset that is open.
        expected: Fingerprint,
    },
    /// The state is of another subset.
    #[error("state is of subset {}, not of {}", shown_subset(*found), shown_subset(*expected))]
    OfOtherSubset {
        /// The hash of the subset in the state; `None` for all samples.
        found: Option<u64>,
        /// The hash of the subset of the epoch; `None` for all samples.
        expected: Option<u64>,
    },
    /// The state is of an epoch that is drawn by other weights.
    #[error("state is of {}, not of {}", shown_weights(*found), shown_weights(*expected))]
    OfOtherWeights {
        /// The hash of the weights in the state; `None` where the epoch is not drawn.
        found: Option<u64>,
        /// The hash of the weights of the epoch; `None` where it is not drawn.
        expected: Option<u64>,
    },
    /// The state is of an epoch with another order, seed, number, number of lanes or group.
    #[error("state is of {setting} {found}, not of {expected}")]
    OfOtherEpoch {
        /// What differs.
        setting: EpochSetting,
        /// Its value in the state.
        found: String,
        /// Its value in the options.
        expected: String,
    },
    /// The state is of the same dataset, before or after samples were added.
    #[error("state is of generation {found} of the dataset, generation {opened} is open")]
    OfGeneration {
        /// The generation of the state, counted from 0.
        found: usize,
        /// The generation that is open.
        opened: usize,
    },
}

impl StateError {
    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Malformed { .. } | Self::TooLong => Remedy::DiscardState,
            Self::TooNew { .. } | Self::OfMixture => Remedy::Upgrade,
            Self::OfOtherDataset { .. } | Self::OfDevelopment { .. } => Remedy::UseOtherState,
            Self::OfOtherSubset { found: None, .. } => Remedy::ResumeWithoutSubset,
            Self::OfOtherSubset { .. } => Remedy::ResumeWithSameSubset,
            Self::OfOtherWeights { found: None, .. } => Remedy::ResumeWithoutWeights,
            Self::OfOtherWeights { .. } => Remedy::ResumeWithSameWeights,
            Self::OfOtherEpoch { setting, found, .. } => Remedy::ResumeWith { setting: *setting, value: found.clone() },
            Self::OfGeneration { .. } => return None,
        })
    }
}

/// A subset's hash in a message.
fn shown_subset(hash: Option<u64>) -> String {
    hash.map_or("all samples".into(), |hash| format!("{hash:016x}"))
}

/// The hash of weights in a message.
fn shown_weights(hash: Option<u64>) -> String {
    hash.map_or("an epoch without weights".into(), |hash| format!("an epoch drawn by the weights {hash:016x}"))
}

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

impl EpochState {
    /// The most bytes that the text of a state has. order.md: STA-1.
    pub const LEN_MAX: usize = 1 << 20;

    /// Version, dataset and generation: the fingerprint of what was read.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The hash of the subset; `None` for all samples.
    #[must_use]
    pub fn subset_hash(&self) -> Option<u64> {
        self.subset
    }

    /// The hash of the weights that the epoch is drawn by, if it is.
    #[must_use]
    pub fn weights_hash(&self) -> Option<u64> {
        self.weights
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of the epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The order, `auto` resolved.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Lanes of the chunked order; `None` in the others.
    #[must_use]
    pub fn lanes(&self) -> Option<u64> {
        self.lanes
    }

    /// Extents that the chunked order shuffles as one; `None` in the others.
    #[must_use]
    pub fn group(&self) -> Option<NonZeroU32> {
        self.group
    }

    /// Number of positions that all ranks together have returned, which is the position of the next sample.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The same epoch at another position.
    pub(crate) fn at(&self, position: u64) -> Self {
        Self { position, ..self.clone() }
    }

    /// Checks that it is of an epoch over the subset and by the weights of these hashes.
    pub(crate) fn check_samples(&self, subset: Option<u64>, weights: Option<u64>) -> Result<(), StateError> {
        if self.subset != subset {
            return Err(StateError::OfOtherSubset { found: self.subset, expected: subset });
        }
        if self.weights != weights {
            return Err(StateError::OfOtherWeights { found: self.weights, expected: weights });
        }
        Ok(())
    }

    /// Checks that both states are of the same epoch, at any position.
    pub(crate) fn check(&self, other: &Self) -> Result<(), StateError> {
        if self.fingerprint != other.fingerprint {
            return Err(StateError::OfOtherDataset { found: self.fingerprint, expected: other.fingerprint });
        }
        self.check_samples(other.subset, other.weights)?;
        let check = |setting, found: String, expected: String| {
            if found == expected { Ok(()) } else { Err(StateError::OfOtherEpoch { setting, found, expected }) }
        };
        let shown_lanes = |state: &Self| state.lanes.map_or("none".into(), |lanes| lanes.to_string());
        let shown_group = |state: &Self| state.group.map_or("none".into(), |group| group.to_string());
        check(EpochSetting::Order, self.order.to_string(), other.order.to_string())?;
        check(EpochSetting::Seed, self.seed.to_string(), other.seed.to_string())?;
        check(EpochSetting::Epoch, self.epoch.to_string(), other.epoch.to_string())?;
        check(EpochSetting::Lanes, shown_lanes(self), shown_lanes(other))?;
        check(EpochSetting::Group, shown_group(self), shown_group(other))
    }
}

/// One line of JSON.
impl std::fmt::Display for EpochState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        formatter.write_str(&serde_json::to_string(&document).map_err(|_| std::fmt::Error)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> EpochState {
        EpochState {
            fingerprint: Fingerprint(0xab),
            subset: Some(u64::MAX),
            weights: None,
            seed: u64::MAX,
            epoch: 3,
            order: Order::Chunked,
            lanes: Some(12),
            group: NonZeroU32::new(4),
            position: 1 << 60,
        }
    }

    /// STA-1
    #[test]
    fn what_is_written_is_read_back() {
        for order in [Order::Sequential, Order::Full, Order::Chunked] {
            let is_chunked = order == Order::Chunked;
            let lanes = is_chunked.then_some(7);
            let group = is_chunked.then_some(NonZeroU32::MAX);
            let state = EpochState { order, lanes, group, subset: None, ..state() };
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        assert_eq!(state().to_string().parse(), Ok(state()));
    }

    #[test]
    fn a_state_that_is_cut_short_or_changed_is_refused() {
        let text = state().to_string();
        for len in 0..text.len() {
            let error = text[..len].parse::<EpochState>().unwrap_err().to_string();
            assert!(error.starts_with("not a state of an epoch: "), "{error}");
        }
        for (old, new) in [
            ("\"grainstore_state\":1", "\"grainstore_state\":-1"),
            ("\"grainstore_state\":1", "\"grainstore_state\":0"),
            ("\"grainstore_state\":1,", ""),
            ("ab\"", "AB\""),
            ("chunked", "auto"),
            ("chunked", "full"),
            ("\"lanes\":12", "\"lanes\":null"),
            ("\"group\":4", "\"group\":null"),
            ("\"group\":4", "\"group\":0"),
            ("\"group\":4", "\"group\":4294967296"),
            ("\"epoch\":3", "\"epoch\":3,\"rank\":0"),
            ("\"epoch\":3", "\"epoch\":3.5"),
            (",\"epoch\":3", ""),
            ("\"epoch\":3", "\"epoch\":3,\"epoch\":3"),
        ] {
            assert!(text.contains(old));
            let changed = text.replace(old, new);
            assert!(matches!(changed.parse::<EpochState>(), Err(StateError::Malformed { .. })), "{changed}");
        }
        let later = text.replace("\"grainstore_state\":1", "\"grainstore_state\":2,\"more\":0");
        let error = later.parse::<EpochState>().unwrap_err().to_string();
        assert_eq!(error, "written by a newer grainstore: state version 2 is unknown to this version (1)");
    }

    /// STA-1
    #[test]
    fn a_later_version_is_newer_whatever_its_number_and_its_other_members_are() {
        for later in ["2", "18446744073709551615", "18446744073709551616", &"9".repeat(5000)] {
            let text =
                format!(r#"{{"seed":1,"seed":1e999,"a\ud800":0,"grainstore_state":{later},"group":null,"group":2}}"#);
            let error = text.parse::<EpochState>().unwrap_err();
            assert!(matches!(error, StateError::TooNew { .. }), "{later}: {error}");
        }
        for other in ["-2", "2.0", "2e0", "\"2\"", "[2]", "null"] {
            let error = format!(r#"{{"grainstore_state":{other}}}"#).parse::<EpochState>().unwrap_err();
            assert!(matches!(error, StateError::Malformed { .. }), "{other}: {error}");
        }
        let twice = state().to_string().replace("\"group\":4", "\"group\":4,\"group\":4");
        assert!(matches!(twice.parse::<EpochState>(), Err(StateError::Malformed { .. })));
    }

    /// STA-2
    #[test]
    fn a_state_of_another_epoch_is_refused_with_the_difference() {
        let own = state();
        let other = state().at(0);
        assert_eq!(own.check(&other), Ok(()));
        let refused = |other: EpochState| own.check(&other).unwrap_err().to_string();
        let dataset = refused(EpochState { fingerprint: Fingerprint(1), ..state() });
        assert_eq!(dataset, "state is of dataset 00000000000000ab, not of 0000000000000001");
        let subset = refused(EpochState { subset: None, ..state() });
        assert_eq!(subset, "state is of subset ffffffffffffffff, not of all samples");
        let order = refused(EpochState { order: Order::Full, lanes: None, group: None, ..state() });
        assert_eq!(order, "state is of order chunked, not of full");
        assert_eq!(refused(EpochState { seed: 1, ..state() }), "state is of seed 18446744073709551615, not of 1");
        assert_eq!(refused(EpochState { epoch: 4, ..state() }), "state is of epoch 3, not of 4");
        assert_eq!(refused(EpochState { lanes: Some(3), ..state() }), "state is of lanes 12, not of 3");
        let group = refused(EpochState { group: Some(NonZeroU32::MIN), ..state() });
        assert_eq!(group, "state is of group 4, not of 1");
    }

    /// STA-1
    #[test]
    fn a_state_of_a_mixture_or_of_a_development_version_is_refused_with_the_reason() {
        let text = state().to_string();
        let refused = |old: &str, new: &str| {
            assert!(text.contains(old));
            text.replace(old, new).parse::<EpochState>().unwrap_err()
        };
        for mixture in ["{}", "[1e999]", "0", "false"] {
            // Whatever else a newer version writes beside it.
            let error = refused("\"mixture\":null", &format!("\"mixture\":{mixture},\"more\":1e999"));
            assert_eq!(error.to_string(), "state is of a mixture, written by a newer grainstore");
            assert_eq!(error.remedy(), Some(Remedy::Upgrade));
        }
        let old = refused("\"group\":4,\"mixture\":null,", "");
        let expected = "state has no member \"group\": a development version of grainstore wrote it, and only that \
                        version resumes it";
        assert_eq!(old.to_string(), expected);
        assert_eq!(refused("\"mixture\":null,", ""), StateError::OfDevelopment { member: "mixture" });
    }

    /// STA-1
    #[test]
    fn a_state_of_more_than_a_mebibyte_is_refused() {
        let text = state().to_string();
        let padded = |len: usize| format!("{text}{}", " ".repeat(len - text.len())).parse::<EpochState>();
        assert_eq!(padded(1 << 20), Ok(state()));
        let error = padded((1 << 20) + 1).unwrap_err();
        assert_eq!(error.to_string(), "not a state of an epoch: it is longer than 1048576 bytes");
    }
}
