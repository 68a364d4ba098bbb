//! What all threads of an export share: the dataset and options, the totals so far, and whether to stop.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::Schema;
use grainstore_reader::{OnDamage, ReadError, Reader};
use grainstore_store::{Collection, StoreError};

use crate::columns::Columns;
use crate::{Events, ExportError, ExportOptions, Progress, Selection, SkippedSample};

/// One export.
pub(crate) struct ExportJob<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) selection: &'a Selection,
    columns: Columns,
    pub(crate) options: &'a ExportOptions,
    pub(crate) events: &'a dyn Events,
    /// The final path, OUT; files are named after it.
    pub(crate) out: &'a Path,
    totals: Mutex<JobTotals>,
    is_failed: AtomicBool,
}

/// Counts of what has been written, and the samples that were skipped.
#[derive(Debug, Default)]
pub(crate) struct JobTotals {
    pub(crate) written: Progress,
    pub(crate) files: u64,
    pub(crate) skipped: Vec<SkippedSample>,
}

impl<'a> ExportJob<'a> {
    pub(crate) fn new(
        (reader, selection, columns): (&'a Reader, &'a Selection, Columns),
        out: &'a Path,
        options: &'a ExportOptions,
        events: &'a dyn Events,
    ) -> Self {
        let totals = Mutex::default();
        let is_failed = AtomicBool::new(false);
        Self { reader, selection, columns, options, events, out, totals, is_failed }
    }

    pub(crate) fn collection(&self) -> &'a Collection {
        self.reader.collection()
    }

    /// The attributes and fields that are written.
    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The schema of what is written.
    pub(crate) fn schema(&self) -> &Schema {
        self.columns.schema()
    }

    /// Whether each sample is one field that is the whole payload.
    pub(crate) fn is_whole_payload(&self) -> bool {
        // Only then are there no columns of fields; and one field is always written.
        !self.collection().has_field_columns()
    }

    /// Makes the other threads stop.
    pub(crate) fn fail(&self) {
        self.is_failed.store(true, Ordering::Relaxed);
    }

    /// Fails if the caller asked to stop, or another thread has failed.
    pub(crate) fn go_on(&self) -> Result<(), ExportError> {
        if self.is_stopped() { Err(ExportError::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_failed.load(Ordering::Relaxed) || self.events.cancelled()
    }

    /// The number of threads that write.
    pub(crate) fn thread_count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        self.options.jobs.map_or_else(cores, std::num::NonZeroUsize::get)
    }

    /// Counts samples that were written.
    pub(crate) fn wrote(&self, samples: Progress) {
        let written = {
            let mut totals = self.totals();
            totals.written.samples += samples.samples;
            totals.written.payload_bytes += samples.payload_bytes;
            totals.written
        };
        self.events.on_progress(written);
    }

    /// Counts files that were written.
    pub(crate) fn made_files(&self, count: u64) {
        self.totals().files += count;
    }

    /// Records a skipped sample. Returns the error instead if damage ends the export, or if the error is not about this
    /// sample.
    pub(crate) fn skip(&self, ordinal: u64, error: ReadError) -> Result<(), ExportError> {
        let is_of_sample = matches!(error, ReadError::Unreadable { .. } | ReadError::Store(StoreError::Sample { .. }));
        if self.options.on_damage == OnDamage::Fail || !is_of_sample {
            return Err(error.into());
        }
        self.totals().skipped.push(SkippedSample { ordinal, error });
        Ok(())
    }

    /// The ordinals of the skipped samples.
    pub(crate) fn skipped_ordinals(&self) -> HashSet<u64> {
        self.totals().skipped.iter().map(|skipped| skipped.ordinal).collect()
    }

    /// Takes the totals, after all threads are done.
    pub(crate) fn take_totals(&self) -> JobTotals {
        std::mem::take(&mut *self.totals())
    }

    fn totals(&self) -> MutexGuard<'_, JobTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
