//! Data files of external segments: outside the dataset's parent directory they are read only if the caller allows it,
//! for every kind of path and link, and are not opened otherwise. A file that was only touched is read, with a notice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grainstore_store::{Collection, Dataset, OpenOptions, StoreError, VerifyOptions, VerifyReport};
use tempfile::TempDir;

use crate::common::{self, Built, DatasetModel, use_all, verify};

const ALLOWED: OpenOptions =
    OpenOptions { generation: None, index_memory: grainstore_store::IndexMemory::Owned, allow_external: true };

/// A dataset whose last segment is external, and the file that it names.
fn external() -> (Built, PathBuf) {
    let mut model = DatasetModel::rich(&[4, 6]);
    model.segments[1].1 = true;
    let built = model.write();
    let data = built.root.path().join("00001.tar");
    (built, data)
}

/// The same dataset with its data in another directory. `name_of` makes the path in the manifest.
fn moved(name_of: impl FnOnce(&Built, &Path) -> String) -> (Built, TempDir, PathBuf) {
    let (built, data) = external();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved.tar");
    std::fs::rename(&data, &moved).unwrap();
    let name = name_of(&built, &moved);
    built.change_manifest(|text| text.replacen("../00001.tar", &name, 1));
    (built, elsewhere, moved)
}

fn absolute(_: &Built, moved: &Path) -> String {
    moved.to_str().unwrap().to_owned()
}

/// A relative path that goes up to the root and down again.
fn climbing(built: &Built, moved: &Path) -> String {
    let depth = built.path.canonicalize().unwrap().components().count() - 1;
    "../".repeat(depth) + moved.canonicalize().unwrap().to_str().unwrap().trim_start_matches('/')
}

fn verify_allowed(path: &Path) -> VerifyReport {
    let options = VerifyOptions { threads: Some(2), allow_external: true, ..VerifyOptions::default() };
    grainstore_store::verify(path, &options, &|damage| panic!("{damage}"), &|_| ()).unwrap()
}

#[track_caller]
fn assert_outside(result: Result<impl Sized, StoreError>, target: &Path) {
    let error = result.map(|_| ()).unwrap_err();
    let StoreError::Outside { target: found, .. } = &error else { panic!("{error}") };
    assert_eq!(found.canonicalize().unwrap(), target.canonicalize().unwrap());
    assert!(error.to_string().ends_with("outside the dataset's parent directory"), "{error}");
    assert!(error.to_string().contains(found.to_str().unwrap()), "{error}");
}

fn set_modified(path: &Path, time: SystemTime) {
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// EXT-4
#[test]
fn a_path_that_leads_outside_is_refused_by_name_when_the_dataset_is_opened() {
    for name_of in [absolute, climbing] {
        let (built, _elsewhere, data) = moved(name_of);
        assert_outside(Dataset::open(&built.path), &data);
        assert_outside(verify(&built.path), &data);
        let dataset = Dataset::open_with(&built.path, &ALLOWED).unwrap();
        (0..10).for_each(|ordinal| drop(common::read(&dataset, ordinal).unwrap()));
        assert_eq!((verify_allowed(&built.path).samples, dataset.notices()), (10, vec![]));
    }
}

/// EXT-4
#[test]
fn a_link_that_leads_outside_is_refused_by_name_when_the_file_is_needed() {
    let (built, data) = external();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved.tar");
    std::fs::rename(&data, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &data).unwrap();
    let dataset = Dataset::open(&built.path).unwrap();
    assert_outside(dataset.segment_file(1), &moved);
    assert_outside(verify(&built.path), &moved);
    Dataset::open_with(&built.path, &ALLOWED).unwrap().segment_file(1).unwrap();
    assert_eq!(verify_allowed(&built.path).samples, 10);
    // A link that stays inside is followed.
    std::fs::remove_file(&data).unwrap();
    std::fs::copy(&moved, built.root.path().join("beside.tar")).unwrap();
    std::os::unix::fs::symlink("beside.tar", &data).unwrap();
    assert_eq!(use_all(&built.path).unwrap().len(), 10);
}

/// EXT-5
#[test]
fn an_allowed_file_must_still_be_regular_with_its_length_and_fingerprint() {
    let allowed_error = |built: &Built| {
        let dataset = Dataset::open_with(&built.path, &ALLOWED).unwrap();
        dataset.segment_file(1).unwrap_err().to_string()
    };
    let (built, _elsewhere, _) = moved(|_, _| "/dev/zero".to_owned());
    assert!(allowed_error(&built).contains("it is not a regular file"));
    let (built, _elsewhere, data) = moved(absolute);
    std::fs::write(&data, b"short").unwrap();
    assert!(allowed_error(&built).contains("it has 5 bytes, the manifest has"));
}

/// EXT-4: a generation without the segment needs no permission.
#[test]
fn a_generation_before_the_outside_segment_is_opened() {
    let mut model = DatasetModel::rich(&[4, 6]);
    model.segments[1].1 = true;
    model.earlier = vec![1];
    let built = model.write();
    built.change_manifest(|text| text.replacen("../00001.tar", "/somewhere/else.tar", 1));
    assert!(matches!(Dataset::open(&built.path), Err(StoreError::Outside { .. })));
    let oldest = OpenOptions { generation: Some(0), ..OpenOptions::default() };
    assert_eq!(Dataset::open_with(&built.path, &oldest).unwrap().sample_count(), 4);
}

/// EXT-4, PLN-8
#[test]
fn members_of_a_collection_are_opened_again_with_the_same_permission() {
    let (built, _elsewhere, data) = moved(absolute);
    let paths = [&built.path, &built.path];
    assert_outside(Collection::open(&paths, &OpenOptions::default()), &data);
    let both = Collection::open(&paths, &ALLOWED).unwrap();
    assert_eq!(both.sample_count(), 20);
    both.segment_file(3).unwrap();
}

/// EXT-3
#[test]
fn a_file_that_was_touched_is_read_and_noted_once() {
    let (built, data) = external();
    assert_eq!(verify(&built.path).unwrap().0.notices, [""; 0]);
    set_modified(&data, SystemTime::UNIX_EPOCH - Duration::from_secs(5));
    let dataset = Dataset::open(&built.path).unwrap();
    (0..4).for_each(|ordinal| drop(common::read(&dataset, ordinal).unwrap()));
    assert_eq!(dataset.notices(), [""; 0], "not looked at yet");
    (0..10).for_each(|ordinal| drop(common::read(&dataset, ordinal).unwrap()));
    let sentence = ": modified since the dataset was made, though its length and fingerprint are the same; \
                    the samples' checksums decide";
    assert_eq!(dataset.notices(), [format!("{}{sentence}", built.path.join("../00001.tar").display())]);
    assert_eq!(Collection::from(dataset.clone()).notices(), dataset.notices());
    let (report, damage) = verify(&built.path).unwrap();
    assert_eq!((report.notices, damage.len()), (vec![format!("../00001.tar{sentence}")], 0));
}

/// EXT-3
#[test]
fn verification_notes_all_touched_files_in_one_line() {
    let mut model = DatasetModel::rich(&[3, 3, 3]);
    model.segments.iter_mut().for_each(|segment| segment.1 = true);
    let built = model.write();
    for number in 0..3 {
        set_modified(&built.root.path().join(format!("0000{number}.tar")), SystemTime::UNIX_EPOCH);
    }
    let (report, _) = verify(&built.path).unwrap();
    assert!(matches!(&report.notices[..], [one] if one.starts_with("../00000.tar (and 2 more): modified since")));
}

/// FIL-4
#[test]
fn links_to_the_files_of_a_dataset_are_followed_and_only_to_regular_files() {
    let built = DatasetModel::rich(&[4, 6]).write();
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["manifest.json", "00000.seg", "00001.seg", "index.idx"] {
        let moved = elsewhere.path().join(name);
        std::fs::rename(built.path.join(name), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, built.path.join(name)).unwrap();
    }
    assert_eq!(use_all(&built.path).unwrap().len(), 10);
    assert_eq!(verify(&built.path).unwrap().0.samples, 10);
    for name in ["manifest.json", "00001.seg", "index.idx"] {
        let before = std::fs::read_link(built.path.join(name)).unwrap();
        std::fs::remove_file(built.path.join(name)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", built.path.join(name)).unwrap();
        let error = use_all(&built.path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{name}: {error}");
        std::fs::remove_file(built.path.join(name)).unwrap();
        std::os::unix::fs::symlink(before, built.path.join(name)).unwrap();
    }
}

/// LIM-1
#[test]
fn a_manifest_past_the_limit_is_refused_before_it_is_read() {
    let built = DatasetModel::rich(&[4, 6]).write();
    let file = std::fs::File::options().write(true).open(built.path.join("manifest.json")).unwrap();
    file.set_len((512 << 20) + 1).unwrap();
    let error = Dataset::open(&built.path).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("length of the manifest is 536870913, the limit is 536870912"), "{error}");
}
