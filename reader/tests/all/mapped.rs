//! Mapped files: every engine lends their bytes without a copy, and a dataset reads the same through them.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

use std::fs;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grainstore_reader::engine::{
    Buffer, Completion, Engine, EngineStats, Failed, FileError, Filled, IoMode, MappedEngine, OpenFile, PreadEngine,
    ReadRequest, Wait, read_now,
};
use grainstore_reader::{IoChoice, ReaderOptions};

use crate::common::{self, ORDERS, Random, Shape};

/// Not a multiple of a page.
const FILE_LEN: usize = 300_007;

fn content(len: usize) -> Vec<u8> {
    Random(5).bytes(len)
}

fn source_at(path: &Path, len: usize, mode: IoMode) -> Arc<OpenFile> {
    fs::write(path, content(len)).unwrap();
    Arc::new(OpenFile::open(path, mode).unwrap())
}

fn request(source: &Arc<OpenFile>, range: Range<u64>) -> ReadRequest {
    let len = usize::try_from(range.end - range.start).unwrap();
    let buffer = Buffer::with_capacity(source.buffer_len(range.start, len));
    ReadRequest { file: Arc::clone(source), offset: range.start, len, buffer, token: range.end }
}

fn engines() -> [Box<dyn Engine>; 2] {
    [Box::new(MappedEngine::new()), Box::new(PreadEngine::new(NonZeroUsize::MIN).unwrap())]
}

/// The completion of a request, which must be available without waiting.
fn complete(engine: &mut dyn Engine, request: ReadRequest) -> Result<Filled, Failed> {
    let token = request.token;
    engine.submit(request).unwrap();
    assert_eq!(engine.in_flight(), 1);
    let mut out: Vec<Completion> = Vec::new();
    engine.complete(Wait::None, &mut out).unwrap();
    assert_eq!((out.len(), out[0].token, engine.in_flight()), (1, token, 0));
    out.remove(0).result
}

#[test]
fn every_engine_lends_the_bytes_of_a_mapped_file_at_once_and_needs_no_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let source = source_at(&folder.path().join("a.seg"), FILE_LEN, IoMode::Mapped);
    assert_eq!((source.mode(), source.fell_back(), source.buffer_len(4095, 70_000)), (IoMode::Mapped, false, 0));
    let (expected, file_len) = (content(FILE_LEN), FILE_LEN as u64);
    let mut random = Random(9);
    for mut engine in engines() {
        let mut wanted_bytes = 0;
        for _ in 0..200 {
            let (a, b) = (random.below(file_len + 1), random.below(file_len + 1));
            let range = a.min(b)..a.max(b);
            let filled = complete(engine.as_mut(), request(&source, range.clone())).unwrap();
            let bytes = filled.bytes();
            assert!(bytes == &expected[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]);
            let lent = source.mapped(range.clone()).unwrap();
            assert!(range.is_empty() || bytes.as_ptr() == lent.as_ptr(), "not copied");
            assert_eq!((filled.wanted(), filled.into_buffer().capacity()), (0..0, 0));
            wanted_bytes += range.end - range.start;
        }
        let read_bytes = wanted_bytes;
        let stats = EngineStats { request_count: 200, wanted_bytes, read_bytes, registered_bytes: 0 };
        assert_eq!(engine.stats(), stats, "{}", engine.name());
    }
}

#[test]
fn lent_bytes_outlive_the_engine_and_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.seg");
    let source = source_at(&path, FILE_LEN, IoMode::Mapped);
    let filled = read_now(request(&source, 1..FILE_LEN as u64)).result.unwrap();
    drop(source);
    fs::remove_file(path).unwrap();
    assert!(filled.bytes() == &content(FILE_LEN)[1..]);
}

#[test]
fn a_range_past_the_end_of_a_mapped_file_is_an_error_with_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    // A file that was truncated before it was opened: the caller expects more bytes.
    let path = folder.path().join("cut.seg");
    fs::write(&path, content(9000)).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
    let source = Arc::new(OpenFile::open(&path, IoMode::Mapped).unwrap());
    for mut engine in engines() {
        for range in [0..5001, 4999..5001, 5000..9000, 1 << 40..1 << 41, u64::MAX - 1..u64::MAX] {
            let failed = complete(engine.as_mut(), request(&source, range.clone())).unwrap_err();
            assert!(matches!(failed.error, FileError::EndOfFile { file_len: 5000, .. }), "{}", failed.error);
            let expected =
                format!("{}: file ends at 5000, wanted bytes {}..{}", path.display(), range.start, range.end);
            assert_eq!(failed.error.to_string(), expected);
        }
        assert_eq!((engine.stats().wanted_bytes, engine.stats().read_bytes), (0, 0));
    }
}

#[test]
fn an_empty_file_maps_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = source_at(&folder.path().join("empty.seg"), 0, IoMode::Mapped);
    for mut engine in engines() {
        assert!(complete(engine.as_mut(), request(&source, 0..0)).unwrap().bytes().is_empty());
        assert!(complete(engine.as_mut(), request(&source, 0..1)).is_err());
    }
}

#[test]
fn the_engine_of_mapped_files_reads_others_too() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [IoMode::Buffered, IoMode::Direct] {
        let source = source_at(&folder.path().join("a.seg"), FILE_LEN, mode);
        let mut engine = MappedEngine::new();
        let filled = complete(&mut engine, request(&source, 4097..20_000)).unwrap();
        assert!(filled.bytes() == &content(FILE_LEN)[4097..20_000]);
        assert_eq!(engine.stats().wanted_bytes, 20_000 - 4097);
        assert!(complete(&mut engine, request(&source, 0..FILE_LEN as u64 + 1)).is_err());
    }
}

/// A file of sysfs, which has a length and cannot be mapped.
#[test]
fn a_file_that_cannot_be_mapped_is_an_error_of_its_own() {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return eprintln!("no file here that cannot be mapped");
    }
    let error = OpenFile::open(path, IoMode::Mapped).unwrap_err();
    assert!(matches!(error, FileError::Map { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("{path}: cannot map the file into memory")), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_mapped_dataset_reports_it_and_its_epochs_use_the_mapped_engine() {
    let made = Shape::plain(4096, vec![900; 300]).write();
    let reader = made.reader(IoChoice::Mapped);
    assert_eq!((reader.io().to_string(), reader.notices()), ("mapped: it was requested".to_owned(), vec![]));
    for order in ORDERS {
        let mut epoch = reader.epoch(&common::epoch_options(order)).unwrap();
        epoch.by_ref().for_each(|batch| made.check(&batch.unwrap()));
        let stats = epoch.stats();
        assert_eq!((stats.engine, stats.io), ("mapped", IoMode::Mapped), "{order}");
    }
    let options = ReaderOptions { io: IoChoice::Mapped, dont_cache: true, ..ReaderOptions::default() };
    let reader = grainstore_reader::Reader::open(made.path(), options).unwrap();
    assert_eq!(reader.get(7).unwrap().payload, made.payload(7));
    assert!(reader.notices().is_empty(), "mapped files are not read, so nothing is refused");
}

#[test]
fn a_damaged_sample_whose_path_leads_to_a_pipe_meanwhile_is_an_error_at_once() {
    let made = Shape::plain(4096, vec![1000; 40]).write();
    made.flip(39, 5);
    let reader = made.reader(IoChoice::Mapped);
    reader.get(0).unwrap();
    let path = made.path().join("00000.seg");
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // With a writer, to open the pipe does not wait, whoever does it.
    let _writer = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let error = reader.get(39).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(matches!(source.downcast_ref(), Some(FileError::Open { .. })), "{source}");
}
