//! An epoch of a dataset with a large index begins before the index is loaded. It returns the same batches, or, if the
//! index is damaged, right batches until the damage is found. Dropping and forking meanwhile work as at any other time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod common;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use common::ORDERS;
use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, ReadError, Reader, ReaderOptions};
use grainstore_store::{Dataset, StoreError};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

/// 11 MB of entries.
const COUNT: u64 = 700_000;
/// Seconds after which a child that hangs is killed.
const CHILD_PATIENCE_S: u32 = 120;

/// A file that is a whole dataset: segment and index.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.grain");
    let options = WriterOptions { keyed: false, ..WriterOptions::default() };
    let mut writer = DatasetWriter::create(&path, options).unwrap();
    (0..COUNT).for_each(|ordinal| writer.write(Sample::new(vec![], payload(ordinal))).unwrap());
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let [segment] = dataset.segments() else { panic!("one segment was expected") };
    std::fs::read(segment.path()).unwrap()
});

fn payload(ordinal: u64) -> Vec<u8> {
    ordinal.to_le_bytes()[..to_usize(3 + ordinal % 4)].to_vec()
}

/// The bytes of that file: a lone segment.
struct Many {
    folder: TempDir,
}

impl Many {
    fn new(change: impl FnOnce(&mut [u8])) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = FILE.clone();
        change(&mut bytes);
        std::fs::write(folder.path().join("many.seg"), bytes).unwrap();
        Self { folder }
    }

    fn reader(&self) -> Reader {
        Reader::open(self.folder.path().join("many.seg"), ReaderOptions::default()).unwrap()
    }
}

fn options(order: Order) -> EpochOptions {
    EpochOptions { batch_size: NonZeroUsize::new(1000).unwrap(), ..common::epoch_options(order) }
}

/// The number of samples that a test reads of an epoch: few in the full order, where each is read by itself.
fn count_of(order: Order) -> u64 {
    if order == Order::Full { 30_000 } else { COUNT }
}

/// Reads samples of the epoch, up to [`count_of`] or its error, and checks that they are right and in the order of the
/// plan.
fn read(reader: &Reader, order: Order) -> (u64, Option<ReadError>) {
    let mut epoch = reader.epoch(&options(order)).unwrap();
    let mut expected = epoch.plan().ordinals_from(0);
    let mut seen = 0;
    while seen < count_of(order) {
        let Some(batch) = epoch.next_batch() else { break };
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                assert!(epoch.next_batch().is_none());
                return (seen, Some(error));
            }
        };
        for (&ordinal, found) in batch.ordinals().iter().zip(batch.payloads()) {
            assert_eq!(Some(ordinal), expected.next());
            assert!(found == payload(ordinal), "payload of sample {ordinal}");
        }
        seen += batch.len() as u64;
    }
    (seen, None)
}

/// Where the entry of a sample is in the file.
fn entry_offset(ordinal: u64) -> usize {
    let whole = Many::new(|_| {});
    let reader = whole.reader();
    // Two entries, since a payload could contain the bytes of one.
    let words = [ordinal, ordinal + 1].map(|ordinal| {
        let location = reader.collection().locate(ordinal).unwrap();
        [location.offset, u64::from(location.crc) << 32 | location.stored_len].map(u64::to_le_bytes)
    });
    let entries = words.concat().concat();
    FILE.windows(entries.len()).position(|bytes| bytes == entries).unwrap()
}

/// Flips a bit in the middle of the entries.
fn damaged() -> Many {
    let at = entry_offset(COUNT / 2);
    Many::new(|bytes| bytes[at + 9] ^= 1)
}

fn is_damaged_index(error: &ReadError) -> bool {
    matches!(error, ReadError::Store(StoreError::Format { .. })) && error.to_string().contains("section entries")
}

#[test]
fn every_sample_comes_once_in_the_order_of_the_plan() {
    let many = Many::new(|_| {});
    for order in ORDERS {
        let reader = many.reader();
        let (seen, error) = read(&reader, order);
        assert_eq!((seen, error.map(|error| error.to_string())), (count_of(order), None), "{order}");
        reader.load().unwrap();
    }
}

#[test]
fn the_order_is_that_of_a_reader_that_has_loaded_the_index() {
    let many = Many::new(|_| {});
    let (early, late) = (many.reader(), many.reader());
    late.load().unwrap();
    for order in ORDERS {
        let ordinals = |reader: &Reader| {
            let epoch = reader.epoch(&options(order)).unwrap();
            epoch.plan().ordinals_from(COUNT / 2).take(5000).collect::<Vec<_>>()
        };
        assert_eq!(ordinals(&early), ordinals(&late));
    }
}

#[test]
fn a_damaged_index_ends_the_epoch_with_its_error_after_batches_that_are_right() {
    let many = damaged();
    for order in ORDERS {
        let reader = many.reader();
        let (seen, error) = read(&reader, order);
        let error = error.unwrap();
        assert!(seen < count_of(order) && is_damaged_index(&error), "{order}: {error}");
        // From then on the damage is reported at once.
        assert!(is_damaged_index(&reader.load().unwrap_err()));
        assert!(is_damaged_index(&reader.epoch(&options(order)).unwrap_err()));
        assert_eq!(reader.get(7).unwrap().payload, payload(7), "what is whole can be read one by one");
    }
}

#[test]
fn a_damaged_chunk_list_is_refused_at_once() {
    let reader = Many::new(|_| {}).reader();
    let chunk_count = reader.extents().unwrap().count();
    assert!(chunk_count < 4096, "the list has a block");
    // The section after the entries, and their checksums.
    let entries_len = to_usize(16 * COUNT);
    let end = entry_offset(0) + entries_len + 4 * entries_len.div_ceil(65536);
    let many = Many::new(|bytes| bytes[end.next_multiple_of(4096)] ^= 1);
    let reader = many.reader();
    for error in [reader.extents().unwrap_err(), reader.epoch(&options(Order::Full)).unwrap_err()] {
        assert!(error.to_string().contains("section chunks"), "{error}");
    }
}

#[test]
fn readers_and_epochs_may_be_dropped_while_the_index_is_loaded() {
    let many = damaged();
    for order in ORDERS {
        drop(many.reader().epoch(&options(order)).unwrap());
        let reader = many.reader();
        let mut epoch = reader.epoch(&options(order)).unwrap();
        drop(reader);
        let first = epoch.next_batch().unwrap();
        assert!(first.as_ref().map_or_else(is_damaged_index, |batch| batch.len() == 1000), "{first:?}");
    }
}

/// Forks; the child does `work` and ends with or without success. Returns whether it succeeded.
fn in_a_child(work: impl FnOnce(), meanwhile: impl FnOnce()) -> bool {
    // SAFETY: the child does only what the reader supports after a fork, allocates as glibc allows after a fork, and
    // ends without running anything of the test's process.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it only sets a timer.
        unsafe { libc::alarm(CHILD_PATIENCE_S) };
        let done = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: it ends this process, and nothing else.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    }
    meanwhile();
    let mut status = 0;
    // SAFETY: the status is written to a variable that is there.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    child > 0 && ended == child && status == 0
}

#[test]
fn a_child_that_is_forked_while_the_index_is_loaded_loads_it_for_itself() {
    let many = Many::new(|_| {});
    for order in ORDERS {
        let reader = many.reader();
        let mut epoch = reader.epoch(&options(order)).unwrap();
        let in_child = || {
            assert_eq!(reader.get(COUNT - 1).unwrap().payload, payload(COUNT - 1));
            assert_eq!(read(&reader, order).0, count_of(order));
            reader.load().unwrap();
        };
        let batch_count = to_usize(count_of(order) / 1000);
        let in_parent = || assert_eq!(epoch.by_ref().take(batch_count).filter(Result::is_ok).count(), batch_count);
        assert!(in_a_child(in_child, in_parent), "{order}");
    }
}
