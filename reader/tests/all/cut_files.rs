//! A file that is cut short while it is being read is an error of the samples that are gone, in every way of reading: it
//! never ends the process, and no other sample is affected.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;

use grainstore_reader::engine::{FileError, IoMode};
use grainstore_reader::{EpochOptions, IoChoice, OnDamage, ReadError, Reader, ReaderOptions};
use grainstore_store::{Collection, Dataset};

use crate::common::{self, Made, ORDERS, Shape};

const WAYS: [IoChoice; 4] = [IoChoice::Auto, IoChoice::Mapped, IoChoice::Buffered, IoChoice::Direct];

/// Samples of one segment, and a reader that has opened it and has the index in memory.
fn opened(io: IoChoice, lz4: bool, payload_lens: Vec<usize>) -> (Made, Reader) {
    let made = Shape { lz4, ..Shape::plain(64 << 10, payload_lens) }.write();
    let dataset = Collection::from(Dataset::open(made.path()).unwrap());
    let reader = Reader::new(dataset, ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
    reader.load().unwrap();
    reader.get(0).unwrap();
    (made, reader)
}

/// Cuts the file inside a sample, and returns where it ends now.
fn cut(made: &Made, reader: &Reader, ordinal: u64) -> u64 {
    let file_len = reader.collection().locate(ordinal).unwrap().offset + 10;
    let file = File::options().write(true).open(made.path().join("00000.seg")).unwrap();
    file.set_len(file_len).unwrap();
    file_len
}

fn is_end_of_file(error: &ReadError, file_len: u64) -> bool {
    matches!(error, ReadError::Unreadable { source: FileError::EndOfFile { file_len: end, .. }, .. } if *end == file_len)
}

#[test]
fn the_default_maps_what_was_just_written() {
    let (_made, reader) = opened(IoChoice::Auto, false, vec![3000; 10]);
    assert_eq!(reader.io().mode, IoMode::Mapped, "{}: the tests below need it", reader.io());
}

#[test]
fn single_reads_of_what_is_gone_say_where_the_file_ends() {
    for io in WAYS {
        for lz4 in [false, true] {
            let (made, reader) = opened(io, lz4, vec![3000; 400]);
            let file_len = cut(&made, &reader, 150);
            for ordinal in (0..400).rev() {
                if ordinal >= 150
                    && let Some(mapped) = reader.mapped(ordinal)
                {
                    let mut out = vec![MaybeUninit::new(1); 3000];
                    assert!(mapped.copy_to(&mut out).is_none(), "{ordinal}, {io}");
                }
                match reader.get(ordinal) {
                    Ok(sample) => assert!(ordinal < 150 && sample.payload == made.payload(ordinal), "{ordinal}, {io}"),
                    Err(error) => assert!(ordinal >= 150 && is_end_of_file(&error, file_len), "{io}: {error}"),
                }
            }
        }
    }
}

#[test]
fn batches_and_epochs_of_what_is_gone_say_so_and_skip_it_on_request() {
    for io in WAYS {
        let (made, reader) = opened(io, false, vec![3000; 400]);
        let file_len = cut(&made, &reader, 150);
        made.check(&reader.get_batch(&[149, 3, 90]).unwrap());
        let error = reader.get_batch(&[149, 3, 390, 151]).unwrap_err();
        assert!(is_end_of_file(&error, file_len), "{io}: {error}");
        for order in ORDERS {
            let error = reader.epoch(&common::epoch_options(order)).unwrap().find_map(Result::err).unwrap();
            assert!(is_end_of_file(&error, file_len), "{io}, {order}: {error}");
            let options = EpochOptions { on_damage: OnDamage::Skip, ..common::epoch_options(order) };
            let mut read: Vec<u64> = Vec::new();
            for batch in reader.epoch(&options).unwrap() {
                let batch = batch.unwrap();
                made.check(&batch);
                read.extend(batch.ordinals());
            }
            read.sort_unstable();
            assert_eq!(read, (0..150).collect::<Vec<_>>(), "{io}, {order}");
        }
    }
}

#[test]
fn a_part_of_a_sample_is_never_the_zeros_of_what_is_gone() {
    for io in WAYS {
        let (made, reader) = opened(io, false, vec![100, 5 << 20]);
        let mut file = reader.open_sample(1, None).unwrap().unwrap();
        let mut stream = reader.stream(1).unwrap();
        cut(&made, &reader, 1);
        file.set_position(3 << 20);
        let error = file.fill(&mut [1; 4096]).unwrap_err();
        assert!(matches!(error, ReadError::Unreadable { .. }), "{io}: {error}");
        assert_eq!(file.position(), 3 << 20, "{io}");
        let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{io}: {error}");
    }
}

#[test]
fn a_read_that_fails_on_its_way_leaves_the_position_where_it_was() {
    for io in WAYS {
        let (made, reader) = opened(io, false, vec![100, 5 << 20]);
        let mut file = reader.open_sample(1, None).unwrap().unwrap();
        let segment = File::options().write(true).open(made.path().join("00000.seg")).unwrap();
        segment.set_len(reader.collection().locate(1).unwrap().offset + (3 << 20)).unwrap();
        file.set_position(1 << 20);
        assert!(file.fill(&mut vec![1; 4 << 20]).is_err(), "{io}");
        assert_eq!(file.position(), 1 << 20, "{io}");
        let mut bytes = vec![1; 1 << 20];
        assert_eq!(file.fill(&mut bytes).unwrap(), 1 << 20);
        assert!(bytes == made.payload(1)[1 << 20..2 << 20], "{io}");
    }
}

#[test]
fn maps_come_and_go_while_others_lose_their_pages() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let (made, reader) = opened(IoChoice::Auto, false, vec![5000; 40]);
                    cut(&made, &reader, 20);
                    for ordinal in 0..40 {
                        assert_eq!(reader.get(ordinal).is_ok(), ordinal < 20);
                    }
                }
            });
        }
    });
}
