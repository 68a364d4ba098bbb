//! Several threads at the same work. The first to fail ends the others.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::ExportError;
use crate::job::ExportJob;

/// Does `work` on `thread_count` threads. Each returns when there is nothing left to do.
pub(crate) fn run(
    job: &ExportJob<'_>,
    thread_count: usize,
    work: impl Fn() -> Result<(), ExportError> + Sync,
) -> Result<(), ExportError> {
    let failure = Mutex::new(None);
    let fail = |error: ExportError| {
        let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that end because of it say that they were stopped, and say so later.
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
