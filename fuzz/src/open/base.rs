//! A file of a fixture as it was written, and the regions that changes are aimed at.

use std::ops::Range;
use std::path::Path;

use grainstore_format::{Directory, Footer, Manifest, SectionRecord, to_usize};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Manifest,
    Segment,
    Index,
    /// Somebody else's, which an index points into.
    Data,
}

/// A file as it was written.
pub(super) struct BaseFile {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) bytes: Vec<u8>,
    /// Footer, directory, samples and sections; none for a file without an index.
    pub(super) regions: Vec<Range<usize>>,
}

impl BaseFile {
    pub(super) fn read(directory: &Path, name: String) -> Self {
        let bytes = std::fs::read(directory.join(&name)).unwrap();
        let role = match Path::new(&name).extension().and_then(|extension| extension.to_str()) {
            Some("seg") => Role::Segment,
            Some("idx") => Role::Index,
            _ if name == Manifest::FILE_NAME => Role::Manifest,
            _ => Role::Data,
        };
        let regions = if matches!(role, Role::Segment | Role::Index) { regions(&bytes) } else { Vec::new() };
        Self { name, role, bytes, regions }
    }
}

fn regions(bytes: &[u8]) -> Vec<Range<usize>> {
    let (footer, directory) = frame(bytes);
    let directory_at = to_usize(footer.directory_offset());
    let fixed = [
        bytes.len() - Footer::LEN..bytes.len(),
        directory_at..directory_at + footer.directory_len() as usize,
        4096..to_usize(footer.index_offset()),
    ];
    let section = |record: &SectionRecord| to_usize(record.offset)..to_usize(record.offset + record.storage_len());
    let all = fixed.into_iter().chain(directory.sections().iter().map(section));
    all.filter(|region| !region.is_empty()).collect()
}

/// Footer and directory of a whole file.
pub(super) fn frame(bytes: &[u8]) -> (Footer, Directory) {
    let footer = Footer::decode(&bytes[bytes.len() - Footer::LEN..], bytes.len() as u64).unwrap();
    let at = to_usize(footer.directory_offset());
    let directory = Directory::decode(&bytes[at..at + footer.directory_len() as usize], &footer).unwrap();
    (footer, directory)
}
