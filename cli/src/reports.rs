//! What the libraries report through `tracing`, as lines of text: for stderr here, for Python's `logging` in the package.
//!
//! An event is a line with its spans before it. A span is a line when it ends, with how long it lasted.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use grainstore_host::ForkLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// An event, or a span that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// How important it is.
    pub level: Level,
    /// The module that reports it, such as `grainstore_reader::epoch`.
    pub target: &'static str,
    /// The spans around it, its message and its fields.
    pub text: &'a str,
}

/// What receives the reports. It is called by any thread of the libraries, which may hold locks: it must not wait.
pub trait Listener: Send + Sync + 'static {
    /// The reports it receives: these, and more important ones. After it has changed,
    /// `tracing::callsite::rebuild_interest_cache` has to be called.
    fn level(&self) -> LevelFilter;

    /// Receives a report.
    fn report(&self, report: Report<'_>);
}

/// A subscriber that turns events and spans into reports.
pub struct Reports<L> {
    listener: L,
    next: AtomicU64,
    /// A forked process reports its own spans alone: those that its parent opened end there.
    open: ForkLock<HashMap<u64, OpenSpan>>,
}

/// A span that has not ended.
struct OpenSpan {
    text: String,
    level: Level,
    target: &'static str,
    began: Instant,
    handles: usize,
}

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl<L: Listener> Reports<L> {
    /// A subscriber that reports to `listener`.
    pub fn to(listener: L) -> Self {
        Self { listener, next: AtomicU64::new(1), open: ForkLock::default() }
    }

    fn spans(&self) -> String {
        let entered = ENTERED.with_borrow(Clone::clone);
        let open = self.open.lock_or_renew();
        entered.iter().filter_map(|id| open.get(id)).fold(String::new(), |text, span| text + &span.text + ": ")
    }
}

impl<L: Listener> Subscriber for Reports<L> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.listener.level() && metadata.target().starts_with("grainstore")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.listener.level())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        let (level, target) = (*span.metadata().level(), span.metadata().target());
        let opened = OpenSpan { text: text.0, level, target, began: Instant::now(), handles: 1 };
        self.open.lock_or_renew().insert(number, opened);
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let text = format!("{}{}", self.spans(), text.0);
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        self.listener.report(Report { level, target, text: &text });
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
        if let Some(span) = self.open.lock_or_renew().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut open = self.open.lock_or_renew();
        let Some(span) = open.get_mut(&id.into_u64()) else { return false };
        span.handles = span.handles.saturating_sub(1);
        if span.handles > 0 {
            return false;
        }
        let ended = open.remove(&id.into_u64());
        drop(open);
        if let Some(span) = ended {
            let text = format!("{}: took {:.3} s", span.text, span.began.elapsed().as_secs_f64());
            self.listener.report(Report { level: span.level, target: span.target, text: &text });
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
