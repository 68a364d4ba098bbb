//! One suite for all engines: every byte is right, every request is completed once, every error has its offset, every
//! buffer is given back. It runs on each engine with buffered and with direct files, and on a hostile engine that
//! reorders, delays and fails requests.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use grainstore_engine::{BLOCK_LEN, Buffer, EngineStats, IoMode, OpenFile, ReadRequest, Wait};

use crate::engines::{Files, Random, Run, SUBJECTS, cause, complete_one, wait_for_one};

/// Not a multiple of anything.
const FILE_LEN: usize = 300_007;

#[test]
fn delivers_every_range_between_edges_of_blocks_and_the_end_of_the_file() {
    for subject in &SUBJECTS {
        for file_len in [1, 511, 4096, 5000, 8192, FILE_LEN] {
            let files = Files::new();
            let source = files.open(file_len, subject);
            let edges = edges(file_len);
            let mut run = Run::new(subject);
            for (i, &from) in edges.iter().enumerate() {
                edges[i..].iter().for_each(|&to| run.submit(&source, from, to - from));
            }
            run.finish();
        }
    }
}

#[test]
fn completes_every_request_once_with_hundreds_in_flight() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let sources = [files.open(FILE_LEN, subject), files.open(70_001, subject)];
        let mut run = Run::new(subject);
        let mut random = Random(7);
        for i in 0..1500 {
            let source = &sources[i % 2];
            let file_len = usize::try_from(source.file_len()).unwrap();
            let offset = random.below(file_len);
            run.submit(source, offset, random.below((file_len - offset).min(40_000)));
            if random.below(5) == 0 {
                run.complete(Wait::None);
            }
        }
        run.finish();
    }
}

#[test]
fn a_range_past_the_end_of_the_file_fails_with_its_offset_and_returns_the_buffer() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(5000, subject);
        for (offset, len) in [(0, 5001), (4999, 2), (5000, 1), (1 << 40, 4096), (u64::MAX, 1), (u64::MAX - 4096, 8192)]
        {
            let failed = complete_one(subject.make, &source, offset, len).unwrap_err();
            let end = offset.saturating_add(len as u64);
            let expected = format!("{}: file ends at 5000, wanted bytes {offset}..{end}", source.path().display());
            assert_eq!(failed.error.to_string(), expected, "{}", subject.name);
            assert!(failed.buffer.capacity() >= 4096);
        }
    }
}

#[test]
fn a_request_for_no_bytes_is_completed_with_none() {
    for subject in SUBJECTS.iter().filter(|subject| !subject.hostile) {
        let files = Files::new();
        let source = files.open(5000, subject);
        for offset in [0, 17, 5000, u64::MAX] {
            let mut engine = (subject.make)();
            let buffer = Buffer::with_capacity(0);
            engine.submit(ReadRequest { file: Arc::clone(&source), offset, len: 0, buffer, token: 3 }).unwrap();
            assert_eq!(engine.in_flight(), 1);
            let mut out = Vec::new();
            engine.complete(Wait::None, &mut out).unwrap();
            assert_eq!((out.len(), out[0].token, engine.in_flight()), (1, 3, 0), "without any waiting");
            assert!(out[0].result.as_ref().unwrap().bytes().is_empty());
            assert_eq!(engine.stats().read_bytes, 0);
        }
    }
}

#[test]
fn a_buffer_that_is_too_small_is_an_error_and_not_a_shorter_read() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(20_000, subject);
        let mut engine = (subject.make)();
        let buffer = Buffer::with_capacity(4096);
        engine.submit(ReadRequest { file: Arc::clone(&source), offset: 4096, len: 4097, buffer, token: 0 }).unwrap();
        let failed = wait_for_one(engine.as_mut()).result.unwrap_err();
        let needed = source.buffer_len(4096, 4097);
        let expected =
            format!("{}: bytes 4096..8193 need a buffer of {needed} bytes, it holds 4096", source.path().display());
        assert_eq!(failed.error.to_string(), expected);
        assert_eq!(failed.buffer.capacity(), 4096);
    }
}

#[test]
fn waiting_with_nothing_in_flight_returns_at_once_with_nothing() {
    for subject in &SUBJECTS {
        let (mut engine, mut out) = ((subject.make)(), Vec::new());
        engine.complete(Wait::One, &mut out).unwrap();
        engine.complete(Wait::None, &mut out).unwrap();
        assert!(out.is_empty() && engine.in_flight() == 0, "{}", subject.name);
    }
}

#[test]
fn dropping_an_engine_with_requests_in_flight_ends_and_closes_their_files() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        (0..500).for_each(|i| run.submit(&source, i * 100, 20_000));
        run.complete(Wait::One);
        drop(run);
        assert_eq!(Arc::strong_count(&source), 1, "{}", subject.name);
    }
}

#[test]
fn a_few_recycled_buffers_serve_many_requests() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        for i in 0..400 {
            run.submit(&source, i * 700, 9000);
            while run.engine.in_flight() >= 8 {
                run.complete(Wait::One);
            }
        }
        assert!(run.places.len() <= 8, "{}: {} buffers for 8 requests at a time", subject.name, run.places.len());
        run.finish();
    }
}

#[test]
fn statistics_show_the_read_amplification() {
    for subject in SUBJECTS.iter().filter(|subject| !subject.hostile) {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        [(0, 4096), (4095, 2), (8192, 100), (FILE_LEN - 1, 1)]
            .into_iter()
            .for_each(|(at, len)| run.submit(&source, at, len));
        let stats = run.finish();
        let read_bytes = match source.mode() {
            IoMode::Buffered | IoMode::Mapped => 4096 + 2 + 100 + 1,
            // The last block of the file ends with it.
            IoMode::Direct => 4096 + 2 * 4096 + 4096 + FILE_LEN % BLOCK_LEN,
        };
        assert_eq!(
            stats,
            EngineStats { registered_bytes: 0, request_count: 4, wanted_bytes: 4199, read_bytes: read_bytes as u64 }
        );
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for mode in [IoMode::Direct, IoMode::Buffered] {
        let err = OpenFile::open("/nowhere/00001.seg", mode).unwrap_err();
        assert_eq!(err.to_string(), "/nowhere/00001.seg: cannot open the file");
        assert_eq!(cause(&err).kind(), io::ErrorKind::NotFound);
    }
}
/// Offsets near the edges of sectors, blocks and pages, and near the file's end.
fn edges(file_len: usize) -> Vec<usize> {
    let beside = |edge: usize| [edge.saturating_sub(1), edge, edge + 1];
    let edges = [0, 512, 4096, 8192, 65_536, file_len & !4095, file_len].into_iter().flat_map(beside);
    edges.filter(|&edge| edge <= file_len).collect::<BTreeSet<_>>().into_iter().collect()
}
