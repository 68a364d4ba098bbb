//! What the libraries report through `tracing`, for Python's `logging`.
//!
//! A report comes on any thread, also on one that holds locks or whose process is about to be forked, so it is only put
//! in a queue. Calls from Python deliver the queue: those that open, wait or read. No thread of ours ever takes Python's
//! lock for it. The level is read from Python when something is opened or begins; a report below it costs a comparison.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use grainstore_cli::{Listener, Report, Reports};
use grainstore_host::ForkLock;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Maximum reports in the queue: more come only if Python makes no call for long.
const QUEUE_LEN: usize = 1000;

/// The levels by number: 0 is none.
const LEVELS: [LevelFilter; 5] =
    [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG];

/// The number of the level that Python listens to.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Reports that were not queued, as the queue was full.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Reports in the queue, and those lost: read without its lock.
static WAITING: AtomicU64 = AtomicU64::new(0);

/// The reports that wait. A forked process begins without any: its parent delivers those before the fork.
static QUEUE: OnceLock<ForkLock<Vec<Queued>>> = OnceLock::new();

/// Reports for Python: the name of the logger, the level's number, seconds since 1970, the text.
type Queued = (String, u8, f64, String);

/// Puts reports in the queue.
struct ToPython;

impl Listener for ToPython {
    fn level(&self) -> LevelFilter {
        let level = LEVELS.get(usize::from(LEVEL.load(Ordering::Relaxed)));
        level.copied().unwrap_or(LevelFilter::OFF)
    }

    fn report(&self, report: Report<'_>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let queued = (logger_of(report.target), number_of(report.level), since.as_secs_f64(), report.text.to_owned());
        let mut queue = QUEUE.get().map(ForkLock::lock_or_renew);
        match queue.as_mut().filter(|reports| reports.len() < QUEUE_LEN) {
            Some(reports) => reports.push(queued),
            None => _ = LOST.fetch_add(1, Ordering::Relaxed),
        }
        WAITING.fetch_add(1, Ordering::Release);
    }
}

/// `grainstore.reader` for `grainstore_reader::epoch`.
fn logger_of(target: &str) -> String {
    let of_crate = target.split("::").next().unwrap_or(target);
    of_crate.replacen('_', ".", 1)
}

fn number_of(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        _ => 4,
    }
}

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("grainstore._logging").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// Reads the level from Python. The first call begins to listen, unless the process has another subscriber already.
pub(crate) fn listen(py: Python<'_>) -> PyResult<()> {
    if QUEUE.get().is_none() && QUEUE.set(ForkLock::default()).is_ok() {
        // The command, in the same process, may have been first: then it prints them.
        let _ = tracing::subscriber::set_global_default(Reports::to(ToPython));
    }
    let level: u8 = module(py)?.call_method0("level")?.extract()?;
    if LEVEL.swap(level, Ordering::Relaxed) != level {
        tracing::callsite::rebuild_interest_cache();
    }
    Ok(())
}

/// Hands the reports so far to Python's `logging`. An exception of a handler or filter is raised.
pub(crate) fn deliver(py: Python<'_>) -> PyResult<()> {
    if WAITING.load(Ordering::Relaxed) == 0 { Ok(()) } else { deliver_waiting(py) }
}

#[cold]
fn deliver_waiting(py: Python<'_>) -> PyResult<()> {
    WAITING.swap(0, Ordering::AcqRel);
    let reports = QUEUE.get().map(|queue| std::mem::take(&mut *queue.lock_or_renew()));
    let lost = LOST.swap(0, Ordering::Relaxed);
    module(py)?.call_method1("handle", (reports.unwrap_or_default(), lost)).map(drop)
}

/// The result of a call that may have caused reports, once they are delivered.
pub(crate) fn delivered<T, E: Into<PyErr>>(py: Python<'_>, result: Result<T, E>) -> PyResult<T> {
    deliver(py)?;
    result.map_err(Into::into)
}

/// Hand waiting reports to `logging`: called at exit.
#[pyfunction]
#[pyo3(name = "_deliver_reports")]
pub(crate) fn deliver_reports(py: Python<'_>) -> PyResult<()> {
    deliver(py)
}
