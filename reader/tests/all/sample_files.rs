//! A sample as a file: the same bytes from any position, and never the last of them in order if the checksum is wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use grainstore_format::{Field, FieldType, Metadata, Schema, UserMetadata, to_usize};
use grainstore_reader::{IoChoice, ReadError, Reader, ReaderOptions, SampleFile};
use grainstore_store::StoreError;
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};

use crate::common::Random;

const LENS: [usize; 5] = [0, 5000, 1 << 20, (1 << 20) + 1, 3_500_001];
/// Of the longest sample: the field `main`, between what belongs to no field.
const MAIN: std::ops::Range<u64> = 700_000..3_400_000;
/// Shorter than the rest of its sample.
const SMALL: std::ops::Range<u64> = 0..650_000;

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|place| u8::try_from(place * 7 % 251).unwrap()).collect()
}

/// Samples of `LENS`; the last has three fields, of which one is missing, the others have only the first.
fn write(path: &Path, compression: Compression) {
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let schema = Schema::new(vec![], vec![field("small"), field("main"), field("other")]).unwrap();
    let metadata = Metadata { schema, user: UserMetadata::default() };
    let options = WriterOptions { compression, keyed: false, ..WriterOptions::with_metadata(metadata) };
    let mut writer = DatasetWriter::create(path, options).unwrap();
    for len in LENS {
        let fields =
            if len == LENS[4] { vec![Some(SMALL), Some(MAIN), None] } else { vec![Some(0..len as u64), None, None] };
        writer.write(Sample { payload: payload(len), fields, ..Sample::default() }).unwrap();
    }
    writer.finish().unwrap();
}

fn open(path: &Path, io: IoChoice) -> Reader {
    Reader::open(path, ReaderOptions { io, ..ReaderOptions::default() }).unwrap()
}

fn flip(path: &Path, ordinal: u64, place: u64) {
    let reader = open(path, IoChoice::Buffered);
    let location = reader.collection().locate(ordinal).unwrap();
    let segment = reader.collection().segment_path(location.segment).to_owned();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[to_usize(location.offset + place)] ^= 1;
    fs::write(&segment, bytes).unwrap();
}

fn is_damage(error: &ReadError) -> bool {
    matches!(error, ReadError::Store(StoreError::Sample { ordinal: 4, .. }))
}

/// Reads from `position` to the end.
fn rest(file: &mut SampleFile, position: u64) -> Result<Vec<u8>, ReadError> {
    file.set_position(position);
    let mut found = vec![0; to_usize(file.file_len() - position)];
    let len = file.fill(&mut found)?;
    assert_eq!(len, found.len());
    Ok(found)
}

#[test]
fn a_sample_reads_as_a_file_in_memory_does() {
    for compression in [Compression::None, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.grain");
        write(&path, compression);
        for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
            let reader = open(&path, io);
            let mut random = Random(7);
            for (ordinal, len) in (0..).zip(LENS) {
                let whole = payload(len);
                let mut file = reader.open_sample(ordinal, None).unwrap().unwrap();
                assert_eq!(file.file_len(), len as u64);
                let mut wanted = Cursor::new(&whole);
                for _ in 0..60 {
                    let place = random.below(len as u64 + 10);
                    let by = i64::try_from(random.below(2000)).unwrap();
                    let to =
                        [SeekFrom::Start(place), SeekFrom::End(-by), SeekFrom::Current(-by), SeekFrom::Current(by)]
                            [to_usize(random.below(4))];
                    match wanted.seek(to) {
                        Ok(position) => assert_eq!(file.seek(to).unwrap(), position, "{to:?}"),
                        Err(_) => assert!(file.seek(to).is_err(), "{to:?}"),
                    }
                    let count = [1, 100, 70_000, 1_500_000][to_usize(random.below(4))];
                    let (mut found, mut expected) = (Vec::new(), Vec::new());
                    file.by_ref().take(count).read_to_end(&mut found).unwrap();
                    wanted.by_ref().take(count).read_to_end(&mut expected).unwrap();
                    assert!(found == expected, "{io}, sample {ordinal}, {to:?}, {count} bytes");
                }
                assert!(rest(&mut file, 0).unwrap() == whole);
            }
            assert!(matches!(reader.open_sample(5, None), Err(ReadError::Store(StoreError::NoSuchOrdinal { .. }))));
        }
    }
}

#[test]
fn a_file_outlives_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.grain");
    write(&path, Compression::None);
    let mut file = open(&path, IoChoice::Buffered).open_sample(4, None).unwrap().unwrap();
    assert!(rest(&mut file, 0).unwrap() == payload(LENS[4]));
}

#[test]
fn fields_are_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.grain");
    write(&path, Compression::None);
    let reader = open(&path, IoChoice::Direct);
    for (name, range) in [("main", MAIN), ("small", SMALL)] {
        let mut file = reader.open_sample(4, Some(name)).unwrap().unwrap();
        assert!(rest(&mut file, 0).unwrap() == payload(LENS[4])[to_usize(range.start)..to_usize(range.end)], "{name}");
    }
    assert!(reader.open_sample(4, Some("other")).unwrap().is_none());
    assert!(matches!(reader.open_sample(4, Some("none")), Err(ReadError::NoSuchField { .. })));
}

#[test]
fn bytes_read_in_order_are_checked_at_their_end_even_if_others_are_read_between() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.grain");
    write(&path, Compression::None);
    flip(&path, 4, 10);
    let reader = open(&path, IoChoice::Buffered);
    let mut file = reader.open_sample(4, None).unwrap().unwrap();
    let mut start = vec![0; 300_000];
    assert_eq!(file.fill(&mut start).unwrap(), start.len());
    // Out of order: the end is returned, as nothing is known of it yet.
    assert!(rest(&mut file, 3_400_000).unwrap() == payload(LENS[4])[3_400_000..]);
    assert!(is_damage(&rest(&mut file, 300_000).unwrap_err()));
    for position in [0, 3_500_000] {
        assert!(is_damage(&rest(&mut file, position).unwrap_err()), "an end would look like success");
    }
}

#[test]
fn a_field_is_checked_with_the_rest_of_its_sample_unless_that_is_longer() {
    let folder = tempfile::tempdir().unwrap();
    // Before the field, in it, and after it.
    for place in [690_000, 800_000, 3_500_000] {
        let path = folder.path().join(format!("{place}.grain"));
        write(&path, Compression::None);
        flip(&path, 4, place);
        let reader = open(&path, IoChoice::Buffered);
        let mut main = reader.open_sample(4, Some("main")).unwrap().unwrap();
        assert!(is_damage(&rest(&mut main, 0).unwrap_err()), "{place}");
        let mut small = reader.open_sample(4, Some("small")).unwrap().unwrap();
        assert!(rest(&mut small, 0).is_ok(), "{place}");
    }
}

#[test]
fn a_short_sample_is_checked_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.grain");
    write(&path, Compression::None);
    flip(&path, 1, 4999);
    let error = open(&path, IoChoice::Buffered).open_sample(1, None).unwrap_err();
    assert!(matches!(error, ReadError::Store(StoreError::Sample { ordinal: 1, .. })), "{error}");
}
