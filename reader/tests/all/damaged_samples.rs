//! A damaged sample is an error that names it, in every way of reading; the others are still read. No byte that fails
//! its checksum is returned.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, IoChoice, ReadError, Reader};
use grainstore_store::StoreError;

use crate::common::{self, Made, ORDERS, Random, Shape};

fn made() -> Made {
    let mut random = Random(3);
    let payload_lens = (0..120).map(|_| to_usize(1 + random.below(900))).collect();
    Shape { lz4: true, segment_size: 9_000, ..Shape::plain(4096, payload_lens) }.write()
}

/// The ordinal that an error of a damaged sample names.
fn damaged_ordinal(error: &ReadError) -> Option<u64> {
    match error {
        ReadError::Store(StoreError::Sample { ordinal, key: Some(_), .. }) => Some(*ordinal),
        _ => None,
    }
}

#[test]
fn a_flipped_byte_is_an_error_that_names_the_sample_and_the_others_still_read() {
    let made = made();
    for ordinal in [0, 57, 119] {
        made.flip(ordinal, 0);
    }
    for io in [IoChoice::Direct, IoChoice::Buffered, IoChoice::Mapped] {
        let reader = made.reader(io);
        for ordinal in 0..120 {
            match reader.get(ordinal) {
                Ok(sample) => assert_eq!(sample.payload, made.payload(ordinal)),
                Err(error) => assert_eq!(damaged_ordinal(&error), Some(ordinal), "{error}"),
            }
            assert_eq!(reader.get(ordinal).is_err(), [0, 57, 119].contains(&ordinal));
        }
        let batch = reader.get_batch(&[56, 58, 1, 118]).unwrap();
        made.check(&batch);
        // Of several damaged samples, the one with the lowest ordinal is reported, whichever arrives first.
        assert_eq!(damaged_ordinal(&reader.get_batch(&[119, 1, 57, 2]).unwrap_err()), Some(57));
    }
}

#[test]
fn the_error_names_file_key_and_both_checksums() {
    let made = Shape::plain(4096, vec![100; 20]).write();
    made.flip(7, 99);
    let error = made.reader(IoChoice::Buffered).get(7).unwrap_err().to_string();
    let file = made.path().join("00000.seg");
    let expected =
        format!("{}: sample 7 (key \"class 1/7.jpg\"): CRC-32 of stored bytes 4796..4896 is ", file.display());
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains(", the entry has "), "{error}");
}

#[test]
fn an_epoch_ends_with_the_damaged_sample_after_the_batches_before_it() {
    let made = made();
    made.flip(57, 0);
    for io in [IoChoice::Direct, IoChoice::Buffered, IoChoice::Mapped] {
        for order in ORDERS {
            let options = EpochOptions { batch_size: 10.try_into().unwrap(), ..common::epoch_options(order) };
            let mut epoch = made.reader(io).epoch(&options).unwrap();
            let plan = epoch.plan().clone();
            let position = (0..120).find(|&position| plan.at(position) == 57).unwrap();
            for batch in 0..position / 10 {
                let batch = epoch.next().unwrap_or_else(|| panic!("batch {batch}")).unwrap();
                made.check(&batch);
            }
            assert_eq!(damaged_ordinal(&epoch.next().unwrap().unwrap_err()), Some(57), "{order}");
            assert!(epoch.next().is_none() && epoch.next_batch().is_none(), "it ends after an error");
        }
    }
}

#[test]
fn a_truncated_segment_is_an_error_that_names_the_file_and_the_others_still_read() {
    let made = made();
    let dataset = grainstore_store::Dataset::open(made.path()).unwrap();
    let path = dataset.segments()[1].path().to_owned();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let file_len = file.metadata().unwrap().len();
    file.set_len(file_len - 4096).unwrap();
    let reader = made.reader(IoChoice::Buffered);
    let broken = dataset.segments()[1].ordinals();
    let error = reader.get(broken.start).unwrap_err().to_string();
    let what = format!("it has {} bytes, the manifest has {file_len}", file_len - 4096);
    assert_eq!(error, format!("{}: {what}", path.display()));
    made.check(&reader.get_batch(&[0, broken.start - 1, broken.end]).unwrap());
    assert!(reader.get_batch(&[0, broken.start]).is_err());
    for order in ORDERS {
        let last = reader.epoch(&common::epoch_options(order)).unwrap().last().unwrap();
        assert_eq!(last.unwrap_err().to_string(), error, "{order}");
    }
}

#[test]
fn a_segment_that_shrinks_while_it_is_open_is_an_error_that_names_the_sample() {
    let made = Shape::plain(4096, vec![1000; 40]).write();
    let reader = made.reader(IoChoice::Buffered);
    reader.get(0).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(made.path().join("00000.seg")).unwrap();
    file.set_len(20_000).unwrap();
    let error = reader.get(39).unwrap_err();
    assert_eq!(error.to_string(), "sample 39 (key \"class 0/39.jpg\"): its bytes cannot be read");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("file ends at 20000, wanted bytes 43096..44096"), "{source}");
    assert!(matches!(reader.get_batch(&[0, 39]), Err(ReadError::Unreadable { ordinal: 39, .. })));
    assert_eq!(reader.get(3).unwrap().payload, made.payload(3));
    let last = reader.epoch(&common::epoch_options(Order::Sequential)).unwrap().last().unwrap();
    assert!(matches!(last, Err(ReadError::Unreadable { .. })));
}

#[test]
fn a_missing_segment_is_reported_by_the_read_that_needs_it() {
    let made = made();
    std::fs::remove_file(made.path().join("00000.seg")).unwrap();
    let reader = Reader::open(made.path(), Default::default()).unwrap();
    let error = reader.get(0).unwrap_err().to_string();
    assert_eq!(error, format!("{}: no such file or directory", made.path().join("00000.seg").display()));
    assert_eq!(reader.get(119).unwrap().payload, made.payload(119));
}
