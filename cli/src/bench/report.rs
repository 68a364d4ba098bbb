//! The results of a bench, as a JSON document. `table` prints them for people.

use grainstore_reader::engine::IoMode;
use serde::Serialize;

use super::device::{DeviceWork, Load};
use super::limits::Limit;
use super::ways::{Cache, Latency, Outcome, Way};
use crate::filesystem::FileSystem;

/// All results of a bench.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchReport {
    /// Path of the dataset.
    pub(crate) path: String,
    /// The file system that the dataset is on.
    pub(crate) file_system: FileSystem,
    /// Number of samples.
    pub(crate) samples: u64,
    /// Bytes of their payloads, decoded.
    pub(crate) payload_bytes: u64,
    /// Bytes of their payloads, as stored.
    pub(crate) stored_bytes: u64,
    /// Mean stored bytes of an extent.
    pub(crate) mean_extent_bytes: u64,
    /// Mean stored bytes of a sample.
    pub(crate) mean_sample_bytes: u64,
    /// Samples per batch.
    pub(crate) batch_size: usize,
    /// Seed of orders and offsets.
    pub(crate) seed: u64,
    /// How long each row was measured, in seconds.
    pub(crate) limit_s: f64,
    /// How long the whole bench took, in seconds.
    pub(crate) elapsed_s: f64,
    /// The engine that read the device, except for one sample at a time.
    pub(crate) engine: &'static str,
    /// Share of the device's buffers that is on huge pages; null if the system does not report it.
    pub(crate) huge_page_share: Option<f64>,
    /// Whether the device was read past the page cache. If not, its rows are not limits, and no way has a share.
    pub(crate) direct: bool,
    /// The limits of the device.
    pub(crate) device: Vec<DeviceRow>,
    /// The ways of reading, compared with the limits; ways that this file system does not support are omitted.
    pub(crate) ways: Vec<WayRow>,
}

/// A limit: the mean of the measurements before and after the ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DeviceRow {
    /// Which limit.
    pub(crate) limit: Limit,
    /// Bytes per read.
    pub(crate) request_bytes: u64,
    /// Reads in flight.
    pub(crate) depth: usize,
    /// `direct` or `buffered`.
    pub(crate) io: &'static str,
    /// The engine's name; `pread` for one sample at a time.
    pub(crate) engine: &'static str,
    /// Reads per second.
    pub(crate) reads_per_s: f64,
    /// Bytes per second, in 10^6.
    pub(crate) mb_per_s: f64,
    /// CPU seconds of all threads per 10^9 bytes.
    pub(crate) cpu_s_per_gb: Option<f64>,
    /// Bytes per second before the ways, in 10^6.
    pub(crate) before_mb_per_s: f64,
    /// Bytes per second after the ways, in 10^6.
    pub(crate) after_mb_per_s: f64,
    /// The difference of the two as a share of the mean; negative if the device became slower.
    pub(crate) drift: f64,
}

/// A way of reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WayRow {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// Its name for people.
    #[serde(skip)]
    pub(crate) label: &'static str,
    /// How files were finally read: `direct`, `buffered` or `mapped`.
    pub(crate) io: &'static str,
    /// What the page cache held at the start.
    pub(crate) cache: Cache,
    /// Samples measured.
    pub(crate) samples: u64,
    /// Bytes of their payloads, decoded.
    pub(crate) payload_bytes: u64,
    /// How long they took, in seconds.
    pub(crate) elapsed_s: f64,
    /// Samples per second.
    pub(crate) samples_per_s: f64,
    /// Payload per second, in 10^6 bytes.
    pub(crate) mb_per_s: f64,
    /// Mean bytes per read; null if unknown.
    pub(crate) mean_request_bytes: Option<f64>,
    /// CPU seconds of all threads per 10^9 bytes of payload.
    pub(crate) cpu_s_per_gb: Option<f64>,
    /// How long single calls took.
    pub(crate) latency: Option<Latency>,
    /// The limit that it is compared with; null if memory was read.
    pub(crate) limit: Option<Limit>,
    /// The share of the limit that it reached; null if there is no limit.
    pub(crate) share_of_limit: Option<f64>,
}

/// A limit, measured twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bracket {
    pub(crate) before: DeviceWork,
    pub(crate) after: DeviceWork,
}

/// The values that a share is computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareUnit<'a> {
    pub(crate) device: &'a DeviceRow,
    /// Bytes of a mean sample, rounded up to blocks, if every sample is one read; otherwise `None`: stored bytes count.
    pub(crate) sample_len: Option<u64>,
}

impl Bracket {
    /// The row of a limit.
    pub(crate) fn row(&self, limit: Limit, load: Load, io: IoMode) -> DeviceRow {
        let works = [self.before.work, self.after.work];
        let mb_per_s = works.map(|work| work.per_second(work.read_bytes) / 1e6);
        let reads_per_s = works.map(|work| work.per_second(work.requests));
        let read_gb = works.iter().map(|work| work.read_bytes).sum::<u64>() as f64 / 1e9;
        let cpu_s: f64 = works.iter().map(|work| work.cpu.as_secs_f64()).sum();
        let mean = |values: [f64; 2]| values.iter().sum::<f64>() / 2.0;
        DeviceRow {
            limit,
            request_bytes: load.request_len,
            depth: load.depth,
            io: io.name(),
            engine: self.before.engine,
            reads_per_s: mean(reads_per_s),
            mb_per_s: mean(mb_per_s),
            cpu_s_per_gb: (read_gb > 0.0).then(|| cpu_s / read_gb),
            before_mb_per_s: mb_per_s[0],
            after_mb_per_s: mb_per_s[1],
            drift: (mb_per_s[1] - mb_per_s[0]) / mean(mb_per_s).max(1e-9),
        }
    }
}

impl WayRow {
    /// The row of a way; its share is computed if there is a unit to measure in.
    pub(crate) fn of(way: &Way, outcome: &Outcome, unit: Option<ShareUnit<'_>>) -> Self {
        let work = outcome.work;
        Self {
            name: way.name,
            label: way.label,
            io: outcome.io.name(),
            cache: way.cache,
            samples: work.samples,
            payload_bytes: work.payload_bytes,
            elapsed_s: work.elapsed.as_secs_f64(),
            samples_per_s: work.per_second(work.samples),
            mb_per_s: work.per_second(work.payload_bytes) / 1e6,
            mean_request_bytes: (work.requests > 0).then(|| work.read_bytes as f64 / work.requests as f64),
            cpu_s_per_gb: work.cpu_s_per_gb(),
            latency: outcome.latency,
            limit: unit.map(|unit| unit.device.limit),
            share_of_limit: unit.and_then(|unit| unit.share(outcome)),
        }
    }
}

impl ShareUnit<'_> {
    /// Bytes per second that the way gets from the device, to compare with what the device can do. A sample that is a
    /// single read counts as one mean read: otherwise samples smaller than a block could never reach the limit.
    fn share(&self, outcome: &Outcome) -> Option<f64> {
        let work = outcome.work;
        let worth = self.sample_len.map_or(work.stored_bytes, |len| work.samples.saturating_mul(len));
        let limit = self.device.mb_per_s * 1e6;
        (limit > 0.0 && work.stored_bytes > 0).then(|| work.per_second(worth) / limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ways::WAYS;
    use super::super::work::ReadWork;
    use super::*;

    fn device(before: u64, after: u64) -> DeviceRow {
        let measured = |requests: u64| {
            let read_bytes = requests * 4096;
            let elapsed = Duration::from_secs(1);
            DeviceWork {
                work: ReadWork { requests, read_bytes, elapsed, ..ReadWork::default() },
                ..DeviceWork::default()
            }
        };
        let bracket = Bracket { before: measured(before), after: measured(after) };
        bracket.row(Limit::Samples, Load { request_len: 4096, depth: 8, seed: 0 }, IoMode::Direct)
    }

    fn outcome(samples: u64, sample_len: u64) -> Outcome {
        let bytes = samples * sample_len;
        let elapsed = Duration::from_secs(2);
        let work = ReadWork { samples, payload_bytes: bytes, stored_bytes: bytes, elapsed, ..ReadWork::default() };
        Outcome { work, io: IoMode::Direct, latency: None, notices: vec![] }
    }

    #[test]
    fn a_limit_is_the_mean_of_before_and_after_and_knows_its_drift() {
        let row = device(1000, 3000);
        assert_eq!((row.reads_per_s, row.mb_per_s, row.drift), (2000.0, 8.192, 1.0));
        assert!(device(3000, 1000).drift < 0.0);
        assert_eq!((device(0, 0).drift, device(0, 0).cpu_s_per_gb), (0.0, None));
    }

    #[test]
    fn a_sample_that_is_a_read_is_worth_a_read_however_small_it_is() {
        let device = device(1000, 1000);
        let way = &WAYS[0];
        let share = |outcome: &Outcome, sample_len| {
            WayRow::of(way, outcome, Some(ShareUnit { device: &device, sample_len })).share_of_limit
        };
        assert_eq!(share(&outcome(1000, 512), Some(4096)), Some(0.5));
        assert_eq!(share(&outcome(1000, 512), None), Some(0.0625));
        assert_eq!(share(&outcome(1000, 0), Some(4096)), None);
        assert_eq!(WayRow::of(way, &outcome(1, 1), None).share_of_limit, None);
    }
}
