//! Removing samples is stopped, and separately failed, at every operation on the disk. Each time the dataset opens whole,
//! with the samples or without them, and the next writer succeeds.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Arc;

use grainstore_store::{VerifyOptions, verify};
use grainstore_writer::{DatasetWriter, Removal, Sample, WriteError};

use crate::common::fake_disk::{FakeDisk, Image, Trouble, target};
use crate::common::{assert_holds, rich_options, rich_samples};

fn remove(disk: &FakeDisk, ordinals: &[u64], frees: bool) -> Result<(), WriteError> {
    let removal = Removal::begin_on(Arc::new(disk.clone()), &target(), 1 << 16)?;
    removal.remove(ordinals, frees, &mut |_| ControlFlow::Continue(())).map(drop)
}

/// A dataset of several segments.
fn begun() -> (FakeDisk, Vec<Sample>) {
    let disk = FakeDisk::new(None);
    let mut samples = rich_samples(24, 61);
    (0..).zip(&mut samples).for_each(|(number, sample)| sample.key = format!("sample {number}").into_bytes());
    let mut writer = DatasetWriter::create_on(Arc::new(disk.clone()), &target(), rich_options()).unwrap();
    writer.write_batch(samples.clone()).unwrap();
    writer.finish().unwrap();
    disk.settle();
    (disk, samples)
}

/// Whether the dataset, all of it whole, lacks the samples that were removed.
fn is_removed(disk: &FakeDisk, image: Image, all: &[Sample], left: &[Sample], place: &str) -> bool {
    let folder = disk.materialised(image);
    let path = folder.path().join(target());
    let report = verify(&path, &VerifyOptions::default(), &|damage| panic!("{place}: {damage}"), &|_| ())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let is_removed = report.samples as usize == left.len();
    assert_holds(&path, if is_removed { left } else { all });
    is_removed
}

/// GEN-2, GEN-3, GEN-5
#[test]
fn stopped_or_failed_at_any_operation_the_old_or_the_new_dataset_exists() {
    let ordinals = [0, 1, 9, 20, 23];
    for (frees, trouble) in
        [(false, Trouble::Stop), (false, Trouble::Fail), (true, Trouble::Stop), (true, Trouble::Fail)]
    {
        for at in 0.. {
            let (disk, all) = begun();
            let left: Vec<Sample> =
                (0..).zip(&all).filter(|(n, _)| !ordinals.contains(n)).map(|(_, sample)| sample.clone()).collect();
            let before = disk.files(&target()).unwrap();
            disk.set_trouble(Some((at, trouble)));
            let result = remove(&disk, &ordinals, frees);
            let completed = result.is_ok() && disk.operations() <= at;
            for image in Image::ALL {
                let place = format!("frees {frees}, {trouble:?} at operation {at}, {image:?}");
                let removed = is_removed(&disk, image, &all, &left, &place);
                assert!(result.is_err() || removed, "{place}: done, and a crash would undo it");
                if matches!(image, Image::Durable | Image::Mixed(1)) && !removed {
                    let again = disk.after(image);
                    remove(&again, &ordinals, true).unwrap_or_else(|error| panic!("{place}: again: {error}"));
                    assert!(is_removed(&again, Image::Durable, &all, &left, &place));
                }
            }
            let after = disk.files(&target()).unwrap();
            if trouble == Trouble::Fail && after["manifest.json"] == before["manifest.json"] {
                let new: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
                assert!(new.is_empty(), "operation {at} left {new:?}");
            }
            if completed {
                break;
            }
        }
    }
}
