//! `grainstore demo`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use grainstore_converters::check_destination;
use grainstore_format::shown_path;

use crate::Exit;
use crate::demo::made::{FileSpec, make_files};
use crate::demo::measure::{DemoFolder, Measure, check_space, estimated_len, open_folder};
use crate::demo::report::{DemoReport, UNITS};
use crate::demo::workplace::Workplace;
use crate::filesystem::FileSystem;
use crate::hints::WithHint;
use crate::interrupt::{Interrupted, check_interrupt};
use crate::printer::{Counted, Printer};

/// Small files that are made by default.
const SMALL_FILES: u64 = 100_000;
/// Number of small files per large one.
const SMALL_PER_LARGE: u64 = 10;
/// Median length of the small files: that of thumbnails, 3.1 KB on average.
const SMALL_LEN: u32 = 2_800;
/// Median length of the large files: that of the JPEGs of ImageNet, 105 KB on average.
const LARGE_LEN: u32 = 95_000;

/// Pack, check and read small and large files, and compare with reading the plain files
///
/// Packs files made for this purpose (small ones of about 3 KB, then large ones of about 105 KB), or those in DIR. It
/// verifies the dataset, reads a shuffled epoch, reads the same files in the same order one by one and with 16 threads
/// (for at most 10 seconds each), and repeats this with the epoch in another order; then random samples, one by one.
/// Every step starts with cold caches; as root, that empties all caches of the machine. The tables show the rates of
/// this machine and disk. The work is done in a new folder grainstore-demo, which is removed at the end and on Ctrl-C.
/// DIR is only read.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Folder to pack (default: files of random bytes are made)
    #[arg(value_name = "DIR")]
    source: Option<PathBuf>,
    /// Number of small files to make, with a tenth as many large ones (default: 100000 and 10000, 3 GB with their
    /// datasets), or with DIR how many of its files to take (default: all)
    #[arg(long, value_name = "N")]
    samples: Option<NonZeroU64>,
    /// Folder to work in, on the disk to be measured (default: the current one)
    #[arg(long, value_name = "WHERE", default_value = ".")]
    dir: PathBuf,
    /// How many times epochs, files and random samples are read, in turn; the tables show medians, since disks drift
    #[arg(long, value_name = "N", default_value = "3")]
    rounds: NonZeroU32,
    /// Keep the files and the datasets
    #[arg(long)]
    keep: bool,
    /// Print one JSON document instead of text; its "units" explain the figures
    #[arg(long)]
    pub(super) json: bool,
}

impl DemoArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is not enough space, or a step fails.
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

    fn print(&self, printer: &Printer, report: &DemoReport) -> anyhow::Result<Exit> {
        if self.json {
            printer.json(report)?;
        } else {
            report.lines().iter().try_for_each(|line| printer.line(line))?;
        }
        Ok(Exit::Done)
    }

    fn measure(&self, workplace: &Workplace, printer: &Printer) -> anyhow::Result<DemoReport> {
        let file_system = FileSystem::of(workplace.path());
        if file_system.is_memory() {
            printer.warn(format!("{}: is in memory, so nothing read from it is cold", shown_path(&self.dir)));
            printer.hint("--dir names a folder on a disk");
        }
        let mut measure = Measure { printer, rounds: self.rounds, cold: None };
        let mut folders = Vec::new();
        if let Some(root) = &self.source {
            folders.push(measure.folder(&self.folder_of_user(root, workplace)?)?);
        } else {
            let samples = self.samples.map_or(SMALL_FILES, NonZeroU64::get);
            let small = spec(samples, SMALL_LEN);
            let large = spec((samples / SMALL_PER_LARGE).max(1), LARGE_LEN);
            // Space for a file and for its copy in the dataset, and for the part of a block that each wastes.
            let needed = |spec: &FileSpec| spec.samples.saturating_mul(2 * (spec.mean_len() + 4096));
            check_space(workplace.path(), needed(&small).saturating_add(needed(&large)))?;
            for (name, spec) in [("small", small), ("large", large)] {
                let root = workplace.files(name);
                make(name, &root, spec, printer)?;
                let source = "random bytes made for the demo".to_owned();
                let dataset = workplace.dataset(name);
                folders.push(measure.folder(&DemoFolder {
                    name,
                    source,
                    files: open_folder(&root)?,
                    root,
                    dataset,
                    limit: None,
                })?);
            }
        }
        let kept = self.keep.then(|| shown_path(workplace.path()));
        Ok(DemoReport { kept, file_system, cold: measure.cold, units: UNITS, folders })
    }

    /// The folder that the user specified.
    fn folder_of_user(&self, root: &Path, workplace: &Workplace) -> anyhow::Result<DemoFolder> {
        let dataset = workplace.dataset("demo");
        let outside = check_destination(root, &dataset, false);
        outside.hint("--dir names a folder outside DIR in which to work")?;
        let limit = self.samples.map(NonZeroU64::get);
        let files = open_folder(root)?;
        check_space(workplace.path(), estimated_len(&files, limit))?;
        Ok(DemoFolder { name: "files", source: shown_path(root), root: root.to_path_buf(), files, dataset, limit })
    }
}

/// `samples` files in at most 100 classes.
fn spec(samples: u64, median_len: u32) -> FileSpec {
    let classes = u32::try_from(samples.min(100)).unwrap_or(100);
    FileSpec { samples, classes, median_len, seed: 0 }
}

fn make(name: &str, root: &Path, spec: FileSpec, printer: &Printer) -> anyhow::Result<()> {
    printer.note(format!("making {} {name} files in {}", spec.samples, shown_path(root)));
    let bar = printer.progress(Counted::Things("files"), Some(spec.samples));
    make_files(root, spec, &|files| {
        bar.set_position(files);
        check_interrupt()
    })?;
    Ok(())
}
