//! The names of the files in a dataset's directory.

use grainstore_format::{SegmentKind, SegmentRef};

/// The journal of a dataset under construction, in `NAME.partial`.
pub(crate) const JOURNAL_NAME: &str = "progress.json";

/// The name of the file that holds a segment's own index.
pub(crate) fn index_name(segment: &SegmentRef) -> &str {
    match &segment.kind {
        SegmentKind::External { index_file, .. } => index_file,
        _ => &segment.path,
    }
}

/// The name of the segment of this number.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:05}.seg")
}
