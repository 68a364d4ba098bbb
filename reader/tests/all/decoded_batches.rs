//! A small file cannot make a batch of any length: one that decodes to too many bytes is refused before anything is
//! read for it, and smaller batches read the same samples.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::num::NonZeroUsize;

use grainstore_format::Remedy;
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, EpochState, OnDamage, ReadError, Reader, ReaderOptions};
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

use crate::common;

const LARGE_LEN: usize = 64 << 20;
const SMALL_COUNT: u64 = 20;
const LARGE_COUNT: u64 = 17;

/// Small samples, then large ones that LZ4 shrinks to a 255th. Each begins with its ordinal.
fn made() -> (TempDir, Reader) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.grain");
    let options = WriterOptions { compression: Compression::Lz4, keyed: false, ..WriterOptions::default() };
    let mut writer = DatasetWriter::create(&path, options).unwrap();
    let mut payload = vec![0; LARGE_LEN];
    for ordinal in 0..SMALL_COUNT + LARGE_COUNT {
        let len = if ordinal < SMALL_COUNT { 4000 } else { LARGE_LEN };
        payload[..8].copy_from_slice(&ordinal.to_le_bytes());
        writer.write(Sample::new("", payload[..len].to_vec())).unwrap();
    }
    writer.finish().unwrap();
    let reader = Reader::open(&path, ReaderOptions::default()).unwrap();
    (folder, reader)
}

fn options(batch_size: usize, resume: Option<EpochState>) -> EpochOptions {
    let batch_size = NonZeroUsize::new(batch_size).unwrap();
    EpochOptions { batch_size, resume, on_damage: OnDamage::Skip, ..common::epoch_options(Order::Sequential) }
}

fn assert_refused(error: ReadError, at: Option<u64>) {
    assert_eq!(error.remedy(), Some(Remedy::UseSmallerBatch));
    let ReadError::LargeBatch { position, payload_len, payload_len_max, .. } = error else { panic!("{error}") };
    assert_eq!((position, payload_len_max), (at, 1 << 30));
    assert!(payload_len > 1 << 30);
}

#[test]
fn a_batch_that_decodes_to_too_much_is_refused_and_smaller_ones_resume_there() {
    let (_folder, reader) = made();
    // The ordinals that were returned, and the error that ended the epoch.
    let run = |options: &EpochOptions| {
        let mut epoch = reader.epoch(options).unwrap();
        let mut ordinals = Vec::new();
        let error = loop {
            match epoch.next_batch() {
                Some(Ok(batch)) => {
                    assert!(batch.skipped().is_empty());
                    assert!(batch.payloads().zip(batch.ordinals()).all(|(p, o)| p[..8] == o.to_le_bytes()));
                    ordinals.extend_from_slice(batch.ordinals());
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        (ordinals, error, epoch.state())
    };
    let (ordinals, error, state) = run(&options(20, None));
    assert_eq!((ordinals, state.position()), ((0..SMALL_COUNT).collect(), SMALL_COUNT));
    assert_refused(error.unwrap(), Some(SMALL_COUNT));
    let (ordinals, error, _) = run(&options(4, Some(state)));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(ordinals, (SMALL_COUNT..SMALL_COUNT + LARGE_COUNT).collect::<Vec<_>>());
}

#[test]
fn a_rank_is_refused_its_own_batches_only() {
    let (_folder, reader) = made();
    // In the sequential order, the second rank has the second half: all of the large samples.
    let first_batch = |rank| {
        let mut epoch = reader.epoch(&EpochOptions { rank, world: 2, ..options(20, None) }).unwrap();
        epoch.next_batch().unwrap()
    };
    assert_eq!(first_batch(0).unwrap().len(), 19);
    assert_refused(first_batch(1).unwrap_err(), Some(19));
}

#[test]
fn samples_that_are_requested_at_once_have_the_same_bound() {
    let (_folder, reader) = made();
    let large: Vec<u64> = (SMALL_COUNT..SMALL_COUNT + LARGE_COUNT).collect();
    assert_refused(reader.get_batch(&large).unwrap_err(), None);
    // A sample that is requested twice is decoded once.
    let twice = reader.get_batch(&[large[0]; 40]).unwrap();
    assert_eq!((twice.len(), twice.block().len()), (40, LARGE_LEN));
    assert_eq!(reader.get(large[3]).unwrap().payload[..8], large[3].to_le_bytes());
}
