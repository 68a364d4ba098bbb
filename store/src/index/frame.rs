//! The frame of an index file: footer, directory and the sections, unread.
//!
//! It is a type of its own so that `verify` can check the sections of an index whose metadata is damaged.
//! spec.md: section 9.

use std::path::Path;

use grainstore_format::{Directory, Fingerprint, Footer, Geometry, MAX_SECTIONS, SectionKind};

use super::file::IndexFile;
use super::section::Section;
use crate::open::other_version_of_header;
use crate::{IndexMemory, StoreError};

pub(crate) const MAX_DIRECTORY_LEN: u64 = 64 + 32 * MAX_SECTIONS as u64;

/// Footer and directory of an index file, and its sections, unread.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) file: IndexFile,
    pub(crate) footer: Footer,
    pub(crate) directory: Directory,
    pub(crate) fingerprint: Fingerprint,
    sections: Vec<Section>,
    positions: SectionPositions,
}

/// For each kind of section, the position of item 0 among all sections. A key lookup needs it several times.
type SectionPositions = [Option<usize>; SectionKind::ALL.len() + 1];

impl Frame {
    /// Opens a file and checks its footer and its directory.
    pub(crate) fn open(path: &Path, memory: IndexMemory) -> Result<Self, StoreError> {
        // A file of another version may have another length, or end otherwise: what it begins with decides.
        Self::read(path, memory).map_err(|error| other_version_of_header(path).unwrap_or(error))
    }

    fn read(path: &Path, memory: IndexMemory) -> Result<Self, StoreError> {
        let wrong = |error| StoreError::format(path, error);
        let file = IndexFile::open(path, memory)?;
        let len = file.len();
        let footer = Footer::decode(&file.read(len - Footer::LEN as u64..len)?, len).map_err(wrong)?;
        let directory_len = u64::from(footer.directory_len());
        // A longer one would be read before its own length could be checked.
        if directory_len > MAX_DIRECTORY_LEN {
            return Err(StoreError::damaged(path, "footer", format!("directory of {directory_len} bytes")));
        }
        let bytes = file.read(footer.directory_offset()..footer.directory_offset() + directory_len)?;
        let directory = Directory::decode(&bytes, &footer).map_err(wrong)?;
        let sections: Vec<Section> = directory.sections().iter().map(|record| Section::new(*record)).collect();
        let positions = positions(&sections);
        Ok(Self { file, footer, directory, fingerprint: Fingerprint::of_directory(&bytes), sections, positions })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(crate) fn section(&self, kind: SectionKind, item: u16) -> Option<&Section> {
        if item == 0 {
            let position = self.positions.get(kind as usize).copied().flatten()?;
            return self.sections.get(position);
        }
        let key = |section: &Section| (section.record().kind, section.record().item);
        let position = self.sections.binary_search_by_key(&(kind, item), key).ok()?;
        self.sections.get(position)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.directory.geometry()
    }

    pub(crate) fn sample_count(&self) -> u64 {
        self.directory.counts().sample_count
    }

    pub(super) fn required(&self, kind: SectionKind, item: u16) -> Result<&Section, StoreError> {
        self.section(kind, item)
            .ok_or_else(|| StoreError::damaged(self.path(), "directory", format!("section {} is missing", kind.name())))
    }
}

fn positions(sections: &[Section]) -> SectionPositions {
    let mut positions = SectionPositions::default();
    for (position, section) in sections.iter().enumerate().filter(|(_, section)| section.record().item == 0) {
        if let Some(of_kind) = positions.get_mut(section.record().kind as usize) {
            *of_kind = Some(position);
        }
    }
    positions
}
