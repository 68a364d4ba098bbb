//! The directory: counts, geometry and the position of every section of an index. spec.md: DIR-1 to DIR-7, HDR-2.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::ensure;
use crate::section::{FIRST_ANCILLARY_KIND, MAX_SECTIONS, next_offset};
use crate::{
    Alignment, Categories, ChunkSize, Entry, Footer, FormatError, Geometry, KeyGeometry, KeyGroups, LongTable,
    MAX_KEY_LEN, MAX_SAMPLES, MAX_SEGMENTS, Metadata, SLOT_LEN, SectionKind, SectionRecord, SegmentRecord,
};

const MAGIC: [u8; 8] = *b"GRAINDIR";
const WHAT: &str = "directory";

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDirectory {
    magic: [u8; 8],
    sample_count: U64,
    segment_count: U32,
    chunk_size_log2: u8,
    reserved: [u8; 3],
    alignment: U32,
    section_count: U32,
    hash_seed: U64,
    stored_bytes: U64,
    payload_bytes: U64,
    edge_count: U64,
}
const _: () = assert!(size_of::<RawDirectory>() == Directory::FIXED_LEN);

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSectionRecord {
    kind: U16,
    item: U16,
    width: U32,
    offset: U64,
    len: U64,
    checksums_crc: U32,
    reserved: U32,
}
const _: () = {
    assert!(size_of::<RawSectionRecord>() == Directory::RECORD_LEN);
    // The widths that `check_len` expects.
    assert!(SegmentRecord::LEN == 16 && Entry::LEN == 16 && LongTable::RECORD_LEN == 16 && SLOT_LEN == 7);
};

/// The totals of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryCounts {
    /// Samples, 1 to 2^40.
    pub sample_count: u64,
    /// Segments, 1 to 2^20.
    pub segment_count: u32,
    /// Sum of all stored lengths.
    pub stored_bytes: u64,
    /// Sum of all raw lengths.
    pub payload_bytes: u64,
    /// Samples that cross a chunk boundary.
    pub edge_count: u64,
}

/// A checked directory: sections are where the rules place them, and their lengths agree with the counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    counts: DirectoryCounts,
    geometry: Geometry,
    sections: Vec<SectionRecord>,
    /// Sections that this version ignores, after all others. Only their order and their offsets have been checked.
    ancillary: Vec<RawSectionRecord>,
}

impl Directory {
    const FIXED_LEN: usize = 64;
    const RECORD_LEN: usize = 32;

    /// A directory of these sections, whose offsets a writer has chosen.
    ///
    /// # Errors
    /// If a reader would refuse it.
    pub fn new(counts: DirectoryCounts, geometry: Geometry, sections: Vec<SectionRecord>) -> Result<Self, FormatError> {
        let directory = Self { counts, geometry, sections, ancillary: Vec::new() };
        directory.check()?;
        Ok(directory)
    }

    /// Reads the directory that `footer` points to.
    ///
    /// # Errors
    /// If a rule of the directory is broken.
    pub fn decode(bytes: &[u8], footer: &Footer) -> Result<Self, FormatError> {
        let crc = crc32fast::hash(bytes);
        ensure(bytes.len() as u64 == u64::from(footer.directory_len()), WHAT, || {
            format!("{} bytes, the footer has {}", bytes.len(), footer.directory_len())
        })?;
        ensure(crc == footer.directory_crc(), WHAT, || {
            format!("its CRC-32 is {crc:08x}, the footer has {:08x}", footer.directory_crc())
        })?;
        let (raw, records) = RawDirectory::ref_from_prefix(bytes)
            .map_err(|_| FormatError::damaged(WHAT, format!("{} bytes are too few", bytes.len())))?;
        ensure(raw.magic == MAGIC, WHAT, || format!("it begins with \"{}\"", raw.magic.escape_ascii()))?;
        ensure(raw.reserved == [0; 3], WHAT, || "reserved bytes are not zero".into())?;
        let records = <[RawSectionRecord]>::ref_from_bytes(records)
            .ok()
            .filter(|records| records.len() as u64 == u64::from(raw.section_count.get()))
            .ok_or_else(|| {
                FormatError::damaged(WHAT, format!("{} bytes for {} sections", bytes.len(), raw.section_count))
            })?;
        let counts = DirectoryCounts {
            sample_count: raw.sample_count.get(),
            segment_count: raw.segment_count.get(),
            stored_bytes: raw.stored_bytes.get(),
            payload_bytes: raw.payload_bytes.get(),
            edge_count: raw.edge_count.get(),
        };
        let geometry = decode_geometry(raw.chunk_size_log2, raw.alignment.get(), raw.hash_seed.get())?;
        let (known, ancillary): (Vec<_>, Vec<_>) =
            records.iter().copied().partition(|record| record.kind.get() < FIRST_ANCILLARY_KIND);
        let sections = known.iter().map(decode_record).collect::<Result<_, _>>()?;
        let directory = Self { counts, geometry, sections, ancillary };
        directory.check()?;
        ensure(records.is_sorted_by(|before, after| before.key() < after.key()), WHAT, || {
            "its records do not ascend by kind and item".into()
        })?;
        let end = directory.end();
        let start = directory.sections.first().map(|first| first.offset);
        ensure(start == Some(footer.index_offset()) && end == Some(footer.directory_offset()), WHAT, || {
            format!("sections {start:?}..{end:?} are not {}..{}", footer.index_offset(), footer.directory_offset())
        })?;
        Ok(directory)
    }

    /// The directory's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let raw = RawDirectory {
            magic: MAGIC,
            sample_count: U64::new(self.counts.sample_count),
            segment_count: U32::new(self.counts.segment_count),
            chunk_size_log2: self.geometry.chunk_size.log2(),
            reserved: [0; 3],
            alignment: U32::new(self.geometry.alignment.to_disk()),
            section_count: U32::new(self.section_count()),
            hash_seed: U64::new(self.geometry.hash_seed),
            stored_bytes: U64::new(self.counts.stored_bytes),
            payload_bytes: U64::new(self.counts.payload_bytes),
            edge_count: U64::new(self.counts.edge_count),
        };
        let records = self.sections.iter().flat_map(|section| -> [u8; Self::RECORD_LEN] {
            zerocopy::transmute!(RawSectionRecord {
                kind: U16::new(section.kind as u16),
                item: U16::new(section.item),
                width: U32::new(section.width),
                offset: U64::new(section.offset),
                len: U64::new(section.len),
                checksums_crc: U32::new(section.checksums_crc),
                reserved: U32::ZERO,
            })
        });
        let ancillary = self.ancillary.as_bytes().iter().copied();
        raw.as_bytes().iter().copied().chain(records).chain(ancillary).collect()
    }

    /// The totals of the index.
    pub fn counts(&self) -> &DirectoryCounts {
        &self.counts
    }

    /// The geometry of the dataset.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// All sections that this version knows, in file order.
    pub fn sections(&self) -> &[SectionRecord] {
        &self.sections
    }

    /// The section of this kind and item.
    pub fn section(&self, kind: SectionKind, item: u16) -> Option<&SectionRecord> {
        let index = self.sections.binary_search_by_key(&(kind, item), |section| (section.kind, section.item)).ok()?;
        self.sections.get(index)
    }

    #[expect(clippy::cast_possible_truncation, reason = "`check` allows 8192 sections at most")]
    fn section_count(&self) -> u32 {
        (self.sections.len() + self.ancillary.len()) as u32
    }

    /// Where the last section and its checksums end, rounded up to a block.
    fn end(&self) -> Option<u64> {
        match self.ancillary.last() {
            Some(last) => Some(next_offset(last.offset.get(), last.len.get())),
            None => self.sections.last().map(SectionRecord::next_offset),
        }
    }

    /// Whether the samples have keys.
    pub fn is_keyed(&self) -> bool {
        self.section(SectionKind::Slots, 0).is_some()
    }

    fn check(&self) -> Result<(), FormatError> {
        let counts = &self.counts;
        ensure((1..=MAX_SAMPLES).contains(&counts.sample_count), WHAT, || format!("{} samples", counts.sample_count))?;
        ensure((1..=MAX_SEGMENTS).contains(&u64::from(counts.segment_count)), WHAT, || {
            format!("{} segments", counts.segment_count)
        })?;
        let section_count = self.sections.len() + self.ancillary.len();
        ensure(section_count <= MAX_SECTIONS as usize, WHAT, || format!("{section_count} sections"))?;
        for pair in self.sections.windows(2) {
            let [before, after] = pair else { continue };
            ensure((before.kind, before.item) < (after.kind, after.item), WHAT, || {
                format!("section {} comes after {}", after.label(), before.label())
            })?;
        }
        for section in &self.sections {
            check_len(section, counts)?;
        }
        for record in &self.ancillary {
            ensure(is_sane(record.offset.get(), record.len.get()), WHAT, || {
                format!("section kind {} has {} bytes at {}", record.kind, record.len, record.offset)
            })?;
        }
        // Only now can offsets be added without overflow: every length agrees with a count, or is bounded by
        // `check_len`.
        for pair in self.sections.windows(2) {
            let [before, after] = pair else { continue };
            ensure(before.next_offset() == after.offset, WHAT, || {
                format!("section {} is at {}, expected {}", after.label(), after.offset, before.next_offset())
            })?;
        }
        let mut expected = self.sections.last().map(SectionRecord::next_offset);
        for record in &self.ancillary {
            let offset = record.offset.get();
            ensure(expected == Some(offset), WHAT, || {
                format!("section kind {} is at {offset}, expected {expected:?}", record.kind)
            })?;
            expected = Some(next_offset(offset, record.len.get()));
        }
        self.check_presence()
    }

    fn check_presence(&self) -> Result<(), FormatError> {
        let has = |kind| self.section(kind, 0).is_some();
        use SectionKind::{Buckets, Chunks, Edges, Entries, KeyGroups, Keys, Metadata, Segments, Slots};
        for kind in [Segments, Entries, Chunks, Edges, Metadata] {
            ensure(has(kind), WHAT, || format!("section {} is missing", kind.name()))?;
        }
        let keyed = [Keys, KeyGroups, Buckets, Slots].map(has);
        ensure(keyed == [true; 4] || keyed == [false; 4], WHAT, || "some of the sections of keys are missing".into())?;
        let chunks = self.section(Chunks, 0).map_or(0, |record| record.len / u64::from(record.width.max(1)));
        let edges = self.section(Edges, 0).map_or(0, |record| record.len);
        ensure(edges == chunks.div_ceil(8), WHAT, || format!("{edges} bytes of edges for {chunks} chunks"))
    }
}

impl RawSectionRecord {
    fn key(&self) -> (u16, u16) {
        (self.kind.get(), self.item.get())
    }
}

fn decode_geometry(chunk_size_log2: u8, alignment: u32, hash_seed: u64) -> Result<Geometry, FormatError> {
    let chunk_size = ChunkSize::from_log2(chunk_size_log2)
        .ok_or_else(|| FormatError::damaged(WHAT, format!("chunk_size_log2 is {chunk_size_log2}, not 12 to 30")))?;
    let alignment = Alignment::from_disk(alignment).ok_or_else(|| {
        FormatError::damaged(WHAT, format!("alignment is {alignment}, expected 0 or a power of two up to 4096"))
    })?;
    Ok(Geometry { chunk_size, alignment, hash_seed })
}

fn decode_record(raw: &RawSectionRecord) -> Result<SectionRecord, FormatError> {
    let kind = SectionKind::from_disk(raw.kind.get()).ok_or(FormatError::UnknownSection { kind: raw.kind.get() })?;
    ensure(raw.reserved.get() == 0, WHAT, || "reserved bytes are not zero".into())?;
    Ok(SectionRecord {
        kind,
        item: raw.item.get(),
        width: raw.width.get(),
        offset: raw.offset.get(),
        len: raw.len.get(),
        checksums_crc: raw.checksums_crc.get(),
    })
}

/// Checks that width and length agree with the kind and the counts. spec.md: DIR-5 and the table of section 6.
fn check_len(section: &SectionRecord, counts: &DirectoryCounts) -> Result<(), FormatError> {
    use SectionKind as Kind;
    let n = counts.sample_count;
    let width = u64::from(section.width);
    let (widths, elements): (&[u32], Option<u64>) = match section.kind {
        Kind::Segments => (&[16], Some(u64::from(counts.segment_count))),
        Kind::Entries => (&[16], Some(n)),
        Kind::Chunks => (&[1, 2, 4, 8], None),
        Kind::Edges | Kind::Keys | Kind::Metadata | Kind::Categories => (&[0], None),
        Kind::Long => (&[16], None),
        Kind::RawLen => (&[4], Some(n)),
        Kind::KeyGroups => (&[8], Some(KeyGroups::count(n))),
        Kind::Buckets => {
            (if KeyGeometry::bucket_width(n) == 4 { &[4] } else { &[8] }, Some(KeyGeometry::new(n).bucket_count() + 1))
        }
        Kind::Slots => (&[7], Some(n)),
        Kind::Attribute => (&[1, 2, 4, 8, 16], Some(n)),
        Kind::FieldOffset | Kind::FieldLen => (&[4, 8], Some(n)),
        Kind::Validity | Kind::FieldValidity => (&[0], None),
    };
    let expected = match section.kind {
        Kind::Validity | Kind::FieldValidity => Some(n.div_ceil(8)),
        // The width may be anything here; a product past 2^64 is not the length of any section.
        _ => elements.map(|elements| elements.saturating_mul(width)),
    };
    let most = match section.kind {
        Kind::Long => n * 16,
        Kind::Keys => n * (MAX_KEY_LEN as u64 + 3),
        Kind::Metadata => Metadata::MAX_LEN,
        Kind::Categories => Categories::MAX_LEN,
        _ => u64::MAX,
    };
    let sane = is_sane(section.offset, section.len) && section.len <= most;
    let whole = width == 0 || section.len.is_multiple_of(width);
    let fits = widths.contains(&section.width) && expected.is_none_or(|expected| expected == section.len);
    ensure(sane && whole && fits, WHAT, || {
        format!("section {} of width {} has {} bytes for {n} samples", section.label(), section.width, section.len)
    })?;
    ensure(section.kind.has_items() || section.item == 0, WHAT, || {
        format!("section {} has item {}", section.label(), section.item)
    })
}

/// Whether length and offset can be added without overflow: no file has 2^60 bytes.
fn is_sane(offset: u64, len: u64) -> bool {
    (1..1 << 60).contains(&len) && offset < 1 << 61
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIR-5
    #[test]
    fn a_huge_width_is_refused_without_overflow() {
        let counts = DirectoryCounts {
            sample_count: 1 << 40,
            segment_count: 1,
            stored_bytes: 0,
            payload_bytes: 0,
            edge_count: 0,
        };
        let geometry = Geometry { chunk_size: ChunkSize::DEFAULT, alignment: Alignment::PACKED, hash_seed: 0 };
        for kind in SectionKind::ALL {
            let record = SectionRecord { kind, item: 0, width: u32::MAX, offset: 4096, len: 16, checksums_crc: 0 };
            assert!(Directory::new(counts, geometry, vec![record]).is_err(), "{}", kind.name());
        }
    }
}
