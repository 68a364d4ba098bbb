//! Files that are too large for memory, and too many files to be open at once.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use common::{BY_PATH, FolderCase, payload, small};
use grainstore_converters::ConvertOptions;
use grainstore_store::Dataset;

const MIB: u64 = 1 << 20;

/// The most memory that this process has used, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

// One test, because the peak is the process's: tests beside it would be counted.
#[test]
fn many_tiny_files_and_several_huge_ones_are_packed_in_bounded_memory() {
    let place = FolderCase::with(&[]);
    for number in 0..50_000_u32 {
        let folder = place.source().join(format!("{:02}", number % 50));
        if number < 50 {
            fs::create_dir(&folder).unwrap();
        }
        fs::write(folder.join(format!("{number}")), number.to_string()).unwrap();
    }
    let before = peak_memory();
    let roomy = ConvertOptions { segment_size: 1 << 30, ..small() };
    place.pack_with("many.grain", &BY_PATH, &roomy).unwrap();
    let grown = peak_memory() - before;
    assert!(grown < 64 * MIB, "{grown} bytes for 50000 tiny files");
    let dataset = Dataset::open(place.path("many.grain")).unwrap();
    assert_eq!(dataset.sample_count(), 50_000);
    assert_eq!(payload(&dataset, dataset.find(b"07/49957").unwrap().unwrap()), b"49957");

    for number in 0..6_u8 {
        let file = File::create(place.source().join(format!("00/huge{number}"))).unwrap();
        file.set_len(70 * MIB + u64::from(number)).unwrap();
        file.write_all_at(&[number + 1; 5], 69 * MIB).unwrap();
    }
    let before = peak_memory();
    place.pack_with("huge.grain", &BY_PATH, &roomy).unwrap();
    let grown = peak_memory() - before;
    assert!(grown < 64 * MIB, "{grown} bytes for files of 70 MiB");
    let dataset = Dataset::open(place.path("huge.grain")).unwrap();
    assert_eq!(dataset.sample_count(), 50_006);
    for number in 0..6_u8 {
        let ordinal = dataset.find(format!("00/huge{number}").as_bytes()).unwrap().unwrap();
        let mut expected = vec![0; 70 << 20 | usize::from(number)];
        expected[69 << 20..][..5].fill(number + 1);
        assert!(payload(&dataset, ordinal) == expected, "huge{number}");
    }
}
