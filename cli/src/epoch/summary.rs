//! The results of reading an epoch, as text: the speed first, then what the time was spent on, then how it was read.

use std::time::Duration;

use super::datasets::shown;
use super::document::EpochDocument;
use crate::epoch::order_options::shown_lanes;
use crate::sizes::{counted, per_second, shown_size};

impl EpochDocument {
    /// The lines of the summary.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.headline()];
        let mut row = |name: &str, text: String| lines.push(format!("  {name:<12} {text}"));
        if !self.complete {
            row("stopped", format!("after {} of {} samples, by --limit-seconds", self.samples, self.rank_samples));
        }
        row("time", self.shown_time());
        row("cpu", self.shown_cpu());
        row("read", self.shown_reads());
        row("io", self.shown_io());
        row("order", self.shown_order());
        if let Some(subset) = &self.subset {
            row("subset", format!("{}, {}", counted(subset.samples, "sample"), subset.expression));
        }
        if self.world > 1 {
            row("rank", self.shown_rank());
        }
        if self.padded_samples > 0 {
            row("padded", format!("the last {} repeat the first of the epoch", self.padded_samples));
        }
        if !self.skipped.is_empty() {
            row("skipped", format!("{}, damaged: named on stderr", counted(self.skipped.len() as u64, "sample")));
        }
        if let Some(file) = &self.state {
            row("state", format!("{} of the epoch's {} samples, in {file}", self.position, self.epoch_samples));
        }
        if self.slab_bytes > 0 {
            let held = shown_size(self.held_bytes_max);
            let slabs = shown_size(self.slab_bytes);
            row("memory", format!("{held} for samples at most, of {slabs} set aside"));
        }
        let first = self.first_batch_s;
        let open = self.open_s;
        row("first batch", format!("after {first:.3} s, and {open:.3} s to open"));
        self.engine_remarks.iter().for_each(|remark| row("remark", remark.clone()));
        lines
    }

    /// The line to print if the rank has no batch.
    pub(crate) fn nothing_left(&self) -> String {
        let datasets = shown(&self.paths);
        let epoch = self.epoch;
        match self.epoch_samples - self.position {
            0 => format!("{datasets}: epoch {epoch} is complete: nothing is left to read"),
            left => format!(
                "{datasets}: nothing to read: {} left of epoch {epoch} do not fill a batch of every rank, and \
                 --tail drop leaves them out",
                counted(left, "sample")
            ),
        }
    }

    fn headline(&self) -> String {
        let rate = per_second(self.payload_bytes, Duration::from_secs_f64(self.elapsed_s));
        let samples = counted(self.samples, "sample");
        let size = shown_size(self.payload_bytes);
        let elapsed_s = self.elapsed_s;
        let samples_per_s = self.samples_per_s;
        let datasets = shown(&self.paths);
        format!("{datasets}: {samples}, {size} in {elapsed_s:.2} s: {rate}, {samples_per_s:.0} samples/s")
    }

    /// Shows whether the device was slow, or the work on its bytes.
    fn shown_time(&self) -> String {
        let stages = &self.stages;
        let threads = counted(self.check_threads as u64, "thread");
        format!(
            "{:.2} s waiting for reads, {:.2} s verifying, {:.2} s copying, on {threads}",
            stages.wait_for_reads_s, stages.verify_s, stages.copy_s
        )
    }

    fn shown_cpu(&self) -> String {
        match self.cpu_s_per_gb {
            Some(per_gb) => format!("{:.2} s, {per_gb:.2} s for each GB", self.cpu_s),
            None => format!("{:.2} s", self.cpu_s),
        }
    }

    fn shown_reads(&self) -> String {
        let bytes = shown_size(self.read_bytes);
        let mean = shown_size(self.mean_request_bytes);
        let reads = format!("{bytes} in {} of {mean}", counted(self.requests, "read"));
        match self.read_amplification {
            Some(amplification) => format!("{reads}, {amplification:.3} for each stored byte"),
            None => reads,
        }
    }

    fn shown_io(&self) -> String {
        let by = if self.engine == self.io { String::new() } else { format!(", by {}", self.engine) };
        format!("{}{by}: {}", self.io, self.io_why)
    }

    fn shown_order(&self) -> String {
        let lanes = shown_lanes(self.lanes, self.group, self.window_bytes);
        format!("{}, seed {}, epoch {}{lanes}", self.order, self.seed, self.epoch)
    }

    fn shown_rank(&self) -> String {
        let batches = counted(self.rank_batches, "batch");
        format!("{} of {}, {batches} of {}, tail {}", self.rank, self.world, self.batch_size, self.tail)
    }
}
