//! What the libraries report through `tracing`, as lines on stderr: `--log LEVEL`, or GRAINSTORE_LOG in the environment.
//!
//! An event is a line with its spans before it. A span is a line when it ends, with how long it lasted. Without a level
//! nothing is installed, and the libraries skip their reports.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::anyhow;
use clap::ValueEnum;
use grainstore_format::escape_controls;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The environment variable with the same effect as the flag.
const VARIABLE: &str = "GRAINSTORE_LOG";

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What went wrong
    Error,
    /// What works in another way than was intended, such as reading without io_uring, or slowly
    Warn,
    /// Epochs and conversions that begin and end
    Info,
    /// Every dataset that is opened, and how it is read
    Debug,
}

/// Prints what the libraries report from now on, if the flag or the environment asks for it.
///
/// # Errors
/// If the environment has something that is not a level.
pub(crate) fn install(flag: Option<LogLevel>) -> anyhow::Result<()> {
    let Some(level) = flag.map_or_else(from_environment, |level| Ok(Some(level)))? else { return Ok(()) };
    // Somebody else may listen already, in a process that includes this library: then they go on.
    let _ = tracing::subscriber::set_global_default(Lines::new(level.level()));
    Ok(())
}

fn from_environment() -> anyhow::Result<Option<LogLevel>> {
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => {
            let level = LogLevel::from_str(&name, true);
            level.map(Some).map_err(|_| anyhow!("{VARIABLE} is {name:?}, expected error, warn, info or debug"))
        }
        _ => Ok(None),
    }
}

impl LogLevel {
    fn level(self) -> Level {
        match self {
            Self::Error => Level::ERROR,
            Self::Warn => Level::WARN,
            Self::Info => Level::INFO,
            Self::Debug => Level::DEBUG,
        }
    }
}

/// Prints events, and spans that end.
struct Lines {
    level: Level,
    next: AtomicU64,
    open: Mutex<HashMap<u64, OpenSpan>>,
}

/// A span that has not ended.
struct OpenSpan {
    text: String,
    level: Level,
    began: Instant,
    handles: usize,
}

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl Lines {
    fn new(level: Level) -> Self {
        Self { level, next: AtomicU64::new(1), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, OpenSpan>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spans(&self) -> String {
        let open = self.open();
        let entered = ENTERED.with_borrow(Clone::clone);
        entered.iter().filter_map(|id| open.get(id)).fold(String::new(), |text, span| text + &span.text + ": ")
    }
}

/// A closed stderr cannot be reported to anyone.
fn print(level: Level, text: &str) {
    let name = level.as_str().to_ascii_lowercase();
    let _ = writeln!(io::stderr(), "{name}: {}", escape_controls(text));
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= &self.level && metadata.target().starts_with("grainstore")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        let level = *span.metadata().level();
        self.open().insert(number, OpenSpan { text: text.0, level, began: Instant::now(), handles: 1 });
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        print(*event.metadata().level(), &format!("{}{}", self.spans(), text.0));
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(place) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(place);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.open().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut open = self.open();
        let Some(span) = open.get_mut(&id.into_u64()) else { return false };
        span.handles = span.handles.saturating_sub(1);
        if span.handles > 0 {
            return false;
        }
        let ended = open.remove(&id.into_u64());
        drop(open);
        if let Some(span) = ended {
            print(span.level, &format!("{}: took {:.3} s", span.text, span.began.elapsed().as_secs_f64()));
        }
        true
    }
}

/// The message and the fields of an event or span: `message name=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let space = if self.0.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{space}{value:?}"),
            name => write!(self.0, "{space}{name}={value:?}"),
        };
    }
}
