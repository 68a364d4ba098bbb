//! A sample as a stream: the same bytes as with `get`, and never the last of them if the checksum is wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::Path;

use grainstore_reader::{IoChoice, ReadError, Reader, ReaderOptions};
use grainstore_store::StoreError;
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};

const LENS: [usize; 6] = [0, 1, 5000, 1 << 20, (1 << 20) + 1, 3_500_001];

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|place| u8::try_from(place * 7 % 251).unwrap()).collect()
}

fn write(path: &Path, compression: Compression) {
    let options = WriterOptions { compression, keyed: false, ..WriterOptions::default() };
    let mut writer = DatasetWriter::create(path, options).unwrap();
    LENS.iter().for_each(|len| writer.write(Sample::new("", payload(*len))).unwrap());
    writer.finish().unwrap();
}

#[test]
fn every_sample_streams_as_it_is_whole_by_every_io() {
    for compression in [Compression::None, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.grain");
        write(&path, compression);
        for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
            let reader = Reader::open(&path, ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
            for (ordinal, len) in (0..).zip(LENS) {
                let mut found = Vec::new();
                reader.stream(ordinal).unwrap().read_to_end(&mut found).unwrap();
                assert!(found == payload(len), "{io}, {len} bytes");
            }
            assert!(matches!(reader.stream(6), Err(ReadError::Store(StoreError::NoSuchOrdinal { .. }))));
        }
    }
}

#[test]
fn the_last_piece_of_a_damaged_sample_is_never_returned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.grain");
    write(&path, Compression::None);
    let reader = Reader::open(&path, ReaderOptions::default()).unwrap();
    let location = reader.collection().locate(5).unwrap();
    let segment = reader.collection().segment_path(location.segment).to_owned();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[usize::try_from(location.offset).unwrap() + 10] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let reader = Reader::open(&path, ReaderOptions::default()).unwrap();
    let (mut found, mut stream) = (Vec::new(), reader.stream(5).unwrap());
    let error = stream.read_to_end(&mut found).unwrap_err();
    assert_eq!(found.len(), 3 << 20);
    let error = error.downcast::<ReadError>().unwrap();
    assert!(matches!(error, ReadError::Store(StoreError::Sample { ordinal: 5, .. })), "{error}");
    assert!(stream.read(&mut [0; 10]).is_err(), "an end would look like success");
}
