//! Reads the files that are adopted: one by many threads, or several by one thread each.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use grainstore_sources::{Bad, Layout, Reach, Source, SourceSample};
use grainstore_writer::{ExternalFile, ExternalWriter};

use super::AdoptOptions;
use super::files::OwnFile;
use super::rows::{Adopted, IndexRows, Watch};
use crate::feed::{EntryContent, Feed, How, LongSample, PackingOrder, Skip, check};
use crate::{ConvertError, Events, OnBad, Order, Progress};

/// How often progress is reported, and the caller is asked whether to stop.
const PATIENCE: Duration = Duration::from_millis(50);

pub(super) struct Adoption<'a> {
    source: &'a dyn Source,
    writer: &'a ExternalWriter,
    options: &'a AdoptOptions,
    /// Bytes and samples read so far, including skipped samples.
    read_len: AtomicU64,
    samples: AtomicU64,
    stop: AtomicBool,
    /// The progress at the start.
    begun: Progress,
}

impl<'a> Adoption<'a> {
    pub(super) fn new(source: &'a dyn Source, writer: &'a ExternalWriter, options: &'a AdoptOptions) -> Self {
        let read_len = AtomicU64::new(0);
        let samples = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        Self { source, writer, options, begun: Progress::begin(source, None), read_len, samples, stop }
    }

    /// The result of each file, in their order.
    pub(super) fn adopt(&self, files: &[OwnFile], events: &dyn Events) -> Result<Vec<Adopted>, ConvertError> {
        match files {
            [only] if only.parts.len() == self.source.description().parts.len() => {
                Ok(vec![self.adopt_one(only, events)?])
            }
            _ => self.adopt_all(files, events),
        }
    }

    /// Adopts the only file: many threads read ahead in it.
    fn adopt_one(&self, file: &OwnFile, events: &dyn Events) -> Result<Adopted, ConvertError> {
        let plan = PackingOrder::of(self.source, Order::Source, events)?;
        let samples_total = plan.entry_count(self.source);
        let report = |more: u64| {
            events.on_progress(Progress { bytes: self.read_len.load(Relaxed) + more, ..self.progress(samples_total) });
            check(events)
        };
        self.with_rows(file, |rows| {
            let how = How::new(Layout::InPlace, self.options.jobs);
            plan.feed(self.source, how, Skip::NOTHING, |feed: &mut dyn Feed| {
                while let Some(entry) = feed.next(events)? {
                    self.take(entry.content, rows, &report)?;
                    report(0)?;
                }
                Ok(())
            })
        })
    }

    fn take(&self, content: EntryContent, rows: &mut IndexRows<'_>, watch: Watch<'_>) -> Result<(), ConvertError> {
        match content {
            EntryContent::Whole(sample, offset) => self.count(rows.whole(sample, offset)?),
            EntryContent::Bad(bad) => self.skip(bad, rows)?,
            EntryContent::LeftOut => {}
            EntryContent::Long(LongSample::Streaming { sample, offset, mut payload }) => {
                self.count(rows.long(sample, offset, &mut payload, watch)?);
            }
            EntryContent::Long(LongSample::At(at)) => match at.reopen(self.source, Layout::InPlace) {
                Err(bad) => self.skip(bad, rows)?,
                Ok((sample, offset, mut samples)) => self.count(rows.long(sample, offset, samples.payload(), watch)?),
            },
        }
        Ok(())
    }

    /// Adopts several files, each by one thread.
    fn adopt_all(&self, files: &[OwnFile], events: &dyn Events) -> Result<Vec<Adopted>, ConvertError> {
        let threads = self.options.jobs.map_or(0, NonZeroUsize::get);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| ConvertError::Threads(error.to_string()))?;
        let adopted: Mutex<Vec<(usize, Result<Adopted, ConvertError>)>> = Mutex::default();
        let adopt = |file: &OwnFile| {
            let result = self.with_rows(file, |rows| self.stream(file, rows));
            self.stop.fetch_or(result.is_err(), Relaxed);
            adopted.lock().unwrap_or_else(PoisonError::into_inner).push((file.number, result));
        };
        let adopt = &adopt;
        thread::scope(|scope| {
            let spawn_all = || {
                pool.scope(|scope| {
                    for file in files {
                        scope.spawn(move |_| adopt(file));
                    }
                });
            };
            let working = scope.spawn(spawn_all);
            while !working.is_finished() {
                thread::park_timeout(PATIENCE);
                self.stop.fetch_or(events.cancelled(), Relaxed);
                events.on_progress(self.progress(None));
            }
            working.join().map_err(|_| ConvertError::Bug { what: "a thread that reads files has panicked" })
        })?;
        check(events)?;
        in_order(adopted.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn stream(&self, file: &OwnFile, rows: &mut IndexRows<'_>) -> Result<(), ConvertError> {
        for &part in &file.parts {
            self.stream_part(part, rows)?;
        }
        Ok(())
    }

    fn stream_part(&self, part: usize, rows: &mut IndexRows<'_>) -> Result<(), ConvertError> {
        let watch = |_| if self.stop.load(Relaxed) { Err(ConvertError::Interrupted) } else { Ok(()) };
        let mut samples = match self.source.open(part, 0, Layout::InPlace) {
            Ok(samples) => samples,
            Err(bad) => return self.skip(bad, rows),
        };
        loop {
            watch(0)?;
            match samples.next() {
                Ok(None) => return Ok(()),
                Ok(Some(SourceSample::Whole { sample, offset })) => self.count(rows.whole(sample, offset)?),
                Ok(Some(SourceSample::Long { sample, offset })) => {
                    self.count(rows.long(sample, offset, samples.payload(), &watch)?);
                }
                Ok(Some(SourceSample::LeftOut)) => {}
                Err(bad) => {
                    let is_last = bad.reach == Reach::Rest;
                    self.skip(bad, rows)?;
                    if is_last {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Adopts a file whose samples `fill` pushes.
    fn with_rows(
        &self,
        file: &OwnFile,
        fill: impl FnOnce(&mut IndexRows<'_>) -> Result<(), ConvertError>,
    ) -> Result<Adopted, ConvertError> {
        let before = match file_state(&file.path, &file.name) {
            Ok(before) => before,
            Err(error) if self.options.on_bad == OnBad::Skip => {
                return Ok((None, vec![Bad::file(&file.path, &error).into()]));
            }
            Err(error) => return Err(Bad::file(&file.path, &error).into()),
        };
        let in_order = file.parts.len() == 1 && self.source.description().ascends;
        let mut rows = IndexRows::new(&file.path, self.options.on_bad, self.writer.segment(file.number)?, in_order);
        fill(&mut rows)?;
        if file_state(&file.path, &file.name).ok().as_ref() != Some(&before) {
            let why = "it was written to while it was adopted: adopt it again when nothing writes to it";
            return Err(ConvertError::Refused { path: file.path.clone(), why: why.into() });
        }
        rows.finish(before)
    }

    fn count(&self, len: u64) {
        self.read_len.fetch_add(len, Relaxed);
        self.samples.fetch_add(1, Relaxed);
    }

    fn skip(&self, bad: Bad, rows: &mut IndexRows<'_>) -> Result<(), ConvertError> {
        self.samples.fetch_add(1, Relaxed);
        rows.bad(bad)
    }

    fn progress(&self, samples_total: Option<u64>) -> Progress {
        let samples = self.samples.load(Relaxed);
        let bytes = self.read_len.load(Relaxed);
        Progress { samples, samples_total, bytes, ..self.begun }
    }
}

/// The current state of the file.
fn file_state(path: &Path, name: &str) -> io::Result<ExternalFile> {
    ExternalFile::of(name, &grainstore_host::open_regular(path)?.0)
}

/// Results by the number of their file, or the first failure. Files that were interrupted because another one failed do
/// not count.
fn in_order(mut adopted: Vec<(usize, Result<Adopted, ConvertError>)>) -> Result<Vec<Adopted>, ConvertError> {
    adopted.sort_unstable_by_key(|(number, _)| *number);
    let mut in_order = Vec::with_capacity(adopted.len());
    let mut is_interrupted = false;
    for (_, result) in adopted {
        match result {
            Ok(adopted) => in_order.push(adopted),
            Err(ConvertError::Interrupted) => is_interrupted = true,
            Err(error) => return Err(error),
        }
    }
    if is_interrupted { Err(ConvertError::Interrupted) } else { Ok(in_order) }
}
