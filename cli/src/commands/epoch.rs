//! `grainstore epoch`: reads an epoch, throws it away, and tells how fast it came.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use grainstore_reader::plan::OrderChoice;
use grainstore_reader::{EngineChoice, Epoch, EpochOptions, EpochStats, IoChoice, Reader, ReaderOptions};

use super::shown_path;
use crate::clock::{parse_seconds, process_cpu};
use crate::epoch::document::{Document, Times};
use crate::printer::{Counted, Printer};
use crate::sizes::parse_size;
use crate::{Exit, interrupt};

/// How long the user may have to wait for a look at Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Read an epoch in shuffled order and tell how fast it came
///
/// Every sample is read once, checked and decoded, and thrown away. The time runs from the first request to the last
/// batch; opening the dataset and loading its index is told separately. Sizes and rates of samples are those of the
/// payloads, decoded.
#[derive(clap::Args)]
pub(crate) struct EpochArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// Order of the samples: full, chunked, sequential or auto
    ///
    /// full is a uniform shuffle that reads every sample by itself; chunked is a nearly uniform one that reads each
    /// chunk once; sequential is by ordinal. auto is full where the samples have 64 KiB or more on average, else
    /// chunked.
    #[arg(long, default_value_t, value_name = "ORDER")]
    order: OrderChoice,
    /// Seed of the shuffle
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Number of the epoch: each has an order of its own
    #[arg(long, default_value_t = 0, value_name = "N")]
    epoch: u64,
    /// Memory that samples are drawn from in the chunked order; more mixes better and changes the order
    #[arg(long, default_value = "256M", value_parser = parse_size, value_name = "SIZE")]
    window: u64,
    /// Samples of a batch
    #[arg(long, default_value_t = EpochOptions::DEFAULT_BATCH_SIZE, value_name = "N")]
    batch_size: NonZeroUsize,
    /// How files are read: direct, buffered, mapped or auto
    ///
    /// direct reads past the page cache, as suits a dataset larger than memory. buffered reads through it, so that the
    /// next epoch may come from memory. mapped takes samples from where the page cache has them: fastest where all of
    /// the dataset is there, slowest where it is not, and a file that is truncated meanwhile kills the command. auto is
    /// buffered where the dataset fits in half of the free memory, else direct.
    #[arg(long, default_value_t, value_name = "IO")]
    io: IoChoice,
    /// What reads: uring, pread or auto
    ///
    /// uring is io_uring, and an error where the system refuses it, as containers often do. pread is 16 threads that
    /// read one request each, which works everywhere. auto is uring where it can be had, else pread. Mapped files need
    /// neither.
    #[arg(long, default_value_t, value_name = "ENGINE")]
    engine: EngineChoice,
    /// Bytes that io_uring asks of each device at a time; storage across a network may need more
    #[arg(long, default_value = "8M", value_parser = parse_size, value_name = "SIZE")]
    queue: u64,
    /// Leave nothing in the page cache, so that other programs keep there what they need
    ///
    /// Only buffered reads need it: direct ones never leave anything, mapped ones always do. What the page cache holds
    /// already stays and is used. Needs Linux 6.14 and a file system that can do it; elsewhere a warning says so, and
    /// reads go on without it.
    #[arg(long)]
    dont_cache: bool,
    /// Give up with an error that names the read when one takes longer than this many seconds
    #[arg(long, default_value = "120", value_parser = parse_seconds, value_name = "S")]
    timeout: Duration,
    /// Stop after this many seconds, between two batches, and say so
    #[arg(long, value_parser = parse_seconds, value_name = "S")]
    limit_seconds: Option<Duration>,
    /// Print the ordinals in the order read, one a line, and nothing else on stdout
    #[arg(long, conflicts_with = "json")]
    print_ordinals: bool,
    /// Print one JSON document instead; mb_per_s is in 10^6 bytes of payload, cpu_s_per_gb is for 10^9 of them
    #[arg(long)]
    pub(super) json: bool,
}

/// What an epoch that was not interrupted came to.
struct Run {
    times: Times,
    batches: u64,
    stats: EpochStats,
    order: String,
    lanes: Option<u64>,
}

impl EpochArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Where the dataset cannot be opened or read, or a sample is damaged.
    pub(crate) fn run(&self, printer: &Printer) -> anyhow::Result<Exit> {
        let opening = Instant::now();
        let reader = Reader::open(&self.path, self.reader_options())?;
        reader.extents()?;
        let open = opening.elapsed();
        let run = self.read(&reader, open, printer)?;
        for notice in reader.notices() {
            printer.warn(notice);
        }
        let Some(run) = run else { return Ok(Exit::Interrupted) };
        let document = self.document(&reader, run);
        if self.json {
            printer.json(&document)?;
        } else {
            for line in document.lines() {
                if self.print_ordinals { printer.note(line) } else { printer.line(line)? }
            }
        }
        Ok(Exit::Done)
    }

    /// Reads the epoch, or as much of it as there is time for; none where the user wants to stop.
    fn read(&self, reader: &Reader, open: Duration, printer: &Printer) -> anyhow::Result<Option<Run>> {
        let bar = printer.progress(Counted::Bytes, Some(reader.collection().payload_bytes()?));
        bar.set_message("reading");
        let (started, cpu_before) = (Instant::now(), process_cpu());
        let mut times = Times { open, ..Times::default() };
        let mut epoch = reader.epoch(&self.options())?;
        let mut batches = 0;
        loop {
            while !epoch.is_ready_within(LOOK_UP) {
                if interrupt::requested() {
                    return left_behind(epoch, Ok(None));
                }
            }
            let batch = match epoch.next_batch() {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return left_behind(epoch, Err(error.into())),
                None => break,
            };
            times.elapsed = started.elapsed();
            if batches == 0 {
                times.first_batch = times.elapsed;
            }
            batches += 1;
            bar.inc(batch.payload_bytes());
            if self.print_ordinals {
                batch.ordinals().iter().try_for_each(|ordinal| printer.line(ordinal))?;
            }
            if interrupt::requested() {
                return left_behind(epoch, Ok(None));
            }
            if self.limit_seconds.is_some_and(|limit| times.elapsed >= limit) {
                break;
            }
        }
        times.cpu = process_cpu().saturating_sub(cpu_before);
        Ok(Some(Run::of(times, batches, &epoch)))
    }

    fn reader_options(&self) -> ReaderOptions {
        ReaderOptions {
            io: self.io,
            engine: self.engine,
            queue_len: self.queue,
            dont_cache: self.dont_cache,
            timeout: self.timeout,
            ..ReaderOptions::default()
        }
    }

    fn options(&self) -> EpochOptions {
        EpochOptions {
            order: self.order,
            seed: self.seed,
            epoch: self.epoch,
            window_len: self.window,
            lanes: None,
            batch_size: self.batch_size,
            ..EpochOptions::default()
        }
    }

    fn document(&self, reader: &Reader, run: Run) -> Document {
        let asked = Document {
            path: shown_path(&self.path),
            dataset_samples: reader.collection().sample_count(),
            batches: run.batches,
            order: run.order,
            lanes: run.lanes,
            seed: self.seed,
            epoch: self.epoch,
            window_bytes: self.window,
            batch_size: self.batch_size.get(),
            io_why: reader.io().why,
            dont_cache: self.dont_cache,
            queue_bytes: self.queue,
            ..Document::default()
        };
        asked.with(&run.times, &run.stats)
    }
}

impl Run {
    fn of(times: Times, batches: u64, epoch: &Epoch) -> Self {
        Self { times, batches, stats: epoch.stats(), order: epoch.order().to_string(), lanes: epoch.lanes() }
    }
}

/// The process ends with this: a device that does not answer is not waited for, as it would be where an epoch is dropped.
fn left_behind<T>(epoch: Epoch, result: anyhow::Result<T>) -> anyhow::Result<T> {
    std::mem::forget(epoch);
    result
}
