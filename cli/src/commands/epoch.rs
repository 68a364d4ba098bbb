//! `grainstore epoch`: reads an epoch, discards it, and reports the speed.

use std::mem::ManuallyDrop;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use grainstore_format::shown_path;
use grainstore_reader::{
    Batch, EngineChoice, Epoch, EpochOptions, EpochState, IoChoice, OnDamage, ReadError, Reader, ReaderOptions,
};
use grainstore_store::StoreError;
use indicatif::ProgressBar;

use crate::clock::{parse_seconds, process_cpu};
use crate::epoch::datasets::{DatasetArgs, samples_of};
use crate::epoch::document::{EpochDocument, Skipped, Times};
use crate::epoch::order_options::OrderOptions;
use crate::epoch::skipped::warn_of;
use crate::epoch::state_file::StateFile;
use crate::errors::on_one_line;
use crate::external::External;
use crate::hints::WithHint;
use crate::printer::{Counted, Printer};
use crate::sizes::parse_size;
use crate::{Exit, interrupt};

/// Longest time between two checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Read an epoch, or one rank's share of it, in shuffled order and report its speed
///
/// Every sample is read once, checked and decoded, and discarded. The time is measured from the first request to the
/// last batch; opening the dataset is reported separately. Sizes and rates of samples are those of the decoded
/// payloads.
#[derive(clap::Args)]
pub(crate) struct EpochArgs {
    #[command(flatten)]
    datasets: DatasetArgs,
    #[command(flatten)]
    order: OrderOptions,
    /// Resume from the state in FILE, if it exists, and save the state there at the end
    ///
    /// The state is written at the end of the epoch, at --limit-seconds, at Ctrl-C and SIGTERM, and if a sample cannot
    /// be read; SIGKILL leaves the file unchanged. It counts the batches that were returned, and the next run resumes
    /// with the very next sample, with another --world and --batch-size too. The number of lanes and the group are
    /// those of the state, even with another --window.
    ///
    /// Every rank needs its own file, such as run.$RANK.json. After the same number of batches all files have the same
    /// content; if ranks were stopped at different batches, resume all of them from copies of the file with the lowest
    /// position: nothing is lost, and some samples are repeated. The file of a complete epoch can be used for a later
    /// --epoch, too.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Continue without damaged samples, instead of stopping at the first
    ///
    /// A warning counts them and names the first 20; --json lists all. The exit status is still 0. A segment that is
    /// missing or truncated is still an error.
    #[arg(long)]
    skip_damaged: bool,
    /// How files are read: direct, buffered, mapped or auto
    ///
    /// direct reads past the page cache, which suits a dataset larger than memory. buffered reads through it, so the
    /// next epoch may come from memory. mapped reads samples in place from the page cache: fastest if the whole dataset
    /// is cached, slowest if it is not; it maps the index, too, and a file whose index is cut off meanwhile kills the
    /// command. auto is mapped (without the index) if the dataset is cached already on a local file system, buffered if
    /// it fits in half of the free memory, otherwise direct.
    #[arg(long, default_value_t, value_name = "IO")]
    io: IoChoice,
    /// Which engine reads: uring, pread or auto
    ///
    /// uring is io_uring, and fails if the system refuses it, as containers often do. pread is 16 threads that read one
    /// request each, which works everywhere. auto is uring if available, otherwise pread. Mapped files need neither.
    #[arg(long, default_value_t, value_name = "ENGINE")]
    engine: EngineChoice,
    /// Bytes that io_uring requests from each device at a time; network storage may need more
    #[arg(long, default_value = "8M", value_parser = parse_size, value_name = "SIZE")]
    queue: u64,
    /// Leave nothing in the page cache, so that the data of other programs stays there
    ///
    /// Only buffered reads need it: direct ones never leave anything, mapped ones always do. Pages that are already
    /// cached stay and are used. Needs Linux 6.14 and a file system that supports it; otherwise a warning is printed
    /// and reads continue without it.
    #[arg(long)]
    dont_cache: bool,
    /// Fail with an error that names the read if one takes longer than this many seconds
    #[arg(long, default_value = "120", value_parser = parse_seconds, value_name = "S")]
    timeout: Duration,
    /// Stop after this many seconds, between two batches, and report it
    #[arg(long, value_parser = parse_seconds, value_name = "S")]
    limit_seconds: Option<Duration>,
    /// Print the ordinals in the order read, one per line, and nothing else on stdout
    #[arg(long, conflicts_with = "json")]
    print_ordinals: bool,
    /// Print one JSON document instead; mb_per_s is in 10^6 bytes of payload, cpu_s_per_gb is CPU seconds per 10^9 of
    /// them
    #[arg(long)]
    pub(super) json: bool,
}

/// What is read, and from which position.
struct Start {
    reader: Reader,
    state: Option<EpochState>,
    /// Where the state is saved.
    file: Option<StateFile>,
}

/// What was read so far.
#[derive(Default)]
struct Tally {
    times: Times,
    batches: u64,
    padded_samples: u64,
    skipped: Vec<Skipped>,
    /// Whether printing the last batch failed, or was incomplete.
    is_half_printed: bool,
}

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The epoch is complete, or the time is over.
    Over,
    Interrupted,
}

impl EpochArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be opened or read, or a sample is damaged; if the state is of another epoch, or cannot be
    /// written.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        self.order.check_rank()?;
        let opening = Instant::now();
        let Start { reader, state, file } = self.start(printer, external)?;
        reader.extents()?;
        let mut tally = Tally { times: Times { open: opening.elapsed(), ..Times::default() }, ..Tally::default() };
        let resumed = state.is_some();
        let options = EpochOptions { on_damage: self.on_damage(), ..self.order.options(&reader, state)? };
        // The process ends here without waiting for a device that does not answer; dropping the epoch would wait for
        // it.
        let mut epoch = ManuallyDrop::new(reader.epoch(&options)?);
        if let Some(notice) = epoch.epoch_plan().notice() {
            printer.warn(notice);
        }
        let bar = printer.progress(Counted::Bytes, Some(expected_bytes(&reader, &epoch)?));
        let read = self.read(&mut epoch, &mut tally, &bar, printer);
        drop(bar);
        warn_of(&tally.skipped, printer);
        let kept = keep(file.as_ref().filter(|_| !tally.is_half_printed), &epoch, &read, printer);
        for notice in reader.notices() {
            printer.warn(notice);
        }
        if let (Err(_), Err(error)) = (&read, &kept) {
            printer.warn(on_one_line(error.as_ref()));
        }
        let ending = read?;
        kept?;
        if ending == Ending::Interrupted {
            return Ok(Exit::Interrupted);
        }
        self.print_result(&self.document(&reader, &epoch, tally), resumed, printer)?;
        Ok(Exit::Done)
    }

    /// Opens the dataset generation that the state belongs to.
    fn start(&self, printer: &Printer, external: External) -> anyhow::Result<Start> {
        let (file, state) = match &self.state {
            None => (None, None),
            Some(path) => {
                let (file, state) = StateFile::open(path)?;
                (Some(file), state)
            }
        };
        let reader = self.datasets.open(self.reader_options(external), state.as_ref(), printer)?;
        match &state {
            Some(state) if state.epoch() < self.order.epoch && self.is_complete(&reader, state)? => {
                let reader = self.datasets.open(self.reader_options(external), None, printer)?;
                Ok(Start { reader, state: None, file })
            }
            _ => Ok(Start { reader, state, file }),
        }
    }

    /// Whether the epoch of a state is complete: then a later epoch may use its file.
    fn is_complete(&self, reader: &Reader, state: &EpochState) -> anyhow::Result<bool> {
        let options = EpochOptions { epoch: state.epoch(), ..self.order.options(reader, Some(state.clone()))? };
        Ok(reader.plan(&options)?.share().batch_count() == 0)
    }

    /// Reads the epoch, or as much of it as the time limit allows.
    fn read(
        &self,
        epoch: &mut Epoch,
        tally: &mut Tally,
        bar: &ProgressBar,
        printer: &Printer,
    ) -> anyhow::Result<Ending> {
        bar.set_message("reading");
        let started = Instant::now();
        let cpu_before = process_cpu();
        loop {
            while !epoch.is_ready_within(LOOK_UP) {
                if interrupt::requested() {
                    return Ok(Ending::Interrupted);
                }
            }
            let Some(batch) = with_remedy(epoch.next_batch().transpose())? else { break };
            tally.add(&batch, started.elapsed());
            bar.inc(batch.payload_bytes());
            if self.print_ordinals {
                tally.is_half_printed = true;
                batch.ordinals().iter().try_for_each(|ordinal| printer.line(ordinal))?;
                tally.is_half_printed = false;
            }
            if interrupt::requested() {
                return Ok(Ending::Interrupted);
            }
            if self.limit_seconds.is_some_and(|limit| tally.times.elapsed >= limit) {
                break;
            }
        }
        tally.times.cpu = process_cpu().saturating_sub(cpu_before);
        Ok(Ending::Over)
    }

    fn reader_options(&self, external: External) -> ReaderOptions {
        ReaderOptions {
            io: self.io,
            engine: self.engine,
            queue_len: self.queue,
            dont_cache: self.dont_cache,
            timeout: self.timeout,
            ..external.reader_options()
        }
    }

    fn on_damage(&self) -> OnDamage {
        if self.skip_damaged { OnDamage::Skip } else { OnDamage::Fail }
    }

    fn document(&self, reader: &Reader, epoch: &Epoch, tally: Tally) -> EpochDocument {
        let share = epoch.epoch_plan().share();
        let plan = epoch.plan();
        let document = EpochDocument {
            paths: self.datasets.paths(),
            complete: tally.batches == share.batch_count(),
            dataset_samples: reader.collection().sample_count(),
            epoch_samples: plan.len(),
            rank_samples: samples_of(share),
            rank_batches: share.batch_count(),
            batches: tally.batches,
            padded_samples: tally.padded_samples,
            skipped: tally.skipped,
            position: epoch.state().position(),
            state: self.state.as_deref().map(shown_path),
            subset: self.order.subset_document(plan),
            order: epoch.order().to_string(),
            lanes: epoch.lanes(),
            group: epoch.group().map(NonZeroU32::get),
            seed: self.order.seed,
            epoch: self.order.epoch,
            window_bytes: self.order.window,
            batch_size: self.order.batch_size.get(),
            world: self.order.world,
            rank: self.order.rank(),
            tail: self.order.tail.to_string(),
            io: reader.io().mode.name(),
            io_why: reader.io().why,
            dont_cache: self.dont_cache,
            queue_bytes: self.queue,
            ..EpochDocument::default()
        };
        if tally.batches == 0 { document } else { document.with(&tally.times, &epoch.stats()) }
    }

    fn print_result(&self, document: &EpochDocument, resumed: bool, printer: &Printer) -> anyhow::Result<()> {
        if self.json {
            printer.json(document)?;
        } else {
            let lines = if document.rank_batches == 0 { vec![document.nothing_left()] } else { document.lines() };
            for line in lines {
                if self.print_ordinals { printer.note(line) } else { printer.line(line)? }
            }
        }
        if resumed && document.rank_batches == 0 {
            let next = self.order.epoch.saturating_add(1);
            printer.hint(format_args!("`--epoch {next}` reads the next one; without the file this one starts over"));
        }
        Ok(())
    }
}

impl Tally {
    fn add(&mut self, batch: &Batch, elapsed: Duration) {
        self.times.elapsed = elapsed;
        if self.batches == 0 {
            self.times.first_batch = elapsed;
        }
        self.batches += 1;
        self.padded_samples += batch.padded_count() as u64;
        self.skipped.extend(batch.skipped().iter().map(Skipped::of));
    }
}

/// Saves the state to its file, after everything that it counts has been printed; if printing failed, the file is
/// unchanged.
fn keep(
    file: Option<&StateFile>,
    epoch: &Epoch,
    read: &anyhow::Result<Ending>,
    printer: &Printer,
) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    printer.flush()?;
    let state = epoch.state();
    file.write(&state)?;
    if !matches!(read, Ok(Ending::Over)) {
        let position = state.position();
        let samples = epoch.plan().len();
        let shown = file.shown();
        printer.note(format_args!(
            "state of position {position} of {samples} in {shown}: the same command resumes from it"
        ));
    }
    Ok(())
}

/// The same, with a hint if the epoch could continue without a sample.
fn with_remedy<T>(read: Result<T, ReadError>) -> anyhow::Result<T> {
    const REMEDY: &str = "`--skip-damaged` continues without it; `grainstore verify` lists everything that is damaged";
    match &read {
        Err(ReadError::Store(StoreError::Sample { .. }) | ReadError::Unreadable { .. }) => read.hint(REMEDY),
        _ => Ok(read?),
    }
}

/// The payload bytes of one rank's share, in proportion to its samples.
fn expected_bytes(reader: &Reader, epoch: &Epoch) -> anyhow::Result<u64> {
    let all = reader.collection().payload_bytes()?;
    let samples = reader.collection().sample_count().max(1);
    let bytes = u128::from(all) * u128::from(samples_of(epoch.epoch_plan().share())) / u128::from(samples);
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX)) // only a progress bar shows it
}
