//! A finished native segment, as the journal and the manifest list it.

use grainstore_format::{IndexRef, SegmentKind, SegmentRef};

use crate::emit::Emitted;

/// A segment under its final name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedSegment {
    pub(crate) name: String,
    pub(crate) emitted: Emitted,
}

impl FinishedSegment {
    pub(crate) fn index(&self) -> IndexRef {
        IndexRef { file: self.name.clone(), fingerprint: self.emitted.fingerprint }
    }

    pub(crate) fn reference(&self) -> SegmentRef {
        SegmentRef {
            kind: SegmentKind::Native,
            path: self.name.clone(),
            file_len: self.emitted.file_len,
            sample_count: self.emitted.sample_count,
            fingerprint: self.emitted.fingerprint,
        }
    }
}
