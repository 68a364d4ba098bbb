//! Adding to a dataset is stopped, and separately failed, at every operation on the disk. Each time the dataset opens
//! whole, with its old generations or with the new one too, and the next writer that adds succeeds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use grainstore_store::{VerifyOptions, verify};
use grainstore_writer::{AppendOptions, Compression, DatasetWriter, Sample, WriteError};

use crate::common::fake_disk::{FakeDisk, Image, Trouble, target};
use crate::common::{assert_holds, rich_options, rich_samples};

fn append(disk: &FakeDisk, samples: &[Sample]) -> Result<(), WriteError> {
    let options = AppendOptions {
        segment_size: 40_000,
        compression: Compression::Lz4,
        memory_len: 1 << 16,
        ..AppendOptions::default()
    };
    let mut writer = DatasetWriter::append_on(Arc::new(disk.clone()), &target(), options)?;
    writer.write_batch(samples.to_vec())?;
    writer.finish().map(|_| ())
}

/// A dataset of two generations, the index of the first among its files, and all its samples.
fn begun() -> (FakeDisk, Vec<Sample>) {
    let (disk, samples) = (FakeDisk::new(None), keyed(0, 30, 51));
    let mut writer = DatasetWriter::create_on(Arc::new(disk.clone()), &target(), rich_options()).unwrap();
    writer.write_batch(samples[..24].to_vec()).unwrap();
    writer.finish().unwrap();
    append(&disk, &samples[24..]).unwrap();
    disk.settle();
    (disk, samples)
}

fn keyed(from: u64, count: u64, seed: u64) -> Vec<Sample> {
    let mut samples = rich_samples(count, seed);
    (from..).zip(&mut samples).for_each(|(ordinal, sample)| sample.key = format!("sample {ordinal}").into_bytes());
    samples
}

/// How many samples the dataset has, all of it whole.
fn check(disk: &FakeDisk, image: Image, all: &[Sample], place: &str) -> usize {
    let folder = disk.materialised(image);
    let path = folder.path().join(target());
    let report = verify(&path, &VerifyOptions::default(), &|damage| panic!("{place}: {damage}"), &|_| ())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let count = report.samples as usize;
    assert_holds(&path, &all[..count]);
    count
}

/// GEN-2, GEN-3
#[test]
fn stopped_or_failed_at_any_operation_the_old_or_the_new_dataset_exists() {
    for trouble in [Trouble::Stop, Trouble::Fail] {
        for at in 0.. {
            let (disk, mut all) = begun();
            let old = all.len();
            all.extend(keyed(old as u64, 18, 52));
            let before = disk.files(&target()).unwrap();
            disk.set_trouble(Some((at, trouble)));
            let result = append(&disk, &all[old..]);
            let completed = result.is_ok() && disk.operations() <= at;
            for image in Image::ALL {
                let place = format!("{trouble:?} at operation {at}, {image:?}");
                let count = check(&disk, image, &all, &place);
                assert!(count == old || count == all.len(), "{place}: {count} samples");
                assert!(result.is_err() || count == all.len(), "{place}: done, and a crash would lose it");
                if matches!(image, Image::Durable | Image::Mixed(1)) {
                    go_on(&disk.after(image), count, &all, &place);
                }
            }
            let after = disk.files(&target()).unwrap();
            if trouble == Trouble::Fail && after["manifest.json"] == before["manifest.json"] {
                let left: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
                assert!(left.is_empty(), "operation {at} left {left:?}");
            }
            if completed {
                break;
            }
        }
    }
}

/// The next writer adds what is missing, and one sample more; stopped early, while it removes old files, it harms nothing.
fn go_on(disk: &FakeDisk, count: usize, all: &[Sample], place: &str) {
    let mut more = all.to_vec();
    more.extend(keyed(all.len() as u64, 1, 53));
    let again = disk.after(Image::Live);
    again.set_trouble(Some((9, Trouble::Stop)));
    assert!(append(&again, &more[count..]).is_err());
    assert_eq!(check(&again, Image::Mixed(5), &more, place), count);
    append(disk, &more[count..]).unwrap_or_else(|error| panic!("{place}: the next writer fails: {error}"));
    assert_eq!(check(disk, Image::Durable, &more, place), more.len());
}

/// The manifest got its name, and syncing the directory failed: whichever a crash brings back has its files.
///
/// GEN-3
#[test]
fn what_may_not_be_durable_keeps_the_files_of_what_would_come_back() {
    let (disk, all) = begun();
    let more = keyed(30, 5, 54);
    let operations = {
        let probe = disk.after(Image::Live);
        append(&probe, &more).unwrap();
        probe.operations()
    };
    let mut unsure = 0;
    for at in 0..operations {
        let disk = disk.after(Image::Live);
        disk.set_trouble(Some((at, Trouble::Fail)));
        let failed = append(&disk, &more).is_err();
        let live = disk.files(&target()).unwrap();
        disk.set_trouble(Some((8, Trouble::Stop)));
        let _ = append(&disk, &keyed(40, 5, 55));
        let both: Vec<Sample> = all.iter().chain(&more).cloned().collect();
        for image in Image::ALL {
            let count = check(&disk, image, &both, &format!("failed at {at}, then stopped, {image:?}"));
            unsure += usize::from(failed && count == both.len() && live.len() > 4);
        }
    }
    assert!(unsure > 0, "in no run the manifest was in place when something failed");
}
