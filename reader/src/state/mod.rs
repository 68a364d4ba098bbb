//! The state of an epoch: a line of text from which another process resumes. order.md: STA-1 to STA-3.

mod document;
mod error;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use grainstore_format::{EpochSetting, Fingerprint};

pub use self::error::StateError;
use crate::plan::Order;

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
