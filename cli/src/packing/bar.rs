//! A progress bar for packing, which also stops the work on Ctrl-C.

use std::cell::Cell;
use std::time::{Duration, Instant};

use grainstore_converters::{Events, Progress};
use indicatif::ProgressBar;

use crate::interrupt;
use crate::printer::{Counted, Printer};
use crate::sizes::{per_second, shown_size};

/// Minimum time between two updates of bytes and rate.
const PACE: Duration = Duration::from_millis(200);

pub(crate) struct Bar<'a> {
    printer: &'a Printer,
    /// "packing", "adopting".
    doing: &'static str,
    /// One bar for scanning the source, and another, with a total, for packing it.
    bar: Cell<Option<(bool, ProgressBar)>>,
    began: Instant,
    shown_at: Cell<Option<Instant>>,
}

impl<'a> Bar<'a> {
    pub(crate) fn new(printer: &'a Printer, doing: &'static str) -> Self {
        Self { printer, doing, bar: Cell::new(None), began: Instant::now(), shown_at: Cell::new(None) }
    }

    fn begin(&self, progress: Progress) -> ProgressBar {
        match progress.source_bytes {
            Some(len) if counts_bytes(progress) => self.printer.progress(Counted::Bytes, Some(len)),
            _ => self.printer.progress(Counted::Things("samples"), progress.samples_total),
        }
    }

    fn show(&self, packing: bool, progress: Progress) {
        let due = self.shown_at.get().is_none_or(|shown_at| shown_at.elapsed() >= PACE);
        if !due {
            return;
        }
        self.shown_at.set(Some(Instant::now()));
        let bar = match self.bar.take() {
            Some((of_packing, bar)) if of_packing == packing => bar,
            _ => self.begin(progress),
        };
        let doing = if packing { self.doing } else { "scanning" };
        if counts_bytes(progress) {
            bar.set_message(format!("{doing} {} samples,", progress.samples));
            bar.set_position(progress.bytes);
        } else {
            let size = shown_size(progress.bytes);
            let rate = per_second(progress.bytes, self.began.elapsed());
            bar.set_message(format!("{doing} {size}, {rate}"));
            bar.set_position(progress.samples);
        }
        self.bar.set(Some((packing, bar)));
    }
}

/// Whether only the size of the source files is known; the payload is about the same size.
fn counts_bytes(progress: Progress) -> bool {
    progress.samples_total.is_none() && progress.source_bytes.is_some()
}

impl Events for Bar<'_> {
    fn on_scan(&self, progress: Progress) {
        self.show(false, progress);
    }

    fn on_progress(&self, progress: Progress) {
        self.show(true, progress);
    }

    fn on_finish(&self) {
        if let Some((packing, bar)) = self.bar.take() {
            bar.set_message("writing the index and syncing");
            if let Some(all) = bar.length() {
                bar.set_position(all);
            }
            self.bar.set(Some((packing, bar)));
        }
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}
