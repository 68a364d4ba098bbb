//! An opened index: of a native segment, of an external one, or merged. Opening reads no entries and no keys.
//!
//! The frame (footer, directory) stands for itself, so that `verify` can check the sections of an index whose
//! metadata is damaged. spec.md: section 9.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use grainstore_format::{
    Directory, Fingerprint, Footer, FormatError, Geometry, LongTable, MAX_SECTIONS, Metadata, SectionKind,
    SectionRecord, SegmentTable, to_usize,
};

use crate::file::IndexFile;
use crate::section::{Section, View};
use crate::{IndexMemory, StoreError};

const MAX_DIRECTORY_LEN: u64 = 64 + 32 * MAX_SECTIONS as u64;

/// Footer and directory of a file, and its sections, unread.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) file: IndexFile,
    pub(crate) footer: Footer,
    pub(crate) directory: Directory,
    pub(crate) fingerprint: Fingerprint,
    sections: Vec<Section>,
    places: Places,
}

/// For each kind of section, where the one of item 0 stands among all. Lookups come by here several times a key.
type Places = [Option<usize>; SectionKind::ALL.len() + 1];

impl Frame {
    pub(crate) fn open(path: &Path, memory: IndexMemory) -> Result<Self, StoreError> {
        let wrong = |error| StoreError::format(path, error);
        let file = IndexFile::open(path, memory)?;
        let len = file.len();
        let footer = Footer::decode(&file.read(len - Footer::LEN as u64..len)?, len).map_err(wrong)?;
        let directory_len = u64::from(footer.directory_len());
        // A longer one would be read before anything could say that it is too long.
        if directory_len > MAX_DIRECTORY_LEN {
            return Err(StoreError::damaged(path, "footer", format!("directory of {directory_len} bytes")));
        }
        let bytes = file.read(footer.directory_offset()..footer.directory_offset() + directory_len)?;
        let directory = Directory::decode(&bytes, &footer).map_err(wrong)?;
        let sections: Vec<Section> = directory.sections().iter().map(|record| Section::new(*record)).collect();
        let places = places(&sections);
        Ok(Self { file, footer, directory, fingerprint: Fingerprint::of_directory(&bytes), sections, places })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(crate) fn section(&self, kind: SectionKind, item: u16) -> Option<&Section> {
        if item == 0 {
            let place = self.places.get(kind as usize).copied().flatten()?;
            return self.sections.get(place);
        }
        let key = |section: &Section| (section.record().kind, section.record().item);
        let place = self.sections.binary_search_by_key(&(kind, item), key).ok()?;
        self.sections.get(place)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.directory.geometry()
    }

    pub(crate) fn sample_count(&self) -> u64 {
        self.directory.counts().sample_count
    }

    fn required(&self, kind: SectionKind, item: u16) -> Result<&Section, StoreError> {
        self.section(kind, item)
            .ok_or_else(|| StoreError::damaged(self.path(), "directory", format!("section {} is missing", kind.name())))
    }
}

/// An index whose segments and schema are known.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) frame: Frame,
    pub(crate) table: SegmentTable,
    pub(crate) metadata: Metadata,
    long: OnceLock<LongTable>,
}

impl Index {
    pub(crate) fn open(path: &Path, memory: IndexMemory) -> Result<Self, StoreError> {
        Self::from_frame(Frame::open(path, memory)?)
    }

    pub(crate) fn from_frame(frame: Frame) -> Result<Self, StoreError> {
        let (table, metadata) = Self::read_small(&frame)?;
        Ok(Self { frame, table, metadata, long: OnceLock::new() })
    }

    fn read_small(frame: &Frame) -> Result<(SegmentTable, Metadata), StoreError> {
        let wrong = |error| StoreError::format(frame.path(), error);
        let segments = frame.required(SectionKind::Segments, 0)?.whole(&frame.file)?;
        let table = SegmentTable::decode(segments, frame.sample_count(), frame.geometry().chunk_size).map_err(wrong)?;
        let metadata = frame.required(SectionKind::Metadata, 0)?;
        // Not kept: the decoded form is.
        let metadata = metadata.peek(&frame.file, 0..metadata.record().len)?;
        let metadata = Metadata::decode(&metadata).map_err(wrong)?;
        metadata.check_sections(&frame.directory).map_err(wrong)?;
        Ok((table, metadata))
    }

    pub(crate) fn path(&self) -> &Path {
        self.frame.path()
    }

    pub(crate) fn sample_count(&self) -> u64 {
        self.frame.sample_count()
    }

    pub(crate) fn section(&self, kind: SectionKind, item: u16) -> Option<&Section> {
        self.frame.section(kind, item)
    }

    /// The record of a section, where it is there.
    pub(crate) fn record(&self, kind: SectionKind, item: u16) -> Option<&SectionRecord> {
        self.section(kind, item).map(Section::record)
    }

    /// Bytes of a section that must be there.
    pub(crate) fn read(&self, kind: SectionKind, item: u16, range: Range<u64>) -> Result<Cow<'_, [u8]>, StoreError> {
        self.frame.required(kind, item)?.read(&self.frame.file, range)
    }

    /// The same, not kept in memory.
    pub(crate) fn peek(&self, kind: SectionKind, item: u16, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.frame.required(kind, item)?.peek(&self.frame.file, range)
    }

    /// A whole section that must be there.
    pub(crate) fn whole(&self, kind: SectionKind, item: u16) -> Result<&[u8], StoreError> {
        self.frame.required(kind, item)?.whole(&self.frame.file)
    }

    /// A little-endian number of at most 8 bytes.
    pub(crate) fn number(&self, kind: SectionKind, item: u16, place: u64) -> Result<u64, StoreError> {
        let section = self.frame.required(kind, item)?;
        let width = u64::from(section.record().width);
        let from = place.saturating_mul(width);
        Ok(little_endian(&section.read(&self.frame.file, from..from.saturating_add(width))?))
    }

    /// A section that must be there, for several looks at it.
    #[inline]
    pub(crate) fn view(&self, kind: SectionKind) -> Result<View<'_>, StoreError> {
        self.frame.required(kind, 0).map(|section| View::new(section, &self.frame.file))
    }

    /// Bit `place` of a bitmap; true where the section is absent (all samples have it).
    pub(crate) fn bit(&self, kind: SectionKind, item: u16, place: u64) -> Result<bool, StoreError> {
        let Some(section) = self.section(kind, item) else { return Ok(true) };
        let byte = section.read(&self.frame.file, place / 8..place / 8 + 1)?;
        Ok(byte.first().is_some_and(|byte| byte >> (place % 8) & 1 == 1))
    }

    /// The table of long samples, empty where none is.
    pub(crate) fn long(&self) -> Result<&LongTable, StoreError> {
        if let Some(table) = self.long.get() {
            return Ok(table);
        }
        let table = match self.section(SectionKind::Long, 0) {
            None => LongTable::default(),
            Some(section) => {
                let bytes = section.peek(&self.frame.file, 0..section.record().len)?;
                LongTable::decode(&bytes, self.sample_count()).map_err(|error| self.wrong(error))?
            }
        };
        Ok(self.long.get_or_init(|| table))
    }

    pub(crate) fn wrong(&self, error: FormatError) -> StoreError {
        StoreError::format(self.path(), error)
    }

    pub(crate) fn damaged(&self, what: &'static str, detail: impl Into<String>) -> StoreError {
        StoreError::damaged(self.path(), what, detail)
    }
}

/// A little-endian number of up to 8 bytes.
#[inline]
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    // The usual widths in one step each.
    match (bytes.try_into(), bytes.try_into()) {
        (Ok(bytes), _) => u64::from_le_bytes(bytes),
        (_, Ok(bytes)) => u64::from(u32::from_le_bytes(bytes)),
        _ => bytes.iter().rev().take(8).fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

fn places(sections: &[Section]) -> Places {
    let mut places = Places::default();
    for (place, section) in sections.iter().enumerate().filter(|(_, section)| section.record().item == 0) {
        if let Some(slot) = places.get_mut(section.record().kind as usize) {
            *slot = Some(place);
        }
    }
    places
}

/// The little-endian numbers of `width` bytes in `bytes`.
pub(crate) fn numbers(bytes: &[u8], width: u32) -> impl ExactSizeIterator<Item = u64> + '_ {
    bytes.chunks_exact(to_usize(u64::from(width.max(1)))).map(little_endian)
}
