//! A writer with a journal is interrupted and another resumes: the result has the bytes of one that was never stopped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;

use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_store::{VerifyOptions, verify};
use grainstore_writer::{
    Compression, DatasetWriter, ResumePoint, Sample, StreamedSample, WriteError, WriterOptions, resumable,
};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{assert_holds, files, rich_options, rich_samples};

const STAMP: &str = "folder of 7 files";

/// Gives the writer samples from `from` on, with a note on each number of them; every third one is streamed.
fn feed(writer: &mut DatasetWriter, samples: &[Sample], from: u64, until: usize) {
    writer.set_notes(|samples| json!({ "after": samples }));
    for (ordinal, sample) in samples.iter().enumerate().take(until).skip(from as usize) {
        if ordinal % 3 == 2 {
            let Sample { key, attributes, payload, fields } = sample.clone();
            let streamed = StreamedSample { key, attributes, fields, len: payload.len() as u64 };
            writer.write_stream(&streamed, &mut payload.as_slice()).unwrap();
        } else {
            writer.write(sample.clone()).unwrap();
        }
    }
}

/// The bytes that an uninterrupted writer without a journal writes.
fn uninterrupted(target: &Path, options: &WriterOptions, samples: &[Sample]) -> BTreeMap<String, Vec<u8>> {
    let mut writer = DatasetWriter::create(target, options.clone()).unwrap();
    feed(&mut writer, samples, 0, samples.len());
    writer.finish().unwrap();
    files(target)
}

/// Interrupts a writer of `target` after `until` samples; the samples that are safe.
fn interrupt(target: &Path, options: &WriterOptions, samples: &[Sample], until: usize) -> u64 {
    let mut writer = DatasetWriter::create_journaled(target, options.clone(), STAMP).unwrap();
    feed(&mut writer, samples, 0, until);
    writer.safe_samples()
}

fn resume(target: &Path, options: &WriterOptions) -> (DatasetWriter, Option<ResumePoint>) {
    DatasetWriter::resume(target, options.clone(), STAMP).unwrap()
}

/// WR-3, WR-4
#[test]
fn wherever_a_writer_was_interrupted_the_next_one_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (options, samples) = (rich_options(), rich_samples(120, 31));
    let expected = uninterrupted(&folder.path().join("whole"), &options, &samples);
    for until in [0, 1, 17, 40, 79, 80, 119, 120] {
        let target = folder.path().join(format!("{until}"));
        let safe = interrupt(&target, &options, &samples, until);
        assert_eq!(resumable(&target).is_some(), safe > 0);
        assert!(!target.exists());
        let (mut writer, point) = resume(&target, &options);
        assert_eq!(point.as_ref().map_or(0, |point| point.samples), safe);
        assert_eq!((writer.taken(), writer.safe_samples()), (safe, safe));
        if let Some(point) = &point {
            assert_eq!((&point.note, point.note_samples), (&json!({ "after": safe }), safe), "not a later one");
        }
        feed(&mut writer, &samples, safe, samples.len());
        let summary = writer.finish().unwrap();
        assert_eq!(summary.samples, 120);
        assert_eq!(summary.payload_bytes, samples.iter().map(|sample| sample.payload.len() as u64).sum::<u64>());
        assert!(expected == files(&target), "{until}");
        assert!(!folder.path().join(format!("{until}.partial")).exists());
    }
    assert_holds(&folder.path().join("80"), &samples);
}

/// WR-4
#[test]
fn a_writer_may_be_interrupted_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let (options, samples) = (rich_options(), rich_samples(150, 32));
    let expected = uninterrupted(&folder.path().join("whole"), &options, &samples);
    let target = folder.path().join("set");
    let mut until = interrupt(&target, &options, &samples, 30);
    while until < 150 {
        let (mut writer, point) = resume(&target, &options);
        let from = point.unwrap().samples;
        assert!(from <= until);
        until = (from + 37).min(150);
        feed(&mut writer, &samples, from, until as usize);
    }
    let (mut writer, point) = resume(&target, &options);
    feed(&mut writer, &samples, point.unwrap().samples, 150);
    writer.finish().unwrap();
    assert!(expected == files(&target));
}

/// WR-4
#[test]
fn other_jobs_memory_and_overwriting_do_not_matter_and_everything_else_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (target, samples) = (folder.path().join("set"), rich_samples(60, 33));
    let options = rich_options();
    assert!(interrupt(&target, &options, &samples, 60) > 0);
    let before = files(&resumable(&target).unwrap());
    let refused = |options: WriterOptions, stamp: &str| {
        let refused = DatasetWriter::resume(&target, options, stamp).err().unwrap();
        assert!(matches!(refused, WriteError::ResumeMismatch { .. }), "{refused}");
        refused.to_string()
    };
    let geometry = options.geometry;
    let with = |geometry| WriterOptions { geometry, ..options.clone() };
    let chunks = with(Geometry { chunk_size: ChunkSize::new(8192).unwrap(), ..geometry });
    assert!(refused(chunks, STAMP).ends_with("chunk size: it was started with 4096, now 8192"));
    let aligned = with(Geometry { alignment: Alignment::multiple_of(64).unwrap(), ..geometry });
    assert!(refused(aligned, STAMP).ends_with("alignment: it was started with 1, now 64"));
    assert!(refused(with(Geometry { hash_seed: 5, ..geometry }), STAMP).contains("hash seed"));
    assert!(refused(WriterOptions { segment_size: 1, ..options.clone() }, STAMP).contains("segment size"));
    let raw = WriterOptions { compression: Compression::None, ..options.clone() };
    assert!(refused(raw, STAMP).ends_with("compression: it was started with lz4, now none"));
    assert!(refused(WriterOptions { keyed: false, ..options.clone() }, STAMP).contains("keys"));
    let mut other = options.clone();
    other.metadata.user = other.metadata.user.with_member("more", &json!(1.5)).unwrap();
    assert!(refused(other, STAMP).contains("metadata: it was started with "));
    let text = refused(options.clone(), "folder of 8 files");
    assert!(text.ends_with(": it was started with \"folder of 7 files\", now \"folder of 8 files\""), "{text}");
    assert!(refused(options.clone(), &"x".repeat(1000)).contains("1000 bytes of CRC-32"));
    assert_eq!(files(&resumable(&target).unwrap()), before, "it stays as it is");

    let jobs = std::num::NonZeroUsize::new(3);
    let others = WriterOptions { jobs, memory_len: 1 << 20, overwrite: true, ..options };
    assert!(resume(&target, &others).1.is_some());
}

type Damage<'a> = &'a dyn Fn(&Path);

/// WR-4
#[test]
fn segments_that_are_not_whole_are_written_again_with_all_that_follow() {
    let folder = tempfile::tempdir().unwrap();
    let (options, samples) = (rich_options(), rich_samples(150, 34));
    let expected = uninterrupted(&folder.path().join("whole"), &options, &samples);
    let damages: [(&str, Damage<'_>); 4] = [
        ("gone", &|path| std::fs::remove_file(path).unwrap()),
        ("short", &|path| std::fs::write(path, &std::fs::read(path).unwrap()[..4096]).unwrap()),
        ("empty", &|path| std::fs::write(path, "").unwrap()),
        ("of another dataset", &|path| {
            std::fs::copy(path.with_file_name("00000.seg"), path).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let target = folder.path().join(what);
        let safe = interrupt(&target, &options, &samples, 150);
        let partial = resumable(&target).unwrap();
        let count = |name: &str| std::fs::read(partial.join(name)).map_or(0, |bytes| bytes.len());
        assert!(count("00003.seg") > 0, "there are enough segments");
        damage(&partial.join("00001.seg"));
        std::fs::write(partial.join("00099.seg"), "not listed").unwrap();
        let (mut writer, point) = resume(&target, &options);
        let point = point.unwrap();
        assert!(point.samples > 0 && point.samples < safe, "{what}: {point:?}");
        assert_eq!(point.note_samples, safe, "the note is about samples that are lost, and counts them");
        assert_eq!(count("00003.seg"), 0, "{what}");
        assert!(!partial.join("00099.seg").exists());
        feed(&mut writer, &samples, point.samples, 150);
        writer.finish().unwrap();
        assert!(expected == files(&target), "{what}");
    }
}

/// WR-4
#[test]
fn a_damaged_journal_is_refused_and_another_programs_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, options, samples) = (folder.path().join("set"), rich_options(), rich_samples(60, 35));
    interrupt(&target, &options, &samples, 60);
    let journal = resumable(&target).unwrap().join("progress.json");
    let text = std::fs::read_to_string(&journal).unwrap();
    let refused = |text: &str| {
        std::fs::write(&journal, text).unwrap();
        DatasetWriter::resume(&target, rich_options(), STAMP).err().unwrap()
    };
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        std::fs::write(&journal, &bytes).unwrap();
        assert!(DatasetWriter::resume(&target, options.clone(), STAMP).is_err(), "byte {at}");
    }
    for len in [0, 1, 30, text.len() - 1] {
        assert!(matches!(refused(&text[..len]), WriteError::Damaged { .. }));
    }
    let version = format!("\"writer\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let older = refused(&text.replace(&version, "\"writer\": \"0.0.0\"")).to_string();
    assert!(older.contains("started by version \"0.0.0\""), "{older}");
    std::fs::write(&journal, &text).unwrap();
    assert!(resume(&target, &options).1.is_some(), "nothing was removed");
}

/// WR-1, WR-4
#[test]
fn starting_over_or_discarding_leaves_nothing_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let (target, options, samples) = (folder.path().join("set"), rich_options(), rich_samples(60, 36));
    let left = || std::fs::read_dir(folder.path()).unwrap().count();
    assert!(interrupt(&target, &options, &samples, 60) > 0);
    drop(DatasetWriter::create(&target, options.clone()).unwrap());
    assert_eq!(left(), 0, "a writer without a journal leaves nothing");
    assert!(interrupt(&target, &options, &samples, 60) > 0);
    drop(DatasetWriter::create_journaled(&target, options.clone(), STAMP).unwrap());
    assert_eq!(left(), 0, "nor one that finished no segment");
    assert!(interrupt(&target, &options, &samples, 60) > 0);
    let (mut writer, point) = resume(&target, &options);
    feed(&mut writer, &samples, point.unwrap().samples, 60);
    writer.discard();
    assert_eq!(left(), 0, "it was given up");
    assert!(resume(&target, &options).1.is_none());
    assert_eq!(left(), 0);
}

#[test]
fn a_partial_directory_with_somebody_elses_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (target, options, samples) = (folder.path().join("set"), rich_options(), rich_samples(60, 37));
    interrupt(&target, &options, &samples, 60);
    let partial = resumable(&target).unwrap();
    std::fs::write(partial.join("notes.txt"), "mine").unwrap();
    let before = files(&partial);
    let refused = DatasetWriter::resume(&target, options, STAMP).err().unwrap().to_string();
    assert!(refused.contains("\"notes.txt\""), "{refused}");
    assert_eq!(files(&partial), before);
}

/// A failure after the last sample keeps the segments too.
#[test]
fn a_merge_that_fails_keeps_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let (target, options, mut samples) = (folder.path().join("set"), rich_options(), rich_samples(60, 38));
    samples[59].key = samples[0].key.clone();
    let mut writer = DatasetWriter::create_journaled(&target, options.clone(), STAMP).unwrap();
    feed(&mut writer, &samples, 0, 60);
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, WriteError::DuplicateKey { first: 0, second: 59, .. }), "{error}");
    assert_eq!(resume(&target, &options).1.unwrap().samples, 60);
}

/// WR-5
#[test]
fn a_journal_that_a_crash_left_in_a_dataset_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (target, options, samples) = (folder.path().join("set"), rich_options(), rich_samples(60, 39));
    interrupt(&target, &options, &samples, 60);
    let journal = std::fs::read(resumable(&target).unwrap().join("progress.json")).unwrap();
    let (mut writer, point) = resume(&target, &options);
    feed(&mut writer, &samples, point.unwrap().samples, 60);
    writer.finish().unwrap();
    std::fs::write(target.join("progress.json"), journal).unwrap();
    verify(&target, &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
    assert_holds(&target, &samples);
    let mut writer = DatasetWriter::create(&target, WriterOptions { overwrite: true, ..options }).unwrap();
    writer.write_batch(samples).unwrap();
    writer.finish().unwrap();
    assert!(!target.join("progress.json").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// WR-4
    #[test]
    fn any_sizes_and_any_place_give_the_same_bytes(
        sizes in prop::collection::vec(prop::sample::select(vec![0, 1, 4096, 9000, 40_000]), 1..30),
        segment_size in prop::sample::select(vec![1, 5000, 30_000]),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let options = WriterOptions { segment_size, ..WriterOptions::default() };
        let samples: Vec<Sample> =
            sizes.iter().enumerate().map(|(i, &len)| Sample::new(format!("{i}"), vec![i as u8; len])).collect();
        let expected = uninterrupted(&folder.path().join("whole"), &options, &samples);
        let target = folder.path().join("set");
        let safe = interrupt(&target, &options, &samples, cut.index(sizes.len() + 1));
        let (mut writer, point) = resume(&target, &options);
        prop_assert_eq!(point.map_or(0, |point| point.samples), safe);
        feed(&mut writer, &samples, safe, samples.len());
        writer.finish().unwrap();
        prop_assert!(expected == files(&target));
    }
}
