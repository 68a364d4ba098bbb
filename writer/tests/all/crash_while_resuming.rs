//! A writer with a journal is stopped, and separately failed, at every operation on the disk; then the one that resumes
//! is, too. Each time the final name is absent or complete, and the next writer ends with the bytes of one never stopped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use grainstore_writer::{DatasetWriter, Sample, WriteError, WriterOptions};

use crate::common::fake_disk::{FakeDisk, Image, Trouble, target};
use crate::common::{rich_options, rich_samples};

const STAMP: &str = "source";

/// Resumes, or begins where there is nothing to resume, and writes the rest; the samples it did not have to write.
fn go_on(disk: &FakeDisk, samples: &[Sample], overwrite: bool) -> Result<u64, WriteError> {
    let options = WriterOptions { overwrite, ..rich_options() };
    let (mut writer, point) = DatasetWriter::resume_on(Arc::new(disk.clone()), &target(), options, STAMP)?;
    let from = point.map_or(0, |point| {
        assert_eq!((point.note, point.note_samples), (point.samples.into(), point.samples));
        point.samples
    });
    writer.set_notes(Into::into);
    for sample in samples.iter().skip(from as usize) {
        writer.write(sample.clone())?;
    }
    writer.finish().map(|_| from)
}

/// The files of the dataset as an uninterrupted writer writes them.
fn whole(samples: &[Sample]) -> BTreeMap<String, Vec<u8>> {
    let disk = FakeDisk::new(None);
    let mut writer = DatasetWriter::create_on(Arc::new(disk.clone()), &target(), rich_options()).unwrap();
    writer.write_batch(samples.to_vec()).unwrap();
    writer.finish().unwrap();
    disk.files(&target()).unwrap()
}

/// The dataset under the final name is one of `allowed`, except a journal that was not removed.
fn committed(disk: &FakeDisk, allowed: &[&BTreeMap<String, Vec<u8>>], place: &str) -> bool {
    let Some(mut files) = disk.files(&target()) else { return false };
    files.remove("progress.json");
    assert!(allowed.contains(&&files), "{place}: it holds {:?}", files.keys());
    true
}

/// Runs on `begun` with trouble at operation 0, 1, 2, ... until a run completes. After each, in every image of a crash,
/// the next writer completes. `then` sees the disks that are left; the samples that did not have to be written again.
fn sweep(
    begun: &FakeDisk,
    trouble: Trouble,
    samples: &[Sample],
    old: Option<&BTreeMap<String, Vec<u8>>>,
    then: &mut dyn FnMut(&FakeDisk),
) -> u64 {
    let (new, mut spared) = (whole(samples), 0);
    let allowed: Vec<_> = old.into_iter().chain([&new]).collect();
    for at in 0.. {
        let disk = begun.after(Image::Durable);
        disk.set_trouble(Some((at, trouble)));
        let result = go_on(&disk, samples, old.is_some());
        let completed = result.is_ok() && disk.operations() <= at;
        let live = disk.after(Image::Live);
        for image in Image::ALL {
            let place = format!("{trouble:?} at operation {at}, {image:?}");
            let crashed = disk.after(image);
            let exists = committed(&crashed, &allowed, &place);
            assert!(exists || old.is_none(), "{place}: the old dataset is gone");
            assert!(!completed || committed(&crashed, &[&new], &place), "{place}: done, and a crash would lose it");
            then(&crashed);
            if exists && old.is_none() {
                continue;
            }
            let found = go_on(&crashed, samples, old.is_some());
            spared += found.unwrap_or_else(|error| panic!("{place}: the next writer fails: {error}"));
            assert!(committed(&crashed, &[&new], &place));
            assert!(crashed.files(Path::new("set.grain.partial")).is_none(), "{place}: something is left over");
        }
        if completed {
            assert!(live.files(&target()) == Some(new), "the journal is gone");
            return spared;
        }
    }
    unreachable!()
}

/// WR-1, WR-4, WR-5
#[test]
fn stopped_or_failed_at_any_operation_the_next_writer_resumes() {
    let samples = rich_samples(40, 41);
    for trouble in [Trouble::Stop, Trouble::Fail] {
        let spared = sweep(&FakeDisk::new(None), trouble, &samples, None, &mut |_| ());
        assert!(spared > 1000, "only {spared} samples were spared");
    }
}

/// WR-1, WR-4
#[test]
fn the_writer_that_resumes_may_also_be_stopped_or_failed_at_any_operation() {
    let samples = rich_samples(40, 42);
    let mut left: Vec<FakeDisk> = Vec::new();
    sweep(&FakeDisk::new(None), Trouble::Stop, &samples, None, &mut |disk| left.push(disk.after(Image::Live)));
    let interrupted = |disk: &&FakeDisk| disk.files(Path::new("set.grain.partial")).is_some();
    let left: Vec<&FakeDisk> = left.iter().filter(interrupted).collect();
    assert!(left.len() > 100);
    for disk in left.iter().step_by(left.len() / 5) {
        sweep(disk, Trouble::Stop, &samples, None, &mut |_| ());
        sweep(disk, Trouble::Fail, &samples, None, &mut |_| ());
    }
}

/// WR-1, WR-4
#[test]
fn a_dataset_that_is_replaced_exists_until_then() {
    let (old, new) = (rich_samples(12, 43), rich_samples(30, 44));
    let disk = FakeDisk::new(None);
    go_on(&disk, &old, false).unwrap();
    disk.settle();
    for trouble in [Trouble::Stop, Trouble::Fail] {
        sweep(&disk, trouble, &new, Some(&whole(&old)), &mut |_| ());
    }
}

/// WR-2, WR-4
#[test]
fn a_writer_that_failed_refuses_samples_and_keeps_what_is_safe() {
    let disk = FakeDisk::new(None);
    let storage = Arc::new(disk.clone());
    let mut writer = DatasetWriter::create_journaled_on(storage, &target(), rich_options(), STAMP).unwrap();
    writer.set_notes(Into::into);
    let samples = rich_samples(200, 45);
    let mut safe = 0;
    for sample in &samples {
        if writer.safe_samples() > 0 && safe == 0 {
            safe = writer.safe_samples();
            disk.set_trouble(Some((0, Trouble::Fail)));
        }
        if matches!(writer.write(sample.clone()), Err(WriteError::Failed)) {
            break;
        }
    }
    assert!(safe > 0 && writer.safe_samples() >= safe);
    let safe = writer.safe_samples();
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
    disk.set_trouble(None);
    assert_eq!(go_on(&disk, &samples, false).unwrap(), safe);
    assert!(disk.files(&target()) == Some(whole(&samples)));
}
