//! Meta pages, and the records of databases in them and in the main database.
//!
//! ```text
//! page:     number u64, pad u16, flags u16, lower u16, upper u16     (overflow: page count u32 for lower and upper)
//! meta:     magic u32, version u32, address u64, map size u64, free database, main database, last page u64,
//!           transaction u64                                          (after the page's header)
//! database: pad u32 (free: page size), flags u16, depth u16, branch pages u64, leaf pages u64, overflow pages u64,
//!           entries u64, root u64
//! ```

use super::page::{HEADER_LEN, u16_at, u32_at, u64_at};

/// Bytes of a meta page that are used.
pub(super) const META_LEN: usize = HEADER_LEN + 136;
/// Length of the record of a database.
pub(super) const RECORD_LEN: usize = 48;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_FLAG: u16 = 0x08;
const PAGE_LEN_MIN: u32 = 512;
/// Offsets in a page have 16 bits, and that of the end of an empty page must fit.
const PAGE_LEN_MAX: u32 = 32768;
/// The deepest tree that liblmdb makes.
const DEPTH_MAX: u16 = 32;
const NO_ROOT: u64 = u64::MAX;

const REVERSE_KEY: u16 = 0x02;
const DUP_SORT: u16 = 0x04;
const INTEGER_KEY: u16 = 0x08;
const DUP_FIXED: u16 = 0x10;

/// A meta page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) page_len: u32,
    pub(super) free: Record,
    pub(super) main: Record,
    pub(super) last_page: u64,
    pub(super) transaction: u64,
}

/// Where a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    flags: u16,
    pub(super) depth: u16,
    /// Number of its pages of all kinds.
    pub(super) page_count: u64,
    pub(super) root: u64,
}

/// Whether the first bytes of a file are those of an LMDB environment, also of a version that cannot be read.
pub fn recognises(head: &[u8]) -> bool {
    let is_meta = |flags_at, magic_at| {
        let flags = u16_at(head, flags_at).unwrap_or(0);
        let magic = u32_at(head, magic_at);
        let little = flags & META_FLAG != 0 && magic == Some(MAGIC);
        let big = flags.swap_bytes() & META_FLAG != 0 && magic == Some(MAGIC.swap_bytes());
        little || big
    };
    is_meta(10, 16) || is_meta(6, 12)
}

impl Meta {
    /// The meta page in `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        check_dialect(bytes)?;
        let short = || format!("a meta page has {META_LEN} bytes, found {}", bytes.len());
        let record = |at| bytes.get(at..at + RECORD_LEN).and_then(Record::decode).ok_or_else(short);
        let meta = Self {
            page_len: u32_at(bytes, 40).ok_or_else(short)?,
            free: record(40)?,
            main: record(88)?,
            last_page: u64_at(bytes, 136).ok_or_else(short)?,
            transaction: u64_at(bytes, 144).ok_or_else(short)?,
        };
        if !meta.page_len.is_power_of_two() || !(PAGE_LEN_MIN..=PAGE_LEN_MAX).contains(&meta.page_len) {
            let len = meta.page_len;
            return Err(format!(
                "pages have {len} bytes, expected a power of two from {PAGE_LEN_MIN} to {PAGE_LEN_MAX}"
            ));
        }
        Ok(meta)
    }
}

impl Record {
    /// The record in `bytes`; `None` where they are too few.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let pages = [u64_at(bytes, 8)?, u64_at(bytes, 16)?, u64_at(bytes, 24)?];
        Some(Self {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            page_count: pages.iter().fold(0, |sum: u64, pages| sum.saturating_add(*pages)),
            root: u64_at(bytes, 40)?,
        })
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.root == NO_ROOT
    }

    /// Whether its keys are sorted by their bytes, so that they can be searched.
    pub(super) fn is_ordered_by_bytes(&self) -> bool {
        self.flags & (REVERSE_KEY | INTEGER_KEY) == 0
    }

    /// Checks that it can be read: one value for each key, and no deeper than liblmdb makes it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.flags & (DUP_SORT | DUP_FIXED) != 0 {
            return Err(
                "it has several values for one key (MDB_DUPSORT); a sample has a key of its own, so write the \
                        values under keys of their own first"
                    .into(),
            );
        }
        if !self.is_empty() && !(1..=DEPTH_MAX).contains(&self.depth) {
            return Err(format!("its tree is {} pages deep, expected 1 to {DEPTH_MAX}", self.depth));
        }
        Ok(())
    }
}

/// Refuses files of other machines and versions, with the reason.
fn check_dialect(bytes: &[u8]) -> Result<(), String> {
    if u32_at(bytes, 16) == Some(MAGIC.swap_bytes()) || u32_at(bytes, 12) == Some(MAGIC.swap_bytes()) {
        return Err("was written on a big-endian machine; only little-endian LMDB files are read".into());
    }
    if u16_at(bytes, 6) == Some(META_FLAG) && u32_at(bytes, 12) == Some(MAGIC) {
        return Err("was written by a 32-bit LMDB; only 64-bit files are read: copy it with `mdb_dump` on such a \
                    machine and `mdb_load` on this one"
            .into());
    }
    let magic = u32_at(bytes, 16).unwrap_or(0);
    let flags = u16_at(bytes, 10).unwrap_or(0);
    if magic != MAGIC || flags & META_FLAG == 0 {
        return Err(format!(
            "is not an LMDB file: magic number {magic:08x} and page flags {flags:04x}, expected {MAGIC:08x} and \
             {META_FLAG:04x}"
        ));
    }
    match u32_at(bytes, 20) {
        Some(VERSION) => Ok(()),
        version => Err(format!("is an LMDB file of format {}, expected {VERSION}", version.unwrap_or(0))),
    }
}
