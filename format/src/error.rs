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
    /// The format as it was before version 1, which may have changed since.
    #[error("written by a development version of grainstore (format {found}): pack it again")]
    Development {
        /// The version found.
        found: u64,
    },
    /// A kind of section that this library does not know and must not ignore.
    #[error("written by a newer grainstore: section kind {kind} is unknown to this version")]
    UnknownSection {
        /// The kind found.
        kind: u16,
    },
    /// An incompatible feature that this library does not know.
    #[error("written by a newer grainstore: feature bit {bit} is unknown to this version")]
    UnknownFeature {
        /// The lowest unknown bit.
        bit: u32,
    },
    /// A type of an attribute or field that this library can read as bytes, but not write.
    #[error("needs a newer grainstore: \"{name}\" has the type \"{kind}\", which is unknown to this version")]
    UnknownType {
        /// The attribute or field, escaped.
        name: String,
        /// Its type, escaped.
        kind: String,
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
    /// A member of the user's metadata whose value this library cannot hold. The file may be undamaged. spec.md: MET-3.
    #[error("member \"{}\" of the user's metadata cannot be held: {why}", crate::escape_bytes(.name.as_bytes()))]
    UnheldMember {
        /// Its name.
        name: String,
        /// Which limit it exceeds.
        why: String,
    },
    /// A name, type or option that the format does not allow (from a writer).
    #[error("{0}")]
    Invalid(String),
}

impl FormatError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        self.is_newer().then_some(Remedy::Upgrade)
    }

    /// Whether another version of grainstore wrote the bytes, which may be undamaged. spec.md: VER-1.
    pub fn is_other_version(&self) -> bool {
        self.is_newer() || matches!(self, Self::Development { .. })
    }

    fn is_newer(&self) -> bool {
        matches!(
            self,
            Self::TooNew { .. } | Self::UnknownFeature { .. } | Self::UnknownSection { .. } | Self::UnknownType { .. }
        )
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

/// Refuses versions that this library does not read. spec.md: VER-1.
pub(crate) fn check_version(found: u64) -> Result<(), FormatError> {
    check_version_for(crate::VERSION, found)
}

/// Version 0 is the format's development: only version 0 reads it. Versions from 1 on are frozen, later ones read them.
fn check_version_for(ours: u32, found: u64) -> Result<(), FormatError> {
    if found > u64::from(ours) {
        return Err(FormatError::TooNew { found, ours });
    }
    if found == 0 && ours > 0 { Err(FormatError::Development { found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// VER-1
    #[test]
    fn a_newer_version_is_newer_and_version_0_is_a_development_version_to_later_ones() {
        assert_eq!(check_version_for(0, 0), Ok(()));
        assert_eq!(check_version_for(0, 1), Err(FormatError::TooNew { found: 1, ours: 0 }));
        assert_eq!(check_version_for(1, 1), Ok(()));
        assert_eq!(check_version_for(2, 1), Ok(()));
        assert_eq!(check_version_for(1, u64::MAX), Err(FormatError::TooNew { found: u64::MAX, ours: 1 }));
        let old = check_version_for(1, 0).unwrap_err();
        assert_eq!(old.to_string(), "written by a development version of grainstore (format 0): pack it again");
        assert!(old.is_other_version() && old.remedy().is_none());
    }
}
