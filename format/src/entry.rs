//! The entry: 128 bits with the position, the length and the checksum of a sample. spec.md: ENT-1 to ENT-6.

use zerocopy::byteorder::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{FormatError, MAX_SEGMENTS};

/// The largest offset that an entry holds.
pub const MAX_OFFSET: u64 = (1 << 44) - 1;

/// The stored length that marks a long sample, whose length is in the side table. The first length that is long.
pub const LONG_STORED_LEN: u64 = (1 << 31) - 1;

/// The fields of an entry, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFields {
    /// The segment's number.
    pub segment: u32,
    /// From the start of the segment's file, in bytes.
    pub offset: u64,
    /// Bytes as stored.
    pub stored_len: u64,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// Whether the stored bytes are an LZ4 block.
    pub lz4: bool,
}

/// The stored length in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredLen {
    /// In bytes.
    Here(u32),
    /// In the side table of long samples.
    Long,
}

/// The index record of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    word0: U64, // segment:20 | offset:44
    word1: U64, // crc:32 | lz4:1 | stored_len:31
}
const _: () = assert!(size_of::<Entry>() == Entry::LEN);

impl Entry {
    /// The length of an entry in bytes.
    pub const LEN: usize = 16;

    /// Packs the fields.
    ///
    /// # Errors
    /// If one of them does not fit, or a long or empty sample is marked as LZ4.
    pub fn new(fields: EntryFields) -> Result<Self, FormatError> {
        let EntryFields { segment, offset, stored_len, crc, lz4 } = fields;
        limit("segment number", u64::from(segment), MAX_SEGMENTS - 1)?;
        limit("sample offset", offset, MAX_OFFSET)?;
        if lz4 && !(1..LONG_STORED_LEN).contains(&stored_len) {
            return Err(FormatError::Invalid(format!(
                "a sample of {stored_len} stored bytes is marked as LZ4, which only 1 to 2147483646 bytes can be"
            )));
        }
        let stored_len = stored_len.min(LONG_STORED_LEN);
        Ok(Self {
            word0: U64::new(u64::from(segment) << 44 | offset),
            word1: U64::new(u64::from(crc) << 32 | u64::from(lz4) << 31 | stored_len),
        })
    }

    /// The segment's number.
    pub fn segment(&self) -> u32 {
        low_half(self.word0.get() >> 44)
    }

    /// From the start of the segment's file, in bytes.
    pub fn offset(&self) -> u64 {
        self.word0.get() & MAX_OFFSET
    }

    /// CRC-32 of the stored bytes.
    pub fn crc(&self) -> u32 {
        low_half(self.word1.get() >> 32)
    }

    /// Whether the stored bytes are an LZ4 block.
    pub fn is_lz4(&self) -> bool {
        self.word1.get() >> 31 & 1 == 1
    }

    /// The stored length, or that it is in the side table.
    pub fn stored_len(&self) -> StoredLen {
        match self.word1.get() & LONG_STORED_LEN {
            LONG_STORED_LEN => StoredLen::Long,
            len => StoredLen::Here(low_half(len)),
        }
    }

    /// The whole entries in `bytes`; a rest of fewer than 16 bytes is ignored.
    pub fn slice_of(bytes: &[u8]) -> &[Self] {
        let entries = <[Self]>::ref_from_prefix(bytes);
        debug_assert!(entries.is_ok(), "entries have no alignment, so a prefix of any bytes is a list of them");
        entries.map_or(&[], |(entries, _)| entries)
    }
}

/// The low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the callers have shifted or masked the other bits away")]
const fn low_half(value: u64) -> u32 {
    value as u32
}

fn limit(what: &'static str, found: u64, limit: u64) -> Result<(), FormatError> {
    if found > limit { Err(FormatError::Limit { what, found, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> EntryFields {
        EntryFields { segment: 0xABCDE, offset: 0x123_4567_89AB, stored_len: 0x7654_3210, crc: 0xDEAD_BEEF, lz4: true }
    }

    /// ENT-1, ENT-2, ENT-3, ENT-5, ENT-6, CON-1
    #[test]
    fn packs_two_little_endian_words() {
        let entry = Entry::new(fields()).unwrap();
        assert_eq!(entry.as_bytes()[..8], 0xABCD_E123_4567_89AB_u64.to_le_bytes());
        assert_eq!(entry.as_bytes()[8..], 0xDEAD_BEEF_F654_3210_u64.to_le_bytes());
        assert_eq!((entry.segment(), entry.offset(), entry.crc()), (0xABCDE, 0x123_4567_89AB, 0xDEAD_BEEF));
        assert!(entry.is_lz4());
        assert_eq!(entry.stored_len(), StoredLen::Here(0x7654_3210));
    }

    /// ENT-3
    #[test]
    fn lengths_from_all_ones_on_are_long() {
        let entry = |stored_len| Entry::new(EntryFields { stored_len, lz4: false, ..fields() }).unwrap().stored_len();
        assert_eq!(entry(LONG_STORED_LEN - 1), StoredLen::Here(0x7FFF_FFFE));
        assert_eq!(entry(LONG_STORED_LEN), StoredLen::Long);
        assert_eq!(entry(1 << 40), StoredLen::Long);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert!(Entry::new(EntryFields { segment: 1 << 20, ..fields() }).is_err());
        assert!(Entry::new(EntryFields { offset: 1 << 44, ..fields() }).is_err());
        assert!(Entry::new(EntryFields { stored_len: 0, ..fields() }).is_err());
        assert!(Entry::new(EntryFields { stored_len: LONG_STORED_LEN, ..fields() }).is_err());
    }
}
