//! A dataset that changes under an open reader: deleted segments whose names new ones get, with the same lengths. What
//! the reader has not opened yet it must refuse: its index is of the old files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Remedy, Schema, UserMetadata, to_usize,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, IoChoice, OnDamage, ReadError, Reader, ReaderOptions};
use grainstore_store::{Collection, Dataset, StoreError};
use grainstore_writer::{AppendOptions, Compression, DatasetWriter, Removal, Sample, WriterOptions};
use tempfile::TempDir;

use crate::common::Random;

/// Each is a segment. Samples of more than 1 MiB are read in parts by `open_sample`.
const LEN: usize = (1 << 20) + 77;
const SEGMENTS: u64 = 3;
const IOS: [IoChoice; 3] = [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped];

fn sample(seed: u64) -> Sample {
    Sample { payload: Random(seed).bytes(LEN), ..Sample::default() }
}

fn write(path: &Path, seeds: std::ops::Range<u64>) {
    let options =
        WriterOptions { keyed: false, segment_size: 1, compression: Compression::None, ..WriterOptions::default() };
    let mut writer = DatasetWriter::create(path, options).unwrap();
    writer.write_batch(seeds.map(sample).collect()).unwrap();
    writer.finish().unwrap();
}

fn append(path: &Path, seed: u64) {
    let options = AppendOptions { segment_size: 1, compression: Compression::None, ..AppendOptions::default() };
    let mut writer = DatasetWriter::append(path, options).unwrap();
    writer.write(sample(seed)).unwrap();
    writer.finish().unwrap();
}

fn remove(path: &Path, ordinal: u64, frees: bool) {
    Removal::begin(path).unwrap().remove(&[ordinal], frees, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
}

fn make(folder: &Path) -> PathBuf {
    let path = folder.join("data.grain");
    write(&path, 0..SEGMENTS);
    path
}

/// The last segment gives way to another one with the same name and the same length.
fn replace_last(path: &Path) {
    let last = path.join("00002.seg");
    let before = fs::read(&last).unwrap();
    remove(path, SEGMENTS - 1, false);
    append(path, 100);
    let after = fs::read(&last).unwrap();
    assert!(before.len() == after.len() && before != after, "the name is used again, for a file of the same length");
}

fn open(path: &Path, io: IoChoice) -> Reader {
    Reader::open(path, ReaderOptions { io, ..ReaderOptions::default() }).unwrap()
}

/// What must not be read, and how it is refused.
fn assert_changed<T>(result: Result<T, ReadError>, file: &Path) {
    match result {
        Err(ReadError::Store(error @ StoreError::Changed { .. })) => {
            assert_eq!(error.remedy(), Some(Remedy::OpenAgain));
            let text = error.to_string();
            assert!(
                text.starts_with(file.to_str().unwrap()) && text.contains("since the dataset was opened"),
                "{text}"
            );
        }
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("it was read"),
    }
}

fn epoch(reader: &Reader, on_damage: OnDamage) -> Result<u64, ReadError> {
    let options = EpochOptions {
        order: Order::Full.into(),
        batch_size: 1.try_into().unwrap(),
        on_damage,
        ..EpochOptions::default()
    };
    let mut count = 0;
    for batch in reader.epoch(&options)? {
        count += batch?.len() as u64;
    }
    Ok(count)
}

/// Reads the last sample in every way, by a reader of its own each: what one has found must not help the next.
fn assert_refused(path: &Path, readers: impl IntoIterator<Item = Reader>) {
    let file = path.join("00002.seg");
    let last = SEGMENTS - 1;
    let ways: [&dyn Fn(&Reader); 7] = [
        &|reader| assert_changed(reader.get(last), &file),
        &|reader| assert_changed(reader.get_batch(&[0, last]), &file),
        &|reader| assert_changed(epoch(reader, OnDamage::Fail), &file),
        &|reader| assert_changed(epoch(reader, OnDamage::Skip), &file),
        &|reader| assert_changed(reader.open_sample(last, None), &file),
        // The other segments are as they were, and what was refused stays refused.
        &|reader| {
            assert!(reader.get(1).unwrap().payload == sample(1).payload);
            assert_changed(reader.get(last), &file);
            assert_changed(reader.open_sample(last, None), &file);
        },
        &|reader| {
            let again = Reader::new(reader.collection().clone(), ReaderOptions::default()).unwrap();
            assert_changed(again.get(last), &file);
        },
    ];
    let mut readers = readers.into_iter();
    for way in ways {
        way(&readers.next().unwrap());
    }
}

fn packed() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path());
    (folder, path)
}

/// FPR-3, RD-1
#[test]
fn a_segment_that_took_the_name_of_another_is_refused() {
    for io in IOS {
        let (_folder, path) = packed();
        let readers: Vec<Reader> = (0..7).map(|_| open(&path, io)).collect();
        replace_last(&path);
        assert_refused(&path, readers);
        assert!(open(&path, io).get(SEGMENTS - 1).unwrap().payload == sample(100).payload, "opened again, it reads");
    }
}

/// FPR-3, RD-1
#[test]
fn a_file_that_is_open_or_was_checked_reads_on() {
    for io in IOS {
        let (_folder, path) = packed();
        let reader = open(&path, io);
        assert!(reader.get(SEGMENTS - 1).unwrap().payload == sample(SEGMENTS - 1).payload);
        replace_last(&path);
        // The old file, which the system keeps while it is open.
        assert!(reader.get(SEGMENTS - 1).unwrap().payload == sample(SEGMENTS - 1).payload, "{io}");
        if io == IoChoice::Mapped {
            // Parts are not read from the map, and the map's file is closed.
            assert_changed(reader.open_sample(SEGMENTS - 1, None), &path.join("00002.seg"));
        } else {
            let mut file = reader.open_sample(SEGMENTS - 1, None).unwrap().unwrap();
            let mut found = vec![0; 1000];
            file.set_position(500_000);
            file.fill(&mut found).unwrap();
            assert!(found == sample(SEGMENTS - 1).payload[500_000..501_000], "{io}");
        }
        // The same dataset, but the file is opened anew: that the segment was right once says nothing.
        let again = Reader::new(reader.collection().clone(), ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
        assert_changed(again.open_sample(SEGMENTS - 1, None), &path.join("00002.seg"));
        remove(&path, SEGMENTS - 1, true);
        assert_changed(again.get(SEGMENTS - 1), &path.join("00002.seg"));
    }
}

/// FPR-3, MAN-3
#[test]
fn a_file_that_is_gone_or_has_another_length_since_the_dataset_changed_says_so() {
    let (_folder, path) = packed();
    let readers: Vec<Reader> = (0..7).map(|_| open(&path, IoChoice::Buffered)).collect();
    remove(&path, SEGMENTS - 1, true);
    assert!(!path.join("00002.seg").exists());
    assert_refused(&path, readers);

    let (_folder, path) = packed();
    let readers: Vec<Reader> = (0..7).map(|_| open(&path, IoChoice::Buffered)).collect();
    remove(&path, SEGMENTS - 1, false);
    let options = AppendOptions { compression: Compression::None, ..AppendOptions::default() };
    let mut writer = DatasetWriter::append(&path, options).unwrap();
    writer.write_batch(vec![sample(7), sample(8)]).unwrap();
    writer.finish().unwrap();
    assert_refused(&path, readers);
}

/// FPR-3
#[test]
fn a_segment_of_several_datasets_and_a_lone_one_are_refused_alike() {
    let (folder, path) = packed();
    let other = folder.path().join("other.grain");
    write(&other, 50..52);
    let both = Collection::open(&[&other, &path], &Default::default()).unwrap();
    let reader = Reader::new(both, ReaderOptions::default()).unwrap();
    assert!(reader.get(2).unwrap().payload == sample(0).payload, "the second is open");
    let lone = path.join("00002.seg");
    let lone_reader = Reader::new(Dataset::open(&lone).unwrap(), ReaderOptions::default()).unwrap();
    replace_last(&path);
    assert_changed(reader.get(4), &lone);
    assert_changed(reader.open_sample(4, None), &lone);
    assert_changed(lone_reader.get(0), &lone);
}

/// FPR-3: the directory of many attributes fills more than the last block.
#[test]
fn a_long_directory_is_compared_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let attribute = |number| Attribute { name: format!("{number}"), kind: AttributeType::Int8 };
    let field = Field { name: "data".into(), kind: FieldType::Bytes };
    let schema = Schema::new((0..200).map(attribute).collect(), vec![field]).unwrap();
    let metadata = Metadata { schema, user: UserMetadata::default() };
    let rows = |value| Sample { attributes: vec![Some(AttributeValue::Int(value)); 200], ..sample(1) };
    let pack = |name: &str, values: [i64; 2]| {
        let path = folder.path().join(name);
        let options = WriterOptions { keyed: false, segment_size: 1, ..WriterOptions::with_metadata(metadata.clone()) };
        let mut writer = DatasetWriter::create(&path, options).unwrap();
        writer.write_batch(values.map(rows).to_vec()).unwrap();
        writer.finish().unwrap();
        path
    };
    let (path, other) = (pack("data.grain", [1, 2]), pack("other.grain", [1, 3]));
    for io in IOS {
        assert!(open(&path, io).get(1).unwrap().payload == sample(1).payload);
    }
    // The same bytes of the sample, and another attribute.
    fs::copy(other.join("00001.seg"), path.join("00001.seg")).unwrap();
    for io in IOS {
        let error = open(&path, io).get(1).unwrap_err();
        assert!(matches!(error, ReadError::Store(StoreError::Mismatch { .. })), "{io}: {error:?}");
    }
}

/// FPR-3: where the dataset has not changed, to open it again would not help.
#[test]
fn a_segment_that_was_never_the_datasets_or_whose_footer_is_damaged_is_refused_as_such() {
    let (folder, path) = packed();
    let segment = path.join("00001.seg");
    let right = fs::read(&segment).unwrap();
    let other = folder.path().join("other.grain");
    write(&other, 60..62);
    let others = fs::read(other.join("00001.seg")).unwrap();
    let mut torn = right.clone();
    let end = torn.len();
    torn[end - 4096..end - 64].fill(7);
    let mut cut = right.clone();
    cut[end - 64..].fill(0);
    for (bytes, part) in [(others, "fingerprint"), (torn, "directory"), (cut, "footer")] {
        assert_eq!(bytes.len(), right.len());
        fs::write(&segment, bytes).unwrap();
        for io in IOS {
            let reader = open(&path, io);
            let error = reader.open_sample(1, None).err().unwrap();
            let is_told = matches!(&error, ReadError::Store(StoreError::Mismatch { .. } | StoreError::Format { .. }));
            assert!(is_told && error.to_string().contains(part), "{io}: {error:?}");
            assert!(reader.get(1).is_err() && reader.get(0).is_ok());
        }
    }
    fs::write(&segment, &right).unwrap();
    assert_eq!(open(&path, IoChoice::Buffered).get(1).unwrap().payload.len(), to_usize(LEN as u64));
}
