//! Runs the same work on several threads. The first error stops the others.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::ExportError;
use crate::job::ExportJob;

/// Calls `work` on `thread_count` threads. Each call returns when there is nothing left to do.
pub(crate) fn run(
    job: &ExportJob<'_>,
    thread_count: usize,
    work: impl Fn() -> Result<(), ExportError> + Sync,
) -> Result<(), ExportError> {
    let failure = Mutex::new(None);
    let fail = |error: ExportError| {
        let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
        // The threads that stop because of it report `Interrupted`, and later than this one.
        first.get_or_insert(error);
        job.fail();
    };
    thread::scope(|scope| {
        for _ in 0..thread_count.max(1) {
            let worker = || work().unwrap_or_else(fail);
            if let Err(source) = thread::Builder::new().name("grain-export".into()).spawn_scoped(scope, worker) {
                fail(ExportError::Threads { source });
            }
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
