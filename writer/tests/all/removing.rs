//! Samples are removed from a dataset: what stays is as it was, in its order, and segments that lose none are not touched.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_format::Metadata;
use grainstore_store::{Dataset, OpenOptions, VerifyOptions, verify};
use grainstore_writer::{AppendOptions, Compression, DatasetWriter, Removal, RemovalSummary, Sample, WriteError};

use crate::common::{assert_holds, files, rich_options, rich_samples};

fn remove(path: &Path, ordinals: &[u64], frees: bool) -> Result<RemovalSummary, WriteError> {
    let removed = Removal::begin(path)?.remove(ordinals, frees, &mut |_| ControlFlow::Continue(()))?;
    Ok(removed.unwrap())
}

fn append(path: &Path, samples: &[Sample], metadata: Option<Metadata>) {
    let options = AppendOptions { segment_size: 40_000, compression: Compression::Lz4, metadata, ..Default::default() };
    let mut writer = DatasetWriter::append(path, options).unwrap();
    writer.write_batch(samples.to_vec()).unwrap();
    writer.finish().unwrap();
}

fn keyed(count: u64, seed: u64) -> Vec<Sample> {
    let mut samples = rich_samples(count, seed);
    (0..).zip(&mut samples).for_each(|(number, sample)| sample.key = format!("{seed}/{number}").into_bytes());
    samples
}

/// A dataset of several segments and two generations, and its samples.
fn begun(folder: &Path) -> (PathBuf, Vec<Sample>) {
    let path = folder.join("set.grain");
    let mut writer = DatasetWriter::create(&path, rich_options()).unwrap();
    let mut samples = keyed(60, 1);
    writer.write_batch(samples.clone()).unwrap();
    writer.finish().unwrap();
    let more = keyed(25, 2);
    append(&path, &more, None);
    samples.extend(more);
    (path, samples)
}

fn without(samples: &[Sample], ordinals: &[u64]) -> Vec<Sample> {
    let kept = (0..).zip(samples).filter(|(ordinal, _)| !ordinals.contains(ordinal));
    kept.map(|(_, sample)| sample.clone()).collect()
}

fn assert_whole(path: &Path) {
    verify(path, &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
}

fn ranges(path: &Path) -> Vec<std::ops::Range<u64>> {
    Dataset::open(path).unwrap().segments().iter().map(|segment| segment.ordinals()).collect()
}

/// GEN-5
#[test]
fn what_stays_is_as_it_was_in_its_order() {
    for (name, choose) in [
        ("one", (|ordinal, _| ordinal == 31) as fn(u64, u64) -> bool),
        ("the first", |ordinal, _| ordinal == 0),
        ("the last", |ordinal, count| ordinal + 1 == count),
        ("every third", |ordinal, _| ordinal % 3 == 0),
        ("all but one", |ordinal, _| ordinal != 40),
        ("the second half", |ordinal, count| ordinal >= count / 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (path, samples) = begun(folder.path());
        let ordinals: Vec<u64> = (0..85).filter(|&ordinal| choose(ordinal, 85)).collect();
        let summary = remove(&path, &ordinals, true).unwrap();
        let left = without(&samples, &ordinals);
        assert_eq!((summary.removed, summary.samples), (ordinals.len() as u64, left.len() as u64), "{name}");
        assert!(summary.is_freed);
        assert_holds(&path, &left);
        assert_whole(&path);
        let dataset = Dataset::open(&path).unwrap();
        assert_eq!(dataset.fingerprint(), summary.fingerprint);
        assert_eq!(dataset.user_metadata(), &rich_options().metadata.user, "{name}");
        // Freed: no file is left that the manifest does not name.
        let native = dataset.segments().len();
        assert_eq!(files(&path).len(), 1 + native + usize::from(native > 1), "{name}");
        // Samples can be added again, also those that went.
        append(
            &path,
            &samples[31..32].iter().filter(|one| !left.contains(one)).cloned().chain(keyed(1, 3)).collect::<Vec<_>>(),
            None,
        );
        assert_whole(&path);
    }
}

/// GEN-5
#[test]
fn segments_that_lose_nothing_are_not_touched_and_replaced_ones_stay_for_readers() {
    let folder = tempfile::tempdir().unwrap();
    let (path, samples) = begun(folder.path());
    let before = files(&path);
    let second = ranges(&path)[1].clone();
    let old = Dataset::open(&path).unwrap();
    let summary = remove(&path, &[second.start, second.start + 2], false).unwrap();
    assert_eq!((summary.copied_segments, summary.is_freed), (1, false));
    assert_eq!(summary.replaced_bytes, before["00001.seg"].len() as u64);
    let after = files(&path);
    for (name, bytes) in before.iter().filter(|(name, _)| name.ends_with(".seg")) {
        assert!(after.get(name) == Some(bytes), "{name}");
    }
    // Opened before: it reads what it opened.
    assert_eq!(old.sample_count(), samples.len() as u64);
    for ordinal in 0..old.sample_count() {
        assert_eq!(crate::common::payload(&old, ordinal), samples[ordinal as usize].payload);
    }
    // The next writer removes what no manifest names.
    let mut left = without(&samples, &[second.start, second.start + 2]);
    let more = keyed(2, 4);
    append(&path, &more, None);
    left.extend(more);
    assert!(!files(&path).contains_key("00001.seg"));
    assert_holds(&path, &left);
}

/// GEN-5
#[test]
fn generations_of_untouched_segments_stay_and_those_of_others_go() {
    let folder = tempfile::tempdir().unwrap();
    let (path, samples) = begun(folder.path());
    remove(&path, &[60], false).unwrap();
    let open =
        |generation| Dataset::open_with(&path, &OpenOptions { generation: Some(generation), ..OpenOptions::default() });
    assert_eq!(open(0).unwrap().sample_count(), 60);
    assert_eq!(open(1).unwrap().sample_count(), 84);
    remove(&path, &[3], false).unwrap();
    assert_eq!(open(0).unwrap().sample_count(), 83);
    assert!(open(1).is_err());
    assert_holds(&path, &without(&samples, &[3, 60]));
    // All of a generation goes: the one before is the newest.
    let folder = tempfile::tempdir().unwrap();
    let (path, samples) = begun(folder.path());
    let first = Dataset::open_with(&path, &OpenOptions { generation: Some(0), ..OpenOptions::default() }).unwrap();
    let summary = remove(&path, &(60..85).collect::<Vec<_>>(), false).unwrap();
    assert_eq!((summary.copied_segments, summary.fingerprint), (0, first.fingerprint()));
    assert_holds(&path, &samples[..60]);
}

/// GEN-4, GEN-5
#[test]
fn the_newest_user_metadata_stay_when_their_segment_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.grain");
    let mut writer = DatasetWriter::create(&path, rich_options()).unwrap();
    let samples = keyed(20, 5);
    writer.write_batch(samples.clone()).unwrap();
    writer.finish().unwrap();
    let mut metadata = rich_options().metadata;
    metadata.user = metadata.user.with_member("class_names", &serde_json::json!(["a", "b", "c"])).unwrap();
    append(&path, &keyed(3, 6), Some(metadata.clone()));
    let segments = ranges(&path).len();
    remove(&path, &[20, 21, 22], false).unwrap();
    assert_eq!(ranges(&path).len(), segments - 1);
    assert_eq!(Dataset::open(&path).unwrap().user_metadata(), &metadata.user);
    assert_holds(&path, &samples);
    assert_whole(&path);
}

#[test]
fn what_cannot_be_removed_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, samples) = begun(folder.path());
    let why = |ordinals: &[u64]| remove(&path, ordinals, true).unwrap_err().to_string();
    assert!(
        why(&(0..85).collect::<Vec<_>>())
            .ends_with("none of its 85 samples would be left, and a dataset has at least one")
    );
    for ordinals in [&[][..], &[85], &[3, 3], &[4, 3]] {
        assert!(why(ordinals).contains("expected 1 or more below 85 that ascend"), "{ordinals:?}");
    }
    let appending = DatasetWriter::append(&path, AppendOptions::default()).unwrap();
    assert!(matches!(Removal::begin(&path), Err(WriteError::Locked { .. })));
    drop(appending);
    let error = |path: &Path| Removal::begin(path).err().unwrap().to_string();
    assert!(error(&path.join("00000.seg")).ends_with("it is a file; only a dataset's directory can change"));
    assert!(error(folder.path()).ends_with("it has no manifest.json, so it is not a dataset"));
    let mut seen = 0;
    let stopped = Removal::begin(&path).unwrap().remove(&[1], true, &mut |copied| {
        seen = copied.samples;
        if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped.unwrap(), seen), (None, 5));
    assert_holds(&path, &samples);
    assert_eq!(files(&path).keys().filter(|name| name.ends_with(".tmp")).count(), 0);
}

/// RD-1
#[test]
fn a_damaged_sample_stops_it_where_it_stays_and_not_where_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, samples) = begun(folder.path());
    let ordinal = (10..).find(|&ordinal: &u64| samples[ordinal as usize].payload.len() > 4000).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let location = dataset.locate(ordinal).unwrap();
    let file = dataset.segments()[location.segment].path().to_owned();
    let neighbour = dataset.segments()[location.segment].ordinals().find(|&other| other != ordinal).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[location.offset as usize + 3] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let before = files(&path);
    let error = remove(&path, &[neighbour], true).unwrap_err();
    let expected = format!("sample {ordinal} (key \"1/{ordinal}\"), which is to stay, cannot be copied: the CRC-32");
    assert!(error.to_string().contains(&expected), "{error}");
    let after = files(&path);
    assert!(before.iter().all(|(name, bytes)| name.starts_with("index") || after.get(name) == Some(bytes)));
    let gone = {
        let mut gone = [neighbour, ordinal];
        gone.sort_unstable();
        gone
    };
    remove(&path, &gone, true).unwrap();
    assert_holds(&path, &without(&samples, &gone));
    assert_whole(&path);
}
