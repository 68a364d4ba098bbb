//! Why a state cannot be read, or not resumed from.

use grainstore_format::{EpochSetting, Fingerprint, Remedy};

use super::EpochState;
use super::document::VERSION;

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
            Self::OfGeneration { found, .. } => Remedy::OpenGeneration(*found),
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
