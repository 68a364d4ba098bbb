//! Header and footer: what is written is read back; every flipped bit and every broken rule is refused with its reason.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use grainstore_format::{FileKind, Footer, FormatError, Header};

fn header() -> Header {
    Header { kind: FileKind::Segment }
}

fn footer() -> Footer {
    Footer::new(8192, 40960, &[7; 96]).unwrap()
}

/// Changes bytes, then updates the checksum at the end of the structure.
fn mended(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    let crc_at = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..crc_at]);
    bytes[crc_at..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// HDR-1
#[test]
fn a_header_round_trips() {
    for kind in [FileKind::Segment, FileKind::Index] {
        let header = Header { kind };
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
}

/// HDR-1
#[test]
fn every_flipped_bit_of_a_header_is_refused() {
    let bytes = header().encode();
    for at in 0..bytes.len() {
        let mut flipped = bytes;
        flipped[at] ^= 1 << (at % 8);
        assert!(Header::decode(&flipped).is_err(), "byte {at}");
    }
}

/// HDR-1, VER-1, VER-2
#[test]
fn errors_of_a_header_name_the_field() {
    let bytes = header().encode();
    let text = |at, new: &[u8]| Header::decode(&mended(&bytes, at, new)).unwrap_err().to_string();
    assert!(Header::decode(&bytes[..4095]).unwrap_err().to_string().contains("4095 bytes, expected 4096"));
    assert_eq!(text(0, b"PK"), r#"not a grainstore file: it begins with "PKRAIN\r\n""#);
    assert_eq!(text(8, &[3]), "written by a newer grainstore: format version 3 is unknown to this version (0)");
    assert_eq!(text(12, &[1]), "written by a newer grainstore: feature bit 0 is unknown to this version");
    assert_eq!(text(12, &[0x20]), "written by a newer grainstore: feature bit 5 is unknown to this version");
    assert_eq!(text(20, &[3]), "damaged header: kind is 3, expected 1 or 2");
    for at in [21, 100, 4091] {
        assert_eq!(text(at, &[1]), "damaged header: reserved bytes are not zero");
    }
}

/// VER-1, VER-3
#[test]
fn unknown_compatible_features_are_ignored_and_may_use_reserved_bytes() {
    let with_feature = mended(&header().encode(), 16, &[4]);
    assert_eq!(Header::decode(&mended(&with_feature, 100, &[1])), Ok(header()));
    let with_feature = mended(&footer().encode(), 16, &[4]);
    assert_eq!(Footer::decode(&mended(&with_feature, 52, &[1]), 45056), Ok(footer()));
}

/// A newer version may store its checksum elsewhere: it is recognised by its version even if our checksum fails.
///
/// HDR-1, FTR-1
#[test]
fn the_version_is_checked_before_the_checksum() {
    let mut head = header().encode();
    let mut foot = footer().encode();
    head[8] = 1;
    foot[8] = 1;
    assert!(matches!(Header::decode(&head), Err(FormatError::TooNew { found: 1, .. })));
    assert!(matches!(Footer::decode(&foot, 45056), Err(FormatError::TooNew { found: 1, .. })));
}

/// FTR-2
#[test]
fn a_footer_round_trips_and_holds_the_length_of_its_file() {
    assert_eq!(footer().file_len(), 45056);
    assert_eq!(Footer::decode(&footer().encode(), 45056), Ok(footer()));
}

/// FTR-1
#[test]
fn every_flipped_bit_of_a_footer_is_refused() {
    let bytes = footer().encode();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Footer::decode(&flipped, 45056).is_err(), "bit {bit}");
    }
}

/// FTR-1, FTR-2, FTR-4
#[test]
fn errors_of_a_footer_name_the_field() {
    let bytes = footer().encode();
    let error = |at, new: u64| Footer::decode(&mended(&bytes, at, &new.to_le_bytes()), 45056).unwrap_err().to_string();
    assert_eq!(
        Footer::decode(&bytes, 45057).unwrap_err().to_string(),
        "file is cut short or appended to: 45057 bytes, expected 45056"
    );
    assert!(error(0, 0).contains("does not end with a footer"));
    assert!(error(24, 40961).contains("directory_offset 40961"));
    assert!(error(24, 8192).contains("directory_offset 8192"));
    assert!(error(24, u64::MAX - 4095).contains("do not end in the file's last block"));
    assert!(error(32, 0).contains("index_offset 0"));
    assert!(error(32, 8191).contains("index_offset 8191"));
    assert!(error(40, 4096).contains("expected 4096"));
    let long = mended(&bytes, 20, &u32::MAX.to_le_bytes());
    assert!(Footer::decode(&long, 45056).unwrap_err().to_string().contains("do not end in the file's last block"));
    assert!(Footer::decode(&bytes[1..], 45056).is_err());
}
