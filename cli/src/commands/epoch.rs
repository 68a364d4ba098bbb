//! `grainstore epoch`: reads an epoch, throws it away, and tells how fast it came.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use grainstore_reader::engine::IoMode;
use grainstore_reader::plan::OrderChoice;
use grainstore_reader::{Epoch, EpochOptions, EpochStats, IoChoice, Reader, ReaderOptions};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::{counted, shown_path};
use crate::printer::{Counted, Printer};
use crate::sizes::{parse_size, per_second, shown_exact, shown_size};
use crate::{Exit, interrupt};

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
    /// Read past the page cache (direct), through it (buffered), or as it suits data and memory (auto)
    #[arg(long, default_value_t, value_name = "IO")]
    io: IoChoice,
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

/// What was measured, and how the epoch was read.
#[derive(Serialize)]
struct Document {
    path: String,
    complete: bool,
    samples: u64,
    dataset_samples: u64,
    batches: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    read_bytes: u64,
    requests: u64,
    open_s: f64,
    elapsed_s: f64,
    first_batch_s: f64,
    wait_s: f64,
    cpu_s: f64,
    samples_per_s: f64,
    mb_per_s: f64,
    /// Of the stored bytes of the samples delivered; none where they have no bytes.
    read_amplification: Option<f64>,
    cpu_s_per_gb: Option<f64>,
    held_bytes_max: u64,
    order: String,
    lanes: Option<u64>,
    seed: u64,
    epoch: u64,
    window_bytes: u64,
    batch_size: usize,
    io: &'static str,
    io_why: String,
    engine: &'static str,
}

/// Times of a run.
#[derive(Default)]
struct Times {
    open: Duration,
    first_batch: Duration,
    elapsed: Duration,
    cpu: Duration,
}

/// A run that was not interrupted.
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
        let reader = Reader::open(&self.path, ReaderOptions { io: self.io, ..ReaderOptions::default() })?;
        reader.extents()?;
        let open = opening.elapsed();
        let run = self.read(&reader, open, printer)?;
        for notice in reader.notices() {
            printer.warn(notice);
        }
        let Some(run) = run else { return Ok(Exit::Interrupted) };
        let document = self.document(&reader, &run);
        if self.json {
            printer.json(&document)?;
        } else {
            for line in self.summary(&document) {
                if self.print_ordinals { printer.note(line) } else { printer.line(line)? }
            }
        }
        Ok(Exit::Done)
    }

    /// Reads the epoch, or as much of it as there is time for; none where the user wants to stop.
    fn read(&self, reader: &Reader, open: Duration, printer: &Printer) -> anyhow::Result<Option<Run>> {
        let bar = printer.progress(Counted::Bytes, Some(reader.dataset().payload_bytes()?));
        bar.set_message("reading");
        let (started, cpu_before) = (Instant::now(), process_cpu());
        let mut times = Times { open, ..Times::default() };
        let mut epoch = reader.epoch(&self.options())?;
        let mut batches = 0;
        while let Some(batch) = epoch.next_batch() {
            let batch = batch?;
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
                return Ok(None);
            }
            if self.limit_seconds.is_some_and(|limit| times.elapsed >= limit) {
                break;
            }
        }
        times.cpu = process_cpu().saturating_sub(cpu_before);
        Ok(Some(Run::of(times, batches, &epoch)))
    }

    fn options(&self) -> EpochOptions {
        EpochOptions {
            order: self.order,
            seed: self.seed,
            epoch: self.epoch,
            window_len: self.window,
            lanes: None,
            batch_size: self.batch_size,
        }
    }

    fn document(&self, reader: &Reader, run: &Run) -> Document {
        let Run { times, stats, .. } = run;
        let elapsed_s = times.elapsed.as_secs_f64();
        let dataset_samples = reader.dataset().sample_count();
        Document {
            path: shown_path(&self.path),
            complete: stats.samples == dataset_samples,
            samples: stats.samples,
            dataset_samples,
            batches: run.batches,
            payload_bytes: stats.payload_bytes,
            stored_bytes: stats.stored_bytes,
            read_bytes: stats.read_bytes,
            requests: stats.request_count,
            open_s: times.open.as_secs_f64(),
            elapsed_s,
            first_batch_s: times.first_batch.as_secs_f64(),
            wait_s: stats.wait.as_secs_f64(),
            cpu_s: times.cpu.as_secs_f64(),
            samples_per_s: ratio(stats.samples as f64, elapsed_s).unwrap_or(0.0),
            mb_per_s: ratio(stats.payload_bytes as f64 / 1e6, elapsed_s).unwrap_or(0.0),
            read_amplification: ratio(stats.read_bytes as f64, stats.stored_bytes as f64),
            cpu_s_per_gb: ratio(times.cpu.as_secs_f64(), stats.payload_bytes as f64 / 1e9),
            held_bytes_max: stats.held_bytes_max,
            order: run.order.clone(),
            lanes: run.lanes,
            seed: self.seed,
            epoch: self.epoch,
            window_bytes: self.window,
            batch_size: self.batch_size.get(),
            io: match stats.io {
                IoMode::Direct => "direct",
                IoMode::Buffered => "buffered",
            },
            io_why: reader.io().why,
            engine: stats.engine,
        }
    }

    /// What a person is told.
    fn summary(&self, document: &Document) -> Vec<String> {
        let elapsed = Duration::from_secs_f64(document.elapsed_s);
        let rate = per_second(document.payload_bytes, elapsed);
        let mut lines = vec![format!(
            "{}: {}, {} in {:.2} s: {rate}, {:.0} samples/s",
            document.path,
            counted(document.samples, "sample"),
            shown_size(document.payload_bytes),
            document.elapsed_s,
            document.samples_per_s
        )];
        let mut row = |name: &str, text: String| lines.push(format!("  {name:<12} {text}"));
        if !document.complete {
            let (read, all) = (document.samples, document.dataset_samples);
            row("stopped", format!("after {read} of {all} samples, by --limit-seconds"));
        }
        row("order", self.shown_order(document));
        row("io", format!("{}, {} engine: {}", document.io, document.engine, document.io_why));
        row("read", shown_reads(document));
        row("memory", format!("{} of buffers at most", shown_size(document.held_bytes_max)));
        row("waited", format!("{:.2} s for reads", document.wait_s));
        row("cpu", shown_cpu(document));
        let (open, first) = (document.open_s, document.first_batch_s);
        row("first batch", format!("after {first:.3} s, and {open:.3} s to open and load the index"));
        lines
    }

    fn shown_order(&self, document: &Document) -> String {
        let chosen = if self.order == OrderChoice::Auto { " (chosen by the mean sample length)" } else { "" };
        let lanes = match document.lanes {
            Some(lanes) => format!(", {} in a window of {}", counted(lanes, "lane"), shown_exact(self.window)),
            None => String::new(),
        };
        format!("{}{chosen}, seed {}, epoch {}{lanes}", document.order, self.seed, self.epoch)
    }
}

impl Run {
    fn of(times: Times, batches: u64, epoch: &Epoch) -> Self {
        Self { times, batches, stats: epoch.stats(), order: epoch.order().to_string(), lanes: epoch.lanes() }
    }
}

fn shown_reads(document: &Document) -> String {
    let reads = format!("{} in {}", shown_size(document.read_bytes), counted(document.requests, "read"));
    match document.read_amplification {
        Some(amplification) => format!("{reads}, {amplification:.3} for each stored byte"),
        None => reads,
    }
}

fn shown_cpu(document: &Document) -> String {
    match document.cpu_s_per_gb {
        Some(per_gb) => format!("{:.2} s, {per_gb:.2} s for each GB", document.cpu_s),
        None => format!("{:.2} s", document.cpu_s),
    }
}

/// None where it would divide by zero.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Time that all threads of the process have worked.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected seconds such as 10 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_with_a_fraction_and_never_negative() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "-1", "nan", "inf", "10s"] {
            assert_eq!(parse_seconds(text).unwrap_err(), "expected seconds such as 10 or 0.5", "{text}");
        }
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(3.0, 2.0), Some(1.5));
    }
}
