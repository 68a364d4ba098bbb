//! Buffered reads that leave nothing in the page cache if the system supports this; otherwise a notice reports it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

mod common;

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Made, ORDERS, Shape};
use grainstore_format::{Alignment, to_usize};
use grainstore_reader::engine::{Buffer, IoMode, OpenFile, ReadAt, ReadRequest, read_now};
use grainstore_reader::{IoChoice, Reader, ReaderOptions};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

const PAGE_LEN: u64 = 4096;
/// The pages of the payloads: the header is before them, and after them is the index, which is read in the usual way.
const DATA: Range<u64> = 1..600;

fn made() -> Made {
    Shape { alignment: Alignment::PACKED, ..Shape::plain(1 << 18, vec![3073; 1000]) }.write()
}

fn reader(made: &Made, dont_cache: bool) -> Reader {
    let options = ReaderOptions { io: IoChoice::Buffered, threads: 3, dont_cache, ..ReaderOptions::default() };
    Reader::open(made.path(), options).unwrap()
}

/// Drops the file's pages from the page cache.
fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// How many of some pages are in the page cache; `None` if the file system does not report it. Each page is queried
/// once: a query brings that page into the cache, not others.
fn cached_count(path: &Path, pages: Range<u64>) -> Option<usize> {
    let file = File::open(path).unwrap();
    fadvise(&file, 0, None, Advice::Random).unwrap();
    let is_cached = |page: u64| {
        let mut byte = [0];
        match preadv2(&file, &mut [IoSliceMut::new(&mut byte)], page * PAGE_LEN, ReadWriteFlags::NOWAIT) {
            Ok(read_len) => Some(read_len),
            Err(Errno::AGAIN) => Some(0),
            Err(error) => {
                eprintln!("the contents of the page cache are not available here: {error}");
                None
            }
        }
    };
    pages.map(is_cached).sum()
}

/// Reads the samples in `DATA` in every way.
fn read_all(made: &Made, reader: &Reader) {
    (0..1000).for_each(|ordinal| assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal)));
    made.check(&reader.get_batch(&(0..1000).step_by(3).collect::<Vec<_>>()).unwrap());
    for order in ORDERS {
        reader.epoch(&common::epoch_options(order)).unwrap().for_each(|batch| made.check(&batch.unwrap()));
    }
}

#[test]
fn uncached_reads_leave_no_page_behind() {
    let made = made();
    let path = made.path().join("00000.seg");
    let reader = reader(&made, true);
    // The kernel keeps pages that another read is using at that moment, in large groups. So an attempt may leave some
    // pages behind. Cached reads leave all of them, each time.
    let leaves_none = |_| {
        evict(&path);
        read_all(&made, &reader);
        matches!(cached_count(&path, DATA), None | Some(0))
    };
    let is_shown = (0..10).any(leaves_none);
    if let [notice] = reader.notices().as_slice() {
        return eprintln!("what stays in the page cache is not checked here: {notice}");
    }
    assert!(is_shown);
}

#[test]
fn other_reads_leave_their_pages_behind() {
    let made = made();
    let path = made.path().join("00000.seg");
    evict(&path);
    let reader = reader(&made, false);
    read_all(&made, &reader);
    assert!(reader.notices().is_empty());
    let cached_count = cached_count(&path, DATA);
    assert!(cached_count.is_none_or(|count| count == DATA.count()), "{cached_count:?}");
}

/// A file system that refuses uncached reads.
struct Refusing {
    errno: i32,
    refused_count: Arc<AtomicUsize>,
    reads: Arc<Mutex<Vec<u64>>>,
}

impl ReadAt for Refusing {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.lock().unwrap().push(offset);
        bytes.fill(7);
        Ok(bytes.len())
    }

    fn read_uncached_at(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        self.refused_count.fetch_add(1, Ordering::SeqCst);
        Err(io::Error::from_raw_os_error(self.errno))
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(10_000)
    }
}

#[test]
fn a_file_whose_uncached_reads_are_refused_continues_without_them_and_reports_it() {
    for errno in [Errno::OPNOTSUPP, Errno::INVAL].map(Errno::raw_os_error) {
        let (refused_count, reads) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let device = Refusing { errno, refused_count: Arc::clone(&refused_count), reads: Arc::clone(&reads) };
        let source = OpenFile::from_reader("device.seg", device, IoMode::Buffered).unwrap().with_dont_cache();
        let source = Arc::new(source);
        assert!(source.dont_cache() && !source.dont_cache_refused());
        for offset in [0, 5000] {
            let buffer = Buffer::with_capacity(4096);
            let request = ReadRequest { file: Arc::clone(&source), offset, len: 100, buffer, token: 0 };
            assert_eq!(read_now(request).result.unwrap().bytes(), [7; 100]);
        }
        assert!(!source.dont_cache() && source.dont_cache_refused());
        assert_eq!((refused_count.load(Ordering::SeqCst), to_usize(reads.lock().unwrap()[1])), (1, 5000));
    }
}

#[test]
fn other_errors_of_such_reads_are_errors() {
    let device = Refusing { errno: 5, refused_count: Arc::default(), reads: Arc::default() };
    let source = Arc::new(OpenFile::from_reader("device.seg", device, IoMode::Buffered).unwrap().with_dont_cache());
    let request =
        ReadRequest { file: Arc::clone(&source), offset: 0, len: 100, buffer: Buffer::with_capacity(100), token: 0 };
    assert!(read_now(request).result.is_err());
    assert!(source.dont_cache());
}
