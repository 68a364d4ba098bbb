//! Long work: runs on its own thread, so that the caller's thread can report progress and notice Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Raised;
use crate::logging;

/// How often progress is reported.
const PACE: Duration = Duration::from_millis(100);

/// The progress of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) stage: &'static str,
    pub(crate) samples: u64,
    pub(crate) samples_total: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) bytes_total: Option<u64>,
}

/// What the working thread and the caller share: progress, and the request to stop.
#[derive(Default)]
pub(crate) struct BackgroundJob {
    cancelled: Arc<AtomicBool>,
    news: Mutex<Option<News>>,
}

impl BackgroundJob {
    pub(crate) fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The flag that is set when the work is to stop.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Reports progress. A report that is not read in time is replaced by the next one.
    pub(crate) fn report(&self, news: News) {
        if let Ok(mut place) = self.news.try_lock() {
            *place = Some(news);
        }
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut News)) {
        if let Some(news) = self.news.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            change(news);
        }
    }

    fn heard(&self) -> Option<News> {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work`, and calls `progress` meanwhile. An exception from it, Ctrl-C included, stops the work and is raised
/// when the work has cleaned up.
pub(crate) fn run<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&BackgroundJob) -> Result<T, E> + Send,
) -> PyResult<T> {
    logging::listen(py)?;
    let job = BackgroundJob::default();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel::<()>();
        let job = &job;
        let worker = scope.spawn(move || {
            let result = work(job);
            drop(sender);
            result
        });
        let mut stopped_by = None;
        // The receiver is used by one thread at a time, which its type does not guarantee.
        let receiver = Mutex::new(receiver);
        loop {
            let waited = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PACE));
            if waited != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if stopped_by.is_none() {
                let heard = py.check_signals().and_then(|()| logging::deliver(py));
                stopped_by = heard.and_then(|()| report(progress, job.heard())).err();
                job.cancelled.store(stopped_by.is_some(), Ordering::Relaxed);
            }
        }
        let result = py.detach(|| worker.join());
        let stopped_by = stopped_by.or(logging::deliver(py).err());
        match (stopped_by, result) {
            (Some(error), Ok(Err(_)) | Err(_)) => Err(error),
            (_, Err(_)) => {
                Err(Raised::new("Error", "internal error: a worker thread panicked; please report it").into())
            }
            // The work finished before it could be stopped.
            (Some(error), Ok(Ok(_))) => Err(error),
            (None, Ok(result)) => {
                let done = result.map_err(Into::into)?;
                report(progress, job.heard())?;
                Ok(done)
            }
        }
    })
}

fn report(progress: Option<&Bound<'_, PyAny>>, news: Option<News>) -> PyResult<()> {
    let (Some(progress), Some(news)) = (progress, news) else { return Ok(()) };
    let facts = PyDict::new(progress.py());
    facts.set_item("stage", news.stage)?;
    facts.set_item("samples", news.samples)?;
    facts.set_item("samples_total", news.samples_total)?;
    facts.set_item("bytes", news.bytes)?;
    facts.set_item("bytes_total", news.bytes_total)?;
    progress.call1((facts,)).map(drop)
}
