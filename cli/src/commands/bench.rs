//! `grainstore bench`: what the device can do, and what share of it each way of reading reaches.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use grainstore_format::shown_path;
use grainstore_reader::EngineChoice;
use indicatif::ProgressBar;

use crate::Exit;
use crate::bench::bars::Cells;
use crate::bench::device::DeviceWork;
use crate::bench::limits::Limit;
use crate::bench::report::{BenchReport, Bracket};
use crate::bench::subject::{BenchOptions, Measured, Subject, Turn};
use crate::bench::ways::{Outcome, WAYS, Way, is_unmappable};
use crate::clock::parse_seconds;
use crate::external::External;
use crate::interrupt::Interrupted;
use crate::printer::{Counted, Printer};

/// How often the progress bar shows that the command is alive.
const TICK: Duration = Duration::from_millis(100);

/// Measure what the device can do, and what share of it each way of reading a dataset reaches
///
/// First, random reads go straight to the dataset's files, past the page cache: as long as its extents, as long as its
/// samples, and one at a time. Then the dataset is read in every way, and finally the device is measured again, since
/// disks drift: a limit is the mean of both. Before each way that is not warm, the dataset's files are removed from the
/// page cache. Nothing is written.
///
/// A share is the part of what the device can deliver at that size and depth: for samples that are read one by one,
/// samples per read; otherwise stored bytes per byte. Ways that read a warm page cache have no share.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// How long each limit and each way is measured, in seconds; a shorter time is less exact
    #[arg(long, value_parser = parse_seconds, default_value = "2", value_name = "S")]
    seconds: Duration,
    /// Seed of the shuffles, and of the offsets at which the device is read
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// What reads the device and the dataset: io_uring (uring), threads (pread), or the first that works (auto)
    #[arg(long, default_value_t, value_name = "ENGINE")]
    engine: EngineChoice,
    /// Print one JSON document instead; mb_per_s is in 10^6 bytes of payload, a share_of_limit of 1 is the limit
    #[arg(long)]
    pub(super) json: bool,
}

impl BenchArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no dataset, or it cannot be read or is damaged.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let options = BenchOptions { limit: self.seconds, seed: self.seed, engine: self.engine };
        let subject = Subject::open(external.open(&self.path)?, options)?;
        if subject.file_system().is_memory() {
            printer.warn(format!("{}: is in memory, so no device is read", shown_path(&self.path)));
        }
        printer.note(format!("takes about {:.0} s", subject.estimate().as_secs_f64().ceil()));
        match BenchSteps::begin(&subject, printer).measure() {
            Ok(measured) => self.print(printer, &subject.report(&measured)?),
            Err(error) if error.is::<Interrupted>() => Ok(Exit::Interrupted),
            Err(error) => Err(error),
        }
    }

    fn print(&self, printer: &Printer, report: &BenchReport) -> anyhow::Result<Exit> {
        if self.json {
            printer.json(report)?;
        } else {
            report.lines(Cells::of_locale()).iter().try_for_each(|line| printer.line(line))?;
        }
        Ok(Exit::Done)
    }
}

/// Measures one thing after the other, and shows which one is in progress.
struct BenchSteps<'a> {
    subject: &'a Subject,
    printer: &'a Printer,
    bar: ProgressBar,
    /// What was already printed: once is enough.
    printed: RefCell<HashSet<String>>,
}

impl<'a> BenchSteps<'a> {
    fn begin(subject: &'a Subject, printer: &'a Printer) -> Self {
        let count = 2 * Limit::ALL.len() + WAYS.len();
        let bar = printer.progress(Counted::Steps, Some(count as u64));
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self { subject, printer, bar, printed: RefCell::default() }
    }

    fn measure(&self) -> anyhow::Result<Measured> {
        let started = Instant::now();
        let before = self.device(Turn::Before)?;
        let outcomes = self.ways()?;
        let after = self.device(Turn::After)?;
        let brackets = before.into_iter().zip(after).map(|(before, after)| Bracket { before, after });
        Ok(Measured { brackets: brackets.collect(), outcomes, elapsed: started.elapsed() })
    }

    fn device(&self, turn: Turn) -> anyhow::Result<Vec<DeviceWork>> {
        let measure = |limit: Limit| {
            let work = self.step(&format!("device, {}", limit.text()), || self.subject.measure_device(limit, turn))?;
            self.warn_once(&work.remarks);
            Ok(work)
        };
        Limit::ALL.into_iter().map(measure).collect()
    }

    fn ways(&self) -> anyhow::Result<Vec<(Way, Outcome)>> {
        let mut outcomes = Vec::with_capacity(WAYS.len());
        for way in WAYS {
            match self.step(way.label, || self.subject.bench.run(&way)) {
                Ok(outcome) => {
                    self.warn_once(&outcome.notices);
                    outcomes.push((way, outcome));
                }
                Err(error) if is_unmappable(&error) => {
                    self.warn_once(&[format!("ways with mapped files are skipped: {error:#}")])
                }
                Err(error) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    fn warn_once(&self, sentences: &[String]) {
        let mut printed = self.printed.borrow_mut();
        sentences.iter().filter(|&sentence| printed.insert(sentence.clone())).for_each(|new| self.printer.warn(new));
    }

    fn step<T>(&self, name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        self.bar.set_message(name.to_owned());
        let result = work();
        self.bar.inc(1);
        result
    }
}
