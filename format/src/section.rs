//! A section of the index: its kind, and its record in the directory. spec.md: sections 5 and 6.

use crate::checksums::CHECKSUM_PAGE_LEN;
use crate::{BLOCK_LEN, round_up};

/// The largest number of sections of an index. 1024 attributes and 1024 fields need fewer; ancillary sections may be
/// the rest.
pub const MAX_SECTIONS: u32 = 8192;

/// Kinds from this one on are ancillary: a reader ignores those that it does not know. spec.md: DIR-2.
pub const FIRST_ANCILLARY_KIND: u16 = 32768;

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[non_exhaustive]
pub enum SectionKind {
    /// The segment table.
    Segments = 1,
    /// The 128-bit entries.
    Entries = 2,
    /// How many samples each chunk owns.
    Chunks = 3,
    /// One bit per chunk: whether its last sample crosses its end.
    Edges = 4,
    /// Lengths of long samples.
    Long = 5,
    /// Raw lengths of LZ4 samples.
    RawLen = 6,
    /// The keys.
    Keys = 7,
    /// Where each group of 64 keys starts.
    KeyGroups = 8,
    /// Where each bucket of slots starts.
    Buckets = 9,
    /// Hash bits and ordinal of every key.
    Slots = 10,
    /// Schema and user metadata.
    Metadata = 11,
    /// The values of an attribute.
    Attribute = 12,
    /// Which samples have the attribute.
    Validity = 13,
    /// Where a field starts in the payload.
    FieldOffset = 14,
    /// How long a field is.
    FieldLen = 15,
    /// Which samples have the field.
    FieldValidity = 16,
    /// The texts that the codes of an attribute of type `category` number.
    Categories = 17,
}

impl SectionKind {
    /// All kinds, in file order.
    pub const ALL: [Self; 17] = [
        Self::Segments,
        Self::Entries,
        Self::Chunks,
        Self::Edges,
        Self::Long,
        Self::RawLen,
        Self::Keys,
        Self::KeyGroups,
        Self::Buckets,
        Self::Slots,
        Self::Metadata,
        Self::Attribute,
        Self::Validity,
        Self::FieldOffset,
        Self::FieldLen,
        Self::FieldValidity,
        Self::Categories,
    ];

    pub(crate) fn from_disk(value: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == value)
    }

    /// Whether there is one for each attribute or field.
    pub fn has_items(self) -> bool {
        self >= Self::Attribute
    }

    /// The name in spec.md, lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Segments => "segments",
            Self::Entries => "entries",
            Self::Chunks => "chunks",
            Self::Edges => "edges",
            Self::Long => "long",
            Self::RawLen => "raw_len",
            Self::Keys => "keys",
            Self::KeyGroups => "key_groups",
            Self::Buckets => "buckets",
            Self::Slots => "slots",
            Self::Metadata => "metadata",
            Self::Attribute => "attribute",
            Self::Validity => "validity",
            Self::FieldOffset => "field_offset",
            Self::FieldLen => "field_len",
            Self::FieldValidity => "field_validity",
            Self::Categories => "categories",
        }
    }
}

/// The position of a section, and the CRC-32 of its list of checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionRecord {
    /// What it holds.
    pub kind: SectionKind,
    /// The attribute or field, else 0.
    pub item: u16,
    /// Bytes per element, 0 for bitmaps and byte strings.
    pub width: u32,
    /// From the start of the file.
    pub offset: u64,
    /// Bytes, without checksums and padding.
    pub len: u64,
    /// CRC-32 of the list of checksums.
    pub checksums_crc: u32,
}

impl SectionRecord {
    /// Checksum pages of 64 KiB, each with a checksum.
    pub fn page_count(&self) -> u64 {
        self.len.div_ceil(CHECKSUM_PAGE_LEN)
    }

    /// Where the list of checksums starts in the file.
    pub fn checksums_offset(&self) -> u64 {
        self.offset + round_up(self.len, 4)
    }

    /// Bytes that the section and its checksums take. spec.md: DIR-4.
    pub fn storage_len(&self) -> u64 {
        storage_len(self.len)
    }

    /// Where the next section, or the directory, starts. spec.md: DIR-4.
    pub fn next_offset(&self) -> u64 {
        next_offset(self.offset, self.len)
    }

    /// The section's name for messages: its kind, and its number if there is one per attribute or field.
    pub fn label(&self) -> String {
        if self.kind.has_items() { format!("{}[{}]", self.kind.name(), self.item) } else { self.kind.name().to_owned() }
    }
}

/// Bytes that a section of `len` bytes and its checksums take. spec.md: DIR-4.
const fn storage_len(len: u64) -> u64 {
    round_up(len, 4) + 4 * len.div_ceil(CHECKSUM_PAGE_LEN)
}

/// Where the section after one of `len` bytes at `offset` starts. spec.md: DIR-4.
pub(crate) const fn next_offset(offset: u64, len: u64) -> u64 {
    round_up(offset + storage_len(len), BLOCK_LEN)
}
