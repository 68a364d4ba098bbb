//! Streams that are read once: the same samples as from a file, where no earlier bytes are needed again.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::io::Cursor;

use grainstore_sources::stream::{StreamFormat, StreamSource};
use grainstore_sources::tar::TarOptions;
use grainstore_sources::{Bad, Layout, Reach, Source};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::tar_support::{Got, archive, good, read};

fn open(bytes: Vec<u8>, format: StreamFormat) -> StreamSource {
    StreamSource::open(Box::new(Cursor::new(bytes)), format, &TarOptions::default()).unwrap()
}

fn all(bytes: &[u8], format: StreamFormat) -> Vec<Result<Got, Bad>> {
    read(&open(bytes.to_vec(), format), Layout::Packed)
}

fn record(key: &[u8], payload: &[u8]) -> Vec<u8> {
    let key_len = u32::try_from(key.len()).unwrap().to_le_bytes();
    [&key_len[..], key, &(payload.len() as u64).to_le_bytes(), payload].concat()
}

#[test]
fn a_tar_from_a_stream_gives_what_it_gives_from_a_file() {
    let plain = archive(&[("1.cls", b"1"), ("1.jpg", &[7; 700]), ("1.txt", b"t"), ("2.cls", b"2"), ("2.jpg", b"y")]);
    let expected: Vec<_> = good(&plain).into_iter().map(Ok).collect();
    for bytes in [plain.clone(), zstd::encode_all(&plain[..], 1).unwrap()] {
        let source = open(bytes, StreamFormat::Tar);
        assert_eq!((source.description().parts[0].path.to_str(), source.blocks(0)), (Some("-"), Ok(None)));
        assert!(source.description().is_keyed && source.description().not_adoptable.is_some());
        assert_eq!(read(&source, Layout::Packed), expected);
    }
}

#[test]
fn a_stream_is_read_once() {
    let source = open(archive(&[("1.jpg", b"x")]), StreamFormat::Tar);
    assert_eq!(read(&source, Layout::Packed).len(), 1);
    let again = source.open(0, 0, Layout::Packed).err().unwrap();
    assert_eq!(again.to_string(), "-: a stream can be read once, and it has been");
    assert!(source.open(0, 512, Layout::Packed).is_err());
}

#[test]
fn a_long_member_is_streamed_if_it_is_the_last_of_its_sample() {
    let big = vec![9; (64 << 20) + 1];
    let source = open(archive(&[("0.jpg", b"x"), ("1.jpg", &big), ("2.jpg", b"y")]), StreamFormat::Tar);
    let found: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
    assert_eq!((found.len(), found[1].is_long, found[2].key.as_str()), (3, true, "2"));
    assert!(found[1].payload == big);
    // Members after it may belong to its sample, so all of it would have to be held in memory.
    let members: &[(&str, &[u8])] =
        &[("1.jpg", b"x"), ("1.txt", b"t"), ("2.jpg", &big), ("2.txt", b"u"), ("3.jpg", b"y")];
    let found = all(&archive(members), StreamFormat::Tar);
    let said = found[1].as_ref().unwrap_err();
    assert!(said.why.text.contains("unpack the archive") && said.reach == Reach::Sample, "{said}");
    assert_eq!(found[2].as_ref().unwrap().key, "3");
    // The fields that came before it are before it and after it in the payload.
    let members: &[(&str, &[u8])] = &[
        ("1.cls", b"5"),
        ("1.npy", b"nn"),
        ("1.zip", b"z"),
        ("1.txt", &big),
        ("2.cls", b"6"),
        ("2.npy", b"n"),
        ("2.txt", b"t"),
    ];
    let found = all(&archive(members), StreamFormat::Tar);
    let long = found[0].as_ref().unwrap();
    let parts = [Some(b"nn".to_vec()), Some(big.clone()), Some(b"z".to_vec())];
    assert!(long.is_long && long.parts() == parts);
    assert_eq!(found[1].as_ref().unwrap().key, "2");
}

#[test]
fn a_long_payload_that_is_not_read_is_skipped() {
    let big = vec![9; (64 << 20) + 1];
    for (bytes, format) in [
        (archive(&[("1.jpg", &big), ("2.jpg", b"y")]), StreamFormat::Tar),
        ([record(b"1", &big), record(b"2", b"y")].concat(), StreamFormat::Records),
    ] {
        let source = open(bytes, format);
        let mut samples = source.open(0, 0, Layout::Packed).unwrap();
        assert!(samples.next().unwrap().is_some());
        let mut some = [0; 1000];
        samples.payload().read_exact(&mut some).unwrap();
        assert!(samples.next().unwrap().is_some());
        assert!(samples.next().unwrap().is_none());
    }
}

#[test]
fn records_come_with_keys_or_without() {
    let keyed = [record(b"a", b"one"), record(b"b", b"")].concat();
    let source = open(keyed, StreamFormat::Records);
    assert!(source.description().is_keyed);
    let found: Vec<_> = read(&source, Layout::Packed).into_iter().map(|got| got.unwrap()).collect();
    assert_eq!((found[0].key.as_str(), &found[0].payload[..], found[1].key.as_str()), ("a", &b"one"[..], "b"));
    let source = open([record(b"", b"one"), record(b"", b"two")].concat(), StreamFormat::Records);
    assert!(!source.description().is_keyed);
    assert_eq!(read(&source, Layout::Packed).len(), 2);
    assert_eq!(all(b"", StreamFormat::Records), []);
    let compressed = zstd::encode_all(&record(b"a", b"one")[..], 1).unwrap();
    assert_eq!(all(&compressed, StreamFormat::Records)[0].as_ref().unwrap().payload, b"one");
}

#[test]
fn records_with_keys_among_others_are_reported_and_skipped() {
    let mixed = [record(b"a", b"one"), record(b"", b"two"), record(b"c", b"three")].concat();
    let found = all(&mixed, StreamFormat::Records);
    let said = found[1].as_ref().unwrap_err();
    assert_eq!(said.to_string(), "-: record 1 at byte 16: it has no key, but the first has");
    assert_eq!((said.reach, found[2].as_ref().unwrap().key.as_str()), (Reach::Sample, "c"));
    let found = all(&[record(b"", b"one"), record(b"b", b"two")].concat(), StreamFormat::Records);
    assert_eq!(found[1].as_ref().unwrap_err().why.text, "it has a key, but the first has none");
}

#[test]
fn a_stream_of_records_cut_anywhere_is_reported() {
    let (one, two) = (record(b"a", b"one"), record(b"bb", b"second"));
    let whole = [&one[..], &two].concat();
    for len in 0..=whole.len() {
        let found = all(&whole[..len], StreamFormat::Records);
        let is_whole = [0, one.len(), whole.len()].contains(&len);
        assert_eq!(found.iter().all(Result::is_ok), is_whole, "{len}: {found:?}");
        assert_eq!(found.iter().flatten().count(), usize::from(len >= one.len()) + usize::from(len == whole.len()));
    }
}

#[test]
fn impossible_lengths_are_reported() {
    let key = [&70_000_u32.to_le_bytes()[..], &[0; 100]].concat();
    let found = all(&key, StreamFormat::Records);
    assert_eq!(found[0].as_ref().unwrap_err().why.text, "its key has 70000 bytes; keys have 65535 at most");
    let payload = [&1_u32.to_le_bytes()[..], b"k", &(50_u64 << 20).to_le_bytes(), b"short"].concat();
    let found = all(&payload, StreamFormat::Records);
    assert_eq!(found[0].as_ref().unwrap_err().why.text, "the stream ends after 5 of its 52428800 bytes");
}

#[test]
fn a_stream_that_is_not_a_tar_is_refused() {
    let refused = |bytes: &'static [u8]| {
        let opened = StreamSource::open(Box::new(bytes), StreamFormat::Tar, &TarOptions::default());
        opened.err().unwrap().to_string()
    };
    assert_eq!(refused(b""), "-: no tar archive with files: at byte 0: the file is empty");
    assert!(refused(b"hello").contains("the archive ends after 5 of a header's 512 bytes"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_end_in_samples_or_an_error(bytes in vec(any::<u8>(), 0..600)) {
        all(&bytes, StreamFormat::Records);
        let _ = StreamSource::open(Box::new(Cursor::new(bytes)), StreamFormat::Tar, &TarOptions::default());
    }

    #[test]
    fn records_come_back(records in vec((vec(any::<u8>(), 1..20), vec(any::<u8>(), 0..300)), 1..20)) {
        let bytes: Vec<u8> = records.iter().flat_map(|(key, payload)| record(key, payload)).collect();
        let found = all(&bytes, StreamFormat::Records);
        prop_assert_eq!(found.len(), records.len());
        for (found, (_, payload)) in found.iter().zip(&records) {
            prop_assert_eq!(&found.as_ref().unwrap().payload, payload);
        }
    }
}
