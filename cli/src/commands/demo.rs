//! `grainstore demo`.

use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use grainstore_converters::check_destination;
use grainstore_format::shown_path;
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::folder::{FolderOptions, FolderSource};

use crate::Exit;
use crate::cold::{Cold, make_cold};
use crate::demo::files::{FileReading, read_files};
use crate::demo::images::{ImageSpec, MEDIAN_LEN, make_images};
use crate::demo::report::{Rate, Report, Round, Rounds};
use crate::demo::steps::{check, dataset_files, files_of, pack, read_epoch};
use crate::demo::workplace::Workplace;
use crate::filesystem::{FileSystem, free_bytes};
use crate::hints::WithHint;
use crate::interrupt::{Interrupted, check_interrupt};
use crate::printer::{Counted, Printer};
use crate::sizes::shown_size;

/// Images that are made where nothing else was asked for.
const SAMPLES: u64 = 20_000;
/// Threads that read plain files in the second comparison.
const FILE_THREADS: usize = 16;
/// Plain files are read for so long at most; many, one by one, would take hours.
const FILES_LIMIT: Duration = Duration::from_secs(60);
/// Bytes that must be free besides what is made.
const SPARE_BYTES: u64 = 64 << 20;

/// Pack, check and read a folder of images, and compare with reading the plain files
///
/// Packs DIR, or JPEG images made for the purpose, into a dataset, verifies it, reads one shuffled epoch, and reads
/// the same files in the same order one by one and with 16 threads (for a minute at most), all of it three times. Every step starts with
/// cold caches; as root, that empties all caches of the machine. The table shows the rates of this machine and disk.
/// The work is done in a new folder grainstore-demo, which is taken away at the end and on Ctrl-C. DIR is only read.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Folder to pack (default: images are made)
    #[arg(value_name = "DIR")]
    source: Option<PathBuf>,
    /// Number of images to make (default: 20000, about 2.2 GB), or with DIR how many of its files to take
    /// (default: all)
    #[arg(long, value_name = "N")]
    samples: Option<NonZeroU64>,
    /// Folder in which to work, on the disk to be measured (default: the current one)
    #[arg(long, value_name = "WHERE", default_value = ".")]
    dir: PathBuf,
    /// How often the epoch and the files are read, in turn; the table shows medians, since disks drift
    #[arg(long, value_name = "N", default_value = "3")]
    rounds: NonZeroU32,
    /// Keep the images and the dataset
    #[arg(long)]
    keep: bool,
    /// Print one JSON document instead of text; mb_per_s is in 10^6 bytes of payload
    #[arg(long)]
    pub(super) json: bool,
}

/// A folder that is packed, listed.
struct Listed {
    root: PathBuf,
    folder: FolderSource,
}

impl DemoArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Where there is not enough space, or a step fails.
    pub(crate) fn run(&self, printer: &Printer) -> anyhow::Result<Exit> {
        let mut workplace = Workplace::create(&self.dir).hint("--dir names a folder in which to work")?;
        if self.keep {
            workplace.keep();
        }
        let path = workplace.path().to_path_buf();
        let result = self.measure(&workplace, printer);
        drop(workplace);
        match (self.keep, path.exists()) {
            (true, _) => printer.note(format!("kept: {}", shown_path(&path))),
            (false, true) => printer.warn(format!("{}: could not be removed", shown_path(&path))),
            (false, false) => {}
        }
        match result {
            Ok(report) => self.print(printer, &report),
            Err(error) if error.is::<Interrupted>() => Ok(Exit::Interrupted),
            Err(error) => Err(error),
        }
    }

    fn print(&self, printer: &Printer, report: &Report) -> anyhow::Result<Exit> {
        if self.json {
            printer.json(report)?;
        } else {
            report.lines().iter().try_for_each(|line| printer.line(line))?;
        }
        Ok(Exit::Done)
    }

    fn measure(&self, workplace: &Workplace, printer: &Printer) -> anyhow::Result<Report> {
        let file_system = FileSystem::of(workplace.path());
        if file_system.is_memory() {
            printer.warn(format!("{}: lies in memory, so nothing read from it is cold", shown_path(&self.dir)));
            printer.hint("--dir names a folder on a disk");
        }
        let source = self.source(workplace, printer)?;
        let dataset = workplace.dataset();
        let steps = Steps { printer };

        let files = || (0..source.folder.listing().len()).map(|file| source.folder.listing().path(file));
        let cold = steps.cold(files())?;
        let bar = steps.bar("packing", Counted::Things("files"), source.folder.listing().len() as u64);
        let (summary, convert) = pack(&source.folder, self.samples.map(NonZeroU64::get), &dataset, &bar)?;
        let payload_bytes = summary.written.payload_bytes;

        steps.cold(dataset_files(&dataset)?.iter())?;
        let verify = check(&dataset, payload_bytes, &steps.bar("checking", Counted::Bytes, payload_bytes))?;

        let round = |number| steps.round(number, &dataset, &source.root, payload_bytes);
        let rounds = (1..=self.rounds.get()).map(round).collect::<anyhow::Result<Vec<Round>>>()?;
        Ok(Report {
            source: self.source.as_deref().map_or_else(|| "images made for the demo".to_owned(), shown_path),
            kept: self.keep.then(|| shown_path(workplace.path())),
            samples: summary.written.samples,
            payload_bytes,
            skipped: summary.skipped.len(),
            source_file_system: FileSystem::of(&source.root),
            file_system,
            cold,
            convert,
            verify,
            rounds: Rounds::of(&rounds),
        })
    }

    /// The folder asked for, or one of images made now.
    fn source(&self, workplace: &Workplace, printer: &Printer) -> anyhow::Result<Listed> {
        let limit = self.samples.map(NonZeroU64::get);
        let options = FolderOptions { on_unreadable: OnUnreadable::Skip, ..FolderOptions::default() };
        if let Some(root) = &self.source {
            let outside = check_destination(root, &workplace.dataset(), false);
            outside.hint("--dir names a folder outside DIR in which to work")?;
            let folder = FolderSource::open(root, &options)?;
            check_space(workplace.path(), estimated_len(&folder, limit))?;
            return Ok(Listed { root: root.clone(), folder });
        }
        let samples = limit.unwrap_or(SAMPLES);
        // A file and its copy in the dataset, with the part of a block that each wastes.
        check_space(workplace.path(), samples.saturating_mul(2 * (mean_image_len() + 4096)))?;
        let classes = u32::try_from(samples.min(100)).unwrap_or(100);
        let spec = ImageSpec { samples, classes, ..ImageSpec::default() };
        let root = workplace.images();
        printer.note(format!("making {samples} JPEG images in {}", shown_path(&root)));
        let bar = printer.progress(Counted::Things("images"), Some(samples));
        make_images(&root, spec, &|files| {
            bar.set_position(files);
            check_interrupt()
        })?;
        Ok(Listed { folder: FolderSource::open(&root, &options)?, root })
    }
}

/// What the steps share.
struct Steps<'a> {
    printer: &'a Printer,
}

impl Steps<'_> {
    fn bar(&self, message: &'static str, counted: Counted, total: u64) -> indicatif::ProgressBar {
        let bar = self.printer.progress(counted, Some(total));
        bar.set_message(message);
        bar
    }

    fn cold<P: AsRef<Path>>(&self, files: impl Iterator<Item = P>) -> anyhow::Result<Cold> {
        check_interrupt()?;
        let cold = make_cold(files);
        check_interrupt()?;
        Ok(cold)
    }

    /// An epoch and the same files in the same order, one after the other.
    fn round(&self, number: u32, dataset: &Path, root: &Path, payload_bytes: u64) -> anyhow::Result<Round> {
        self.cold(dataset_files(dataset)?.iter())?;
        let epoch = read_epoch(dataset, number, &self.bar("reading an epoch", Counted::Bytes, payload_bytes))?;
        if number == 1 {
            epoch.notices.iter().for_each(|notice| self.printer.warn(notice));
        }
        let rate = epoch.step.rate;
        ensure!(rate.payload_bytes == payload_bytes, "the epoch was not what was packed");
        let paths = files_of(dataset, &epoch.ordinals, root)?;
        let files_one_by_one = self.files(&paths, 1, &rate)?;
        let files_16_threads = self.files(&paths, FILE_THREADS, &rate)?;
        Ok(Round { epoch: epoch.step, files_one_by_one, files_16_threads })
    }

    /// Reads plain files, cold, and checks that they are what the epoch was.
    fn files(&self, paths: &[PathBuf], threads: usize, epoch: &Rate) -> anyhow::Result<Rate> {
        self.cold(paths.iter())?;
        let message = if threads == 1 { "reading files one by one" } else { "reading files with 16 threads" };
        let bar = self.bar(message, Counted::Things("files"), paths.len() as u64);
        let rate = read_files(paths, FileReading { threads, limit: FILES_LIMIT }, &bar)?;
        let complete = rate.samples == epoch.samples;
        ensure!(!complete || rate.payload_bytes == epoch.payload_bytes, "the files were changed during the demo");
        Ok(rate)
    }
}

/// The mean of a log-normal law is more than its median: 105 KB for images of 95.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn mean_image_len() -> u64 {
    (MEDIAN_LEN * 1.15) as u64
}

/// Bytes of the files that are taken; from the mean of all where only some are.
fn estimated_len(folder: &FolderSource, limit: Option<u64>) -> u64 {
    let listing = folder.listing();
    let lens = (0..listing.len()).map(|file| fs::metadata(listing.path(file)).map_or(0, |metadata| metadata.len()));
    let all: u64 = lens.sum();
    let taken = limit.map_or(listing.len() as u64, |limit| limit.min(listing.len() as u64));
    let share = u128::from(all) * u128::from(taken) / (listing.len() as u128).max(1);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn check_space(folder: &Path, len: u64) -> anyhow::Result<()> {
    let needed = len.saturating_add(len / 50).saturating_add(SPARE_BYTES);
    let free = free_bytes(folder)?;
    if free >= needed {
        return Ok(());
    }
    let (needed, free) = (shown_size(needed), shown_size(free));
    Err(anyhow!("{}: the demo needs {needed}, {free} are free", shown_path(folder)))
        .hint("--samples takes fewer files, --dir names a folder on another disk")
}
