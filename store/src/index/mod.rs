//! An opened index: of a native segment, of an external one, or merged. Opening reads no entries and no keys.
//!
//! ```text
//! Index                   segments and schema are known
//!  `- Frame               footer and directory
//!      |- IndexFile       the open file: reads are counted
//!      `- Section         one section: read in checksum pages of 64 KiB, or whole; every byte is checked
//!          |- PageCache   the pages that were read last
//!          `- SectionBytes  the whole section, in memory or mapped
//! ```
//! spec.md: section 9.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use grainstore_format::{FormatError, LongTable, Metadata, SectionKind, SectionRecord, SegmentTable};

pub(crate) use self::frame::{Frame, MAX_DIRECTORY_LEN};
use self::numbers::little_endian;
use self::section::{Section, View};
use crate::{IndexMemory, StoreError};

pub(crate) mod file;
mod frame;
#[allow(unsafe_code, reason = "a file is mapped here, and nowhere else")]
mod mapping;
pub(crate) mod numbers;
mod page_cache;
pub(crate) mod section;
mod section_bytes;

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
        // Not cached: the decoded form is held.
        let metadata = metadata.read_uncached(&frame.file, 0..metadata.record().len)?;
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

    /// The record of a section, if the index has it.
    pub(crate) fn record(&self, kind: SectionKind, item: u16) -> Option<&SectionRecord> {
        self.section(kind, item).map(Section::record)
    }

    /// Bytes of a required section.
    pub(crate) fn read(&self, kind: SectionKind, item: u16, range: Range<u64>) -> Result<Cow<'_, [u8]>, StoreError> {
        self.frame.required(kind, item)?.read(&self.frame.file, range)
    }

    /// Bytes of a required section, not cached.
    pub(crate) fn read_uncached(&self, kind: SectionKind, item: u16, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.frame.required(kind, item)?.read_uncached(&self.frame.file, range)
    }

    /// A whole required section.
    pub(crate) fn whole(&self, kind: SectionKind, item: u16) -> Result<&[u8], StoreError> {
        self.frame.required(kind, item)?.whole(&self.frame.file)
    }

    /// Element `index` of a section of little-endian numbers.
    pub(crate) fn number(&self, kind: SectionKind, item: u16, index: u64) -> Result<u64, StoreError> {
        let section = self.frame.required(kind, item)?;
        let width = u64::from(section.record().width);
        let from = index.saturating_mul(width);
        Ok(little_endian(&section.read(&self.frame.file, from..from.saturating_add(width))?))
    }

    /// A required section, for several reads.
    #[inline]
    pub(crate) fn view(&self, kind: SectionKind) -> Result<View<'_>, StoreError> {
        self.frame.required(kind, 0).map(|section| View::new(section, &self.frame.file))
    }

    /// Bit `index` of a bitmap; true if the section is absent (all samples have it).
    pub(crate) fn bit(&self, kind: SectionKind, item: u16, index: u64) -> Result<bool, StoreError> {
        let Some(section) = self.section(kind, item) else { return Ok(true) };
        let byte = section.read(&self.frame.file, index / 8..index / 8 + 1)?;
        Ok(byte.first().is_some_and(|byte| byte >> (index % 8) & 1 == 1))
    }

    /// The table of long samples; empty if there is none.
    pub(crate) fn long(&self) -> Result<&LongTable, StoreError> {
        if let Some(table) = self.long.get() {
            return Ok(table);
        }
        let table = match self.section(SectionKind::Long, 0) {
            None => LongTable::default(),
            Some(section) => {
                let bytes = section.read_uncached(&self.frame.file, 0..section.record().len)?;
                LongTable::decode(bytes, self.sample_count()).map_err(|error| self.wrong(error))?
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
