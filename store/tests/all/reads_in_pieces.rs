//! A large index that is not loaded: it is read in pieces of 64 KiB, neighbours are read from the same piece, and a
//! section that cannot be loaded is still read in pieces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_store::Dataset;

use crate::common::{Built, DatasetModel};

/// Samples whose entries take a little more than 171 pieces.
const COUNT: u64 = 700_000;
const CHECKSUM_PAGE_LEN: u64 = 64 << 10;
/// Samples of a piece.
const STEP: u64 = CHECKSUM_PAGE_LEN / 16;

fn large() -> Built {
    DatasetModel::plain(&vec![vec![]; COUNT as usize]).write()
}

#[test]
fn neighbours_are_answered_from_the_piece_that_was_read() {
    let built = large();
    let dataset = Dataset::open(&built.path).unwrap();
    dataset.locate(0).unwrap();
    let read = dataset.index_bytes_read();
    assert!((0..STEP).rev().all(|ordinal| dataset.locate(ordinal).is_ok()));
    assert_eq!(dataset.index_bytes_read(), read);
    dataset.locate(STEP).unwrap();
    assert_eq!(dataset.index_bytes_read(), read + CHECKSUM_PAGE_LEN);
    // The pieces that were read first are still cached, and give the same answers.
    assert_eq!(dataset.locate(0).unwrap(), dataset.locate(STEP - 1).unwrap());
    assert_eq!(dataset.index_bytes_read(), read + CHECKSUM_PAGE_LEN);
}

/// DIR-6
#[test]
fn a_section_that_cannot_be_loaded_is_tried_once_and_then_read_in_pieces() {
    let built = large();
    let file = built.path.join("00000.seg");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let dataset = Dataset::open(&built.path).unwrap();
    // A sample of each piece, twice. Only the damaged piece is refused.
    let refused = (0..2 * COUNT).step_by(STEP as usize).filter(|ordinal| dataset.locate(ordinal % COUNT).is_err());
    assert_eq!(refused.count(), 2);
    let read = dataset.index_bytes_read();
    assert!(read < 3 * 16 * COUNT, "{read} bytes were read");
    assert!(dataset.load().is_err());
}

#[test]
fn load_ahead_of_a_large_index_returns_at_once_and_load_waits_for_it() {
    let built = large();
    let dataset = Dataset::open(&built.path).unwrap();
    for _ in 0..3 {
        dataset.load_ahead().unwrap();
        dataset.check_load().unwrap();
    }
    dataset.load().unwrap();
    let read = dataset.index_bytes_read();
    assert!(read < 16 * COUNT + 4 * CHECKSUM_PAGE_LEN, "{read} bytes were read: it was loaded twice");
    dataset.load_ahead().unwrap();
    assert_eq!(dataset.index_bytes_read(), read);
}

/// DIR-6
#[test]
fn load_ahead_of_a_small_index_that_is_damaged_is_refused_at_once() {
    let mut parts = DatasetModel::rich(&[20]).parts();
    parts.segments[0].index.stored_bytes += 1;
    let built = parts.write();
    let dataset = Dataset::open(&built.path).unwrap();
    dataset.check_load().unwrap();
    let reported = dataset.load_ahead().unwrap_err().to_string();
    assert!(reported.contains("raw bytes, it has"), "{reported}");
    assert_eq!(dataset.check_load().unwrap_err().to_string(), reported);
}
