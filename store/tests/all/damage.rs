//! Every byte flipped, every length cut: a read returns the right bytes or an error, never other bytes or a panic, and
//! verification reports every single byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::ops::Range;
use std::path::Path;

use grainstore_format::Alignment;
use grainstore_store::{Dataset, IndexMemory, OpenOptions};

use crate::common::{Built, DatasetModel, SampleContents, read, verify};

/// A small dataset of a native and an external segment.
fn small() -> Built {
    let mut model = DatasetModel::rich(&[4, 3]);
    model.geometry = DatasetModel::geometry(Alignment::multiple_of(64).unwrap());
    model.segments[1].1 = true;
    // Back to back, so that every byte of the external file belongs to a sample.
    model.segments[1].0.truncate(1);
    for (samples, _) in &mut model.segments {
        for sample in samples {
            if let Some(image) = &mut sample.fields[0] {
                image.truncate(400);
            }
        }
    }
    model.write()
}

/// The contents of each sample; `None`: an error.
fn readable(path: &Path, index_memory: IndexMemory) -> Vec<Option<SampleContents>> {
    let options = OpenOptions { index_memory, ..OpenOptions::default() };
    let Ok(dataset) = Dataset::open_with(path, &options) else { return Vec::new() };
    let all = (0..dataset.sample_count()).map(|ordinal| read(&dataset, ordinal).ok()).collect();
    // A load may fail; it must not panic.
    let _ = dataset.load();
    let _ = dataset.facts();
    all
}

#[track_caller]
fn assert_right_or_error(path: &Path, whole: &[Option<SampleContents>], place: usize, what: &str) {
    // Both are read by the same code: every seventh position is enough, and saves time.
    let mapped = place.is_multiple_of(7).then_some(IndexMemory::Mapped);
    for memory in [IndexMemory::Owned].into_iter().chain(mapped) {
        for (ordinal, seen) in readable(path, memory).into_iter().enumerate() {
            let right = seen.is_none() || seen == whole[ordinal];
            assert!(right, "{what}, {memory:?}: sample {ordinal} has other bytes: {seen:?}");
        }
    }
}

/// Every byte of a file, in groups that are flipped together: single bytes, except 64 at a time deep inside a range of
/// zeros.
fn places(bytes: &[u8]) -> Vec<Range<usize>> {
    let in_zeros = |at: usize| bytes[at.saturating_sub(48)..(at + 48).min(bytes.len())].iter().all(|&byte| byte == 0);
    let mut groups: Vec<Range<usize>> = Vec::new();
    for at in 0..bytes.len() {
        match groups.last_mut() {
            Some(group) if in_zeros(at) && in_zeros(group.start) && group.len() < 64 => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// `bytes` with one bit of each byte in `group` flipped.
fn flipped(bytes: &[u8], group: Range<usize>) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    for at in group {
        flipped[at] ^= 1 << (at % 8);
    }
    flipped
}

/// RD-1, VER-1, CON-5, FIL-1, HDR-1, FTR-1, DIR-1, DIR-6, ENT-5, MAN-1
#[test]
fn a_flipped_byte_never_changes_what_is_read_and_is_always_reported() {
    let built = small();
    let whole = readable(&built.path, IndexMemory::Owned);
    assert!(whole.iter().all(Option::is_some) && whole.len() == 5);
    for file in built.files() {
        let bytes = std::fs::read(&file).unwrap();
        for group in places(&bytes) {
            std::fs::write(&file, flipped(&bytes, group.clone())).unwrap();
            let what = format!("bytes {group:?} of {}", file.display());
            assert_right_or_error(&built.path, &whole, group.start, &what);
            let reported = verify(&built.path).map_or(1, |(report, _)| report.damaged);
            assert!(reported > 0, "{what}: verification is silent");
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(verify(&built.path).unwrap().1, vec![]);
}

/// RD-1, FIL-1, FTR-1
#[test]
fn a_flipped_byte_of_a_lone_segment_is_reported() {
    let built = small();
    let file = built.path.join("00000.seg");
    let whole = readable(&file, IndexMemory::Owned);
    let bytes = std::fs::read(&file).unwrap();
    let footer = bytes.len() - 64;
    for group in places(&bytes) {
        std::fs::write(&file, flipped(&bytes, group.clone())).unwrap();
        assert_right_or_error(&file, &whole, group.start, &format!("bytes {group:?}"));
        // A changed version cannot be told from a newer one.
        let is_version = [8..12, footer + 8..footer + 12].iter().any(|version| version.contains(&group.start));
        match verify(&file) {
            Ok((report, _)) => assert!(report.damaged > 0, "bytes {group:?}: verification is silent"),
            Err(error) => assert!(error.is_other_version() && is_version, "bytes {group:?}: {error}"),
        }
    }
}

/// RD-1, FIL-1, FTR-2, MAN-1
#[test]
fn a_file_cut_at_any_length_is_refused_and_reported() {
    let file_count = small().files().len();
    // The longest test of its program: a thread for each file.
    std::thread::scope(|scope| {
        for number in 0..file_count {
            scope.spawn(move || assert_cuts_are_reported(number));
        }
    });
}

/// Cuts one file of a dataset of its own at every length.
fn assert_cuts_are_reported(number: usize) {
    let built = small();
    let whole = readable(&built.path, IndexMemory::Owned);
    let file = &built.files()[number];
    let bytes = std::fs::read(file).unwrap();
    let handle = std::fs::File::options().write(true).open(file).unwrap();
    for len in (0..bytes.len()).rev() {
        handle.set_len(len as u64).unwrap();
        let what = format!("{} cut at {len}", file.display());
        assert_right_or_error(&built.path, &whole, len, &what);
        // Verification is slow: only lengths at the edges of blocks, near the end, and some others.
        if bytes.len() < 8192 || len % 4096 <= 1 || len % 211 == 0 || len + 80 > bytes.len() {
            let reported = verify(&built.path).map_or(1, |(report, _)| report.damaged);
            assert!(reported > 0, "{what}: verification is silent");
        }
    }
    let longer = [bytes.as_slice(), &[0; 4096]].concat();
    std::fs::write(file, longer).unwrap();
    assert!(verify(&built.path).map_or(1, |(report, _)| report.damaged) > 0, "{}: longer", file.display());
}
