//! Threads for one piece of work.
//!
//! The process-wide pool is not used: its threads do not exist in a child after `fork`, and work for it would wait
//! forever.

use std::sync::{Mutex, PoisonError};

use crate::StoreError;

/// The largest number of threads: more do not load an index faster.
const MAX_THREADS: usize = 16;

/// Distributes `items`, in order, to one thread per core, including the calling thread. After an error no new item is
/// started; of several errors, that of the earliest item is returned.
///
/// The calling thread works or waits, and runs nothing else meanwhile: it may hold a lock.
pub(crate) fn share_out<I, E>(items: I, work: impl Fn(I::Item) -> Result<(), E> + Sync) -> Result<(), E>
where
    I: Iterator + Send,
    E: Send,
{
    let state = Mutex::new((items.enumerate(), None::<(usize, E)>));
    let run = || {
        loop {
            let next = {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.1.is_some() { None } else { state.0.next() }
            };
            let Some((number, item)) = next else { return };
            if let Err(error) = work(item) {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.1.as_ref().is_none_or(|(earliest, _)| number < *earliest) {
                    state.1 = Some((number, error));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..core_count() {
            // If the system cannot start more threads, the existing ones do the work.
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let (_, error) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// A pool of `threads`, by default one for each core.
pub(crate) fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, StoreError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or_else(core_count).max(1))
        .build()
        .map_err(|error| StoreError::Threads(error.to_string()))
}

fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::share_out;

    #[test]
    fn every_item_is_processed_once_and_the_earliest_error_is_returned() {
        let sum = AtomicUsize::new(0);
        let all: Result<(), usize> = share_out(0..1000, |item| {
            sum.fetch_add(item, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!((all, sum.into_inner()), (Ok(()), 499_500));
        assert_eq!(share_out(0..1000, |item| if item % 7 == 6 { Err(item) } else { Ok(()) }), Err(6));
    }
}
