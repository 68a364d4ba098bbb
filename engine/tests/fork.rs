//! A forked process has the engine's memory, but the engine belongs to its parent: every call in the child returns an
//! error, dropping the engine there has no effect on the parent, and all reads of the parent complete.
#![cfg(target_os = "linux")]

mod engines;

use std::panic::{AssertUnwindSafe, catch_unwind};

use grainstore_engine::{EngineError, Wait};

use engines::{Files, Run, SUBJECTS, request};

/// Seconds after which a child that hangs is killed.
const CHILD_PATIENCE_S: u32 = 60;

#[test]
fn a_fork_leaves_the_reads_in_flight_to_the_parent_and_the_child_without_an_engine() {
    for subject in SUBJECTS.iter().filter(|subject| !subject.hostile) {
        let files = Files::new();
        let source = files.open(300_007, subject);
        let mut run = Run::new(subject);
        (0..500).for_each(|i| run.submit(&source, i * 100, 20_000));
        run.complete(Wait::None);
        let late = request(&source, 0, 100, 0);
        // SAFETY: the child calls only what the engine supports after a fork, allocates as glibc allows after a fork,
        // and ends without running anything of the test's process.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: it only sets a timer.
                unsafe { libc::alarm(CHILD_PATIENCE_S) };
                let done = catch_unwind(AssertUnwindSafe(|| {
                    let mut out = Vec::new();
                    let completed = run.engine.complete(Wait::One, &mut out);
                    assert!(matches!(completed, Err(EngineError::Forked { .. })) && out.is_empty());
                    assert!(matches!(run.engine.submit(late), Err(EngineError::Forked { .. })));
                    drop(run);
                }));
                // SAFETY: it ends this process, and nothing else.
                unsafe { libc::_exit(i32::from(done.is_err())) };
            }
            child => assert_eq!(status_of(child), 0, "{}", subject.name),
        }
        run.finish();
    }
}

/// Waits for a child to end.
fn status_of(child: libc::pid_t) -> i32 {
    assert!(child > 0, "no fork");
    let mut status = 0;
    // SAFETY: the status is written to a variable that is there.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(ended, child);
    status
}
