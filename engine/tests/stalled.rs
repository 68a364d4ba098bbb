//! A dropped engine whose reads do not end abandons them after a timeout, and leaks the memory that they may still
//! write to.
//!
//! The test makes a ring for one thread, drops it in another thread, and keeps it open in a forked process: then no
//! thread may cancel its reads. (For a read that the ring's own thread cannot cancel, a device would have to hang.)
#![cfg(target_os = "linux")]

mod engines;
mod pipes;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use grainstore_engine::{Engine, UringEngine, UringOptions, UringOwner};

use engines::request;
use pipes::{A_WHILE, elsewhere, has_rings_of_one_thread, pipe};

/// Seconds after which a child that hangs is killed.
const CHILD_PATIENCE_S: u32 = 60;

#[test]
fn memory_of_an_abandoned_read_is_never_used_again() {
    if !has_rings_of_one_thread() {
        return;
    }
    let options =
        UringOptions { owner: UringOwner::OneThread, drain_max: Duration::from_millis(20), ..UringOptions::default() };
    let mut engine = UringEngine::new(options).unwrap();
    let (source, mut writer) = pipe();
    engine.submit(request(&source, 0, 100, 0)).unwrap();
    engine.complete(A_WHILE, &mut Vec::new()).unwrap();
    let (mut until, end) = io::pipe().unwrap();
    // SAFETY: the child waits for a byte or the pipe's end, and ends without running anything of the test's process.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: it only sets a timer.
            unsafe { libc::alarm(CHILD_PATIENCE_S) };
            let waited = until.read_exact(&mut [0]);
            // SAFETY: it ends this process, and nothing else.
            unsafe { libc::_exit(i32::from(waited.is_err())) };
        }
        child => {
            assert!(child > 0, "no fork");
            elsewhere(|| drop(engine));
            let holders = Arc::strong_count(&source);
            // The read continues, into memory that nothing else uses.
            writer.write_all(&[5; 100]).unwrap();
            (&end).write_all(&[0]).unwrap();
            let mut status = 0;
            // SAFETY: the status is written to a variable that is there.
            let ended = unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!((ended, status), (child, 0));
            assert_eq!(holders, 2, "the read's buffer and file are still its own");
        }
    }
}
