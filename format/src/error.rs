//! What can be wrong with bytes that claim to be a grainstore structure.

use crate::Remedy;
use crate::memory::NoMemory;

/// Why bytes were refused. The texts give what, found and expected; the caller adds the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are something else.
    #[error("not a grainstore {what}: {found}")]
    NotGrainstore {
        /// The structure that was expected.
        what: &'static str,
        /// What was found instead.
        found: String,
    },
    /// A format version that this library does not know.
    #[error("written by a newer grainstore: format version {found} is unknown to this version ({ours})")]
    TooNew {
        /// The version found.
        found: u64,
        /// The newest version known.
        ours: u32,
    },
    /// An incompatible feature that this library does not know.
    #[error("written by a newer grainstore: feature bit {bit} is unknown to this version")]
    UnknownFeature {
        /// The lowest unknown bit.
        bit: u32,
    },
    /// The length is wrong: bytes are missing or extra at the end.
    #[error("{what} is cut short or appended to: {found} bytes, expected {expected}")]
    Length {
        /// The structure.
        what: &'static str,
        /// Its length in bytes.
        found: u64,
        /// The length it should have.
        expected: String,
    },
    /// A checksum or a rule of the format does not hold.
    #[error("damaged {what}: {detail}")]
    Damaged {
        /// The structure.
        what: &'static str,
        /// Found and expected.
        detail: String,
    },
    /// A value that the format cannot hold (from a writer, never from disk).
    #[error("{what} is {found}, the limit is {limit}")]
    Limit {
        /// The value.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The largest value that the format can hold.
        limit: u64,
    },
    /// The system has no memory for the decoded form.
    #[error("{what}: {source}")]
    NoMemory {
        /// The structure.
        what: &'static str,
        /// Bytes that were requested.
        source: NoMemory,
    },
    /// A name, type or option that the format does not allow (from a writer).
    #[error("{0}")]
    Invalid(String),
}

impl FormatError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::TooNew { .. } | Self::UnknownFeature { .. } => Some(Remedy::Upgrade),
            _ => None,
        }
    }

    pub(crate) fn damaged(what: &'static str, detail: impl Into<String>) -> Self {
        Self::Damaged { what, detail: detail.into() }
    }

    pub(crate) fn no_memory(what: &'static str) -> impl FnOnce(NoMemory) -> Self {
        move |source| Self::NoMemory { what, source }
    }
}

/// `Ok` if the rule `holds`, else an error that the structure is damaged, with `detail`.
pub(crate) fn ensure(holds: bool, what: &'static str, detail: impl FnOnce() -> String) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(FormatError::damaged(what, detail())) }
}

/// Refuses incompatible features that this version does not know. spec.md: VER-1, VER-2.
pub(crate) fn check_incompatible(bits: u32) -> Result<(), FormatError> {
    if bits == 0 { Ok(()) } else { Err(FormatError::UnknownFeature { bit: bits.trailing_zeros() }) }
}

/// Refuses another version. spec.md: VER-1.
pub(crate) fn check_version(found: u64) -> Result<(), FormatError> {
    if found == u64::from(crate::VERSION) { Ok(()) } else { Err(FormatError::TooNew { found, ours: crate::VERSION }) }
}
