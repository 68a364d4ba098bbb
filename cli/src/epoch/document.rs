//! The results of reading an epoch, as a JSON document. `summary` prints them for people.

use std::time::Duration;

use grainstore_reader::{EpochStats, SkippedSample, Stages};
use serde::Serialize;

use super::order_options::SubsetDocument;
use crate::errors::on_one_line;

/// All results of reading an epoch. Rates and sizes of samples are those of the decoded payloads.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct EpochDocument {
    pub(crate) paths: Vec<String>,
    /// Whether all batches of the rank were read, to the epoch's end.
    pub(crate) complete: bool,
    pub(crate) samples: u64,
    /// Number of samples in the datasets.
    pub(crate) dataset_samples: u64,
    /// Number of samples in the epoch, of all ranks.
    pub(crate) epoch_samples: u64,
    /// Number of samples of the rank, from where it started.
    pub(crate) rank_samples: u64,
    pub(crate) batches: u64,
    /// Number of batches of the rank, from where it started.
    pub(crate) rank_batches: u64,
    /// Samples read that repeat the epoch's first samples.
    pub(crate) padded_samples: u64,
    /// Samples that were skipped because they are damaged.
    pub(crate) skipped: Vec<Skipped>,
    /// Positions of the epoch that all ranks have read, if each has read the same number of batches.
    pub(crate) position: u64,
    /// The file that this state was saved to.
    pub(crate) state: Option<String>,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// Bytes that files delivered.
    pub(crate) read_bytes: u64,
    pub(crate) requests: u64,
    pub(crate) mean_request_bytes: u64,
    /// Time to open the dataset and find its extents. A large index is loaded while batches are made.
    pub(crate) open_s: f64,
    /// From the first request to the last batch.
    pub(crate) elapsed_s: f64,
    pub(crate) first_batch_s: f64,
    /// Time that this command waited for batches.
    pub(crate) wait_s: f64,
    pub(crate) stages: StagesDocument,
    /// Number of threads that verify and copy.
    pub(crate) check_threads: usize,
    /// CPU seconds of all threads, from the first request on.
    pub(crate) cpu_s: f64,
    pub(crate) samples_per_s: f64,
    /// Payload per second, in 10^6 bytes.
    pub(crate) mb_per_s: f64,
    /// Bytes read per stored byte of the samples delivered; null if they have no bytes.
    pub(crate) read_amplification: Option<f64>,
    /// CPU seconds per 10^9 bytes of payload.
    pub(crate) cpu_s_per_gb: Option<f64>,
    /// Maximum bytes of samples being read and drawn from.
    pub(crate) held_bytes_max: u64,
    /// Memory that the buffers were cut from.
    pub(crate) slab_bytes: u64,
    /// Memory that is registered with the kernel.
    pub(crate) registered_bytes: u64,
    pub(crate) subset: Option<SubsetDocument>,
    /// The order, with `auto` resolved.
    pub(crate) order: String,
    /// Only in the chunked order.
    pub(crate) lanes: Option<u64>,
    /// Extents that are shuffled as one; only in the chunked order.
    pub(crate) group: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) window_bytes: u64,
    pub(crate) batch_size: usize,
    pub(crate) world: u64,
    pub(crate) rank: u64,
    /// `drop`, `pad` or `short`.
    pub(crate) tail: String,
    /// `direct`, `buffered` or `mapped`, with `auto` resolved.
    pub(crate) io: &'static str,
    pub(crate) io_why: String,
    pub(crate) dont_cache: bool,
    /// `io_uring`, `pread` or `mapped`, with `auto` resolved.
    pub(crate) engine: &'static str,
    /// Features that the engine has to do without, as sentences.
    pub(crate) engine_remarks: Vec<String>,
    pub(crate) queue_bytes: u64,
}

/// What the thread that makes the batches spent its time on; for verifying and copying, the sum over threads.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct StagesDocument {
    /// Choosing the samples, finding where they are stored and where they go.
    pub(crate) prepare_s: f64,
    /// Submitting reads to the engine.
    pub(crate) post_s: f64,
    pub(crate) wait_for_reads_s: f64,
    /// Waiting for this command to take a batch.
    pub(crate) wait_for_caller_s: f64,
    pub(crate) verify_s: f64,
    pub(crate) copy_s: f64,
}

/// A sample that was skipped.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) ordinal: u64,
    pub(crate) position: u64,
    /// The damage, and its location.
    pub(crate) error: String,
}

/// Times of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) open: Duration,
    pub(crate) first_batch: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
}

impl EpochDocument {
    /// The same document, with the measurements.
    pub(crate) fn with(self, times: &Times, stats: &EpochStats) -> Self {
        let elapsed_s = times.elapsed.as_secs_f64();
        Self {
            samples: stats.samples,
            payload_bytes: stats.payload_bytes,
            stored_bytes: stats.stored_bytes,
            read_bytes: stats.read_bytes,
            requests: stats.request_count,
            mean_request_bytes: stats.mean_request_bytes(),
            open_s: times.open.as_secs_f64(),
            elapsed_s,
            first_batch_s: times.first_batch.as_secs_f64(),
            wait_s: stats.wait.as_secs_f64(),
            stages: StagesDocument::of(&stats.stages),
            check_threads: stats.check_threads,
            cpu_s: times.cpu.as_secs_f64(),
            samples_per_s: ratio(stats.samples as f64, elapsed_s).unwrap_or(0.0),
            mb_per_s: ratio(stats.payload_bytes as f64 / 1e6, elapsed_s).unwrap_or(0.0),
            read_amplification: ratio(stats.read_bytes as f64, stats.stored_bytes as f64),
            cpu_s_per_gb: ratio(times.cpu.as_secs_f64(), stats.payload_bytes as f64 / 1e9),
            held_bytes_max: stats.held_bytes_max,
            slab_bytes: stats.slab_bytes,
            registered_bytes: stats.registered_bytes,
            io: stats.io.name(),
            engine: stats.engine,
            engine_remarks: stats.remarks.clone(),
            ..self
        }
    }
}

impl Skipped {
    pub(crate) fn of(sample: &SkippedSample) -> Self {
        let SkippedSample { ordinal, position, error } = sample;
        Self { ordinal: *ordinal, position: *position, error: on_one_line(error.as_ref()) }
    }
}

impl StagesDocument {
    fn of(stages: &Stages) -> Self {
        Self {
            prepare_s: stages.prepare.as_secs_f64(),
            post_s: stages.post.as_secs_f64(),
            wait_for_reads_s: stages.wait_for_reads.as_secs_f64(),
            wait_for_caller_s: stages.wait_for_caller.as_secs_f64(),
            verify_s: stages.verify.as_secs_f64(),
            copy_s: stages.copy.as_secs_f64(),
        }
    }
}

/// `None` if it would divide by zero.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_nothing_is_none() {
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(3.0, 2.0), Some(1.5));
    }
}
