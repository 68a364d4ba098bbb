//! Two writers of one name, and what an enemy leaves in a writer's way: nothing foreign is followed, replaced or removed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use common::{assert_holds, files, rich_options, rich_samples};
use grainstore_writer::{DatasetWriter, DiskStorage, Sample, Storage, WriteError, WriterOptions, rebuild_index};

fn overwrite() -> WriterOptions {
    WriterOptions { overwrite: true, ..rich_options() }
}

fn write(target: &Path, samples: &[Sample]) {
    let mut writer = DatasetWriter::create(target, overwrite()).unwrap();
    writer.write_batch(samples.to_vec()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_locked_old_dataset_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (target, old) = (folder.path().join("set"), rich_samples(5, 1));
    write(&target, &old);
    let held = DiskStorage.lock_dir(&target).unwrap();
    let mut writer = DatasetWriter::create(&target, overwrite()).unwrap();
    writer.write_batch(rich_samples(9, 2)).unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Locked { .. })));
    assert_holds(&target, &old);
    drop(held);
    write(&target, &rich_samples(9, 2));
    assert_holds(&target, &rich_samples(9, 2));
}

#[test]
fn a_lock_is_of_the_directory_that_has_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    std::fs::create_dir(&path).unwrap();
    let first = DiskStorage.lock_dir(&path).unwrap();
    assert!(DiskStorage.lock_dir(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    drop(first);
    assert!(DiskStorage.lock_dir(&path).is_ok());
    symlink(&path, folder.path().join("link")).unwrap();
    assert!(DiskStorage.lock_dir(&folder.path().join("link")).is_err(), "a link is not followed");
}

#[test]
fn many_writers_of_one_name_leave_one_whole_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let sets: Vec<_> = (0..4).map(|seed| rich_samples(10 + seed, seed)).collect();
    std::thread::scope(|scope| {
        for samples in &sets {
            let target = &target;
            scope.spawn(move || {
                for _ in 0..15 {
                    let Ok(mut writer) = DatasetWriter::create(target, overwrite()) else { continue };
                    if writer.write_batch(samples.clone()).is_ok() {
                        let _ = writer.finish();
                    }
                }
            });
        }
    });
    let count = grainstore_store::Dataset::open(&target).unwrap().sample_count() as usize;
    assert_holds(&target, &sets[count - 10]);
}

#[test]
fn links_in_the_way_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, victim) = (folder.path().join("set"), folder.path().join("victim"));
    write(&victim, &rich_samples(5, 1));
    let before = files(&victim);
    symlink(&victim, folder.path().join("set.partial")).unwrap();
    let refused = DatasetWriter::create(&target, overwrite()).err().unwrap();
    assert!(matches!(refused, WriteError::NotReplaceable { .. }), "{refused}");
    assert_eq!(files(&victim), before);

    write(&folder.path().join("many"), &rich_samples(200, 2));
    let index = files(&folder.path().join("many")).into_keys().find(|name| name.ends_with(".idx")).unwrap();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    for name in [format!("{index}.tmp"), "merged.spill.tmp".to_owned(), "manifest.json.tmp".to_owned()] {
        symlink(&precious, folder.path().join("many").join(name)).unwrap();
    }
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    rebuild_index(&storage, &folder.path().join("many"), 1 << 12).unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    assert_holds(&folder.path().join("many"), &rich_samples(200, 2));
}

#[test]
fn no_dataset_has_the_name_of_one_in_the_making() {
    let folder = tempfile::tempdir().unwrap();
    let refused = DatasetWriter::create(folder.path().join("set.partial"), overwrite()).err().unwrap();
    assert!(refused.to_string().contains("datasets under construction"), "{refused}");
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    write(&set, &rich_samples(200, 2));
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    for name in ["00001.seg", "manifest.json"] {
        std::fs::remove_file(set.join(name)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(set.join(name)).status().unwrap().success());
        let refused = rebuild_index(&storage, &set, 1 << 12).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("not a regular file"), "{refused}");
    }
    let pipe = folder.path().join("other.partial");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert!(DatasetWriter::create(folder.path().join("other"), overwrite()).is_err());
}

#[test]
fn a_slash_or_a_dot_at_the_end_of_the_name_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for end in ["one/", "two/.", "three/./"] {
        write(&folder.path().join(end), &rich_samples(3, 1));
    }
    let names = files_and_folders(folder.path());
    assert_eq!(names, ["one", "three", "two"]);
}

fn files_and_folders(path: &Path) -> Vec<String> {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
