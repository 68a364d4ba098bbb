//! An engine for one thread: it belongs to the thread that first asks for completions, moves to another thread while
//! nothing is in flight, and otherwise refuses every other thread and loses no read.
//!
//! Where io_uring is blocked, or too old for such rings, the tests print this and pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

mod engines;
mod pipes;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use grainstore_engine::{
    Buffer, Completion, Engine, EngineError, IoMode, OpenFile, ReadRequest, UringEngine, UringOptions, UringOwner, Wait,
};
use tempfile::TempDir;

use engines::{PATIENCE, content, request, wait_for_one};
use pipes::{A_WHILE, elsewhere, has_rings_of_one_thread, pipe};

const FILE_LEN: usize = 100_000;
const SLAB_LEN: usize = 4 << 20;

#[test]
fn an_engine_belongs_to_the_thread_that_uses_it_and_not_to_the_one_that_made_it() {
    let Some(mut engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    let slab = Buffer::try_slab(SLAB_LEN).unwrap();
    engine.register(&slab);
    engine.submit(into(slab, &source)).unwrap();
    elsewhere(|| assert_eq!(bytes(wait_for_one(&mut engine)), content(FILE_LEN)));
    // It does not count as in flight any more either.
    engine.submit(request(&source, 10, 5000, 2)).unwrap();
    assert_eq!(bytes(wait_for_one(&mut engine)), content(FILE_LEN)[10..5010]);
}

#[test]
fn an_engine_without_reads_moves_from_thread_to_thread_with_its_registrations() {
    let Some(mut engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    let mut slab = Buffer::try_slab(SLAB_LEN).unwrap();
    engine.register(&slab);
    for _ in 0..4 {
        slab = elsewhere(|| {
            engine.submit(into(slab, &source)).unwrap();
            let filled = wait_for_one(&mut engine).result.unwrap();
            assert_eq!(filled.bytes(), content(FILE_LEN));
            assert_registered(&engine, SLAB_LEN);
            filled.into_buffer()
        });
    }
    // `register` moves the engine too, and drops registrations without buffers.
    drop(slab);
    engine.register(&Buffer::with_capacity(4096));
    assert_registered(&engine, 4096);
    assert_eq!(engine.stats().request_count, 4);
}

#[test]
fn another_thread_is_refused_while_reads_are_in_flight_and_the_first_thread_gets_them() {
    let Some(mut engine) = engine().filter(|_| has_rings_of_one_thread()) else { return };
    let (pipe, mut writer) = pipe();
    engine.submit(request(&pipe, 0, 100, 1)).unwrap();
    assert!(complete(&mut engine, A_WHILE).is_empty());
    elsewhere(|| {
        let mut out = Vec::new();
        engine.submit(request(&pipe, 0, 0, 2)).unwrap();
        engine.register(&Buffer::with_capacity(4096));
        for wait in [Wait::None, Wait::One, A_WHILE] {
            let error = engine.complete(wait, &mut out).unwrap_err();
            assert!(matches!(error, EngineError::Broken { .. }), "{error}");
            let why = error.source().unwrap().to_string();
            assert_eq!(why, "another thread has reads in flight, and only that thread may complete them");
        }
        assert!(out.is_empty() && engine.in_flight() == 2);
    });
    writer.write_all(&content(100)).unwrap();
    let mut completions = complete(&mut engine, Wait::Many(2));
    completions.sort_by_key(|completion| completion.token);
    assert_eq!(completions.into_iter().map(bytes).collect::<Vec<_>>(), [content(100), Vec::new()]);
    elsewhere(|| assert!(complete(&mut engine, Wait::None).is_empty()));
}

#[test]
fn an_engine_dropped_by_another_thread_cancels_its_reads_and_closes_their_files() {
    let Some(mut engine) = engine() else { return };
    let (pipes, mut writers): (Vec<_>, Vec<_>) = (0..300).map(|_| pipe()).unzip();
    pipes.iter().for_each(|pipe| engine.submit(request(pipe, 0, 100, 0)).unwrap());
    assert!(complete(&mut engine, A_WHILE).is_empty());
    elsewhere(|| drop(engine));
    assert_no_read_continues(&pipes, &mut writers);
}

#[test]
fn an_engine_whose_thread_has_ended_can_be_dropped_and_without_reads_be_used() {
    let (Some(mut idle), Some(mut busy)) = (engine(), engine()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    let (pipes, mut writers): (Vec<_>, Vec<_>) = (0..50).map(|_| pipe()).unzip();
    elsewhere(|| {
        idle.submit(request(&source, 0, FILE_LEN, 0)).unwrap();
        assert_eq!(bytes(wait_for_one(&mut idle)), content(FILE_LEN));
        pipes.iter().for_each(|pipe| busy.submit(request(pipe, 0, 100, 0)).unwrap());
        assert!(complete(&mut busy, A_WHILE).is_empty());
    });
    idle.submit(request(&source, 1, 4096, 0)).unwrap();
    assert_eq!(bytes(wait_for_one(&mut idle)), content(FILE_LEN)[1..4097]);
    drop(busy);
    assert_no_read_continues(&pipes, &mut writers);
}

#[test]
fn a_caller_that_does_not_wait_gets_what_has_arrived() {
    let Some(mut engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = file(&folder);
    (0..90).for_each(|token| engine.submit(request(&source, token * 1000, 4000, token)).unwrap());
    let begin = Instant::now();
    let mut seen = Vec::new();
    while engine.in_flight() > 0 {
        assert!(begin.elapsed() < PATIENCE, "{} are in flight for ever", engine.in_flight());
        seen.extend(complete(&mut engine, Wait::None));
        thread::yield_now();
    }
    for completion in seen {
        let at = usize::try_from(completion.token).unwrap() * 1000;
        assert_eq!(bytes(completion), content(FILE_LEN)[at..at + 4000]);
    }
}

fn engine() -> Option<UringEngine> {
    let options = UringOptions { owner: UringOwner::OneThread, ..UringOptions::default() };
    UringEngine::new(options).inspect_err(|why| eprintln!("{why}: not tested")).ok()
}

/// Checks that no read continues: bytes that are written now are not consumed.
fn assert_no_read_continues(pipes: &[Arc<OpenFile>], writers: &mut [impl Write]) {
    for (pipe, writer) in pipes.iter().zip(writers) {
        assert_eq!(Arc::strong_count(pipe), 1);
        writer.write_all(&[5; 10]).unwrap();
        let mut bytes = [0; 10];
        assert_eq!((pipe.read_at(&mut bytes, 0).unwrap(), bytes), (10, [5; 10]));
    }
}

/// Other programs of the same user may have used up its locked memory.
fn assert_registered(engine: &UringEngine, len: usize) {
    match &engine.remarks()[..] {
        [] => assert_eq!(engine.stats().registered_bytes, len as u64),
        why => eprintln!("{why:?}: not tested"),
    }
}

fn complete(engine: &mut UringEngine, wait: Wait) -> Vec<Completion> {
    let mut out = Vec::new();
    engine.complete(wait, &mut out).unwrap();
    out
}

fn bytes(completion: Completion) -> Vec<u8> {
    completion.result.unwrap().bytes().to_vec()
}

fn into(buffer: Buffer, source: &Arc<OpenFile>) -> ReadRequest {
    ReadRequest { file: Arc::clone(source), offset: 0, len: FILE_LEN, buffer, token: 0 }
}

fn file(folder: &TempDir) -> Arc<OpenFile> {
    let path = folder.path().join("file.seg");
    fs::write(&path, content(FILE_LEN)).unwrap();
    Arc::new(OpenFile::open(path, IoMode::Direct).unwrap())
}
