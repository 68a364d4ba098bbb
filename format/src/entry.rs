//! The entry: 128 bits that say where a sample is, how long it is and what its bytes sum to. spec.md: ENT-1 to ENT-6.

use zerocopy::byteorder::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{FormatError, MAX_SEGMENTS};

/// The largest offset that an entry holds.
pub const MAX_OFFSET: u64 = (1 << 44) - 1;

/// The stored length that says: long, look into the side table. The first length that is long.
pub const LONG_STORED_LEN: u64 = (1 << 31) - 1;

/// What an entry says, by name.
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

/// The stored length as far as the entry knows it.
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
    /// Where one of them does not fit, or a long or empty sample is said to be LZ4.
    pub fn new(fields: EntryFields) -> Result<Self, FormatError> {
        let EntryFields { segment, offset, stored_len, crc, lz4 } = fields;
        limit("segment number", u64::from(segment), MAX_SEGMENTS - 1)?;
        limit("sample offset", offset, MAX_OFFSET)?;
        if lz4 && !(1..LONG_STORED_LEN).contains(&stored_len) {
            return Err(FormatError::Invalid(format!("a sample of {stored_len} stored bytes cannot be LZ4")));
        }
        let stored_len = stored_len.min(LONG_STORED_LEN);
        Ok(Self {
            word0: U64::new(u64::from(segment) << 44 | offset),
            word1: U64::new(u64::from(crc) << 32 | u64::from(lz4) << 31 | stored_len),
        })
    }

    /// The segment's number.
    pub fn segment(&self) -> u32 {
        u32::try_from(self.word0.get() >> 44).unwrap_or(u32::MAX)
    }

    /// From the start of the segment's file, in bytes.
    pub fn offset(&self) -> u64 {
        self.word0.get() & MAX_OFFSET
    }

    /// CRC-32 of the stored bytes.
    pub fn crc(&self) -> u32 {
        u32::try_from(self.word1.get() >> 32).unwrap_or(u32::MAX)
    }

    /// Whether the stored bytes are an LZ4 block.
    pub fn is_lz4(&self) -> bool {
        self.word1.get() >> 31 & 1 == 1
    }

    /// The stored length, or that it stands elsewhere.
    pub fn stored_len(&self) -> StoredLen {
        match u32::try_from(self.word1.get() & LONG_STORED_LEN).unwrap_or(u32::MAX) {
            len if u64::from(len) == LONG_STORED_LEN => StoredLen::Long,
            len => StoredLen::Here(len),
        }
    }

    /// The entries in `bytes`; a tail that is no whole entry is left out.
    pub fn slice_of(bytes: &[u8]) -> &[Self] {
        let whole = bytes.len() / Self::LEN * Self::LEN;
        bytes.get(..whole).and_then(|bytes| <[Self]>::ref_from_bytes(bytes).ok()).unwrap_or_default()
    }
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
