//! One damaged piece hides no other: verification reports all, and reads samples through the undamaged index.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use grainstore_store::{StoreError, VerifyOptions};

use crate::common::{DatasetModel, assert_reported, verify};

fn flip(path: &Path, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

fn lines(path: &Path) -> Vec<String> {
    verify(path).unwrap().1.iter().map(ToString::to_string).collect()
}

/// ENT-5, DIR-6
#[test]
fn a_damaged_sample_is_reported_through_the_merged_index_where_its_own_is_lost() {
    let built = DatasetModel::rich(&[6, 9]).write();
    let segment = built.path.join("00001.seg");
    flip(&segment, std::fs::metadata(&segment).unwrap().len() - 10);
    flip(&segment, 4096);
    let lines = lines(&built.path);
    assert!(lines.iter().any(|line| line.starts_with("00001.seg: damaged footer")), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("00001.seg: sample 7 (key \"key/7\"): at 4096: CRC-32")),
        "{lines:#?}"
    );
    assert_eq!(lines.len(), 2, "{lines:#?}");
}

#[test]
fn samples_are_checked_through_their_own_index_where_the_merged_one_is_lost() {
    let built = DatasetModel::rich(&[6, 9]).write();
    std::fs::remove_file(built.path.join("index.idx")).unwrap();
    flip(&built.path.join("00000.seg"), 4097);
    flip(&built.path.join("00001.seg"), 4097);
    let lines = lines(&built.path);
    assert!(lines.contains(&"index.idx: no such file or directory".to_owned()), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("00000.seg: sample 0 (key \"key/0\"): at 4096")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("00001.seg: sample 7 (key \"key/7\"): at 4096")), "{lines:#?}");
    assert_eq!(lines.len(), 3, "{lines:#?}");
}

#[test]
fn native_segments_are_checked_where_the_manifest_is_lost() {
    let built = DatasetModel::rich(&[6, 9]).write();
    flip(&built.path.join("manifest.json"), 30);
    flip(&built.path.join("00001.seg"), 4097);
    let (report, damage) = verify(&built.path).unwrap();
    assert_eq!((report.samples, report.segments), (15, 2));
    let lines: Vec<String> = damage.iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.starts_with("manifest.json: ")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("00001.seg: sample 1 ")), "{lines:#?}");
}

/// Checks that each damaged sample has a line, and undamaged samples have none.
#[test]
fn every_damaged_sample_is_reported_and_no_other() {
    let mut parts = DatasetModel::rich(&[500]).parts();
    for place in (0..500).step_by(7) {
        parts.segments[0].index.change_entry(place, |entry| entry.crc ^= 1);
    }
    let built = parts.write();
    let (_, damage) = verify(&built.path).unwrap();
    let mut ordinals: Vec<u64> = damage.iter().filter_map(|damage| damage.ordinal).collect();
    ordinals.sort_unstable();
    assert_eq!(ordinals, (0..500).step_by(7).collect::<Vec<u64>>());
}

/// KEY-3: another hash seed makes every slot wrong; the report says so with a limited number of lines.
#[test]
fn slots_under_another_seed_are_reported() {
    let mut parts = DatasetModel::rich(&[300]).parts();
    parts.segments[0].index.geometry.hash_seed = 8;
    assert_reported(&parts.write().path, "its slot has another hash than its key");
}

#[test]
fn one_thread_and_many_report_the_same_damage() {
    let built = DatasetModel::rich(&[6, 9, 200]).write();
    flip(&built.path.join("00002.seg"), 5000);
    let count = |threads| {
        let options = VerifyOptions { threads, ..VerifyOptions::default() };
        grainstore_store::verify(&built.path, &options, &|_| (), &|_| ()).unwrap()
    };
    assert_eq!(count(Some(1)), count(None));
    assert_eq!(count(Some(1)).damaged, 1);
}

/// A stopped check is an error, and little more is read.
#[test]
fn a_stopped_check_ends_at_once_without_a_report() {
    let built = DatasetModel::rich(&[6, 9, 2000]).write();
    flip(&built.path.join("00002.seg"), 5000);
    let stop = Arc::new(AtomicBool::new(false));
    let options = VerifyOptions { threads: Some(1), stop: Some(Arc::clone(&stop)), ..VerifyOptions::default() };
    let reported = AtomicU64::new(0);
    let on_progress = |_| {
        reported.fetch_add(1, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    };
    let damage = |damage| panic!("{damage}");
    let error = grainstore_store::verify(&built.path, &options, &damage, &on_progress).unwrap_err();
    assert!(matches!(&error, StoreError::Stopped { path } if *path == built.path), "{error}");
    // The first file's structure was checked, not its samples.
    assert!(reported.load(Ordering::Relaxed) < 4);
}
