//! The steps of a demo that work on a dataset, each measured from the first request to the last byte.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use grainstore_converters::{ConvertError, ConvertOptions, ConvertSummary, Events, OnBad, Progress, convert};
use grainstore_format::{shown_path, to_usize};
use grainstore_reader::{EpochOptions, Reader, ReaderOptions};
use grainstore_sources::folder::FolderSource;
use grainstore_store::{Dataset, VerifyOptions, VerifyReport, verify};
use indicatif::ProgressBar;

use super::report::{EpochStep, Rate};
use crate::interrupt::{self, Interrupted, check_interrupt};

/// How long to wait for the checking thread before checking for Ctrl-C again.
const PATIENCE: Duration = Duration::from_millis(50);

/// An epoch that was read.
pub(crate) struct EpochRead {
    pub(crate) step: EpochStep,
    /// The ordinals in the order in which they were delivered.
    pub(crate) ordinals: Vec<u64>,
    /// Notices of the reader.
    pub(crate) notices: Vec<String>,
}

/// Packs `source` into the dataset `path`.
///
/// # Errors
/// If it cannot be packed, or the user wants to stop.
pub(crate) fn pack(
    source: &FolderSource,
    limit: Option<u64>,
    path: &Path,
    bar: &ProgressBar,
) -> anyhow::Result<(ConvertSummary, Rate)> {
    let started = Instant::now();
    let options = ConvertOptions { limit, on_bad: OnBad::Skip, ..ConvertOptions::default() };
    let summary = convert(source, path, &options, &Watching(bar)).map_err(|error| match error {
        ConvertError::Interrupted => Interrupted.into(),
        other => anyhow::Error::from(other),
    })?;
    let rate = Rate::new(summary.written.samples, summary.written.payload_bytes, started.elapsed());
    Ok((summary, rate))
}

/// Checks the dataset of `payload_bytes`. The index is checked too, but its bytes do not count.
///
/// # Errors
/// If something is damaged, or the user wants to stop.
pub(crate) fn check(path: &Path, payload_bytes: u64, bar: &ProgressBar) -> anyhow::Result<Rate> {
    let started = Instant::now();
    let (sender, receiver) = mpsc::channel();
    // It only reads, so it can be abandoned when the user wants to stop.
    let of = path.to_path_buf();
    let counting = bar.clone();
    thread::spawn(move || {
        let report = verify(&of, &VerifyOptions::default(), &|_| {}, &|bytes| counting.inc(bytes));
        // Nobody listens any more once the user has stopped.
        let _ = sender.send(report);
    });
    let report: VerifyReport = loop {
        check_interrupt()?;
        match receiver.recv_timeout(PATIENCE) {
            Ok(report) => break report?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the thread that checks has died")),
        }
    };
    ensure!(report.damaged == 0, "{}: damaged right after it was written", shown_path(path));
    Ok(Rate::new(report.samples, payload_bytes, started.elapsed()))
}

/// Reads the shuffled epoch `number` with default options, including opening and loading the index.
///
/// # Errors
/// If it cannot be read, or the user wants to stop.
pub(crate) fn read_epoch(path: &Path, number: u32, bar: &ProgressBar) -> anyhow::Result<EpochRead> {
    let started = Instant::now();
    let reader = Reader::open(path, ReaderOptions::default())?;
    let mut ordinals = Vec::with_capacity(to_usize(reader.collection().sample_count()));
    let mut epoch = reader.epoch(&EpochOptions { epoch: number.into(), ..EpochOptions::default() })?;
    while let Some(batch) = epoch.next_batch() {
        let batch = batch?;
        ordinals.extend_from_slice(batch.ordinals());
        bar.inc(batch.payload_bytes());
        check_interrupt()?;
    }
    let elapsed = started.elapsed();
    let stats = epoch.stats();
    let step = EpochStep {
        rate: Rate::new(stats.samples, stats.payload_bytes, elapsed),
        order: epoch.order().to_string(),
        io: stats.io.name(),
        engine: stats.engine,
        read_bytes: stats.read_bytes,
    };
    Ok(EpochRead { step, ordinals, notices: reader.notices() })
}

/// Reads the samples `ordinals` one by one, including opening the dataset.
///
/// # Errors
/// If one cannot be read, or the user wants to stop.
pub(crate) fn read_samples(path: &Path, ordinals: &[u64]) -> anyhow::Result<Rate> {
    let started = Instant::now();
    let reader = Reader::open(path, ReaderOptions::default())?;
    let mut payload = Vec::new();
    let mut payload_bytes = 0;
    for &ordinal in ordinals {
        check_interrupt()?;
        reader.get_into(ordinal, &mut payload)?;
        payload_bytes += payload.len() as u64;
    }
    Ok(Rate::new(ordinals.len() as u64, payload_bytes, started.elapsed()))
}

/// The files that the samples were made of.
///
/// # Errors
/// If a key cannot be read.
pub(crate) fn files_of(dataset: &Path, ordinals: &[u64], root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let dataset = Dataset::open(dataset)?;
    let path = |&ordinal: &u64| match dataset.key(ordinal)? {
        Some(key) => Ok(root.join(OsStr::from_bytes(&key))),
        None => bail!("sample {ordinal} has no key"),
    };
    ordinals.iter().map(path).collect()
}

/// The files of a dataset.
///
/// # Errors
/// If it cannot be listed.
pub(crate) fn dataset_files(dataset: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = || fs::read_dir(dataset)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
    listed().with_context(|| format!("cannot list {}", shown_path(dataset)))
}

/// Moves a progress bar, and stops on Ctrl-C.
struct Watching<'a>(&'a ProgressBar);

impl Events for Watching<'_> {
    fn on_progress(&self, progress: Progress) {
        self.0.set_position(progress.samples);
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}
