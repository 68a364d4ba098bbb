//! The directory: every section has exactly the offset that the rules require, and the length that the counts require.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use grainstore_format::{
    Alignment, ChunkSize, Directory, DirectoryCounts, Footer, FormatError, Geometry, KeyGeometry, SectionKind,
    SectionRecord,
};
use proptest::prelude::*;

const INDEX_OFFSET: u64 = 8192;

fn counts(sample_count: u64) -> DirectoryCounts {
    DirectoryCounts { sample_count, segment_count: 1, stored_bytes: 10, payload_bytes: 10, edge_count: 0 }
}

fn geometry() -> Geometry {
    Geometry { chunk_size: ChunkSize::DEFAULT, alignment: Alignment::PACKED, hash_seed: 1 }
}

/// Places sections one after the other.
fn placed(sections: &[(SectionKind, u16, u32, u64)]) -> Vec<SectionRecord> {
    let mut offset = INDEX_OFFSET;
    sections
        .iter()
        .map(|&(kind, item, width, len)| {
            let record = SectionRecord { kind, item, width, offset, len, checksums_crc: 7 };
            offset = record.next_offset();
            record
        })
        .collect()
}

fn keyless(n: u64) -> Vec<(SectionKind, u16, u32, u64)> {
    use SectionKind::{Chunks, Edges, Entries, Metadata, Segments};
    vec![(Segments, 0, 16, 16), (Entries, 0, 16, 16 * n), (Chunks, 0, 1, 9), (Edges, 0, 0, 2), (Metadata, 0, 0, 50)]
}

fn decode(directory: &Directory) -> Result<Directory, FormatError> {
    let bytes = directory.encode();
    let end = directory.sections().last().unwrap().next_offset();
    Directory::decode(&bytes, &Footer::new(INDEX_OFFSET, end, &bytes).unwrap())
}

fn try_new(n: u64, sections: &[(SectionKind, u16, u32, u64)]) -> Result<Directory, FormatError> {
    Directory::new(counts(n), geometry(), placed(sections))
}

/// DIR-1, DIR-2, DIR-4
#[test]
fn a_directory_round_trips() {
    let mut sections = keyless(3);
    sections.push((SectionKind::Attribute, 0, 8, 24));
    sections.push((SectionKind::Attribute, 1, 2, 6));
    sections.push((SectionKind::Validity, 1, 0, 1));
    let directory = try_new(3, &sections).unwrap();
    assert_eq!(decode(&directory).unwrap(), directory);
    assert_eq!(directory.section(SectionKind::Attribute, 1).unwrap().width, 2);
    assert_eq!(directory.section(SectionKind::Attribute, 2), None);
    assert!(!directory.is_keyed());
}

/// DIR-3
#[test]
fn a_missing_required_section_or_key_section_is_refused() {
    for missing in 0..5 {
        let mut sections = keyless(3);
        sections.remove(missing);
        assert!(try_new(3, &sections).unwrap_err().to_string().contains("is missing"), "section {missing}");
    }
    let keys = [
        (SectionKind::Keys, 0, 0, 20),
        (SectionKind::KeyGroups, 0, 8, 16),
        (SectionKind::Buckets, 0, 4, 8),
        (SectionKind::Slots, 0, 7, 21),
    ];
    let with = |keys: &[_]| {
        let mut sections = keyless(3);
        sections.splice(4..4, keys.iter().copied());
        try_new(3, &sections)
    };
    assert!(with(&keys).unwrap().is_keyed());
    for missing in 0..4 {
        let some: Vec<_> =
            keys.iter().copied().enumerate().filter(|(i, _)| *i != missing).map(|(_, key)| key).collect();
        assert!(with(&some).unwrap_err().to_string().contains("sections of keys are missing"));
    }
}

/// DIR-5
#[test]
fn lengths_that_disagree_with_the_counts_are_refused() {
    use SectionKind as Kind;
    let n = 100;
    let valid = [
        (Kind::Long, 0, 16, 32),
        (Kind::RawLen, 0, 4, 400),
        (Kind::Attribute, 0, 4, 400),
        (Kind::Validity, 0, 0, 13),
        (Kind::FieldOffset, 0, 8, 800),
        (Kind::FieldLen, 0, 4, 400),
        (Kind::FieldValidity, 0, 0, 13),
    ];
    let with = |extra: (SectionKind, u16, u32, u64)| {
        let mut sections = keyless(n);
        sections.push(extra);
        sections.sort_by_key(|section| (section.0, section.1));
        try_new(n, &sections)
    };
    for (kind, item, width, len) in valid {
        assert!(with((kind, item, width, len)).is_ok(), "{kind:?}");
        assert!(with((kind, item, width, len + 1)).is_err(), "{kind:?} one byte longer");
        assert!(with((kind, item, width, 0)).is_err(), "{kind:?} empty");
        assert!(with((kind, item, 3, len)).is_err(), "{kind:?} of width 3");
        assert!(with((kind, item, width, 1 << 60)).is_err(), "{kind:?} endless");
    }
    assert!(with((Kind::RawLen, 1, 4, 400)).is_err(), "an item number where only 0 is valid");
    for (section, len) in [(0, 32), (1, 16 * n - 16), (2, 17), (3, 3)] {
        let mut sections = keyless(n);
        sections[section].3 = len;
        assert!(try_new(n, &sections).is_err(), "section {section} of {len} bytes");
    }
    assert_eq!((KeyGeometry::bucket_width((1 << 32) - 1), KeyGeometry::bucket_width(1 << 32)), (4, 8));
}

/// DIR-2, DIR-4
#[test]
fn order_and_placement_are_exact() {
    let mut swapped = keyless(3);
    swapped.swap(2, 3);
    assert!(try_new(3, &swapped).unwrap_err().to_string().contains("comes after"));
    let mut twice = keyless(3);
    twice.insert(1, twice[0]);
    assert!(try_new(3, &twice).is_err());
    for shift in [4096, u64::MAX - 20000] {
        let mut records = placed(&keyless(3));
        records[2].offset = records[2].offset.wrapping_add(shift);
        assert!(Directory::new(counts(3), geometry(), records).is_err(), "shifted by {shift}");
    }
    let directory = try_new(3, &keyless(3)).unwrap();
    let bytes = directory.encode();
    let end = directory.sections().last().unwrap().next_offset();
    for (start, end) in [(INDEX_OFFSET - 4096, end), (INDEX_OFFSET, end + 4096)] {
        let footer = Footer::new(start, end, &bytes).unwrap();
        assert!(Directory::decode(&bytes, &footer).unwrap_err().to_string().contains("are not"));
    }
}

/// The bytes of a directory with records of other kinds added, and its footer.
fn with_records(records: &[(u16, u16, u64, u64)]) -> (Vec<u8>, Footer) {
    let directory = try_new(3, &keyless(3)).unwrap();
    let mut bytes = directory.encode();
    let mut end = directory.sections().last().unwrap().next_offset();
    for &(kind, item, len, shift) in records {
        let words = [u64::from(kind) | u64::from(item) << 16 | 77 << 32, end + shift, len, u64::MAX];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let len = len.min(1 << 30);
        end += (len.next_multiple_of(4) + 4 * len.div_ceil(65536)).next_multiple_of(4096);
    }
    let count = (bytes.len() - 64) as u32 / 32;
    bytes[28..32].copy_from_slice(&count.to_le_bytes());
    let footer = Footer::new(INDEX_OFFSET, end, &bytes).unwrap();
    (bytes, footer)
}

/// DIR-2, DIR-4, DIR-7: width, item and reserved bytes of an ancillary section may be anything.
#[test]
fn ancillary_sections_are_ignored_where_they_are_placed_as_the_others() {
    let (bytes, footer) = with_records(&[(32768, 5, 100_000, 0), (40_000, 7, 1, 0), (40_000, 9, 65_536, 0)]);
    let directory = Directory::decode(&bytes, &footer).unwrap();
    assert_eq!(directory.sections(), try_new(3, &keyless(3)).unwrap().sections());
    assert_eq!(directory.encode(), bytes);
    assert_eq!(
        Directory::new(*directory.counts(), geometry(), directory.sections().to_vec()).unwrap().sections().len(),
        5
    );
    for wrong in [
        [(40_000, 0, 1, 0), (32_768, 0, 1, 0)],
        [(40_000, 1, 1, 0), (40_000, 1, 1, 0)],
        [(40_000, 0, 1, 4096), (40_001, 0, 1, 0)],
        [(40_000, 0, 1, 0), (40_001, 0, 1, u64::MAX - 100_000)],
        [(40_000, 0, 0, 0), (40_001, 0, 1, 0)],
        [(40_000, 0, u64::MAX, 0), (40_001, 0, 1, 0)],
    ] {
        let (bytes, footer) = with_records(&wrong);
        assert!(matches!(Directory::decode(&bytes, &footer), Err(FormatError::Damaged { .. })), "{wrong:?}");
    }
}

/// DIR-2
#[test]
fn as_many_ancillary_sections_as_the_limit_allows_are_ignored() {
    let many = |count: u16| (0..count).map(|item| (65_535, item, 1, 0)).collect::<Vec<_>>();
    let (bytes, footer) = with_records(&many(8192 - 5));
    assert!(Directory::decode(&bytes, &footer).is_ok());
    let (bytes, footer) = with_records(&many(8192 - 4));
    assert!(Directory::decode(&bytes, &footer).is_err());
}

/// DIR-2, VER-1
#[test]
fn a_section_that_must_not_be_ignored_is_of_a_newer_version() {
    for kind in [0, 100, 32_767] {
        let (bytes, footer) = with_records(&[(kind, 0, 16, 0)]);
        let error = Directory::decode(&bytes, &footer).unwrap_err();
        assert_eq!(error, FormatError::UnknownSection { kind });
        assert!(error.remedy().is_some() && error.is_other_version());
        let expected = format!("written by a newer grainstore: section kind {kind} is unknown to this version");
        assert_eq!(error.to_string(), expected);
    }
}

/// DIR-1
#[test]
fn counts_out_of_range_are_refused() {
    let records = || placed(&keyless(3));
    let new = |counts| Directory::new(counts, geometry(), records());
    assert!(new(DirectoryCounts { segment_count: 0, ..counts(3) }).is_err());
    assert!(new(DirectoryCounts { segment_count: (1 << 20) + 1, ..counts(3) }).is_err());
    assert!(new(counts(0)).is_err());
    assert!(new(counts((1 << 40) + 1)).is_err());
    assert!(new(counts(u64::MAX)).is_err());
}

/// DIR-1, DIR-2
#[test]
fn every_changed_byte_is_refused_and_none_panics_with_a_right_checksum() {
    let directory = try_new(3, &keyless(3)).unwrap();
    let bytes = directory.encode();
    let end = directory.sections().last().unwrap().next_offset();
    let footer = Footer::new(INDEX_OFFSET, end, &bytes).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x80;
        assert!(Directory::decode(&changed, &footer).is_err(), "byte {at}");
        // With a right checksum it is refused, or is a valid directory with other contents: it never panics.
        let mended = Footer::new(INDEX_OFFSET, end, &changed).unwrap();
        if let Ok(other) = Directory::decode(&changed, &mended) {
            assert_ne!(other, directory, "byte {at}");
            assert_eq!(other.encode(), changed, "byte {at}");
        }
    }
}

proptest! {
    /// Bytes that are accepted are the bytes that `encode` would write.
    #[test]
    fn no_bytes_make_decode_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), end in 0_u64..1 << 62) {
        if let Ok(footer) = Footer::new(INDEX_OFFSET, end / 4096 * 4096, &bytes)
            && let Ok(directory) = Directory::decode(&bytes, &footer)
        {
            prop_assert_eq!(directory.encode(), bytes);
        }
    }
}
