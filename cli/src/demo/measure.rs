//! The measurements of a demo with one folder of files: packing, checking, then rounds of an epoch, the plain files in its
//! order, and random reads. Each step starts cold.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use grainstore_format::{SplitMix64, shown_path};
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::folder::{FolderOptions, FolderSource};

use super::files::{FileReading, read_files};
use super::report::{FolderReport, Rate, Round, Rounds};
use super::steps::{check, dataset_files, files_of, pack, read_epoch, read_samples};
use crate::cold::{Cold, make_cold};
use crate::filesystem::{FileSystem, free_bytes};
use crate::hints::WithHint;
use crate::interrupt::check_interrupt;
use crate::printer::{Counted, Printer};
use crate::sizes::shown_size;

/// Threads that read plain files in the second comparison.
const FILE_THREADS: usize = 16;
/// Longest time for reading plain files; reading many of them one by one would take hours.
const FILES_LIMIT: Duration = Duration::from_secs(10);
/// Number of samples read one by one in a round.
const RANDOM_READS: u64 = 1_000;
/// Bytes that must be free in addition to what is written.
const SPARE_BYTES: u64 = 64 << 20;

/// A folder of files to pack and to compare with.
pub(crate) struct DemoFolder {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// Where its files come from, for people.
    pub(crate) source: String,
    pub(crate) root: PathBuf,
    pub(crate) files: FolderSource,
    /// Path of the dataset to make.
    pub(crate) dataset: PathBuf,
    /// How many of the files to pack; `None`: all.
    pub(crate) limit: Option<u64>,
}

/// Lists a folder. A file that cannot be read is skipped.
///
/// # Errors
/// If it cannot be listed.
pub(crate) fn open_folder(root: &Path) -> anyhow::Result<FolderSource> {
    let options = FolderOptions { on_unreadable: OnUnreadable::Skip, ..FolderOptions::default() };
    Ok(FolderSource::open(root, &options)?)
}

/// Measures folders.
pub(crate) struct Measure<'a> {
    pub(crate) printer: &'a Printer,
    /// How often epochs, files and random samples are read.
    pub(crate) rounds: NonZeroU32,
    /// How reads were made cold; `None` before the first one.
    pub(crate) cold: Option<Cold>,
}

impl Measure<'_> {
    /// Packs, checks and reads a folder.
    ///
    /// # Errors
    /// If a step fails, or the user wants to stop.
    pub(crate) fn folder(&mut self, folder: &DemoFolder) -> anyhow::Result<FolderReport> {
        let listing = folder.files.listing();
        self.make_cold((0..listing.len()).map(|file| listing.path(file)))?;
        let bar = self.bar("packing", Counted::Things("files"), listing.len() as u64);
        let (summary, convert) = pack(&folder.files, folder.limit, &folder.dataset, &bar)?;
        let payload_bytes = summary.written.payload_bytes;

        self.make_cold(dataset_files(&folder.dataset)?.iter())?;
        let bar = self.bar("checking", Counted::Bytes, payload_bytes);
        let verify = check(&folder.dataset, payload_bytes, &bar)?;

        let mut rounds = Vec::new();
        for number in 1..=self.rounds.get() {
            rounds.push(self.round(number, folder, payload_bytes)?);
        }
        Ok(FolderReport {
            name: folder.name,
            source: folder.source.clone(),
            samples: summary.written.samples,
            payload_bytes,
            skipped: summary.skipped.len(),
            source_file_system: FileSystem::of(&folder.root),
            convert,
            verify,
            rounds: Rounds::of(&rounds),
        })
    }

    fn bar(&self, message: &'static str, counted: Counted, total: u64) -> indicatif::ProgressBar {
        let bar = self.printer.progress(counted, Some(total));
        bar.set_message(message);
        bar
    }

    fn make_cold<P: AsRef<Path>>(&mut self, files: impl Iterator<Item = P>) -> anyhow::Result<()> {
        check_interrupt()?;
        self.cold = Some(make_cold(files));
        check_interrupt()
    }

    /// An epoch and the same files in the same order, then random samples and their files.
    fn round(&mut self, number: u32, folder: &DemoFolder, payload_bytes: u64) -> anyhow::Result<Round> {
        self.make_cold(dataset_files(&folder.dataset)?.iter())?;
        let epoch = read_epoch(&folder.dataset, number, &self.bar("reading an epoch", Counted::Bytes, payload_bytes))?;
        if number == 1 {
            epoch.notices.iter().for_each(|notice| self.printer.warn(notice));
        }
        let rate = epoch.step.rate;
        ensure!(rate.payload_bytes == payload_bytes, "the epoch was not what was packed");
        let paths = files_of(&folder.dataset, &epoch.ordinals, &folder.root)?;
        let files_one_by_one = self.files("reading files one by one", &paths, 1, &rate)?;
        let files_16_threads = self.files("reading files with 16 threads", &paths, FILE_THREADS, &rate)?;

        // The same samples in every round, so that rounds can be compared.
        let mut random = SplitMix64::new(1);
        let count = rate.samples.min(RANDOM_READS);
        let drawn: Vec<u64> = (0..count).map(|_| random.below(rate.samples)).collect();
        let drawn_paths = files_of(&folder.dataset, &drawn, &folder.root)?;
        self.make_cold(dataset_files(&folder.dataset)?.iter())?;
        let random_samples = read_samples(&folder.dataset, &drawn)?;
        let random_files = self.files("reading random files", &drawn_paths, 1, &random_samples)?;
        Ok(Round { epoch: epoch.step, files_one_by_one, files_16_threads, random_samples, random_files })
    }

    /// Reads plain files, cold, and checks that they have the size of what was read from the dataset.
    fn files(
        &mut self,
        message: &'static str,
        paths: &[PathBuf],
        threads: usize,
        expected: &Rate,
    ) -> anyhow::Result<Rate> {
        self.make_cold(paths.iter())?;
        let bar = self.bar(message, Counted::Things("files"), paths.len() as u64);
        let rate = read_files(paths, FileReading { threads, limit: FILES_LIMIT }, &bar)?;
        let complete = rate.samples == expected.samples;
        ensure!(!complete || rate.payload_bytes == expected.payload_bytes, "the files were changed during the demo");
        Ok(rate)
    }
}

/// Bytes of the files that are packed; if only some are packed, estimated from the mean of all.
pub(crate) fn estimated_len(folder: &FolderSource, limit: Option<u64>) -> u64 {
    let listing = folder.listing();
    let lens = (0..listing.len()).map(|file| fs::metadata(listing.path(file)).map_or(0, |metadata| metadata.len()));
    let all: u64 = lens.sum();
    let taken = limit.map_or(listing.len() as u64, |limit| limit.min(listing.len() as u64));
    let share = u128::from(all) * u128::from(taken) / (listing.len() as u128).max(1);
    u64::try_from(share).unwrap_or(all) // a part is never more than all
}

/// Checks that `len` bytes can be written in `folder`.
///
/// # Errors
/// If fewer are free.
pub(crate) fn check_space(folder: &Path, len: u64) -> anyhow::Result<()> {
    let needed = len.saturating_add(len / 50).saturating_add(SPARE_BYTES);
    let free = free_bytes(folder)?;
    if free >= needed {
        return Ok(());
    }
    let needed = shown_size(needed);
    let free = shown_size(free);
    Err(anyhow!("{}: the demo needs {needed}, {free} are free", shown_path(folder)))
        .hint("--samples takes fewer files, --dir names a folder on another disk")
}
