//! The state of an epoch: a line of text from which another process resumes. order.md: STA-1 to STA-3.

use grainstore_format::{EpochSetting, Fingerprint, Remedy};
use serde::{Deserialize, Serialize};

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
/// let text = r#"{"grainstore_state":1,"fingerprint":"00000000000000ab","subset":null,"seed":7,"epoch":3,"order":"chunked","lanes":768,"position":4096}"#;
/// let state: EpochState = text.parse()?;
/// assert_eq!((state.epoch(), state.position()), (3, 4096));
/// assert_eq!(state.to_string(), text);
/// # Ok::<(), grainstore_reader::StateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochState {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) subset: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) order: Order,
    pub(crate) lanes: Option<u64>,
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
    /// A later version wrote it.
    #[error("state is of version {found}, this reader knows version {VERSION}")]
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
    /// The state is of an epoch with another order, seed, number or number of lanes.
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
            Self::Malformed { .. } => Remedy::DiscardState,
            Self::TooNew { .. } => Remedy::Upgrade,
            Self::OfOtherDataset { .. } => Remedy::UseOtherState,
            Self::OfOtherSubset { found: None, .. } => Remedy::ResumeWithoutSubset,
            Self::OfOtherSubset { .. } => Remedy::ResumeWithSameSubset,
            Self::OfOtherEpoch { setting, found, .. } => Remedy::ResumeWith { setting: *setting, value: found.clone() },
            Self::OfGeneration { .. } => return None,
        })
    }
}

/// A subset's hash in a message.
fn shown_subset(hash: Option<u64>) -> String {
    hash.map_or("all samples".into(), |hash| format!("{hash:016x}"))
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
    seed: u64,
    epoch: u64,
    order: String,
    #[serde(deserialize_with = "Option::deserialize")]
    lanes: Option<u64>,
    position: u64,
}

impl EpochState {
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

    /// Number of positions that all ranks together have returned, which is the position of the next sample.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The same epoch at another position.
    pub(crate) fn at(&self, position: u64) -> Self {
        Self { position, ..self.clone() }
    }

    /// Checks that both states are of the same epoch, at any position.
    pub(crate) fn check(&self, other: &Self) -> Result<(), StateError> {
        if self.fingerprint != other.fingerprint {
            return Err(StateError::OfOtherDataset { found: self.fingerprint, expected: other.fingerprint });
        }
        if self.subset != other.subset {
            return Err(StateError::OfOtherSubset { found: self.subset, expected: other.subset });
        }
        let check = |setting, found: String, expected: String| {
            if found == expected { Ok(()) } else { Err(StateError::OfOtherEpoch { setting, found, expected }) }
        };
        let shown_lanes = |state: &Self| state.lanes.map_or("none".into(), |lanes| lanes.to_string());
        check(EpochSetting::Order, self.order.to_string(), other.order.to_string())?;
        check(EpochSetting::Seed, self.seed.to_string(), other.seed.to_string())?;
        check(EpochSetting::Epoch, self.epoch.to_string(), other.epoch.to_string())?;
        check(EpochSetting::Lanes, shown_lanes(self), shown_lanes(other))
    }
}

/// One line of JSON.
impl std::fmt::Display for EpochState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let document = StateDocument {
            grainstore_state: VERSION,
            fingerprint: self.fingerprint.to_string(),
            subset: self.subset.map(|hash| format!("{hash:016x}")),
            seed: self.seed,
            epoch: self.epoch,
            order: self.order.to_string(),
            lanes: self.lanes,
            position: self.position,
        };
        formatter.write_str(&serde_json::to_string(&document).map_err(|_| std::fmt::Error)?)
    }
}

impl std::str::FromStr for EpochState {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        let malformed = |why: String| StateError::Malformed { why };
        // A later version may have other members, so the version is checked first.
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        match value.get("grainstore_state").map(serde_json::Value::as_u64) {
            Some(Some(VERSION)) => {}
            Some(Some(found)) if found > VERSION => return Err(StateError::TooNew { found }),
            _ => return Err(malformed("it has no member \"grainstore_state\" with a version".into())),
        }
        // Parsed from the text again: a `Value` has lost members that occur twice.
        let document: StateDocument = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let fingerprint = Fingerprint(hex(&document.fingerprint).map_err(malformed)?);
        let subset = document.subset.as_deref().map(hex).transpose().map_err(malformed)?;
        let order = order_named(&document.order).ok_or_else(|| malformed(format!("order is {:?}", document.order)))?;
        if document.lanes.is_some() != (order == Order::Chunked) {
            return Err(malformed("the chunked order has lanes, the others have none".into()));
        }
        let StateDocument { seed, epoch, lanes, position, .. } = document;
        Ok(Self { fingerprint, subset, seed, epoch, order, lanes, position })
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
            seed: u64::MAX,
            epoch: 3,
            order: Order::Chunked,
            lanes: Some(12),
            position: 1 << 60,
        }
    }

    /// STA-1
    #[test]
    fn what_is_written_is_read_back() {
        for order in [Order::Sequential, Order::Full, Order::Chunked] {
            let lanes = (order == Order::Chunked).then_some(7);
            let state = EpochState { order, lanes, subset: None, ..state() };
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
        assert_eq!(error, "state is of version 2, this reader knows version 1");
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
        let order = refused(EpochState { order: Order::Full, lanes: None, ..state() });
        assert_eq!(order, "state is of order chunked, not of full");
        assert_eq!(refused(EpochState { seed: 1, ..state() }), "state is of seed 18446744073709551615, not of 1");
        assert_eq!(refused(EpochState { epoch: 4, ..state() }), "state is of epoch 3, not of 4");
        assert_eq!(refused(EpochState { lanes: Some(3), ..state() }), "state is of lanes 12, not of 3");
    }
}
