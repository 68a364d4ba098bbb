//! The writer is stopped, and separately failed, at every operation on the disk, one after the other, until a run
//! completes. Each time the final name is absent, or holds a whole dataset: the old one or the new one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;

use grainstore_store::{VerifyOptions, verify};
use grainstore_writer::{DatasetWriter, DiskStorage, Sample, Storage, WriteError, WriterOptions, rebuild_index};

use crate::common::fake_disk::{FakeDisk, Image, Trouble, target};
use crate::common::{assert_holds, rich_options, rich_samples};

fn write(disk: &FakeDisk, samples: &[Sample], overwrite: bool) -> Result<(), WriteError> {
    let options = WriterOptions { overwrite, ..rich_options() };
    let mut writer = DatasetWriter::create_on(Arc::new(disk.clone()), &target(), options)?;
    writer.write_batch(samples.to_vec())?;
    writer.finish().map(|_| ())
}

/// Checks what is under the final name in a crash's image: nothing, or one of `allowed`, complete.
fn check_image(disk: &FakeDisk, image: Image, allowed: &[&[Sample]], place: &str) -> bool {
    let folder = disk.materialised(image);
    let path = folder.path().join(target());
    if !path.exists() {
        return false;
    }
    let report = verify(&path, &VerifyOptions::default(), &|damage| panic!("{place}: {damage}"), &|_| ()).unwrap();
    let expected = allowed.iter().find(|samples| samples.len() as u64 == report.samples);
    assert_holds(&path, expected.unwrap_or_else(|| panic!("{place}: {} samples", report.samples)));
    true
}

/// Runs with trouble at operation 0, 1, 2, ... until a run completes; the number of operations.
fn sweep(trouble: Trouble, old: Option<&[Sample]>, new: &[Sample]) -> usize {
    for at in 0.. {
        let disk = FakeDisk::new(None);
        if let Some(old) = old {
            write(&disk, old, false).unwrap();
            disk.settle();
        }
        disk.set_trouble(Some((at, trouble)));
        let result = write(&disk, new, old.is_some());
        let place = format!("{trouble:?} at operation {at}");
        let allowed: Vec<&[Sample]> = old.into_iter().chain([new]).collect();
        for image in Image::ALL {
            let exists = check_image(&disk, image, &allowed, &format!("{place}, {image:?}"));
            assert!(exists || old.is_none(), "{place}: the old dataset is gone");
        }
        if result.is_ok() {
            assert!(check_image(&disk, Image::Durable, &[new], &place), "{place}: done, and a crash would lose it");
        }
        if result.is_ok() && disk.operations() <= at {
            return at;
        }
        disk.set_trouble(None);
        take_over(&disk, new, &place);
    }
    unreachable!()
}

/// After the trouble, the next writer of the same name succeeds.
fn take_over(disk: &FakeDisk, samples: &[Sample], place: &str) {
    write(disk, samples, true).unwrap_or_else(|error| panic!("{place}: the next writer fails: {error}"));
    let folder = disk.materialised(Image::Durable);
    assert_holds(&folder.path().join(target()), samples);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{place}: something is left over");
}

/// WR-1, WR-2
#[test]
fn stopped_at_any_operation_the_name_is_absent_or_whole() {
    let operations = sweep(Trouble::Stop, None, &rich_samples(40, 1));
    assert!(operations > 50, "the run had only {operations} operations");
}

/// WR-1, WR-2
#[test]
fn failed_at_any_operation_the_name_is_absent_or_whole() {
    sweep(Trouble::Fail, None, &rich_samples(40, 2));
}

/// WR-1
#[test]
fn a_dataset_is_replaced_only_once_the_new_one_is_whole() {
    let (old, new) = (rich_samples(12, 3), rich_samples(30, 4));
    sweep(Trouble::Stop, Some(&old), &new);
    sweep(Trouble::Fail, Some(&old), &new);
}

/// WR-2
#[test]
fn a_writer_that_failed_refuses_samples_and_leaves_nothing() {
    let disk = FakeDisk::new(Some((12, Trouble::Fail)));
    let mut writer = DatasetWriter::create_on(Arc::new(disk.clone()), &target(), rich_options()).unwrap();
    let mut results = rich_samples(4000, 5).into_iter().map(|sample| writer.write(sample)).skip_while(Result::is_ok);
    assert!(matches!(results.next(), Some(Err(WriteError::Io { .. }))));
    assert!(results.all(|result| matches!(result, Err(WriteError::Failed))), "no sample is taken after that");
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
    let folder = disk.materialised(Image::Live);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    assert!(!Path::new(&target()).exists());
}

/// The index of a dataset, without which it does not open, comes back or is still lost: the samples are never touched.
///
/// WR-1, WR-2
#[test]
fn stopped_or_failed_at_any_operation_rebuilding_can_be_done_again() {
    let samples = rich_samples(40, 6);
    for trouble in [Trouble::Stop, Trouble::Fail] {
        for at in 0.. {
            let disk = FakeDisk::new(None);
            write(&disk, &samples, false).unwrap();
            let storage: Arc<dyn Storage> = Arc::new(disk.clone());
            let names = storage.list(&target()).unwrap();
            let index = names.iter().find(|name| name.to_string_lossy().ends_with(".idx")).unwrap();
            storage.remove_file(&target().join(index)).unwrap();
            disk.settle();
            disk.set_trouble(Some((at, trouble)));
            let result = rebuild_index(&storage, &target(), 1 << 16);
            let completed = result.is_ok() && disk.operations() <= at;
            for image in Image::ALL {
                let folder = disk.materialised(image);
                let path = folder.path().join(target());
                let real: Arc<dyn Storage> = Arc::new(DiskStorage);
                rebuild_index(&real, &path, 1 << 16)
                    .unwrap_or_else(|error| panic!("{trouble:?} at {at}, {image:?}: {error}"));
                assert_holds(&path, &samples);
            }
            if result.is_ok() {
                check_image(&disk, Image::Durable, &[&samples], &format!("{trouble:?} at {at}"));
            }
            if trouble == Trouble::Fail && result.is_err() {
                let left = storage.list(&target()).unwrap();
                assert!(at < 3 || left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{at}: {left:?}");
            }
            if completed {
                break;
            }
        }
    }
}
