//! Reads by io_uring: a read without an answer is waited for up to the timeout, and cancelled when the engine is
//! dropped, by any thread; one device does not delay another; any number of files and any memory can be used.
//!
//! A pipe is a device that answers when the test writes to it. Where io_uring is blocked, the tests print this and
//! pass.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

mod engines;
mod pipes;

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use grainstore_engine::{
    Buffer, Completion, Engine, FileError, Filled, IoMode, OpenFile, ReadAt, ReadRequest, UringEngine, UringOptions,
    UringOwner, Wait,
};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use tempfile::TempDir;

use engines::{Random, content, request, wait_for_one};
use pipes::{A_WHILE, pipe};

const MIB: usize = 1 << 20;

#[test]
fn a_late_read_ends_its_wait_at_the_timeout_and_is_delivered_when_it_completes() {
    for mut engine in engines() {
        let (pipe, mut writer) = pipe();
        engine.submit(request(&pipe, 0, 100, 7)).unwrap();
        assert!(complete(&mut engine, A_WHILE).is_empty());
        assert!(complete(&mut engine, Wait::None).is_empty());
        assert_eq!(engine.in_flight(), 1);
        writer.write_all(&content(100)).unwrap();
        assert_eq!(wait_for_one(&mut engine).result.unwrap().bytes(), content(100));
    }
}

#[test]
fn a_read_with_short_answers_continues_until_it_is_complete() {
    for mut engine in engines() {
        let (pipe, mut writer) = pipe();
        engine.submit(request(&pipe, 0, 100, 7)).unwrap();
        for bit in content(100)[..90].chunks(30) {
            writer.write_all(bit).unwrap();
            assert!(complete(&mut engine, A_WHILE).is_empty());
        }
        writer.write_all(&content(100)[90..]).unwrap();
        assert_eq!(wait_for_one(&mut engine).result.unwrap().bytes(), content(100));
        assert_eq!(engine.stats().read_bytes, 100);
    }
}

#[test]
fn a_file_that_ends_early_is_an_error_that_reports_its_end() {
    for mut engine in engines() {
        let (pipe, mut writer) = pipe();
        writer.write_all(&[1; 40]).unwrap();
        drop(writer);
        engine.submit(request(&pipe, 0, 100, 7)).unwrap();
        let failed = wait_for_one(&mut engine).result.unwrap_err();
        assert!(matches!(failed.error, FileError::EndOfFile { file_len: 40, .. }), "{}", failed.error);
    }
}

#[test]
fn a_dropped_engine_cancels_its_reads_and_closes_their_files() {
    for mut engine in engines() {
        let (pipes, mut writers): (Vec<_>, Vec<_>) = (0..300).map(|_| pipe()).unzip();
        pipes.iter().for_each(|pipe| engine.submit(request(pipe, 0, 100, 0)).unwrap());
        assert!(complete(&mut engine, A_WHILE).is_empty());
        drop(engine);
        for (pipe, writer) in pipes.iter().zip(&mut writers) {
            assert_eq!(Arc::strong_count(pipe), 1);
            // No read continues: bytes that are written now are not consumed.
            writer.write_all(&[5; 10]).unwrap();
            let mut bytes = [0; 10];
            assert_eq!((pipe.read_at(&mut bytes, 0).unwrap(), bytes), (10, [5; 10]));
        }
    }
}

#[test]
fn another_thread_may_take_over_with_reads_in_flight() {
    let Some(mut engine) = engine() else { return };
    let (pipe, mut writer) = pipe();
    engine.submit(request(&pipe, 0, 100, 7)).unwrap();
    assert!(complete(&mut engine, A_WHILE).is_empty());
    thread::scope(|scope| {
        let mut engine = engine;
        scope.spawn(move || {
            writer.write_all(&content(100)).unwrap();
            assert_eq!(wait_for_one(&mut engine).result.unwrap().bytes(), content(100));
            engine.submit(request(&pipe, 0, 50, 8)).unwrap();
            assert!(complete(&mut engine, A_WHILE).is_empty());
        });
    });
}

#[test]
fn reads_outlive_the_thread_that_began_them() {
    let Some(mut engine) = engine() else { return };
    let (pipes, writers): (Vec<_>, Vec<_>) = (0..50).map(|_| pipe()).unzip();
    let begun = thread::spawn({
        let pipes = pipes.clone();
        move || {
            pipes.iter().for_each(|pipe| engine.submit(request(pipe, 0, 100, 0)).unwrap());
            assert!(complete(&mut engine, A_WHILE).is_empty());
            engine
        }
    });
    let mut engine = begun.join().unwrap();
    assert!(complete(&mut engine, A_WHILE).is_empty());
    for mut writer in writers {
        writer.write_all(&content(100)).unwrap();
        assert_eq!(wait_for_one(&mut engine).result.unwrap().bytes(), content(100));
    }
    assert_eq!(engine.in_flight(), 0);
}

#[test]
fn a_device_has_a_bound_of_bytes_in_flight_and_delays_no_other() {
    let Some(mut engine) = engine_with(UringOptions { in_flight_len_max: 199, ..UringOptions::default() }) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let ((slow, mut slow_writer), (next, mut next_writer)) = (pipe(), pipe());
    next_writer.write_all(&content(100)).unwrap();
    engine.submit(request(&slow, 0, 100, 1)).unwrap();
    engine.submit(request(&next, 0, 100, 2)).unwrap();
    assert!(complete(&mut engine, A_WHILE).is_empty(), "its bytes would be one more than the bound");
    engine.submit(request(&file(&folder, 5000), 0, 5000, 3)).unwrap();
    assert_eq!(wait_for_one(&mut engine).token, 3, "one larger than the bound goes alone");
    slow_writer.write_all(&content(100)).unwrap();
    let tokens: Vec<u64> = complete(&mut engine, Wait::Many(2)).iter().map(|completion| completion.token).collect();
    assert_eq!(tokens, [1, 2]);
}

#[test]
fn more_reads_than_the_ring_holds_are_all_answered() {
    for mut engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let source = file(&folder, 100_000);
        (0..10_000).for_each(|token| engine.submit(request(&source, token * 9, 10, token)).unwrap());
        let mut seen = vec![0; 10_000];
        for Completion { token, result } in complete(&mut engine, Wait::Many(usize::MAX)) {
            let at = usize::try_from(token).unwrap();
            assert_eq!(result.unwrap().bytes(), &content(100_000)[at * 9..][..10]);
            seen[at] += 1;
        }
        assert!(seen.iter().all(|&count| count == 1));
    }
}

#[test]
fn more_files_than_the_kernel_knows_at_a_time_are_read_at_once_and_again() {
    for mut engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        // Each file is filled with another byte.
        let files = (1..=8).map(|number: u8| {
            let path = folder.path().join(format!("{number}.seg"));
            fs::write(&path, vec![number; usize::from(number) * 1000]).unwrap();
            Arc::new(File::open(path).unwrap())
        });
        let files: Vec<_> = files.collect();
        let source = |i: usize| {
            let reader = Shared(Arc::clone(&files[i % 8]));
            Arc::new(OpenFile::from_reader("shared.seg", reader, IoMode::Buffered).unwrap())
        };
        let mut sources: Vec<_> = (0..1500).map(source).collect();
        let mut random = Random(5);
        for round in 0..3 {
            for (source, token) in sources.iter().zip(0..) {
                engine.submit(request(source, 0, 1000, token)).unwrap();
            }
            for Completion { token, result } in complete(&mut engine, Wait::Many(1500)) {
                let file_len = sources[usize::try_from(token).unwrap()].file_len();
                let filled = result.unwrap();
                assert!(filled.bytes().iter().all(|&byte| u64::from(byte) * 1000 == file_len), "{round}: {token}");
            }
            // Some files are dropped, and new ones may get the same addresses.
            (0..700).for_each(|_| drop(sources.swap_remove(random.below(sources.len()))));
            (0..700).for_each(|_| sources.push(source(random.below(8))));
        }
        sources.iter().for_each(|source| assert_eq!(Arc::strong_count(source), 1));
    }
}

#[test]
fn reads_into_registered_memory_are_right_and_memory_without_buffers_is_freed() {
    for mut engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let source = file(&folder, 100_000);
        // It is not registered, and is adjacent to registered memory.
        let [before, slab, after] = [4 * MIB; 3].map(|len| Buffer::try_slab(len).unwrap());
        engine.register(&slab);
        assert_registered(&engine, 4 * MIB);
        let parts = read_in_parts(&mut engine, &source, slab);
        read_in_parts(&mut engine, &source, before);
        read_in_parts(&mut engine, &source, after);
        engine.register(&parts[3]);
        assert_registered(&engine, 4 * MIB);
        let other = Buffer::try_slab(2 * MIB).unwrap();
        drop(parts);
        engine.register(&other);
        assert_registered(&engine, 2 * MIB);
        read_in_parts(&mut engine, &source, other);
    }
}

#[test]
fn memory_registered_by_two_engines_is_freed() {
    let (Some(mut one), Some(mut other)) = (engine(), engine()) else { return };
    let slab = Buffer::try_slab(4 * MIB).unwrap();
    let small = Buffer::with_capacity(4096);
    one.register(&slab);
    other.register(&slab);
    drop(slab);
    for mut engine in [one, other] {
        engine.register(&small);
        assert_registered(&engine, 4096);
    }
}

/// Runs in a separate process, since the limit applies to the whole process.
#[test]
fn reads_without_locked_memory_are_right_and_the_engine_reports_why_they_are_slower() {
    const NAME: &str = "reads_without_locked_memory_are_right_and_the_engine_reports_why_they_are_slower";
    const CHILD: &str = "GRAINSTORE_TEST_WITHOUT_LOCKED_MEMORY";
    if env::var_os(CHILD).is_some() {
        return read_without_locked_memory();
    }
    let this = env::current_exe().unwrap();
    let mut command = if geteuid().is_root() {
        // The superuser may lock any amount of memory, unless it gives up this capability.
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]).arg(this);
        command
    } else {
        Command::new(this)
    };
    match command.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").output() {
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stderr);
            eprintln!("{printed}");
            assert!(output.status.success());
        }
        Err(error) => eprintln!("setpriv: {error}: not tested without locked memory"),
    }
}

fn read_without_locked_memory() {
    let may_lock = |len| setrlimit(Resource::Memlock, Rlimit { current: Some(len), maximum: Some(len) });
    // Enough for a ring, which counts as locked memory too.
    if let Err(error) = may_lock(1 << 20) {
        return eprintln!("RLIMIT_MEMLOCK is below 1 MiB: {error}: not tested");
    }
    let Some(mut engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let slab = Buffer::try_slab(4 * MIB).unwrap();
    engine.register(&slab);
    assert_eq!(
        engine.remarks(),
        [
            "memory is not registered with the kernel (RLIMIT_MEMLOCK allows a user 1048576 bytes, a region has 4194304 bytes): \
          reads cost more CPU time"
        ]
    );
    assert_eq!(engine.stats().registered_bytes, 0);
    read_in_parts(&mut engine, &file(&folder, 100_000), slab);
    may_lock(0).unwrap();
    match UringEngine::new(UringOptions::default()) {
        Ok(_) => eprintln!("this kernel does not count rings as locked memory"),
        Err(why) => {
            let expected = "there is no memory for an io_uring: RLIMIT_MEMLOCK allows a user 0 bytes";
            assert_eq!(why.to_string(), expected);
            eprintln!("tested without locked memory");
        }
    }
}

/// Reads the whole file into parts of the buffer, which come back.
fn read_in_parts(engine: &mut UringEngine, source: &Arc<OpenFile>, mut rest: Buffer) -> Vec<Buffer> {
    const LEN: usize = 10_000;
    let file_len = usize::try_from(source.file_len()).unwrap();
    for at in (0..file_len).step_by(LEN) {
        let tail = rest.split_off(5 * 4096);
        let buffer = std::mem::replace(&mut rest, tail);
        let (source, offset) = (Arc::clone(source), at as u64);
        engine
            .submit(ReadRequest { file: source, offset, len: LEN.min(file_len - at), buffer, token: offset })
            .unwrap();
    }
    let completions = complete(engine, Wait::Many(usize::MAX));
    assert_eq!(completions.len(), file_len.div_ceil(LEN));
    let parts = completions.into_iter().map(|Completion { token, result }| {
        let (filled, at): (Filled, usize) = (result.unwrap(), usize::try_from(token).unwrap());
        assert!(filled.bytes() == &content(file_len)[at..(at + LEN).min(file_len)], "{at}");
        filled.into_buffer()
    });
    parts.collect()
}

/// An engine for any thread.
fn engine() -> Option<UringEngine> {
    engine_with(UringOptions::default())
}

/// An engine for any thread, and one for this thread only.
fn engines() -> impl Iterator<Item = UringEngine> {
    engines_with(UringOptions::default())
}

fn engines_with(options: UringOptions) -> impl Iterator<Item = UringEngine> {
    let owners = [UringOwner::AnyThread, UringOwner::OneThread].into_iter();
    owners.filter_map(move |owner| engine_with(UringOptions { owner, ..options }))
}

fn engine_with(options: UringOptions) -> Option<UringEngine> {
    UringEngine::new(options).inspect_err(|why| eprintln!("{why}: not tested")).ok()
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

fn file(folder: &TempDir, len: usize) -> Arc<OpenFile> {
    let path = folder.path().join("file.seg");
    fs::write(&path, content(len)).unwrap();
    Arc::new(OpenFile::open(path, IoMode::Direct).unwrap())
}

/// A file that reads through the descriptor of another one.
struct Shared(Arc<File>);

impl ReadAt for Shared {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&*self.0, bytes, offset)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}
