//! Whole datasets with bytes changed: every question gets the right answer or an error.
//!
//! Four small datasets are written once. An input names one of them, how far checksums are to be put right, and
//! changes of bytes; the files stand in memory (`/dev/shm`) where there is such a place.

mod answers;
mod base;
mod change;
mod fixture;
mod material;
mod repair;
mod seeds;

use std::sync::Mutex;

use grainstore_store::{Dataset, OpenOptions, VerifyOptions, VerifyReport, verify};

use self::answers::{Truth, ask};
use self::base::Role;
use self::change::change;
use self::fixture::{Fixture, fixtures};
use self::repair::{REPAIRS, Repair, repair};
pub(crate) use self::seeds::changed_datasets;
use crate::input::Input;
use crate::seeds::Named;

/// The files of the fixtures are changed in place: one input at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// RD-1 and the rules of every structure, on datasets whose bytes were changed.
///
/// Byte 0: the fixture in bits 0 and 1, the repair in bits 2 and 3. Then changes: see `change`.
pub fn open(data: &[u8]) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut input = Input(data);
    let first = input.byte();
    let fixtures = fixtures();
    let fixture = &fixtures[usize::from(first & 3) % fixtures.len()];
    let repaired = REPAIRS.get(usize::from(first >> 2 & 3)).copied().unwrap_or(Repair::Nothing);
    let mut files: Vec<Vec<u8>> = fixture.files.iter().map(|file| file.bytes.clone()).collect();
    change(&mut input, fixture, &mut files);
    repair(repaired, fixture, &mut files);
    let changed = fixture.put(&files);
    check(fixture, repaired, changed);
    fixture.put_back();
}

fn check(fixture: &Fixture, repaired: Repair, changed: bool) {
    let path = fixture.path();
    let report = verify_quietly(&path);
    let whole = report.as_ref().is_ok_and(|report| report.damaged == 0);
    // Every byte has a checksum or must be zero, so nothing is changed unnoticed.
    assert!(!(whole && changed && repaired == Repair::Nothing), "verify finds nothing wrong");
    assert!(whole || changed, "verify finds damage in a dataset that was not changed");
    for (generation, &count) in fixture.generations.iter().enumerate() {
        let opened = Dataset::open_with(&path, &OpenOptions { generation: Some(generation), ..OpenOptions::default() });
        assert!(opened.is_ok() || !whole, "verify finds nothing wrong, but {:?}", opened.err());
        let Ok(dataset) = opened else { continue };
        let truth = Truth { samples: &fixture.samples[..count], all: repaired == Repair::Nothing };
        let complaint = ask(&dataset, &truth);
        assert!(!whole || complaint.is_none(), "verify finds nothing wrong, but {}", complaint.unwrap_or_default());
    }
}

fn verify_quietly(path: &std::path::Path) -> Result<VerifyReport, grainstore_store::StoreError> {
    let report = verify(
        path,
        &VerifyOptions { threads: Some(1), ..VerifyOptions::default() },
        &|damage| drop(damage.to_string()),
        &|_| (),
    );
    if let Err(error) = &report {
        assert!(!error.to_string().is_empty());
    }
    report
}

/// The directories of the fixtures, as seeds.
pub(crate) fn directories() -> Named {
    let files = fixtures().iter().flat_map(|fixture| &fixture.files).filter(|file| !file.regions.is_empty());
    let seeds = files
        .enumerate()
        .map(|(number, file)| (format!("file_{number}"), file.bytes[file.regions[1].clone()].to_vec()));
    seeds.collect()
}

/// The manifests of the fixtures, as seeds.
pub(crate) fn manifests() -> Named {
    let files = fixtures().iter().flat_map(|fixture| &fixture.files).filter(|file| file.role == Role::Manifest);
    files.enumerate().map(|(number, file)| (format!("dataset_{number}"), file.bytes.clone())).collect()
}
